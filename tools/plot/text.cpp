// SPDX-License-Identifier: Apache-2.0
#include "plot/range.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln::plot {

namespace {

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz";

std::string tick_text(tick const& t) { return t.exponent.empty() ? t.label : t.label + "^" + t.exponent; }

int cell(double place, int cells) { return static_cast<int>(std::lround(place * (cells - 1))); }

// A letter per line; where two meet, '*'.
void draw(std::vector<std::string>& grid, line const& l, char letter, range const& x, range const& y) {
    int const height = static_cast<int>(grid.size());
    int const width = static_cast<int>(grid.front().size());
    for (auto const& at : l.points) {
        if (!x.drawable(at.x) || !y.drawable(at.y)) continue;
        auto& there = grid[static_cast<std::size_t>(height - 1 - cell(y.place(at.y), height))]
                          [static_cast<std::size_t>(cell(x.place(at.x), width))];
        there = there == ' ' || there == '-' || there == letter ? letter : '*';
    }
}

std::string x_labels(range const& x, int width) {
    std::string out(static_cast<std::size_t>(width), ' ');
    int free = 0;
    for (auto const& t : x.ticks()) {
        auto const label = tick_text(t);
        int const size = static_cast<int>(label.size());
        int const at = std::clamp(cell(x.place(t.value), width) - size / 2, 0, width - size);
        if (size == 0 || at < free) continue;
        out.replace(static_cast<std::size_t>(at), label.size(), label);
        free = at + size + 1;
    }
    return out;
}

void trim(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

}  // namespace

std::string text(line_plot const& p, text_size size) {
    auto const [x, y] = axes_of(p);
    int const margin = 9;
    int const width = std::max(10, size.width - margin - 1);
    int const height = std::max(3, size.height);
    std::vector<std::string> grid(static_cast<std::size_t>(height), std::string(static_cast<std::size_t>(width), ' '));
    for (auto const& m : p.marks) {
        if (y.drawable(m.y) && m.y >= y.least() && m.y <= y.most())
            std::ranges::fill(grid[static_cast<std::size_t>(height - 1 - cell(y.place(m.y), height))], '-');
    }
    for (std::size_t i = 0; i < p.lines.size(); ++i) draw(grid, p.lines[i], letters[i % letters.size()], x, y);

    std::vector<std::string> names(grid.size());
    for (auto const& t : y.ticks())
        names[static_cast<std::size_t>(height - 1 - cell(y.place(t.value), height))] = tick_text(t);
    std::string out = p.title + "\n";
    if (!p.y.label.empty()) out += p.y.label + "\n";
    for (std::size_t i = 0; i < grid.size(); ++i) {
        trim(grid[i]);
        out += fmt::format("{:>{}} |{}\n", names[i], margin - 2, grid[i]);
    }
    auto labels = x_labels(x, width);
    trim(labels);
    out += fmt::format("{:>{}} +{}\n{:>{}}{}", "", margin - 2, std::string(static_cast<std::size_t>(width), '-'), "",
                       margin, labels);
    out += (p.x.label.empty() ? "" : "  " + p.x.label) + "\n";
    for (std::size_t i = 0; i < p.lines.size(); ++i)
        out += fmt::format("{:>{}} {}\n", letters[i % letters.size()], margin, p.lines[i].name);
    for (auto const& m : p.marks) out += fmt::format("{:>{}} {} ({})\n", "---", margin, m.name, number_text(m.y));
    return out;
}

std::string text(bar_plot const& p, text_size size) {
    std::vector<double> ys;
    for (auto const& s : p.series) ys.insert(ys.end(), s.values.begin(), s.values.end());
    for (auto const& m : p.marks) ys.push_back(m.y);
    range const y{p.y, ys, range::baseline::zero};
    std::size_t longest = 0;
    std::size_t longest_series = 0;
    for (auto const& g : p.groups) longest = std::max(longest, g.size());
    for (auto const& s : p.series) longest_series = std::max(longest_series, s.name.size());
    int const room = std::max(10, size.width - static_cast<int>(longest + longest_series) - 12);
    std::string out = p.title + (p.y.label.empty() ? "" : " (" + p.y.label + ")") + "\n";
    for (std::size_t g = 0; g < p.groups.size(); ++g) {
        for (std::size_t s = 0; s < p.series.size(); ++s) {
            if (g >= p.series[s].values.size() || !y.drawable(p.series[s].values[g])) continue;
            double const value = p.series[s].values[g];
            auto const bar = static_cast<std::size_t>(cell(y.place(value), room + 1));
            out += fmt::format("{:<{}}  {:<{}} {}{} {}\n", s == 0 ? p.groups[g] : "", longest, p.series[s].name,
                               longest_series, bar == 0 ? "|" : "", std::string(bar, '#'), number_text(value));
        }
    }
    for (auto const& m : p.marks) out += fmt::format("{}: {}\n", m.name, number_text(m.y));
    return out;
}

}  // namespace kiln::plot
