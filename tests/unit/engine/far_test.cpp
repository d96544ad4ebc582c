// SPDX-License-Identifier: Apache-2.0
// What the coordinator does with tiers that answer later.
#include "coordinator_fixture.hpp"
#include "engine/awaited.hpp"
#include "support/fake_fleet.hpp"

#include <future>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::engine_detail {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class far_tiers : public coordinator_fixture {
protected:
    far_tiers() {
        options_.least_shared_ms = 0;
        (void)requests();
        store_->add_tier(far_);
    }
    ~far_tiers() override {
        go_down();
        requests_.reset();
        store_.reset();  // its claims speak to far_
    }
    // The entry another machine would have made of this unit.
    store::entry_ptr made_elsewhere(unit const& u, std::vector<dependency> read = {}) {
        artifact a{.unit = u.name, .target = sm("90"), .toolchain = fake::toolchain};
        a.image = {std::byte{42}};
        a.dependencies = std::move(read);
        return entry_for(order_of(u), a, "elsewhere");
    }
    std::shared_ptr<test::fake_fleet> far_ = std::make_shared<test::fake_fleet>(test::fake_fleet::answers::later);
};

TEST_F(far_tiers, a_hit_is_the_answer_and_nothing_is_compiled) {
    auto const u = unit_named("u");
    auto answer = ask(u);
    auto const q = far_->next();
    EXPECT_EQ(q.what.request, order_of(u).subject.id.request);
    EXPECT_TRUE(q.what.key) << "the unit reads no file";
    EXPECT_EQ(q.what.claims, store::claiming::wanted);
    EXPECT_EQ(q.what.how, store::urgency::nobody_waits);
    q.then({.hit = made_elsewhere(u)});
    auto const got = answer.wait_sync().value();
    EXPECT_EQ(got.from, provenance::fleet);
    EXPECT_EQ(got.what->image, base::bytes{std::byte{42}});
    EXPECT_TRUE(compiler_.begun().empty());
    EXPECT_TRUE(told(event_kind::missed).empty()) << "one decision, one event";
    EXPECT_EQ(requests().status().from_fleet, 1u);
    // In memory from now on: nobody far away is asked.
    EXPECT_EQ(get(u).value().from, provenance::memory);
}

TEST_F(far_tiers, a_miss_is_compiled_and_sent_there_under_the_claim) {
    auto const u = unit_named("u");
    auto answer = ask(u);
    far_->next().then({.mine = far_->claim()});
    EXPECT_EQ(answer.wait_sync().value().from, provenance::compiled);
    far_->wait_for_notes(3);
    EXPECT_THAT(far_->notes(), ElementsAre("made", "put u", "let go"));
    EXPECT_EQ(told(event_kind::missed).size(), 1u);
}

TEST_F(far_tiers, who_cannot_publish_says_so) {
    compiler_.next_time("bad", [] { return result<compile::product>{fail(errc::compile_failed, "no")}; });
    auto answer = ask(unit_named("bad"));
    far_->next().then({.mine = far_->claim()});
    EXPECT_FALSE(answer.wait_sync());
    far_->wait_for_notes(2);
    EXPECT_THAT(far_->notes(), ElementsAre("open failed", "let go"));
}

TEST_F(far_tiers, what_compiles_in_no_time_is_not_shared) {
    go_down();
    requests_.reset();
    store_.reset();
    options_.least_shared_ms = 10;
    compiler_.let_go();
    (void)requests();
    store_->add_tier(far_);
    auto answer = ask(unit_named("quick"));
    far_->next().then({.mine = far_->claim()});
    EXPECT_EQ(answer.wait_sync().value().from, provenance::compiled);
    far_->wait_for_notes(3);
    EXPECT_THAT(far_->notes(), ElementsAre("made", "open not-shared", "let go"));
}

TEST_F(far_tiers, who_is_late_does_not_hold_up_a_compile) {
    auto answer = ask(unit_named("u"));
    auto const q = far_->next();
    q.then({.late = "fleet-late", .is_last = false});
    EXPECT_EQ(answer.wait_sync().value().from, provenance::compiled);
    ASSERT_EQ(told(event_kind::fell_back).size(), 1u);
    EXPECT_EQ(told(event_kind::fell_back)[0].reason.view(), "fleet-late");
    q.then({.hit = made_elsewhere(unit_named("u"))});  // too late: dropped
    EXPECT_EQ(requests().status().requests, 1u);
}

