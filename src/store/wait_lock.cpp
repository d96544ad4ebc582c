// SPDX-License-Identifier: Apache-2.0
#include "store/wait_lock.hpp"

#include "base/files.hpp"
#include "base/fork_guard.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <thread>
#include <unistd.h>

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

namespace {

// Wakes when somebody closes a file, which is what its lock's holder does that lets go or dies. On file systems that other
// machines write to it may not notice.
class closing_watch {
public:
    explicit closing_watch(int fd) noexcept : watch_{::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)} {
        std::array<char, 40> name{};
        std::snprintf(name.data(), name.size(), "/proc/self/fd/%d", fd);
        if (!watch_) return;
        if (::inotify_add_watch(watch_.get(), name.data(), IN_CLOSE) < 0) watch_.reset();
        else base::close_in_child(watch_.get());
    }
    ~closing_watch() {
        if (watch_) base::forget_in_child(watch_.get());
    }
    closing_watch(closing_watch const&) = delete;
    closing_watch& operator=(closing_watch const&) = delete;

    [[nodiscard]] bool works() const noexcept { return static_cast<bool>(watch_); }
    void wait(std::chrono::nanoseconds most) noexcept {
        ::pollfd one{watch_.get(), POLLIN, 0};
        // Rounded up: nothing would be a loop without a pause.
        ::poll(&one, 1, static_cast<int>(most / std::chrono::milliseconds{1}) + 1);
        std::array<char, 4096> events{};
        while (::read(watch_.get(), events.data(), events.size()) > 0) continue;
    }

private:
    base::file_descriptor watch_;
};

}  // namespace

lock_attempt wait_flock(int fd, int operation, base::time_point deadline) noexcept {
    using namespace std::chrono_literals;
    // flock has no time limit of its own, so this asks again and again, less and less often. Who still waits then waits for
    // long, perhaps with many others, who should not keep the holder from its work: from there on they are told.
    // Who has little time asks often: a lock that many take one after the other at the end of their programs is free for moments only.
    auto const longest = std::clamp<std::chrono::nanoseconds>((deadline - base::clock::now()) / 50, 1ms, 5ms);
    std::chrono::nanoseconds pause = 200us;
    std::optional<closing_watch> watch;
    for (;;) {
        auto const attempt = try_flock(fd, operation);
        if (attempt != lock_attempt::busy) return attempt;
        auto const left = deadline - base::clock::now();
        if (left <= 0ns) return lock_attempt::busy;
        if (watch && watch->works()) {
            watch->wait(std::min<std::chrono::nanoseconds>(100ms, left));
            continue;
        }
        std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, left));
        pause = std::min(pause * 3 / 2, longest);
        if (pause == 5ms && !watch) watch.emplace(fd);  // before it asks once more: it may have been closed just now
    }
}

}  // namespace kiln::store
