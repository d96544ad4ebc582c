// SPDX-License-Identifier: Apache-2.0
#include "base/files.hpp"
#include "intercept/foreign_store.hpp"
#include "intercept/program_name.hpp"
#include "intercept/run_events.hpp"

#include <gmock/gmock.h>

namespace kiln::intercept {

using testing::ElementsAre;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

happening made_by_a_worker() {
    return {.kind = happening::what::made,
            .process = 7,
            .maker = 8,
            .by = "python train.py",
            .library = "nvrtc",
            .program = "scan",
            .target = "sm_90",
            .took = 2500us,
            .at = store::address{},
            .detail = "q.h changed"};
}

std::vector<event_kind> kinds_of(happening::what kind) {
    auto h = made_by_a_worker();
    h.kind = kind;
    std::vector<event_kind> out;
    for (auto const& e : events_of(h, 1'000'000'000)) out.push_back(e.kind);
    return out;
}

}  // namespace

TEST(run_log, times_that_nobody_waited_are_cut) {
    auto h = made_by_a_worker();
    h.took = std::chrono::microseconds::max();
    h.cost = std::chrono::milliseconds::max();
    auto const read = from_line(to_line(h));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->took, 24h);
    EXPECT_EQ(read->cost, 24h);
    EXPECT_EQ(cost_in("kiln 1.0 for x, 9223372036854775807 ms"), 24h);
    EXPECT_EQ(cost_in("kiln 1.0 for x, -5 ms"), 0ms);
}

TEST(run_log, a_line_says_all_of_it) {
    auto const h = made_by_a_worker();
    EXPECT_EQ(from_line(to_line(h)), h);
    EXPECT_FALSE(from_line("made\t1\t2"));
    auto forbidden = h;
    forbidden.at.reset();
    forbidden.request = base::sha256_of(base::as_bytes("asked"));
    forbidden.waited = 7us;
    EXPECT_EQ(from_line(to_line(forbidden)), forbidden);
}

TEST(run_log, holds_headers_beside_what_happened) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = (scratch.path() / "log").native();
    append(file, made_by_a_worker());
    EXPECT_FALSE(std::filesystem::exists(file));  // who is left over from a run that has ended makes none
    ASSERT_TRUE(base::replace_file(file, {}).has_value());
    append_headers(file, {"/a/q.h", "relative.h", "/a/line\nbreak.h"});
    append(file, made_by_a_worker());
    append_headers(file, {"/b/r.h"});
    auto const log = read_run_log(file);
    EXPECT_THAT(log.happenings, ElementsAre(made_by_a_worker()));
    EXPECT_THAT(log.headers, ElementsAre("/a/q.h", "/b/r.h"));
    EXPECT_TRUE(parse_run_log("rubbish\nheader\nmade\t1\n\n").happenings.empty());
    EXPECT_TRUE(read_run_log(scratch.path() / "none").headers.empty());
}

