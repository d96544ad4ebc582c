// SPDX-License-Identifier: Apache-2.0
// What is copied that need not be (R30 to R37), and memory that comes and goes (R40 to R46).
#include "audit/rules.hpp"

#include <algorithm>

namespace kiln::audit::detail {

namespace {

constexpr std::uint64_t kib = 1024, mib = 1024 * kib;

bool is_copy(operation const& o, direction way) { return o.kind == op_kind::copy && o.way == way; }

std::size_t step_of(process_model const& p, time_ns t) {
    return static_cast<std::size_t>(std::ranges::upper_bound(p.cycle.starts, t) - p.cycle.starts.begin());
}

time_ns call_time(process_model const& p, operation const& o) {
    if (o.call < 0) return 0;
    auto const& c = p.calls[static_cast<std::size_t>(o.call)];
    return c.end - c.start;
}

}  // namespace

void pageable_async(judge& j) {
    auto const& p = j.p;
    std::set<std::string> waited;
    for (auto const& w : p.waits)
        if (auto const place = p.place_of(p.calls[static_cast<std::size_t>(w.call)].correlation); place != 0)
            waited.insert(p.place_at(place).label);
    struct copies {
        std::uint64_t count = 0, bytes = 0;
        time_ns blocked = 0;
        std::uint32_t place = 0;
        [[nodiscard]] bool are_many() const { return count >= 10 || bytes >= 64 * mib; }
    };
    std::map<std::string, copies> by_line;
    std::uint64_t by_wrapper = 0;
    for (auto const& o : p.ops) {
        bool const is_pageable = o.source == memory_kind::pageable || o.target == memory_kind::pageable;
        if (o.kind != op_kind::copy || !o.async || !is_pageable || o.bytes <= 64 * kib || o.graph != 0) continue;
        auto const at = p.place_of(o.correlation);
        if (at != 0 && waited.contains(p.place_at(at).label)) {
            ++by_wrapper;
            continue;
        }
        auto& of = by_line[p.place_at(at).label];
        ++of.count;
        of.bytes += o.bytes;
        if (p.in_steady(o.start)) of.blocked += call_time(p, o);
        of.place = at;
    }
    if (by_wrapper >= 10) j.exempt("R30", by_wrapper, 0, "the same line waits for the copy at once");
    auto const say = [&](copies const& c) {
        finding f = j.at("R30", c.place);
        f.count = c.count;
        f.cost = std::min(1.0, j.share(c.blocked));
        f.structural = j.per_step(c.count) >= 0.8;
        f.what = fmt::format(
            "{} copies ({} MiB) said to be asynchronous use pageable memory, so the host stands still for them",
            c.count, c.bytes / mib);
        f.arithmetic = fmt::format("{:.1f} ms in the calls / {:.1f} ms", in_ms(c.blocked), in_ms(p.span()));
        f.level = std::max(severity::low, j.by_cost(f.cost, f.structural, c.count));
        j.find(std::move(f));
    };
    copies rest;  // of lines with a few each
    blamed_place blamed;
    for (auto const& [line, c] : by_line) {
        if (c.are_many()) {
            say(c);
            continue;
        }
        rest.count += c.count;
        rest.bytes += c.bytes;
        rest.blocked += c.blocked;
        blamed.add(c.place, static_cast<double>(c.bytes));
    }
    rest.place = blamed.heaviest();
    if (rest.are_many()) say(rest);
}

void small_copies(judge& j) {
    auto const& p = j.p;
    if (!p.cycle.found()) return;
    for (auto const way : {direction::to_device, direction::to_host}) {
        std::uint64_t count = 0, bytes = 0;
        time_ns cost = 0;
        std::set<std::string> places;
        blamed_place blamed;
        for (auto const& o : p.ops) {
            if (!is_copy(o, way) || o.bytes > 64 * kib || o.graph != 0) continue;
            ++count;
            bytes += o.bytes;
            if (p.in_steady(o.start)) cost += o.length() + call_time(p, o);
            auto const at = p.place_of(o.correlation);
            places.insert(p.place_at(at).label);
            blamed.add(at, 1);
        }
        // One read per item is R22's; here several lie close together.
        if (count < 60 || j.per_step(count) < 3 || places.size() > 3) continue;
        finding f = j.at("R31", blamed.heaviest());
        f.count = count;
        f.cost = std::min(1.0, j.share(cost));
        f.structural = true;
        f.what = fmt::format("{} small copies {} the device, {:.0f} per step, {} bytes on average", count,
                             way == direction::to_device ? "to" : "from", j.per_step(count),
                             bytes / std::max<std::uint64_t>(1, count));
        f.level = std::min(severity::high, j.by_cost(f.cost, f.structural, count));
        j.find(std::move(f));
    }
}

namespace {

struct round_trip_pair {
    operation const* down = nullptr;
    bool sure = false;
};

// What came to the host lately and has not gone back. Several arrays may be on their way: content decides which of them it is, then the
// buffer. Where neither is known it may be the last one that is as large.
class waiting_reads {
public:
    explicit waiting_reads(process_model const& p) : p_{p} {}

