// SPDX-License-Identifier: Apache-2.0
// What handles promise whatever the algorithm: operators, routes, streams, threads, captures, scratch.
#include "device/graph_api.hpp"
#include "device/prims/prims_fixture.hpp"

#include "cuda/context.hpp"

#include <kiln/catalogue.hpp>
#include <kiln/prims/once.hpp>

#include <thread>

namespace kiln {
struct limits {
    std::int32_t low, high;
};
template <>
struct device_type<limits> {
    static constexpr std::string_view name = "limits", definition = "struct limits { int low, high; };";
};
}  // namespace kiln

namespace kiln::device_tests {

namespace {

class handles : public prims_test {
protected:
    template <class Reference>
    void check(scan_handle<std::int32_t> const& scan, Reference by, std::string const& what) {
        auto const data = make_data<std::int32_t>(200'003, pattern::random, 11);
        device_vector<std::int32_t> const in{on(), data};
        device_vector<std::int32_t> out{data.size()};
        scan(on(), in.in(), out.span()).value();
        std::vector<std::int32_t> expected(data.size());
        cpu::inclusive_scan<std::int32_t>(data, std::span{expected}, by);
        EXPECT_TRUE(equals(what, expected, out.get(on())));
    }
};

std::int32_t clamped(std::int32_t value, limits const& l) { return std::clamp(value, l.low, l.high); }

}  // namespace

TEST_F(handles, take_operators_of_every_form) {
    limits const l{-1000, 1000};
    // The larger after clamping both: associative, and different from every built-in operator.
    auto const by = [&](std::int32_t a, std::int32_t b) { return std::max(clamped(a, l), clamped(b, l)); };
    auto const expression =
        made(inclusive_scan<std::int32_t>(op{"max(min(max(a, s.low), s.high), min(max(b, s.low), s.high))"}.with(l)));
    auto const text =
        "__device__ int top(int a, int b, limits const& l) { return max(min(max(a, l.low), l.high), min(max(b, l.low), "
        "l.high)); }";
    auto const function = made(inclusive_scan<std::int32_t>(op::function("top", text).with(l)));
    check(expression, by, "expression");
    check(function, by, "function");
}

TEST_F(handles, take_lto_ir_made_elsewhere) {
    auto const t = made(target::parse(info_.target(), artifact_kind::ltoir));
    unit const elsewhere{.name = "elsewhere",
                         .source = "extern \"C\" __device__ int largest(int a, int b) { return a > b ? a : b; }",
                         .kernels = {},
                         .options = {"-rdc=true"}};
    auto const ir = made(engine::process().artifact_sync(elsewhere, t));
    check(made(inclusive_scan<std::int32_t>(op::ltoir("largest", ir.what->image))), cpu::max, "LTO-IR");

    auto const missing = inclusive_scan<std::int32_t>(op::ltoir("smallest", ir.what->image));
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), errc::link_failed) << missing.error().what();
    EXPECT_THAT(missing.error().log() + missing.error().message(), testing::HasSubstr("smallest"));
}

TEST_F(handles, come_by_every_route_and_agree) {
    for (auto const route : {prim_route::automatic, prim_route::linked, prim_route::full, prim_route::plain}) {
        check(made(inclusive_scan<std::int32_t>(plus, {.route = route})), cpu::plus,
              "route " + std::to_string(static_cast<int>(route)));
    }
}

TEST_F(handles, are_shipped_for_every_named_specialisation) {
    for (auto const& s : catalogue()) {
        auto const prepared = prepare_sync(s.name);
        EXPECT_TRUE(prepared) << s.name << ": " << (prepared ? "" : prepared.error().what());
    }
}

TEST_F(handles, capture_values_and_not_only_types) {
    auto const at_most = [](int most) {
        return made(exclusive_scan<std::int32_t>(op{"a + b > s ? s : a + b"}.with(most)));
    };
    std::vector<std::int32_t> const ones(5000, 1);
    device_vector<std::int32_t> const in{on(), ones};
    device_vector<std::int32_t> out{ones.size()};
    for (int const most : {10, 1000}) {
        at_most(most)(on(), in.in(), out.span()).value();
        EXPECT_EQ(out.get(on()).back(), std::min(most, 4999));
    }
}

