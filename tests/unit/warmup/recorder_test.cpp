// SPDX-License-Identifier: Apache-2.0
// What is written down of what a program used, with an engine that compiles nothing.
#include "warmup/profile_file.hpp"

#include "support/fake_engine.hpp"

#include <kiln/plan.hpp>
#include <kiln/profile.hpp>

#include <future>
#include <set>

namespace kiln::warmup {
namespace {

class recording : public testing_support::fake_engine {};

TEST_F(recording, units_that_differ_only_in_their_directories_are_two_recipes_and_replay_makes_both) {
    write("a/q.h", "1");
    write("b/q.h", "4");
    record_profile(path("two.profile"), engine_);
    (void)engine_.artifact_sync(reading("p", {path("a")}), sm90()).value();
    (void)engine_.artifact_sync(reading("p", {path("b")}), sm90()).value();
    (void)engine_.artifact_sync(reading("p", {path("a")}), sm90()).value();
    auto const read = read_profile(path("two.profile")).value();
    EXPECT_EQ(read.recipes.size(), 2u);
    ASSERT_EQ(read.uses.size(), 2u);
    EXPECT_NE(read.uses[0].key, read.uses[1].key);
    auto const again = replay_profile(path("two.profile"), {.targets = {sm90()}, .engine = &engine_}).value();
    EXPECT_EQ(again.demanded, 2u);
}

TEST_F(recording, directories_are_written_so_that_they_mean_the_same_elsewhere) {
    write("here/inc/q.h", "1");
    record_profile(path("one.profile"), engine_);
    auto const before = std::filesystem::current_path();
    std::filesystem::current_path(path("here"));
    auto const got = engine_.artifact_sync(reading("p", {"inc"}), sm90());
    std::filesystem::current_path(before);
    ASSERT_TRUE(got);
    auto const read = read_profile(path("one.profile")).value();
    ASSERT_EQ(read.recipes.size(), 1u);
    auto const u = engine_detail::unit_of(read.recipes.begin()->second).value();
    ASSERT_EQ(u.include_dirs.size(), 1u);
    EXPECT_EQ(u.include_dirs[0], path("here/inc"));
}

TEST_F(recording, ends_where_it_is_stopped) {
    write("a/q.h", "1");
    write("b/q.h", "4");
    auto kept = record_profile(path("part.profile"), engine_);
    (void)engine_.artifact_sync(reading("p", {path("a")}), sm90()).value();
    kept.stop();
    (void)engine_.artifact_sync(reading("p", {path("b")}), sm90()).value();
    kept.stop();
    EXPECT_EQ(read_profile(path("part.profile")).value().uses.size(), 1u);
}

// Looks, when it is told, whether whoever waits has its answer already.
class bystander final : public engine_detail::use_observer {
public:
    explicit bystander(std::future<pending<obtained>> asked) : asked_{std::move(asked)} {}
    void used(engine_detail::use_record const&) override { seen_.set_value(asked_.get().ready()); }
    [[nodiscard]] bool saw_an_answer() { return seen_.get_future().get(); }

private:
    std::future<pending<obtained>> asked_;
    std::promise<bool> seen_;
};

TEST_F(recording, hears_of_an_answer_before_whoever_waits_for_it) {
    std::promise<pending<obtained>> asked;
    auto const watch = std::make_shared<bystander>(asked.get_future());
    engine_.internals().uses.add(watch);
    compiler_.hold();
    auto const coming = engine_.artifact(unit_named("k"), sm90());
    asked.set_value(coming);
    compiler_.let_go();
    EXPECT_TRUE(coming.wait_sync());
    EXPECT_FALSE(watch->saw_an_answer()) << "whoever waits could have ended the recording already";
}

TEST_F(recording, can_be_written_without_a_run) {
    write("a/q.h", "1");
    auto const what = reading("p", {path("a")});
    kiln::write_profile(path("none.profile"), {what, what}).value();
    auto const again = replay_profile(path("none.profile"), {.targets = {sm90()}, .engine = &engine_}).value();
    EXPECT_EQ(again.demanded, 1u);
    EXPECT_EQ(kiln::write_profile(path("none.profile"), {"nosuch"}).error().code(), errc::not_found);
}

}  // namespace
}  // namespace kiln::warmup
