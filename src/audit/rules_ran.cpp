// SPDX-License-Identifier: Apache-2.0
// Whether it ran on the GPU at all, and as what (R01 to R07).
#include "audit/dispatch_event.hpp"
#include "audit/losses.hpp"
#include "audit/rules.hpp"

#include <algorithm>

namespace kiln::audit::detail {

namespace {

constexpr double s = 1e9;

// How long the process was on processors between two times; nullopt: not sampled.
std::optional<double> cpu_share(process_model const& p, interval when) {
    std::optional<std::pair<time_ns, std::uint64_t>> first, last;
    for (auto const& c : p.from->cpu) {
        if (c.thread != 0 || c.time < when.from || c.time > when.to) continue;
        if (!first) first = {c.time, c.used};
        last = {c.time, c.used};
    }
    if (!first || last->first <= first->first) return std::nullopt;
    return static_cast<double>(last->second - first->second) / static_cast<double>(last->first - first->first);
}

bool is_slow_at_f64(process_model const& p) {
    return !((p.major == 6 || p.major == 7 || p.major == 8 || p.major == 9 || p.major == 10) && p.minor == 0);
}

time_ns kernel_time(process_model const& p) {
    time_ns out = 0;
    for (auto const& o : p.ops)
        if (o.kind == op_kind::kernel && p.in_steady(o.start)) out += o.length();
    return std::max<time_ns>(1, out);
}

bool has_any(std::string const& name, std::initializer_list<std::string_view> parts) {
    return std::ranges::any_of(parts, [&](std::string_view part) { return name.find(part) != name.npos; });
}

std::string op_of(dispatch_event const& event) { return event.op.empty() ? "?" : event.op; }

bool has_driver(model const& m) { return !m.missing.contains("libcuda.so.1"); }

std::string why_nothing_ran(model const& m) {
    if (!m.driver_asked && !has_driver(m))
        return "no NVIDIA driver was found (libcuda.so.1), and no process asked for one (cuInit was never called)";
    if (!m.driver_asked) return "no process asked the CUDA driver for a device (cuInit was never called)";
    if (!m.processes.empty()) return "a device was opened, but no kernel ran";
    return fmt::format("cuInit was called and gave {}: no process got a device", m.driver_status);
}

// What the machine lacks comes first: whoever looks elsewhere looks in vain. Empty: the rule's.
std::string remedy_for(model const& m) {
    bool const has_cupti = !m.missing.contains("libcupti");
    if (has_driver(m) && has_cupti) return {};
    std::string out;
    if (!has_driver(m))
        out +=
            "install the NVIDIA driver (libcuda.so.1 was not found), or give the container the GPU (docker run --gpus "
            "all); ";
    if (!has_cupti)
        out +=
            "install CUPTI (libcupti.so.13 or .12 was not found: it is a part of the CUDA toolkit, and of the wheels "
            "of PyTorch and JAX), without which nothing is recorded; ";
    return out + std::string{find_rule("R01")->remedy};
}

}  // namespace

void no_gpu(judge& j) {
    bool const any = std::ranges::any_of(j.m.processes, [](process_model const& p) {
        return std::ranges::any_of(p.ops, [](operation const& o) { return o.kind == op_kind::kernel; });
    });
    if (any || j.m.not_recorded || j.m.other_profiler || is_cut_short(j.m, j.losses)) return;
    finding f = j.at("R01", 0);
    f.count = 1;
    f.where = "all processes";
    f.what = why_nothing_ran(j.m);
    if (auto const doubts = doubts_of(j.m); !doubts.empty()) {
        f.what += fmt::format("; but {}{}", doubts.front(),
                              doubts.size() > 1 ? fmt::format(", and {} more like this", doubts.size() - 1) : "");
        f.sure = confidence::likely;
    }
    f.remedy = remedy_for(j.m);
    f.level = j.options.expect_gpu ? severity::blocking : severity::info;
    f.structural = true;
    j.find(std::move(f));
}

void token_use(judge& j) {
    auto const& p = j.p;
    if (static_cast<double>(p.steady.length()) < 2 * s) return;
    auto const busy = j.share(p.steady_busy);
    auto const cpu = cpu_share(p, p.steady);
    if (busy >= 0.5) return j.good(fmt::format("the GPU is busy {:.0f} % of the steady state", busy * 100));
    if (cpu && *cpu < 0.5)
        return j.exempt(
            "R02", 1, 0,
            fmt::format("busy {:.0f} %, but the CPU is idle too ({:.0f} % of a core)", busy * 100, *cpu * 100));
    finding f = j.at("R02", 0);
    f.where = short_command(p.program);
    f.count = 1;
    f.cost = 1 - busy;
    f.what =
        fmt::format("the GPU is busy {:.1f} % of {:.1f} s{}", busy * 100, static_cast<double>(p.steady.length()) / s,
                    cpu ? fmt::format(" while the process keeps {:.0f} % of a core busy", *cpu * 100)
                        : std::string{"; how busy the process was is not known"});
    f.arithmetic = fmt::format("{:.3f} s busy / {:.3f} s", static_cast<double>(p.steady_busy) / s,
                               static_cast<double>(p.steady.length()) / s);
    f.level = busy < 0.05 ? severity::blocking : busy < 0.2 ? severity::high : severity::medium;
    f.structural = true;
    if (!cpu) f.sure = confidence::likely;
    j.find(std::move(f));
}

void fallback(judge& j) {
    auto const& p = j.p;
    // Out of memory, no binary for this device, invalid device, launch failures.
    constexpr std::array bad{2u, 98u, 100u, 101u, 200u, 209u, 218u, 222u, 700u, 701u, 719u};
    std::uint64_t probes = 0;
    bool is_found = false;
    for (auto const& c : p.calls) {
        if (c.status == 0) continue;
        if (std::ranges::find(bad, c.status) == bad.end()) {
            ++probes;
            continue;
        }
        if (is_found) continue;
        auto const next = std::ranges::upper_bound(p.busy, c.end, {}, &interval::from);
        interval const quiet{c.end, next == p.busy.end() ? p.ended : next->from};
        auto const cpu = cpu_share(p, quiet);
        if (static_cast<double>(quiet.length()) < s || !cpu || *cpu < 0.8) continue;
        finding f = j.at("R03", p.place_of(c.correlation));
        f.count = 1;
        f.what = fmt::format("{} failed with {}, then {:.1f} s without the GPU at {:.0f} % of a core", p.text(c.name),
                             c.status, static_cast<double>(quiet.length()) / s, *cpu * 100);
        f.level = severity::high;
        j.find(std::move(f));
        is_found = true;
    }
    // Once for each reason: in a loop it falls back as often as it is called.
    std::map<std::tuple<std::string, std::string, bool>, std::uint64_t> fallen;
    for (auto const& d : p.from->dispatches) {
        auto const event = dispatch_event_of(p.text(d.text));
        if (event && event->kind == "fell_back") ++fallen[{op_of(*event), event->reason, event->requested == "gpu"}];
    }
    for (auto const& [of, count] : fallen) {
        auto const& [op, reason, was_asked_for] = of;
        finding f = j.at("R03", 0);
        f.count = count;
        f.where = op;
        f.what = fmt::format("'{}' fell back to the CPU{}: {}", op, count == 1 ? "" : fmt::format(" {} times", count),
                             reason.empty() ? "no reason given" : reason);
        f.level = was_asked_for ? severity::blocking : severity::high;
        j.find(std::move(f));
    }
    if (probes > 0) j.exempt("R03", probes, 0, "calls that answered with a status that is no failure");
}

void wrong_arch(judge& j) {
    auto const& p = j.p;
    std::vector<interval> given;  // PTX that somebody made at run time
    for (auto const& f : p.firsts)
        if (f.kind == first_kind::load && (f.bytes == 2 || p.text(f.name).find("cuLink") != std::string::npos))
            given.push_back(f.when);
    given = joined(std::move(given));
    std::uint64_t count = 0;
    time_ns all = 0;
    blamed_place blamed;
    for (auto const& f : p.firsts) {
        if (f.kind != first_kind::driver_compile || overlap(f.when, given) > 0) continue;
        ++count;
        all += f.when.length();
        blamed.add(f.place, static_cast<double>(f.when.length()));
    }
    if (count == 0) return;
    finding f = j.at("R04", blamed.heaviest());
    f.count = count;
    f.is_cold = true;
    f.what = fmt::format(
        "the driver compiled PTX from the program's own files {}, {:.0f} ms: there is no cubin for {} ({}.{})",
        count_text(count, "time"), static_cast<double>(all) * 1e-6, p.device, p.major, p.minor);
    f.level = all >= 1'000'000'000 ? severity::high : severity::medium;
    j.find(std::move(f));
}

void precision(judge& j) {
    auto const& p = j.p;
    time_ns wide = 0, simt = 0;
    auto const all = kernel_time(p);
    std::unordered_map<std::uint32_t, time_ns> by_name;  // of which there are few, and millions of launches
    for (auto const& o : p.ops)
        if (o.kind == op_kind::kernel && p.in_steady(o.start)) by_name[o.name] += o.length();
    for (auto const& [id, time] : by_name) {
        auto const& name = p.text(id);
        if (has_any(name, {"double", "f64", "dgemm"})) wide += time;
        if (has_any(name, {"sgemm", "simt"})) simt += time;
    }
    auto const say = [&](time_ns t, std::string what) {
        auto const share = static_cast<double>(t) / static_cast<double>(all);
        if (share < 0.2) return;
        finding f = j.at("R05", 0);
        f.where = p.device;
        f.count = 1;
        f.sure = confidence::hint;
        f.level = severity::low;
        f.what = fmt::format("{} for {:.0f} % of the kernel time, by their names", what, share * 100);
        j.find(std::move(f));
    };
    if (is_slow_at_f64(p)) say(wide, "kernels in 64 bits, at which this GPU is slow,");
    if (p.major >= 8) say(simt, "matrix products in 32 bits without tensor cores");
}

void demoted(judge& j) {
    auto const& p = j.p;
    std::uint64_t count = 0;
    time_ns lost = 0, in_steady = 0;
    blamed_place blamed;
    operation const* down = nullptr;
    for (auto const& o : p.ops) {
        if (o.kind != op_kind::copy || o.bytes < (1u << 20)) continue;
        if (o.way == direction::to_host) down = &o;
        if (o.way != direction::to_device || down == nullptr) continue;
        auto const ratio = static_cast<double>(o.bytes) / static_cast<double>(down->bytes);
        interval const host{down->end, o.start};
        if (ratio >= 0.9 && ratio <= 1.1 && host.length() >= 50'000'000 && overlap(host, p.busy) < host.length() / 10) {
            ++count;
            lost += host.length();
            in_steady += interval{std::max(host.from, p.steady.from), std::min(host.to, p.steady.to)}.length();
            blamed.add(p.place_of(down->correlation), static_cast<double>(host.length()));
        }
        down = nullptr;
    }
    if (count < 3) return;
    finding f = j.at("R06", blamed.heaviest());
    f.count = count;
    f.cost = j.share(in_steady);
    f.what =
        fmt::format("{} times 1 MiB or more went to the host, stayed there for {:.0f} ms on average, and came back",
                    count, static_cast<double>(lost) * 1e-6 / static_cast<double>(count));
    f.level = severity::high;
    f.structural = true;
    j.find(std::move(f));
}

void said_and_ran(judge& j) {
    auto const& p = j.p;
    std::unordered_map<std::uint32_t, std::uint64_t> id_of;
    for (auto const& e : p.from->externals) id_of[e.correlation] = e.id;
    std::unordered_map<std::uint64_t, std::uint64_t> kernels;
    for (auto const& o : p.ops)
        if (o.kind == op_kind::kernel)
            if (auto const at = id_of.find(o.correlation); at != id_of.end()) ++kernels[at->second];
    struct lie {
        std::uint64_t count = 0, kernels = 0;
    };
    std::map<std::pair<std::string, std::string>, lie> lies;  // by operation and what it said
    std::uint64_t agree = 0, without_items = 0;
    for (auto const& d : p.from->dispatches) {
        auto const event = dispatch_event_of(p.text(d.text));
        if (!event || event->kind != "dispatched") continue;
        auto const& selected = event->selected;
        auto const seen = kernels[d.id];
        bool const is_lie = (selected == "gpu" && seen == 0) || (selected == "cpu" && seen > 0);
        if (!is_lie) {
            ++agree;
        } else if (event->has_no_items) {
            ++without_items;
        } else {
            auto& to = lies[{op_of(*event), selected}];
            ++to.count;
            to.kernels += seen;
        }
    }
    if (without_items > 0) j.exempt("R07", without_items, 0, "dispatches of no items");
    for (auto const& [of, told] : lies) {
        auto const& [op, selected] = of;
        finding f = j.at("R07", 0);
        f.where = op;
        f.count = told.count;
        f.what = fmt::format("'{}' said{} it ran on the {} and {} kernels ran under it", op,
                             told.count == 1 ? "" : fmt::format(" {} times", told.count), selected, told.kernels);
        f.level = severity::high;
        j.find(std::move(f));
    }
    if (agree > 0) j.good(fmt::format("{} dispatches ran where they said", agree));
}

}  // namespace kiln::audit::detail
