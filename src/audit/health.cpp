// SPDX-License-Identifier: Apache-2.0
#include "audit/health.hpp"

#include "audit/dispatch_event.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>

namespace kiln::audit {

namespace {

// ---- what is a unit

// Every program is a unit of a test suite but helpers, and but a runner: one without a kernel that started others which count, be it through
// helpers. Who started only compilers and tools is a test. A fork that never became a program has no name, and is none.
class counted_programs {
public:
    explicit counted_programs(model const& m) : m_{m}, recorded_(m.children.size()), starts_(m.children.size()) {
        for (std::size_t i = 0; i < m.children.size(); ++i) by_pid_[m.children[i].pid].push_back(i);
        find_recorded();
        for (std::size_t i = 0; i < m.children.size(); ++i)
            if (recorded_[i] || is_program(i)) mark_starters(m.children[i].parent, m.children[i].when.from);
    }

    // The name of a process that was recorded, as it is told of those that were not.
    [[nodiscard]] std::string name_of(process_model const& p) const {
        auto const at = child_of_.find(&p);
        auto const command = at == child_of_.end() ? std::string{} : m_.children[at->second].command;
        return command.empty() ? short_command(p.program) : command;
    }
    void add_those_without_gpu(std::vector<health::unit>& to) const {
        for (std::size_t i = 0; i < m_.children.size(); ++i) {
            auto const& c = m_.children[i];
            if (is_program(i) && !starts_[i] && !recorded_[i])
                to.push_back({c.command.empty() ? c.name : c.command, 0, false});
        }
    }

private:
    static constexpr std::size_t nobody = static_cast<std::size_t>(-1);

    [[nodiscard]] bool is_program(std::size_t i) const {
        return !m_.children[i].name.empty() && !m_.children[i].is_helper;
    }

    // A number comes again, and at once in another namespace of processes: each that was recorded is one of those that were seen with it.
    void find_recorded() {
        for (auto const& p : m_.processes) {
            auto best = nobody;
            auto const of = by_pid_.find(p.pid);
            if (of == by_pid_.end()) {
                mark_starters(p.from->about.parent, p.begun);
                continue;
            }
            for (auto const i : of->second)
                if (!recorded_[i] && (best == nobody || fit(p, i) > fit(p, best))) best = i;
            if (best == nobody) continue;
            recorded_[best] = true;
            child_of_[&p] = best;
        }
    }
    [[nodiscard]] int fit(process_model const& p, std::size_t i) const {
        auto const& c = m_.children[i];
        bool const is_over = c.was_waited_for && c.when.to < p.begun;
        bool const had_begun = c.when.from <= p.begun;
        return (is_over ? 0 : 4) + (had_begun ? 2 : 0) + (c.command == short_command(p.program) ? 1 : 0);
    }

    // Whoever had that number then.
    [[nodiscard]] std::size_t who(std::uint32_t pid, time_ns when) const {
        auto const of = by_pid_.find(pid);
        if (of == by_pid_.end()) return nobody;
        auto out = of->second.front();
        for (auto const i : of->second)
            if (m_.children[i].when.from <= when) out = i;
        return out;
    }
    void mark_starters(std::uint32_t pid, time_ns when) {
        for (auto at = who(pid, when); at != nobody && !starts_[at];) {
            starts_[at] = true;
            if (is_program(at)) break;
            at = who(m_.children[at].parent, m_.children[at].when.from);
        }
    }

