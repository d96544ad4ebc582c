// SPDX-License-Identifier: Apache-2.0
#include "engine/ledger.hpp"

#include <algorithm>

namespace kiln {

std::string_view name_of(work_state state) noexcept {
    switch (state) {
        case work_state::queued: return "queued";
        case work_state::compiling: return "compiling";
        case work_state::loading: return "loading";
        case work_state::ready: return "ready";
        case work_state::failed: return "failed";
        case work_state::cancelled: return "cancelled";
        case work_state::deferred: return "deferred";
    }
    return "unknown";
}

std::string_view name_of(priority how) noexcept {
    switch (how) {
        case priority::predicted: return "predicted";
        case priority::declared: return "declared";
        case priority::planned: return "planned";
        case priority::blocking: return "blocking";
    }
    return "unknown";
}

unit_status const* warm_status::find(std::string_view name) const noexcept {
    auto const at = std::ranges::find(units, name, &unit_status::name);
    return at == units.end() ? nullptr : &*at;
}

namespace engine_detail {

namespace {

constexpr double ms(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }
constexpr bool is_done(work_state s) {
    return s == work_state::ready || s == work_state::failed || s == work_state::cancelled || s == work_state::deferred;
}

void add_consumer(std::string& all, std::string_view more) {
    if (more.empty() || all == more || all.starts_with(std::string{more} + ", ") ||
        all.find(", " + std::string{more}) != all.npos)
        return;
    if (!all.empty()) all += ", ";
    all += more;
}

}  // namespace

ledger::line& ledger::at(std::string_view name, std::string_view target, moment when) {
    auto const [found, fresh] = lines_.try_emplace({std::string{name}, std::string{target}});
    auto& l = found->second;
    if (fresh) {
        l.what.name = name;
        l.what.target = target;
        l.order = lines_.size();
        l.submitted_ns = l.since_ns = when.ns;
        if (first_ns_ == 0 || when.ns < first_ns_) first_ns_ = when.ns;
    }
    return l;
}

void ledger::enter(line& l, work_state state, moment when) {
    if (l.what.state != state) l.since_ns = when.ns;
    l.what.state = state;
    if (state == work_state::ready && l.what.ready_ms == 0) l.what.ready_ms = ms(when.ns - l.submitted_ns);
    if (is_done(state)) last_done_ns_ = std::max(last_done_ns_, when.ns);
}

void ledger::demanded(std::string_view name, std::string_view target, priority how, std::string_view consumer,
                      moment when) {
    std::lock_guard const lock{mutex_};
    auto& l = at(name, target, when);
    add_consumer(l.what.consumers, consumer);
    l.what.how = std::max(l.what.how, how);
}

void ledger::deferred(std::string_view name, std::string_view consumer, moment when) {
    std::lock_guard const lock{mutex_};
    auto& l = at(name, {}, when);
    add_consumer(l.what.consumers, consumer);
    enter(l, work_state::deferred, when);
}

void ledger::asked(std::string_view name, std::string_view target, priority how, moment when) {
    std::lock_guard const lock{mutex_};
    auto& l = at(name, target, when);
    l.what.how = std::max(l.what.how, how);
    if (l.what.state != work_state::failed && l.what.state != work_state::cancelled) return;
    l.what.error.clear();
    l.what.log.clear();
    enter(l, work_state::queued, when);
}

void ledger::raised(std::string_view name, std::string_view target, priority how) {
    std::lock_guard const lock{mutex_};
    auto const found = lines_.find({std::string{name}, std::string{target}});
    if (found != lines_.end()) found->second.what.how = std::max(found->second.what.how, how);
}

void ledger::missed(std::string_view name, std::string_view target, std::string_view reason, moment when) {
    std::lock_guard const lock{mutex_};
    at(name, target, when).what.miss = reason;
}

void ledger::compiling(std::string_view name, std::string_view target, moment when) {
    std::lock_guard const lock{mutex_};
    enter(at(name, target, when), work_state::compiling, when);
}

void ledger::obtained(std::string_view name, std::string_view target, outcome how, moment when) {
    std::lock_guard const lock{mutex_};
    auto& l = at(name, target, when);
    // What was compiled here and is now found in memory was still compiled here.
    if (!l.what.from || how.from != provenance::memory) l.what.from = how.from;
    if (how.compile_ms > 0) l.what.compile_ms = how.compile_ms;
    if (how.bytes > 0) l.what.bytes = how.bytes;
    if (l.what.state != work_state::loading) enter(l, work_state::ready, when);
}

void ledger::loading(std::string_view name, std::string_view target, moment when) {
    std::lock_guard const lock{mutex_};
    auto& l = at(name, target, when);
    l.what.ready_ms = 0;
    enter(l, work_state::loading, when);
}

void ledger::loaded(std::string_view name, std::string_view target, double load_ms, moment when) {
    std::lock_guard const lock{mutex_};
    auto& l = at(name, target, when);
    l.what.load_ms = load_ms;
    enter(l, work_state::ready, when);
}

void ledger::failed(std::string_view name, std::string_view target, error const& why, moment when) {
    std::lock_guard const lock{mutex_};
    auto& l = at(name, target, when);
    l.what.error = why.message();
    l.what.log = why.log();
    enter(l, why.code() == errc::cancelled ? work_state::cancelled : work_state::failed, when);
}

void ledger::wait_begins(std::string_view name, std::string_view target) {
    std::lock_guard const lock{mutex_};
    ++at(name, target, {}).what.waiters;
}

void ledger::wait_ends(std::string_view name, std::string_view target, std::int64_t ns) {
    std::lock_guard const lock{mutex_};
    auto& what = at(name, target, {}).what;
    --what.waiters;
    ++what.waits;
    what.blocked_ms += ms(ns);
}

void ledger::waited(std::string_view name, std::string_view target, std::int64_t ns) {
    wait_begins(name, target);
    wait_ends(name, target, ns);
}

std::string ledger::miss_of(std::string_view name, std::string_view target) const {
    std::lock_guard const lock{mutex_};
    auto const found = lines_.find({std::string{name}, std::string{target}});
    return found == lines_.end() ? std::string{} : found->second.what.miss;
}

unit_status ledger::shown(line const& l, std::int64_t start, std::int64_t now) {
    auto out = l.what;
    out.submitted_ms = ms(l.submitted_ns - start);
    out.since_ms = ms(std::max<std::int64_t>(0, now - l.since_ns));
    return out;
}

std::optional<unit_status> ledger::find(std::string_view name, std::string_view target, moment now) const {
    std::lock_guard const lock{mutex_};
    auto const found = lines_.find({std::string{name}, std::string{target}});
    if (found == lines_.end()) return std::nullopt;
    return shown(found->second, first_ns_, now.ns);
}

warm_status ledger::report(moment now) const {
    std::lock_guard const lock{mutex_};
    std::vector<line const*> sorted;
    for (auto const& [key, l] : lines_) sorted.push_back(&l);
    std::ranges::sort(sorted, {}, [](line const* l) { return l->order; });
    warm_status out;
    for (auto const* l : sorted) {
        auto const& u = out.units.emplace_back(shown(*l, first_ns_, now.ns));
        ++out.submitted;
        switch (u.state) {
            case work_state::queued: ++out.queued; break;
            case work_state::compiling: ++out.compiling; break;
            case work_state::loading: ++out.loading; break;
            case work_state::ready:
                ++out.ready;
                if (u.from == provenance::compiled) ++out.compiled;
                break;
            case work_state::failed: ++out.failed; break;
            case work_state::cancelled: ++out.cancelled; break;
            case work_state::deferred: ++out.deferred; break;
        }
        out.waits += u.waits;
        out.blocked_ms += u.blocked_ms;
    }
    out.pending = out.queued + out.compiling + out.loading;
    if (out.submitted > 0) out.wall_ms = ms((out.pending > 0 ? now.ns : last_done_ns_) - first_ns_);
    return out;
}

}  // namespace engine_detail

}  // namespace kiln
