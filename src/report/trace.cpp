// SPDX-License-Identifier: Apache-2.0
#include "report/trace.hpp"

#include "base/check.hpp"
#include "base/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace kiln::report {

namespace {

class builder {
public:
    trace build(event_file const& from) {
        if (!from.events.empty()) out_.first_ns = out_.last_ns = from.events.front().what.time_ns;
        for (auto const& e : from.events) {
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
        if (at == open_.end()) {
            // It came to nothing before any process took it.
            if (how == span::kind::failed) add(span::kind::mark, e, std::string{e.what.detail.view()});
            return;
        }
        auto s = std::move(at->second);
        open_.erase(at);
        s.what = how;
        // A file that was added to after the machine was started again: the clock began anew.
        s.to_ns = std::max(s.from_ns, e.what.time_ns);
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
            case event_kind::note:
                if (reason == "program") out_.programs.insert_or_assign(e.pid, detail);
                else add(span::kind::mark, e, reason + (detail.empty() ? "" : "; " + detail));
                break;
            default: add(span::kind::mark, e, reason + (detail.empty() ? "" : "; " + detail)); break;
        }
    }

    trace out_;
    std::map<open_key, span> open_;
};

}  // namespace

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

trace trace_of(event_file const& from) { return builder{}.build(from); }

std::string to_chrome(trace const& t) {
    using json = nlohmann::ordered_json;
    json events = json::array();
    std::vector<std::int64_t> processes;
    for (auto const& [row, title] : t.rows) {
        if (std::ranges::find(processes, row.first) == processes.end()) {
            processes.push_back(row.first);
            auto const known = t.programs.find(row.first);
            auto const name = known == t.programs.end() ? "process" : known->second;
            events.push_back({{"ph", "M"},
                              {"name", "process_name"},
                              {"pid", row.first},
                              {"args", {{"name", fmt::format("{} {}", name, row.first)}}}});
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
    return base::json_text(json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}, 1) + "\n";
}

}  // namespace kiln::report
