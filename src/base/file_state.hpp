// SPDX-License-Identifier: Apache-2.0
// Whether a file is still the one that was read, by what the file system says of it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <sys/stat.h>

namespace kiln::base {

// Device, inode, size, times of the last change of content and of anything, in nanoseconds, mount; all zero where there is nothing.
// Every change sets the last of the times, which nobody can set back; but the times in an image of a file system are what its maker
// wanted, and the number of one that is gone is given to the next. The mount is unlike any other of any boot, or 0 where the system
// does not tell (Linux before 6.8).
using file_state = std::array<std::uint64_t, 6>;

[[nodiscard]] inline std::uint64_t ns_of(::timespec const& t) noexcept {
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

struct file_look {
    file_state state{};
    ::mode_t mode = 0;
};
// As stat() and fstat(): 0, or -1 and errno.
[[nodiscard]] int look_at(char const* path, file_look& out) noexcept;
[[nodiscard]] int look_at(int fd, file_look& out) noexcept;

[[nodiscard]] inline bool is_older(file_state const& state, std::uint64_t ns) noexcept {
    ::timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return ns_of(now) > state[4] + ns;
}

// Of a directory, or of a file that nobody writes in place. Clocks of file systems tick slowly: what changed just now may change again without a sign of it.
[[nodiscard]] inline bool is_settled(file_state const& state) noexcept { return is_older(state, 2'000'000'000); }

// Of a file's content. Whoever has it mapped sets its times by the first store alone, until the system has written it back:
// half a minute as systems are set up. Shorter in tests.
inline std::atomic<std::uint64_t> content_settles_after_ns{45'000'000'000};

// A file system in memory never writes back, and what the kernel says of itself has no times.
[[nodiscard]] bool is_kept_in_memory(char const* path) noexcept;

// Whether another file with the same state would have to be made to deceive: not where nobody tells one image from another, nor where
// a program says what the times are (FUSE).
[[nodiscard]] bool is_told_apart(file_state const& state, char const* path) noexcept;

[[nodiscard]] bool is_content_settled(file_state const& state, char const* path) noexcept;

// The same for many files, most of them on one file system, which is asked once. For one look at them and no longer: the number of
// a file system that is gone is given to another.
class settled_contents {
public:
    [[nodiscard]] bool has(file_state const& state, char const* path) noexcept {
        bool const is_known = has_asked_ && state[0] == device_;
        if (is_known) return is_older(state, content_settles_after_ns.load(std::memory_order_relaxed));
        bool const out = is_content_settled(state, path);
        if (out) has_asked_ = true, device_ = state[0];
        return out;
    }

private:
    bool has_asked_ = false;
    std::uint64_t device_ = 0;  // the last that is not in memory
};

}  // namespace kiln::base
