// SPDX-License-Identifier: Apache-2.0
//
// Where a thread sees files from, and as whom: the same names mean the same files only for who is in the same place. A process that
// compiles for another compares the two; a pool compares its workers with the program, which may change its root, its mounts or its
// user while they live.
#pragma once

#include "base/check.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <sys/types.h>

namespace kiln::compile {

// Device (with the mount, where the system tells) and inode of each; zeros where it is not known (no /proc).
struct file_view {
    std::array<std::uint64_t, 2> mounts{};  // the mount namespace
    std::array<std::uint64_t, 2> root{};
    [[nodiscard]] static file_view of_this_thread() noexcept;
    // Of another thread of this process; all zeros where nobody tells.
    [[nodiscard]] static file_view of_thread(::pid_t id) noexcept;
    [[nodiscard]] bool is_known() const noexcept { return mounts[1] != 0; }
    bool operator==(file_view const&) const = default;
};

struct viewpoint {
    // Mount namespace, root and working directory: device and inode of each; effective user and group, the other groups, effective
    // capabilities.
    std::array<std::uint64_t, 10> about{};
    // `directory` is where relative names start from, or will.
    [[nodiscard]] static viewpoint of_this_thread(char const* directory = ".") noexcept;
    // Without /proc it is not: then nobody is in the same place for sure.
    [[nodiscard]] bool is_known() const noexcept { return about[1] != 0; }
    bool operator==(viewpoint const&) const = default;
};

// Whether the way to a file leads through what each process has of its own (/proc/self/cwd, /dev/fd/3), also by links: another
// process finds another file by that name, or none.
enum class by_number { no, too };  // whether /proc/17/cwd counts, where this is process 17
[[nodiscard]] bool is_ones_own(char const* path, by_number counts = by_number::no) noexcept;
// A name by which every process in the same place finds the directory that this thread finds by `path`: absolute, and otherwise as it is
// wherever that will do (what ".." leads to behind a link is for the system to say). An error where there is none, as in a working
// directory that something was mounted over.
[[nodiscard]] result<std::string> name_for_others(std::string const& path);

}  // namespace kiln::compile
