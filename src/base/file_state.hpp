// SPDX-License-Identifier: Apache-2.0
// Whether a file is still the one that was read, by what the file system says of it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace kiln::base {

// Device, inode, size, times of the last change of content and of anything, in nanoseconds; all zero where there is nothing.
// Every change sets the last, which nobody can set back.
using file_state = std::array<std::uint64_t, 5>;

[[nodiscard]] inline std::uint64_t ns_of(::timespec const& t) noexcept {
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

[[nodiscard]] inline file_state state_of(struct ::stat const& about) noexcept {
    return {about.st_dev, about.st_ino, static_cast<std::uint64_t>(about.st_size), ns_of(about.st_mtim),
            ns_of(about.st_ctim)};
}

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

// A file system in memory never writes back.
[[nodiscard]] inline bool is_kept_in_memory(char const* path) noexcept {
    constexpr unsigned long tmpfs = 0x01021994, ramfs = 0x858458f6, hugetlbfs = 0x958458f6;
    struct ::statfs about {};
    if (::statfs(path, &about) != 0) return true;
    auto const kind = static_cast<unsigned long>(about.f_type) & 0xffffffffUL;
    return kind == tmpfs || kind == ramfs || kind == hugetlbfs;
}

[[nodiscard]] inline bool is_content_settled(file_state const& state, char const* path) noexcept {
    return is_older(state, content_settles_after_ns.load(std::memory_order_relaxed)) && !is_kept_in_memory(path);
}

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
