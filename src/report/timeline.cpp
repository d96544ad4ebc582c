// SPDX-License-Identifier: Apache-2.0
#include "report/timeline.hpp"

#include "base/text.hpp"
#include "report/svg.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::report {

namespace {

constexpr double left = 190, right = 20, top = 46, row_height = 24, width = 1100;
constexpr double letter = 6.2;  // about as wide as one is

std::string_view colour_of(span::kind k) {
    switch (k) {
        case span::kind::compile: return "#4878a8";
        case span::kind::failed: return "#b03030";
        case span::kind::load: return "#58a868";
        case span::kind::wait: return "#d88830";
        case span::kind::read: return "#9080b8";
        case span::kind::launch: return "#303030";
        case span::kind::mark: return "#a0a0a0";
    }
    return "#000000";
}

double milliseconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

// 1, 2 or 5 times a power of ten: about eight marks on the axis.
double step_for(double ms) {
    double step = 1e-3;
    for (int n = 0; step * 8 < ms; ++n) step *= n % 3 == 1 ? 2.5 : 2;
    return step;
}

using row = std::pair<std::int64_t, std::int64_t>;

// From the top, of the rows that have something to show.
std::map<row, std::size_t> places_of(trace const& t) {
    std::map<row, std::size_t> out;
    for (auto const& [at, name] : t.rows) {
        bool const has_spans = std::ranges::any_of(t.spans, [here = at](span const& s) {
            return row{s.pid, s.row} == here && s.what != span::kind::mark;
        });
        if (has_spans) out.emplace(at, out.size());
    }
    return out;
}

// In order of their beginning; numbers say more than pids.
std::vector<std::int64_t> runs_of(trace const& t, std::map<row, std::size_t> const& places) {
    std::vector<std::int64_t> out;
    for (auto const& [at, n] : places) {
        if (std::ranges::find(out, at.first) == out.end()) out.push_back(at.first);
    }
    std::ranges::sort(out, {}, [&](std::int64_t pid) { return std::ranges::find(t.spans, pid, &span::pid)->from_ns; });
    return out;
}

class timeline {
public:
    explicit timeline(trace const& t) : t_{t}, places_{places_of(t)}, out_{{width, bottom() + 44, 11}} {}

    [[nodiscard]] std::string draw(std::string_view title) && {
        out_.words({10, 18}, title, "font-size=\"14\"");
        legend();
        axis();
        names();
        for (auto const& s : t_.spans) draw(s);
        return std::move(out_).finish();
    }

private:
    [[nodiscard]] double bottom() const { return top + row_height * static_cast<double>(places_.size()); }
    [[nodiscard]] double whole_ms() const { return std::max(1e-3, milliseconds(t_.last_ns - t_.first_ns)); }
    [[nodiscard]] double x(double ms) const { return left + (width - left - right) * ms / whole_ms(); }

    void legend() {
        double at = left;
        for (auto const k :
             {span::kind::compile, span::kind::failed, span::kind::load, span::kind::wait, span::kind::read}) {
            out_.box({at, 26, 10, 10}, fmt::format("fill=\"{}\"", colour_of(k)));
            out_.words({at + 14, 35}, name_of(k));
            at += 30 + 7 * static_cast<double>(name_of(k).size());
        }
    }
    void axis() {
        for (double ms = 0; ms <= whole_ms(); ms += step_for(whole_ms())) {
            out_.line({x(ms), top}, {x(ms), bottom()}, "stroke=\"#e0e0e0\"");
            out_.words({x(ms), bottom() + 16}, fmt::format("{:g} ms", ms), "text-anchor=\"middle\"");
        }
    }
    void names() {
        auto const runs = runs_of(t_, places_);
        for (auto const& [at, n] : places_) {
            auto label = t_.rows.at(at);
            if (runs.size() > 1)
                label = fmt::format("run {}: {}", std::ranges::find(runs, at.first) - runs.begin() + 1, label);
            out_.words({left - 8, top + row_height * static_cast<double>(n) + 16}, label, "text-anchor=\"end\"");
        }
    }
    void draw(span const& s) {
        auto const at = places_.find({s.pid, s.row});
        if (at == places_.end() || s.what == span::kind::mark) return;
        auto const from = x(milliseconds(s.from_ns - t_.first_ns));
        auto const wide = std::max(1.0, x(milliseconds(s.to_ns - t_.first_ns)) - from);
        auto const y = top + row_height * static_cast<double>(at->second) + 3;
        out_.box(
            {from, y, wide, row_height - 6},
            fmt::format("fill=\"{}\" stroke=\"white\" stroke-width=\"0.5\"", colour_of(s.what)),
            fmt::format("{} {}: {:.2f} ms {}", name_of(s.what), s.name, milliseconds(s.to_ns - s.from_ns), s.detail));
        auto const fits = static_cast<std::size_t>(wide / letter);
        if (fits >= 4) out_.words({from + 3, y + 13}, base::first_characters(s.name, fits), "fill=\"white\"");
    }

    trace const& t_;
    std::map<row, std::size_t> places_;
    svg out_;
};

}  // namespace

std::string timeline_svg(trace const& t, std::string_view title) { return timeline{t}.draw(title); }

}  // namespace kiln::report
