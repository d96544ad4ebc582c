// SPDX-License-Identifier: Apache-2.0
#include "plot/range.hpp"

#include "base/files.hpp"
#include "report/svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace kiln::plot {

namespace {

// Told apart by most eyes, in print too.
constexpr std::array<std::string_view, 8> colours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#e69f00", "#56b4e9", "#000000", "#8c6d31"};
std::string_view colour(std::size_t i) { return colours[i % colours.size()]; }

struct frame {
    double left = 70;
    double top = 40;
    double width = 560;
    double height = 300;
    double below = 60;    // of the frame: ticks and labels
    double beside = 200;  // names
    [[nodiscard]] double x(double place) const noexcept { return left + place * width; }
    [[nodiscard]] double y(double place) const noexcept { return top + (1 - place) * height; }
    [[nodiscard]] double right() const noexcept { return left + width; }
    [[nodiscard]] double bottom() const noexcept { return top + height; }
};

class canvas {
public:
    canvas(frame const& f, std::string_view title) : f_{f}, out_{{f.right() + f.beside, f.bottom() + f.below, 12}} {
        label(f.left, 22, "start", title, "font-size=\"15\" font-weight=\"bold\"");
    }

    void label(double x, double y, std::string_view anchor, std::string_view text, std::string_view more = {}) {
        out_.words({x, y}, text, fmt::format("text-anchor=\"{}\" {}", anchor, more));
    }
    void segment(double x1, double y1, double x2, double y2, std::string_view style) {
        out_.line({x1, y1}, {x2, y2}, style);
    }
    void box(report::svg_box const& where, std::string_view fill, std::string_view about = {}) {
        out_.box(where, fmt::format("fill=\"{}\"", fill), about);
    }
    void curve(std::vector<report::svg_point> const& through, std::string_view stroke) {
        std::string points;
        for (auto const& at : through) points += fmt::format("{:.1f},{:.1f} ", at.x, at.y);
        out_.path(points, fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"", stroke));
    }
    void dot(report::svg_point at, std::string_view fill, std::string_view about) {
        out_.dot(at, 3, fmt::format("fill=\"{}\"", fill), about);
    }

    void number(double x, double y, std::string_view anchor, tick const& t) {
        if (t.exponent.empty()) return label(x, y, anchor, t.label);
        out_.words_with_exponent({x, y}, t.label, t.exponent, fmt::format("text-anchor=\"{}\"", anchor));
    }
    void y_axis(range const& r, std::string_view name) {
        for (auto const& t : r.ticks()) {
            double const y = f_.y(r.place(t.value));
            segment(f_.left, y, f_.right(), y, "stroke=\"#ddd\"");
            number(f_.left - 6, y + 4, "end", t);
        }
        double const middle = f_.top + f_.height / 2;
        label(18, middle, "middle", name, fmt::format("transform=\"rotate(-90 18 {:.1f})\"", middle));
    }
    void marks(range const& r, std::vector<mark> const& all) {
        for (auto const& m : all) {
            if (!r.drawable(m.y) || m.y < r.least() || m.y > r.most()) continue;
            double const y = f_.y(r.place(m.y));
            segment(f_.left, y, f_.right(), y, "stroke=\"#555\" stroke-dasharray=\"5 4\"");
            label(f_.right() + 6, y + 4, "start", m.name, "fill=\"#555\"");
        }
    }
    void name(std::size_t i, std::string_view text) {
        double const y = f_.top + 8 + static_cast<double>(i) * 17;
        box({f_.right() + 60, y - 5, 12, 9}, colour(i));
        label(f_.right() + 78, y + 4, "start", text);
    }
    [[nodiscard]] std::string finish() && {
        segment(f_.left, f_.top, f_.left, f_.bottom(), "stroke=\"#000\"");
        segment(f_.left, f_.bottom(), f_.right(), f_.bottom(), "stroke=\"#000\"");
        return std::move(out_).finish();
    }

private:
    frame const& f_;
    report::svg out_;
};

}  // namespace

