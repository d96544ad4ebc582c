// SPDX-License-Identifier: Apache-2.0
// The rules of the runtime on a real GPU.
#include "device_fixture.hpp"

#include "base/files.hpp"
#include "runtime/calibration.hpp"
#include "runtime/device_pool.hpp"
#include "runtime/execution.hpp"

#include <kiln/event.hpp>
#include <kiln/prims/run.hpp>
#include <kiln/prims/sum.hpp>
#include <kiln/runtime/interop.hpp>
#include <kiln/runtime/memory.hpp>
#include <kiln/tropical/run.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

namespace kiln::device_tests {

using testing::HasSubstr;

namespace {

std::vector<int> some_ints(std::size_t n) {
    std::vector<int> out(n);
    std::minstd_rand random{7};
    for (auto& v : out) v = static_cast<int>(random() % 1000) - 500;
    return out;
}

template <class T>
std::vector<T> values_of(buffer<T> const& there, stream_ref on) {
    auto const here = there.to_host_sync(on).value();
    return {here.host_span().begin(), here.host_span().end()};
}

}  // namespace

class runtime_device : public on_device {
protected:
    void SetUp() override {
        on_device::SetUp();
        if (IsSkipped()) return;
        stream_.emplace(stream::make().value());
        // Defaults decide, not what somebody calibrated on this machine.
        ::setenv("KILN_CACHE_DIR", folder_.path().c_str(), 1);
        runtime::forget_calibration();
        for (auto const* o : prims::operations()) o->forget_measured();
    }
    void TearDown() override {
        ::setenv("KILN_CACHE_DIR", cache_.c_str(), 1);
        set_execution_mode({});
        set_strict({});
        set_determinism({});
    }
    [[nodiscard]] stream_ref on() const { return *stream_; }