TEST_F(far_tiers, who_is_held_up_and_keeps_no_time_does_not_hold_up_a_compile) {
    auto answer = ask(unit_named("u"));
    auto const q = far_->next();
    far_->held_up = true;
    EXPECT_EQ(answer.wait_sync(std::chrono::seconds{10}).value().from, provenance::compiled);
    ASSERT_EQ(told(event_kind::fell_back).size(), 1u);
    EXPECT_EQ(told(event_kind::fell_back)[0].reason.view(), "fleet-late");
    q.then({.hit = made_elsewhere(unit_named("u"))});  // too late: dropped
    // Who answers again is waited for again.
    far_->held_up = false;
    auto next = ask(unit_named("next"));
    far_->next().then({.hit = made_elsewhere(unit_named("next"))});
    EXPECT_EQ(next.wait_sync().value().from, provenance::fleet);
}

TEST_F(far_tiers, whichever_comes_first_is_the_answer) {
    compiler_.hold();
    auto answer = ask(unit_named("u"));
    auto const q = far_->next();
    q.then({.late = "fleet-late", .is_last = false});
    compiler_.wait_for_begun(1);
    q.then({.hit = made_elsewhere(unit_named("u"))});
    EXPECT_EQ(answer.wait_sync().value().from, provenance::fleet);
    compiler_.let_go();
    // The compile that ends afterwards counts for nothing.
    EXPECT_EQ(get(unit_named("u")).value().from, provenance::memory);
    auto const s = requests().status();
    EXPECT_EQ(s.requests, 2u);
    EXPECT_EQ(s.compiled, 0u);
}

TEST_F(far_tiers, R5_what_was_given_up_as_late_and_not_begun_is_asked_for_once_more_when_they_answer) {
    compiler_.hold();
    auto const u = unit_named("u"), v = unit_named("v"), w = unit_named("w");
    auto first = ask(u), second = ask(v), third = ask(w);
    auto const of_u = far_->next(), of_v = far_->next(), of_w = far_->next();
    for (auto const* q : {&of_u, &of_v, &of_w}) q->then({.late = "fleet-late", .is_last = false});
    compiler_.wait_for_begun(1);
    // They answer after all: what a worker has it keeps.
    for (auto const* q : {&of_u, &of_v, &of_w}) q->then({});
    auto const again = far_->next(), too = far_->next();
    EXPECT_EQ(again.what.request, of_v.what.request);
    EXPECT_EQ(again.what.claims, store::claiming::wanted) << "others may be at it";
    again.then({.hit = made_elsewhere(v)});
    EXPECT_EQ(second.wait_sync().value().from, provenance::fleet);
    // Late again: made here, and that is that.
    too.then({.late = "fleet-late", .is_last = false});
    too.then({});
    compiler_.let_go();
    EXPECT_EQ(first.wait_sync().value().from, provenance::compiled);
    EXPECT_EQ(third.wait_sync().value().from, provenance::compiled);
    EXPECT_THAT(compiler_.begun(), ElementsAre("u", "w"));
    EXPECT_EQ(told(event_kind::missed).size(), 3u) << "one for each";
}

TEST_F(far_tiers, who_does_not_answer_after_all_is_not_asked_again) {
    compiler_.hold();
    auto first = ask(unit_named("u")), second = ask(unit_named("v"));
    auto const of_u = far_->next(), of_v = far_->next();
    for (auto const* q : {&of_u, &of_v}) q->then({.late = "fleet-late", .is_last = false});
    compiler_.wait_for_begun(1);
    for (auto const* q : {&of_u, &of_v}) q->then({.why = store::miss::disabled});
    compiler_.let_go();
    EXPECT_EQ(second.wait_sync().value().from, provenance::compiled);
    EXPECT_EQ(first.wait_sync().value().from, provenance::compiled);
}

TEST_F(far_tiers, a_claim_that_comes_while_it_is_made_is_kept_until_it_is_sent) {
    compiler_.hold();
    auto const u = unit_named("u");
    auto answer = ask(u);
    auto const q = far_->next();
    q.then({.late = "fleet-late", .is_last = false});
    compiler_.wait_for_begun(1);
    q.then({.mine = far_->claim()});
    auto after = ask(unit_named("v"));  // heard of after the claim
    far_->next().then({.hit = made_elsewhere(unit_named("v"))});
    (void)after.wait_sync();
    compiler_.let_go();
    EXPECT_EQ(answer.wait_sync().value().from, provenance::compiled);
    far_->wait_for_notes(3);
    EXPECT_THAT(far_->notes(), ElementsAre("made", "put u", "let go"));
}

