// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kiln::base {

// A program that has closed its standard streams may go on writing to them and reading from them. What is opened after this call stands
// above their numbers: where one of them is free, a file that can be neither read nor written takes it, and the program is told EBADF as
// before. It stays there, since the program may have put a file of its own in its place by the time that it could be closed.
void occupy_standard_streams() noexcept;

// The same file by a number above those of the standard streams; -1 where it was -1, or there is no number left.
[[nodiscard]] int clear_of_standard_streams(int fd) noexcept;

// The descriptor that `make` opens, or -1; clear of the standard streams even where one is closed in between.
template <class Make>
[[nodiscard]] int above_standard_streams(Make&& make) noexcept {
    occupy_standard_streams();
    return clear_of_standard_streams(make());
}

// An empty file in memory, as memfd_create makes it.
[[nodiscard]] int memory_file(char const* name, unsigned flags) noexcept;

}  // namespace kiln::base
