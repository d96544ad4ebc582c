// SPDX-License-Identifier: Apache-2.0
#include "warmup/trace.hpp"

#include "base/check.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace kiln::warmup {

namespace {

std::string_view name_of(span::kind k) {
    switch (k) {
        case span::kind::compile: return "compile";
        case span::kind::failed: return "failed compile";
        case span::kind::load: return "load";
        case span::kind::wait: return "wait";
        case span::kind::read: return "read";
        case span::kind::launch: return "launch";
        case span::kind::mark: return "event";
    }
    return "";
}

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

class builder {
public:
    trace build(event_file const& from) {
        for (auto const& e : from.events) {
            if (out_.first_ns == 0) out_.first_ns = out_.last_ns = e.what.time_ns;
            out_.first_ns = std::min(out_.first_ns, e.what.time_ns - e.what.duration_ns);
            out_.last_ns = std::max(out_.last_ns, e.what.time_ns);
        }
        for (auto const& e : from.events) take(e);
        // Still being compiled when the file ended.
        for (auto& [key, s] : open_) {
            s.to_ns = out_.last_ns;
            s.detail = "not finished";
            out_.spans.push_back(std::move(s));
        }
        std::ranges::stable_sort(out_.spans, {}, &span::from_ns);
        return std::move(out_);
    }

private:
    using open_key = std::tuple<std::int64_t, std::string, std::string>;

    static std::string label(event const& e) {
        return e.target.view().empty() ? std::string{e.unit.view()}
                                       : fmt::format("{} {}", e.unit.view(), e.target.view());
    }

    void add(span::kind what, past_event const& e, std::string detail) {
        auto const& ev = e.what;
        auto const row = static_cast<std::int64_t>(ev.thread);
        out_.rows.try_emplace({e.pid, row}, row == e.pid ? "main thread" : fmt::format("thread {}", row));
        bool const point = what == span::kind::mark || what == span::kind::launch;
        out_.spans.push_back(
            {what, e.pid, row, point ? ev.time_ns : ev.time_ns - ev.duration_ns, ev.time_ns,
             point && what == span::kind::mark ? fmt::format("{} {}", kiln::name_of(ev.kind), label(ev)) : label(ev),
             std::move(detail)});
    }

    void begin_compile(past_event const& e) {
        auto const worker = e.what.value;
        out_.rows.try_emplace({e.pid, worker},
                              worker == e.pid ? "main thread" : fmt::format("compile process {}", worker));
        open_[{e.pid, std::string{e.what.unit.view()}, std::string{e.what.target.view()}}] = {
            span::kind::compile, e.pid, worker, e.what.time_ns, e.what.time_ns, label(e.what), {}};
    }

    void end_compile(past_event const& e, span::kind how) {
        auto const at = open_.find({e.pid, std::string{e.what.unit.view()}, std::string{e.what.target.view()}});
        if (at == open_.end()) return;
        auto s = std::move(at->second);
        open_.erase(at);
        s.what = how;
        s.to_ns = e.what.time_ns;
        s.detail =
            how == span::kind::failed ? std::string{e.what.detail.view()} : fmt::format("{} bytes", e.what.value);
        out_.spans.push_back(std::move(s));
    }

    void take(past_event const& e) {
        std::string const detail{e.what.detail.view()};
        std::string const reason{e.what.reason.view()};
        switch (e.what.kind) {
            case event_kind::compiling: begin_compile(e); break;
            case event_kind::compiled:
            case event_kind::linked: end_compile(e, span::kind::compile); break;
            case event_kind::compile_failed: end_compile(e, span::kind::failed); break;
            case event_kind::loaded: add(span::kind::load, e, "from " + reason); break;
            case event_kind::waited: add(span::kind::wait, e, reason + (detail.empty() ? "" : "; " + detail)); break;
            case event_kind::found: add(span::kind::read, e, "from " + reason); break;
            case event_kind::launched: add(span::kind::launch, e, detail); break;
            case event_kind::loading:
            case event_kind::worker_started: break;
            default: add(span::kind::mark, e, reason + (detail.empty() ? "" : "; " + detail)); break;
        }
    }