TEST_F(handles, work_on_several_streams_and_threads_at_once) {
    auto const sum = made(exclusive_scan<std::int32_t>(plus));
    auto const sort = made(radix_sort<std::int32_t, std::int32_t>());
    int const rounds = quick() ? 3 : 40;
    auto const work = [&](unsigned seed, stream const& mine) {
        auto const data = make_data<std::int32_t>(40'000 + 1000 * seed, pattern::random, seed + 1);
        auto const n = data.size();
        device_vector<std::int32_t> const in{mine, data};
        device_vector<std::int32_t> const values{mine, data};
        device_vector<std::int32_t> sums{n};
        device_vector<std::int32_t> keys_out{n};
        device_vector<std::int32_t> values_out{n};
        std::vector<std::int32_t> expected_sums(n);
        auto expected_keys = data;
        cpu::exclusive_scan<std::int32_t>(data, std::span{expected_sums}, cpu::plus);
        std::sort(expected_keys.begin(), expected_keys.end());
        for (int i = 0; i < rounds; ++i) {
            sum(mine, in.in(), sums.span()).value();
            sort(mine, {.keys_in = in.in(),
                        .keys_out = keys_out.data(),
                        .values_in = values.data(),
                        .values_out = values_out.data()})
                .value();
        }
        EXPECT_TRUE(equals("sums of thread " + std::to_string(seed), expected_sums, sums.get(mine)));
        EXPECT_TRUE(equals("keys of thread " + std::to_string(seed), expected_keys, keys_out.get(mine)));
        EXPECT_TRUE(equals("values of thread " + std::to_string(seed), expected_keys, values_out.get(mine)));
    };
    std::vector<stream> streams;
    for (int i = 0; i < 4; ++i) streams.push_back(stream::make().value());
    {
        // Two threads to a stream: their launches must not mix in its scratch.
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < 8; ++i) threads.emplace_back([&, i] { work(i, streams[i % 4]); });
    }
}