TEST(run_log, is_made_while_the_run_lasts) {
    auto const scratch = base::temporary_directory::make().value();
    auto const door = scratch.path() / "door";
    auto const file = log_at(door).native();
    append(file, made_by_a_worker());
    EXPECT_FALSE(std::filesystem::exists(file));
    ASSERT_TRUE(base::replace_file(door, {}).has_value());
    append(file, made_by_a_worker());
    append(file, made_by_a_worker());
    EXPECT_EQ(read_run_log(file).happenings.size(), 2U);
    using std::filesystem::perms;
    EXPECT_EQ(std::filesystem::status(file).permissions() & perms::all, perms::owner_read | perms::owner_write);
    std::filesystem::remove(door);
    append(file, made_by_a_worker());
    EXPECT_EQ(read_run_log(file).happenings.size(), 3U);  // not yet read
    std::filesystem::remove(file);
    append(file, made_by_a_worker());
    EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(run_events, are_those_of_kilns_own_work) {
    using what = happening::what;
    EXPECT_THAT(kinds_of(what::answered), ElementsAre(event_kind::found));
    EXPECT_THAT(kinds_of(what::made),
                ElementsAre(event_kind::missed, event_kind::compiling, event_kind::compiled, event_kind::waited));
    EXPECT_THAT(kinds_of(what::failed),
                ElementsAre(event_kind::missed, event_kind::compiling, event_kind::compile_failed, event_kind::waited));
    EXPECT_THAT(kinds_of(what::forwarded), ElementsAre(event_kind::fell_back));
    EXPECT_THAT(kinds_of(what::forbidden), ElementsAre(event_kind::missed, event_kind::compile_failed));
    EXPECT_THAT(kinds_of(what::different), ElementsAre(event_kind::warned));
}

TEST(run_events, tell_when_where_and_for_whom) {
    auto const all = events_of(made_by_a_worker(), 1'000'000'000);
    EXPECT_EQ(all[0].reason.view(), "header-changed");
    EXPECT_EQ(all[1].value, 8);
    EXPECT_EQ(all[1].time_ns, 997'500'000);
    EXPECT_EQ(all[2].duration_ns, 2'500'000);
    EXPECT_EQ(all[3].detail.view(), "python train.py; missed: q.h changed");
    auto h = made_by_a_worker();
    h.maker = 0;
    EXPECT_EQ(events_of(h, 1)[1].value, 7);
}

TEST(run_events, of_who_joined_a_compile_say_that_he_waited) {
    auto h = made_by_a_worker();
    h.kind = happening::what::answered;
    h.waited = 2000us;
    auto const all = events_of(h, 1'000'000'000);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].kind, event_kind::found);
    EXPECT_EQ(all[0].duration_ns, 500'000);
    EXPECT_EQ(all[1].kind, event_kind::waited);
    EXPECT_EQ(all[1].duration_ns, 2'000'000);
    EXPECT_EQ(all[1].time_ns, 999'500'000);
    EXPECT_EQ(all[1].reason.view(), "compile");
}

TEST(run_events, name_the_request_also_where_nothing_is_kept) {
    auto h = made_by_a_worker();
    h.kind = happening::what::forbidden;
    h.at.reset();
    h.request = base::sha256_of(base::as_bytes("asked"));
    for (auto const& one : events_of(h, 1)) EXPECT_EQ(one.request, h.request->prefix());
}

TEST(program_name, is_what_people_call_it) {
    EXPECT_EQ(program_name("/usr/bin/train\0--fast\0"s), "train");
    EXPECT_EQ(program_name("/opt/venv/bin/python3.11\0/home/a/train.py\0--fast\0"s), "python3.11 train.py");
    EXPECT_EQ(program_name("python\0-m\0torch.distributed.run\0"s), "python torch.distributed.run");
    EXPECT_EQ(program_name("python\0-c\0import torch\0"s), "python");
    EXPECT_EQ(program_name("pythonic\0a\0"s), "pythonic");
    EXPECT_EQ(program_name(""), "");
    EXPECT_EQ(program_name("a\nb"), "a b");
}

TEST(producer, says_for_whom_and_how_long) {
    auto const text = producer_text("python a, b.py", 1915ms);
    EXPECT_EQ(program_in(text), "python a, b.py");
    EXPECT_EQ(cost_in(text), 1915ms);
    EXPECT_EQ(program_in(producer_text("", 3ms)), "");
    EXPECT_EQ(cost_in(producer_text("", 3ms)), 3ms);
    EXPECT_EQ(program_in("kiln 0.1.0"), "");
}

TEST(name_for_people, is_that_of_a_kernel) {
    auto const name = [](std::string source, std::optional<std::string> file = {}) {
        return name_for_people(
            {.source = std::move(source), .name = std::move(file), .headers = {}, .expressions = {}});
    };
    EXPECT_EQ(name("extern \"C\" __global__ void scan(int* a) {}"), "scan");
    EXPECT_EQ(name("__global__ void __launch_bounds__(128, 2)\nreduce (int* a) {}"), "reduce");
    EXPECT_EQ(name("__device__ int x;", "/tmp/abc/k.cu"), "k.cu");
    EXPECT_EQ(name("__global__"), "default_program");
    EXPECT_EQ(name(""), "default_program");
    EXPECT_EQ(name_for_people({.source = "", .name = {}, .headers = {}, .expressions = {"f<int>"}}), "f<int>");
}

}  // namespace kiln::intercept
