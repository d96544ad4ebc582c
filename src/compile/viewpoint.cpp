// SPDX-License-Identifier: Apache-2.0
#include "compile/viewpoint.hpp"

#include "compile/environment.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace kiln::compile {

namespace {

std::array<std::uint64_t, 2> device_and_inode(char const* path) noexcept {
    struct ::stat about {};
    if (::stat(path, &about) != 0) return {};
    return {about.st_dev, about.st_ino};
}

// Not 0, and the same for the same groups in whatever order.
std::uint64_t other_groups() noexcept {
    std::uint64_t out = 1;
    int const count = ::getgroups(0, nullptr);
    if (count <= 0) return out;
    try {
        std::vector<::gid_t> all(static_cast<std::size_t>(count));
        all.resize(static_cast<std::size_t>(std::max(0, ::getgroups(count, all.data()))));
        std::ranges::sort(all);
        constexpr std::uint64_t prime = 1'099'511'628'211;  // FNV-1a
        for (auto const group : all) out = (out ^ (group + std::uint64_t{1})) * prime;
    } catch (std::bad_alloc const&) {
        return ~out;  // nobody's: who has no memory to ask is in no known place
    }
    return out;
}

}  // namespace

file_view file_view::of_this_thread() noexcept {
    return {device_and_inode("/proc/thread-self/ns/mnt"), device_and_inode("/")};
}

file_view file_view::of_thread(::pid_t id) noexcept {
    std::array<char, 64> mounts{}, root{};
    std::snprintf(mounts.data(), mounts.size(), "/proc/self/task/%d/ns/mnt", static_cast<int>(id));
    std::snprintf(root.data(), root.size(), "/proc/self/task/%d/root", static_cast<int>(id));
    return {device_and_inode(mounts.data()), device_and_inode(root.data())};
}

viewpoint viewpoint::of_this_thread(char const* directory) noexcept {
    auto const files = file_view::of_this_thread();
    auto const here = device_and_inode(directory);
    return {{files.mounts[0], files.mounts[1], files.root[0], files.root[1], here[0], here[1], ::geteuid(), ::getegid(),
             other_groups(), effective_capabilities()}};
}

bool is_ones_own(char const* path) noexcept {
    ::open_how how{};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = RESOLVE_NO_MAGICLINKS;
    auto const fd = static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
    if (fd >= 0) ::close(fd);
    if (fd >= 0) return false;
    // Links in a circle lead nowhere for anybody.
    struct ::stat about {};
    if (errno == ELOOP) return ::stat(path, &about) == 0 || errno != ELOOP;
    if (errno != ENOSYS && errno != EPERM) return false;
    // Linux before 5.6, or a filter of system calls: by the letters.
    std::string_view const name{path};
    return name.starts_with("/proc/self/") || name.starts_with("/proc/thread-self/") || name.starts_with("/dev/fd/");
}

}  // namespace kiln::compile
