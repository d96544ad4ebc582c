// SPDX-License-Identifier: Apache-2.0
#include "store/wait_lock.hpp"

#include "base/files.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/file.h>
#include <thread>

namespace kiln::store {

bool same_file(int fd, std::filesystem::path const& path) noexcept {
    struct ::stat here {
    }, there{};
    return base::sys().fstat(fd, &here) == 0 && base::sys().lstat(path.c_str(), &there) == 0 &&
           here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

lock_attempt try_flock(int fd, int operation) noexcept {
    for (;;) {
        if (base::sys().flock(fd, operation | LOCK_NB) == 0) return lock_attempt::taken;
        if (errno == EWOULDBLOCK) return lock_attempt::busy;
        if (errno != EINTR) return lock_attempt::failed;
    }
}

lock_attempt wait_flock(int fd, int operation, base::time_point deadline) noexcept {
    using namespace std::chrono_literals;
    // flock has no time limit of its own, so this asks again and again, less and less often.
    std::chrono::nanoseconds pause = 200us;
    for (;;) {
        auto const attempt = try_flock(fd, operation);
        if (attempt != lock_attempt::busy) return attempt;
        auto const left = deadline - base::clock::now();
        if (left <= 0ns) return lock_attempt::busy;
        std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, left));
        pause = std::min<std::chrono::nanoseconds>(pause * 3 / 2, 5ms);
    }
}

}  // namespace kiln::store
