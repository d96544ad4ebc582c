// SPDX-License-Identifier: Apache-2.0
// One page that needs nothing else: no script, no font, no request.
#include "audit/html_parts.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace kiln::audit {

namespace html {

std::string escaped(std::string_view text) {
    std::string out;
    for (char const c : base::readable_utf8(text)) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\'': out += "&#39;"; break;
            default:
                if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') out += c;
        }
    }
    return out;
}

// As a sentence begins.
std::string capital(std::string text) {
    if (!text.empty() && !text.starts_with("cu"))
        text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
    return text;
}

std::string time_text(time_ns t) {
    auto const v = static_cast<double>(t);
    if (v < 1e3) return fmt::format("{:.0f} ns", v);
    if (v < 1e6) return fmt::format("{:.1f} µs", v * 1e-3);
    return v < 1e9 ? fmt::format("{:.1f} ms", v * 1e-6) : fmt::format("{:.2f} s", v * 1e-9);
}
std::string bytes_text(std::uint64_t bytes) { return bytes < 1024 ? fmt::format("{} B", bytes) : size_text(bytes); }

}  // namespace html

namespace {

using namespace html;

constexpr std::size_t most_cards = 60;

constexpr std::string_view style = R"(
:root{color-scheme:light dark;--bg:#fbfaf7;--fg:#1d1f22;--dim:#62666d;--card:#fff;--line:#dedbd2;--blocking:#b3261e;--high:#c2570c;--medium:#97700a;--low:#3f6f9f;--info:#62666d;--busy:#2f7d4f;--mark:#fff3c4}
@media(prefers-color-scheme:dark){:root{--bg:#15171a;--fg:#e7e6e3;--dim:#9a9ea6;--card:#1d2024;--line:#33373d;--blocking:#ff8a80;--high:#ffab6b;--medium:#e6c35c;--low:#8ab8e6;--info:#9a9ea6;--busy:#6fc492;--mark:#4a4119}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:64rem;margin:0 auto;padding:1.5rem 1rem 4rem}h1{font-size:1.1rem;font-weight:600;margin:0;color:var(--dim)}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}
.verdict{font-size:1.55rem;line-height:1.3;font-weight:650;margin:.4rem 0 .6rem}.dim{color:var(--dim)}.small{font-size:.87rem}code,pre{font:.86rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.bar{display:flex;height:2.2rem;border-radius:.4rem;overflow:hidden;border:1px solid var(--line)}.bar span{display:block;min-width:1px}.legend{display:flex;flex-wrap:wrap;gap:.25rem 1rem;margin:.5rem 0 0;padding:0;list-style:none;font-size:.87rem}
.legend i{display:inline-block;width:.8rem;height:.8rem;border-radius:.2rem;margin-right:.35rem;vertical-align:-.05rem}
.card{background:var(--card);border:1px solid var(--line);border-left:.4rem solid var(--c);border-radius:.5rem;padding:.8rem 1rem;margin:.7rem 0}.card h3{margin:0;font-size:1rem;display:flex;flex-wrap:wrap;gap:.2rem .7rem;align-items:baseline}
.level{color:var(--c);font-weight:700;letter-spacing:.02em}.where{font-weight:600;overflow-wrap:anywhere}.cost{margin-left:auto;font-variant-numeric:tabular-nums}.card p{margin:.35rem 0;overflow-wrap:anywhere}.remedy{border-left:3px solid var(--busy);padding-left:.6rem}
.tags span{display:inline-block;border:1px solid var(--line);border-radius:1rem;padding:0 .55rem;margin:.1rem .3rem .1rem 0;font-size:.8rem;color:var(--dim)}
pre{background:var(--bg);border:1px solid var(--line);border-radius:.4rem;padding:.5rem .7rem;overflow-x:auto;margin:.5rem 0}pre mark{background:var(--mark);color:inherit;display:block;margin:0 -.7rem;padding:0 .7rem}
.blocking{--c:var(--blocking)}.high{--c:var(--high)}.medium{--c:var(--medium)}.low{--c:var(--low)}.info{--c:var(--info)}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.87rem}th,td{text-align:left;padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}th{white-space:nowrap}td.name{overflow-wrap:anywhere;min-width:12rem}.facts td{overflow-wrap:anywhere;min-width:0}.facts td:first-child{width:30%}
h1,.verdict,p,li{overflow-wrap:anywhere}details{margin:.6rem 0}summary{cursor:pointer;font-weight:600}svg{display:block;width:100%;height:auto}svg.wide{height:5.2rem}.ends{display:flex;justify-content:space-between;margin:.2rem 0 0}.none{padding:.6rem 0}ul{padding-left:1.2rem}li{margin:.15rem 0}
)";

// The lines around it, as they were when it ran.
std::string source_around(place const& where, kept_sources const& kept) {
    auto const at = kept.find({where.file, where.line});
    if (at == kept.end()) return {};
    std::string out;
    int number = at->second.first;
    for (auto const& text : at->second.lines) {
        auto const line = fmt::format("{:>5}  {}", number, escaped(text));
        out += number == where.line ? "<mark>" + line + "</mark>" : line + "\n";
        ++number;
    }
    return out;
}

void put_card(std::string& out, model const& m, finding const& f) {
    std::string level{name_of(f.level)};
    std::ranges::transform(level, level.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    auto const& rule = *find_rule(f.rule);
    out += fmt::format(
        "<article class=\"card {}\"><h3><span class=\"level\">{}</span><span>{}</span><span "
        "class=\"where\">{}</span>",
        level, name_of(f.level), escaped(capital(std::string{rule.plain})), escaped(place_text(f.where)));
    if (f.cost >= 0.001) out += fmt::format("<span class=\"cost\">at most {:.1f} %</span>", f.cost * 100);
    out += fmt::format("</h3><p>{}.</p>", escaped(capital(f.what)));
    if (f.level > severity::info || f.rule == "R01")
        out += fmt::format("<p class=\"remedy\">{}.</p>", escaped(capital(std::string{remedy_of(f)})));
    out += "<p class=\"tags\">";
    out += fmt::format("<span>{} {}</span><span>{}</span><span>{}</span><span>{}</span>", f.rule, rule.name,
                       f.count == 1 ? "once" : fmt::format("{} times", f.count), name_of(f.sure),
                       f.structural ? "structural" : "incidental");
    if (f.per_step >= 0.05) out += fmt::format("<span>{:.1f} per step</span>", f.per_step);
    if (f.place != 0) out += fmt::format("<span>{}</span>", f.caller ? "your own line" : "through a library");
    if (!f.arithmetic.empty()) out += fmt::format("<span>{}</span>", escaped(f.arithmetic));
    if (m.processes.size() > 1) out += fmt::format("<span>process {}</span>", f.pid);
    out += "</p>";
    for (auto const& p : m.processes) {
        if (p.pid != f.pid || f.place == 0 || p.place_at(f.place).label != f.where)
            continue;  // a number may come twice
        if (auto const source = source_around(p.place_at(f.place), *m.sources); !source.empty())
            out += "<pre>" + source + "</pre>";
    }
    if (f.stack.size() > 1) {
        out += "<details><summary class=\"small\">Stack</summary><pre>";
        for (auto const& frame : f.stack) out += escaped(frame) + "\n";
        out += "</pre></details>";
    }
    out += "</article>";
}

void put_left_out(std::string& out, std::size_t cards) {
    if (cards > most_cards)
        out +=
            fmt::format("<p class=\"small dim\">{} more are not shown here; --json has them.</p>", cards - most_cards);
}

void put_compiles(std::string& out, model const& m) {
    if (m.compiles.empty()) return;
    out +=
        "<h2>Compiled without a GPU</h2><div "
        "class=\"scroll\"><table><tr><th>program<th>compiler<th>calls<th>failed<th>time</tr>";
    for (auto const& c : compiling_of(m))
        out += fmt::format("<tr><td class=name>{}<td>{}<td>{}<td>{}<td>{}</tr>", escaped(c.program),
                           compiler_name(c.kind), c.count, c.failed, time_text(c.wall));
    out += "</table></div>";
}

void put_lists(std::string& out, report_input const& in) {
    out += "<h2>Let pass, and why</h2>";
    if (in.result.exempt.empty()) out += "<p class=\"none dim\">Nothing was exempt.</p>";
    else out += "<ul>";
    for (auto const& e : in.result.exempt)
        out += fmt::format("<li>{} {}: {} × at {} — {}</li>", e.rule, find_rule(e.rule)->name, e.count,
                           escaped(place_text(e.where)), escaped(e.why));
    if (!in.result.exempt.empty()) out += "</ul>";
    if (!in.m.has_gpu_work()) {
        out += "<h2>Checked and fine</h2><p class=\"none dim\">Nothing: no work on a GPU was recorded.</p>";
        return;
    }
    std::set<std::string> fired;
    for (auto const& f : in.result.findings) fired.insert(f.rule);
    std::string quiet, rested;
    for (auto const& r : in.result.resting) {
        fired.insert(r.rule);
        rested += fmt::format("<li>{} {}: {}</li>", r.rule, find_rule(r.rule)->name, escaped(r.why));
    }
    std::size_t n = 0;
    for (auto const& r : rules()) {
        if (fired.contains(std::string{r.id}) || r.apply == nullptr) continue;
        quiet += fmt::format("<span>{} {}</span>", r.id, r.name);
        ++n;
    }
    out += "<h2>Checked and fine</h2>";
    if (!in.result.good.empty()) {
        out += "<ul>";
        for (auto const& g : in.result.good) out += fmt::format("<li>{}</li>", escaped(g));
        out += "</ul>";
    }
    out +=
        fmt::format("<details><summary>{} rules found nothing</summary><p class=\"tags\">{}</p></details>", n, quiet);
    if (!rested.empty())
        out += fmt::format(
            "<h2>Not checked</h2><details><summary>{} had nothing to look at</summary><ul>{}</ul></details>",
            count_text(in.result.resting.size(), "rule"), rested);
}

void put_sign_off(std::string& out, report_input const& in) {
    auto const all = sign_off_of(in);
    out += fmt::format(
        "<h2>Sign-off</h2><ul><li>CPU code on a GPU (CPU-shaped): <b>{}</b></li><li>What makes it behave like CPU "
        "code: {}</li><li>The smallest structural change, as a suggestion: {}</li><li>{}</li></ul>",
        name_of(all.shape), all.forced_by.empty() ? "nothing does" : escaped(all.forced_by),
        all.change.empty() ? "none is needed" : escaped(all.change),
        in.result.can_be_judged ? "The evidence can be judged." : "It cannot be judged: " + escaped(in.result.why_not));
    if (all.first.empty()) return;
    out += "<p>The first three remedies, in order:</p><ol>";
    for (auto const* const f : all.first)
        out += fmt::format("<li>{}: {}</li>", escaped(capital(plain_of(*f))), escaped(remedy_of(*f)));
    out += "</ol>";
}

// A bar for each process that is at work, one below the other: who does not keep up with the others is seen.
void put_steady(std::string& out, model const& m) {
    constexpr std::size_t most_bars = 16;
    out += "<h2>Where the time goes, once it runs</h2>";
    auto all = processes_at_work(m);
    std::erase_if(all, [](process_model const* p) { return p->steady_busy == 0; });
    if (all.empty())
        out +=
            "<p class=\"none\">It ended before anything was done over and over: all there is to see is how it "
            "began.</p>";
    for (std::size_t i = 0; i < std::min(all.size(), most_bars); ++i) {
        auto const& p = *all[i];
        out += fmt::format(
            "<p class=\"small dim\">{}: {}{}.</p>",
            all.size() > 1 ? fmt::format("The steady state of process {}", p.pid) : "The steady state",
            time_text(p.steady.length()),
            p.cycle.found() ? fmt::format(", {} steps, half of them within {}", p.steady_steps(), time_text(p.median))
                            : "");
        put_steady_bar(out, p);
    }
    if (all.size() > most_bars)
        out += fmt::format("<p class=\"small dim\">{} more are not shown.</p>",
                           count_text(all.size() - most_bars, "process", "processes"));
}

void put_environment(std::string& out, report_input const& in, process_model const* p) {
    out += "<h2>This run</h2><table class=\"facts\">";
    auto const row = [&](std::string_view name, std::string const& value) {
        if (!value.empty()) out += fmt::format("<tr><td>{}<td class=name>{}</tr>", escaped(name), escaped(value));
    };
    row("command", in.m.command);
    row("label", in.m.label);
    row("scale", in.m.scale);
    row("date", in.m.date);
    if (p != nullptr) {
        row("device", fmt::format("{}, {} multiprocessors, compute capability {}.{}", p->device, p->multiprocessors,
                                  p->major, p->minor));
        row("recorded", fmt::format("level {}, CUPTI {}, {} records, {} lost, this tool about {}", p->from->about.level,
                                    p->from->about.cupti, in.m.records, in.m.dropped, time_text(p->tool)));
        row("ended", p->ended_well ? "in good order" : "without a word: what it did last may be missing");
    }
    for (auto const& [name, value] : in.m.environment) row(name, value);
    out += "</table>";
}

}  // namespace

std::string to_html(report_input const& in) {
    auto const* const p = main_process(in.m);
    std::string out =
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width,initial-scale=1\"><meta http-equiv=\"Content-Security-Policy\" "
        "content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>";
    out += escaped("kiln audit: " + (in.m.label.empty() ? in.m.command : in.m.label));
    out += "</title><style>";
    out += style;
    out += "</style></head><body><main>";
    out += fmt::format("<h1>kiln audit · {}</h1><p class=\"verdict\">{}</p><p class=\"small dim\"><code>{}</code></p>",
                       escaped(p != nullptr && !p->device.empty() ? p->device : "no device"),
                       escaped(capital(verdict(in))), escaped(in.m.command));
    if (p != nullptr && !p->ops.empty()) put_steady(out, in.m);
    out += "<h2>Findings</h2>";
    if (is_short_for(in))
        out += fmt::format(
            "<p class=\"small dim\">The steady state was only {}: nothing found in it is called more than MEDIUM, "
            "however large its "
            "share. Audit a longer run to know what it costs.</p>",
            time_text(p->steady.length()));
    std::size_t cards = 0, later = 0;
    for (auto const& f : in.result.findings) {
        if (f.is_later) ++later;
        else if (++cards <= most_cards) put_card(out, in.m, f);
    }
    if (cards == 0) out += "<p class=\"none\">No rule fired.</p>";
    put_left_out(out, cards);
    if (later > 0) {
        out += fmt::format("<details><summary>Do these later: {} for what blocks</summary>",
                           count_text(later, "finding that waits", "findings that wait"));
        std::size_t shown = 0;
        for (auto const& f : in.result.findings)
            if (f.is_later && ++shown <= most_cards) put_card(out, in.m, f);
        put_left_out(out, later);
        out += "</details>";
    }
    if (p != nullptr) {
        if (!p->ledger.empty()) {
            time_ns all = 0;
            for (auto const& r : p->ledger) all += r.wall;
            out += fmt::format(
                "<h2>Until it was steady: {}</h2><p class=\"small dim\">Every moment from the start of the process "
                "belongs to its innermost cause, so this sums to the time.</p>",
                time_text(all));
            put_ledger(out, *p);
        }
        out += "<h2>The GPU over the run</h2>";
        put_strip(out, *p);
        put_step_times(out, *p);
        put_stages(out, *p);
        out += "<h2>In detail</h2>";
        put_kernels(out, *p);
        put_copies(out, *p);
        put_waits(out, *p);
        put_allocations(out, *p);
        put_streams(out, *p);
    }
    put_compiles(out, in.m);
    put_lists(out, in);
    put_sign_off(out, in);
    put_environment(out, in, p);
    out += fmt::format(
        "<p class=\"small dim\">{:.0f} ms of GPU work in {} operations. Costs are upper bounds and overlap: they are "
        "never added.</p></main></body></html>\n",
        p == nullptr ? 0 : in_ms([&] {
            time_ns t = 0;
            for (auto const& b : p->busy) t += b.length();
            return t;
        }()),
        p == nullptr ? 0 : p->ops.size());
    return out;
}

}  // namespace kiln::audit
