// SPDX-License-Identifier: Apache-2.0
// Whether a file is still the one that was read, by what the file system says of it.
#pragma once

#include <array>
#include <cstdint>
#include <ctime>
#include <sys/stat.h>

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

// Clocks of file systems tick slowly: what changed just now may change again without a sign of it.
[[nodiscard]] inline bool is_settled(file_state const& state) noexcept {
    constexpr std::uint64_t two_seconds = 2'000'000'000;
    ::timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return ns_of(now) > state[4] + two_seconds;
}

}  // namespace kiln::base
