// SPDX-License-Identifier: Apache-2.0
#include "store/flight.hpp"

#include "store/fork_guard.hpp"
#include "store/wait_lock.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <utility>

namespace kiln::store {

std::string_view name_of(flight_outcome outcome) noexcept {
    switch (outcome) {
        case flight_outcome::leader: return "leader";
        case flight_outcome::finished: return "finished";
        case flight_outcome::timed_out: return "timed-out";
        case flight_outcome::unsupported: return "unsupported";
    }
    return "unknown";
}

std::string_view name_of(lock_support support) noexcept {
    switch (support) {
        case lock_support::excludes: return "excludes";
        case lock_support::does_not_exclude: return "does-not-exclude";
        case lock_support::unsupported: return "unsupported";
    }
    return "unknown";
}

flight::flight(base::file_descriptor lock) noexcept
    : lock_{std::move(lock)}, outcome_{flight_outcome::leader}, generation_{fork_generation()} {
    close_in_child(lock_.get());
}

flight::flight(flight&& other) noexcept
    : lock_{std::move(other.lock_)},
      outcome_{std::exchange(other.outcome_, flight_outcome::unsupported)},
      generation_{other.generation_} {}

flight& flight::operator=(flight&& other) noexcept {
    if (this != &other) {
        release();
        lock_ = std::move(other.lock_);
        outcome_ = std::exchange(other.outcome_, flight_outcome::unsupported);
        generation_ = other.generation_;
    }
    return *this;
}

void flight::release() noexcept {
    if (!lock_) return;
    if (generation_ != fork_generation()) {
        lock_.release();  // closed when we were forked; the number may be another file's by now
        return;
    }
    forget_in_child(lock_.get());
    // Explicit, because a child forked in the moment before registration may hold the same open file.
    base::sys().flock(lock_.get(), LOCK_UN);
    lock_.reset();
}

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

flight lead_at(std::filesystem::path const& path, base::time_point deadline) {
    for (;;) {
        auto file = base::open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW);
        if (!file) return flight{flight_outcome::unsupported};
        switch (try_flock(file->get(), LOCK_EX)) {
            case lock_attempt::failed: return flight{flight_outcome::unsupported};
            case lock_attempt::taken:
                // A sweeper may have unlinked the file between open and lock: then others lock a new one.
                if (same_file(file->get(), path)) return flight{*std::move(file)};
                if (base::clock::now() >= deadline) return flight{flight_outcome::timed_out};
                continue;
            case lock_attempt::busy: break;
        }
        // Shared, so that all waiters are let through together when the leader is done.
        switch (wait_flock(file->get(), LOCK_SH, deadline)) {
            case lock_attempt::failed: return flight{flight_outcome::unsupported};
            case lock_attempt::busy: return flight{flight_outcome::timed_out};
            case lock_attempt::taken: base::sys().flock(file->get(), LOCK_UN); return flight{flight_outcome::finished};
        }
    }
}

result<lock_support> probe_locks(std::filesystem::path const& path) {
    KILN_TRY(auto const first, base::open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW));
    KILN_TRY(auto const second, base::open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW));
    switch (try_flock(first.get(), LOCK_EX)) {
        case lock_attempt::failed: return lock_support::unsupported;
        case lock_attempt::busy: return lock_support::excludes;  // another process is probing: it works
        case lock_attempt::taken: break;
    }
    switch (try_flock(second.get(), LOCK_EX)) {
        case lock_attempt::failed: return lock_support::unsupported;
        case lock_attempt::busy: return lock_support::excludes;
        case lock_attempt::taken: break;
    }
    return lock_support::does_not_exclude;
}

}  // namespace kiln::store
