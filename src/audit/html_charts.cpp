// SPDX-License-Identifier: Apache-2.0
// Where the time goes: bars, the strip of the whole run, the steps.
#include "audit/html_parts.hpp"

#include <algorithm>
#include <array>

namespace kiln::audit::html {

namespace {

constexpr std::size_t strip_columns = 240, most_step_bars = 300;

constexpr std::array palette{"#8c8f94", "#5b7fa6", "#2f7d4f", "#b3261e", "#c2570c", "#c29a0c",
                             "#7a5aa6", "#3aa6a0", "#a65a8c", "#6b8e23", "#34557a", "#d98f5c",
                             "#8a6d3b", "#c9c6bd", "#4f8a8b", "#9c4f96", "#b0b83a"};

struct share {
    std::string name;
    time_ns time = 0;
    std::string colour;
};

void put_bar(std::string& out, std::vector<share> const& parts) {
    time_ns all = 0;
    for (auto const& p : parts) all += p.time;
    if (all == 0) return;
    out += "<div class=\"bar\" role=\"img\" aria-label=\"shares, listed below\">";
    for (auto const& p : parts)
        out += fmt::format("<span style=\"width:{:.3f}%;background:{}\" title=\"{}\"></span>",
                           100 * static_cast<double>(p.time) / static_cast<double>(all), p.colour, escaped(p.name));
    out += "</div><ul class=\"legend\">";
    for (auto const& p : parts) {
        auto const percent = 100 * static_cast<double>(p.time) / static_cast<double>(all);
        if (percent < 0.5) continue;
        out += fmt::format("<li><i style=\"background:{}\"></i>{} <span class=\"dim\">{} · {:.0f} %</span></li>",
                           p.colour, escaped(p.name), time_text(p.time), percent);
    }
    out += "</ul>";
}

std::string colour_of(gap_cause c) {
    switch (c) {
        case gap_cause::first_call: return "#7a5aa6";
        case gap_cause::allocation: return "#c29a0c";
        case gap_cause::sync_bubble: return "#b3261e";
        case gap_cause::host_compute: return "#c2570c";
        case gap_cause::host_wait: return "#a65a8c";
        case gap_cause::dependency: return "#5b7fa6";
        case gap_cause::latency: return "#9aa7b5";
        case gap_cause::tool: return "#3aa6a0";
        case gap_cause::other: return "#8c8f94";
    }
    return {};
}

time_ns mean_of(std::vector<time_ns> const& all, std::size_t from, std::size_t to) {
    time_ns sum = 0;
    for (auto i = from; i < to; ++i) sum += all[i];
    return sum / std::max<std::size_t>(1, to - from);
}

// The steady state begins with a call of the host's: until something runs there is no operation that a gap would follow.
time_ns idle_at_first(process_model const& p) {
    auto const next = std::ranges::upper_bound(p.busy, p.steady.from, {}, &interval::to);
    if (next == p.busy.end()) return p.steady.length();
    return interval{p.steady.from, std::min(next->from, p.steady.to)}.length();
}

// For somebody who has not met the word.
std::string_view meaning_of(gap_cause c) {
    switch (c) {
        case gap_cause::first_call: return "something was compiled or loaded for the first time";
        case gap_cause::allocation: return "memory was allocated or freed, and the GPU had to wait for it";
        case gap_cause::sync_bubble:
            return "the host waited until the GPU was done, so the GPU then waited for the host";
        case gap_cause::host_compute: return "the host was computing and had not asked for more work yet";
        case gap_cause::host_wait: return "the host was asleep: a file, a lock, another process";
        case gap_cause::dependency: return "work was queued, but waited for another stream";
        case gap_cause::latency: return "the way from the call to the GPU";
        case gap_cause::tool: return "this tool";
        case gap_cause::other: return "not known; where work was queued, it is the driver's or this tool's";
    }
    return {};
}

}  // namespace

void put_steady_bar(std::string& out, process_model const& p) {
    std::map<gap_cause, time_ns> by_cause;
    time_ns gaps = 0;
    for (auto const& g : p.gaps) {
        by_cause[g.cause] += g.when.length();
        gaps += g.when.length();
    }
    std::vector<share> parts{{"GPU busy", p.steady_busy, "#2f7d4f"}};
    for (auto const& [cause, t] : by_cause)
        parts.push_back({fmt::format("idle: {}", name_of(cause)), t, colour_of(cause)});
    auto const rest = p.span() - std::min(p.span(), p.steady_busy + gaps);
    auto const at_first = std::min(rest, idle_at_first(p));
    parts.push_back({"idle: before its first operation", at_first, "#d98f5c"});
    parts.push_back({"idle: gaps below 5 µs", rest - at_first, "#c9c6bd"});
    put_bar(out, parts);
    std::string words;
    for (auto const& [cause, t] : by_cause)
        if (20 * t >= p.span()) words += fmt::format("<li><b>{}</b>: {}</li>", name_of(cause), meaning_of(cause));
    if (!words.empty()) out += "<ul class=\"small dim\">" + words + "</ul>";
}

void put_ledger(std::string& out, process_model const& p) {
    std::vector<share> parts;
    for (std::size_t i = 0; i < p.ledger.size(); ++i)
        parts.push_back({p.ledger[i].cause + (p.ledger[i].inferred ? " (inferred)" : ""), p.ledger[i].wall,
                         palette[i % palette.size()]});
    put_bar(out, parts);
    out +=
        "<details><summary>Row by row</summary><div class=\"scroll\"><table><tr><th>cause<th class=n>time<th "
        "class=n>times<th>how it is known</tr>";
    for (auto const& r : p.ledger)
        out += fmt::format("<tr><td>{}<td class=n>{}<td class=n>{}<td>{}</tr>", escaped(r.cause), time_text(r.wall),
                           r.count, r.inferred ? "inferred" : "measured");
    out += "</table></div></details>";
}

// How busy the GPU was over the run, and where the steady state begins.
void put_strip(std::string& out, process_model const& p) {
    if (p.busy.empty()) return;
    auto const from = p.busy.front().from, to = std::max(p.busy.back().to, from + 1);
    auto const width = static_cast<double>(to - from);
    std::array<double, strip_columns> busy{};
    for (auto const& b : p.busy) {
        auto const first = std::min(
            strip_columns - 1, static_cast<std::size_t>(static_cast<double>(b.from - from) / width * strip_columns));
        auto const last = std::min(strip_columns - 1,
                                   static_cast<std::size_t>(static_cast<double>(b.to - from) / width * strip_columns));
        for (auto i = first; i <= last; ++i) {
            auto const left = static_cast<double>(from) + width * static_cast<double>(i) / strip_columns;
            auto const right = left + width / strip_columns;
            busy[i] += std::max(0.0, std::min(right, static_cast<double>(b.to)) -
                                         std::max(left, static_cast<double>(b.from))) /
                       (width / strip_columns);
        }
    }
    out +=
        "<p class=\"small dim\">How busy it was, from nothing to all of the time, from its first work on.</p><svg "
        "class=\"wide\" viewBox=\"0 0 "
        "960 80\" "
        "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"GPU use over time\"><rect width=\"960\" height=\"80\" "
        "fill=\"none\" stroke=\"var(--line)\"/>";
    for (std::size_t i = 0; i < strip_columns; ++i) {
        auto const h = 80 * std::min(1.0, busy[i]);
        if (h > 0)
            out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"4.2\" height=\"{:.1f}\" fill=\"var(--busy)\"/>",
                               static_cast<double>(i) * 4, 80 - h, h);
    }
    auto const x = static_cast<double>(p.steady.from - std::min(p.steady.from, from)) / width;
    bool const is_inside = p.steady.from >= from && x <= 1;
    if (is_inside)
        out += fmt::format(
            "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"80\" stroke=\"var(--fg)\" stroke-dasharray=\"3 3\" "
            "vector-effect=\"non-scaling-stroke\"/>",
            960 * x);
    out += fmt::format("</svg><p class=\"ends small dim\"><span>first work</span>{}<span>{}</span></p>",
                       !is_inside              ? std::string{}
                       : p.steady.from == from ? "<span>steady from there on</span>"
                                               : fmt::format("<span>steady {} later, at the dashed line</span>",
                                                             time_text(p.steady.from - from)),
                       time_text(to - from));
}

