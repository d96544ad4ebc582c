// SPDX-License-Identifier: Apache-2.0
// Time that only goes forward. The wall clock orders evictions and tells what changed just now (file_state.hpp); it decides nothing
// else in Kiln.
#pragma once

#include <chrono>
#include <cstdint>

namespace kiln::base {

using clock = std::chrono::steady_clock;
using time_point = clock::time_point;

[[nodiscard]] inline std::int64_t now_ns() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now().time_since_epoch()).count();
}

class stopwatch {
public:
    [[nodiscard]] std::int64_t ns() const noexcept { return now_ns() - start_; }
    [[nodiscard]] double ms() const noexcept { return static_cast<double>(ns()) * 1e-6; }

private:
    std::int64_t start_ = now_ns();
};

}  // namespace kiln::base
