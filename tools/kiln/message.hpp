// SPDX-License-Identifier: Apache-2.0
// What the command line says to people and how it ends, for the parts of it that do without its parser.
#pragma once

#include "base/check.hpp"

#include <string_view>

namespace kiln::cli {

// Exit statuses; the pages in docs/cli say what they mean for a command.
inline constexpr int ok = 0;
inline constexpr int failed = 1;   // the work, or a part of it, did not succeed
inline constexpr int misused = 2;  // the command line makes no sense
inline constexpr int partial = 3;  // some of it was left out, and said so, as it may be

// "kiln: message", then the log if there is one.
void complain(error const& e);
void complain(std::string_view text);

}  // namespace kiln::cli
