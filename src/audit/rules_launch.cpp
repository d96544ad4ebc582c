// SPDX-License-Identifier: Apache-2.0
// How work is cut into launches (R50 to R66).
#include "audit/rules.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::audit::detail {

namespace {

// Kernels of few large blocks on purpose, by name. Looked at once: there are few names and millions of launches.
class tuned_kernels {
public:
    explicit tuned_kernels(process_model const& p) : p_{p} {}
    [[nodiscard]] bool contain(operation const& o) {
        auto const [at, fresh] = known_.try_emplace(o.name, false);
        if (fresh) at->second = is_tuned(p_.text(o.name));
        return at->second;
    }

private:
    static bool is_tuned(std::string const& name) {
        for (auto const* part :
             {"gemm", "cutlass", "xmma", "nvjet", "fmha", "flash", "wgrad", "conv", "nccl", "attention"})
            if (name.find(part) != name.npos) return true;
        return false;
    }
    process_model const& p_;
    std::unordered_map<std::uint32_t, bool> known_;
};

std::vector<operation const*> steady_kernels(process_model const& p) {
    std::vector<operation const*> out;
    for (auto const& o : p.ops)
        if (o.kind == op_kind::kernel && p.in_steady(o.start)) out.push_back(&o);
    return out;
}
time_ns time_of(std::vector<operation const*> const& all) {
    time_ns out = 0;
    for (auto const* o : all) out += o->length();
    return std::max<time_ns>(1, out);
}
time_ns host_gaps(process_model const& p) {
    return gap_time(p, {gap_cause::host_compute, gap_cause::host_wait, gap_cause::sync_bubble, gap_cause::allocation});
}

std::uint32_t most_common_place(process_model const& p, std::vector<operation const*> const& all) {
    std::map<std::uint32_t, std::size_t> counts;
    for (auto const* o : all)
        if (auto const at = p.place_of(o->correlation); at != 0) ++counts[at];
    return counts.empty() ? 0 : std::ranges::max_element(counts, {}, [](auto const& k) { return k.second; })->first;
}

// One launch of the kernel that takes most of the time.
operation const& example_of(std::vector<operation const*> const& all) {
    std::unordered_map<std::uint32_t, time_ns> by_name;
    for (auto const* o : all) by_name[o->name] += o->length();
    return **std::ranges::max_element(all, {}, [&](operation const* o) { return by_name.at(o->name); });
}

bool in_most_steps(judge const& j, std::vector<operation const*> const& all) {
    std::vector<time_ns> times;
    for (auto const* o : all) times.push_back(o->start);
    return j.in_most_steps(times, judge::step_range::steady);
}

severity of_share(double share, double low, double medium, double high) {
    if (share >= high) return severity::high;
    if (share >= medium) return severity::medium;
    return share >= low ? severity::low : severity::info;
}

bool several_at_once(process_model const& p) {
    time_ns sum = 0;
    for (auto const& o : p.ops)
        if (p.in_steady(o.start)) sum += o.length();
    return static_cast<double>(sum) > 1.2 * static_cast<double>(std::max<time_ns>(1, p.steady_busy));
}

}  // namespace

time_ns gap_time(process_model const& p, std::initializer_list<gap_cause> causes) {
    time_ns out = 0;
    for (auto const& g : p.gaps)
        if (std::ranges::find(causes, g.cause) != causes.end()) out += g.when.length();
    return out;
}

occupancy_answer theoretical_occupancy(process_model const& p, operation const& o) {
    auto const warps = (o.threads + 31) / 32;
    if (warps == 0) return {};
    auto const by_warps = p.warps / warps;
    auto const per_warp = std::max(1u, (std::uint32_t{o.registers} * 32 + 255) / 256 * 256);
    auto const by_registers = o.registers == 0 ? 32u : p.registers / per_warp / warps;
    auto const by_shared = o.shared == 0 ? 32u : p.shared_bytes / (o.shared + 1024);
    auto const blocks = std::min({by_warps, by_registers, by_shared, 32u});
    occupancy_answer out;
    out.share = static_cast<double>(blocks * warps) / p.warps;
    out.limit = blocks == by_shared && o.shared != 0         ? "shared memory"
                : blocks == by_registers && o.registers != 0 ? "registers"
                : blocks == by_warps                         ? "threads"
                                                             : "blocks";
    return out;
}

