// SPDX-License-Identifier: Apache-2.0
#include "coordinator_fixture.hpp"

#include <new>
#include <stdexcept>

namespace kiln::engine_detail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string image_of(obtained const& got) { return std::string{base::as_text(got.what->image)}; }

TEST_F(coordinator_fixture, however_many_ask_it_is_compiled_once) {
    compiler_.hold();
    auto const first = requests().ask(order_of(unit_named("k")), priority::declared);
    EXPECT_FALSE(first.joined);
    compiler_.wait_for_begun(1);
    std::vector<pending<obtained>> others;
    for (int n = 0; n < 8; ++n) {
        auto const next = requests().ask(order_of(unit_named("k")), priority::declared);
        EXPECT_TRUE(next.joined);
        others.push_back(next.answer);
    }
    compiler_.let_go();
    auto const key = first.answer.wait_sync().value().what->key;
    for (auto const& o : others) EXPECT_EQ(o.wait_sync().value().what->key, key);
    EXPECT_EQ(compiler_.begun().size(), 1u);
    EXPECT_EQ(get(unit_named("k")).value().from, provenance::memory);
}

TEST_F(coordinator_fixture, the_same_text_with_other_directories_is_another_thing) {
    write("a/q.h", "1");
    write("b/q.h", "4");
    auto const a = reading("p", {path("a")});
    auto const b = reading("p", {path("b")});
    ASSERT_EQ(order_of(a).subject.id.request, order_of(b).subject.id.request) << "what makes this hard";
    compiler_.hold();
    auto const pa = ask(a);
    auto const pb = ask(b);
    compiler_.let_go();
    EXPECT_THAT(image_of(pa.wait_sync().value()), HasSubstr("1"));
    EXPECT_THAT(image_of(pb.wait_sync().value()), HasSubstr("4"));
    for (int n = 0; n < 2; ++n) {
        EXPECT_THAT(image_of(get(a).value()), HasSubstr("1"));
        EXPECT_THAT(image_of(get(b).value()), HasSubstr("4"));
    }
    EXPECT_EQ(compiler_.begun().size(), 2u);
    auto const status = book_.report();
    ASSERT_EQ(status.units.size(), 2u) << "a line each";
    EXPECT_EQ(status.units[0].name, status.units[1].name);
}

TEST_F(coordinator_fixture, directories_mean_nothing_to_a_text_that_includes_nothing) {
    auto here = unit_named("k");
    auto there = here;
    here.include_dirs = {path("here")};
    there.include_dirs = {path("there")};
    EXPECT_EQ(identity(here), identity(there));
}

TEST_F(coordinator_fixture, one_units_failure_is_not_anothers_of_the_same_text) {
    write("a/q.h", "1");
    write("b/q.h", "4");
    compiler_.next_time("p", [] { return fail(errc::compile_failed, "not today"); });
    EXPECT_EQ(get(reading("p", {path("a")})).error().code(), errc::compile_failed);
    EXPECT_TRUE(get(reading("p", {path("b")})));
    auto const status = book_.report();
    EXPECT_EQ(status.failed, 1u);
    EXPECT_EQ(status.ready, 1u);
}

TEST_F(coordinator_fixture, a_failure_is_remembered_for_a_moment) {
    options_.failure_memory = std::chrono::hours{1};
    compiler_.next_time("k", [] { return fail(errc::compile_failed, "not today"); });
    EXPECT_FALSE(get(unit_named("k")));
    EXPECT_EQ(get(unit_named("k")).error().message(), "not today");
    EXPECT_EQ(compiler_.begun().size(), 1u);
    requests().forget_failures();
    EXPECT_TRUE(get(unit_named("k")));
    EXPECT_EQ(compiler_.begun().size(), 2u);
}

TEST_F(coordinator_fixture, a_failure_that_nobody_knows_the_headers_of_is_not_remembered) {
    options_.failure_memory = std::chrono::hours{1};
    write("a/q.h", "broken");
    compiler_.next_time("p", [] { return fail(errc::compile_failed, "not today"); });
    EXPECT_FALSE(get(reading("p", {path("a")})));
    write("a/q.h", "mended");
    EXPECT_THAT(image_of(get(reading("p", {path("a")})).value()), HasSubstr("mended"));
}

TEST_F(coordinator_fixture, nor_is_that_a_header_could_not_be_read) {
    options_.failure_memory = std::chrono::hours{1};
    write("a/q.h", "there");
    compiler_.next_time("p", [] { return fail(errc::io, "a/q.h: Permission denied"); });
    EXPECT_EQ(get(reading("p", {path("a")})).error().code(), errc::io);
    EXPECT_THAT(image_of(get(reading("p", {path("a")})).value()), HasSubstr("there"));
}

