// SPDX-License-Identifier: Apache-2.0
#include "remote/budgets.hpp"

#include <algorithm>

namespace kiln::remote {

namespace {

constexpr milliseconds to_connect{50};
constexpr milliseconds to_answer_first{250};
constexpr milliseconds shortest_wait{50};
constexpr milliseconds longest_wait{1'000};
constexpr milliseconds shortest_answer_wait{500};
constexpr milliseconds shortest_lease_wait{1'000};
constexpr milliseconds longest_lease_wait{10'000};

}  // namespace

void budgets::answered(std::chrono::nanoseconds took) noexcept {
    latest_[answers_++ % latest_.size()] = took.count();
    auto const ns = static_cast<double>(took.count());
    typical_ns_ = answers_ == 1 ? ns : typical_ns_ + (ns - typical_ns_) / 8;
}

// Where a compile takes next to nothing there is still no use in a wait that no answer can meet.
milliseconds budgets::longest(store::question const& what) const noexcept {
    return patience_.value_or(std::max(milliseconds{1}, std::min(longest_wait, what.compile / 2)));
}

bool budgets::is_in_time(store::question const& what, std::chrono::nanoseconds took) const noexcept {
    return took <= longest(what);
}

base::time_point budgets::end_of(store::question const& what, base::time_point asked) noexcept {
    if (!first_asked_) first_asked_ = asked;
    if (what.how == store::urgency::nothing_else_will_do) return asked + timeout_;
    auto end = asked + longest_wait;
    if (patience_) end = asked + *patience_;
    else if (answers_ > 0) {
        auto const typical = milliseconds{static_cast<std::int64_t>(4 * typical_ns_ * 1e-6)};
        end = asked + std::min(std::clamp(typical, shortest_wait, longest_wait), longest(what));
    } else if (connected_at_) end = *connected_at_ + to_answer_first;  // once, whoever asks
    else end = *first_asked_ + to_connect;
    if (what.how == store::urgency::nobody_waits) end = std::max(end, asked + 2 * what.compile);
    return end;
}

milliseconds budgets::for_a_first_answer() const noexcept { return patience_.value_or(to_answer_first); }

milliseconds budgets::for_an_answer(store::question const& what) const noexcept {
    auto const usual = std::clamp(2 * what.compile, shortest_answer_wait, longest_lease_wait);
    return std::max(usual, patience_.value_or(usual));
}

milliseconds budgets::for_a_lease(store::question const& what) const noexcept {
    auto const usual = std::clamp(2 * what.compile, shortest_lease_wait, longest_lease_wait);
    return std::max(usual, patience_.value_or(usual));
}

std::chrono::nanoseconds budgets::fastest() const noexcept {
    auto const n = static_cast<std::ptrdiff_t>(std::min(answers_, latest_.size()));
    return std::chrono::nanoseconds{n == 0 ? 0 : *std::min_element(latest_.begin(), latest_.begin() + n)};
}

std::chrono::nanoseconds budgets::quantile(double part) const {
    auto const n = std::min(answers_, latest_.size());
    if (n == 0) return std::chrono::nanoseconds{0};
    auto some = latest_;
    auto const at = std::min(n - 1, static_cast<std::size_t>(part * static_cast<double>(n)));
    std::nth_element(some.begin(), some.begin() + static_cast<std::ptrdiff_t>(at),
                     some.begin() + static_cast<std::ptrdiff_t>(n));
    return std::chrono::nanoseconds{some[at]};
}

}  // namespace kiln::remote
