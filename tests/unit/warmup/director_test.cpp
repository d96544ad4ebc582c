// SPDX-License-Identifier: Apache-2.0
// What a demand does on a machine like this one, without a compiler.
#include "warmup/director.hpp"

#include "base/files.hpp"
#include "support/fake_engine.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <future>
#include <set>

namespace kiln::warmup {
namespace {

std::size_t threads_now() {
    std::size_t n = 0;
    for ([[maybe_unused]] auto const& t : std::filesystem::directory_iterator{"/proc/self/task"}) ++n;
    return n;
}

class director_test : public testing::Test {
protected:
    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-director").value();
    event_log events_;
    engine engine_{{.settings = {{"KILN_CACHE_DIR", (scratch_.path() / "cache").native()}}, .events = &events_}};
    unit unit_{.name = "u", .source = "__global__ void u() {}"};
};

TEST_F(director_test, without_a_gpu_a_demand_without_targets_starts_nothing) {
    if (may_have_gpu()) GTEST_SKIP() << "there may be a GPU here";
    auto const before = threads_now();
    demand({unit_, "select_i32"}, {.consumer = "test", .engine = &engine_});
    EXPECT_EQ(threads_now(), before);
    EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "cache"));
    auto const s = status(engine_);
    EXPECT_EQ(s.deferred, 2u);
    EXPECT_EQ(s.find("u")->consumers, "test");
    auto const report = plan{"p", {unit_}, {.engine = &engine_}}.ensure_warm(std::chrono::seconds{10});
    ASSERT_EQ(report.cold.size(), 1u);
    EXPECT_EQ(report.cold[0].state, work_state::deferred);
    EXPECT_EQ(report.cold[0].code, errc::no_device);
    EXPECT_LT(report.waited_ms, 1000);
}

TEST_F(director_test, declaring_registers_and_does_nothing_else) {
    auto const before = threads_now();
    {
        requirement const r{"somebody", {unit_, "select_i32"}, {.when = {"polygon"}}};
        EXPECT_EQ(find_requirement("somebody"), &r);
        EXPECT_EQ(r.names(), (std::vector<std::string>{"u", "select_i32"}));
    }
    EXPECT_EQ(find_requirement("somebody"), nullptr);
    EXPECT_EQ(threads_now(), before);
    EXPECT_EQ(status(engine_).submitted, 0u);
}

TEST_F(director_test, only_what_is_present_is_demanded) {
    if (may_have_gpu()) GTEST_SKIP() << "there may be a GPU here";
    requirement const polygons{"polygons", {"p"}, {.when = {"polygon"}}};
    requirement const points{"points", {"q"}, {.when = {"point", "multipoint"}}};
    std::string_view const facts[] = {"multipoint"};
    demand_present(facts, {.engine = &engine_});
    auto const s = status(engine_);
    EXPECT_EQ(s.find("p"), nullptr);
    EXPECT_NE(s.find("q"), nullptr);
}

class placing : public testing_support::fake_engine {
protected:
    [[nodiscard]] demand_options for_sm90() { return {.targets = {sm90()}, .engine = &engine_}; }
    // Begins a job that ends with let_go(): whatever is demanded next queues behind it.
    void keep_busy() {
        compiler_.hold();
        demand({unit_named("first")}, for_sm90());
        compiler_.wait_for_begun(1);
    }
    [[nodiscard]] bool settled(demanded const& batch) {
        return director::of(engine_)->wait_until(*batch.internals(), base::clock::now() + std::chrono::minutes{1});
    }
};

