// SPDX-License-Identifier: Apache-2.0
//
// Plots for benchmarks and commands: lines over a number, or bars over names, as an SVG file or as a few lines of text
// for a terminal. A figure is a value; nothing here measures, prints or keeps state. Points that cannot be drawn (NaN, or
// not above zero on a logarithmic axis) are left out.
#pragma once

#include <kiln/result.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kiln::plot {

enum class scale { linear, log2, log10 };

struct axis {
    std::string label = {};
    plot::scale scale = scale::linear;
    // The range is that of the data where these are not given.
    std::optional<double> least = {};
    std::optional<double> most = {};
};

struct point {
    double x = 0;
    double y = 0;
};
struct line {
    std::string name;
    std::vector<point> points;
};
// A level to compare with: "CUB", "goal".
struct mark {
    std::string name;
    double y = 0;
};
struct line_plot {
    std::string title = {};
    axis x = {};
    axis y = {};
    std::vector<line> lines = {};
    std::vector<mark> marks = {};
};

// One bar per group and series; NaN: none.
struct bar_series {
    std::string name;
    std::vector<double> values;  // one per group
};
struct bar_plot {
    std::string title = {};
    std::vector<std::string> groups = {};
    axis y = {};
    std::vector<bar_series> series = {};
    std::vector<mark> marks = {};
};

[[nodiscard]] std::string svg(line_plot const& p);
[[nodiscard]] std::string svg(bar_plot const& p);

// `width` columns, the labels among them.
struct text_size {
    int width = 78;
    int height = 16;  // of lines; bars take one row each
};
[[nodiscard]] std::string text(line_plot const& p, text_size size = {});
[[nodiscard]] std::string text(bar_plot const& p, text_size size = {});

// Replaces the file; its folder must exist.
[[nodiscard]] result<void> write_svg(std::filesystem::path const& file, line_plot const& p);
[[nodiscard]] result<void> write_svg(std::filesystem::path const& file, bar_plot const& p);

}  // namespace kiln::plot
