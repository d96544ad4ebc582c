// SPDX-License-Identifier: Apache-2.0
// Which file code was loaded from: what belongs to it lies beside it, however it was installed.
#pragma once

#include <filesystem>

namespace kiln::base {

// This program, without symbolic links; where it was replaced since it was started, what lies in its place. Empty where it cannot be known.
[[nodiscard]] std::filesystem::path program_file();

// The library, or the program, that has `code` in it, without symbolic links. Empty where it cannot be known.
[[nodiscard]] std::filesystem::path file_with(void const* code);

// Whether what was found somewhere near `own`, a library or a program of ours, may be used as if it were a part of it: it and the folder that
// it lies in are of root, of this user or of whoever `own` or its folder is of, and nobody else may write to them. Everybody may make `/tmp/bin`, and
// programs are run in `/tmp/build`.
[[nodiscard]] bool belongs_to(std::filesystem::path const& own, std::filesystem::path const& found);

}  // namespace kiln::base