    trace out_;
    std::map<open_key, span> open_;
};

std::string escaped(std::string_view text) {
    std::string out;
    for (char const c : text) {
        if (c == '<') out += "&lt;";
        else if (c == '>') out += "&gt;";
        else if (c == '&') out += "&amp;";
        else if (c == '"') out += "&quot;";
        else if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
    return out;
}

// 1, 2 or 5 times a power of ten: about eight marks on the axis.
double step_for(double ms) {
    double step = 1e-3;
    for (int n = 0; step * 8 < ms; ++n) step *= n % 3 == 1 ? 2.5 : 2;
    return step;
}

}  // namespace

trace trace_of(event_file const& from) { return builder{}.build(from); }

std::string to_chrome(trace const& t) {
    using json = nlohmann::ordered_json;
    json events = json::array();
    std::vector<std::int64_t> processes;
    for (auto const& [row, title] : t.rows) {
        if (std::ranges::find(processes, row.first) == processes.end()) {
            processes.push_back(row.first);
            events.push_back({{"ph", "M"},
                              {"name", "process_name"},
                              {"pid", row.first},
                              {"args", {{"name", fmt::format("process {}", row.first)}}}});
        }
        events.push_back({{"ph", "M"},
                          {"name", "thread_name"},
                          {"pid", row.first},
                          {"tid", row.second},
                          {"args", {{"name", title}}}});
    }
    for (auto const& s : t.spans) {
        auto const us = [&](std::int64_t ns) { return static_cast<double>(ns) * 1e-3; };
        json e{{"name", s.name},
               {"cat", name_of(s.what)},
               {"pid", s.pid},
               {"tid", s.row},
               {"ts", us(s.from_ns - t.first_ns)}};
        bool const point = s.what == span::kind::mark || s.what == span::kind::launch;
        e["ph"] = point ? "i" : "X";
        if (point) e["s"] = "t";
        else e["dur"] = us(s.to_ns - s.from_ns);
        if (!s.detail.empty()) e["args"] = {{"detail", s.detail}};
        events.push_back(std::move(e));
    }
    return json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump(1) + "\n";
}

std::string to_svg(trace const& t, std::string_view title) {
    constexpr double left = 190, right = 20, top = 46, row_height = 24, width = 1100;
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> place;
    for (auto const& [row, name] : t.rows) {
        bool const has_spans = std::ranges::any_of(t.spans, [&](span const& s) {
            return std::pair{s.pid, s.row} == row && s.what != span::kind::mark;
        });
        if (has_spans) place.emplace(row, place.size());
    }
    auto const height = top + row_height * static_cast<double>(place.size()) + 44;
    double const whole_ms = std::max(1e-3, static_cast<double>(t.last_ns - t.first_ns) * 1e-6);
    auto const x = [&](std::int64_t ns) {
        return left + (width - left - right) * (static_cast<double>(ns - t.first_ns) * 1e-6) / whole_ms;
    };
    auto out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        "<text x=\"10\" y=\"18\" font-size=\"14\">{2}</text>\n",
        width, height, escaped(title));
    double legend = 190;
    for (auto const k :
         {span::kind::compile, span::kind::failed, span::kind::load, span::kind::wait, span::kind::read}) {
        out += fmt::format(
            "<rect x=\"{:.0f}\" y=\"26\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{:.0f}\" "
            "y=\"35\">{}</text>\n",
            legend, colour_of(k), legend + 14, name_of(k));
        legend += 30 + 7 * static_cast<double>(name_of(k).size());
    }
    auto const bottom = top + row_height * static_cast<double>(place.size());
    for (double ms = 0; ms <= whole_ms; ms += step_for(whole_ms)) {
        auto const at = left + (width - left - right) * ms / whole_ms;
        out += fmt::format(
            "<line x1=\"{0:.1f}\" y1=\"{1:.0f}\" x2=\"{0:.1f}\" y2=\"{2:.0f}\" stroke=\"#e0e0e0\"/>"
            "<text x=\"{0:.1f}\" y=\"{3:.0f}\" text-anchor=\"middle\">{4:g} ms</text>\n",
            at, top, bottom, bottom + 16, ms);
    }
    std::vector<std::int64_t> processes;
    for (auto const& [row, n] : place) {
        if (std::ranges::find(processes, row.first) == processes.end()) processes.push_back(row.first);
    }
    // In order of their beginning; numbers say more than pids.
    std::ranges::sort(processes, {}, [&](std::int64_t pid) {
        auto const first = std::ranges::find(t.spans, pid, &span::pid);
        return first->from_ns;
    });
    for (auto const& [row, n] : place) {
        auto label = t.rows.at(row);
        if (processes.size() > 1)
            label = fmt::format("run {}: {}", std::ranges::find(processes, row.first) - processes.begin() + 1, label);
        out += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>\n", left - 8,
                           top + row_height * static_cast<double>(n) + 16, escaped(label));
    }
    for (auto const& s : t.spans) {
        auto const at = place.find({s.pid, s.row});
        if (at == place.end() || s.what == span::kind::mark) continue;
        auto const from = x(s.from_ns);
        auto const wide = std::max(1.0, x(s.to_ns) - from);
        auto const y = top + row_height * static_cast<double>(at->second) + 3;
        out += fmt::format(
            "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" fill=\"{}\" stroke=\"white\" "
            "stroke-width=\"0.5\"><title>{} {}: {:.2f} "
            "ms {}</title></rect>\n",
            from, y, wide, row_height - 6, colour_of(s.what), name_of(s.what), escaped(s.name),
            static_cast<double>(s.to_ns - s.from_ns) * 1e-6, escaped(s.detail));
        auto const fits = static_cast<std::size_t>(wide / 6.2);
        if (fits >= 4)
            out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"white\">{}</text>\n", from + 3, y + 13,
                               escaped(std::string_view{s.name}.substr(0, fits)));
    }
    return out + "</svg>\n";
}

}  // namespace kiln::warmup
