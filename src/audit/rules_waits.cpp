// SPDX-License-Identifier: Apache-2.0
// The host waits, and streams that are none (R20 to R28).
#include "audit/rules.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace kiln::audit::detail {

namespace {

constexpr std::uint64_t scalar_bytes = 64;

struct group {
    std::uint64_t count = 0, in_steady = 0;
    time_ns idle = 0;
    std::uint32_t place = 0;
    std::vector<std::int32_t> ops;  // that were read
    std::uint64_t bytes = 0;
};
// Lines with the same label are one place.
using groups = std::map<std::string, group>;

bool contains_any(std::string const& name, std::initializer_list<std::string_view> parts) {
    return std::ranges::any_of(parts, [&](std::string_view part) {
        auto const same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
        return std::search(name.begin(), name.end(), part.begin(), part.end(), same) != name.end();
    });
}
bool counts_something(std::string const& name) {
    return contains_any(name, {"reduce", "scan", "select", "nonzero", "unique", "count", "compact", "sum"});
}
bool selects_something(std::string const& name) {
    return contains_any(name, {"select", "nonzero", "unique", "compact", "scatter", "partition"});
}

// One read per step at this place, after something was counted, and before something whose size follows from it.
bool is_fence(judge const& j, group const& g) {
    auto const& p = j.p;
    if (!p.cycle.found() || std::abs(j.per_step(g.count) - 1) > 0.15) return false;
    std::size_t counted = 0, sized = 0, looked = 0;
    std::set<std::uint32_t> grids;
    for (auto const at : g.ops) {
        if (looked >= 50) break;
        ++looked;
        auto const i = static_cast<std::size_t>(at);
        auto before = i;
        while (before > 0 && p.ops[before - 1].kind != op_kind::kernel) --before;
        if (before > 0 && counts_something(p.text(p.ops[before - 1].name))) ++counted;
        auto next = i + 1;
        while (next < p.ops.size() && p.ops[next].kind != op_kind::kernel) ++next;
        bool is_sized = next < p.ops.size() && selects_something(p.text(p.ops[next].name));
        auto const first = std::ranges::lower_bound(p.calls, p.ops[i].end, {}, &call::start);
        for (auto c = first; c != p.calls.end() && c->start <= p.ops[i].end + 100 * us; ++c)
            is_sized = is_sized || c->what == call_class::allocate || c->what == call_class::allocate_pooled;
        if (is_sized) ++sized;
        for (auto k = next; k < std::min(next + 2, p.ops.size()); ++k)
            if (p.ops[k].kind == op_kind::kernel) grids.insert(p.ops[k].blocks);
    }
    if (looked == 0 || counted * 10 < looked * 9) return false;
    return sized * 10 >= looked * 9 || grids.size() * 2 >= looked;
}

bool is_upload(operation const& o) { return o.kind == op_kind::copy && o.way == direction::to_device; }

// As much is uploaded again soon after: where a step begins says nothing then.
bool goes_back(process_model const& p, std::size_t at) {
    for (auto i = at + 1; i < p.ops.size() && p.ops[i].start < p.ops[at].end + 20 * ms; ++i)
        if (is_upload(p.ops[i]) && p.ops[i].bytes == p.ops[at].bytes) return true;
    return false;
}

groups reads_by_place(judge const& j, bool sure, auto const& wanted) {
    groups out;
    for (auto const& r : j.p.reads) {
        auto const& o = j.p.ops[static_cast<std::size_t>(r.op)];
        if (r.sure != sure || !wanted(r, o)) continue;
        auto& g = out[j.p.place_at(r.place).label];
        ++g.count;
        g.place = r.place;
        g.idle += r.idle;
        g.bytes = std::max(g.bytes, o.bytes);
        g.ops.push_back(r.op);
    }
    return out;
}

// A wrapper that uploads from pageable memory and waits is one act of the wrapper's.
std::set<std::string> uploading_places(process_model const& p) {
    std::set<std::string> out;
    for (auto const& o : p.ops)
        if (o.kind == op_kind::copy && o.way == direction::to_device && o.source == memory_kind::pageable)
            out.insert(p.place_at(p.place_of(o.correlation)).label);
    return out;
}

void waits_nobody_needed(judge& j, std::string const& id, bool whole_device) {
    auto const& p = j.p;
    groups none, timing;
    std::uint64_t housekeeping = 0;
    auto const uploads = uploading_places(p);
    for (auto const& w : p.waits) {
        auto const& c = p.calls[static_cast<std::size_t>(w.call)];
        if ((c.waits == wait_class::device) != whole_device) continue;
        if (w.by == consumer::read) continue;
        if (w.by == consumer::housekeeping) {
            ++housekeeping;
            continue;
        }
        auto const place = p.place_of(c.correlation);
        auto& g = (w.by == consumer::timing ? timing : none)[p.place_at(place).label];
        ++g.count;
        g.in_steady += p.in_steady(c.start) ? 1 : 0;
        g.idle += w.idle;
        g.place = place;
    }
    for (auto const& [label, g] : timing)
        if (g.count >= 20) j.exempt(id, g.count, g.place, "TIMING: an elapsed time is taken right after");
    if (housekeeping >= 20) j.exempt(id, housekeeping, 0, "HOUSEKEEPING: something is freed or captured right after");
    for (auto const& [label, g] : none) {
        if (g.count < 20) continue;
        if (label != "?" && uploads.contains(label)) {
            j.exempt(id, g.count, g.place, "the wrapper waits for its own upload from pageable memory");
            continue;
        }
        if (g.in_steady < 20) {
            j.exempt(id, g.count, g.place, "before the steady state: what is tried out is waited for");
            continue;
        }
        if (whole_device && p.cycle.found() && j.per_step(g.count) < 0.9) {
            j.exempt(id, g.count, g.place, "not in every step");
            continue;
        }
        if (g.idle == 0 && p.steady.length() > 0 && p.cycle.found() && !whole_device) {
            j.exempt(id, g.count, g.place, "the GPU had no gap because of it");
            continue;
        }
        finding f = j.at(id, g.place);
        f.count = g.count;
        f.cost = j.share(g.idle);
        f.structural = j.per_step(g.count) >= 0.8;
        f.what = fmt::format("the host waited {} times for {} and nobody used what it waited for", g.count,
                             whole_device ? "the whole device" : "a stream or an event");
        f.arithmetic = fmt::format("{:.1f} ms idle after them / {:.1f} ms", static_cast<double>(g.idle) * 1e-6,
                                   static_cast<double>(p.span()) * 1e-6);
        f.level = j.by_cost(f.cost, f.structural, g.count);
        if (!f.caller && f.cost >= 0.1 && label != "?") f.level = severity::blocking;
        j.find(std::move(f));
    }
}

}  // namespace

