// SPDX-License-Identifier: Apache-2.0
#include "audit/rules.hpp"

#include "audit/losses.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace kiln::audit {

namespace {

using namespace detail;
using enum audit_step;

// The one table. Texts are what `kiln audit rules` prints.
constexpr std::array table{
    rule{"R01", "no-gpu", "no work on a GPU", ran,
         "no process of the tree asked the driver for a device, or none ran a kernel",
         "BLOCKING with --expect-gpu; else a note, and by severities and budgets it cannot be judged",
         "the recording was cut short (R91)",
         "check that the program was given a device: CUDA_VISIBLE_DEVICES, the build of the framework, .to('cuda')",
         no_gpu, scope::tree},
    rule{"R02", "token-use", "work that stays on the CPU", ran,
         "at least 2 s, the GPU busy less than 5 / 20 / 50 %, the process on a core half the time",
         "BLOCKING / HIGH / MEDIUM", "the CPU is idle",
         "move the work that keeps the CPU busy to the GPU, or feed the GPU from more threads", token_use,
         scope::process, needs::steady},
    rule{"R03", "fallback", "falling back to the CPU", ran,
         "a call failed (memory, binary, device, launch), then a second or more without the GPU at 80 % of a core; a "
         "variant fell back",
         "HIGH; BLOCKING in mode gpu", "probes that fail as they should",
         "find out why the call failed; ask for the GPU by name, so that falling back is an error", fallback},
    rule{"R04", "wrong-arch", "code built for another GPU", ran, "the driver compiles PTX that is embedded in a file",
         "MEDIUM; HIGH from 1 s", "PTX that a JIT made",
         "build for this GPU's architecture as well (-arch=native, CMAKE_CUDA_ARCHITECTURES)", wrong_arch},
    rule{"R05", "precision", "more precision than is needed", ran,
         "64-bit kernels, 20 % of the time, on a GPU that is slow at them; SIMT matrix products in 32 bits",
         "MEDIUM; by name alone: LOW", "it is the policy", "allow TF32 or smaller types where the results may have it",
         precision, scope::process, needs::steady},
    rule{"R06", "demoted", "a detour over the CPU", stayed,
         "1 MiB or more read, 50 ms on the host, about as much written back, in 3 steps or more", "HIGH",
         "the last act of a step", "do that part on the GPU too", demoted},
    rule{"R07", "said-and-ran", "a plan that is not what ran", ran,
         "a dispatch to the GPU without a kernel, one to the CPU with one", "HIGH, certain", "no items",
         "trust the kernels, not the plan: see which variant really ran", said_and_ran},
    rule{"R10", "nvrtc", "compiling by NVRTC", first_call, "100 ms or more in NVRTC while a thread waits", "COLD",
         "empty programs that only probe; beside GPU work",
         "keep the results: kiln run -- PROGRAM, or the framework's own cache", nvrtc},
    rule{"R11", "driver-jit", "compiling by the driver", first_call,
         "the driver compiled for 50 ms or more outside compilers' own calls", "COLD, one more with its cache off", "",
         "ship a cubin for this architecture; keep the driver's cache (CUDA_CACHE_PATH)", driver_jit},
    rule{"R12", "loading", "loading code", first_call, "loading and linking took 100 ms or more",
         "COLD; in STEADY a gap of 10 ms: HIGH", "our own share",
         "load lazily (CUDA_MODULE_LOADING=LAZY), load fewer modules", loading},
    rule{"R13", "context", "starting the driver", first_call, "cuInit and contexts took 0.3 / 1 / 3 s",
         "LOW / MEDIUM / HIGH", "",
         "start it early, beside imports; hide GPUs that are not used (CUDA_VISIBLE_DEVICES)", context},
    rule{"R14", "child", "compilers run as processes", first_call, "compilers as processes took 100 ms or more", "COLD",
         "pools beside GPU work",
         "keep the compile cache of the framework between runs (TRITON_CACHE_DIR, kiln capsule)", child},
    rule{"R15", "trials", "trying kernels out", first_call,
         "three or more variants of a kernel were tried and some never ran again", "COLD, at most MEDIUM",
         "initialisation", "keep the tuning results, or name the configuration", detail::trials},
    rule{"R16", "compile-in-loop", "compiling in the loop", batching,
         "a compile, JIT, compiler process or load in three later steps or more",
         "BLOCKING in half of the steps or 20 %; HIGH 5 %; MEDIUM", "it gets rarer: still warming",
         "make what changes an argument, not a constant: pad shapes, pass values at run time", compile_in_loop,
         scope::process, needs::steps},
    rule{"R17", "cold-again", "compiling again in every run", first_call,
         "the second run compiles half as long as the first, or longer", "MEDIUM", "caches cannot persist",
         "give the caches a place that lasts", nullptr},
    rule{"R20", "needless-wait", "waiting for nothing", waits,
         "the host waited for a stream or event 20 times or more, and nobody used what it waited for",
         "by cost; BLOCKING in libraries from 10 %",
         "it times something; nothing stood still; before the steady state; the end",
         "drop the wait: work on one stream is in order anyway", needless_wait, scope::process, needs::steady},
    rule{"R21", "device-wait", "waiting for the whole device", waits,
         "the same for the whole device, once per step or more", "as R20", "a harness measures",
         "drop torch.cuda.synchronize() and its like from the loop", device_wait, scope::process, needs::steady},
    rule{"R22", "scalar-read", "waiting for a few bytes again and again", waits,
         "the host waited 20 times or more for 64 bytes or less", "by cost; BLOCKING from 10 per step and 10 %",
         "it sizes an output; every n-th step; the last act",
         "keep the value on the GPU, or read it every n-th step: accumulate, then one .item()", scalar_read,
         scope::process, needs::steady},
    rule{"R23", "bulk-read", "reading results back in the loop", stayed,
         "more than 64 bytes come to the host and are waited for in every step, and launches follow",
         "by cost; BLOCKING from 2 per step and 10 %", "the boundary; no bubble",
         "keep it on the device, or copy to pinned memory and look at it a step later", bulk_read, scope::process,
         needs::steady},
    rule{"R24", "sync-copy", "copies that block the host", waits,
         "20 synchronous copies or more that blocked for 1 ms together", "by cost, at most HIGH",
         "on the device; before the steady state", "use the asynchronous form on the stream that needs it", sync_copy,
         scope::process, needs::steady},
    rule{"R27", "null-stream", "streams that wait for the null stream", waits,
         "streams that wait for the null stream, and the null stream for them",
         "by cost; BLOCKING in libraries from 10 %", "null stream alone; non-blocking streams; per-thread default",
         "create streams as non-blocking, or put the helper on the same stream", null_stream, scope::process,
         needs::steady},
    rule{"R28", "cosmetic-streams", "streams that never overlap", waits,
         "two streams or more that are hardly ever busy together", "MEDIUM",
         "kernels that fill the GPU; next to no work",
         "find what ties them: the null stream, events, or one host thread that is too slow", cosmetic_streams,
         scope::process, needs::steady},
    rule{"R30", "pageable-async", "copies from pageable memory", waits,
         "10 copies or 64 MiB said to be asynchronous from or to pageable memory", "by cost, at least LOW",
         "the wrapper waits at once; COLD", "use pinned memory (pin_memory=True, cudaHostAlloc)", pageable_async},
    rule{"R31", "small-copies", "many small copies", stayed, "three or more small copies per step from few lines",
         "by cost", "", "put them together into one copy", small_copies, scope::process, needs::steps},
    rule{"R32", "round-trip", "data that goes to the host and back", stayed,
         "what came to the host goes back within 20 ms, three times in a row", "HIGH from 1 % if certain",
         "as many bytes of another content", "leave it on the device", round_trip},
    rule{"R33", "re-upload", "uploading the same bytes again", stayed,
         "the same bytes are uploaded three times or more", "MEDIUM; HIGH from 5 %", "", "upload once and keep it",
         re_upload, scope::process, needs::steady},
    rule{"R36", "device-copies", "copying on the device", stayed,
         "copies and sets on the device take 15 % of the busy time", "MEDIUM", "",
         "write results where they are needed; fuse the copy into the kernel", device_copies, scope::process,
         needs::steady},
    rule{"R37", "managed", "managed memory", stayed, "managed memory of 1 MiB or more",
         "MEDIUM; HIGH from 5 % or thrashing", "", "allocate device memory, and copy what is needed", managed},
    rule{"R40", "churn", "allocating in the loop", batching,
         "device or pinned memory allocated and freed in every step, outside a pool",
         "by cost; BLOCKING from 10 per step and 10 %", "it dies down; a pool with a threshold",
         "use a pool (cudaMallocAsync, the framework's allocator), or allocate once", churn, scope::process,
         needs::steady},
    rule{"R41", "trimming", "emptying the pool in the loop", batching, "a pool is emptied in 10 % of the steps",
         "HIGH in half of them; MEDIUM", "between phases", "drop empty_cache() from the loop", trimming, scope::process,
         needs::steps},
    rule{"R42", "alloc-retry", "running out of memory and trying again", batching, "out of memory, frees, then success",
         "HIGH", "a search for the batch size", "leave memory free, or use expandable segments", alloc_retry},
    rule{"R46", "growing-output", "an output that grows piece by piece", batching,
         "one line allocates 1.2 to 2.5 times as much four times in a row, and copies", "MEDIUM", "",
         "count first, allocate once", growing_output},
    rule{"R50", "tiny-launches", "tiny launches", launches,
         "1,000 launches, half of them shorter than 5 us or than their call, and host gaps of 5 %", "by the gaps",
         "graphs; busy 90 %: LOW", "fuse them, or capture them as a graph", tiny_launches, scope::process,
         needs::steady},
    rule{"R52", "small-grid", "too few blocks", launches,
         "fewer blocks than multiprocessors, for 1 / 5 / 20 % of the kernel time", "LOW / MEDIUM / HIGH",
         "matrix products, convolution, attention, NCCL; cooperative; overlapped", "split the work over more blocks",
         small_grid, scope::process, needs::steady},
    rule{"R53", "block-shape", "odd block sizes", launches,
         "blocks of a number of threads that is no multiple of 32, or below 64, for 5 / 20 % of the kernel time",
         "LOW / MEDIUM", "", "use 128 or 256 threads", block_shape, scope::process, needs::steady},
    rule{"R54", "occupancy", "low occupancy", launches,
         "less than a quarter of the warps fit, for 10 / 30 % of the kernel time", "LOW / MEDIUM",
         "as R52; 180 KiB of shared memory", "use fewer registers or less shared memory per block", occupancy,
         scope::process, needs::steady},
    rule{"R57", "per-item", "one launch per item", batching,
         "32 launches or more of one kernel in a row from one line, each small and short",
         "by cost; BLOCKING from 20 %", "layers: the lines differ",
         "put the loop into the kernel: one launch over all items", per_item, scope::process, needs::steady},
    rule{"R58", "graph-candidate", "steps that could be a graph", launches,
         "20 equal steps or more, host gaps of 10 %, nothing in them that a graph could not hold", "info",
         "a graph is in use", "capture the step as a CUDA graph", graph_candidate, scope::process, needs::steps},
    rule{"R60", "gap-cause", "an idle GPU", batching, "one cause leaves the GPU idle for 5 %", "by cost", "",
         "look at what the host does right before this line, which ends the gap", gap_cause_rule, scope::process,
         needs::steady},
    rule{"R62", "coverage", "a mostly empty GPU", launches,
         "kernels cover less than 30 % of the multiprocessors over time", "MEDIUM", "concurrent kernels",
         "launch more blocks, or several kernels at once", coverage, scope::process, needs::steady},
    rule{"R65", "value-drives-loop", "a value on the host that drives the loop", batching,
         "the number of launches between reads of one line varies", "HIGH", "an early stop",
         "let the device decide: conditional graph nodes, a fixed bound with masks", value_drives_loop, scope::process,
         needs::steady},
    rule{"R66", "host-phase", "computing on the host", batching,
         "one function computes on the host for 10 % while the GPU is idle", "by cost", "",
         "move it to the GPU, or do it ahead on another thread", host_phase, scope::process, needs::steady},
    rule{"R90", "tool-cost", "this tool", evidence, "this tool cost more than 5 %", "all others one level down", "",
         "audit a longer run", tool_cost},
    rule{"R91", "lost", "lost records", evidence,
         "more than 0.1 % of the records were lost, or a recording was cut short", "validity", "",
         "audit a shorter run; where a process is named, see that it is recorded", lost_records, scope::tree},
    rule{"R92", "no-steady-state", "no steady state", evidence, "no steps were found, or too few", "validity", "",
         "audit a longer run, or name a step (--step FILE:LINE)", no_steady, scope::tree},
    rule{"R93", "disturbed", "a disturbed run", evidence,
         "another profiler, blocking launches, caches or allocator off, eager loading", "validity", "",
         "audit without them", disturbed, scope::tree},
    rule{"R94", "unfinished-timing", "timing that ends too early", evidence,
         "a timed range ends before the work that was queued in it", "validity", "",
         "wait once at the end of what is timed", unfinished_timing},
};
static_assert(table.size() == 47);

severity one_down(severity s) { return s <= severity::low ? s : static_cast<severity>(static_cast<int>(s) - 1); }

void fold_later(audit_result& r) {
    auto first = evidence;
    for (auto const& f : r.findings)
        if (f.level == severity::blocking) first = std::min(first, find_rule(f.rule)->step);
    if (first == evidence || first == first_call) return;
    for (auto& f : r.findings) {
        auto const step = find_rule(f.rule)->step;
        f.is_later = step > first && step != evidence && f.level != severity::blocking;
    }
}

bool is_at(finding const& f, std::string const& place) {
    if (is_called(f.where, place)) return true;
    for (auto const& frame : f.stack) {  // "solver.py:12 in read_count"
        auto const in = frame.find(" in ");
        auto const colon = frame.find(':');
        if (in == frame.npos || colon == frame.npos) continue;
        if (frame.substr(0, in) == place || frame.substr(0, colon) + ":" + frame.substr(in + 4) == place) return true;
    }
    return false;
}

// What the project allows is no finding, and said among the exemptions.
void let_allowed_pass(rule_options const& how, audit_result& r) {
    for (auto const& a : how.allowed)
        std::erase_if(r.findings, [&](finding const& f) {
            if (f.rule != a.rule || !is_at(f, a.place)) return false;
            r.exempt.push_back({f.rule, f.where, "allowed: " + a.reason, f.count, true});
            return true;
        });
}

// Of the process that did most.
void name_resting(process_model const& p, audit_result& r) {
    constexpr std::ptrdiff_t least_operations = 8;
    if (p.ops.empty()) return;
    bool const has_steady =
        std::ranges::count_if(p.ops, [&](operation const& o) { return p.in_steady(o.start); }) >= least_operations;
    for (auto const& rule : table) {
        bool const fired = std::ranges::any_of(r.findings, [&](finding const& f) { return f.rule == rule.id; }) ||
                           std::ranges::any_of(r.exempt, [&](exemption const& e) { return e.rule == rule.id; });
        if (fired || rule.apply == nullptr) continue;
        if (rule.what == needs::steps && !p.cycle.found())
            r.resting.push_back({std::string{rule.id}, "no steps were found"});
        else if (rule.what != needs::nothing && !has_steady)
            r.resting.push_back({std::string{rule.id}, "hardly anything ran once it was steady"});
    }
}

void sort_findings(audit_result& r) {
    std::ranges::stable_sort(r.findings, [](finding const& a, finding const& b) {
        return std::tuple{a.is_later, -static_cast<int>(a.level), find_rule(a.rule)->step, -a.cost} <
               std::tuple{b.is_later, -static_cast<int>(b.level), find_rule(b.rule)->step, -b.cost};
    });
}

}  // namespace

