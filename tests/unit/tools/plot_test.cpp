// SPDX-License-Identifier: Apache-2.0
#include "plot/plot.hpp"
#include "plot/range.hpp"

#include "base/files.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace kiln::plot {

namespace {

using testing::HasSubstr;
using testing::Not;

line_plot two_lines() {
    return {.title = "a < b",
            .x = {"n", scale::log2},
            .y = {"times CUB"},
            .lines = {{"scan", {{1 << 20, 1.0}, {1 << 24, 1.1}, {1 << 28, 1.2}}},
                      {"sort", {{1 << 20, 0.9}, {1 << 28, NAN}}}},
            .marks = {{"CUB", 1.0}}};
}

std::size_t occurrences(std::string_view text, std::string_view of) {
    std::size_t n = 0;
    for (auto at = text.find(of); at != text.npos; at = text.find(of, at + of.size())) ++n;
    return n;
}

std::vector<std::string> labels(range const& r) {
    std::vector<std::string> out;
    for (auto const& t : r.ticks()) out.push_back(t.exponent.empty() ? t.label : t.label + "^" + t.exponent);
    return out;
}

}  // namespace

TEST(plot_range, of_a_linear_axis_ends_on_round_numbers) {
    range const r{{}, {0.93, 1.21}, range::baseline::free};
    EXPECT_LE(r.least(), 0.93);
    EXPECT_GE(r.most(), 1.21);
    EXPECT_DOUBLE_EQ(r.place(r.least()), 0);
    EXPECT_DOUBLE_EQ(r.place(r.most()), 1);
    EXPECT_THAT(labels(r), testing::Contains("1"));
}

TEST(plot_range, of_a_logarithmic_axis_is_even_in_ratios) {
    range const two{{"", scale::log2}, {1 << 10, 1 << 14}, range::baseline::free};
    EXPECT_DOUBLE_EQ(two.place(1 << 12), 0.5);
    EXPECT_THAT(labels(two), testing::ElementsAre("2^10", "2^11", "2^12", "2^13", "2^14"));
    range const ten{{"", scale::log10}, {1, 10000}, range::baseline::free};
    EXPECT_NEAR(ten.place(100), 0.5, 1e-9);
    EXPECT_THAT(labels(ten), testing::ElementsAre("1", "10", "100", "1000", "10000"));
    EXPECT_FALSE(ten.drawable(0));
    EXPECT_FALSE(ten.drawable(-1));
    EXPECT_FALSE(ten.drawable(NAN));
}

TEST(plot_range, of_nothing_or_of_one_value_can_still_be_drawn) {
    for (auto const how : {scale::linear, scale::log2, scale::log10}) {
        for (auto const& values : {std::vector<double>{}, std::vector<double>{5}, std::vector<double>{NAN, -0.0}}) {
            range const r{{"", how}, values, range::baseline::free};
            EXPECT_LT(r.least(), r.most());
            EXPECT_TRUE(std::isfinite(r.place(5)));
            EXPECT_LT(r.ticks().size(), 20U);
        }
    }
}

TEST(plot_svg, of_lines_has_every_point_that_can_be_drawn) {
    auto const out = svg(two_lines());
    EXPECT_TRUE(out.starts_with("<svg ")) << out;
    EXPECT_TRUE(out.ends_with("</svg>\n"));
    EXPECT_EQ(occurrences(out, "<circle"), 4U);
    EXPECT_EQ(occurrences(out, "<polyline"), 2U);
    EXPECT_THAT(out, HasSubstr("a &lt; b"));
    EXPECT_THAT(out, Not(HasSubstr("nan")));
    EXPECT_THAT(out, HasSubstr("stroke-dasharray"));
}

TEST(plot_svg, of_bars_has_one_per_value) {
    bar_plot const p{
        .title = "t", .groups = {"g", "h"}, .y = {"ms", scale::log10}, .series = {{"x", {1, 10}}, {"y", {100, NAN}}}};
    auto const out = svg(p);
    EXPECT_EQ(occurrences(out, "<title>"), 3U);
    EXPECT_THAT(out, HasSubstr("<title>g, y: 100</title>"));
}

TEST(plot_svg, is_written_to_a_file) {
    auto const folder = base::temporary_directory::make("kiln-plot").value();
    auto const file = folder.path() / "p.svg";
    ASSERT_TRUE(write_svg(file, two_lines()));
    EXPECT_EQ(base::as_text(base::read_file(file).value().value()), svg(two_lines()));
    EXPECT_FALSE(write_svg(folder.path() / "no" / "p.svg", two_lines()));
}

TEST(plot_text, of_lines_fits_its_width_and_names_its_lines) {
    auto const out = text(two_lines(), {.width = 60, .height = 8});
    for (std::size_t from = 0; from < out.size();) {
        auto const end = out.find('\n', from);
        EXPECT_LE(end - from, 64U);
        from = end + 1;
    }
    EXPECT_THAT(out, HasSubstr("a scan"));
    EXPECT_THAT(out, HasSubstr("b sort"));
    EXPECT_THAT(out, HasSubstr("2^20"));
    EXPECT_THAT(out, HasSubstr("CUB (1)"));
}

TEST(plot_text, of_bars_is_as_long_as_the_value) {
    bar_plot const p{.title = "t", .groups = {"g", "h"}, .y = {"ms"}, .series = {{"x", {1, 4}}}};
    auto const out = text(p, {.width = 40});
    auto const longest = occurrences(out, "#");
    EXPECT_GT(longest, 10U);
    auto const first = out.find("g ");
    auto const shorter = occurrences(out.substr(first, out.find('\n', first) - first), "#");
    EXPECT_NEAR(static_cast<double>(longest - shorter) / static_cast<double>(shorter), 4, 0.5);
}

}  // namespace kiln::plot