TEST_F(far_tiers, made_from_other_headers_the_next_one_is_asked_for) {
    write("here/q.h", "here");
    auto const u = reading("u", {path("here")});
    dependency elsewhere{dependency::root::include_directory, 0, "q.h", base::sha256_of("elsewhere").hex()};
    dependency same{dependency::root::include_directory, 0, "q.h", base::sha256_of("here").hex()};
    auto answer = ask(u);
    auto const first = far_->next();
    EXPECT_FALSE(first.what.key);
    EXPECT_EQ(first.what.nth, 0u);
    first.then({.hit = made_elsewhere(u, {elsewhere})});
    auto const second = far_->next();
    EXPECT_EQ(second.what.nth, 1u);
    second.then({.hit = made_elsewhere(u, {same})});
    EXPECT_EQ(answer.wait_sync().value().from, provenance::fleet);
}

TEST_F(far_tiers, without_a_compiler_the_error_names_what_they_said) {
    auto const o = order_of(unit_named("u"), sm("90"), "");
    auto answer = requests().ask(o, priority::declared).answer;
    auto const q = far_->next();
    EXPECT_FALSE(q.what.request);
    EXPECT_EQ(q.what.how, store::urgency::nothing_else_will_do);
    EXPECT_EQ(q.what.claims, store::claiming::no);
    q.then({.why = store::miss::disabled, .detail = "the server does not answer"});
    auto const got = answer.wait_sync();
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), errc::not_found);
    EXPECT_THAT(std::string{got.error().message()}, HasSubstr("the server does not answer"));
}

TEST_F(far_tiers, an_answer_after_the_end_reaches_nobody) {
    auto answer = ask(unit_named("u"));
    auto const q = far_->next();
    go_down();
    EXPECT_EQ(answer.wait_sync().error().code(), errc::cancelled);
    requests_.reset();
    q.then({.hit = made_elsewhere(unit_named("u"))});
}

TEST_F(far_tiers, R1_who_waits_for_what_was_demanded_waits_no_longer_than_others) {
    auto const u = unit_named("u");
    (void)ask(u);
    auto const first = far_->next();
    ASSERT_EQ(first.what.how, store::urgency::nobody_waits);
    auto waiting = requests().ask(order_of(u), priority::blocking).answer;
    auto const second = far_->next();
    EXPECT_EQ(second.what.how, store::urgency::somebody_waits);
    EXPECT_EQ(second.what.claims, store::claiming::no) << "the first has the claim, if anybody";
    second.then({.late = "fleet-late", .is_last = false});
    EXPECT_EQ(waiting.wait_sync().value().from, provenance::compiled);
    first.then({.hit = made_elsewhere(u)});  // nobody cares any more
}

// The same through a pending of artifact() or get(), which was asked for by somebody who did not wait then.
TEST_F(far_tiers, R1_who_comes_to_wait_for_a_pending_waits_no_longer_than_others) {
    auto const u = unit_named("u");
    auto const asked = requests().ask(order_of(u), priority::declared);
    auto const mine = std::make_shared<pending<obtained>::state>();
    auto const awaited = requests().make_awaited();
    mine->blocked = [awaited](blocked_wait const& how) { return awaited->tell(how); };
    awaited->is_for(asked);
    asked.answer.then([mine](result<obtained> const& got) { mine->finish(got); });
    auto const first = far_->next();
    ASSERT_EQ(first.what.how, store::urgency::nobody_waits);
    auto waiting = std::async(std::launch::async, [&] { return pending<obtained>{mine}.wait_sync(); });
    auto const second = far_->next();
    EXPECT_EQ(second.what.how, store::urgency::somebody_waits);
    second.then({.late = "fleet-late", .is_last = false});
    EXPECT_EQ(waiting.get().value().from, provenance::compiled);
    EXPECT_EQ(requests().status().blocked, 1u);
    EXPECT_EQ(told(event_kind::waited).size(), 1u);
    first.then({});
    // It is there: nobody is blocked, and nobody is told of a wait.
    EXPECT_TRUE(pending<obtained>{mine}.wait_sync());
    EXPECT_EQ(told(event_kind::waited).size(), 1u);
    // After the end there is nobody to tell.
    go_down();
    requests_.reset();
    awaited->tell({});
    awaited->tell({.is_over = true});
}

