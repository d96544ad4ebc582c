// SPDX-License-Identifier: Apache-2.0
// NVRTC numbers the registers of one text in one order or another, from compile to compile: its PTX has then a few forms that are the
// same program.
#pragma once

#include <string_view>

namespace kiln::intercept {

// Are they the same, byte by byte but for registers that are renamed one to one within each function?
[[nodiscard]] bool is_same_ptx(std::string_view a, std::string_view b);

}  // namespace kiln::intercept
