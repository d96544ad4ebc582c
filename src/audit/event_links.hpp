// SPDX-License-Identifier: Apache-2.0
//
// Events that are links. In a program with threads the companion opens no file, whose descriptor the others might meet: it leaves a link for
// each event, and `kiln audit` puts them into the files after the run.
#pragma once

#include <filesystem>

namespace kiln::audit {

// Each into the file of its process. One that makes no sense stays, and where a file cannot be written, or not whole, there is a mark beside
// it that something is missing.
void gather_event_links(std::filesystem::path const& folder);

}  // namespace kiln::audit