std::string_view name_of(severity s) noexcept {
    constexpr std::array names{"info", "LOW", "MEDIUM", "HIGH", "BLOCKING"};
    return names[static_cast<std::size_t>(s)];
}
std::string_view name_of(confidence c) noexcept {
    constexpr std::array names{"certain", "likely", "hint"};
    return names[static_cast<std::size_t>(c)];
}
std::optional<severity> severity_named(std::string_view name) noexcept {
    for (int s = 0; s <= static_cast<int>(severity::blocking); ++s) {
        auto const its = name_of(static_cast<severity>(s));
        if (std::ranges::equal(its, name, [](char a, char b) { return std::tolower(a) == std::tolower(b); }))
            return static_cast<severity>(s);
    }
    return std::nullopt;
}
std::string count_text(std::uint64_t count, std::string_view one, std::string_view many) {
    if (count != 1 && !many.empty()) return fmt::format("{} {}", count, many);
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}
std::string size_text(std::uint64_t bytes) {
    if (bytes < 1024) return count_text(bytes, "byte");
    auto v = static_cast<double>(bytes) / 1024;
    std::string_view unit = "KiB";
    for (auto const larger : {"MiB", "GiB"}) {
        if (v < 1024) break;
        v /= 1024;
        unit = larger;
    }
    return fmt::format("{:.{}f} {}", v, v == std::floor(v) ? 0 : 1, unit);
}
std::string_view name_of(audit_step s) noexcept {
    constexpr std::array names{"first call",        "ran on the GPU",          "stayed on the GPU",
                               "no needless waits", "no host-driven batching", "launches fit",
                               "evidence"};
    return names[static_cast<std::size_t>(s)];
}
severity audit_result::worst() const {
    auto out = severity::info;
    for (auto const& f : findings) out = std::max(out, f.level);
    return out;
}

