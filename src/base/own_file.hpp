// SPDX-License-Identifier: Apache-2.0
// Which file code was loaded from: what belongs to it lies beside it, however it was installed.
#pragma once

#include <filesystem>

namespace kiln::base {

// The library, or the program, that has `code` in it, without symbolic links. Empty where it cannot be known.
[[nodiscard]] std::filesystem::path file_with(void const* code);

}  // namespace kiln::base
