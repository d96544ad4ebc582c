// SPDX-License-Identifier: Apache-2.0
// Time that only goes forward. The wall clock orders evictions and tells what changed just now (file_state.hpp); it decides nothing
// else in Kiln.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace kiln::base {

using clock = std::chrono::steady_clock;
using time_point = clock::time_point;

[[nodiscard]] inline std::int64_t now_ns() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now().time_since_epoch()).count();
}

// Until when somebody waits who says how long. A year is for ever: what callers mean by milliseconds::max() is no time that can be told.
[[nodiscard]] inline time_point from_now(std::chrono::milliseconds how_long) noexcept {
    constexpr std::chrono::milliseconds for_ever = std::chrono::hours{24 * 365};
    return clock::now() + std::clamp(how_long, -for_ever, for_ever);
}

class stopwatch {
public:
    [[nodiscard]] std::int64_t ns() const noexcept { return now_ns() - start_; }
    [[nodiscard]] double ms() const noexcept { return static_cast<double>(ns()) * 1e-6; }

private:
    std::int64_t start_ = now_ns();
};

}  // namespace kiln::base
