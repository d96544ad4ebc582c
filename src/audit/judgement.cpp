// SPDX-License-Identifier: Apache-2.0
#include "audit/judgement.hpp"

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

result<budget_line> parse_allow(std::string_view rest, budget_line out) {
    out.what = budget_line::kind::allow;
    auto const at = rest.find(" at ");
    auto const because = rest.find(" because ");
    if (at == rest.npos || because == rest.npos || because < at)
        return fail(errc::invalid_argument, "line {}: write 'allow RULE at FILE:LINE because REASON'", out.line);
    out.name = trimmed(rest.substr(0, at));
    out.place = trimmed(rest.substr(at + 4, because - at - 4));
    out.reason = trimmed(rest.substr(because + 9));
    if (find_rule(out.name) == nullptr)
        return fail(errc::invalid_argument, "line {}: there is no rule '{}'; 'kiln audit rules' lists them", out.line,
                    out.name);
    return out;
}

result<double> parse_value(std::string_view text, budget_line const& of) {
    if (of.name == "severity") {
        if (auto const s = severity_named(text)) return static_cast<double>(*s);
        return fail(errc::invalid_argument, "line {}: '{}' is no severity: info, low, medium, high or blocking",
                    of.line, text);
    }
    double out = 0;
    bool const is_share = text.ends_with('%');
    auto const digits = trimmed(is_share ? text.substr(0, text.size() - 1) : text);
    auto const [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    if (bad != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(out))
        return fail(errc::invalid_argument, "line {}: '{}' is no number", of.line, text);
    return is_share ? out / 100 : out;
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
        bool const is_number = std::ranges::find(numbers, out.name) != std::end(numbers);
        if (is_number != (kind == budget_line::kind::number))
            return fail(errc::invalid_argument, "line {}: '{}' is {}", number, out.name,
                        is_number ? "a number of a rule: write 'NAME = VALUE'" : "measured: write '<=' or '>='");
        if (out.name == "severity" && kind == budget_line::kind::at_least)
            return fail(errc::invalid_argument, "line {}: a severity is held down: write 'severity <= LEVEL'", number);
        KILN_TRY(out.value, parse_value(trimmed(text.substr(at + sign.size())), out));
        bool const is_share = out.name.ends_with("share") || out.name.ends_with("busy");
        if (!is_number && out.value < 0)
            return fail(errc::invalid_argument, "line {}: '{}' is never below 0", number, out.name);
        if (is_number && (out.value < 0 || (is_share && out.value > 1)))
            return fail(errc::invalid_argument, "line {}: '{}' cannot be {}", number, out.name,
                        out.value < 0 ? "below 0" : "more than 100 %");
        return out;
    }
    return fail(
        errc::invalid_argument,
        "line {}: '{}': write 'NAME <= VALUE', 'NAME >= VALUE', 'NAME = VALUE' or 'allow RULE at PLACE because REASON'",
        number, text);
}

bool is_at(finding const& f, std::string const& place) {
    if (f.where == place) return true;
    for (auto const& frame : f.stack) {  // "solver.py:12 in read_count"
        auto const in = frame.find(" in ");
        auto const colon = frame.find(':');
        if (in == frame.npos || colon == frame.npos) continue;
        if (frame.substr(0, in) == place || frame.substr(0, colon) + ":" + frame.substr(in + 4) == place) return true;
    }
    return false;
}

double bytes_to_host(process_model const& p) {
    double out = 0;
    for (auto const& o : p.ops)
        if (o.way == direction::to_host) out += static_cast<double>(o.bytes);
    return out;
}

