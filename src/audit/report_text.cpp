// SPDX-License-Identifier: Apache-2.0
#include "audit/report.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace kiln::audit {

namespace {

constexpr std::size_t most_lines = 45, most_columns = 160, most_findings = 9;
double in_s(time_ns t) { return static_cast<double>(t) * 1e-9; }

std::string cut(std::string text, std::size_t most) {
    if (text.size() > most) text = std::string{base::first_characters(text, most - 1)} + "~";
    return text;
}

struct lines {
    std::string text;
    std::size_t count = 0, kept_free = 0;  // for what comes last
    void add(std::string line) {
        if (count + kept_free >= most_lines) return;
        text += cut(plain_text(line), most_columns) + "\n";
        ++count;
    }
};

std::string finding_line(finding const& f) {
    auto out = fmt::format("  {:<8} {} {:<17} {:>6} x  {}", name_of(f.level), f.rule, find_rule(f.rule)->name, f.count,
                           place_text(f.where));
    if (f.cost >= 0.001) out += fmt::format(", at most {:.0f} %", f.cost * 100);
    if (f.sure != confidence::certain) out += fmt::format(" ({})", name_of(f.sure));
    return out;
}

// All of it, be it on two lines.
void add_verdict(lines& out, std::string const& text) {
    constexpr std::size_t room = most_columns - 13;
    auto const end = text.size() > room ? text.rfind(' ', room) : text.npos;
    out.add("VERDICT      " + text.substr(0, end));
    if (end != text.npos) out.add("             " + text.substr(end + 1));
}

void add_ledger(lines& out, process_model const& p) {
    auto rows = p.ledger;
    time_ns all = 0;
    for (auto const& r : rows) all += r.wall;
    if (all == 0) return;
    std::ranges::sort(rows, std::greater{}, &ledger_row::wall);
    std::string text;
    std::size_t shown = 0;
    auto const head = fmt::format("until steady {:.2f} s: ", in_s(all));
    constexpr std::size_t rest = 14;  // " | and 12 more"
    auto const last = std::ranges::find_if(rows, [](ledger_row const& r) { return in_ms(r.wall) < 1; });
    auto const of_weight = static_cast<std::size_t>(last - rows.begin());
    for (; shown < of_weight; ++shown) {
        auto const& r = rows[shown];
        auto const one = fmt::format("{}{} {:.0f} ms{}", shown > 0 ? " | " : "", r.cause, in_ms(r.wall),
                                     r.inferred ? " (inferred)" : "");
        if (head.size() + text.size() + one.size() + rest > most_columns) break;
        text += one;
    }
    if (shown < of_weight) text += fmt::format(" | and {} more", of_weight - shown);
    out.add(head + text);
}

void add_gaps(lines& out, process_model const& p) {
    std::map<gap_cause, time_ns> by_cause;
    for (auto const& g : p.gaps) by_cause[g.cause] += g.when.length();
    std::vector<std::pair<time_ns, gap_cause>> sorted;
    for (auto const& [cause, t] : by_cause) sorted.emplace_back(t, cause);
    std::ranges::sort(sorted, std::greater{});
    std::string text;
    for (auto const& [t, cause] : sorted) {
        auto const share = 100 * static_cast<double>(t) / static_cast<double>(p.span());
        if (share < 0.5) break;
        text += fmt::format(", {} {:.0f} %", name_of(cause), share);
    }
    out.add(fmt::format("steady       {:.3f} s: GPU busy {:.0f} %{}", in_s(p.steady.length()),
                        100 * static_cast<double>(p.steady_busy) / static_cast<double>(p.span()), text));
}

// Of processes that used no GPU, one line each.
void add_compiles(lines& out, model const& m) {
    constexpr std::size_t most = 3;
    auto const all = compiling_of(m);
    for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
        auto const& c = all[i];
        out.add(fmt::format("compiled     {} {} in {:.2f} s{}, without a GPU: {}", c.count, compiler_name(c.kind),
                            in_s(c.wall), c.failed > 0 ? fmt::format(" ({} failed)", c.failed) : "", c.program));
    }
    if (all.size() > most) out.add(fmt::format("             and {} more", all.size() - most));
}

}  // namespace

std::vector<compiling> compiling_of(model const& m) {
    std::map<std::pair<std::uint32_t, first_kind>, std::vector<compile_apart const*>> by_process;
    for (auto const& c : m.compiles) by_process[{c.pid, c.kind}].push_back(&c);
    std::vector<compiling> out;
    for (auto const& [of, calls] : by_process) {
        compiling one{
            .pid = of.first,
            .program = calls.front()->program.empty() ? fmt::format("process {}", of.first) : calls.front()->program,
            .kind = of.second};
        std::vector<interval> times;
        for (auto const* const c : calls) {
            times.push_back(c->when);
            one.failed += c->is_failed ? 1 : 0;
        }
        one.count = calls.size();
        for (auto const& t : joined(std::move(times))) one.wall += t.length();
        out.push_back(std::move(one));
    }
    std::ranges::sort(out, std::greater{}, &compiling::wall);
    return out;
}

