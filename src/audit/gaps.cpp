// SPDX-License-Identifier: Apache-2.0
// Why the GPU had nothing to do, and who needed what was waited for.
#include "audit/model.hpp"

#include <algorithm>
#include <utility>

namespace kiln::audit {

namespace {

constexpr time_ns least_gap = 5 * us;
constexpr double on_cpu = 0.7;

// How long threads were on a processor, as far as samples tell.
class cpu_times {
public:
    explicit cpu_times(process_recording const& r) {
        for (auto const& s : r.cpu) all_[s.thread].emplace_back(s.time, s.used);
        for (auto const& s : r.sites)
            if (s.cpu != 0) all_[s.thread].emplace_back(s.time, s.cpu);
        for (auto& [thread, samples] : all_) std::ranges::sort(samples);
    }
    // The share of the time between the samples around it; nullopt where there are none.
    [[nodiscard]] std::optional<double> share(std::uint32_t thread, interval when) const {
        auto const at = all_.find(thread);
        if (at == all_.end()) return std::nullopt;
        auto const& samples = at->second;
        auto after = std::ranges::lower_bound(samples, std::pair<time_ns, std::uint64_t>{when.to, 0});
        auto before = std::ranges::upper_bound(samples, std::pair<time_ns, std::uint64_t>{when.from, ~0ULL});
        if (after == samples.end() || before == samples.begin()) return std::nullopt;
        --before;
        if (after->first <= before->first) return std::nullopt;
        return static_cast<double>(after->second - std::min(after->second, before->second)) /
               static_cast<double>(after->first - before->first);
    }

private:
    std::unordered_map<std::uint32_t, std::vector<std::pair<time_ns, std::uint64_t>>> all_;
};

struct gap_finder {
    process_model& p;
    cpu_times cpu;
    std::vector<interval> firsts, allocations, tool;
    std::vector<std::pair<time_ns, std::int32_t>> returns;  // of calls that blocked the host, by when

    explicit gap_finder(process_model& m) : p{m}, cpu{*m.from} {
        for (auto const& f : p.firsts) firsts.push_back(f.when);
        firsts = joined(std::move(firsts));
        std::set<std::uint32_t> blocking_copies;
        for (auto const& o : p.ops)
            if (o.kind == op_kind::copy && !o.async && o.way != direction::on_device)
                blocking_copies.insert(o.correlation);
        for (std::size_t i = 0; i < p.calls.size(); ++i) {
            auto const& c = p.calls[i];
            using enum call_class;
            if (c.what == allocate || c.what == allocate_host || c.what == allocate_managed || c.what == release ||
                c.what == release_host)
                allocations.push_back({c.start, c.end});
            if (c.waits != wait_class::none || (c.what == copy && blocking_copies.contains(c.correlation)))
                returns.emplace_back(c.end, static_cast<std::int32_t>(i));
        }
        allocations = joined(std::move(allocations));
        std::ranges::sort(returns);
        for (auto const& o : p.from->overheads)
            if (is_of_the_tool(o)) tool.push_back({o.start, o.end});
        tool = joined(std::move(tool));
    }

    // What was queued waited for another stream only if that, and not its own, had work until then.
    [[nodiscard]] bool follows_another_stream(interval busy, operation const& o) const {
        for (auto at = std::ranges::lower_bound(p.ops, busy.from, {}, &operation::start);
             at != p.ops.end() && at->start < busy.to; ++at)
            if (at->end == busy.to && at->stream == o.stream) return false;
        return true;
    }
    // Work that was queued in time, and still began late. `busy`: what was there before.
    [[nodiscard]] gap_cause cause_of_queued(interval when, interval busy, operation const& o,
                                            call const& launch) const {
        if (when.length() >= 10 * us && follows_another_stream(busy, o)) return gap_cause::dependency;
        if (overlap(when, tool) > when.length() / 2) return gap_cause::tool;
        bool const is_on_its_way = when.length() < 10 * us || launch.end > when.from + when.length() / 2;
        return is_on_its_way ? gap_cause::latency : gap_cause::other;
    }