std::optional<double> measured(std::string const& name, report_input const& in) {
    auto const* const p = main_process(in.m);
    // Without steps, or by others than were asked for, neither a count per step nor a steady state means anything.
    bool const has_steps = p != nullptr && p->cycle.found() && p->missing_step.empty();
    if (name == "severity") return static_cast<double>(in.result.worst());
    if (name == "wall.s") return in.m.wall_s > 0 ? std::optional{in.m.wall_s} : std::nullopt;
    if (name == "health.gpu_share") {
        health h;
        add_health(in.m, {}, h);
        return h.processes.all == 0 ? std::nullopt : std::optional{h.gpu_share()};
    }
    if (name.size() > 4 && name[0] == 'R') {
        auto const id = name.substr(0, 3);
        auto const what = name.substr(4);
        if (what == "per_step" && !has_steps) return std::nullopt;
        double out = 0;
        for (auto const& f : in.result.findings) {
            if (f.rule != id) continue;
            out += what == "count" ? static_cast<double>(f.count) : what == "per_step" ? f.per_step : f.cost;
        }
        return out;
    }
    if (p == nullptr) return std::nullopt;
    if (name == "cold.ms") {
        time_ns all = 0;
        for (auto const& r : p->ledger) all += r.wall;
        return in_ms(all);
    }
    if (name == "bytes_to_host") return bytes_to_host(*p);
    if (!has_steps) return std::nullopt;
    if (name == "steady.gpu_busy") return static_cast<double>(p->steady_busy) / static_cast<double>(p->span());
    if (name == "steady.ms") return in_ms(p->steady.length());
    if (name == "step.ms") return in_ms(p->median);
    return std::nullopt;
}

std::string value_text(std::string const& name, double value) {
    if (name == "severity") return std::string{name_of(static_cast<severity>(static_cast<int>(value)))};
    bool const is_share = name.ends_with("share") || name.ends_with("busy") || name.ends_with(".cost");
    return is_share ? fmt::format("{:.1f} %", value * 100) : fmt::format("{:g}", value);
}

}  // namespace

