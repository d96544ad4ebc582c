// SPDX-License-Identifier: Apache-2.0
// Programs that are no work of anybody's, by the names of their files: shells, and what scripts and libraries ask about the machine.
#pragma once

#include <string_view>

namespace kiln::audit {

// Such a program never runs anything on a GPU by itself.
[[nodiscard]] bool is_system_tool(std::string_view program) noexcept;
// One that starts nothing either. A shell may have started anything.
[[nodiscard]] bool is_small_tool(std::string_view program) noexcept;

}  // namespace kiln::audit