std::span<rule const> rules() noexcept { return table; }
rule const* find_rule(std::string_view id) noexcept {
    auto const at = std::ranges::find_if(table, [&](rule const& r) { return r.id == id || r.name == id; });
    return at == table.end() ? nullptr : &*at;
}

std::string_view remedy_of(finding const& f) noexcept {
    return f.remedy.empty() ? find_rule(f.rule)->remedy : std::string_view{f.remedy};
}

double judge::number(std::string const& name, double otherwise) const {
    auto const at = options.numbers.find(name);
    return at == options.numbers.end() ? otherwise : at->second;
}

double judge::per_step(std::uint64_t count) const {
    return p.cycle.found() && !p.cycle.starts.empty()
               ? static_cast<double>(count) / static_cast<double>(p.cycle.starts.size())
               : 0;
}

bool judge::in_most_steps(std::span<time_ns const> times, step_range of) const {
    constexpr double most = 0.8;
    auto const& starts = p.cycle.starts;
    auto const first = of == step_range::all ? 0 : p.steady_from_step;
    if (!p.cycle.found() || first >= starts.size()) return false;
    std::set<std::size_t> hit;
    for (auto const t : times) {
        auto const step = static_cast<std::size_t>(std::ranges::upper_bound(starts, t) - starts.begin());
        if (step > first) hit.insert(step);
    }
    return static_cast<double>(hit.size()) >= most * static_cast<double>(starts.size() - first);
}