// Kernels of a call begin before the ones ahead of them have ended. Here each call reads what the call before it in the stream
// writes, through the same scratch, with nothing in between that waits.
TEST_F(handles, wait_for_what_is_ahead_of_them_in_the_stream) {
    if (quickest()) GTEST_SKIP() << "is about the order of kernels, and long";
    auto const [sums, keep, heads, segments, total] = make_together(
        [] { return inclusive_scan<std::int32_t>(plus); }, [] { return select_if<std::int32_t>(op{"a % 3 != 0"}); },
        [] { return unique_by_key<std::int32_t, std::int32_t>(op{"a / 8 == b / 8"}); },
        [] { return segmented_reduce<std::int32_t>(plus); }, [] { return reduce<std::int32_t>(plus); });
    auto const third = [](std::int32_t a) { return a % 3 != 0; };
    auto const eighth = [](std::int32_t a, std::int32_t b) { return a / 8 == b / 8; };
    for (std::size_t const n :
         {sums.tile_items() + 1, 9 * sums.tile_items() + 3, std::size_t{quick() ? 100'000U : 1'000'000U}}) {
        std::vector<std::int32_t> const ones(n, 1);
        std::vector<std::int32_t> summed(n), kept(n);
        cpu::inclusive_scan<std::int32_t>(ones, std::span{summed}, cpu::plus);
        kept.resize(cpu::select_if<std::int32_t>(summed, kept, third));
        std::vector<std::int32_t> unique_keys(kept.size()), unique_values(kept.size());
        auto const all = cpu::unique_by_key<std::int32_t, std::int32_t>(kept, kept, unique_keys, unique_values, eighth);
        unique_values.resize(all);
        std::vector<std::uint32_t> offsets;
        // Short ones, with some that are queued for a kernel of their own.
        for (std::size_t i = 0; i <= all; i += offsets.size() % 200 == 0 ? 500 : 4)
            offsets.push_back(static_cast<std::uint32_t>(i));
        auto const count = offsets.size() - 1;
        std::vector<std::int32_t> by_segment(count);
        cpu::segmented_reduce<std::int32_t, std::uint32_t>(unique_values, offsets, std::span{by_segment}, cpu::plus, 0);
        auto const expected = cpu::reduce<std::int32_t>(by_segment, cpu::plus, 0);

        device_vector<std::int32_t> const in{on(), ones};
        device_vector<std::uint32_t> const where{on(), offsets};
        device_vector<std::uint64_t> const counts{2};
        device_vector<std::int32_t> a{n}, b{n}, c{n}, d{n}, e{count}, out{1};
        for (int round = 0; round < 20; ++round) {
            for (auto* const each : {&a, &b, &c, &d, &e, &out}) each->poison(on());
            for (int again = 0; again < 2; ++again) {
                sums(on(), in.in(), a.span()).value();
                keep(on(), a.in(), b.data(), counts.data()).value();
                heads(on(),
                      {.keys_in = {b.data(), kept.size()},
                       .keys_out = c.data(),
                       .values_in = b.data(),
                       .values_out = d.data()},
                      counts.data() + 1)
                    .value();
                segments(on(), {d.data(), all}, where.span(), e.span()).value();
                total(on(), e.in(), out.data()).value();
            }
            ASSERT_EQ(out.get(on()).front(), expected) << "n = " << n << ", round " << round;
            ASSERT_EQ(counts.get(on()), (std::vector<std::uint64_t>{kept.size(), all}));
        }
    }
}

TEST_F(handles, use_scratch_that_is_handed_in) {
    auto const sum = made(exclusive_scan<std::int64_t>(plus));
    auto const data = make_data<std::int64_t>(500'001, pattern::random, 2);
    device_vector<std::int64_t> const in{on(), data};
    device_vector<std::int64_t> out{data.size()};
    auto const needed = sum.scratch_bytes(data.size());
    ASSERT_GT(needed, 0U);
    device_vector<std::byte> scratch{needed};
    sum(on(), in.in(), out.span(), {.scratch = scratch.span()}).value();
    std::vector<std::int64_t> expected(data.size());
    cpu::exclusive_scan<std::int64_t>(data, std::span{expected}, cpu::plus);
    EXPECT_TRUE(equals("own scratch", expected, out.get(on())));
    EXPECT_EQ(sum(on(), in.in(), out.span(), {.scratch = {scratch.data(), needed - 1}}).error().code(),
              errc::invalid_argument);
    EXPECT_EQ(sum(on(), in.in(), out.span(), {.scratch = {scratch.data() + 8, needed}}).error().code(),
              errc::invalid_argument);
}

TEST_F(handles, are_not_needed_for_a_single_call) {
    auto const data = make_data<std::int32_t>(70'001, pattern::random, 9);
    auto const n = data.size();
    device_vector<std::int32_t> const in{on(), data};
    device_vector<std::int32_t> out{n};
    device_vector<std::uint64_t> count{1};
    std::vector<std::int32_t> expected(n);

    once::exclusive_scan<std::int32_t>(on(), in.in(), out.span(), plus, 5).value();
    cpu::exclusive_scan<std::int32_t>(data, std::span{expected}, cpu::plus, 5);
    EXPECT_TRUE(equals("scan", expected, out.get(on())));

    once::radix_sort<std::int32_t>(on(), {.keys_in = in.in(), .keys_out = out.data()}).value();
    auto sorted = data;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_TRUE(equals("sort", sorted, out.get(on())));

    once::select_if<std::int32_t>(on(), in.in(), out.data(), count.data(), op{"a % 2 == 0"}).value();
    std::vector<std::int32_t> even;
    std::ranges::copy_if(data, std::back_inserter(even), [](int a) { return a % 2 == 0; });
    EXPECT_EQ(count.get(on()).front(), even.size());
    EXPECT_TRUE(equals("select", even, out.get(on(), even.size())));

    once::transform<std::int32_t>(on(), in.in(), out.span(), op{"a ^ 5"}).value();
    std::ranges::transform(data, expected.begin(), [](int a) { return a ^ 5; });
    EXPECT_TRUE(equals("transform", expected, out.get(on())));

    std::vector<std::uint32_t> backwards(n);
    for (std::size_t i = 0; i < n; ++i) backwards[i] = static_cast<std::uint32_t>(n - 1 - i);
    device_vector<std::uint32_t> const index{on(), backwards};
    once::gather<std::int32_t, std::uint32_t>(on(), in.in().data, index.in(), out.span()).value();
    EXPECT_TRUE(equals("gather", {data.rbegin(), data.rend()}, out.get(on())));

    EXPECT_EQ(once::reduce<std::int32_t>(on(), in.in(), out.data(), op{"a +"}).error().code(), errc::compile_failed);
}

TEST_F(handles, stop_allocating_once_warm) {
    auto const sort = made(radix_sort<std::int32_t, std::int32_t>());
    device_vector<std::int32_t> const keys{on(), make_data<std::int32_t>(100'000, pattern::random, 1)};
    device_vector<std::int32_t> const keys_out{100'000};
    device_vector<std::int32_t> const values_out{100'000};
    sort_arguments<std::int32_t, std::int32_t> const call{
        .keys_in = keys.in(), .keys_out = keys_out.data(), .values_in = keys.data(), .values_out = values_out.data()};
    sort(on(), call).value();
    int grown = 0;
    auto const watching =
        event_log::process().subscribe([&](event const& e) { grown += e.reason.view() == "scratch-grown" ? 1 : 0; });
    for (int i = 0; i < 100; ++i) sort(on(), call).value();
    on().wait_sync().value();
    EXPECT_EQ(grown, 0);
}

TEST_F(handles, can_be_captured_into_graphs) {
    auto const api = graph_api::load();
    auto const sum = made(exclusive_scan<std::int32_t>(plus));
    auto const sort = made(radix_sort<std::int32_t>());
    auto const merge = made(merge_sort<std::int32_t>());
    std::size_t const n = 300'007;
    auto const data = make_data<std::int32_t>(n, pattern::random, 4);
    device_vector<std::int32_t> const in{on(), data};
    device_vector<std::int32_t> sums{n};
    device_vector<std::int32_t> sorted{n};
    device_vector<std::int32_t> merged{n};
    sum(on(), in.in(), sums.span()).value();  // an eager call before: its scratch is not the graph's
    on().wait_sync().value();

    auto const capture = [&](bool prepared) {
        if (prepared) {
            sum.reserve(on(), n).value();
            sort.reserve(on(), n).value();
            merge.reserve(on(), n).value();
        }
        EXPECT_EQ(api.begin(on().get(), CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
        auto const first = sum(on(), in.in(), sums.span());
        auto const second = sort(on(), {.keys_in = in.in(), .keys_out = sorted.data()});
        // Its passes overlap: they must not reach over into the sums they sort.
        auto const third = merge(on(), {.keys_in = sums.in(), .keys_out = merged.data()});
        CUgraph graph = nullptr;
        EXPECT_EQ(api.end(on().get(), &graph), CUDA_SUCCESS);
        EXPECT_EQ(third.has_value(), prepared);
        EXPECT_EQ(first.has_value(), prepared);
        EXPECT_EQ(second.has_value(), prepared);
        if (!prepared) {
            EXPECT_THAT(first.error().message(), testing::HasSubstr("reserve()"));
        }
        return graph;
    };
    api.destroy(capture(false));

    std::vector<std::int32_t> expected_sums(n);
    auto expected_keys = data;
    cpu::exclusive_scan<std::int32_t>(data, std::span{expected_sums}, cpu::plus);
    std::sort(expected_keys.begin(), expected_keys.end());
    auto expected_merged = expected_sums;
    std::sort(expected_merged.begin(), expected_merged.end());
    for (int round = 0; round < 2; ++round) {
        CUgraph const graph = capture(true);
        CUgraphExec exec = nullptr;
        ASSERT_EQ(api.instantiate(&exec, graph, 0), CUDA_SUCCESS);
        sums.poison(on());
        sorted.poison(on());
        merged.poison(on());
        on().wait_sync().value();
        auto const elsewhere = stream::make().value();
        for (int i = 0; i < 3; ++i) ASSERT_EQ(api.launch(exec, elsewhere.get()), CUDA_SUCCESS);
        elsewhere.wait_sync().value();
        EXPECT_TRUE(equals("sums of the graph", expected_sums, sums.get(on())));
        EXPECT_TRUE(equals("keys of the graph", expected_keys, sorted.get(on())));
        EXPECT_TRUE(equals("merged keys of the graph", expected_merged, merged.get(on())));
        api.destroy_exec(exec);
        api.destroy(graph);
    }
}

}  // namespace kiln::device_tests
