// SPDX-License-Identifier: Apache-2.0
// Demands and plans for the device itself: loaded, resolved and launchable before anybody asks.
#include "compile/engine_fixture.hpp"

#include "device/graph_api.hpp"

#include <kiln/catalogue.hpp>
#include <kiln/plan.hpp>
#include <kiln/prims/handles.hpp>

#include <gmock/gmock.h>

#include <array>
#include <optional>
#include <thread>

namespace kiln {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class warmup_device : public testing_support::engine_fixture {
protected:
    void SetUp() override {
        if (auto const all = devices(); !all) GTEST_SKIP() << all.error().message();
    }
    static unit slow(std::string const& name) {
        auto source = "extern \"C\" __global__ void " + name + "(float* x) {\n";
        for (int i = 0; i < 500; ++i) source += "x[" + std::to_string(i) + "] += __sinf(x[1]) * sqrtf(x[2]) / x[3];\n";
        return {.name = name, .source = source + "}\n", .kernels = {name}};
    }
};

TEST_F(warmup_device, what_was_demanded_is_loaded_once_and_launches_at_once) {
    auto const e = make_engine();
    auto const name = std::string{catalogue().front().name};
    plan const p{"p", {simple("a", "x[0] = 41;"), simple("b", "x[0] += 1;"), name}, {.engine = e.get()}};
    auto const report = p.ensure_warm(120s);
    ASSERT_TRUE(report) << report.text();
    EXPECT_EQ(count(event_kind::loaded), 3u);
    EXPECT_EQ(status(*e).ready, status(*e).submitted);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 10; ++i) threads.emplace_back([&] { (void)e->get_sync(simple("a", "x[0] = 41;")).value(); });
    threads.clear();
    EXPECT_EQ(count(event_kind::loaded), 3u) << "it was loaded already";
    EXPECT_EQ(e->status().blocked, 0u);

    auto const a = e->get_sync(simple("a", "x[0] = 41;")).value().kernel<void(int*)>("a").value();
    auto const b = e->get_sync(simple("b", "x[0] += 1;")).value().kernel<void(int*)>("b").value();
    auto const s = stream::make().value();
    auto memory = device_memory::make(sizeof(int)).value();
    a(s, {{1}, {1}}, memory.as<int>()).value();
    b(s, {{1}, {1}}, memory.as<int>()).value();
    std::vector<int> out(1);
    memory.download_sync(s, out).value();
    EXPECT_EQ(out[0], 42);
}

TEST_F(warmup_device, callers_and_the_warm_up_together_load_once) {
    auto const e = make_engine();
    auto const u = slow("u");
    demand({u}, {.engine = e.get()});
    // Kept, since what nobody holds is unloaded, and slow threads may not overlap.
    std::array<std::optional<ready_unit>, 10> held;
    std::vector<std::jthread> threads;
    for (auto& mine : held) threads.emplace_back([&] { mine = e->get_sync(u).value(); });
    threads.clear();
    ASSERT_TRUE((plan{"p", {u}, {.engine = e.get()}}.ensure_warm(60s)));
    EXPECT_EQ(count(event_kind::compiled), 1u);
    // The warm-up may have loaded it and let go before the first caller came.
    EXPECT_LE(count(event_kind::loaded), 2u);
}

TEST_F(warmup_device, a_capture_does_not_begin_while_something_is_cold) {
    auto const e = make_engine();
    auto const s = stream::make().value();
    auto const u = slow("u");
    plan const p{"frame", {u}, {.engine = e.get()}};
    auto const refused = p.begin_capture(s);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::timeout);
    EXPECT_THAT(refused.error().message(), HasSubstr("u ("));
    EXPECT_TRUE(s.wait_sync()) << "no capture was begun";

    ASSERT_TRUE(p.ensure_warm(60s));
    auto const k = e->get_sync(u).value().kernel<void(float*)>("u").value();
    auto const memory = device_memory::make(4096).value();
    p.begin_capture(s).value();
    k(s, {{1}, {1}}, memory.as<float>()).value();
    CUgraph graph = nullptr;
    ASSERT_EQ(device_tests::graph_api::load().end(s.get(), &graph), CUDA_SUCCESS);
    EXPECT_NE(graph, nullptr);
}

requirement const sums{"sums", {"exclusive_scan_i32", "reduce_sum_i32"}};

TEST_F(warmup_device, a_handle_is_a_use_however_warm_it_is) {
    auto const e = make_engine();
    ASSERT_TRUE((plan{"p", sums.wants(), {.engine = e.get()}}.ensure_warm(120s)));
    use_watch const watch{*e};
    prim_options how;
    how.engine = e.get();
    (void)exclusive_scan<int>(plus, how).value();
    EXPECT_THAT(watch.difference(sums), HasSubstr("declares 'reduce_sum_i32' and never used it"));
    (void)reduce<int>(plus, how).value();
    EXPECT_EQ(watch.difference(sums), "");
}

}  // namespace
}  // namespace kiln