std::string plain_text(std::string_view text) {
    auto out = base::readable_utf8(text);
    // U+0080 to U+009F, two bytes each, are control characters, too.
    for (std::size_t i = 0; i < out.size(); ++i) {
        auto const c = static_cast<unsigned char>(out[i]);
        auto const next = i + 1 < out.size() ? static_cast<unsigned char>(out[i + 1]) : 0u;
        if (c == 0xc2 && next >= 0x80 && next < 0xa0) out.replace(i, 2, "?");
        else if (c < 0x20 || c == 0x7f) out[i] = '?';
    }
    return out;
}
std::string plain_text(std::string_view text, std::size_t most) { return cut(plain_text(text), most); }
std::string plain_of(finding const& f) {
    auto const plain = find_rule(f.rule)->plain;
    return f.place != 0 || f.where == "?" ? fmt::format("{} at {}", plain, place_text(f.where))
                                          : fmt::format("{} ({})", plain, f.where);
}
std::string place_text(std::string const& where) { return where == "?" ? "a line that is not known" : where; }

process_model const* main_process(model const& m) {
    if (m.processes.empty()) return nullptr;
    return &*std::ranges::max_element(m.processes, {}, [](process_model const& p) { return p.ops.size(); });
}

std::vector<process_model const*> processes_at_work(model const& m) {
    constexpr std::size_t part = 10;
    auto const time_of = [](process_model const& p) {
        time_ns out = 0;
        for (auto const& b : p.busy) out += b.length();
        return out;
    };
    std::size_t most_operations = 0;
    time_ns most_time = 0;
    for (auto const& p : m.processes) {
        most_operations = std::max(most_operations, p.ops.size());
        most_time = std::max(most_time, time_of(p));
    }
    std::vector<process_model const*> out;
    for (auto const& p : m.processes) {
        bool const did_much = part * p.ops.size() >= most_operations || part * time_of(p) >= most_time;
        if (!p.ops.empty() && did_much) out.push_back(&p);
    }
    return out;
}

std::string verdict(report_input const& in) {
    if (!in.m.has_gpu_work()) {
        if (!in.result.can_be_judged && !in.result.nothing_ran) return "it cannot be judged: " + in.result.why_not;
        if (in.m.has_operations()) return "no kernel ran on a GPU, only copies and sets";
        return cpu_shape::cpu_code == shape_of(in) ? "nothing ran on a GPU" : "nothing was seen to run on a GPU";
    }
    std::size_t counts[5] = {};
    std::string_view first;  // of HIGH severity
    for (auto const& f : in.result.findings) {
        bool const costs = find_rule(f.rule)->step != audit_step::evidence;
        ++counts[static_cast<std::size_t>(costs ? f.level : std::min(f.level, severity::medium))];
        if (costs && f.level == severity::high && first.empty()) first = find_rule(f.rule)->plain;
    }
    if (auto const* const f = main_finding(in); f != nullptr && f->level == severity::blocking)
        return fmt::format("it runs on the GPU, but {}{} keeps it from scaling", find_rule(f->rule)->plain,
                           f->place != 0 ? " at " + place_text(f->where) : "");
    if (counts[3] > 0)
        return fmt::format("it runs on the GPU, but {} of HIGH severity {} a good part of it: first {}",
                           count_text(counts[3], "finding"), counts[3] == 1 ? "costs" : "cost", first);
    // A short run has no finding of weight, be the GPU as idle as it may.
    auto const signed_off = sign_off_of(in);
    auto const waits = signed_off.shape == cpu_shape::yes
                           ? fmt::format(", which mostly waits ({})", signed_off.forced_by)
                           : std::string{};
    if (counts[2] > 0)
        return fmt::format("it runs on the GPU{}, with {} worth a look", waits, count_text(counts[2], "finding"));
    return fmt::format("it runs on the GPU{}nothing of weight was found", waits.empty() ? ", and " : waits + "; ");
}

bool is_short_for(report_input const& in) {
    auto const* const p = main_process(in.m);
    return p != nullptr && p->is_steady_short() && std::ranges::any_of(in.result.findings, [](finding const& f) {
               return f.level == severity::medium && !f.is_cold && find_rule(f.rule)->step != audit_step::evidence;
           });
}

