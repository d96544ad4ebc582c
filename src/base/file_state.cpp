// SPDX-License-Identifier: Apache-2.0
#include "base/file_state.hpp"

#include "base/files.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace kiln::base {

namespace {

constexpr unsigned unique_mount = 0x4000;  // STATX_MNT_ID_UNIQUE, which older headers do not have
constexpr std::uint64_t fnv_start = 14'695'981'039'346'656'037U, fnv_prime = 1'099'511'628'211;

// Numbers of mounts begin anew with every boot. 0: nobody tells which this is.
std::uint64_t this_boot() noexcept {
    static constinit std::atomic<std::uint64_t> known{0};
    if (auto const before = known.load(std::memory_order_relaxed); before != 0) return before;
    std::array<char, 64> text{};
    int const fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    auto const size = ::read(fd, text.data(), text.size());
    ::close(fd);
    constexpr long shortest = 32;
    if (size < shortest) return 0;
    auto hash = fnv_start;
    for (long i = 0; i < size; ++i)
        hash = (hash ^ static_cast<unsigned char>(text[static_cast<std::size_t>(i)])) * fnv_prime;
    known.store(hash | 1, std::memory_order_relaxed);
    return hash | 1;
}

std::uint64_t mount_of(struct ::statx const& about) noexcept {
    if ((about.stx_mask & unique_mount) == 0) return 0;
    auto const boot = this_boot();
    return boot == 0 ? 0 : ((boot ^ about.stx_mnt_id) * fnv_prime) | 1;
}

std::uint64_t ns_of(struct ::statx_timestamp const& t) noexcept {
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

int look(int directory, char const* path, int flags, file_look& out) noexcept {
    struct ::statx about {};
    if (sys().statx(directory, path, flags, STATX_BASIC_STATS | unique_mount, &about) == 0) {
        out = {{::makedev(about.stx_dev_major, about.stx_dev_minor), about.stx_ino, about.stx_size,
                ns_of(about.stx_mtime), ns_of(about.stx_ctime), mount_of(about)},
               about.stx_mode};
        return 0;
    }
    // A filter of system calls that was written before there was this one.
    if (errno != ENOSYS && errno != EPERM) return -1;
    struct ::stat older {};
    if (::fstatat(directory, path, &older, flags) != 0) return -1;
    out = {{older.st_dev, older.st_ino, static_cast<std::uint64_t>(older.st_size), base::ns_of(older.st_mtim),
            base::ns_of(older.st_ctim), 0},
           older.st_mode};
    return 0;
}

unsigned long kind_of(struct ::statfs const& about) noexcept {
    return static_cast<unsigned long>(about.f_type) & 0xffffffffUL;
}

}  // namespace

int look_at(char const* path, file_look& out) noexcept { return look(AT_FDCWD, path, 0, out); }
int look_at(int fd, file_look& out) noexcept { return look(fd, "", AT_EMPTY_PATH, out); }

bool is_kept_in_memory(char const* path) noexcept {
    constexpr std::array<unsigned long, 7> kinds{0x01021994 /* tmpfs */,
                                                 0x858458f6 /* ramfs */,
                                                 0x958458f6 /* hugetlbfs */,
                                                 0x9fa0 /* procfs */,
                                                 0x62656572 /* sysfs */,
                                                 0x27e0eb /* cgroup */,
                                                 0x63677270 /* cgroup2 */};
    struct ::statfs about {};
    return ::statfs(path, &about) != 0 || std::ranges::find(kinds, kind_of(about)) != kinds.end();
}

bool is_told_apart(file_state const& state, char const* path) noexcept {
    struct ::statfs about {};
    if (::statfs(path, &about) != 0) return false;
    // Whoever serves the files says what their times are.
    constexpr std::array<unsigned long, 4> told_by_others{0x65735546 /* FUSE */, 0x01021997 /* 9p */,
                                                          0xff534d42 /* CIFS */, 0xfe534d42 /* SMB 2 */};
    auto const is_one_of = [&](auto const& kinds) { return std::ranges::find(kinds, kind_of(about)) != kinds.end(); };
    if (is_one_of(told_by_others)) return false;
    if (state[5] != 0) return true;
    // What nobody here can write was written elsewhere, times and all.
    constexpr std::array<unsigned long, 5> images{0x73717368 /* squashfs */, 0xe0f5e1e2 /* erofs */, 0x9660 /* ISO */,
                                                  0x28cd3d45 /* cramfs */, 0x7275 /* romfs */};
    constexpr unsigned long read_only = 1;  // ST_RDONLY
    return (static_cast<unsigned long>(about.f_flags) & read_only) == 0 && !is_one_of(images);
}

}  // namespace kiln::base