TEST_F(coordinator_fixture, and_not_at_all_where_the_moment_is_none) {
    options_.failure_memory = std::chrono::milliseconds{0};
    compiler_.next_time("k", [] { return fail(errc::compile_failed, "not today"); });
    EXPECT_FALSE(get(unit_named("k")));
    EXPECT_TRUE(get(unit_named("k")));
}

TEST_F(coordinator_fixture, what_is_raised_goes_first_and_equals_keep_their_order) {
    keep_busy();
    std::vector<pending<obtained>> all;
    for (auto const* name : {"b", "c", "d", "e"}) all.push_back(ask(unit_named(name)));
    all.push_back(ask(unit_named("f"), priority::predicted));
    auto const last = ask(unit_named("g"), priority::predicted);
    while (pool_->count().queued < 6) std::this_thread::yield();
    // Asked for as urgently as before, or less, changes nothing.
    (void)ask(unit_named("c"), priority::declared);
    (void)ask(unit_named("c"), priority::predicted);
    requests().raise(identity(unit_named("d")), priority::declared);
    requests().raise(identity(unit_named("b")), priority::predicted);
    requests().raise(identity(unit_named("f")), priority::planned);
    requests().raise(identity(unit_named("nobody asked for this")), priority::blocking);
    compiler_.let_go();
    for (auto const& p : all) EXPECT_TRUE(p.wait_sync());
    EXPECT_TRUE(last.wait_sync());
    EXPECT_THAT(compiler_.begun(), ElementsAre("first", "f", "b", "c", "d", "e", "g"));
}

TEST_F(coordinator_fixture, withdrawn_by_all_who_asked_it_is_not_compiled) {
    keep_busy();
    auto const one = ask(unit_named("k"));
    auto const two = ask(unit_named("k"));
    while (pool_->count().queued < 1) std::this_thread::yield();
    requests().cancel(identity(unit_named("k")));
    EXPECT_FALSE(one.ready()) << "another still wants it";
    requests().cancel(identity(unit_named("k")));
    EXPECT_EQ(one.wait_sync().error().code(), errc::cancelled);
    EXPECT_EQ(two.wait_sync().error().code(), errc::cancelled);
    EXPECT_EQ(requests().status().requests, 0u) << "what was withdrawn is nobody's request";
    auto const again = ask(unit_named("k"));
    compiler_.let_go();
    EXPECT_TRUE(again.wait_sync()) << "whoever asks from now on starts afresh";
    EXPECT_THAT(compiler_.begun(), ElementsAre("first", "k"));
}

TEST_F(coordinator_fixture, what_a_process_already_has_cannot_be_withdrawn) {
    compiler_.hold();
    auto const first = ask(unit_named("k"));
    compiler_.wait_for_begun(1);
    while (told(event_kind::compiling).empty()) std::this_thread::yield();
    requests().cancel(identity(unit_named("k")));
    auto const second = requests().ask(order_of(unit_named("k")), priority::declared);
    EXPECT_TRUE(second.joined) << "it is still under way, and this joins it";
    compiler_.let_go();
    EXPECT_TRUE(first.wait_sync());
    EXPECT_TRUE(second.answer.wait_sync());
    EXPECT_EQ(compiler_.begun().size(), 1u);
}

TEST_F(coordinator_fixture, forbid_says_what_is_missing_and_compiles_nothing) {
    options_.jit = jit_policy::forbid;
    auto const r = get(unit_named("k"));
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), errc::forbidden);
    EXPECT_THAT(r.error().message(), HasSubstr("'k' for sm_90 cubin"));
    EXPECT_TRUE(compiler_.begun().empty());
    EXPECT_EQ(told(event_kind::missed).size(), 1u);
}

TEST_F(coordinator_fixture, warn_compiles_and_says_so) {
    options_.jit = jit_policy::warn;
    EXPECT_TRUE(get(unit_named("k")));
    auto const warned = told(event_kind::warned);
    ASSERT_EQ(warned.size(), 1u);
    EXPECT_EQ(warned[0].reason.view(), "jit");
}

TEST_F(coordinator_fixture, without_a_compiler_it_is_not_found_and_the_remedy_is_named) {
    auto const r = get(order_of(unit_named("k"), sm("90"), ""));
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), errc::not_found);
    EXPECT_THAT(r.error().message(), HasSubstr("pip install"));
}

