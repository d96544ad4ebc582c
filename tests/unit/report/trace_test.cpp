// SPDX-License-Identifier: Apache-2.0
#include "report/timeline.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace kiln::report {
namespace {

past_event at(std::int64_t ms, event_kind kind, std::string_view unit, std::int64_t value = 0,
              std::int64_t lasted_ms = 0) {
    past_event e;
    e.pid = 7;
    e.what = {.kind = kind, .unit = unit, .target = "sm_90"};
    e.what.thread = 7;
    e.what.time_ns = ms * 1'000'000;
    e.what.duration_ns = lasted_ms * 1'000'000;
    e.what.value = value;
    return e;
}

event_file story() {
    return {.events = {at(10, event_kind::demanded, "a"), at(11, event_kind::compiling, "a", 99),
                       at(12, event_kind::compiling, "b", 98), at(20, event_kind::compiled, "a", 512, 8),
                       at(21, event_kind::waited, "a", 0, 10), at(22, event_kind::loaded, "a", 512, 1)}};
}

span const& find(trace const& t, span::kind k, std::string_view name) {
    for (auto const& s : t.spans)
        if (s.what == k && s.name == name) return s;
    ADD_FAILURE() << name;
    static span const none;
    return none;
}

TEST(trace, spans_lie_on_the_rows_of_who_did_them) {
    auto const t = trace_of(story());
    auto const& compile = find(t, span::kind::compile, "a sm_90");
    EXPECT_EQ(compile.row, 99);
    EXPECT_EQ(compile.from_ns, 11'000'000);
    EXPECT_EQ(compile.to_ns, 20'000'000);
    auto const& wait = find(t, span::kind::wait, "a sm_90");
    EXPECT_EQ(wait.row, 7);
    EXPECT_EQ(wait.from_ns, 11'000'000);
    EXPECT_EQ(find(t, span::kind::load, "a sm_90").from_ns, 21'000'000);
    auto const& open = find(t, span::kind::compile, "b sm_90");
    EXPECT_EQ(open.to_ns, 22'000'000) << "not finished: to the end";
    EXPECT_EQ(open.detail, "not finished");
    EXPECT_EQ(t.rows.at({7, 99}), "compile process 99");
    EXPECT_EQ(t.rows.at({7, 7}), "main thread");
}

TEST(trace, an_event_at_the_clocks_zero_does_not_begin_the_file_anew) {
    auto const t = trace_of({.events = {at(9'000, event_kind::compiling, "a", 99), at(5, event_kind::waited, "b", 0, 5),
                                        at(6, event_kind::demanded, "c")}});
    auto const& open = find(t, span::kind::compile, "a sm_90");
    EXPECT_EQ(t.last_ns, 9'000'000'000);
    EXPECT_EQ(open.to_ns, open.from_ns);
}

TEST(trace, a_clock_that_began_anew_makes_no_span_of_less_than_nothing) {
    auto const t =
        trace_of({.events = {at(9'000, event_kind::compiling, "a", 99), at(3, event_kind::compiled, "a", 512)}});
    auto const& compile = find(t, span::kind::compile, "a sm_90");
    EXPECT_EQ(compile.from_ns, 9'000'000'000);
    EXPECT_EQ(compile.to_ns, compile.from_ns);
}

TEST(trace, is_what_viewers_read) {
    auto const j = nlohmann::json::parse(to_chrome(trace_of(story())));
    int spans = 0, names = 0, marks = 0;
    for (auto const& e : j.at("traceEvents")) {
        auto const ph = e.at("ph").get<std::string>();
        spans += ph == "X" ? 1 : 0;
        names += ph == "M" ? 1 : 0;
        marks += ph == "i" ? 1 : 0;
        if (ph == "X") {
            EXPECT_GE(e.at("ts").get<double>(), 0);
            EXPECT_GE(e.at("dur").get<double>(), 0);
        }
    }
    EXPECT_EQ(spans, 4);
    EXPECT_EQ(names, 4) << "a process and three rows";
    EXPECT_EQ(marks, 1);
    EXPECT_THAT(timeline_svg(trace_of(story()), "a < b"),
                testing::AllOf(testing::HasSubstr("a &lt; b"), testing::HasSubstr("compile process 99")));
    EXPECT_THAT(timeline_svg(trace_of({}), "nothing"), testing::HasSubstr("</svg>"));
}

}  // namespace
}  // namespace kiln::report
