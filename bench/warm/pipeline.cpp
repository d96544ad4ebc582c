// SPDX-License-Identifier: Apache-2.0
#include "warm/pipeline.hpp"

#include <kiln/prims/handles.hpp>

#include <cstdio>
#include <vector>

extern "C" bool kiln_profile_is_on();

namespace kiln::bench_warm {

namespace {

constexpr std::size_t n = 1 << 20;

struct operators {
    op sum = plus;
    bool by_comparison = false;
    prim_route route = prim_route::automatic;
};

int run_pipeline(operators const& with) {
    prim_options how;
    how.route = with.route;
    auto const scan = exclusive_scan<int>(with.sum, how).value();
    auto const total = reduce<int>(with.sum, how).value();
    std::vector<int> in(n);
    for (std::size_t i = 0; i < n; ++i) in[i] = static_cast<int>((i * 7919) % 3);
    auto const s = stream::make().value();
    auto a = device_memory::make(n * sizeof(int)).value();
    auto b = device_memory::make(n * sizeof(int)).value();
    auto v = device_memory::make(n * sizeof(int)).value();
    auto w = device_memory::make(n * sizeof(int)).value();
    auto sum = device_memory::make(sizeof(int)).value();
    a.upload_sync(s, in).value();
    v.upload_sync(s, in).value();
    sort_arguments<int, int> const what{
        .keys_in = {a.as<int>(), n}, .keys_out = b.as<int>(), .values_in = v.as<int>(), .values_out = w.as<int>()};
    if (with.by_comparison) merge_sort<int, int>(op{"a < b ? true : false"}, how).value()(s, what).value();
    else radix_sort<int, int>(sort_order::ascending, how).value()(s, what).value();
    scan(s, {b.as<int>(), n}, {a.as<int>(), n}).value();
    total(s, {b.as<int>(), n}, sum.as<int>()).value();
    std::vector<int> scanned(n), result(1);
    a.download_sync(s, scanned).value();
    sum.download_sync(s, result).value();
    long expected = 0;
    for (auto const x : in) expected += x;
    bool const right = result[0] == expected && scanned[0] == 0 && scanned[n - 1] == expected - 2;
    if (!right) std::fprintf(stderr, "wrong: %d, expected %ld\n", result[0], expected);
    return right ? 0 : 1;
}

}  // namespace

int run_child(std::string const& mode) {
    (void)kiln_profile_is_on();
    if (mode == "context") return stream::make() ? 0 : 1;
    if (mode == "named") return run_pipeline({});
    operators own{.sum = op{"a + b + 0"}, .by_comparison = true};
    if (mode == "plain") own.route = prim_route::full;
    return run_pipeline(own);
}

}  // namespace kiln::bench_warm