TEST_F(far_tiers, who_looks_again_and_again_is_one_who_waits) {
    auto const mine = std::make_shared<pending<obtained>::state>();
    auto const awaited = requests().make_awaited();
    mine->blocked = [awaited](blocked_wait const& how) { return awaited->tell(how); };
    auto const asked = requests().ask(order_of(unit_named("u")), priority::declared);
    awaited->is_for(asked);
    asked.answer.then([mine](result<obtained> const& got) { mine->finish(got); });
    auto const first = far_->next();
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(pending<obtained>{mine}.wait_sync(std::chrono::milliseconds{1}));
    EXPECT_EQ(requests().status().blocked, 1u);
    EXPECT_EQ(told(event_kind::waited).size(), 1u);
    auto const second = far_->next();
    EXPECT_TRUE(second.what.repeats) << "and no second question";
    // In a child of fork() nobody will answer.
    if (auto const child = ::fork(); child == 0) {
        auto const got = pending<obtained>{mine}.wait_sync(std::chrono::seconds{30});
        ::_exit(!got && got.error().code() == errc::cancelled ? 0 : 1);
    } else {
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    second.then({});
    first.then({.hit = made_elsewhere(unit_named("u"))});
    EXPECT_TRUE(pending<obtained>{mine}.wait_sync(std::chrono::milliseconds::max()));
}

// No thread can be started while it lives: their stacks are larger than all memory.
class without_threads {
public:
    without_threads() {
        EXPECT_EQ(::pthread_getattr_default_np(&before_), 0);
        ::pthread_attr_t huge;
        ::pthread_attr_init(&huge);
        ::pthread_attr_setstacksize(&huge, std::size_t{1} << 47);
        EXPECT_EQ(::pthread_setattr_default_np(&huge), 0);
        ::pthread_attr_destroy(&huge);
    }
    ~without_threads() {
        ::pthread_setattr_default_np(&before_);
        ::pthread_attr_destroy(&before_);
    }
    without_threads(without_threads const&) = delete;
    without_threads& operator=(without_threads const&) = delete;

private:
    ::pthread_attr_t before_{};
};

TEST_F(far_tiers, an_answer_that_no_thread_can_hear_is_an_error_and_whoever_is_told_may_ask_for_more) {
    std::optional<pending<obtained>> asked, more;
    {
        without_threads const none;
        asked = ask(unit_named("u"), priority::blocking);
        asked->then([&](result<obtained> const&) { more = ask(unit_named("v"), priority::blocking); });
        far_->next().then({});
    }
    auto const got = asked->wait_sync(std::chrono::seconds{0});
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), errc::io);
    EXPECT_THAT(got.error().message(), HasSubstr("no thread could be started"));
    ASSERT_TRUE(more);
    far_->next().then({});
    EXPECT_EQ(more->wait_sync().value().from, provenance::compiled);
    EXPECT_THAT(compiler_.begun(), ElementsAre("v"));
}

TEST_F(far_tiers, who_waits_for_a_pending_before_it_is_known_what_for_is_not_forgotten) {
    auto const awaited = requests().make_awaited();
    awaited->tell({});
    awaited->is_for(requests().ask(order_of(unit_named("u")), priority::declared));
    store::urgency last = store::urgency::nobody_waits;
    std::vector<test::fake_fleet::asked> all;
    while (last != store::urgency::somebody_waits) {
        all.push_back(far_->next());
        last = all.back().what.how;
    }
    for (auto const& one : all) one.then({});
}

TEST_F(far_tiers, who_waits_for_what_was_demanded_is_given_its_answer) {
    auto const u = unit_named("u");
    (void)ask(u);
    auto const first = far_->next();
    auto waiting = requests().ask(order_of(u), priority::blocking).answer;
    far_->next().then({});
    first.then({.hit = made_elsewhere(u)});
    EXPECT_EQ(waiting.wait_sync().value().from, provenance::fleet);
    EXPECT_TRUE(compiler_.begun().empty()) << "that it is not there is for the first to say: another may be making it";
}

TEST_F(far_tiers, R14_what_is_being_compiled_is_not_compiled_again_for_who_waits_now) {
    compiler_.hold();
    auto const u = unit_named("u"), v = unit_named("v");
    (void)ask(u);
    auto const first = far_->next();
    auto waiting = requests().ask(order_of(u), priority::blocking).answer;
    auto const second = far_->next();
    first.then({.why = store::miss::disabled});
    compiler_.wait_for_begun(1);
    second.then({.why = store::miss::disabled});
    auto after = ask(v);
    far_->next().then({.why = store::miss::disabled});
    compiler_.let_go();
    EXPECT_EQ(waiting.wait_sync().value().from, provenance::compiled);
    (void)after.wait_sync();
    EXPECT_THAT(compiler_.begun(), ElementsAre("u", "v"));
    EXPECT_TRUE(told(event_kind::fell_back).empty()) << "and nobody is said to have been late";
}

}  // namespace

}  // namespace kiln::engine_detail
