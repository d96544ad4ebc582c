// SPDX-License-Identifier: Apache-2.0
#include "base/file_state.hpp"

#include "base/file_systems.hpp"
#include "base/files.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/sysmacros.h>
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
    // What a server told a while ago does not count, as it does not for whoever opens the file: NFS would say it for a minute.
    if (sys().statx(directory, path, flags | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS | unique_mount, &about) == 0) {
        out = {{::makedev(about.stx_dev_major, about.stx_dev_minor), about.stx_ino, about.stx_size,
                ns_of(about.stx_mtime), ns_of(about.stx_ctime), mount_of(about)},
               about.stx_mode};
        return 0;
    }
    // A filter of system calls that was written before there was this one, or a kernel that is none.
    if (errno != ENOSYS && errno != EPERM && errno != EINVAL) return -1;
    struct ::stat older {};
    if (::fstatat(directory, path, &older, flags) != 0) return -1;
    out = {{older.st_dev, older.st_ino, static_cast<std::uint64_t>(older.st_size), base::ns_of(older.st_mtim),
            base::ns_of(older.st_ctim), 0},
           older.st_mode};
    return 0;
}

}  // namespace

int look_at(char const* path, file_look& out) noexcept { return look(AT_FDCWD, path, 0, out); }
int look_at(int fd, file_look& out) noexcept { return look(fd, "", AT_EMPTY_PATH, out); }

namespace {

// A file system in memory never writes back, and what the kernel says of itself has no times.
bool is_in_memory(file_system_look const& on) noexcept {
    using enum file_system;
    return on.is_one_of({unknown, tmpfs, ramfs, hugetlbfs, procfs, sysfs, cgroup, cgroup2, debugfs, tracefs, securityfs,
                         selinuxfs, configfs, bpf, efivarfs, binfmt, pstore});
}

bool is_told_apart(file_state const& state, file_system_look const& on) noexcept {
    using enum file_system;
    // Whoever serves the files says what their times are, and FAT has none but what programs say.
    if (on.is_one_of({unknown, fuse, plan9, cifs, smb, smb2, fat, exfat})) return false;
    if (state[5] != 0) return true;
    // What nobody here can write was written elsewhere, times and all.
    return !on.is_read_only && !on.is_one_of({squashfs, erofs, iso9660, cramfs, romfs});
}

}  // namespace

bool is_kept_in_memory(char const* path) noexcept { return is_in_memory(file_system_at(path)); }

bool is_told_apart(file_state const& state, char const* path) noexcept {
    return is_told_apart(state, file_system_at(path));
}

bool is_content_settled(file_state const& state, char const* path) noexcept {
    if (!is_older(state, content_settles_after_ns.load(std::memory_order_relaxed))) return false;
    auto const on = file_system_at(path);
    return !is_in_memory(on) && is_told_apart(state, on);
}

}  // namespace kiln::base
