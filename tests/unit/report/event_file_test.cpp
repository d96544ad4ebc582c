// SPDX-License-Identifier: Apache-2.0
#include "report/event_file.hpp"

#include <gtest/gtest.h>

namespace kiln::report {
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

TEST(event_file, is_read_in_order_with_the_lines_themselves) {
    auto const file = parse_events(std::string{story});
    EXPECT_EQ(file.bad_lines, 0u);
    EXPECT_EQ(file.pids(), (std::vector<std::int64_t>{7, 8}));
    ASSERT_EQ(file.events.size(), 7u);
    EXPECT_EQ(file.events[4].what.duration_ns, 8'000'000);
    EXPECT_EQ(file.events[4].what.value, 512);
    EXPECT_EQ(file.line_of(file.events[1]), story.substr(story.find('\n') + 1, file.events[1].size));
    EXPECT_TRUE(file.line_of(file.events[1]).ends_with("\"reason\":\"absent\"}"));
}

TEST(event_file, lines_that_are_no_events_are_counted) {
    auto const file = parse_events(std::string{"nonsense\n{}\n{\"kind\":\"of a later version\"}\n"} +
                                   std::string{story} + "{\"t\":1");
    EXPECT_EQ(file.bad_lines, 4u);
    EXPECT_EQ(file.events.size(), 7u);
}

TEST(event_file, a_line_of_the_wrong_types_costs_itself_alone) {
    auto const file = parse_events(
        "{\"kind\":5}\n{\"kind\":[\"found\"]}\n[]\n"
        "{\"kind\":\"found\",\"unit\":7,\"t\":\"late\",\"pid\":1.5,\"value\":{}}\n"
        "{\"kind\":\"found\",\"t\":18446744073709551615,\"ns\":-9223372036854775808}\n");
    EXPECT_EQ(file.bad_lines, 3u);
    ASSERT_EQ(file.events.size(), 2u);
    EXPECT_EQ(file.events[0].what.unit.view(), "");
    EXPECT_EQ(file.events[0].what.time_ns, 0);
    EXPECT_GE(file.events[1].what.time_ns - file.events[1].what.duration_ns, 0) << "no overflow in what is made of it";
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
}  // namespace kiln::report
