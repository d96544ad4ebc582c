// SPDX-License-Identifier: Apache-2.0
// Programs that are no work of anybody's, by the names of their files: shells, and what scripts and libraries ask about the machine.
#pragma once

#include <string_view>

namespace kiln::audit {

// Such a program never runs anything on a GPU by itself. By its path: tests of people's own are called sort, find or cut as well.
[[nodiscard]] bool is_system_tool(std::string_view path) noexcept;
// Whether it lies where systems have their programs, or was looked for in PATH.
[[nodiscard]] bool is_of_the_system(std::string_view path) noexcept;
// One that starts nothing either. A shell may have started anything.
[[nodiscard]] bool is_small_tool(std::string_view program) noexcept;

}  // namespace kiln::audit
