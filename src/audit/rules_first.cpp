// SPDX-License-Identifier: Apache-2.0
// What was done for the first time, and what should have been (R10 to R16).
#include "audit/rules.hpp"

#include <algorithm>

namespace kiln::audit::detail {

namespace {

struct total {
    std::uint64_t count = 0;
    time_ns time = 0;
    std::uint32_t place = 0;
    time_ns early = 0;  // of it, before the steady state
    std::vector<time_ns> times = {};
};

void add_times(total& to, std::vector<interval> all, interval steady) {
    for (auto const& i : all) to.times.push_back(i.from);
    for (auto const& i : joined(std::move(all))) {
        to.time += i.length();
        to.early += interval{i.from, std::min(i.to, steady.from)}.length();
    }
}

template <class Wanted>
total sum(process_model const& p, Wanted const& wanted) {
    total out;
    std::vector<interval> all;
    blamed_place blamed;
    for (auto const& f : p.firsts) {
        if (!wanted(f)) continue;
        ++out.count;
        all.push_back(f.when);
        blamed.add(f.place, static_cast<double>(f.when.length()));
    }
    out.place = blamed.heaviest();
    add_times(out, std::move(all), p.steady);
    return out;
}

finding cold(judge const& j, std::string rule, total const& t, std::string what) {
    finding f = j.at(std::move(rule), t.place);
    f.count = t.count;
    f.is_cold = true;
    f.structural = j.in_most_steps(t.times, judge::step_range::all);
    f.what = std::move(what);
    f.level = j.by_cold(t.time);
    f.arithmetic = t.early == t.time ? fmt::format("{:.0f} ms before the steady state", in_ms(t.time))
                                     : fmt::format("{:.0f} ms, {:.0f} of them before the steady state", in_ms(t.time),
                                                   in_ms(t.early));
    return f;
}

}  // namespace

void nvrtc(judge& j) {
    auto const& p = j.p;
    auto const all = sum(p, [](first_event const& f) { return f.kind == first_kind::nvrtc; });
    auto const empty = sum(p, [](first_event const& f) { return f.kind == first_kind::nvrtc && f.bytes == 0; });
    if (empty.count > 0) j.exempt("R10", empty.count, empty.place, "empty programs that only probe NVRTC");
    if (all.time < static_cast<time_ns>(j.number("R10.ms", 100)) * ms || all.count == empty.count) return;
    j.find(cold(j, "R10", all,
                fmt::format("{} compiled by NVRTC in {:.0f} ms{}", count_text(all.count, "program"), in_ms(all.time),
                            empty.count > 0 ? fmt::format(" ({} empty)", empty.count) : "")));
}

void driver_jit(judge& j) {
    auto const all = sum(j.p, [](first_event const& f) { return f.kind == first_kind::driver_compile; });
    auto const loads = sum(j.p, [](first_event const& f) { return f.kind == first_kind::cache_load; });
    if (all.time < 50 * ms) {
        if (loads.count > 0)
            j.good(fmt::format("the driver's compile cache answered {}", count_text(loads.count, "time")));
        return;
    }
    auto f = cold(j, "R11", all,
                  fmt::format("the driver compiled {}, {:.0f} ms", count_text(all.count, "time"), in_ms(all.time)));
    auto const off = j.m.environment.find("CUDA_CACHE_DISABLE");
    if (off != j.m.environment.end() && off->second == "1") {
        f.what += "; its cache is off (CUDA_CACHE_DISABLE=1)";
        f.level = std::min(severity::high, static_cast<severity>(static_cast<int>(f.level) + 1));
    }
    j.find(std::move(f));
}

void loading(judge& j) {
    auto const all =
        sum(j.p, [](first_event const& f) { return f.kind == first_kind::load || f.kind == first_kind::lazy; });
    std::vector<interval> loads, compiles;
    for (auto const& f : j.p.firsts)
        (f.kind == first_kind::load || f.kind == first_kind::lazy ? loads : compiles).push_back(f.when);
    loads = joined(std::move(loads));
    compiles = joined(std::move(compiles));
    time_ns late = 0;
    for (auto const& g : j.p.gaps)
        if (g.cause == gap_cause::first_call && overlap(g.when, loads) > 0 && overlap(g.when, compiles) == 0)
            late = std::max(late, g.when.length());
    if (all.time < 100 * ms && late < 10 * ms) return;
    auto f = cold(
        j, "R12", all,
        fmt::format(
            "{} loaded or linked in {:.0f} ms{}", count_text(all.count, "module"), in_ms(all.time),
            late >= 10 * ms ? fmt::format(", one of them a gap of {:.0f} ms in the steady state", in_ms(late)) : ""));
    if (late >= 10 * ms) f.level = std::max(f.level, severity::medium);
    j.find(std::move(f));
}

void context(judge& j) {
    time_ns all = 0;
    for (auto const& row : j.p.ledger)
        if (row.cause == "cuInit" || row.cause == "context") all += row.wall;
    if (all < 300 * ms) return;
    finding f = j.at("R13", 0);
    f.where = "cuInit";
    f.count = 1;
    f.is_cold = true;
    f.what = fmt::format("cuInit and contexts took {:.0f} ms", in_ms(all));
    f.level = all >= 3000 * ms ? severity::high : all >= 1000 * ms ? severity::medium : severity::low;
    j.find(std::move(f));
}

void child(judge& j) {
    std::map<std::string, total> by_name;
    std::vector<interval> all;
    total sum_of;
    // Whose they are is not always known: then they are told once.
    bool const is_main =
        &j.p == &*std::ranges::max_element(j.m.processes, {}, [](process_model const& p) { return p.ops.size(); });
    for (auto const& c : j.m.children) {
        if (!c.is_compiler || !c.is_outermost || (c.by != nullptr ? c.by != j.p.from : !is_main)) continue;
        auto& t = by_name[c.name];
        ++t.count;
        t.time += c.when.length();
        ++sum_of.count;
        all.push_back(c.when);
    }
    auto const waited = joined(all);
    add_times(sum_of, std::move(all), j.p.steady);
    if (sum_of.time < 100 * ms) return;
    time_ns beside = 0;
    for (auto const& i : waited) beside += overlap(i, j.p.busy);
    if (beside > sum_of.time / 2) return j.exempt("R14", sum_of.count, 0, "compilers beside GPU work");
    std::string names;
    for (auto const& [name, t] : by_name)
        names += fmt::format("{}{} {} ({:.0f} ms)", names.empty() ? "" : ", ", name, t.count, in_ms(t.time));
    time_ns one_by_one = 0;
    for (auto const& [name, t] : by_name) one_by_one += t.time;
    if (one_by_one > sum_of.time + sum_of.time / 10) names += ", some of them side by side";
    sum_of.place = 0;
    auto f = cold(j, "R14", sum_of,
                  fmt::format("{} of {}, {:.0f} ms: {}", count_text(sum_of.count, "run"),
                              by_name.size() == 1 ? "a compiler" : "compilers", in_ms(sum_of.time), names));
    f.where = std::ranges::max_element(by_name, {}, [](auto const& k) { return k.second.time; })->first;
    j.find(std::move(f));
}

void trials(judge& j) {
    auto const& p = j.p;
    std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint16_t, std::uint32_t>> shapes;
    interval when{~0ULL, 0};
    for (auto const* o : p.trials) {
        shapes.insert({o->name, o->threads, o->registers, o->shared});
        when.from = std::min(when.from, o->start);
        when.to = std::max(when.to, o->end);
    }
    if (shapes.empty() || when.length() < 100 * ms) return;
    total t{.count = shapes.size(), .place = p.place_of(p.trials.front()->correlation)};
    add_times(t, {when}, p.steady);
    auto f = cold(
        j, "R15", t,
        fmt::format("{} tried in {} launches and never ran again ({:.0f} ms from the first to the last)",
                    count_text(shapes.size(), "variant was", "variants were"), p.trials.size(), in_ms(when.length())));
    f.level = std::min(f.level, severity::medium);
    j.find(std::move(f));
}

void compile_in_loop(judge& j) {
    auto const& p = j.p;
    if (!p.cycle.found() || p.cycle.starts.size() < 8) return;
    auto const& starts = p.cycle.starts;
    std::set<std::size_t> hit;
    std::vector<interval> times;
    blamed_place blamed;
    std::array<std::size_t, 4> quarters{};
    for (auto const& f : p.firsts) {
        if (f.when.from < p.steady.from || f.when.from >= p.steady.to || f.kind == first_kind::lazy ||
            f.kind == first_kind::cache_store)
            continue;
        auto const step = static_cast<std::size_t>(std::ranges::upper_bound(starts, f.when.from) - starts.begin());
        if (hit.insert(step).second) ++quarters[std::min<std::size_t>(3, 4 * (f.when.from - p.steady.from) / p.span())];
        times.push_back({f.when.from, std::min(f.when.to, p.steady.to)});
        blamed.add(f.place, static_cast<double>(f.when.length()));
    }
    if (hit.size() < 3) return;
    time_ns cost = 0;  // the driver compiles while it loads, and compilers run side by side: a moment counts once
    for (auto const& i : joined(std::move(times))) cost += i.length();
    auto const place = blamed.heaviest();
    auto const steps = std::max<std::size_t>(1, p.steady_steps());
    auto const share = static_cast<double>(hit.size()) / static_cast<double>(steps);
    bool const dying = quarters[1] * 2 <= quarters[0] && quarters[2] * 2 <= quarters[1] &&
                       quarters[3] * 2 <= std::max<std::size_t>(1, quarters[2]);
    if (dying) return j.exempt("R16", hit.size(), place, "still warming: rarer in every quarter");
    finding f = j.at("R16", place);
    auto const compiled = sum(p, [](first_event const& e) {
        return e.kind == first_kind::nvrtc || e.kind == first_kind::child || e.kind == first_kind::driver_compile ||
               e.kind == first_kind::inferred;
    });
    f.count = hit.size();
    f.cost = j.share(cost);
    f.structural = share >= 0.5;
    f.is_cold = true;
    f.what = fmt::format(
        "something is compiled or loaded in {} of {} later steps ({} compiles in the whole run, {:.0f} ms in the "
        "steady state)",
        hit.size(), steps, compiled.count, in_ms(cost));
    f.arithmetic = fmt::format("{:.0f} ms / {:.0f} ms", in_ms(cost), in_ms(p.span()));
    f.level = share >= 0.5 || f.cost >= 0.2 ? severity::blocking : f.cost >= 0.05 ? severity::high : severity::medium;
    j.find(std::move(f));
}

}  // namespace kiln::audit::detail