std::vector<stage> stages_of(process_model const& p) {
    std::map<std::string, stage> all;
    std::map<std::string, interval> spans;
    for (auto const& o : p.ops) {
        auto const place = p.place_of(o.correlation);
        if (place == 0) continue;
        auto const& where = p.place_at(place);
        auto const name = where.function.empty() ? where.label : where.function;
        auto& s = all[name];
        s.name = name;
        s.busy += o.length();
        if (o.kind == op_kind::kernel) ++s.kernels;
        if (o.way == direction::to_host) {
            s.to_host += o.bytes;
            if (s.left_at.empty()) s.left_at = where.label;
        }
        if (o.way == direction::to_device) s.to_device += o.bytes;
        auto& span = spans[name];
        if (span.from == 0) span.from = o.start;
        span.to = std::max(span.to, o.end);
    }
    std::vector<stage> out;
    for (auto& [name, s] : all) {
        s.wall = spans[name].length();
        s.actual = s.kernels == 0 ? "CPU" : 2 * s.busy >= s.wall ? "GPU" : "CPU and GPU";
        out.push_back(s);
    }
    std::ranges::sort(out, std::greater{}, &stage::wall);
    return out;
}

std::string to_text(report_input const& in) {
    lines out;
    auto const& m = in.m;
    auto const* const p = main_process(m);
    if (p == nullptr && in.result.worst() == severity::info) {  // nothing to say but that
        auto const what = in.result.findings.empty() ? std::string{} : ": " + in.result.findings.front().what;
        auto const but = std::min(what.size(), what.find("; but "));
        out.add(fmt::format("kiln audit: {}{}", verdict(in), what.substr(0, but)));
        if (but < what.size()) out.add(fmt::format("            {}", what.substr(but + 2)));
        add_compiles(out, m);
        return out.text;
    }
    out.kept_free = 1 + in.files.size();
    out.add(fmt::format("kiln audit: {}{}", p != nullptr && !p->device.empty() ? p->device : "no device",
                        m.command.empty() ? "" : ", " + cut(m.command, 100)));
    if (p != nullptr)
        out.add(fmt::format("evidence     level {}, {} records, {} lost, tool {:.0f} ms; steps: {}",
                            p->from->about.level, m.records, m.dropped, in_ms(p->tool),
                            p->cycle.found() ? fmt::format("{} ({}), median {:.3f} ms", p->cycle.starts.size(),
                                                           p->cycle.anchor, in_ms(p->median))
                                             : "none found"));
    if (p != nullptr && !p->missing_step.empty())
        out.add(fmt::format("             no step begins with '{}', as was asked for", p->missing_step));
    add_verdict(out, verdict(in));
    if (p != nullptr) {
        add_ledger(out, *p);
        if (!p->ops.empty()) add_gaps(out, *p);
    }
    add_compiles(out, m);
    if (is_short_for(in))
        out.add("             a short run: nothing found in it is more than MEDIUM; audit a longer one");
    std::size_t shown = 0, later = 0, minor = 0;
    for (auto const& f : in.result.findings) {
        if (f.is_later) {
            ++later;
            continue;
        }
        if (shown == most_findings || (f.level <= severity::low && shown >= 5)) {
            ++minor;
            continue;
        }
        out.add(finding_line(f));
        out.add("           " + f.what);
        if (f.level >= severity::medium) out.add(fmt::format("           -> {}", remedy_of(f)));
        ++shown;
    }
    if (shown == 0) out.add("  no findings");
    if (minor > 0) out.add(fmt::format("  and {} more; --json has them all", minor));
    if (later > 0)
        out.add(fmt::format("do these later: {} for what is BLOCKING",
                            count_text(later, "finding that waits", "findings that wait")));
    std::size_t exempt = 0;
    for (auto const& e : in.result.exempt) {
        if (++exempt > 3) break;
        out.add(fmt::format("exempt       {} {} x at {}: {}", e.rule, e.count, place_text(e.where), e.why));
    }
    if (in.result.exempt.size() > 3) out.add(fmt::format("             and {} more", in.result.exempt.size() - 3));
    for (std::size_t i = 0; i < std::min<std::size_t>(2, in.result.good.size()); ++i)
        out.add("fine         " + in.result.good[i]);
    if (p != nullptr) {
        auto const stages = stages_of(*p);
        std::string text;
        for (std::size_t i = 0; i < std::min<std::size_t>(3, stages.size()); ++i)
            text += fmt::format("{}{} ({}, {:.1f} ms of GPU work in {:.1f})", i > 0 ? ", " : "", stages[i].name,
                                stages[i].actual, in_ms(stages[i].busy), in_ms(stages[i].wall));
        if (!text.empty()) out.add("top stages   " + text);
        if (m.processes.size() > 1) {
            std::string ranks;
            for (auto const& one : m.processes) ranks += fmt::format(" {} ({} operations)", one.pid, one.ops.size());
            out.add("processes   " + ranks);
        }
    }
    auto const signed_off = sign_off_of(in);
    out.kept_free = 0;
    out.add(fmt::format(
        "sign-off     CPU-shaped: {}{}; {}", name_of(signed_off.shape),
        signed_off.shape == cpu_shape::yes ? " (" + signed_off.forced_by + ")" : "",
        in.result.can_be_judged ? "the evidence can be judged" : "it cannot be judged: " + in.result.why_not));
    for (auto const& file : in.files) out.add("             " + file);
    return out.text;
}

}  // namespace kiln::audit
