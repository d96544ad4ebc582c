// SPDX-License-Identifier: Apache-2.0
// Whether a program runs with more rights than who starts it: the loader then takes nothing from the environment (AT_SECURE). Needs libc
// alone: the companion asks in other people's processes.
#pragma once

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace kiln::audit {

// Of vfs_cap_data: "effective" in the first word, what is permitted in the second and, from revision 2 on, in the fourth. Root has them all.
inline bool raises_by_capabilities(char const* path) {
    unsigned char cap[24] = {};
    if (::getuid() == 0 || ::getxattr(path, "security.capability", cap, sizeof cap) < 12) return false;
    bool is_any = (cap[0] & 1) != 0;
    for (int i = 0; i < 4; ++i) is_any = is_any || cap[4 + i] != 0 || cap[12 + i] != 0;
    return is_any;
}

inline bool raises_rights(char const* path) {
    struct ::stat about {};
    if (path == nullptr || ::stat(path, &about) != 0) return false;
    return ((about.st_mode & S_ISUID) != 0 && about.st_uid != ::geteuid()) ||
           ((about.st_mode & S_ISGID) != 0 && about.st_gid != ::getegid()) || raises_by_capabilities(path);
}

}  // namespace kiln::audit
