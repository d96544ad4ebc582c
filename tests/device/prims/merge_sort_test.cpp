// SPDX-License-Identifier: Apache-2.0
#include "device/prims/sort_fixture.hpp"

namespace kiln::device_tests {

TEST_F(sorts, merge_by_less_and_greater) {
    auto const [up, down, alone, floats] =
        make_together([] { return merge_sort<std::uint64_t, std::int32_t>(); },
                      [] { return merge_sort<std::int32_t, std::int32_t>(greater); },
                      [] { return merge_sort<std::int16_t>(); }, [] { return merge_sort<float, double>(); });
    for (auto const n : sort_sizes(up.tile_items())) {
        for (auto const p : patterns_for(n)) {
            check_pairs<std::uint64_t, std::int32_t>(up, make_data<std::uint64_t>(n, p, n + 1), cpu::less,
                                                     at(up.name(), n, p));
            check_pairs<std::int32_t, std::int32_t>(down, make_data<std::int32_t>(n, p, n + 2), cpu::greater,
                                                    at(down.name(), n, p));
            check_keys<std::int16_t>(alone, make_data<std::int16_t>(n, p, n + 3), cpu::less, at(alone.name(), n, p));
            // NaN has no place in an order; what the sort does with it is not promised.
            if (p != pattern::special)
                check_pairs<float, double>(floats, make_data<float>(n, p, n + 4), cpu::less, at(floats.name(), n, p));
        }
    }
}

TEST_F(sorts, merge_is_stable_by_an_order_that_ties) {
    auto const sort = made(merge_sort<std::int32_t, std::int32_t>(op{"(a & s) < (b & s)"}.with(15)));
    for (auto const n : sort_sizes(sort.tile_items())) {
        check_pairs<std::int32_t, std::int32_t>(
            sort, make_data<std::int32_t>(n, pattern::random, n), [](int a, int b) { return (a & 15) < (b & 15); },
            "by four bits, n = " + std::to_string(n));
    }
}

TEST_F(sorts, merge_of_structs) {
    auto const sort = made(merge_sort<ranked>(op{"a.score != b.score ? a.score < b.score : a.id < b.id"}));
    for (auto const n : sort_sizes(sort.tile_items())) {
        std::vector<ranked> keys(n);
        numbers g{n + 1};
        for (auto& k : keys)
            k = {static_cast<float>(g.next() % 50), static_cast<std::int32_t>(g.next() % 1000), {1, 2, 3, 4, 5, 6}};
        check_keys<ranked>(
            sort, keys,
            [](ranked const& a, ranked const& b) { return a.score != b.score ? a.score < b.score : a.id < b.id; },
            "structs, n = " + std::to_string(n));
    }
}

TEST_F(sorts, merge_waits_for_what_is_ahead_of_it_in_the_stream) {
    check_order([] { return merge_sort<std::int32_t>(less); }, [] { return merge_sort<std::int32_t>(greater); });
}

}  // namespace kiln::device_tests