TEST_F(coordinator_fixture, one_decision_leaves_one_event_and_the_numbers_add_up) {
    auto const u = reading("k", {path("a")});
    write("a/q.h", "1");
    auto const made = get(u).value();
    auto const key = base::digest::from_hex(made.what->key)->prefix();
    auto const missed = told(event_kind::missed);
    auto const compiled = told(event_kind::compiled);
    ASSERT_EQ(missed.size(), 1u);
    ASSERT_EQ(compiled.size(), 1u);
    EXPECT_EQ(missed[0].key, 0u) << "not known before the headers were read";
    EXPECT_EQ(compiled[0].key, key);
    EXPECT_EQ(missed[0].request, identity(u).prefix());
    EXPECT_EQ(compiled[0].request, missed[0].request);
    EXPECT_EQ(told(event_kind::found).size(), 0u);
    EXPECT_EQ(get(u).value().from, provenance::memory);
    auto const found = told(event_kind::found);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].key, key);
    EXPECT_EQ(told(event_kind::missed).size(), 1u);

    compiler_.next_time("bad", [] { return fail(errc::compile_failed, "not today"); });
    EXPECT_FALSE(get(unit_named("bad")));
    auto const s = requests().status();
    EXPECT_EQ(s.compiled, 1u);
    EXPECT_EQ(s.from_memory, 1u);
    EXPECT_EQ(s.failed, 1u);
    EXPECT_EQ(s.requests, 3u);
    EXPECT_EQ(s.in_progress, 0u);
}

TEST_F(coordinator_fixture, the_key_is_told_in_advance_where_no_header_can_change_it) {
    auto const made = get(unit_named("k")).value();
    ASSERT_EQ(told(event_kind::missed).size(), 1u);
    EXPECT_EQ(told(event_kind::missed)[0].key, base::digest::from_hex(made.what->key)->prefix());
}

TEST_F(coordinator_fixture, finding_compiles_nothing_and_joins_nothing) {
    compiler_.hold();
    auto const later = ask(unit_named("k"));
    compiler_.wait_for_begun(1);
    EXPECT_FALSE(requests().find(order_of(unit_named("k"))));
    compiler_.let_go();
    EXPECT_TRUE(later.wait_sync());
    EXPECT_TRUE(requests().find(order_of(unit_named("k"))));
    EXPECT_FALSE(requests().find(order_of(unit_named("other"))));
    EXPECT_EQ(compiler_.begun().size(), 1u);
}

TEST_F(coordinator_fixture, going_down_answers_everybody) {
    keep_busy();
    auto const queued = ask(unit_named("k"));
    requests().stop();
    pool_->stop();
    requests().abandon();
    EXPECT_EQ(queued.wait_sync().error().code(), errc::cancelled);
    EXPECT_EQ(ask(unit_named("late")).wait_sync().error().code(), errc::cancelled);
}

TEST_F(coordinator_fixture, whatever_fails_once_is_told_and_the_next_ask_succeeds) {
    options_.failure_memory = std::chrono::milliseconds{0};
    std::vector<std::function<result<compile::product>()>> const faults{
        [] { return fail(errc::compile_failed, "text"); },
        [] { return fail(errc::worker_failed, "crashed"); },
        [] { return fail(errc::timeout, "hung"); },
        [] { return fail(errc::io, "full"); },
        []() -> result<compile::product> { throw std::bad_alloc{}; },
        []() -> result<compile::product> { throw std::runtime_error{"surprise"}; },
    };
    std::vector<errc> const codes{errc::compile_failed, errc::worker_failed, errc::timeout, errc::io,
                                  errc::out_of_memory,  errc::internal};
    for (std::size_t n = 0; n < faults.size(); ++n) {
        auto const u = unit_named("k" + std::to_string(n));
        compiler_.next_time(u.name, faults[n]);
        auto const r = get(u);
        ASSERT_FALSE(r);
        EXPECT_EQ(r.error().code(), codes[n]) << r.error().message();
        EXPECT_FALSE(requests().find(order_of(u))) << "nothing of it is kept";
        EXPECT_EQ(get(u).value().from, provenance::compiled);
    }
    EXPECT_EQ(requests().status().failed, faults.size());
}

TEST_F(coordinator_fixture, the_nearest_artifact_serves_a_device_and_is_named_where_it_may_not) {
    ship(unit_named("k"), sm("80"), fake::toolchain);
    options_.jit = jit_policy::forbid;
    auto to_load = order_of(unit_named("k"), sm("86"));
    to_load.subject.device = sm("86").arch;
    auto const near = get(to_load).value();
    EXPECT_EQ(near.from, provenance::bundle);
    EXPECT_EQ(near.what->target, sm("80"));
    EXPECT_EQ(near.note, "sm_80 serves sm_86");
    auto const exact = get(order_of(unit_named("k"), sm("86")));
    ASSERT_FALSE(exact) << "an artifact for sm_86 is asked for, not something that runs there";
    EXPECT_THAT(exact.error().message(), HasSubstr("nearest found: sm_80 cubin"));
}