void put_step_times(std::string& out, process_model const& p) {
    if (!p.cycle.found() || p.durations.size() < 2) return;
    auto const group = (p.durations.size() + most_step_bars - 1) / most_step_bars;
    std::vector<time_ns> bars;
    for (std::size_t i = 0; i < p.durations.size(); i += group)
        bars.push_back(mean_of(p.durations, i, std::min(i + group, p.durations.size())));
    auto const cap = static_cast<double>(p.median) * 4;
    out += fmt::format(
        "<h2>Step times</h2><p class=\"small dim\">{} steps, one for {}; median {}; steady from step {}. Bars are cut "
        "at four medians{}.</p>",
        p.cycle.starts.size(), escaped(p.cycle.anchor), time_text(p.median), p.steady_from_step,
        group > 1 ? fmt::format("; each is the mean of {} steps", group) : "");
    out +=
        "<svg class=\"wide\" viewBox=\"0 0 960 84\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"time of "
        "each step\">";
    auto const w = 960 / static_cast<double>(bars.size());
    for (std::size_t i = 0; i < bars.size(); ++i) {
        auto const h = 84 * std::min(1.0, static_cast<double>(bars[i]) / std::max(1.0, cap));
        bool const is_steady = i * group >= p.steady_from_step;
        out += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"/>",
                           static_cast<double>(i) * w, 84 - h, std::max(0.6, w - 0.6), std::max(0.5, h),
                           is_steady ? "var(--low)" : "var(--info)");
    }
    out += "</svg>";
}

}  // namespace kiln::audit::html