void tiny_launches(judge& j) {
    auto const& p = j.p;
    auto all = steady_kernels(p);
    std::erase_if(all, [](operation const* o) { return o->graph != 0; });
    if (static_cast<double>(all.size()) < j.number("R50.launches", 1000)) return;
    std::vector<operation const*> tiny;
    for (auto const* o : all) {
        auto const* const c = o->call < 0 ? nullptr : &p.calls[static_cast<std::size_t>(o->call)];
        if (o->length() < 5 * us || (c != nullptr && o->length() < c->end - c->start)) tiny.push_back(o);
    }
    auto const gaps = host_gaps(p);
    if (static_cast<double>(tiny.size()) < j.number("R50.share", 0.5) * static_cast<double>(all.size())) return;
    if (j.share(gaps) < 0.05) return j.good(fmt::format("{} tiny launches, but the queue stays full", tiny.size()));
    finding f = j.at("R50", most_common_place(p, tiny));
    f.count = tiny.size();
    f.cost = j.share(gaps);
    f.structural = true;
    f.what = fmt::format("{} of {} launches are shorter than 5 us or than the call that queues them", tiny.size(),
                         all.size());
    f.arithmetic = fmt::format("{:.1f} ms of host gaps / {:.1f} ms", in_ms(gaps), in_ms(p.span()));
    f.level =
        j.share(p.steady_busy) >= 0.9 ? severity::low : std::min(severity::high, j.by_cost(f.cost, true, tiny.size()));
    j.find(std::move(f));
}

void small_grid(judge& j) {
    auto const& p = j.p;
    auto const all = steady_kernels(p);
    std::vector<operation const*> small;
    std::uint64_t tuned = 0;
    tuned_kernels on_purpose{p};
    for (auto const* o : all) {
        if (o->blocks >= p.multiprocessors || o->length() < 10 * us) continue;
        if (on_purpose.contain(*o)) ++tuned;
        else small.push_back(o);
    }
    auto const share = static_cast<double>(time_of(small)) / static_cast<double>(time_of(all));
    if (tuned > 0) j.exempt("R52", tuned, 0, "matrix products, convolutions and the like choose few large blocks");
    if (small.empty() || share < 0.01 || time_of(small) < ms) return;
    if (several_at_once(p))
        return j.exempt("R52", small.size(), most_common_place(p, small), "kernels run side by side");
    finding f = j.at("R52", most_common_place(p, small));
    std::uint64_t whole_run = 0;
    for (auto const& o : p.ops)
        if (o.kind == op_kind::kernel && o.blocks < p.multiprocessors && o.length() >= 10 * us &&
            !on_purpose.contain(o))
            ++whole_run;
    f.count = whole_run;
    double idle = 0;
    for (auto const* o : small)
        idle += static_cast<double>(o->length()) * (1 - static_cast<double>(o->blocks) / p.multiprocessors);
    f.cost = std::min(1.0, idle / static_cast<double>(p.span()));
    auto const& example = example_of(small);
    f.structural = in_most_steps(j, small);
    f.what = fmt::format("{} of fewer than {} blocks ('{}': {}), {:.0f} % of the kernel time",
                         count_text(whole_run, "launch", "launches"), p.multiprocessors,
                         short_kernel_name(p.text(example.name)), example.blocks, share * 100);
    f.level = of_share(share, 0.01, 0.05, 0.2);
    j.find(std::move(f));
}

