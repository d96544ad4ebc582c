// SPDX-License-Identifier: Apache-2.0
//
// The lines of source that a report shows. They are read right after the run, by who ran the program, and kept in the recording, in
// `sources.txt`. A report never opens a file that a recording names: recordings come from other people and pages are passed on.
#pragma once

#include "audit/recording.hpp"

#include <string_view>

namespace kiln::audit {

// What stands around every line of the user's that a stack of the recording names, in files that have not changed since the program began.
[[nodiscard]] kept_sources read_sources(recording const& from);

// What stands in sources.txt, and back. A line that makes no sense is passed over.
[[nodiscard]] std::string to_text(kept_sources const& sources);
[[nodiscard]] kept_sources kept_sources_from(std::string_view text);

}  // namespace kiln::audit
