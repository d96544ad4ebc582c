// SPDX-License-Identifier: Apache-2.0
// Which kind of file system a file is on, by the numbers of statfs(2).
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <sys/vfs.h>

namespace kiln::base {

enum class file_system : std::uint32_t {
    unknown = 0,
    tmpfs = 0x01021994,
    ramfs = 0x858458f6,
    hugetlbfs = 0x958458f6,
    procfs = 0x9fa0,
    sysfs = 0x62656572,
    cgroup = 0x27e0eb,
    cgroup2 = 0x63677270,
    debugfs = 0x64626720,
    tracefs = 0x74726163,
    securityfs = 0x73636673,
    selinuxfs = 0xf97cff8c,
    configfs = 0x62656570,
    bpf = 0xcafe4a11,
    efivarfs = 0xde5e81e4,
    binfmt = 0x42494e4d,
    pstore = 0x6165676c,
    fat = 0x4d44,
    exfat = 0x2011bab0,
    fuse = 0x65735546,
    plan9 = 0x01021997,
    nfs = 0x6969,
    smb = 0x517b,
    cifs = 0xff534d42,
    smb2 = 0xfe534d42,
    squashfs = 0x73717368,
    erofs = 0xe0f5e1e2,
    iso9660 = 0x9660,
    cramfs = 0x28cd3d45,
    romfs = 0x7275,
    lustre = 0x0bd00bd0,
    gpfs = 0x47504653,
    beegfs = 0x19830326,
    ceph = 0x00c36400,
    afs = 0x5346414f,
    overlay = 0x794c7630,
    ext4 = 0xef53,
    xfs = 0x58465342,
    btrfs = 0x9123683e,
    zfs = 0x2fc12fc1,
    f2fs = 0xf2f52010,
    bcachefs = 0xca451a4e,
};

struct file_system_look {
    file_system kind = file_system::unknown;
    bool is_read_only = false;
    [[nodiscard]] bool is_one_of(std::initializer_list<file_system> some) const noexcept {
        return std::ranges::find(some, kind) != some.end();
    }
};

[[nodiscard]] inline file_system_look look_of(struct ::statfs const& about) noexcept {
    constexpr unsigned long read_only = 1;  // ST_RDONLY
    return {static_cast<file_system>(static_cast<std::uint32_t>(about.f_type)),
            (static_cast<unsigned long>(about.f_flags) & read_only) != 0};
}
// Unknown where nobody tells.
[[nodiscard]] inline file_system_look file_system_at(char const* path) noexcept {
    struct ::statfs about {};
    return ::statfs(path, &about) == 0 ? look_of(about) : file_system_look{};
}
[[nodiscard]] inline file_system_look file_system_at(int fd) noexcept {
    struct ::statfs about {};
    return ::fstatfs(fd, &about) == 0 ? look_of(about) : file_system_look{};
}

}  // namespace kiln::base