severity judge::by_cost(double cost, bool structural, std::uint64_t count) const {
    if (structural && cost >= 0.20) return severity::blocking;
    if (cost >= 0.05) return severity::high;
    auto const run_s = static_cast<double>(std::max<time_ns>(1, p.span())) * 1e-9;
    if (cost >= 0.01 || (cost >= 0.001 && static_cast<double>(count) / run_s >= 100)) return severity::medium;
    return count >= 20 ? severity::low : severity::info;
}

severity judge::by_cold(time_ns t) const {
    constexpr time_ns s = 1'000'000'000;
    auto const wall = static_cast<double>(std::max<time_ns>(1, p.ended - std::min(p.ended, p.started)));
    if (t >= 3 * s && static_cast<double>(t) >= 0.25 * wall) return severity::high;
    if (t >= s) return severity::medium;
    return t >= s / 10 ? severity::low : severity::info;
}

finding judge::at(std::string rule, std::uint32_t place) const {
    finding f;
    f.rule = std::move(rule);
    f.place = place;
    f.pid = p.pid;
    auto const& where = p.place_at(place);
    f.where = where.label;
    f.caller = where.caller;
    f.stack = where.stack;
    return f;
}

void judge::find(finding f) {
    if (f.sure == confidence::likely) f.level = one_down(f.level);
    if (f.sure == confidence::hint) f.level = std::min(f.level, severity::medium);
    if (p.is_steady_short() && !f.is_cold && f.rule != "R01" && f.rule != "R07")
        f.level = std::min(f.level, severity::medium);
    if (f.per_step == 0) f.per_step = per_step(f.count);
    out_.findings.push_back(std::move(f));
}
void judge::exempt(std::string rule, std::uint64_t count, std::uint32_t place, std::string why) {
    out_.exempt.push_back({std::move(rule), p.place_at(place).label, std::move(why), count});
}
void judge::good(std::string text) { out_.good.push_back(std::move(text)); }

