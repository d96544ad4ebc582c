// SPDX-License-Identifier: Apache-2.0
//
// What a text can learn about itself from the compiler: what its file is called, and when it is compiled. Where it may, directories
// must not be hidden from the compiler, or nothing be kept.
#pragma once

#include <string_view>

namespace kiln::intercept {

// __FILE__ and its kin, also pasted together, cut by a line's end, or by a macro that is named after it. Too often rather than once
// too seldom: comments count.
[[nodiscard]] bool may_name_its_file(std::string_view text);
// The same of a header at `path`. Those of CUDA and CuPy have __FILE__ in macros that write messages: whole strings, which are found
// in what was made (tells_virtual_names).
[[nodiscard]] bool header_may_name_its_file(std::string_view path, std::string_view text);
// __DATE__, __TIME__, __TIMESTAMP__.
[[nodiscard]] bool may_name_the_time(std::string_view text);

}  // namespace kiln::intercept
