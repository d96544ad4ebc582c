// SPDX-License-Identifier: Apache-2.0
// How long a call takes on the device.
#pragma once

#include <kiln/device.hpp>

#include <algorithm>
#include <functional>
#include <vector>

namespace kiln::bench {

struct batches {
    double length_ms = 10;
    int most_calls = 100;
    int count = 5;
};

// Milliseconds per call: the median of several batches of calls that are queued back to back.
[[nodiscard]] inline double device_ms(stream const& on, std::function<void()> const& call, batches how = {}) {
    auto begin = device_event::make().value(), end = device_event::make().value();
    auto const batch = [&](int calls) {
        begin.record(on).value();
        for (int i = 0; i < calls; ++i) call();
        end.record(on).value();
        end.wait_sync().value();
        return elapsed_ms(begin, end).value() / calls;
    };
    batch(2);
    int const calls = std::clamp(static_cast<int>(how.length_ms / std::max(batch(2), 1e-3)), 1, how.most_calls);
    std::vector<double> times;
    for (int i = 0; i < how.count; ++i) times.push_back(batch(calls));
    std::ranges::sort(times);
    return times[times.size() / 2];
}

}  // namespace kiln::bench