std::string svg(line_plot const& p) {
    auto const [x, y] = axes_of(p);
    frame f;
    f.height = std::max(300.0, static_cast<double>(p.lines.size()) * 17);
    canvas out{f, p.title};
    out.y_axis(y, p.y.label);
    for (auto const& t : x.ticks()) {
        double const at = f.x(x.place(t.value));
        out.segment(at, f.bottom(), at, f.bottom() + 5, "stroke=\"#000\"");
        out.number(at, f.bottom() + 20, "middle", t);
    }
    out.label(f.left + f.width / 2, f.bottom() + 42, "middle", p.x.label);
    out.marks(y, p.marks);
    for (std::size_t i = 0; i < p.lines.size(); ++i) {
        std::vector<report::svg_point> through;
        std::vector<std::string> about;
        for (auto const& at : p.lines[i].points) {
            if (!x.drawable(at.x) || !y.drawable(at.y)) continue;
            through.push_back({f.x(x.place(at.x)), f.y(y.place(at.y))});
            about.push_back(fmt::format("{}: {}, {}", p.lines[i].name, number_text(at.x), number_text(at.y)));
        }
        out.curve(through, colour(i));
        for (std::size_t n = 0; n < through.size(); ++n) out.dot(through[n], colour(i), about[n]);
        out.name(i, p.lines[i].name);
    }
    return std::move(out).finish();
}

std::string svg(bar_plot const& p) {
    std::vector<double> ys;
    std::size_t longest = 0;
    for (auto const& s : p.series) ys.insert(ys.end(), s.values.begin(), s.values.end());
    for (auto const& m : p.marks) ys.push_back(m.y);
    for (auto const& g : p.groups) longest = std::max(longest, g.size());
    range const y{p.y, ys, range::baseline::zero};
    frame f;
    f.width = std::max(560.0, static_cast<double>(p.groups.size() * (p.series.size() * 14 + 10)));
    f.below = 30 + static_cast<double>(longest) * 5;
    f.left = std::max(70.0, static_cast<double>(longest) * 4.6);
    canvas out{f, p.title};
    out.y_axis(y, p.y.label);
    double const group = f.width / static_cast<double>(std::max<std::size_t>(1, p.groups.size()));
    double const wide = group * 0.8 / static_cast<double>(std::max<std::size_t>(1, p.series.size()));
    double const ground = y.drawable(0) ? f.y(y.place(0)) : f.bottom();
    for (std::size_t g = 0; g < p.groups.size(); ++g) {
        double const from = f.left + (static_cast<double>(g) + 0.1) * group;
        for (std::size_t s = 0; s < p.series.size(); ++s) {
            if (g >= p.series[s].values.size() || !y.drawable(p.series[s].values[g])) continue;
            double const value = p.series[s].values[g];
            double const at = f.y(y.place(value));
            out.box({from + static_cast<double>(s) * wide, std::min(at, ground), wide * 0.94, std::abs(ground - at)},
                    colour(s), fmt::format("{}, {}: {}", p.groups[g], p.series[s].name, number_text(value)));
        }
        double const middle = from + group * 0.4;
        out.label(middle, f.bottom() + 14, "end", p.groups[g],
                  fmt::format("transform=\"rotate(-35 {:.1f} {:.1f})\"", middle, f.bottom() + 14));
    }
    out.marks(y, p.marks);
    for (std::size_t s = 0; s < p.series.size(); ++s) out.name(s, p.series[s].name);
    return std::move(out).finish();
}

result<void> write_svg(std::filesystem::path const& file, line_plot const& p) {
    return base::write_output(file, base::as_bytes(svg(p)));
}
result<void> write_svg(std::filesystem::path const& file, bar_plot const& p) {
    return base::write_output(file, base::as_bytes(svg(p)));
}

}  // namespace kiln::plot
