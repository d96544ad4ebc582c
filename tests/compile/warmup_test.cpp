// SPDX-License-Identifier: Apache-2.0
// Demands, plans and status with the real compiler, for targets named explicitly: no GPU is needed.
#include "engine/engine_state.hpp"
#include "engine_fixture.hpp"
#include "prims/catalogue.hpp"

#include <kiln/demand.hpp>
#include <kiln/plan.hpp>
#include <kiln/status.hpp>

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

namespace kiln {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::engine_fixture;

class warmup_compile : public engine_fixture {
protected:
    static std::vector<want> units(int first, int count) {
        std::vector<want> out;
        for (int n = first; n < first + count; ++n)
            out.emplace_back(simple("u" + std::to_string(n), "x[0] = " + std::to_string(n) + ";"));
        return out;
    }
    [[nodiscard]] demand_options on(engine& e, priority how = priority::declared) const {
        return {.targets = {sm90()}, .how = how, .engine = &e};
    }
    // A text that takes NVRTC some hundred milliseconds: long enough for others to queue behind it.
    static unit slow(std::string const& name) {
        std::string source = "extern \"C\" __global__ void " + name + "(float* x) {\n";
        for (int i = 0; i < 150; ++i) source += "x[" + std::to_string(i) + "] += __sinf(x[1]) * sqrtf(x[2]) / x[3];\n";
        return {.name = name, .source = source + "}\n", .kernels = {name}};
    }
    // Polls: false if it has not come true within a minute.
    template <class Condition>
    [[nodiscard]] static bool eventually(Condition holds) {
        for (auto const until = base::clock::now() + 60s; !holds(); std::this_thread::sleep_for(1ms)) {
            if (base::clock::now() > until) return false;
        }
        return true;
    }
};

TEST_F(warmup_compile, a_demanded_unit_is_there_when_it_is_asked_for) {
    auto const e = make_engine();
    plan const p{"p", units(0, 3), on(*e)};
    auto const report = p.ensure_warm(60s);
    EXPECT_TRUE(report) << report.text();
    auto const got = e->artifact_sync(simple("u1", "x[0] = 1;"), sm90()).value();
    EXPECT_EQ(got.from, provenance::memory);
    EXPECT_EQ(e->status().compiled, 3u);
    EXPECT_EQ(e->status().blocked, 0u);
    EXPECT_EQ(count(event_kind::waited), 1u) << "the plan waited, no caller did";
    auto const s = status(*e);
    EXPECT_EQ(s.ready, 3u);
    EXPECT_EQ(s.compiled, 3u);
    ASSERT_NE(s.find("u1"), nullptr);
    EXPECT_EQ(s.find("u1")->consumers, "p");
    EXPECT_GT(s.find("u1")->compile_ms, 0);
}

TEST_F(warmup_compile, ten_consumers_with_overlapping_demands_compile_each_unit_once) {
    auto const e = make_engine();
    demand({}, on(*e));  // threads are started once per process
    std::vector<std::vector<want>> wants;
    for (int c = 0; c < 10; ++c) wants.push_back(units(c, 5));
    std::vector<double> ms(10);
    std::vector<std::jthread> threads;
    std::atomic<int> ready{0};
    for (std::size_t c = 0; c < 10; ++c) {
        threads.emplace_back([&, c] {
            ++ready;
            while (ready < 10) std::this_thread::yield();
            base::stopwatch const watch;
            auto how = on(*e);
            how.consumer = "consumer " + std::to_string(c);
            demand(wants[c], how);
            ms[c] = watch.ms();
        });
    }
    threads.clear();
    plan const all{"all", units(0, 14), on(*e)};
    auto const report = all.ensure_warm(120s);
    ASSERT_TRUE(report) << report.text();
    EXPECT_EQ(e->status().compiled, 14u);
    EXPECT_EQ(status(*e).submitted, 14u);
    // On two cores ten threads share what they have; the benchmark measures the call itself.
    for (auto const t : ms) EXPECT_LT(t, 20);
}

TEST_F(warmup_compile, a_plan_returns_at_its_deadline_and_names_what_is_cold) {
    auto const e = make_engine();
    std::vector<want> wants;
    for (int n = 0; n < 20; ++n) wants.emplace_back(slow("slow" + std::to_string(n)));
    plan const p{"p", wants, on(*e)};
    // The best of three: on a busy machine a thread may wake up late.
    std::optional<warm_report> first;
    double took = 1e9;
    for (int i = 0; i < 3; ++i) {
        base::stopwatch const watch;
        auto r = p.ensure_warm(200ms);
        if (!first) {
            EXPECT_GE(watch.ms(), 195);
            first = r;
        }
        if (!r) took = std::min(took, watch.ms());
    }
    auto const& report = *first;
    EXPECT_LT(took, 250);
    EXPECT_FALSE(report);
    EXPECT_GT(report.cold.size(), 10u);
    EXPECT_EQ(report.total, 20u);
    EXPECT_THAT(report.text(), HasSubstr("slow19 (queued)"));
    auto const compiling = std::ranges::count(report.cold, work_state::compiling, &cold_item::state);
    EXPECT_GE(compiling, 1);
    EXPECT_LE(compiling, 2);

    auto const later = p.ensure_warm(200s);
    EXPECT_TRUE(later) << later.text();
    base::stopwatch const again;
    EXPECT_TRUE(p.ensure_warm(200ms));
    EXPECT_LT(again.ms(), 20);
}

TEST_F(warmup_compile, what_a_caller_is_blocked_on_goes_first_then_plans_then_declarations_then_predictions) {
    auto const e = make_engine({{"KILN_WORKERS", "1"}});
    demand({slow("first")}, on(*e));  // keeps the one worker busy
    ASSERT_TRUE(eventually([&] { return status(*e).compiling == 1; }));
    demand({simple("predicted")}, on(*e, priority::predicted));
    demand({simple("declared")}, on(*e, priority::declared));
    auto const raised = demand({simple("raised")}, on(*e, priority::predicted));
    plan const p{"p", {simple("planned")}, on(*e)};
    p.prepare();
    ASSERT_TRUE(eventually([&] { return status(*e).submitted == 5; }));
    raised.raise(priority::planned);
    (void)e->artifact_sync(simple("blocking"), sm90()).value();
    ASSERT_TRUE(eventually([&] { return status(*e).ready == 6; }));
    std::vector<std::string> order;
    // In which order they begin: on a busy machine what somebody waits for begins anew in a worker that does not step back for others, and
    // what nobody waits for in its own turn, if it made room.
    for (auto const& ev : events_.recent()) {
        if (ev.kind == event_kind::compiling && std::ranges::find(order, ev.unit.view()) == order.end())
            order.emplace_back(ev.unit.view());
    }
    ASSERT_EQ(order.size(), 6u);
    EXPECT_EQ(order[0], "first");
    EXPECT_EQ(order[1], "blocking");
    EXPECT_THAT(std::vector(order.begin() + 2, order.begin() + 4), testing::UnorderedElementsAre("planned", "raised"));
    EXPECT_EQ(order[4], "declared");
    EXPECT_EQ(order[5], "predicted");
}

TEST_F(warmup_compile, a_withdrawn_demand_is_not_compiled_unless_somebody_else_wants_it) {
    auto const e = make_engine({{"KILN_WORKERS", "1"}});
    demand({slow("first")}, on(*e));
    ASSERT_TRUE(eventually([&] { return status(*e).compiling == 1; }));
    auto const both = demand({simple("mine"), simple("shared")}, on(*e));
    plan const other{"other", {simple("shared")}, on(*e)};
    other.prepare();
    ASSERT_TRUE(eventually([&] { return status(*e).submitted == 3; }));
    both.cancel();
    both.cancel();
    EXPECT_TRUE(other.ensure_warm(60s));
    auto const s = status(*e);
    EXPECT_EQ(s.find("mine")->state, work_state::cancelled);
    EXPECT_EQ(s.find("shared")->state, work_state::ready);
    EXPECT_TRUE(eventually([&] { return e->status().compiled == 2; }));  // the first may have made room
    // Asking again brings it back.
    plan const again{"again", {simple("mine")}, on(*e)};
    auto const report = again.ensure_warm(60s);
    EXPECT_TRUE(report) << report.text();
    EXPECT_TRUE(eventually([&] { return e->status().compiled == 3; }));
}

TEST_F(warmup_compile, a_broken_unit_disturbs_nobody_and_its_log_is_kept) {
    auto const e = make_engine();
    auto const broken = simple("broken", "no_such_function(x);");
    auto wants = units(0, 2);
    wants.emplace_back(broken);
    plan const p{"p", wants, on(*e)};
    auto const report = p.ensure_warm(60s);
    ASSERT_EQ(report.cold.size(), 1u) << report.text();
    EXPECT_EQ(report.cold[0].state, work_state::failed);
    EXPECT_THAT(report.cold[0].log, HasSubstr("no_such_function"));
    auto const s = status(*e);
    EXPECT_EQ(s.failed, 1u);
    EXPECT_EQ(s.ready, 2u);
    EXPECT_THAT(s.find("broken")->log, HasSubstr("no_such_function"));
    auto const asked = e->artifact_sync(broken, sm90());
    ASSERT_FALSE(asked);
    EXPECT_EQ(asked.error().code(), errc::compile_failed);
    EXPECT_THAT(asked.error().log(), HasSubstr("no_such_function"));
}

TEST_F(warmup_compile, unknown_names_are_failures_of_their_own) {
    auto const e = make_engine();
    (void)catalogue();
    plan const p{"p", {"no_such_spec_i32", simple("fine")}, on(*e)};
    auto const report = p.ensure_warm(60s);
    ASSERT_EQ(report.cold.size(), 1u) << report.text();
    EXPECT_THAT(report.cold[0].why, HasSubstr("kiln list"));
}

TEST_F(warmup_compile, what_the_store_has_is_not_compiled_again) {
    {
        auto const e = make_engine();
        ASSERT_TRUE((plan{"p", units(0, 4), on(*e)}.ensure_warm(60s)));
        ASSERT_TRUE(e->flush_sync());
    }
    auto const e = make_engine({{"KILN_JIT", "forbid"}});
    auto const report = plan{"p", units(0, 4), on(*e)}.ensure_warm(60s);
    EXPECT_TRUE(report) << report.text();
    EXPECT_EQ(e->status().from_disk, 4u);
    EXPECT_EQ(status(*e).find("u0")->from, provenance::disk);
    EXPECT_GT(status(*e).find("u0")->compile_ms, 0) << "what it cost is known";
}

TEST_F(warmup_compile, every_wait_is_an_event_that_says_who_and_why) {
    auto const e = make_engine();
    (void)e->artifact_sync(simple(), sm90(), {.who = "the test"}).value();
    std::vector<std::string> details;
    for (auto const& ev : events_.recent())
        if (ev.kind == event_kind::waited) details.emplace_back(ev.detail.view());
    EXPECT_THAT(details, ElementsAre("the test; missed: absent"));
    EXPECT_EQ(status(*e).waits, 1u);
    EXPECT_GT(status(*e).blocked_ms, 0);
    auto const in_no_time = e->artifact_sync(simple("other"), sm90(), {.deadline = 0ms});
    EXPECT_EQ(in_no_time.error().code(), errc::timeout);
    EXPECT_TRUE((plan{"p", {simple("other")}, on(*e)}.ensure_warm(60s))) << "it went on in the background";
}

TEST_F(warmup_compile, the_generic_variant_serves_until_the_tuned_one_is_there) {
    auto const e = make_engine();
    auto generic = e->artifact_sync(simple("generic"), sm90()).value();
    auto const tuned = e->artifact(slow("tuned"), sm90());
    switching<obtained> const k{std::move(generic), tuned};
    EXPECT_EQ(k.current().what->unit, "generic");
    ASSERT_TRUE(tuned.wait_sync(60s));
    ASSERT_TRUE(eventually([&] { return k.switched(); }));
    EXPECT_EQ(k.current().what->unit, "tuned");
    switching<obtained> const stays{k.current(), e->artifact(simple("bad", "nothing(x);"), sm90())};
    EXPECT_EQ(stays.current().what->unit, "tuned");
}

TEST_F(warmup_compile, specialisations_are_demanded_by_name) {
    auto const e = make_engine();
    auto const name = std::string{catalogue().front().name};
    auto const report = plan{"p", {name}, on(*e)}.ensure_warm(120s);
    EXPECT_TRUE(report) << report.text();
    EXPECT_EQ(e->status().blocked, 0u) << "nobody waited for it";
    auto const s = status(*e);
    ASSERT_NE(s.find(name), nullptr);
    EXPECT_EQ(s.find(name)->state, work_state::ready);
    base::stopwatch const watch;
    (void)artifact_of_sync(name, sm90(), *e).value();
    EXPECT_LT(watch.ms(), 200);
}

TEST_F(warmup_compile, progress_is_told_with_totals) {
    auto const e = make_engine();
    std::mutex mutex;
    std::vector<progress_report> seen;
    auto const token = on_progress(
        [&](progress_report const& r) {
            std::lock_guard const lock{mutex};
            seen.push_back(r);
        },
        *e);
    ASSERT_TRUE((plan{"p", units(0, 3), on(*e)}.ensure_warm(60s)));
    ASSERT_TRUE(eventually([&] {
        std::lock_guard const lock{mutex};
        return seen.size() == 3;
    }));
    std::lock_guard const lock{mutex};
    EXPECT_EQ(seen.back().done, 3u);
    EXPECT_EQ(seen.back().total, 3u);
}

unit const toy_a = {
    .name = "toy_a", .source = "extern \"C\" __global__ void toy_a(int* x) { x[0] = 1; }", .kernels = {"toy_a"}};
unit const toy_b = {
    .name = "toy_b", .source = "extern \"C\" __global__ void toy_b(int* x) { x[0] = 2; }", .kernels = {"toy_b"}};
KILN_REQUIRES(toy, toy_a, toy_b);

TEST_F(warmup_compile, declarations_are_held_to_what_is_really_used) {
    auto const e = make_engine();
    use_watch const watch{*e};
    (void)e->artifact_sync(toy_a, sm90()).value();
    EXPECT_THAT(watch.difference(toy_requires), HasSubstr("declares 'toy_b' and never used it"));
    (void)e->artifact_sync(toy_b, sm90()).value();
    EXPECT_EQ(watch.difference(toy_requires), "");
    (void)e->artifact_sync(simple("undeclared"), sm90()).value();
    EXPECT_THAT(watch.difference(toy_requires), HasSubstr("uses 'undeclared' and does not declare it"));
    EXPECT_EQ(find_requirement("toy"), &toy_requires);
    // Warm-up is no use.
    ASSERT_TRUE((plan{"p", {simple("predicted")}, on(*e)}.ensure_warm(60s)));
    EXPECT_THAT(watch.used(), ElementsAre("toy_a", "toy_b", "undeclared"));
}

TEST_F(warmup_compile, an_engine_goes_at_once_while_compiles_run) {
    auto e = make_engine();
    std::vector<want> wants;
    for (int n = 0; n < 20; ++n) wants.emplace_back(slow("slow" + std::to_string(n)));
    plan const p{"p", wants, on(*e)};
    p.prepare();
    ASSERT_TRUE(eventually([&] { return status(*e).compiling == 2; }));
    base::stopwatch const watch;
    e.reset();
    EXPECT_LT(watch.ms(), 200);
}

}  // namespace
}  // namespace kiln
