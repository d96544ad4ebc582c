// SPDX-License-Identifier: Apache-2.0
#include "remote/answer_times.hpp"

#include <charconv>
#include <fmt/format.h>
#include <map>

namespace kiln::remote {

namespace {

constexpr std::string_view counter_prefix = "answered_us.";
constexpr std::uint64_t shortest_us = 16, longest_us = std::uint64_t{1} << 27;

// 16, 24, 32, 48, 64, ...
std::uint64_t bound_for(std::uint64_t us) noexcept {
    auto bound = shortest_us;
    while (bound < us && bound < longest_us) {
        if (us <= bound + bound / 2) return bound + bound / 2;
        bound *= 2;
    }
    return bound;
}

std::optional<std::uint64_t> bound_of(std::string_view counter) noexcept {
    if (!is_answer_time(counter)) return std::nullopt;
    counter.remove_prefix(counter_prefix.size());
    std::uint64_t out = 0;
    auto const [end, why] = std::from_chars(counter.data(), counter.data() + counter.size(), out);
    if (why != std::errc{} || end != counter.data() + counter.size()) return std::nullopt;
    return out;
}

}  // namespace

std::string answer_time_counter(std::chrono::nanoseconds took) {
    auto const us = std::chrono::ceil<std::chrono::microseconds>(took).count();
    return fmt::format("{}{}", counter_prefix, bound_for(us > 0 ? static_cast<std::uint64_t>(us) : 0));
}

bool is_answer_time(std::string_view counter) noexcept { return counter.starts_with(counter_prefix); }

std::optional<double> answer_quantile_ms(store::counter_map const& fleet, double part) {
    std::map<std::uint64_t, std::uint64_t> by_bound;
    std::uint64_t all = 0;
    for (auto const& [name, n] : fleet) {
        auto const bound = bound_of(name);
        if (!bound || n == 0) continue;
        by_bound[*bound] += n;
        all += n;
    }
    auto const wanted = part * static_cast<double>(all);
    std::uint64_t so_far = 0;
    for (auto const& [bound, n] : by_bound) {
        so_far += n;
        if (static_cast<double>(so_far) >= wanted) return static_cast<double>(bound) / 1000;
    }
    return std::nullopt;
}

}  // namespace kiln::remote