    [[nodiscard]] gap judge(interval when, interval busy, std::int32_t next) const {
        gap out{.when = when, .next = next};
        auto const& o = p.ops[static_cast<std::size_t>(next)];
        auto const* const launch = o.call < 0 ? nullptr : &p.calls[static_cast<std::size_t>(o.call)];
        if (launch != nullptr) out.place = p.place_of(launch->correlation);
        if (launch != nullptr && out.place == 0) out.place = p.place_near(launch->thread, launch->start);
        auto const half = when.length() / 2;
        if (launch != nullptr) {
            auto const last = std::ranges::upper_bound(returns, std::pair{launch->start, INT32_MAX});
            if (last != returns.begin() && std::prev(last)->first + 20 * us >= when.from)
                out.after_wait = std::prev(last)->second;
        }
        if (overlap(when, firsts) > half) return out.cause = gap_cause::first_call, out;
        if (overlap(when, allocations) > half) return out.cause = gap_cause::allocation, out;
        if (out.after_wait >= 0) return out.cause = gap_cause::sync_bubble, out;
        if (launch != nullptr && launch->start >= when.from) {
            auto const share = cpu.share(launch->thread, {when.from, launch->start});
            return out.cause = share && *share < on_cpu ? gap_cause::host_wait : gap_cause::host_compute, out;
        }
        if (launch != nullptr) out.cause = cause_of_queued(when, busy, o, *launch);
        return out;
    }
};

// What a thread does after a call of its own, however many others do something meanwhile.
class calls_by_thread {
public:
    explicit calls_by_thread(std::vector<call> const& calls)
        : calls_{calls}, next_(calls.size(), static_cast<std::uint32_t>(calls.size())) {
        std::unordered_map<std::uint32_t, std::uint32_t> following;
        for (auto i = static_cast<std::uint32_t>(calls.size()); i-- > 0;) {
            auto const [at, is_last] = following.try_emplace(calls[i].thread, i);
            if (!is_last) next_[i] = std::exchange(at->second, i);
        }
    }

    [[nodiscard]] bool is_close_after(std::size_t at, time_ns within, auto const& wanted) const {
        auto const end = calls_[at].end;
        for (auto i = next_[at]; i < calls_.size() && calls_[i].start <= end + within; i = next_[i])
            if (calls_[i].start >= end && wanted(calls_[i].what)) return true;
        return false;
    }

