// SPDX-License-Identifier: Apache-2.0
// How long anybody waits for a server, by what was seen of it so far. On the reactor's thread.
#pragma once

#include "base/clock.hpp"
#include "store/tier.hpp"

#include <array>
#include <optional>

namespace kiln::remote {

using std::chrono::milliseconds;

class budgets {
public:
    explicit budgets(std::optional<milliseconds> patience, milliseconds timeout) noexcept
        : patience_{patience}, timeout_{timeout} {}

    void connected(base::time_point now) noexcept {
        if (!connected_at_) connected_at_ = now;
    }
    void answered(std::chrono::nanoseconds took) noexcept;
    // When the wait for a question asked at `asked` ends, as things are known now.
    [[nodiscard]] base::time_point end_of(store::question const& what, base::time_point asked) noexcept;
    // An answer that took so long may find somebody who still waits for it.
    [[nodiscard]] bool is_in_time(store::question const& what, std::chrono::nanoseconds took) const noexcept;
    // Of whoever keeps leases, where nothing is known of him.
    [[nodiscard]] milliseconds for_a_first_answer() const noexcept;
    // Who keeps leases has answered before, and is asked about one.
    [[nodiscard]] milliseconds for_an_answer(store::question const& what) const noexcept;
    // While another machine has it.
    [[nodiscard]] milliseconds for_a_lease(store::question const& what) const noexcept;
    // Of the latest answers: how far away the server is, however busy.
    [[nodiscard]] std::chrono::nanoseconds fastest() const noexcept;
    [[nodiscard]] std::chrono::nanoseconds quantile(double part) const;

private:
    [[nodiscard]] milliseconds longest(store::question const& what) const noexcept;

    std::optional<milliseconds> patience_;
    milliseconds timeout_;
    std::optional<base::time_point> first_asked_;
    std::optional<base::time_point> connected_at_;
    std::array<std::int64_t, 256> latest_{};
    std::size_t answers_ = 0;
    double typical_ns_ = 0;
};

}  // namespace kiln::remote