rule_options budget::apply(rule_options to) const {
    for (auto const& l : lines)
        if (l.what == budget_line::kind::number) to.numbers[l.name] = l.value;
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

void allow(budget const& b, audit_result& r) {
    for (auto const& l : b.lines) {
        if (l.what != budget_line::kind::allow) continue;
        auto const* const rule = find_rule(l.name);
        std::erase_if(r.findings, [&](finding const& f) {
            if (f.rule != rule->id || !is_at(f, l.place)) return false;
            r.exempt.push_back({f.rule, f.where, "allowed: " + l.reason, f.count});
            return true;
        });
    }
}

std::vector<verdict_line> check(budget const& b, report_input const& in) {
    std::vector<verdict_line> out;
    for (auto const& l : b.lines) {
        if (l.what != budget_line::kind::at_most && l.what != budget_line::kind::at_least) continue;
        auto const value = measured(l.name, in);
        if (!value) {
            out.push_back({.kept = false,
                           .unknown = true,
                           .text = fmt::format("line {}: {}: it could not be measured", l.line, l.text)});
            continue;
        }
        bool const kept = l.what == budget_line::kind::at_most ? *value <= l.value : *value >= l.value;
        out.push_back({.kept = kept,
                       .text = fmt::format("line {}: {}: measured {}", l.line, l.text, value_text(l.name, *value))});
    }
    return out;
}

namespace {

// The most that was allocated on the device at a time.
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

// By the names that people read: instances of one template are one.
std::set<std::string> kernels_of(process_model const& p) {
    std::set<std::uint32_t> names;
    for (auto const& o : p.ops)
        if (o.kind == op_kind::kernel) names.insert(o.name);
    std::set<std::string> out;
    for (auto const name : names) out.insert(short_kernel_name(p.text(name), 80));
    return out;
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
    if (before.m.has_gpu_work()) out.device_before = device_of(a);
    if (after.m.has_gpu_work()) out.device_after = device_of(b);
    if (left) {
        out.broken = true;
        out.lines.push_back(fmt::format("WORSE  it ran on {}, and now nothing runs on a GPU", device_of(a)));
    }
    if (!before.m.has_gpu_work() && after.m.has_gpu_work())
        out.lines.push_back(fmt::format("       nothing ran on a GPU, and now it runs on {}", device_of(b)));
    auto const more = [&](char const* what, double x, double y, double most, char const* unit) {
        if (x <= 0 && y <= 0) return;
        bool const worse = y > x * (1 + most) && (x > 0 || most == 0);
        out.broken = out.broken || worse;
        out.measures.push_back({what, unit, x, y, worse});
        out.lines.push_back(fmt::format("{} {:<12} {:.3f} -> {:.3f} {} ({:+.1f} %)", worse ? "WORSE " : "      ", what,
                                        x, y, unit, x > 0 ? 100 * (y / x - 1) : 0));
    };
    more("wall", before.m.wall_s, after.m.wall_s, 0.05, "s");
    if (a != nullptr && b != nullptr) {
        if (a->cycle.found() && b->cycle.found()) more("step", in_ms(a->median), in_ms(b->median), 0.05, "ms");
        more("read", bytes_to_host(*a), bytes_to_host(*b), 0, "bytes");
        constexpr double mib = 1 << 20;
        more("memory", peak_memory(*a) / mib, peak_memory(*b) / mib, 0.10, "MiB");
        std::map<std::string, std::pair<time_ns, time_ns>> ledger;
        for (auto const& r : a->ledger) ledger[r.cause].first = r.wall;
        for (auto const& r : b->ledger) ledger[r.cause].second = r.wall;
        for (auto const& [cause, walls] : ledger)
            if (std::max(walls.first, walls.second) > 10'000'000) {
                out.ledger.push_back({cause, "ms", in_ms(walls.first), in_ms(walls.second), false});
                out.lines.push_back(
                    fmt::format("       {:<28} {:.0f} -> {:.0f} ms", cause, in_ms(walls.first), in_ms(walls.second)));
            }
        // R17: what the first run compiled, the second compiled again.
        auto const compiled = [](process_model const& p) {
            time_ns sum = 0;
            for (auto const& r : p.ledger)
                if (r.cause == "NVRTC" || r.cause == "driver JIT: compile" || r.cause == "compiler processes")
                    sum += r.wall;
            return sum;
        };
        out.cold_again = compiled(*a) >= 100'000'000 && compiled(*b) * 2 >= compiled(*a);
        if (out.cold_again)
            out.lines.push_back(fmt::format("MEDIUM R17 cold-again: {:.0f} ms of compiling, then {:.0f} ms",
                                            in_ms(compiled(*a)), in_ms(compiled(*b))));
        auto const first = kernels_of(*a), second = kernels_of(*b);
        std::ranges::set_difference(second, first, std::back_inserter(out.new_kernels));
        std::ranges::set_difference(first, second, std::back_inserter(out.gone_kernels));
        for (auto const& k : out.new_kernels) out.lines.push_back("       new kernel    " + k);
        for (auto const& k : out.gone_kernels) out.lines.push_back("       kernel gone   " + k);
    }
    // Of weight in the one, and in the other not at all.
    auto const tell_missing = [&](char const* how, report_input const& in, report_input const& other,
                                  std::vector<finding>& to) {
        std::set<std::pair<std::string, std::string>> known;
        for (auto const& f : other.result.findings) known.insert({f.rule, f.where});
        for (auto const& f : in.result.findings) {
            if (f.level < severity::medium || known.contains({f.rule, f.where})) continue;
            to.push_back(f);
            out.lines.push_back(fmt::format("{:<6} {} {} {} at {}: {}", how, name_of(f.level), f.rule,
                                            find_rule(f.rule)->name, place_text(f.where), f.what));
        }
    };
    tell_missing("gone", before, after, out.gone_findings);
    tell_missing("NEW", after, before, out.new_findings);
    if (!out.new_findings.empty()) out.broken = true;
    return out;
}

}  // namespace kiln::audit
