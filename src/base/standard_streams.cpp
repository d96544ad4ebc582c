// SPDX-License-Identifier: Apache-2.0
#include "base/standard_streams.hpp"

#include <cerrno>
#include <fcntl.h>
#include <initializer_list>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

namespace kiln::base {

void occupy_standard_streams() noexcept {
    int const before = errno;
    bool one_is_free = false;
    for (int const stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) one_is_free |= ::fcntl(stream, F_GETFD) < 0;
    while (one_is_free) {
        int fd = ::open("/dev/null", O_PATH | O_CLOEXEC);
        if (fd < 0) fd = ::epoll_create1(EPOLL_CLOEXEC);  // in a place without /dev; EINVAL instead of EBADF
        one_is_free = fd >= 0 && fd <= STDERR_FILENO;
        if (fd > STDERR_FILENO) ::close(fd);
    }
    errno = before;
}

int clear_of_standard_streams(int fd) noexcept {
    if (fd < 0 || fd > STDERR_FILENO) return fd;
    int const higher = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int const why = errno;
    ::close(fd);
    errno = why;
    return higher;
}

int memory_file(char const* name, unsigned flags) noexcept {
    return above_standard_streams([&] { return ::memfd_create(name, flags); });
}

}  // namespace kiln::base
