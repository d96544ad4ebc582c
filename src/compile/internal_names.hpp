// SPDX-License-Identifier: Apache-2.0
// What is internal to a text (an anonymous namespace, a constant of a header) NVRTC names after the first name in it that others
// can see. Where there is none, in a text of templates alone, it takes the time and its process: two compiles of one text differ in
// "40_INTERNAL_00000000_4_k_cu_0d86e87c_10678" and in nothing else.
#pragma once

#include <string>
#include <string_view>

namespace kiln::compile {

// The text with such names as they would be without time, process and their length: "_INTERNAL_k_cu".
[[nodiscard]] std::string without_compile_marks(std::string_view text);

// NVRTC's own remedy, since 12.9: what it takes instead of time and process.
inline constexpr std::string_view fixed_seed = "-frandom-seed=kiln";

}  // namespace kiln::compile