void block_shape(judge& j) {
    auto const& p = j.p;
    auto const all = steady_kernels(p);
    std::vector<operation const*> odd;
    for (auto const* o : all)
        if (o->threads % 32 != 0 || o->threads < 64) odd.push_back(o);
    auto const share = odd.empty() ? 0 : static_cast<double>(time_of(odd)) / static_cast<double>(time_of(all));
    if (share < 0.05) return;
    finding f = j.at("R53", most_common_place(p, odd));
    std::uint64_t whole_run = 0;
    for (auto const& o : p.ops)
        if (o.kind == op_kind::kernel && (o.threads % 32 != 0 || o.threads < 64)) ++whole_run;
    f.count = whole_run;
    f.structural = in_most_steps(j, odd);
    f.what =
        fmt::format("{} with blocks of {}, {:.0f} % of the kernel time", count_text(whole_run, "launch", "launches"),
                    count_text(example_of(odd).threads, "thread"), share * 100);
    f.level = of_share(share, 0.05, 0.2, 2);
    j.find(std::move(f));
}

void occupancy(judge& j) {
    auto const& p = j.p;
    auto const all = steady_kernels(p);
    std::vector<operation const*> thin;
    tuned_kernels on_purpose{p};
    for (auto const* o : all) {
        if (o->shared >= 180 * 1024 || o->length() < 10 * us || on_purpose.contain(*o)) continue;
        if (theoretical_occupancy(p, *o).share < 0.25) thin.push_back(o);
    }
    auto const share = thin.empty() ? 0 : static_cast<double>(time_of(thin)) / static_cast<double>(time_of(all));
    if (share < 0.1) return;
    finding f = j.at("R54", most_common_place(p, thin));
    f.count = thin.size();
    f.structural = in_most_steps(j, thin);
    auto const& example = example_of(thin);
    f.what =
        fmt::format("'{}' and others fit less than a quarter of the warps ({} limit it), {:.0f} % of the kernel time",
                    short_kernel_name(p.text(example.name)), theoretical_occupancy(p, example).limit, share * 100);
    f.level = of_share(share, 0.1, 0.3, 2);
    j.find(std::move(f));
}

void per_item(judge& j) {
    auto const& p = j.p;
    auto const all = steady_kernels(p);
    std::size_t best = 0, run = 0;
    std::uint64_t in_runs = 0;
    operation const* example = nullptr;
    auto const end_run = [&] {
        if (run >= 32) in_runs += run;
        run = 0;
    };
    for (std::size_t i = 0; i < all.size(); ++i) {
        auto const* const o = all[i];
        bool const small = o->graph == 0 && o->blocks <= p.multiprocessors && o->length() <= 20 * us;
        bool const goes_on = i > 0 && run > 0 && o->name == all[i - 1]->name;
        if (!small) {
            end_run();
            continue;
        }
        if (!goes_on) end_run();
        ++run;
        if (run > best) {
            best = run;
            example = o;
        }
    }
    end_run();
    if (best < 32) return;
    auto place = p.place_of(example->correlation);
    std::vector<operation const*> same;
    for (auto const* o : all)
        if (o->name == example->name) same.push_back(o);
    if (place == 0) place = most_common_place(p, same);
    std::set<std::string> lines;
    for (auto const* o : same)
        if (auto const at = p.place_of(o->correlation); at != 0) lines.insert(p.place_at(at).label);
    if (lines.size() > 8) return j.exempt("R57", best, place, "layers: the lines differ");
    auto const gaps = host_gaps(p);
    finding f = j.at("R57", place);
    f.count = best;
    f.cost = j.share(gaps) * static_cast<double>(in_runs) / static_cast<double>(std::max<std::size_t>(1, all.size()));
    f.structural = true;
    f.what = fmt::format("'{}' is launched {} times in a row for small pieces ({} launches in such rows)",
                         short_kernel_name(p.text(example->name)), best, in_runs);
    f.arithmetic = fmt::format("{:.1f} ms of host gaps / {:.1f} ms", in_ms(gaps), in_ms(p.span()));
    f.level = j.by_cost(f.cost, true, in_runs);
    j.find(std::move(f));
}

