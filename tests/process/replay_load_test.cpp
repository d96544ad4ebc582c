// SPDX-License-Identifier: Apache-2.0
// A replay of ten thousand recipes in the background of a busy program: callers go first, and hardly notice it.
#include "base/clock.hpp"
#include "engine/engine_state.hpp"
#include "pool_fixture.hpp"
#include "warmup/profile_file.hpp"

#include <kiln/profile.hpp>
#include <kiln/status.hpp>

#include <algorithm>

namespace kiln::compile::testing {
namespace {

constexpr std::uint64_t recipes = 10'000;

target sm90() { return target::parse("sm_90").value(); }

// The fault worker "compiles" it at once.
unit made_at_once(std::string const& name) { return {.name = name, .source = "quick " + name}; }

// Each takes 5 ms to compile, until the file is there.
warmup::profile long_profile(std::string const& hurry) {
    warmup::profile out;
    for (std::uint64_t i = 0; i < recipes; ++i) {
        auto const r = engine_detail::recipe_of({.name = "recorded" + std::to_string(i), .source = "nap " + hurry});
        out.recipes.emplace(r.id(), r);
        out.uses.push_back(
            {.recipe = r.id(), .arch = "sm_90", .kind = "cubin", .key = {}, .from = "compiled", .ns = i});
    }
    return out;
}

class replay_load_test : public ::testing::Test {
protected:
    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-replay").value();
    std::string file_ = scratch_.path() / "long.profile";
    event_log events_;
    engine engine_{{.settings = {{"KILN_CACHE_DIR", scratch_.path() / "cache"},
                                 {"KILN_WORKER", fault_worker()},
                                 {"KILN_WORKERS", "2"},
                                 {"KILN_CUDA_PATH", KILN_TEST_CUDA_PATH}},
                    .events = &events_}};
    int asked_ = 0;

    // The median time a caller waits for something new, in ms.
    double foreground_ms() {
        std::vector<double> times;
        for (int i = 0; i < 15; ++i) {
            base::stopwatch const watch;
            EXPECT_TRUE(engine_.artifact_sync(made_at_once("asked" + std::to_string(asked_++)), sm90()));
            times.push_back(watch.ms());
        }
        std::ranges::nth_element(times, times.begin() + 7);
        return times[7];
    }
};

TEST_F(replay_load_test, G10_callers_go_before_ten_thousand_recipes_on_a_busy_host) {
    auto const hurry = scratch_.path() / "hurry";
    warmup::write_profile(file_, long_profile(hurry)).value();
    std::vector<std::jthread> busy;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
        busy.emplace_back([](std::stop_token const& stop) {
            for (std::uint64_t volatile n = 0; !stop.stop_requested();) n = n + 1;
        });
    }
    double const alone = foreground_ms();

    std::atomic<std::uint64_t> done = 0;
    auto const token = on_progress([&](progress_report const& r) { done = r.done; }, engine_);
    base::stopwatch const whole;
    auto const replayed = replay_profile(file_, {.targets = {sm90()}, .engine = &engine_}).value();
    double const call_ms = whole.ms();
    EXPECT_EQ(replayed.demanded, recipes);
    EXPECT_EQ(replayed.stale, 0u);
    // Thousands are in the queue of the compilers, which is seconds of work, and more are on their way there.
    ASSERT_TRUE(eventually([&] { return done > 0 && status(engine_).queued > 2000; }, 60s * slowness));

    double const beside = foreground_ms();
    std::vector<double> demands;
    for (int i = 0; i < 15; ++i) {
        base::stopwatch const watch;
        demand({made_at_once("demanded" + std::to_string(i))}, {.targets = {sm90()}, .engine = &engine_});
        demands.push_back(watch.ms());
    }
    std::ranges::nth_element(demands, demands.begin() + 7);
    auto const done_meanwhile = done.load();
    EXPECT_LT(done_meanwhile, recipes - 2000) << "the replay was over before it could disturb anybody";

    busy.clear();
    std::ofstream{hurry}.put('\n');
    ASSERT_TRUE(eventually([&] { return done == recipes + 15; }, 120s * slowness));
    RecordProperty("alone_ms", std::to_string(alone));
    RecordProperty("beside_ms", std::to_string(beside));
    std::printf(
        "a caller waits %.2f ms, beside the replay %.2f ms; a demand takes %.3f ms; the call %.0f ms; "
        "%llu done when measured, all after %.1f s\n",
        alone, beside, demands[7], call_ms, static_cast<unsigned long long>(done_meanwhile), whole.ms() * 1e-3);
    EXPECT_LT(beside, std::max(10 * alone, 100.0 * slowness)) << "all of it takes seconds";
    EXPECT_LT(demands[7], 5.0 * slowness);
    EXPECT_EQ(engine_.status().compiled, recipes + 15 + 30) << "each of them once";
}

}  // namespace
}  // namespace kiln::compile::testing