void needless_wait(judge& j) { waits_nobody_needed(j, "R20", false); }
void device_wait(judge& j) { waits_nobody_needed(j, "R21", true); }

void scalar_read(judge& j) {
    auto const& p = j.p;
    for (bool const sure : {true, false}) {
        auto const all =
            reads_by_place(j, sure, [](read_use const&, operation const& o) { return o.bytes <= scalar_bytes; });
        for (auto const& [label, g] : all) {
            if (g.count < 20) continue;
            if (is_fence(j, g)) {
                j.exempt("R22", g.count, g.place, "allocation fence: one read per step that sizes what comes next");
                continue;
            }
            if (p.cycle.found() && j.per_step(g.count) < 0.34) {
                j.exempt("R22", g.count, g.place, "every n-th step");
                continue;
            }
            finding f = j.at("R22", g.place);
            f.count = g.count;
            f.cost = j.share(g.idle);
            f.structural = !p.cycle.found() || j.per_step(g.count) >= 0.8;
            f.what = fmt::format("the host waited {} times for {} or less", g.count, size_text(g.bytes));
            f.arithmetic = fmt::format("{:.1f} ms idle after the reads / {:.1f} ms", static_cast<double>(g.idle) * 1e-6,
                                       static_cast<double>(p.span()) * 1e-6);
            f.level = j.by_cost(f.cost, f.structural, g.count);
            if (j.per_step(g.count) >= 10 && f.cost >= 0.1) f.level = severity::blocking;
            f.sure = sure ? confidence::certain : confidence::likely;
            j.find(std::move(f));
        }
    }
}

