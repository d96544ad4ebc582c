// SPDX-License-Identifier: Apache-2.0
#include "warmup/event_file.hpp"

#include <gtest/gtest.h>

namespace kiln::warmup {
namespace {

constexpr std::string_view story =
    R"({"t":1000000,"seq":0,"pid":7,"tid":7,"kind":"demanded","unit":"a","target":"sm_90","reason":"planned","detail":"join"})"
    "\n"
    R"({"t":1100000,"seq":1,"pid":7,"tid":8,"kind":"missed","unit":"a","target":"sm_90","reason":"absent"})"
    "\n"
    R"({"t":1200000,"seq":2,"pid":7,"tid":9,"kind":"compiling","unit":"a","target":"sm_90","value":99})"
    "\n"
    R"({"t":1300000,"seq":3,"pid":8,"tid":8,"kind":"compiling","unit":"x","target":"sm_90","value":5})"
    "\n"
    R"({"t":9200000,"seq":4,"pid":7,"tid":9,"kind":"compiled","unit":"a","target":"sm_90","ns":8000000,"value":512})"
    "\n"
    R"({"t":9300000,"seq":5,"pid":7,"tid":7,"kind":"waited","unit":"a","target":"sm_90","reason":"compile","ns":2000000})"
    "\n"
    R"({"t":9300000,"seq":6,"pid":7,"tid":9,"kind":"compiling","unit":"b","target":"sm_90","value":99})"
    "\n";

TEST(event_file, a_status_is_made_of_what_one_process_wrote) {
    auto const file = parse_events(story);
    EXPECT_EQ(file.bad_lines, 0u);
    EXPECT_EQ(file.pids(), (std::vector<std::int64_t>{7, 8}));
    auto const s = status_of(file, 7, 12'300'000);
    EXPECT_EQ(s.submitted, 2u);
    EXPECT_EQ(s.ready, 1u);
    EXPECT_EQ(s.compiled, 1u);
    EXPECT_EQ(s.compiling, 1u);
    EXPECT_EQ(s.pending, 1u);
    auto const& a = *s.find("a");
    EXPECT_EQ(a.consumers, "join");
    EXPECT_EQ(a.how, priority::planned);
    EXPECT_EQ(a.miss, "absent");
    EXPECT_DOUBLE_EQ(a.ready_ms, 8.2);
    EXPECT_DOUBLE_EQ(a.compile_ms, 8);
    EXPECT_EQ(a.bytes, 512u);
    EXPECT_EQ(a.waits, 1u);
    EXPECT_DOUBLE_EQ(a.blocked_ms, 2);
    EXPECT_DOUBLE_EQ(s.find("b")->since_ms, 3);
    EXPECT_EQ(status_of(file, 8).compiling, 1u);
}

TEST(event_file, lines_that_are_no_events_are_counted) {
    auto const file = parse_events(std::string{"nonsense\n{}\n{\"kind\":\"of a later version\"}\n"} +
                                   std::string{story} + "{\"t\":1");
    EXPECT_EQ(file.bad_lines, 4u);
    EXPECT_EQ(file.events.size(), 7u);
}

TEST(event_file, every_kind_of_event_is_read_back) {
    for (int k = 0; k <= static_cast<int>(event_kind::note); ++k) {
        event const e{.kind = static_cast<event_kind>(k),
                      .unit = "u \"quoted\"",
                      .target = "sm_90",
                      .key = 0xfedcba9876543210,
                      .duration_ns = 3,
                      .value = -4};
        auto const back = parse_events(to_json(e) + "\n");
        ASSERT_EQ(back.events.size(), 1u) << name_of(e.kind);
        EXPECT_EQ(back.events[0].what.kind, e.kind);
        EXPECT_EQ(back.events[0].what.unit.view(), e.unit.view());
        EXPECT_EQ(back.events[0].what.key, e.key);
        EXPECT_EQ(back.events[0].what.value, -4);
    }
}

}  // namespace
}  // namespace kiln::warmup
