// SPDX-License-Identifier: Apache-2.0
#include "audit/judgement.hpp"

#include "audit/changed_findings.hpp"
#include "audit/health.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace kiln::audit {

namespace {

std::string_view trimmed(std::string_view text) {
    auto const from = text.find_first_not_of(" \t\r");
    if (from == text.npos) return {};
    return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

constexpr std::string_view plain_names[] = {"cold.ms", "steady.gpu_busy", "steady.ms",        "step.ms",
                                            "wall.s",  "bytes_to_host",   "health.gpu_share", "severity"};
constexpr std::string_view of_rules[] = {"count", "per_step", "cost"};
constexpr std::string_view numbers[] = {"R10.ms",    "R36.share", "R50.launches", "R50.share",
                                        "R60.share", "R62.share", "R66.share"};

bool is_share(std::string_view name) {
    return name.ends_with("share") || name.ends_with("busy") || name.ends_with(".cost");
}

std::vector<std::string> known_names() {
    std::vector<std::string> out(std::begin(plain_names), std::end(plain_names));
    for (auto const& r : rules())
        for (auto const what : of_rules) out.push_back(fmt::format("{}.{}", r.id, what));
    out.insert(out.end(), std::begin(numbers), std::end(numbers));
    return out;
}

std::size_t apart(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        auto before = std::exchange(row[0], i);
        for (std::size_t k = 1; k <= b.size(); ++k) {
            auto const changed = before + (a[i - 1] == b[k - 1] ? 0 : 1);
            before = row[k];
            row[k] = std::min({row[k] + 1, row[k - 1] + 1, changed});
        }
    }
    return row.back();
}

std::string nearest(std::string_view name) {
    auto const names = known_names();
    return *std::ranges::min_element(names, {}, [&](std::string const& other) { return apart(name, other); });
}

// One run alone cannot keep it.
bool is_of_diff(std::string_view name) {
    auto const* const r = find_rule(name);
    return r != nullptr && r->apply == nullptr;
}
error judged_by_diff(budget_line const& of) {
    return {errc::invalid_argument,
            fmt::format("line {}: '{}' takes two runs: 'kiln audit diff' judges it, and no budget", of.line, of.name)};
}

result<budget_line> parse_allow(std::string_view rest, budget_line out) {
    out.what = budget_line::kind::allow;
    auto const at = rest.find(" at ");
    auto const because = rest.find(" because ");
    if (at == rest.npos || because == rest.npos || because < at + 4)
        return fail(errc::invalid_argument, "line {}: write 'allow RULE at FILE:LINE because REASON'", out.line);
    out.name = trimmed(rest.substr(0, at));
    out.place = trimmed(rest.substr(at + 4, because - at - 4));
    out.reason = trimmed(rest.substr(because + 9));
    if (out.place.empty() || out.reason.empty())
        return fail(errc::invalid_argument, "line {}: write 'allow RULE at FILE:LINE because REASON'", out.line);
    if (find_rule(out.name) == nullptr)
        return fail(errc::invalid_argument, "line {}: there is no rule '{}'; 'kiln audit rules' lists them", out.line,
                    out.name);
    if (is_of_diff(out.name)) return judged_by_diff(out);
    return out;
}

result<double> parse_value(std::string_view text, budget_line const& of) {
    if (of.name == "severity") {
        if (auto const s = severity_named(text)) return static_cast<double>(*s);
        return fail(errc::invalid_argument, "line {}: '{}' is no severity: info, low, medium, high or blocking",
                    of.line, text);
    }
    double out = 0;
    bool const is_percent = text.ends_with('%');
    auto const digits = trimmed(is_percent ? text.substr(0, text.size() - 1) : text);
    auto const [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    if (bad != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(out))
        return fail(errc::invalid_argument, "line {}: '{}' is no number", of.line, text);
    if (is_percent && !is_share(of.name))
        return fail(errc::invalid_argument, "line {}: '{}' is no share: write it without %", of.line, of.name);
    return is_percent ? out / 100 : out;
}

result<budget_line> parse_line(std::string_view text, int number) {
    budget_line out{.line = number, .text = std::string{text}};
    if (text.starts_with("allow ")) return parse_allow(text.substr(6), std::move(out));
    for (auto const& [sign, kind] : {std::pair{std::string_view{"<="}, budget_line::kind::at_most},
                                     {">=", budget_line::kind::at_least},
                                     {"=", budget_line::kind::number}}) {
        auto const at = text.find(sign);
        if (at == text.npos) continue;
        out.what = kind;
        out.name = trimmed(text.substr(0, at));
        auto const names = known_names();
        if (std::ranges::find(names, out.name) == names.end())
            return fail(errc::invalid_argument, "line {}: nothing is called '{}'; did you mean '{}'?", number, out.name,
                        nearest(out.name));
        if (is_of_diff(out.name.substr(0, 3))) return judged_by_diff(out);
        bool const is_number = std::ranges::find(numbers, out.name) != std::end(numbers);
        if (is_number != (kind == budget_line::kind::number))
            return fail(errc::invalid_argument, "line {}: '{}' is {}", number, out.name,
                        is_number ? "a number of a rule: write 'NAME = VALUE'" : "measured: write '<=' or '>='");
        if (out.name == "severity" && kind == budget_line::kind::at_least)
            return fail(errc::invalid_argument, "line {}: a severity is held down: write 'severity <= LEVEL'", number);
        KILN_TRY(out.value, parse_value(trimmed(text.substr(at + sign.size())), out));
        if (!is_number && out.value < 0)
            return fail(errc::invalid_argument, "line {}: '{}' is never below 0", number, out.name);
        if (out.value < 0 || (is_share(out.name) && out.value > 1))
            return fail(errc::invalid_argument, "line {}: '{}' cannot be {}", number, out.name,
                        out.value < 0 ? "below 0" : "more than 100 %: write 60% or 0.6");
        return out;
    }
    return fail(
        errc::invalid_argument,
        "line {}: '{}': write 'NAME <= VALUE', 'NAME >= VALUE', 'NAME = VALUE' or 'allow RULE at PLACE because REASON'",
        number, text);
}

double bytes_to_host(model const& m) {
    double out = 0;
    for (auto const& p : m.processes)
        for (auto const& o : p.ops)
            if (o.way == direction::to_host) out += static_cast<double>(o.bytes);
    return out;
}

time_ns until_steady(process_model const& p) {
    time_ns out = 0;
    for (auto const& r : p.ledger) out += r.wall;
    return out;
}

struct measurement {
    std::optional<double> value = {};  // of what is known
    std::uint32_t pid = 0;             // whose it is; 0: it is of all together
    std::string why_not = {};          // something is not known; empty: all is
};

constexpr char const* no_steps = "no steps were found";

// Without steps, or by others than were asked for, neither a count per step nor a steady state means anything.
bool has_steps(process_model const& p) { return p.cycle.found() && p.missing_step.empty(); }

// Of the process that is furthest from keeping the line: each has to keep it.
template <class Of>
measurement worst_of(std::vector<process_model const*> const& all, budget_line::kind what, Of const& of) {
    measurement out;
    if (all.empty()) out.why_not = "it could not be measured";
    for (auto const* const p : all) {
        std::optional<double> const its = of(*p);
        if (!its) {
            out.why_not = no_steps;
            continue;
        }
        bool const is_worse = what == budget_line::kind::at_most ? out.value < its : out.value > its;
        if (!out.value || is_worse) out = {its, p->pid, out.why_not};
    }
    return out;
}

measurement measured_of_rule(budget_line const& l, report_input const& in) {
    auto const at_work = processes_at_work(in.m);
    auto const id = l.name.substr(0, 3);
    auto const what = l.name.substr(4);
    double count = 0;
    std::map<std::uint32_t, double> per_step, cost;
    for (auto const& f : in.result.findings) {
        if (f.rule != id) continue;
        count += static_cast<double>(f.count);
        per_step[f.pid] += f.per_step;
        cost[f.pid] += f.cost;
    }
    bool const rests = find_rule(id)->what == needs::steps &&
                       std::ranges::any_of(at_work, [](process_model const* p) { return !p->cycle.found(); });
    auto const& by_process = what == "cost" ? cost : per_step;
    auto const worst = std::ranges::max_element(by_process, {}, [](auto const& of) { return of.second; });
    measurement out{.value = count};
    if (what != "count") out = {0, 0, {}};
    if (what != "count" && worst != by_process.end()) out = {worst->second, worst->first, {}};
    if (what == "cost") out.value = std::min(1.0, *out.value);  // those of several lines may overlap
    if (rests) out.why_not = fmt::format("{}, so {} had nothing to look at", no_steps, id);
    else if (what == "per_step" && !std::ranges::all_of(at_work, [](auto const* p) { return has_steps(*p); }))
        out.why_not = no_steps;
    return out;
}

measurement measured(budget_line const& l, report_input const& in) {
    auto const& name = l.name;
    auto const of_all = [](std::optional<double> value) {
        return measurement{value, 0, value ? std::string{} : "it could not be measured"};
    };
    if (name == "severity") return of_all(static_cast<double>(in.result.worst()));
    if (name == "wall.s") return of_all(in.m.wall_s > 0 ? std::optional{in.m.wall_s} : std::nullopt);
    if (name == "health.gpu_share") {
        if (auto why = why_not_counted(in.m); !why.empty()) return {.why_not = std::move(why)};
        health h;
        add_health(in.m, {}, h);
        return of_all(h.processes.all == 0 ? std::nullopt : std::optional{h.gpu_share()});
    }
    if (name.size() > 4 && name[0] == 'R') return measured_of_rule(l, in);
    if (name == "bytes_to_host") return of_all(bytes_to_host(in.m));
    auto const at_work = processes_at_work(in.m);
    if (name == "cold.ms") return worst_of(at_work, l.what, [](auto const& p) { return in_ms(until_steady(p)); });
    return worst_of(at_work, l.what, [&](process_model const& p) -> std::optional<double> {
        if (!has_steps(p)) return std::nullopt;
        if (name == "steady.gpu_busy") return static_cast<double>(p.steady_busy) / static_cast<double>(p.span());
        return in_ms(name == "steady.ms" ? p.steady.length() : p.median);
    });
}

std::string value_text(std::string const& name, double value) {
    if (name == "severity") return std::string{name_of(static_cast<severity>(static_cast<int>(value)))};
    return is_share(name) ? fmt::format("{:.1f} %", value * 100) : fmt::format("{:g}", value);
}

}  // namespace

rule_options budget::apply(rule_options to) const {
    for (auto const& l : lines) {
        if (l.what == budget_line::kind::number) to.numbers[l.name] = l.value;
        if (l.what == budget_line::kind::allow)
            to.allowed.push_back({std::string{find_rule(l.name)->id}, l.place, l.reason});
    }
    return to;
}

result<budget> parse_budget(std::string_view text) {
    budget out;
    for (int number = 1; !text.empty(); ++number) {
        auto const end = text.find('\n');
        auto line = text.substr(0, end);
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
        line = trimmed(line.substr(0, line.find('#')));
        if (line.empty()) continue;
        KILN_TRY(auto parsed, parse_line(line, number));
        out.lines.push_back(std::move(parsed));
    }
    return out;
}

std::vector<verdict_line> check(budget const& b, report_input const& in) {
    std::vector<verdict_line> out;
    for (auto const& l : b.lines) {
        if (l.what != budget_line::kind::at_most && l.what != budget_line::kind::at_least) continue;
        auto const is = measured(l, in);
        bool const holds =
            !is.value || (l.what == budget_line::kind::at_most ? *is.value <= l.value : *is.value >= l.value);
        bool const is_unknown = holds && !is.why_not.empty();  // what is known breaks it all the same
        auto said = is_unknown ? is.why_not : "measured " + value_text(l.name, *is.value);
        if (!is_unknown && is.pid != 0 && in.m.processes.size() > 1) said += fmt::format(" (process {})", is.pid);
        out.push_back({.kept = holds && !is_unknown,
                       .unknown = is_unknown,
                       .text = fmt::format("line {}: {}: {}", l.line, l.text, said)});
    }
    return out;
}

namespace {

// The most that was allocated on the device at a time; of several processes, of each.
double peak_memory(process_model const& p) {
    auto all = p.from->memory;
    std::ranges::stable_sort(all, {}, &format::memory_record::time);
    std::unordered_map<std::uint64_t, std::uint64_t> live;
    std::uint64_t now = 0, most = 0;
    for (auto const& r : all) {
        if (static_cast<memory_kind>(r.memory) != memory_kind::device) continue;
        auto& bytes = live[r.address];
        now -= bytes;
        bytes = r.operation == 1 ? r.bytes : 0;
        now += bytes;
        most = std::max(most, now);
    }
    return static_cast<double>(most);
}
double peak_memory(model const& m) {
    double out = 0;
    for (auto const& p : m.processes) out += peak_memory(p);
    return out;
}

// By the names that people read: instances of one template are one.
std::set<std::string> kernels_of(model const& m) {
    std::set<std::string> out;
    for (auto const& p : m.processes) {
        std::set<std::uint32_t> names;
        for (auto const& o : p.ops)
            if (o.kind == op_kind::kernel) names.insert(o.name);
        for (auto const name : names) out.insert(short_kernel_name(p.text(name), 80));
    }
    return out;
}

// Of the slowest process that is at work; 0: nobody's is known.
time_ns longest_step(model const& m) {
    time_ns out = 0;
    for (auto const* const p : processes_at_work(m))
        if (p->cycle.found()) out = std::max(out, p->median);
    return out;
}

std::map<std::string, time_ns> ledger_of(model const& m) {
    std::map<std::string, time_ns> out;
    for (auto const& p : m.processes)
        for (auto const& r : p.ledger) out[r.cause] += r.wall;
    return out;
}

std::string told(finding const& f) {
    return fmt::format("{} {} {} at {}: {}", name_of(f.level), f.rule, find_rule(f.rule)->name, place_text(f.where),
                       f.what);
}

std::string device_of(process_model const* p) {
    return p == nullptr || p->device.empty() ? std::string{"no device"} : p->device;
}

}  // namespace

nlohmann::ordered_json to_json(difference const& d) {
    using json = nlohmann::ordered_json;
    auto const measured = [](std::vector<difference::measure> const& all) {
        json out = json::array();
        for (auto const& m : all)
            out.push_back(
                {{"what", m.what}, {"unit", m.unit}, {"before", m.before}, {"after", m.after}, {"worse", m.worse}});
        return out;
    };
    auto const found = [](std::vector<finding> const& all) {
        json out = json::array();
        for (auto const& f : all)
            out.push_back({{"rule", f.rule},
                           {"name", find_rule(f.rule)->name},
                           {"severity", name_of(f.level)},
                           {"where", f.where},
                           {"what", f.what}});
        return out;
    };
    return {{"broken", d.broken},
            {"exit_status", {{"before", d.status_before}, {"after", d.status_after}}},
            {"device", {{"before", d.device_before}, {"after", d.device_after}}},
            {"measures", measured(d.measures)},
            {"ledger", measured(d.ledger)},
            {"kernels", {{"new", d.new_kernels}, {"gone", d.gone_kernels}}},
            {"findings", {{"new", found(d.new_findings)}, {"gone", found(d.gone_findings)}}},
            {"cold_again", d.cold_again}};
}

result<difference> compare(report_input const& before, report_input const& after, strictness how) {
    auto const* const a = main_process(before.m);
    auto const* const b = main_process(after.m);
    bool const left = before.m.has_gpu_work() && !after.m.has_gpu_work();
    if (how == strictness::same_only) {
        if (before.m.command != after.m.command)
            return fail(errc::invalid_argument, "another command: '{}' and '{}'; --force compares them all the same",
                        before.m.command, after.m.command);
        if (before.m.label != after.m.label)
            return fail(errc::invalid_argument, "another label: '{}' and '{}'; --force compares them all the same",
                        before.m.label, after.m.label);
        if (before.m.level != after.m.level)
            return fail(errc::invalid_argument, "another level: {} and {}; --force compares them all the same",
                        before.m.level, after.m.level);
        // A run that left the GPU is what this is for: it is compared, and broken.
        if (!left && device_of(a) != device_of(b))
            return fail(errc::invalid_argument, "another device: {} and {}; --force compares them all the same",
                        device_of(a), device_of(b));
    }
    difference out;
    out.status_before = before.m.exit_status;
    out.status_after = after.m.exit_status;
    if (before.m.has_gpu_work()) out.device_before = device_of(a);
    if (after.m.has_gpu_work()) out.device_after = device_of(b);
    if (left) {
        out.broken = true;
        out.lines.push_back(fmt::format("WORSE  it ran on {}, and now nothing runs on a GPU", device_of(a)));
    }
    if (!before.m.has_gpu_work() && after.m.has_gpu_work())
        out.lines.push_back(fmt::format("       nothing ran on a GPU, and now it runs on {}", device_of(b)));
    // It did less than the other, and all that follows is the better for it.
    if (before.m.exit_status == 0 && after.m.exit_status != 0) {
        out.broken = true;
        out.lines.push_back(fmt::format("WORSE  the program ended with {}, and with 0 before", after.m.exit_status));
    }
    auto const more = [&](char const* what, double x, double y, double most, char const* unit) {
        if (x <= 0 && y <= 0) return;
        bool const worse = y > x * (1 + most) && (x > 0 || most == 0);
        out.broken = out.broken || worse;
        out.measures.push_back({what, unit, x, y, worse});
        auto const percent = x > 0 ? fmt::format(" ({:+.1f} %)", 100 * (y / x - 1)) : std::string{};
        int const digits = std::string_view{unit} == "bytes" ? 0 : 3;
        out.lines.push_back(fmt::format("{} {:<12} {:.{}f} -> {:.{}f} {}{}", worse ? "WORSE " : "      ", what, x,
                                        digits, y, digits, unit, percent));
    };
    more("wall", before.m.wall_s, after.m.wall_s, 0.05, "s");
    if (a != nullptr && b != nullptr) {
        auto const step = std::pair{longest_step(before.m), longest_step(after.m)};
        if (step.first > 0 && step.second > 0) more("step", in_ms(step.first), in_ms(step.second), 0.05, "ms");
        else if (step.first > 0 || step.second > 0)
            out.lines.push_back(fmt::format("       step         not compared: no steps were found in the {} run",
                                            step.first > 0 ? "second" : "first"));
        more("read", bytes_to_host(before.m), bytes_to_host(after.m), 0, "bytes");
        constexpr double mib = 1 << 20;
        more("memory", peak_memory(before.m) / mib, peak_memory(after.m) / mib, 0.10, "MiB");
        std::map<std::string, std::pair<time_ns, time_ns>> ledger;
        for (auto const& [cause, wall] : ledger_of(before.m)) ledger[cause].first = wall;
        for (auto const& [cause, wall] : ledger_of(after.m)) ledger[cause].second = wall;
        for (auto const& [cause, walls] : ledger)
            if (std::max(walls.first, walls.second) > 10'000'000) {
                out.ledger.push_back({cause, "ms", in_ms(walls.first), in_ms(walls.second), false});
                out.lines.push_back(
                    fmt::format("       {:<28} {:.0f} -> {:.0f} ms", cause, in_ms(walls.first), in_ms(walls.second)));
            }
        // R17: what the first run compiled, the second compiled again.
        std::pair<time_ns, time_ns> compiled;
        for (auto const* const cause : {"NVRTC", "driver JIT: compile", "compiler processes"}) {
            compiled.first += ledger[cause].first;
            compiled.second += ledger[cause].second;
        }
        out.cold_again = compiled.first >= 100'000'000 && compiled.second * 2 >= compiled.first;
        if (out.cold_again)
            out.lines.push_back(fmt::format("MEDIUM R17 cold-again: {:.0f} ms of compiling, then {:.0f} ms",
                                            in_ms(compiled.first), in_ms(compiled.second)));
        auto const first = kernels_of(before.m), second = kernels_of(after.m);
        std::ranges::set_difference(second, first, std::back_inserter(out.new_kernels));
        std::ranges::set_difference(first, second, std::back_inserter(out.gone_kernels));
        for (auto const& k : out.new_kernels) out.lines.push_back("       new kernel    " + k);
        for (auto const& k : out.gone_kernels) out.lines.push_back("       kernel gone   " + k);
    }
    auto changed = changes_between(before.result.findings, after.result.findings);
    for (auto const& f : changed.gone) out.lines.push_back("gone   " + told(f));
    for (auto const& [from, to] : changed.moved)
        out.lines.push_back(
            fmt::format("       {} {} moved from {} to {}", name_of(to.level), to.rule, from.where, to.where));
    for (auto const& f : changed.fresh) out.lines.push_back("NEW    " + told(f));
    out.gone_findings = std::move(changed.gone);
    out.new_findings = std::move(changed.fresh);
    if (!out.new_findings.empty()) out.broken = true;
    return out;
}

}  // namespace kiln::audit
