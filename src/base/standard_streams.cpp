// SPDX-License-Identifier: Apache-2.0
#include "base/standard_streams.hpp"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace kiln::base {

int clear_of_standard_streams(int fd) noexcept {
    if (fd < 0 || fd > STDERR_FILENO) return fd;
    int const higher = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int const why = errno;
    ::close(fd);
    errno = why;
    return higher;
}

}  // namespace kiln::base
