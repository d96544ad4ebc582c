// SPDX-License-Identifier: Apache-2.0
// Files in somebody else's process, by the system calls themselves. libc's open, read, write and close are points where a thread may be
// cancelled; the functions we run inside of (posix_spawn, exec, the compilers, CUDA's) are none.
#pragma once

#include <cstddef>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

namespace kiln::audit {

inline int open_raw(char const* path, int flags, unsigned mode = 0) {
    return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
inline ::ssize_t read_raw(int fd, void* to, std::size_t size) { return ::syscall(SYS_read, fd, to, size); }
inline ::ssize_t write_raw(int fd, void const* from, std::size_t size) { return ::syscall(SYS_write, fd, from, size); }
inline ::ssize_t write_raw(int fd, ::iovec const* parts, int count) {
    return ::syscall(SYS_writev, fd, parts, static_cast<long>(count));
}
inline void close_raw(int fd) { ::syscall(SYS_close, fd); }

}  // namespace kiln::audit