void graph_candidate(judge& j) {
    auto const& p = j.p;
    if (!p.cycle.found() || p.steady_steps() < 20 || j.share(host_gaps(p)) < 0.1) return;
    bool const graphs =
        std::ranges::any_of(p.ops, [&](operation const& o) { return o.graph != 0 && p.in_steady(o.start); });
    if (graphs) return j.good("the step is a CUDA graph");
    auto const waits_in = std::ranges::count_if(
        p.waits, [&](wait_use const& w) { return p.in_steady(p.calls[static_cast<std::size_t>(w.call)].start); });
    auto const reads_in = std::ranges::count_if(
        p.reads, [&](read_use const& r) { return p.in_steady(p.ops[static_cast<std::size_t>(r.op)].start); });
    bool const held_up =
        waits_in > 2 || reads_in > 2 || gap_time(p, {gap_cause::allocation, gap_cause::first_call}) > 0;
    bool const allocates =
        std::ranges::count_if(p.calls, [&](call const& c) {
            return p.in_steady(c.start) && (c.what == call_class::allocate || c.what == call_class::release);
        }) > 2;
    if (held_up || allocates) return;
    finding f = j.at("R58", 0);
    f.where = p.cycle.anchor;
    f.count = p.steady_steps();
    f.cost = j.share(host_gaps(p));
    f.what = fmt::format("{} equal steps with host gaps of {:.0f} %: a CUDA graph would hold one", p.steady_steps(),
                         f.cost * 100);
    f.level = severity::info;
    j.find(std::move(f));
}

time_ns idle_let_pass(process_model const& p, audit_result const& r) {
    auto const is_of_waits = [](std::string_view rule) { return rule >= "R20" && rule <= "R23"; };
    std::set<std::string> places;
    for (auto const& e : r.exempt) {
        bool const is_allowed_copy = e.is_allowed && e.rule == "R24";  // which waits as well
        if ((is_of_waits(e.rule) || is_allowed_copy) && e.where != "?") places.insert(e.where);
    }
    for (auto const& f : r.findings)
        if (is_of_waits(f.rule)) places.erase(f.where);
    time_ns out = 0;
    for (auto const& g : p.gaps) {
        if (g.cause != gap_cause::sync_bubble || g.after_wait < 0) continue;
        auto const place = p.place_of(p.calls[static_cast<std::size_t>(g.after_wait)].correlation);
        if (places.contains(p.place_at(place).label)) out += g.when.length();
    }
    return out;
}

void gap_cause_rule(judge& j) {
    auto const& p = j.p;
    struct gaps_of_cause {
        time_ns time = 0;
        std::map<std::uint32_t, time_ns> places;
        std::vector<time_ns> times;
    };
    std::map<gap_cause, gaps_of_cause> by_cause;
    for (auto const& g : p.gaps) {
        auto& to = by_cause[g.cause];
        to.time += g.when.length();
        to.places[g.place] += g.when.length();
        to.times.push_back(g.when.from);
    }
    auto const let_pass = idle_let_pass(p, j.so_far());
    for (auto const& [cause, all] : by_cause) {
        if (j.share(all.time) < j.number("R60.share", 0.05) || cause == gap_cause::latency) continue;
        if (cause == gap_cause::sync_bubble && j.share(all.time - let_pass) < j.number("R60.share", 0.05)) {
            j.exempt(
                "R60", 1, 0,
                fmt::format("{} for {:.0f} %, by waits that are let pass", name_of(cause), j.share(all.time) * 100));
            continue;
        }
        auto const place = std::ranges::max_element(all.places, {}, [](auto const& k) { return k.second; })->first;
        finding f = j.at("R60", place);
        f.count = all.times.size();
        if (p.steady_steps() > 0) f.per_step = static_cast<double>(f.count) / static_cast<double>(p.steady_steps());
        f.structural = j.in_most_steps(all.times, judge::step_range::steady);
        f.cost = j.share(all.time);
        f.what = fmt::format("{} leaves the GPU idle for {:.0f} % of the steady state", name_of(cause), f.cost * 100);
        f.arithmetic = fmt::format("{:.1f} ms / {:.1f} ms", in_ms(all.time), in_ms(p.span()));
        f.level = std::min(severity::high, j.by_cost(f.cost, false, 1));
        if (cause == gap_cause::other) {  // nothing that the program could be told to change
            f.level = std::min(f.level, severity::low);
            f.sure = confidence::hint;
        }
        j.find(std::move(f));
    }
}