    void add(operation const& down) {
        if (all_.size() == most) all_.erase(all_.begin());
        all_.push_back(&down);
    }
    // The one that goes back here; none where everything as large is known to be something else.
    round_trip_pair take(operation const& up) {
        auto best = all_.end();
        auto how = alike::not_at_all;
        bool is_last = true;
        for (auto at = all_.end(); at != all_.begin();) {
            --at;
            if (!may_go_back(**at, up)) continue;
            auto const its = compare(**at, up);
            bool const is_better = its > how && (is_last || its != alike::in_size);
            is_last = false;
            if (!is_better) continue;
            best = at;
            how = its;
        }
        if (best == all_.end()) return {};
        round_trip_pair const out{*best, how > alike::in_size};
        all_.erase(best);
        return out;
    }

private:
    static constexpr std::size_t most = 256;
    enum class alike : std::uint8_t { not_at_all, in_size, in_buffer, in_content };

    [[nodiscard]] bool may_go_back(operation const& down, operation const& up) const {
        // Both at once, as where pieces stream through, are two things.
        if (up.bytes != down.bytes || up.start < down.end || up.start - down.end > 20 * ms) return false;
        return !p_.cycle.found() || step_of(p_, up.start) <= step_of(p_, down.start) + 1;
    }
    [[nodiscard]] alike compare(operation const& down, operation const& up) const {
        auto const *const from = p_.site_for(down.correlation), *const to = p_.site_for(up.correlation);
        if (from == nullptr || to == nullptr) return alike::in_size;
        // As large, and something else, be it from the same buffer.
        if (from->hash != 0 && to->hash != 0) return from->hash == to->hash ? alike::in_content : alike::not_at_all;
        return from->pointer != 0 && from->pointer == to->pointer ? alike::in_buffer : alike::in_size;
    }