    model const& m_;
    std::map<std::uint32_t, std::vector<std::size_t>> by_pid_;  // in the order of their beginnings
    std::vector<bool> recorded_, starts_;
    std::map<process_model const*, std::size_t> child_of_;
};

void add_dispatches(process_model const& p, health& to) {
    std::unordered_map<std::uint32_t, std::uint64_t> ids;
    for (auto const& e : p.from->externals) ids[e.correlation] = e.id;
    std::set<std::uint64_t> with_kernels;
    for (auto const& o : p.ops)
        if (auto const at = ids.find(o.correlation); o.kind == op_kind::kernel && at != ids.end())
            with_kernels.insert(at->second);
    auto& n = to.dispatches;
    for (auto const& d : p.from->dispatches) {
        auto const event = dispatch_event_of(p.text(d.text));
        if (!event) continue;
        auto const& kind = event->kind;
        if (kind != "dispatched" && kind != "fell_back" && kind != "failed") continue;
        ++n.all;
        if (kind == "failed") ++n.failed;
        else if (kind == "fell_back") ++n.fell_back;
        else if (event->selected == "gpu") ++n.gpu;
        else ++n.cpu;
        if (with_kernels.contains(d.id)) ++n.verified;
        if (!event->reason.empty()) ++to.reasons[event->reason];
    }
}

std::string counts_text(health_counts const& n, char const* one, char const* many, std::string const& more) {
    return fmt::format("{}: {} on the GPU, {} on the CPU{}\nGPU share {:.2f} %, verified by kernels {:.2f} %\n",
                       count_text(n.all, one, many), n.gpu, n.cpu, more, 100 * n.gpu_share(), 100 * n.verified_share());
}

// ---- baselines

// Names of temporary files, ports and numbers of processes differ from run to run: they are not compared.
std::string compared_name(std::string_view name) {
    std::string out;
    for (std::size_t at = 0; at <= name.size();) {
        auto const end = std::min(name.find(' ', at), name.size());
        auto word = name.substr(at, end - at);
        at = end + 1;
        if (!out.empty()) out += ' ';
        if (auto const temporary = word.find("tmp"); temporary != word.npos) {
            out += std::string{word.substr(0, temporary)} + "*";
            continue;
        }
        for (std::size_t i = 0; i < word.size();) {
            auto const is_digit = [&](std::size_t k) { return std::isdigit(static_cast<unsigned char>(word[k])) != 0; };
            auto digits = i;
            while (digits < word.size() && is_digit(digits)) ++digits;
            if (digits - i >= 4) out += '#';
            else if (digits > i) out += word.substr(i, digits - i);
            else out += word[digits++];
            i = digits;
        }
    }
    return out;
}

// "" for what is no text.
std::string text_in(nlohmann::json const& data, char const* key) {
    auto const at = data.find(key);
    return at != data.end() && at->is_string() ? at->get<std::string>() : std::string{};
}
std::optional<double> share_in(nlohmann::json const& data, char const* key) {
    auto const at = data.find(key);
    return at != data.end() && at->is_number() ? std::optional{at->get<double>()} : std::nullopt;
}

constexpr double let_pass = 0.001;  // of a share: dispatches are not as many in every run

struct named_units {
    std::uint64_t gpu = 0, cpu = 0;
};

void compare_units(health_baseline const& before, health const& now, health_verdict& to) {
    std::map<std::string, named_units> units;
    for (auto const& u : now.units) ++(u.on_gpu ? units[compared_name(u.name)].gpu : units[compared_name(u.name)].cpu);
    std::map<std::string, std::pair<std::string, std::uint64_t>> asked;  // with a name as it was written
    for (auto const& [name, count] : before.gpu_units) {
        auto& to_hold = asked[compared_name(name)];
        to_hold.first = name;
        to_hold.second += count;
    }
    for (auto const& [key, had] : asked) {
        auto const& [name, count] = had;
        auto const is = units[key];
        if (is.gpu >= count) continue;
        auto const shown = plain_text(name, 120);
        if (count == 1)
            to.broken.push_back(is.cpu > 0 ? fmt::format("'{}' was on the GPU, and is on the CPU now", shown)
                                           : fmt::format("'{}' was on the GPU, and is missing now", shown));
        else
            to.broken.push_back(fmt::format("'{}' was on the GPU {} times, and is {} times now ({} on the CPU)", shown,
                                            count, is.gpu, is.cpu));
    }
}

}  // namespace

void add_health(model const& m, std::string const& name, health& to) {
    counted_programs const programs{m};
    auto const before = to.units.size();
    for (auto const& p : m.processes) {
        auto const kernels = static_cast<std::uint64_t>(
            std::ranges::count_if(p.ops, [](operation const& o) { return o.kind == op_kind::kernel; }));
        add_dispatches(p, to);
        to.units.push_back({name.empty() ? programs.name_of(p) : name, kernels, kernels > 0});
    }
    programs.add_those_without_gpu(to.units);
    if (to.units.size() == before) to.units.push_back({name.empty() ? short_command(m.command) : name, 0, false});
    to.missing.insert(m.missing.begin(), m.missing.end());
    auto& n = to.processes;
    n.all = to.units.size();
    n.gpu = n.verified = static_cast<std::uint64_t>(std::ranges::count_if(to.units, &health::unit::on_gpu));
    n.cpu = n.all - n.gpu;
}

std::string why_not_counted(model const& m) {
    if (m.is_hooked) return {};
    return "processes that used no GPU were not seen, as there was no companion: " +
           (m.why_not_hooked.empty() ? std::string{"--hook none, or it could not be loaded; record without --hook none"}
                                     : m.why_not_hooked);
}

std::string to_text(health const& h) {
    auto const& d = h.dispatches;
    std::string out;
    if (h.of_dispatches())
        out = counts_text(d, "dispatch", "dispatches", fmt::format(", {} fell back, {} failed", d.fell_back, d.failed));
    out += counts_text(h.processes, "process", "processes", "");
    if (!h.of_dispatches() && h.processes.all == 1)
        out += "  of one process it is all or nothing, by a single kernel: start each test as a program of its own\n";
    for (auto const& [reason, count] : h.reasons) out += fmt::format("  {:>8} {}\n", count, plain_text(reason, 120));
    for (auto const& u : h.units)
        if (!u.on_gpu && h.units.size() > 1) out += fmt::format("  no kernel  {}\n", plain_text(u.name, 120));
    if (h.missing.contains("libcuda.so.1"))
        out +=
            "  no NVIDIA driver was found (libcuda.so.1): install it, or give the container the GPU (docker run --gpus "
            "all)\n";
    if (h.missing.contains("libcupti"))
        out += "  CUPTI was not found (libcupti.so.13 or .12), without which no kernel is seen: install it\n";
    return out;
}

nlohmann::ordered_json to_json(health const& h) {
    nlohmann::ordered_json units = nlohmann::ordered_json::array();
    for (auto const& u : h.units) units.push_back({{"name", u.name}, {"kernels", u.kernels}});
    auto const& n = h.told();
    nlohmann::ordered_json out{{"of", h.of_dispatches() ? "dispatches" : "processes"},
                               {"all", n.all},
                               {"gpu", n.gpu},
                               {"cpu", n.cpu},
                               {"fell_back", n.fell_back},
                               {"failed", n.failed},
                               {"verified", n.verified},
                               {"gpu_share", n.gpu_share()},
                               {"verified_share", n.verified_share()},
                               {"processes",
                                {{"all", h.processes.all},
                                 {"gpu", h.processes.gpu},
                                 {"cpu", h.processes.cpu},
                                 {"gpu_share", h.processes.gpu_share()}}},
                               {"reasons", h.reasons},
                               {"units", units}};
    if (!h.missing.empty()) out["missing"] = h.missing;
    return out;
}

result<health_baseline> parse_health_baseline(std::string_view text) {
    auto const data = nlohmann::json::parse(text, nullptr, false);
    auto const share = data.is_object() ? share_in(data, "gpu_share") : std::nullopt;
    if (!share) return fail(errc::invalid_argument, "no baseline; --write-baseline makes one");
    health_baseline out;
    out.gpu_share = *share;
    out.of = text_in(data, "of");
    out.verified_share = share_in(data, "verified_share");
    auto const processes = data.find("processes");
    bool const has_processes = processes != data.end() && processes->is_object();
    if (has_processes) out.process_share = share_in(*processes, "gpu_share");
    for (auto const& one : {std::optional{out.gpu_share}, out.verified_share, out.process_share})
        if (one && !(*one >= 0 && *one <= 1))
            return fail(errc::invalid_argument, "no baseline: {} is no share of 0 to 1", *one);
    auto const& counted = has_processes ? *processes : data;
    if (auto const gpu = counted.find("gpu");
        gpu != counted.end() && gpu->is_number_unsigned() && (has_processes || out.of == "processes"))
        out.gpu_processes = gpu->get<std::uint64_t>();
    auto const units = data.find("units");
    if (units == data.end() || !units->is_array()) return out;
    for (auto const& u : *units) {
        if (!u.is_object()) continue;
        auto const kernels = u.find("kernels");
        if (kernels != u.end() && kernels->is_number_unsigned() && kernels->get<std::uint64_t>() > 0)
            ++out.gpu_units[text_in(u, "name")];
    }
    return out;
}

health_verdict compare(health_baseline const& before, health const& now) {
    health_verdict out;
    compare_units(before, now, out);
    auto const fell = [&](char const* what, double was, double is) {
        if (is < was - let_pass)
            out.broken.push_back(fmt::format("{} fell from {:.2f} % to {:.2f} %", what, was * 100, is * 100));
    };
    bool const of_dispatches = before.of == "dispatches";
    if (of_dispatches && !now.of_dispatches()) {
        if (out.broken.empty()) out.why_not = "the baseline is a share of dispatches, and this run has processes";
        return out;
    }
    // Of one of old that does not say of what it is, what this run has first.
    auto const& same = of_dispatches || (before.of.empty() && now.of_dispatches()) ? now.dispatches : now.processes;
    fell("the GPU share", before.gpu_share, same.gpu_share());
    if (of_dispatches && before.verified_share)
        fell("the share that is verified by kernels", *before.verified_share, now.dispatches.verified_share());
    if (of_dispatches && before.process_share)
        fell("the GPU share of processes", *before.process_share, now.processes.gpu_share());
    if (out.broken.empty() && before.gpu_processes && now.processes.gpu < *before.gpu_processes)
        out.broken.push_back(fmt::format("{} on the GPU before, and {} now",
                                         count_text(*before.gpu_processes, "process was", "processes were"),
                                         now.processes.gpu));
    if (out.broken.empty() && now.processes.gpu == 0)
        out.why_not = "nothing ran on a GPU, and by the baseline nothing did before; write it where there is one";
    return out;
}

}  // namespace kiln::audit
