// SPDX-License-Identifier: Apache-2.0
// What a demand does on a machine like this one, without a compiler.
#include "warmup/director.hpp"

#include "base/files.hpp"

#include <gtest/gtest.h>

#include <filesystem>

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

}  // namespace
}  // namespace kiln::warmup