void bulk_read(judge& j) {
    auto const& p = j.p;
    auto const wait_or_likely = [](read_use const& r, operation const& o) {
        return o.bytes > scalar_bytes && (r.wait >= 0 || !r.sure);
    };
    for (bool const sure : {true, false}) {
        for (auto const& [label, g] : reads_by_place(j, sure, wait_or_likely)) {
            if (g.count < 8 || (p.cycle.found() && j.per_step(g.count) < 0.9)) continue;
            std::uint64_t last_acts = 0;
            for (auto const at : g.ops) {
                auto const& o = p.ops[static_cast<std::size_t>(at)];
                if (goes_back(p, static_cast<std::size_t>(at))) continue;
                auto const next_step = std::ranges::upper_bound(p.cycle.starts, o.start);
                auto const until = next_step == p.cycle.starts.end() ? p.ended : *next_step;
                auto const next = static_cast<std::size_t>(at) + 1;
                // New input right after it begins a step as well, whichever line the steps were counted by.
                bool const ends = next >= p.ops.size() || p.ops[next].start >= until || is_upload(p.ops[next]);
                if (ends) ++last_acts;
            }
            if (last_acts * 10 >= g.count * 9) {
                j.exempt("R23", g.count, g.place, "boundary: the last act of a step");
                continue;
            }
            finding f = j.at("R23", g.place);
            f.count = g.count;
            f.cost = j.share(g.idle);
            f.structural = j.per_step(g.count) >= 0.8;
            f.what = fmt::format("{} reads of up to {} that the host waited for, with more GPU work after", g.count,
                                 size_text(g.bytes));
            f.arithmetic = fmt::format("{:.1f} ms idle after them / {:.1f} ms", static_cast<double>(g.idle) * 1e-6,
                                       static_cast<double>(p.span()) * 1e-6);
            f.level = j.by_cost(f.cost, f.structural, std::max<std::uint64_t>(20, g.count));
            if (j.per_step(g.count) >= 2 && f.cost >= 0.1) f.level = severity::blocking;
            f.sure = sure ? confidence::certain : confidence::likely;
            j.find(std::move(f));
        }
    }
}

void sync_copy(judge& j) {
    auto const& p = j.p;
    groups all;
    for (auto const& o : p.ops) {
        if (o.kind != op_kind::copy || o.async || o.way == direction::on_device || o.way == direction::none) continue;
        if (o.way == direction::to_host && o.bytes <= scalar_bytes) continue;  // R22 speaks of them
        auto const place = p.place_of(o.correlation);
        auto& g = all[p.place_at(place).label];
        ++g.count;
        g.place = place;
        if (!p.in_steady(o.start)) continue;
        ++g.in_steady;
        g.idle += o.call < 0
                      ? o.length()
                      : p.calls[static_cast<std::size_t>(o.call)].end - p.calls[static_cast<std::size_t>(o.call)].start;
    }
    for (auto const& [label, g] : all) {
        if (g.count < 20) continue;
        if (g.in_steady < 20) {
            j.exempt("R24", g.count, g.place, "before the steady state: what a program begins with");
            continue;
        }
        if (g.idle < ms) continue;
        finding f = j.at("R24", g.place);
        f.count = g.count;
        f.cost = std::min(1.0, j.share(g.idle));
        f.structural = j.per_step(g.count) >= 0.8;
        f.what = fmt::format("{} synchronous copies blocked the host for {:.1f} ms", g.count,
                             static_cast<double>(g.idle) * 1e-6);
        f.level = std::min(severity::high, j.by_cost(f.cost, f.structural, g.count));
        j.find(std::move(f));
    }
}

namespace {

struct stream_use {
    std::map<std::uint32_t, std::uint64_t> ops;
    std::vector<std::uint32_t> big;
};
stream_use streams_of(process_model const& p) {
    stream_use out;
    std::uint64_t all = 0;
    for (auto const& o : p.ops) {
        if (!p.in_steady(o.start)) continue;
        ++out.ops[o.stream];
        ++all;
    }
    for (auto const& [stream, count] : out.ops)
        if (count * 20 >= all) out.big.push_back(stream);
    return out;
}

}  // namespace