audit_result audit(model const& m, rule_options const& how) {
    audit_result out;
    static process_model const nobody = [] {
        process_model p;
        p.places.resize(1);
        return p;
    }();
    auto const& most = m.processes.empty() ? nobody
                                           : *std::ranges::max_element(
                                                 m.processes, {}, [](process_model const& p) { return p.ops.size(); });
    auto const losses = losses_of(m);
    for (auto const& r : table) {
        if (r.apply == nullptr) continue;
        if (r.of == scope::tree) {
            judge j{m, most, losses, how, out};
            r.apply(j);
        } else {
            for (auto const& p : m.processes) {
                if (p.ops.empty() && r.step != first_call) continue;
                judge j{m, p, losses, how, out};
                r.apply(j);
            }
        }
        // Before the next one, which may look at what was let pass. Whether all this is evidence nobody allows.
        if (r.step != evidence) let_allowed_pass(how, out);
    }
    name_resting(most, out);
    bool const costly = std::ranges::any_of(out.findings, [](finding const& f) { return f.rule == "R90"; });
    if (costly)
        for (auto& f : out.findings)
            if (f.rule < "R90") f.level = one_down(f.level);
    for (auto const& f : out.findings) {
        if (f.rule == "R91" || (f.rule == "R93" && f.level >= severity::high)) {
            out.can_be_judged = false;
            out.why_not = f.what;
        }
    }
    if (out.can_be_judged && !m.has_gpu_work()) {
        out.can_be_judged = false;
        out.nothing_ran = true;
        out.why_not = m.has_operations() ? "no kernel ran on a GPU, so there is nothing to judge"
                                         : "nothing ran on a GPU, so there is nothing to judge";
    }
    let_allowed_pass(how, out);
    fold_later(out);
    sort_findings(out);
    return out;
}

}  // namespace kiln::audit