TEST_F(placing, a_batch_cancelled_while_it_is_placed_leaves_nothing_behind) {
    keep_busy();
    std::mutex mutex;
    std::set<std::string> heard;
    auto const progress = on_progress(
        [&](progress_report const& r) {
            std::lock_guard const lock{mutex};
            heard.insert(r.name);
        },
        engine_);
    std::promise<demanded> made;
    auto const batch = made.get_future().share();
    // On the intake's own thread, after it took the first unit in hand and before it asked the engine for it.
    auto const token = events_.subscribe([&](event const& e) {
        if (e.kind == event_kind::demanded && e.unit.view() == "a") batch.get().cancel();
    });
    auto for_two = for_sm90();
    for_two.targets.push_back(target::parse("sm_80").value());
    made.set_value(demand({unit_named("a"), unit_named("b")}, for_two));
    ASSERT_TRUE(settled(batch.get()));
    compiler_.let_go();
    ASSERT_TRUE(settled(demand({unit_named("last")}, for_sm90())));
    EXPECT_THAT(compiler_.begun(), testing::ElementsAre("first", "last"));
    auto const s = status(engine_);
    EXPECT_EQ(s.find("a")->state, work_state::cancelled);
    EXPECT_EQ(s.cancelled, 1u) << "its second target was not even begun";
    EXPECT_EQ(s.find("b"), nullptr);
    std::lock_guard const lock{mutex};
    EXPECT_TRUE(heard.contains("a"));
    EXPECT_FALSE(heard.contains("b"));
}

TEST_F(placing, what_was_withdrawn_and_is_demanded_again_comes) {
    keep_busy();
    auto const first = demand({unit_named("k")}, for_sm90());
    while (engine_.internals().pool->count().queued < 1) std::this_thread::yield();
    first.cancel();
    auto const second = demand({unit_named("k")}, for_sm90());
    compiler_.let_go();
    ASSERT_TRUE(settled(second));
    EXPECT_TRUE(director::of(engine_)->cold(*second.internals()).cold.empty());
}

TEST_F(placing, what_a_plan_is_waited_for_goes_before_what_is_only_planned) {
    keep_busy();
    auto planned = for_sm90();
    planned.how = priority::planned;
    auto const other = demand({unit_named("other")}, planned);
    while (engine_.internals().pool->count().queued < 1) std::this_thread::yield();
    plan const mine{"p", {unit_named("mine")}, for_sm90()};
    mine.prepare();
    while (engine_.internals().pool->count().queued < 2) std::this_thread::yield();
    auto const raised = [&] {
        return std::ranges::any_of(events_.recent(), [](event const& e) {
            return e.kind == event_kind::demanded && e.unit.view() == "mine" && e.reason.view() == "blocking";
        });
    };
    EXPECT_FALSE(mine.ensure_warm(std::chrono::milliseconds{0}));
    EXPECT_FALSE(raised()) << "nobody waits";
    auto const for_ever = std::chrono::milliseconds::max();
    auto warm = std::async(std::launch::async, [&] { return bool{mine.ensure_warm(for_ever)}; });
    while (!raised()) std::this_thread::yield();
    // Told before it is done; the second time it is done.
    auto const order = engine_.internals().order_for(unit_named("mine"), sm90()).value();
    engine_.internals().requests->raise(engine_detail::identity_of(order.subject), priority::blocking);
    compiler_.let_go();
    EXPECT_TRUE(warm.get());
    ASSERT_TRUE(settled(other));
    EXPECT_THAT(compiler_.begun(), testing::ElementsAre("first", "mine", "other"));
}

TEST_F(placing, two_that_share_a_name_and_a_text_are_two) {
    write("a/q.h", "1");
    write("b/q.h", "4");
    compiler_.next_time("p", [] { return fail(errc::compile_failed, "not today"); });
    auto const a = demand({reading("p", {path("a")})}, for_sm90());
    ASSERT_TRUE(settled(a));
    auto const b = demand({reading("p", {path("b")})}, for_sm90());
    ASSERT_TRUE(settled(b));
    EXPECT_EQ(director::of(engine_)->cold(*a.internals()).cold.size(), 1u);
    EXPECT_TRUE(director::of(engine_)->cold(*b.internals()).cold.empty()) << "one's failure is not the other's";
    EXPECT_EQ(status(engine_).units.size(), 2u);
}

}  // namespace
}  // namespace kiln::warmup