    process_model const& p_;
    std::vector<operation const*> all_;
};

}  // namespace

void round_trip(judge& j) {
    auto const& p = j.p;
    std::uint64_t count = 0, sure = 0;
    std::vector<interval> away;  // from the read's beginning to the end of the way back
    std::map<std::uint32_t, std::uint64_t> places;
    waiting_reads reads{p};
    for (auto const& o : p.ops) {
        if (is_copy(o, direction::to_host) && o.bytes >= kib) reads.add(o);
        if (!is_copy(o, direction::to_device)) continue;
        auto const pair = reads.take(o);
        if (pair.down == nullptr) continue;
        ++count;
        if (pair.sure) ++sure;
        if (p.in_steady(pair.down->start)) away.push_back({pair.down->start, o.end});
        ++places[p.place_of(pair.down->correlation)];
    }
    if (count < 3) return;
    time_ns cost = 0;
    for (auto const& i : joined(std::move(away))) cost += i.length();
    auto const place = std::ranges::max_element(places, {}, [](auto const& k) { return k.second; })->first;
    finding f = j.at("R32", place);
    f.count = count;
    f.cost = std::min(1.0, j.share(cost));
    f.structural = j.per_step(count) >= 0.8;
    f.sure = sure * 10 >= count * 9 ? confidence::certain : confidence::likely;
    f.what =
        sure == count
            ? fmt::format("{} times what came to the host went back to the device, known by address or content", count)
            : fmt::format("{} times as much as had just come to the host went to the device ({} known to be the same)",
                          count, sure);
    f.arithmetic = fmt::format("{:.1f} ms there and back / {:.1f} ms", in_ms(cost), in_ms(p.span()));
    f.level = f.sure == confidence::certain && f.cost >= 0.01
                  ? std::max(severity::high, j.by_cost(f.cost, f.structural, count))
                  : std::max(severity::medium, j.by_cost(f.cost, f.structural, count));
    f.level = std::min(f.level, severity::high);
    j.find(std::move(f));
}

void re_upload(judge& j) {
    auto const& p = j.p;
    struct upload {
        std::uint64_t count = 0, in_steady = 0;
        time_ns cost = 0;
        std::uint64_t bytes = 0;
        std::uint32_t place = 0;
    };
    std::map<std::pair<std::string, std::uint64_t>, upload> all;
    for (auto const& o : p.ops) {
        if (!is_copy(o, direction::to_device) || o.bytes < 4 * kib) continue;
        auto const* const site = p.site_for(o.correlation);
        if (site == nullptr || site->hash == 0) continue;
        auto& u = all[{p.place_at(site->place).label, site->hash}];
        ++u.count;
        u.bytes = o.bytes;
        u.place = site->place;
        if (!p.in_steady(o.start)) continue;
        ++u.in_steady;
        u.cost += o.length() + call_time(p, o);
    }
    for (auto const& [key, u] : all) {
        if (u.count < 3) continue;
        if (u.in_steady < 3) {
            j.exempt("R33", u.count, u.place, "before the steady state: parameters that begin alike, trials");
            continue;
        }
        finding f = j.at("R33", u.place);
        f.count = u.count;
        f.cost = std::min(1.0, j.share(u.cost));
        f.structural = j.per_step(u.count) >= 0.8;
        f.what = fmt::format("the same {} were uploaded {} times", size_text(u.bytes), u.count);
        f.arithmetic = fmt::format("{:.1f} ms in copies and calls / {:.1f} ms", in_ms(u.cost), in_ms(p.span()));
        f.level = f.cost >= 0.05 ? severity::high : severity::medium;
        j.find(std::move(f));
    }
}

void device_copies(judge& j) {
    auto const& p = j.p;
    std::vector<interval> moving;
    std::vector<time_ns> times;
    for (auto const& o : p.ops) {
        if (!p.in_steady(o.start) || !(is_copy(o, direction::on_device) || o.kind == op_kind::set)) continue;
        moving.push_back({o.start, std::min(o.end, p.steady.to)});
        times.push_back(o.start);
    }
    time_ns all = 0;  // several at once are no more than the time they take
    for (auto const& i : joined(std::move(moving))) all += i.length();
    auto const share = static_cast<double>(all) / static_cast<double>(std::max<time_ns>(1, p.steady_busy));
    if (share < j.number("R36.share", 0.15) || all < ms) return;
    finding f = j.at("R36", 0);
    f.where = "device memory";
    f.count = times.size();
    f.structural = j.in_most_steps(times, judge::step_range::steady);
    f.cost = j.share(all);
    f.what = fmt::format("{} copies and sets on the device take {:.0f} % of the busy time", f.count, share * 100);
    f.level = severity::medium;
    j.find(std::move(f));
}

void managed(judge& j) {
    auto const& p = j.p;
    std::uint64_t count = 0, bytes = 0;
    blamed_place blamed;
    for (auto const& m : p.from->memory) {
        if (m.operation != 1 || m.memory != static_cast<std::uint8_t>(memory_kind::managed) || m.bytes < mib) continue;
        ++count;
        bytes += m.bytes;
        blamed.add(p.place_of(m.correlation), static_cast<double>(m.bytes));
    }
    if (count == 0) return;
    finding f = j.at("R37", blamed.heaviest());
    f.count = count;
    f.what = fmt::format("{} of managed memory, {} MiB", count_text(count, "allocation"), bytes / mib);
    f.level = severity::medium;
    f.is_cold = true;
    j.find(std::move(f));
}

void churn(judge& j) {
    auto const& p = j.p;
    std::uint64_t allocations = 0, frees = 0, steady = 0, late = 0, steady_frees = 0;
    time_ns cost = 0;
    std::map<std::uint32_t, std::uint64_t> places;
    // Half of the steps, where there are any: a single slow call may take half of the time.
    auto const half = p.steady_steps() >= 2 ? p.cycle.starts[(p.steady_from_step + p.cycle.starts.size()) / 2]
                                            : p.steady.from + p.steady.length() / 2;
    for (auto const& c : p.calls) {
        bool const is_allocation = c.what == call_class::allocate || c.what == call_class::allocate_host;
        bool const is_free = c.what == call_class::release || c.what == call_class::release_host;
        if (!is_allocation && !is_free) continue;
        if (c.status == 0) ++(is_allocation ? allocations : frees);
        if (!p.in_steady(c.start)) continue;
        cost += c.end - c.start;
        ++(is_allocation ? steady : steady_frees);
        if (is_allocation && c.start >= half) ++late;
        if (is_allocation) ++places[p.place_of(c.correlation)];
    }
    auto const steps = std::max<std::size_t>(1, p.steady_steps());
    auto const seconds = static_cast<double>(p.span()) * 1e-9;
    bool const often = p.cycle.found() ? steady >= steps / 2 : static_cast<double>(steady) / seconds >= 50;
    if (!often || std::min(steady, steady_frees) < 20) return;
    auto const place = std::ranges::max_element(places, {}, [](auto const& k) { return k.second; })->first;
    if (place != 0) {  // of that line alone; another may free what it allocates
        allocations = 0;
        for (auto const& c : p.calls) {
            if (c.status != 0 || p.place_at(p.place_of(c.correlation)).label != p.place_at(place).label) continue;
            allocations += c.what == call_class::allocate || c.what == call_class::allocate_host ? 1 : 0;
        }
    }
    if (late * 10 < steady) return j.exempt("R40", allocations, place, "it dies down: growth at the beginning");
    finding f = j.at("R40", place);
    f.count = allocations;
    f.cost = std::min(1.0, j.share(cost));
    f.structural = true;
    f.what = fmt::format("{} allocations of memory outside a pool at this line, {} frees in all", allocations, frees);
    f.arithmetic = fmt::format("{:.1f} ms in those calls / {:.1f} ms", in_ms(cost), in_ms(p.span()));
    f.level = std::max(severity::medium, std::min(severity::high, j.by_cost(f.cost, true, allocations)));
    if (j.per_step(allocations) >= 10 && f.cost >= 0.1) f.level = severity::blocking;
    j.find(std::move(f));
}

void trimming(judge& j) {
    auto const& p = j.p;
    std::uint64_t bursts = 0, row = 0;
    std::uint32_t last = 0;
    blamed_place blamed;
    std::set<std::string> trimmed_at;
    auto const end_row = [&] {
        if (row >= 5) {
            ++bursts;
            blamed.add(last, 1);
            trimmed_at.insert(p.place_at(last).label);
        }
        row = 0;
    };
    for (auto const& c : p.calls) {
        if (c.what == call_class::trim) {
            ++bursts;
            blamed.add(p.place_of(c.correlation), 1);
        } else if (c.what == call_class::release) {
            ++row;
            last = p.place_of(c.correlation);
        } else if (c.what == call_class::allocate) {
            end_row();
        }
    }
    // What is freed at the end is not trimmed, but by a line that has trimmed before.
    if (last != 0 && trimmed_at.contains(p.place_at(last).label)) end_row();
    auto const per_step = j.per_step(bursts);
    if (bursts < 3 || per_step < 0.1) return;
    finding f = j.at("R41", blamed.heaviest());
    f.count = bursts;
    f.structural = per_step >= 0.5;
    f.what = fmt::format("the pool was emptied {} times and filled again", bursts);
    f.level = per_step >= 0.5 ? severity::high : severity::medium;
    j.find(std::move(f));
}

void alloc_retry(judge& j) {
    auto const& p = j.p;
    constexpr std::uint32_t out_of_memory = 2;
    std::uint64_t count = 0;
    std::uint32_t place = 0;
    int state = 0;  // 1 failed, 2 freed since
    for (auto const& c : p.calls) {
        if (c.what == call_class::allocate && c.status == out_of_memory) state = 1, place = p.place_of(c.correlation);
        else if (c.what == call_class::release && state == 1) state = 2;
        else if (c.what == call_class::allocate && c.status == 0 && state == 2) ++count, state = 0;
    }
    if (count == 0) return;
    finding f = j.at("R42", place);
    f.count = count;
    f.structural = j.per_step(count) >= 0.8;
    f.what = fmt::format("{} failed for lack of memory, and succeeded after others were freed",
                         count_text(count, "allocation"));
    f.level = severity::high;
    j.find(std::move(f));
}

void growing_output(judge& j) {
    auto const& p = j.p;
    struct run {
        std::uint64_t size = 0;
        int length = 0, longest = 0;
        time_ns last = 0;
        std::uint32_t place = 0;
    };
    std::map<std::string, run> by_place;
    for (auto const& m : p.from->memory) {
        if (m.operation != 1 || m.bytes < 64 * kib) continue;
        auto const place = p.place_of(m.correlation);
        if (place == 0) continue;
        auto& r = by_place[p.place_at(place).label];
        auto const ratio = r.size == 0 ? 0 : static_cast<double>(m.bytes) / static_cast<double>(r.size);
        r.length = ratio >= 1.2 && ratio <= 2.5 ? r.length + 1 : 0;
        r.longest = std::max(r.longest, r.length);
        if (r.length >= 1) r.last = m.time;
        r.size = m.bytes;
        r.place = place;
    }
    for (auto const& [label, r] : by_place) {
        if (r.longest < 4) continue;
        bool const copies = std::ranges::any_of(p.ops, [&, last = r.last](operation const& o) {
            return is_copy(o, direction::on_device) && o.start >= last && o.start < last + 50 * ms;
        });
        if (!copies) {
            j.exempt("R46", static_cast<std::uint64_t>(r.longest), r.place, "sizes grow, but nothing is copied over");
            continue;
        }
        finding f = j.at("R46", r.place);
        f.count = static_cast<std::uint64_t>(r.longest);
        f.what = fmt::format("an output grew {} times in a row and was copied over", r.longest);
        f.level = severity::medium;
        j.find(std::move(f));
    }
}

}  // namespace kiln::audit::detail
