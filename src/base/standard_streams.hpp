// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kiln::base {

// The same file by a number above those of the standard streams, for what lives long: a program that has closed these may go on writing to
// them. -1 where it was -1, or there is no number left.
[[nodiscard]] int clear_of_standard_streams(int fd) noexcept;
// An empty file in memory, as memfd_create makes it, that stands there, too.
[[nodiscard]] int memory_file(char const* name, unsigned flags) noexcept;

}  // namespace kiln::base