void null_stream(judge& j) {
    auto const& p = j.p;
    auto const use = streams_of(p);
    std::uint32_t null = 0;
    bool has_null = false;
    std::uint64_t blocking = 0;
    for (auto const s : use.big) {
        auto const flag = p.stream_flags.find(s);
        if (p.null_streams.contains(s)) {
            has_null = true;
            null = s;
        } else if (flag != p.stream_flags.end() && flag->second == 1) {
            ++blocking;
        }
    }
    if (!has_null || use.big.size() < 2) return;
    if (blocking == 0) return j.good("streams are non-blocking: the null stream does not hold them up");
    std::uint64_t count = 0, steady = 0;
    time_ns held = 0;
    blamed_place blamed;
    for (auto const& o : p.ops) {
        // R24 speaks of the others.
        if (o.stream != null || (o.kind == op_kind::copy && !o.async && o.way != direction::on_device)) continue;
        ++count;
        if (!p.in_steady(o.start)) continue;
        ++steady;
        held += o.length();
        blamed.add(p.place_of(o.correlation), static_cast<double>(o.length()));
    }
    if (steady == 0) return;
    finding f = j.at("R27", blamed.heaviest());
    f.count = count;
    f.cost = std::min(1.0, j.share(held + gap_time(p, {gap_cause::dependency, gap_cause::latency})));
    f.structural = j.per_step(count) >= 0.8;
    f.what = fmt::format("{} operations on the null stream, and {} for each of them", count,
                         count_text(blocking, "blocking stream waits", "blocking streams wait"));
    f.level = std::max(severity::medium, std::min(severity::high, j.by_cost(f.cost, f.structural, count)));
    if (!f.caller && f.cost >= 0.1 && f.where != "?") f.level = severity::blocking;
    j.find(std::move(f));
}

void cosmetic_streams(judge& j) {
    auto const& p = j.p;
    auto const use = streams_of(p);
    if (use.big.size() < 2) return;
    struct edge {
        time_ns at;
        int step;
        std::uint32_t stream;
    };
    std::vector<edge> edges;
    std::vector<double> cover;
    for (auto const& o : p.ops) {
        if (!p.in_steady(o.start) || std::ranges::find(use.big, o.stream) == use.big.end()) continue;
        edges.push_back({o.start, +1, o.stream});
        edges.push_back({o.end, -1, o.stream});
        if (o.kind == op_kind::kernel)
            cover.push_back(std::min(1.0, static_cast<double>(o.blocks) / p.multiprocessors));
    }
    std::ranges::sort(edges, {}, [](edge const& e) { return std::pair{e.at, e.step}; });
    std::map<std::uint32_t, int> open;
    std::map<std::uint32_t, time_ns> alone;  // how long each had work
    time_ns both = 0, any = 0, at = edges.empty() ? 0 : edges.front().at;
    for (auto const& e : edges) {
        auto const busy = std::ranges::count_if(open, [](auto const& s) { return s.second > 0; });
        if (busy >= 1) any += e.at - at;
        if (busy >= 2) both += e.at - at;
        for (auto const& [stream, n] : open)
            if (n > 0) alone[stream] += e.at - at;
        at = e.at;
        open[e.stream] += e.step;
    }
    if (any == 0 || cover.empty()) return;
    auto const together = static_cast<double>(both) / static_cast<double>(any);
    if (together >= 0.02)
        return j.good(fmt::format("{} streams overlap for {:.0f} % of the busy time", use.big.size(), together * 100));
    std::ranges::nth_element(cover, cover.begin() + static_cast<std::ptrdiff_t>(cover.size() / 2));
    if (cover[cover.size() / 2] >= 0.9)
        return j.exempt("R28", use.big.size(), 0, "kernels fill the GPU, so streams cannot overlap");
    // At best the longest of them would be left.
    auto const longest = std::ranges::max_element(alone, {}, [](auto const& stream) { return stream.second; })->second;
    auto const gain = any - std::min(any, longest);
    if (gain < ms && j.share(gain) < 0.001)
        return j.exempt("R28", use.big.size(), 0, "so little work that side by side would gain nothing");
    finding f = j.at("R28", 0);
    f.where = fmt::format("{} streams", use.big.size());
    f.count = use.big.size();
    f.cost = j.share(gain);
    f.what =
        fmt::format("{} streams are used, and busy together for {:.1f} % of the time", use.big.size(), together * 100);
    f.structural = true;
    f.level = severity::medium;
    j.find(std::move(f));
}

}  // namespace kiln::audit::detail