void coverage(judge& j) {
    auto const& p = j.p;
    auto const all = steady_kernels(p);
    if (all.empty() || several_at_once(p) || time_of(all) < ms) return;
    double covered = 0;
    for (auto const* o : all)
        covered += static_cast<double>(o->length()) * std::min(1.0, static_cast<double>(o->blocks) / p.multiprocessors);
    auto const share = covered / static_cast<double>(time_of(all));
    if (share >= j.number("R62.share", 0.3)) return;
    finding f = j.at("R62", most_common_place(p, all));
    f.count = all.size();
    f.structural = in_most_steps(j, all);
    f.what = fmt::format("kernels cover {:.0f} % of the {} multiprocessors over time", share * 100, p.multiprocessors);
    f.level = severity::medium;
    j.find(std::move(f));
}

void value_drives_loop(judge& j) {
    auto const& p = j.p;
    std::map<std::string, std::vector<std::int32_t>> reads;
    std::map<std::string, std::uint32_t> places;
    for (auto const& r : p.reads) {
        if (p.ops[static_cast<std::size_t>(r.op)].bytes > 64 || r.place == 0) continue;
        auto const& label = p.place_at(r.place).label;
        reads[label].push_back(r.op);
        places[label] = r.place;
    }
    for (auto& [label, ops] : reads) {
        if (ops.size() < 20) continue;
        std::ranges::sort(ops);
        std::vector<double> between;
        for (std::size_t i = 1; i < ops.size(); ++i) between.push_back(ops[i] - ops[i - 1] - 1);
        // What else a program does now and then (a validation, a checkpoint) lies between two of the reads, and drives nothing.
        std::ranges::sort(between);
        between.resize(between.size() - between.size() / 20 - 1);
        double sum = 0, squares = 0;
        for (double const n : between) {
            sum += n;
            squares += n * n;
        }
        auto const n = static_cast<double>(between.size());
        auto const mean = sum / n, deviation = std::sqrt(std::max(0.0, squares / n - mean * mean));
        if (mean < 4 || deviation / mean <= 0.2) continue;
        finding f = j.at("R65", places[label]);
        f.count = ops.size();
        f.what = fmt::format(
            "between {} reads of one value there are {:.1f} operations on average, and it varies ({:.0f} %)",
            ops.size(), mean, 100 * deviation / mean);
        f.level = severity::high;
        f.structural = true;
        j.find(std::move(f));
    }
}

void host_phase(judge& j) {
    auto const& p = j.p;
    struct phase {
        time_ns time = 0;
        blamed_place blamed;
    };
    std::map<std::string, phase> by_function;
    for (auto const& g : p.gaps) {
        if (g.cause != gap_cause::host_compute || g.when.length() < ms) continue;
        auto& to = by_function[p.place_at(g.place).function];
        to.time += g.when.length();
        to.blamed.add(g.place, static_cast<double>(g.when.length()));
    }
    for (auto const& [function, all] : by_function) {
        if (j.share(all.time) < j.number("R66.share", 0.1)) continue;
        finding f = j.at("R66", all.blamed.heaviest());
        f.count = 1;
        f.cost = j.share(all.time);
        f.what = fmt::format("{} computes on the host for {:.0f} % of the steady state while the GPU is idle",
                             function.empty() ? "the program" : function + "()", f.cost * 100);
        f.structural = true;
        f.level = std::min(severity::high, j.by_cost(f.cost, true, 1));
        j.find(std::move(f));
    }
}

}  // namespace kiln::audit::detail