    std::optional<stream> stream_;
    base::temporary_directory folder_ = base::temporary_directory::make().value();
    std::string cache_ = std::getenv("KILN_CACHE_DIR") != nullptr ? std::getenv("KILN_CACHE_DIR") : "";
};

TEST_F(runtime_device, a_buffer_goes_there_and_back_and_both_ways_are_counted) {
    auto const before = activity_so_far();
    auto const here = buffer<int>::copy_of(some_ints(1000));
    auto const there = here.to_device(on()).value();
    EXPECT_EQ(there.where(), residency::device);
    EXPECT_EQ(there.to_device(on())->data(), there.data()) << "it is there already";
    EXPECT_EQ(values_of(there, on()), some_ints(1000));
    auto const now = activity_so_far().since(before);
    EXPECT_EQ(now.bytes_to_device, 4000u);
    EXPECT_EQ(now.bytes_to_host, 4000u);
    EXPECT_EQ(now.pinned_bytes, 0u);
    auto const pinned = buffer<int>::pinned(1000).value();
    std::memcpy(pinned.data(), here.data(), 4000);
    (void)pinned.to_device(on()).value();
    EXPECT_EQ(activity_so_far().since(before).pinned_bytes, 4000u);
}

TEST_F(runtime_device, auto_runs_small_host_data_here_and_large_there_with_the_same_answer) {
    run::exclusive_scan<int> const scan{plus};
    for (std::size_t const n : {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{1} << 20}) {
        auto const in = buffer<int>::copy_of(some_ints(n));
        auto const out = scan(on(), in).value();
        EXPECT_EQ(out.where(), n >= 1 << 16 ? residency::device : residency::host) << n;
        std::vector<int> expected(n);
        std::exclusive_scan(in.host_span().begin(), in.host_span().end(), expected.begin(), 0);
        EXPECT_EQ(values_of(out, on()), expected) << n;
    }
}

TEST_F(runtime_device, every_operation_gives_the_same_on_both_sides) {
    auto const ints = some_ints(50'000);
    auto const host = buffer<int>::copy_of(ints);
    auto mask = buffer<std::uint8_t>::on_host(ints.size());
    for (std::size_t i = 0; i < ints.size(); ++i) mask.data()[i] = static_cast<std::uint8_t>(i % 3 == 0);
    auto sorted_ints = ints;
    std::ranges::sort(sorted_ints);
    auto const sorted = buffer<int>::copy_of(sorted_ints);
    auto const both = [&](auto const& call) {
        scoped_execution_mode const cpu{execution_mode::cpu};
        auto const here = call();
        {
            scoped_execution_mode const gpu{execution_mode::gpu};
            EXPECT_EQ(call(), here);
        }
    };
    both([&] { return values_of(run::inclusive_scan<int>{plus}(on(), host).value(), on()); });
    both([&] { return values_of(run::reduce<int>{max, -1'000'000}(on(), host).value(), on()); });
    both([&] { return values_of(run::select<int>{}(on(), host, mask).value(), on()); });
    both([&] { return values_of(run::lower_bound<int>{}(on(), sorted, host).value(), on()); });
    both([&] { return values_of(run::upper_bound<int>{}(on(), sorted, host).value(), on()); });
    both([&] { return values_of(run::radix_sort<int>{sort_order::descending}(on(), host).value(), on()); });
    both([&] { return values_of(run::merge_sort<int>{}(on(), host).value(), on()); });
    both([&] { return values_of(run::unique_by_key<int, int>{}(on(), sorted, host).value().keys, on()); });
}

TEST_F(runtime_device, null_and_empty_stay_different_through_an_operation) {
    auto const rows = column<int>::lists(buffer<int>::copy_of(std::vector<int>{7, 8, 9}),
                                         buffer<std::int32_t>::copy_of(std::vector<std::int32_t>{0, 2, 2, 2, 3}),
                                         buffer<std::uint8_t>::copy_of(std::vector<std::uint8_t>{0b1101}));
    run::segmented_reduce<int> const sums{plus, 100};
    auto const there = rows.to_device(on()).value();
    auto const out = sums(on(), there).value();
    EXPECT_EQ(out.where(), residency::device);
    auto const back = out.to_host_sync(on()).value();
    EXPECT_EQ(back.rows(), 4u);
    EXPECT_EQ(back.values().data()[0], 115);
    EXPECT_TRUE(back.is_null(1));
    EXPECT_FALSE(back.is_null(2));
    EXPECT_EQ(back.values().data()[2], 100) << "an empty row is the initial value";
    EXPECT_EQ(back.values().data()[3], 109);
}

TEST_F(runtime_device, three_primitives_over_device_data_move_nothing_and_wait_for_nothing) {
    auto const ints = buffer<int>::copy_of(some_ints(100'000)).to_device(on()).value();
    auto mask = buffer<std::uint8_t>::on_host(100'000);
    std::memset(mask.data(), 1, mask.size());
    auto const marks = mask.to_device(on()).value();
    run::exclusive_scan<int> const scan{plus};
    run::radix_sort<int> const sort;
    run::select<int> const select;
    auto kept = buffer<int>::on_device(on(), 100'000).value();
    auto count = buffer<std::uint64_t>::on_device(on(), 1).value();
    auto const pipeline = [&](bool hidden_copy) -> result<void> {
        auto sums = scan(on(), ints);
        if (!sums) return sums.error();
        if (hidden_copy) {
            if (auto copied = sums->to_host_sync(on()); !copied) return copied.error();
        }
        auto sorted = sort(on(), *sums);
        if (!sorted) return sorted.error();
        return select.into(on(), *sorted, marks, kept, count);
    };
    ASSERT_TRUE(pipeline(false)) << "kernels made ready";
    {
        set_strict(true);
        no_transfers const still;
        no_sync const unbroken;
        EXPECT_TRUE(pipeline(false));
        EXPECT_TRUE(still.check());
        EXPECT_TRUE(unbroken.check());
    }
    {
        no_transfers const still;
        auto const refused = pipeline(true);
        EXPECT_EQ(refused.error().code(), errc::forbidden);
        EXPECT_THAT(still.check().error().log(), HasSubstr("400000 bytes to-host by buffer::to_host_sync"));
    }
    EXPECT_EQ(values_of(count, on()).front(), 100'000u);
}

TEST_F(runtime_device, a_result_whose_size_must_be_known_takes_one_fence) {
    auto const ints = buffer<int>::copy_of(some_ints(100'000)).to_device(on()).value();
    auto mask = buffer<std::uint8_t>::on_host(100'000);
    for (std::size_t i = 0; i < mask.size(); ++i) mask.data()[i] = i % 4 == 0;
    auto const marks = mask.to_device(on()).value();
    run::select<int> const select;
    (void)select(on(), ints, marks).value();
    auto const before = activity_so_far();
    auto const out = select(on(), ints, marks).value();
    auto const now = activity_so_far().since(before);
    EXPECT_EQ(out.size(), 25'000u);
    EXPECT_EQ(now.synchronisations, 1u);
    EXPECT_EQ(now.transfers_to_host, 1u);
    EXPECT_EQ(now.bytes_to_host, 8u);
    EXPECT_EQ(now.pinned_bytes, 8u);
    no_sync const unbroken;
    EXPECT_THAT(select(on(), ints, marks).error().message(), HasSubstr("fence in select"));
}

TEST_F(runtime_device, device_data_crosses_dlpack_and_arrow_without_moving) {
    auto const there = buffer<float>::copy_of(std::vector<float>{1, 2, 3}).to_device(on()).value();
    auto const before = activity_so_far();
    auto const back = from_dlpack<float>(to_dlpack(there).value()).value();
    EXPECT_EQ(back.data(), there.data());
    EXPECT_EQ(back.where(), residency::device);
    ArrowSchema schema;
    ArrowDeviceArray array;
    ASSERT_TRUE(to_arrow(on(), column<float>{there}, &schema, &array));
    EXPECT_EQ(array.device_type, ARROW_DEVICE_CUDA);
    EXPECT_NE(array.sync_event, nullptr);
    auto const other = stream::make().value();
    auto const column = from_arrow<float>(other, &schema, &array).value();
    EXPECT_EQ(column.values().data(), there.data());
    auto const now = activity_so_far().since(before);
    EXPECT_EQ(now.transfers_to_host + now.transfers_to_device, 0u);
    EXPECT_EQ(values_of(column.values(), other), (std::vector<float>{1, 2, 3}));
}

TEST_F(runtime_device, tier_a_out_of_memory_is_an_error_and_the_process_goes_on) {
    auto const refused = buffer<std::byte>::on_device(on(), std::size_t{1} << 42);
    EXPECT_EQ(refused.error().code(), errc::out_of_memory);
    EXPECT_TRUE(buffer<std::byte>::on_device(on(), 1 << 20));
    EXPECT_EQ(name_of(memory_of().tier), "pool");
}

TEST_F(runtime_device, tier_b_recovers_what_the_pool_keeps) {
    auto const where = cuda::context::of(0).value();
    runtime::device_pool pool{where, {.tier = memory_tier::pool_safe}};
    auto const room = pool.admit(0)->fits;
    // Most of the device, held by somebody who gives it back only when asked.
    std::size_t const most = room / 10 * 7;
    auto* kept = pool.allocate(on(), most).value();
    auto const told =
        runtime::device_pool::on_pressure([&](int) { pool.deallocate(on(), std::exchange(kept, nullptr), most); });
    auto* const got = pool.allocate(on(), most).value();
    EXPECT_EQ(kept, nullptr);
    EXPECT_GE(pool.status().recovered, 1u);
    pool.deallocate(on(), got, most);
    ASSERT_TRUE(pool.trim_sync());
    EXPECT_EQ(pool.status().reserved, 0u);
}

TEST_F(runtime_device, the_limit_of_a_pool_holds) {
    runtime::device_pool pool{cuda::context::of(0).value(), {.tier = memory_tier::pool, .limit = 1 << 20}};
    auto* const half = pool.allocate(on(), 1 << 19).value();
    EXPECT_THAT(pool.allocate(on(), (1 << 19) + 1).error().message(), HasSubstr("KILN_GPU_POOL_LIMIT"));
    auto* const rest = pool.allocate(on(), 1 << 19).value();
    pool.deallocate(on(), half, 1 << 19);
    pool.deallocate(on(), rest, 1 << 19);
}

TEST_F(runtime_device, tier_c_is_readable_from_both_sides) {
    runtime::device_pool pool{cuda::context::of(0).value(), {.tier = memory_tier::managed}};
    auto* const memory = static_cast<int*>(pool.allocate(on(), 4000).value());
    ASSERT_TRUE(trim_memory_sync()) << "not every machine lets the host touch managed memory while the device works";
    for (int i = 0; i < 1000; ++i) memory[i] = i;
    auto const there = buffer<int>::borrow(memory, 1000, residency::managed);
    auto const total = run::reduce<int>{plus}(on(), there).value();
    EXPECT_EQ(values_of(total, on()).front(), 499'500);
    ASSERT_TRUE(stream_->wait_sync());
    pool.deallocate(on(), memory, 4000);
}

TEST_F(runtime_device, ten_million_allocations_in_four_threads_do_not_grow_the_pool) {
    auto* const pool = runtime::device_pool::of(0).value();
    std::size_t const each = std::getenv("KILN_TEST_QUICK") != nullptr ? 1000 : 2'500'000;
    auto const work = [&](std::size_t times) {
        auto const own = stream::make().value();
        for (std::size_t i = 0; i < times; ++i) {
            auto* const memory = pool->allocate(own, 1024 + i % 7 * 4096).value();
            pool->deallocate(own, memory, 1024 + i % 7 * 4096);
        }
        ASSERT_TRUE(own.wait_sync());
    };
    auto const all = [&](std::size_t times) {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) threads.emplace_back(work, times);
    };
    all(1000);
    auto const before = pool->status();
    all(each);
    auto const after = pool->status();
    EXPECT_EQ(after.in_use, before.in_use);
    EXPECT_LE(after.reserved, before.reserved + (64 << 20));
}

TEST_F(runtime_device, determinism_gives_the_same_bits_a_hundred_times_or_says_no) {
    std::vector<float> floats(300'000);
    std::minstd_rand random{3};
    for (auto& v : floats) v = static_cast<float>(random() % 100'000) * 1e-3F;
    auto const there = buffer<float>::copy_of(floats).to_device(on()).value();
    auto const ints = buffer<int>::copy_of(some_ints(300'000)).to_device(on()).value();
    std::vector<std::int32_t> offsets;
    for (std::int32_t i = 0; i <= 300'000; i += 300) offsets.push_back(i);
    auto const lists = column<float>::lists(there, buffer<std::int32_t>::copy_of(offsets).to_device(on()).value());
    deterministic_scope const scope;
    auto const repeats = [&](auto const& call) {
        auto const first = call();
        for (int i = 0; i < 100; ++i) {
            auto const again = call();
            ASSERT_EQ(again.size(), first.size());
            ASSERT_EQ(std::memcmp(again.data(), first.data(), again.size() * sizeof(again[0])), 0) << i;
        }
    };
    repeats([&] { return values_of(run::reduce<float>{plus}(on(), there).value(), on()); });
    repeats([&] { return values_of(run::segmented_reduce<float>{plus}(on(), lists).value().values(), on()); });
    repeats([&] { return values_of(run::radix_sort<float>{}(on(), there).value(), on()); });
    repeats([&] { return values_of(run::merge_sort<float>{}(on(), there).value(), on()); });
    repeats([&] { return values_of(run::exclusive_scan<int>{plus}(on(), ints).value(), on()); });
    auto const refused = run::exclusive_scan<float>{plus}(on(), there);
    EXPECT_EQ(refused.error().code(), errc::unsupported);
    EXPECT_THAT(refused.error().message(), HasSubstr("same bits twice"));
}

TEST_F(runtime_device, host_data_larger_than_the_device_has_room_for_is_reduced_in_chunks) {
    auto const ints = some_ints(1 << 20);
    auto const host = buffer<int>::copy_of(ints);
    auto const expected = std::accumulate(ints.begin(), ints.end(), 100);
    run::reduce<int> const sum{plus, 100};
    EXPECT_EQ(values_of(sum(on(), host).value(), on()).front(), expected) << "in one piece";

    // A chunk fails for want of memory: the same input, again from there in smaller ones.
    auto* const pool = runtime::device_pool::of(0).value();
    auto& log = event_log::process();
    auto const dispatched = log.count(event_kind::dispatched);
    pool->fail_at(1);
    auto const out = sum(on(), host).value();
    EXPECT_EQ(out.where(), residency::host);
    EXPECT_EQ(*out.data(), expected);
    EXPECT_EQ(log.count(event_kind::dispatched) - dispatched, 3u) << "the whole, then two halves";
    auto const all = log.recent();
    auto const told =
        std::ranges::find_if(all.rbegin(), all.rend(), [](event const& e) { return e.kind == event_kind::fell_back; });
    ASSERT_NE(told, all.rend());
    EXPECT_EQ(told->reason.view(), "smaller-chunk");
    EXPECT_EQ(told->value, 1 << 19);
    auto const last =
        std::ranges::find_if(all.rbegin(), all.rend(), [](event const& e) { return e.kind == event_kind::dispatched; });
    EXPECT_THAT(std::string{last->detail.view()}, HasSubstr("a chunk of 1048576"));

    set_strict(true);
    pool->fail_at(1);
    EXPECT_EQ(sum(on(), host).error().code(), errc::out_of_memory) << "a second choice is an error under KILN_STRICT";
}

TEST_F(runtime_device, room_for_a_long_input_is_what_admission_says) {
    auto const fits = admit(0).value().fits;
    EXPECT_EQ(runtime::room_for(1000, sizeof(int), 0).value(), 1000u);
    auto const room = runtime::room_for(fits, sizeof(int), 0).value();
    EXPECT_GT(room, 0u);
    EXPECT_LT(room * sizeof(int), fits) << "four times what there is";
}

TEST_F(runtime_device, a_metric_sum_is_computed_in_f32_where_f64_is_slow_and_keeps_its_digits) {
    std::size_t const n = 1'000'000;
    std::vector<double> values(n);
    std::minstd_rand random{5};
    for (auto& v : values) v = static_cast<double>(random() % 1'000'000) * 3e-6;
    double expected = 0;
    for (auto const v : values) expected += std::exp(-v * v);
    auto const there = buffer<double>::copy_of(values).to_device(on()).value();
    run::sum<double> const gauss{op{"exp(-a * a)"}, precision_class::metric};
    auto& log = event_log::process();
    auto const last_dispatch = [&] {
        auto const all = log.recent();
        auto const at = std::ranges::find_if(all.rbegin(), all.rend(),
                                             [](event const& e) { return e.kind == event_kind::dispatched; });
        return std::string{at->detail.view()};
    };

    runtime::set_f32_per_f64(64);
    auto const fast = values_of(gauss(on(), there).value(), on()).front();
    EXPECT_EQ(last_dispatch(), "auto -> gpu-f32; f64 on device; computes f32, error-free sums");
    EXPECT_NEAR(fast, expected, expected * 1e-6);
    EXPECT_NE(fast, expected) << "terms in f32 cannot be that good";
    runtime::set_f32_per_f64(2);
    auto const full = values_of(gauss(on(), there).value(), on()).front();
    EXPECT_EQ(last_dispatch(), "auto -> gpu; f64 on device");
    EXPECT_NEAR(full, expected, expected * 1e-12);

    // The compensation: a million times 1 beside 1e8 is lost in plain f32, not here.
    runtime::set_f32_per_f64(64);
    std::vector<double> ones(n, 1.0);
    ones[0] = 1e8;
    run::sum<double> const same{op{"a"}, precision_class::metric};
    auto const total = same(on(), buffer<double>::copy_of(ones).to_device(on()).value()).value();
    EXPECT_EQ(values_of(total, on()).front(), 1e8 + n - 1);
    runtime::set_f32_per_f64({});
    EXPECT_EQ(values_of(run::sum<double>{}(on(), there).value(), on()).size(), 1u) << "a bare sum is as stored";
    EXPECT_EQ(last_dispatch(), "auto -> gpu; f64 on device");
}

TEST_F(runtime_device, a_tropical_product_is_an_operation_too) {
    std::int64_t const n = 200;
    auto const host = buffer<int>::copy_of(some_ints(static_cast<std::size_t>(n * n)));
    run::tropical_product<int> const shorter{tropical::semiring::min_plus, tropical::with_winners::yes};
    auto const in = [&](execution_mode mode) {
        scoped_execution_mode const here{mode};
        auto const out = shorter(on(), {.m = n, .n = n, .k = n}, host, host).value();
        return std::pair{values_of(out.c, on()), values_of(*out.winners, on())};
    };
    EXPECT_EQ(in(execution_mode::gpu), in(execution_mode::cpu));
    auto const there = host.to_device(on()).value();
    set_strict(true);
    no_transfers const still;
    no_sync const unbroken;
    EXPECT_EQ(shorter(on(), {.m = n, .n = n, .k = n}, there, there).value().c.where(), residency::device);
}

TEST_F(runtime_device, an_allocation_that_fails_in_the_middle_of_an_operation_is_its_error) {
    auto* const pool = runtime::device_pool::of(0).value();
    auto const ints = buffer<int>::copy_of(some_ints(1000)).to_device(on()).value();
    run::exclusive_scan<int> const scan{plus};
    ASSERT_TRUE(scan(on(), ints));
    pool->fail_at(1);
    EXPECT_EQ(scan(on(), ints).error().code(), errc::out_of_memory);
    EXPECT_TRUE(scan(on(), ints));
}

}  // namespace kiln::device_tests
