// SPDX-License-Identifier: Apache-2.0
#include "compile/viewpoint.hpp"

#include "base/file_state.hpp"
#include "base/file_systems.hpp"
#include "compile/environment.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace kiln::compile {

namespace {

// What is mounted over a directory may be the same directory, with something else mounted below it.
std::array<std::uint64_t, 2> device_and_inode(char const* path) noexcept {
    base::file_look about;
    if (base::look_at(path, about) != 0) return {};
    return {about.state[0] ^ about.state[5], about.state[1]};
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

namespace {

bool is_in_procfs(std::string const& directory) {
    return base::file_system_at(directory.empty() ? "." : directory.c_str()).kind == base::file_system::procfs;
}

// Step by step, because the system does not tell which way it went. Links of the kernel's (/proc/17/root) lead where their text does
// not: whatever comes after them is asked for by their names.
bool leads_through_self(std::string rest, by_number how) {
    constexpr int most_links = 40;
    auto const own_folder = fmt::format("/{}", ::getpid());
    std::string done;  // with no link in it that has a text
    for (int links = 0; !rest.empty() && links <= most_links;) {
        if (rest.front() == '/' && done.empty()) done = "/";
        auto const begin = rest.find_first_not_of('/');
        if (begin == std::string::npos) return false;
        auto const end = rest.find('/', begin);
        auto const name = rest.substr(begin, end - begin);
        rest = end == std::string::npos ? std::string{} : rest.substr(end);
        auto const parent = done;
        if (!done.empty() && !done.ends_with('/')) done += '/';
        done += name;
        std::array<char, 4096> target{};
        auto const size = ::readlink(done.c_str(), target.data(), target.size() - 1);
        if (size <= 0) continue;
        bool const is_relative = target[0] != '/';
        bool const is_the_kernels = is_in_procfs(parent);
        if (is_the_kernels && (name == "self" || name == "thread-self")) return true;
        if (is_the_kernels && how == by_number::too && parent.ends_with(own_folder)) return true;
        if (is_the_kernels && !(is_relative && is_in_procfs(done))) continue;
        done = is_relative ? parent : std::string{};
        rest = target.data() + rest;
        ++links;
    }
    return false;
}

}  // namespace

bool is_ones_own(char const* path, by_number counts) noexcept {
    ::open_how how{};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = RESOLVE_NO_MAGICLINKS;
    auto const fd = static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
    int const why = errno;
    struct ::stat about {};
    // The kernel's links were in the way, or it is among the kernel's texts, or a link leads nowhere here; or nobody can tell (Linux
    // before 5.6, filters of system calls).
    bool const may_be =
        fd >= 0 ? base::file_system_at(fd).kind == base::file_system::procfs
                : why == ELOOP || why == ENOSYS || why == EPERM || (why == ENOENT && ::lstat(path, &about) == 0);
    if (fd >= 0) ::close(fd);
    if (!may_be) return false;
    try {
        return leads_through_self(path, counts);
    } catch (std::bad_alloc const&) {
        return true;
    }
}

result<std::string> name_for_others(std::string const& path) {
    if (path.empty()) return path;
    // By its number this process is the same for everybody, but not for good: it may go elsewhere before they look.
    bool const is_own = is_ones_own(path.c_str(), by_number::too);
    if (path.front() == '/' && !is_own) return path;
    std::error_code why;
    auto const name = is_own ? std::filesystem::canonical(path, why) : std::filesystem::absolute(path, why);
    if (why)
        return io_error(is_own ? path : fmt::format("'{}' is relative, and the working directory is not known", path),
                        why.value());
    if (is_own && device_and_inode(path.c_str()) != device_and_inode(name.c_str()))
        return fail(errc::unsupported,
                    "'{}' leads through /proc/self to what has no name of its own: name the directory itself", path);
    if (!is_own && device_and_inode(".") != device_and_inode(std::filesystem::current_path(why).c_str()))
        return fail(
            errc::unsupported,
            "'{}' is relative, and the working directory is not what is found by its name: something was mounted over "
            "it; change into it again",
            path);
    return name.native();
}

}  // namespace kiln::compile
