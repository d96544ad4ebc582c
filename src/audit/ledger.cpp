// SPDX-License-Identifier: Apache-2.0
// Where the time until the steady state went: each moment belongs to the innermost cause, so the rows sum to the time.
#include "audit/model.hpp"

#include <algorithm>
#include <array>

namespace kiln::audit {

namespace {

constexpr time_ns least_inferred = 20 * ms;

// Innermost last: where two overlap, the later one in this list has the time.
enum class cause : std::uint8_t {
    host,
    imports,
    trials,
    gpu,
    driver_init,
    context,
    load,
    nvrtc,
    nvjitlink,
    nvvm,
    lazy,
    driver_compile,
    cache_load,
    cache_store,
    inferred,
    child,
    tool
};
constexpr std::string_view names[] = {"the program's own code",
                                      "start and imports",
                                      "trials",
                                      "GPU work",
                                      "cuInit",
                                      "context",
                                      "load and link",
                                      "NVRTC",
                                      "nvJitLink",
                                      "NVVM",
                                      "lazy loading",
                                      "driver JIT: compile",
                                      "driver JIT: cache load",
                                      "driver JIT: cache store",
                                      "compile inside a library",
                                      "compiler processes",
                                      "this tool"};

cause cause_of(first_kind kind) {
    switch (kind) {
        case first_kind::nvrtc: return cause::nvrtc;
        case first_kind::nvjitlink: return cause::nvjitlink;
        case first_kind::nvvm: return cause::nvvm;
        case first_kind::driver_compile: return cause::driver_compile;
        case first_kind::cache_load: return cause::cache_load;
        case first_kind::cache_store: return cause::cache_store;
        case first_kind::load: return cause::load;
        case first_kind::lazy: return cause::lazy;
        case first_kind::child: return cause::child;
        case first_kind::inferred: return cause::inferred;
    }
    return cause::host;
}

struct piece {
    interval when;
    cause why;
};

// Sorted and disjoint, each list; a moment is known if it lies in one of them.
using known_lists = std::array<std::vector<interval> const*, 3>;

// The unknown time right before a moment: from the end of what is known before, to the beginning of what is known up to it.
struct unknown_time {
    time_ns asked = 0;
    interval when;
};

// `last`: what was answered for an earlier moment. Where the way back meets it they go on alike: what is known without a break may be as long
// as the run.
unknown_time unknown_before(known_lists const& known, time_ns const asked, unknown_time const& last) {
    auto at = asked;
    for (bool moved = true; moved;) {
        if (at <= last.asked && at >= last.when.to) return {asked, last.when};
        moved = false;
        for (auto const* const list : known) {
            auto const around = std::ranges::lower_bound(*list, at, {}, &interval::to);
            if (around == list->end() || around->from >= at) continue;
            at = around->from;
            moved = true;
        }
    }
    time_ns before = 0;
    for (auto const* const list : known) {
        auto const around = std::ranges::lower_bound(*list, at, {}, &interval::to);
        if (around != list->begin()) before = std::max(before, std::prev(around)->to);
    }
    return {asked, {before, at}};
}

// Compilers that are linked into a framework make no call: the time before a first-seen load, on a thread that was on a processor
// all along and had no other cause, is theirs by inference.
void infer_compiles(process_model& p, std::vector<piece>& pieces) {
    std::vector<interval> causes;
    for (auto const& k : pieces)
        if (k.why != cause::gpu) causes.push_back(k.when);
    causes = joined(std::move(causes));
    auto const calls = joined_in_order(p.calls);
    known_lists const known{&causes, &calls, &p.busy};
    std::vector<interval> found;
    unknown_time last;
    for (auto const& f : p.firsts) {
        if (f.kind != first_kind::load && f.kind != first_kind::child) continue;
        last = unknown_before(known, f.when.from, last);
        auto const when = last.when;
        if (when.length() >= least_inferred && when.from > p.begun) found.push_back(when);
    }
    for (auto const& when : found) {
        if (!pieces.empty() && pieces.back().why == cause::inferred && pieces.back().when.from == when.from) continue;
        pieces.push_back({when, cause::inferred});
        p.firsts.push_back({.when = when, .kind = first_kind::inferred});
    }
    std::ranges::sort(p.firsts, {}, [](first_event const& e) { return std::pair{e.when.from, e.when.to}; });
}

}  // namespace

void make_ledger(process_model& p) {
    std::vector<piece> pieces;
    auto const begin = p.started != 0 ? p.started : p.begun;
    auto const end = p.ops.empty() ? p.ended : p.steady.from;
    if (end <= begin) return;
    time_ns init_from = p.begun, init_to = p.begun;
    for (auto const& c : p.from->compiles) {
        if (static_cast<format::compiler>(c.what) != format::compiler::driver_init || c.end < p.begun ||
            c.start > p.begun)
            continue;
        init_from = c.start;
        init_to = c.end;
    }
    pieces.push_back({{begin, init_from}, cause::imports});
    if (init_to > init_from) pieces.push_back({{init_from, init_to}, cause::driver_init});
    for (auto const& c : p.calls)
        if (c.what == call_class::context) pieces.push_back({{c.start, c.end}, cause::context});
    for (auto const& f : p.firsts) pieces.push_back({f.when, cause_of(f.kind)});
    for (auto const& b : p.busy) {
        if (b.from >= end) break;
        pieces.push_back({b, cause::gpu});
    }
    for (auto const* t : p.trials) pieces.push_back({{t->start, t->end}, cause::trials});
    for (auto const& o : p.from->overheads)
        if (is_of_the_tool(o)) pieces.push_back({{o.start, o.end}, cause::tool});
    pieces.push_back({{p.begun, p.begun + p.from->about.set_up}, cause::tool});
    infer_compiles(p, pieces);

    struct edge {
        time_ns at;
        int step;
        cause why;
    };
    std::vector<edge> edges;
    std::map<cause, std::uint64_t> counts;
    for (auto const& k : pieces) {
        interval const when{std::max(k.when.from, begin), std::min(k.when.to, end)};
        if (when.length() == 0) continue;
        edges.push_back({when.from, +1, k.why});
        edges.push_back({when.to, -1, k.why});
        ++counts[k.why];
    }
    std::ranges::sort(edges, {}, &edge::at);
    std::map<cause, time_ns> walls;
    std::map<cause, int> open;
    auto at = begin;
    for (auto const& e : edges) {
        auto why = cause::host;
        for (auto const& [k, n] : open)
            if (n > 0) why = std::max(why, k);
        walls[why] += e.at - at;
        at = e.at;
        open[e.why] += e.step;
    }
    walls[cause::host] += end - at;
    auto const add = [&](cause why) {
        if (walls[why] > 0)
            p.ledger.push_back(
                {std::string{names[static_cast<std::size_t>(why)]}, walls[why], counts[why], why == cause::inferred});
    };
    for (auto k = static_cast<int>(cause::imports); k <= static_cast<int>(cause::tool); ++k) add(static_cast<cause>(k));
    add(cause::host);
}

}  // namespace kiln::audit