TEST_F(coordinator_fixture, the_nearest_is_the_nearest_and_what_is_held_is_listed) {
    ship(unit_named("k"), {sm("80"), sm("86"), sm("89"), sm("90"), sm("100"), sm("120")}, fake::toolchain);
    options_.jit = jit_policy::forbid;
    for (auto const& [asked, nearest] :
         {std::pair{"87", "sm_86"}, {"88", "sm_89"}, {"75", "sm_80"}, {"103", "sm_100"}}) {
        auto const r = get(order_of(unit_named("k"), sm(asked)));
        ASSERT_FALSE(r);
        EXPECT_THAT(r.error().message(), HasSubstr(fmt::format("nearest found: {} cubin", nearest))) << asked;
        EXPECT_THAT(r.error().message(), HasSubstr("held for sm_80, sm_86, sm_89, sm_90, sm_100, sm_120"));
        EXPECT_THAT(r.error().message(), HasSubstr("in bundle")) << "also when it was looked at before";
    }
}

TEST_F(coordinator_fixture, where_the_target_is_right_the_error_says_what_is_not) {
    write("here/q.h", "new");
    auto const u = reading("k", {path("here")});
    ship(u, sm("90"), fake::toolchain, {{dependency::root::include_directory, 0, "q.h", base::sha256_of("old").hex()}});
    options_.jit = jit_policy::forbid;
    auto const edited = get(u);
    ASSERT_FALSE(edited);
    EXPECT_THAT(edited.error().message(), HasSubstr("nearest found: sm_90 cubin"));
    EXPECT_THAT(edited.error().message(), HasSubstr(path("here/q.h") + " changed"));

    auto other = unit_named("k");
    other.options = {"-DA=2"};
    auto const another = get(other);
    ASSERT_FALSE(another);
    EXPECT_THAT(another.error().message(), HasSubstr("options: '-DA=2' is asked, '-' is kept"));
    EXPECT_THAT(another.error().message(), HasSubstr("another source"));
    EXPECT_THAT(get(unit_named("nowhere")).error().message(), HasSubstr("nearest found: nothing of this unit"));
}

TEST_F(coordinator_fixture, the_error_says_why_something_was_refused) {
    ship(unit_named("k"), sm("90"), fake::toolchain);
    auto data = **base::read_file(path("shipped.kiln"));
    data.resize(data.size() / 2);
    base::replace_file(path("shipped.kiln"), data).value();
    options_.jit = jit_policy::forbid;
    auto const r = get(unit_named("k"));
    ASSERT_FALSE(r);
    EXPECT_THAT(r.error().message(), HasSubstr("refused: " + path("shipped.kiln") + ": "));
}

TEST_F(coordinator_fixture, a_bundle_of_another_compiler_serves) {
    ship(unit_named("k"), sm("90"), "nvrtc of another time");
    auto const got = get(unit_named("k")).value();
    EXPECT_EQ(got.from, provenance::bundle);
    EXPECT_EQ(got.note, "made by another compiler");
    EXPECT_TRUE(compiler_.begun().empty());
}

TEST_F(coordinator_fixture, a_bundle_seals_headers_that_are_gone_and_none_that_differ) {
    auto const u = reading("k", {path("inc")});
    auto const content = base::sha256_of(std::string_view{"1"}).hex();
    ship(u, sm("90"), fake::toolchain, {{dependency::root::include_directory, 0, "q.h", content}});
    EXPECT_EQ(get(u).value().from, provenance::bundle) << "the machine lacks the header";
    write("inc/q.h", "4");
    auto const made = get(u).value();
    EXPECT_EQ(made.from, provenance::compiled) << "the machine's header says something else";
    EXPECT_THAT(image_of(made), HasSubstr("4"));
}

TEST_F(coordinator_fixture, a_header_edited_is_another_artifact_and_edited_back_the_first) {
    auto const u = reading("k", {path("inc")});
    write("inc/q.h", "1");
    auto const first = get(u).value();
    write("inc/q.h", "4");
    auto const second = get(u).value();
    EXPECT_NE(first.what->key, second.what->key);
    ASSERT_EQ(told(event_kind::missed).size(), 2u);
    EXPECT_EQ(told(event_kind::missed)[1].reason.view(), "header-changed");
    write("inc/q.h", "1");
    EXPECT_EQ(get(u).value().what->key, first.what->key);
    EXPECT_EQ(compiler_.begun().size(), 2u);
}

}  // namespace
}  // namespace kiln::engine_detail