    // An elapsed time is asked for before anything else is queued.
    [[nodiscard]] bool is_timed(std::size_t at) const {
        using enum call_class;
        auto const end = calls_[at].end;
        for (auto i = next_[at]; i < calls_.size() && calls_[i].start <= end + 10 * ms; i = next_[i]) {
            auto const what = calls_[i].what;
            if (calls_[i].start < end) continue;
            if (what == elapsed) return true;
            if (what == launch || what == copy || what == wait) return false;
        }
        return false;
    }

private:
    std::vector<call> const& calls_;
    std::vector<std::uint32_t> next_;  // of the same thread; as many as there are calls: none
};

struct download {
    time_ns asked = 0;
    std::int32_t op = -1;
    std::uint32_t stream = 0;
};

// Copies to the host that nobody has waited for yet, by when they were asked for. Those that were taken are passed over at once: each of many
// threads may look at all that came before.
class untaken_downloads {
public:
    void add(download const& d) {
        all_.push_back(d);
        next_.push_back(all_.size() - 1);
    }
    // In that order, each once.
    void take(time_ns from, time_ns to, auto const& visit) {
        auto at = static_cast<std::size_t>(std::ranges::lower_bound(all_, from, {}, &download::asked) - all_.begin());
        for (at = untaken(at); at < all_.size() && all_[at].asked <= to; at = untaken(at)) {
            next_[at] = at + 1;
            visit(all_[at]);
        }
    }

private:
    std::size_t untaken(std::size_t at) {
        auto end = at;
        while (end < all_.size() && next_[end] != end) end = next_[end];
        while (at < end) at = std::exchange(next_[at], end);
        return end;
    }
    std::vector<download> all_;
    std::vector<std::size_t> next_;  // itself, or from where on to look instead
};

}  // namespace

void find_gaps(process_model& p) {
    gap_finder const find{p};
    for (std::size_t i = 0; i + 1 < p.busy.size(); ++i) {
        interval const when{p.busy[i].to, p.busy[i + 1].from};
        if (when.length() < least_gap || when.from < p.steady.from || when.to > p.steady.to) continue;
        auto const next = std::ranges::lower_bound(p.ops, when.to, {}, &operation::start);
        if (next == p.ops.end()) continue;
        p.gaps.push_back(find.judge(when, p.busy[i], static_cast<std::int32_t>(next - p.ops.begin())));
    }
}

void find_consumers(process_model& p) {
    std::unordered_map<std::int32_t, time_ns> idle_after;  // by call
    // What is begun for the first time after a wait takes as long where nobody has waited.
    auto const idle_in = [&](gap const& g) {
        auto const since = g.after_wait < 0 ? g.when.from : p.calls[static_cast<std::size_t>(g.after_wait)].end;
        std::vector<interval> begun;
        auto f = std::ranges::lower_bound(p.firsts, since, {}, [](first_event const& e) { return e.when.from; });
        for (; f != p.firsts.end() && f->when.from < g.when.to; ++f) begun.push_back(f->when);
        return g.when.length() - overlap(g.when, joined(std::move(begun)));
    };
    for (auto const& g : p.gaps)
        if (g.after_wait >= 0) idle_after[g.after_wait] += idle_in(g);
    auto const idle_from = [&](time_ns end) {
        auto const at = std::ranges::lower_bound(p.gaps, end, {}, [](gap const& g) { return g.when.from; });
        return at == p.gaps.end() || at->when.from != end ? time_ns{0} : idle_in(*at);
    };
    auto const idle_of = [&](std::int32_t call) {
        auto const at = idle_after.find(call);
        return at == idle_after.end() ? time_ns{0} : at->second;
    };
    std::vector<download> downloads;
    std::vector<time_ns> launches;
    for (std::size_t i = 0; i < p.ops.size(); ++i) {
        auto const& o = p.ops[i];
        if (o.kind != op_kind::copy || o.way != direction::to_host || o.graph != 0) continue;
        downloads.push_back({o.call < 0 ? o.start : p.calls[static_cast<std::size_t>(o.call)].start,
                             static_cast<std::int32_t>(i), o.stream});
    }
    std::ranges::sort(downloads, {}, &download::asked);
    untaken_downloads of_any_stream;
    std::unordered_map<std::uint32_t, untaken_downloads> of_stream;
    for (auto const& d : downloads) {
        if (!p.ops[static_cast<std::size_t>(d.op)].async) continue;  // its call has waited
        of_any_stream.add(d);
        of_stream[d.stream].add(d);
    }
    calls_by_thread const by_thread{p.calls};
    for (auto const& c : p.calls)
        if (c.what == call_class::launch) launches.push_back(c.start);
    std::unordered_map<std::uint32_t, time_ns> last_wait;
    std::vector<bool> read(p.ops.size());
    for (std::size_t i = 0; i < p.calls.size(); ++i) {
        auto const& c = p.calls[i];
        if (c.waits == wait_class::none) continue;
        wait_use w{.call = static_cast<std::int32_t>(i)};
        w.idle = idle_of(w.call);
        auto& since = last_wait[c.thread];
        std::int32_t taken = -1;
        auto const its_first = p.reads.size();
        bool const is_of_one_stream = c.waits == wait_class::stream && c.stream != 0;
        (is_of_one_stream ? of_stream[c.stream] : of_any_stream).take(since, c.start, [&](download const& d) {
            if (read[static_cast<std::size_t>(d.op)]) return;  // by way of the other list
            read[static_cast<std::size_t>(d.op)] = true;
            taken = d.op;
            p.reads.push_back({.op = d.op, .wait = static_cast<std::int32_t>(p.waits.size())});
        });
        since = c.start;
        if (taken >= 0) {
            w.by = consumer::read;
            w.read = taken;
            p.reads.back().idle = w.idle;
            for (auto k = its_first; k < p.reads.size(); ++k) {
                auto& r = p.reads[k];
                r.place = p.place_of(c.correlation);
                if (r.place == 0) r.place = p.place_of(p.ops[static_cast<std::size_t>(r.op)].correlation);
            }
        } else if (by_thread.is_timed(i)) {
            w.by = consumer::timing;
        } else if (by_thread.is_close_after(i, 50 * us, [](call_class k) {
                       using enum call_class;
                       return k == release || k == release_host || k == graph || k == trim;
                   })) {
            w.by = consumer::housekeeping;
        }
        p.waits.push_back(w);
    }
    for (auto const& d : downloads) {
        if (read[static_cast<std::size_t>(d.op)]) continue;
        auto const& o = p.ops[static_cast<std::size_t>(d.op)];
        read_use r{.op = d.op, .place = p.place_of(o.correlation)};
        if (!o.async) {
            // One call may copy in several pieces, and the GPU was idle once.
            if (auto const at = idle_after.find(o.call); at != idle_after.end()) r.idle = std::exchange(at->second, 0);
        } else {
            auto const next = std::ranges::upper_bound(launches, d.asked);
            if (next == launches.end() || *next <= o.end) continue;
            r.sure = false;
            r.idle = idle_from(o.end);
        }
        p.reads.push_back(r);
    }
}

}  // namespace kiln::audit
