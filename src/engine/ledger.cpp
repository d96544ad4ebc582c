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

// With the lock. Null where there is none yet.
ledger::line* ledger::look(known_as thing, std::string_view target) const {
    name_and_target const name{std::string{thing.name}, std::string{target}};
    if (auto const found = index_.find({thing.id, name}); found != index_.end()) return found->second;
    auto const same = by_name_.find(name);
    if (same == by_name_.end() || same->second.empty()) return nullptr;
    if (thing.id == base::digest{}) return same->second.front();
    auto const free = std::ranges::find(same->second, false, &line::has_identity);
    return free == same->second.end() ? nullptr : *free;
}

// Memory may end anywhere in here: a line is whole or not there, and has its identity once it is found by it.
ledger::line& ledger::at(known_as thing, std::string_view target, moment when) {
    auto* found = look(thing, target);
    name_and_target name{std::string{thing.name}, std::string{target}};
    if (found == nullptr) {
        std::list<line> fresh(1);
        found = &fresh.front();
        found->shown.name = thing.name;
        found->shown.target = target;
        found->submitted_ns = found->since_ns = when.ns;
        by_name_[name].push_back(found);
        lines_.splice(lines_.end(), fresh);
        if (first_ns_ == 0 || when.ns < first_ns_) first_ns_ = when.ns;
    }
    index_.emplace(index_key{thing.id, std::move(name)}, found);
    found->has_identity = found->has_identity || thing.id != base::digest{};
    return *found;
}

void ledger::enter(line& l, work_state state, moment when) {
    if (l.shown.state != state) l.since_ns = when.ns;
    l.shown.state = state;
    if (state == work_state::ready && l.shown.ready_ms == 0) l.shown.ready_ms = ms(when.ns - l.submitted_ns);
    if (is_done(state)) last_done_ns_ = std::max(last_done_ns_, when.ns);
}

void ledger::demanded(known_as thing, std::string_view target, priority how, std::string_view consumer, moment when) {
    std::lock_guard const lock{mutex_};
    auto& l = at(thing, target, when);
    add_consumer(l.shown.consumers, consumer);
    l.shown.how = std::max(l.shown.how, how);
}

void ledger::deferred(known_as thing, std::string_view consumer, moment when) {
    std::lock_guard const lock{mutex_};
    auto& l = at(thing, {}, when);
    add_consumer(l.shown.consumers, consumer);
    enter(l, work_state::deferred, when);
}

void ledger::asked(known_as thing, std::string_view target, priority how, moment when) {
    std::lock_guard const lock{mutex_};
    auto& l = at(thing, target, when);
    l.shown.how = std::max(l.shown.how, how);
    if (l.shown.state != work_state::failed && l.shown.state != work_state::cancelled) return;
    l.shown.error.clear();
    l.shown.log.clear();
    enter(l, work_state::queued, when);
}

void ledger::raised(known_as thing, std::string_view target, priority how) {
    std::lock_guard const lock{mutex_};
    if (auto* const l = look(thing, target)) l->shown.how = std::max(l->shown.how, how);
}

void ledger::missed(known_as thing, std::string_view target, std::string_view reason, moment when) {
    std::lock_guard const lock{mutex_};
    at(thing, target, when).shown.miss = reason;
}

void ledger::compiling(known_as thing, std::string_view target, moment when) {
    std::lock_guard const lock{mutex_};
    enter(at(thing, target, when), work_state::compiling, when);
}

void ledger::obtained(known_as thing, std::string_view target, outcome how, moment when) {
    std::lock_guard const lock{mutex_};
    auto& l = at(thing, target, when);
    // What was compiled here and is now found in memory was still compiled here.
    if (!l.shown.from || how.from != provenance::memory) l.shown.from = how.from;
    if (how.compile_ms > 0) l.shown.compile_ms = how.compile_ms;
    if (how.bytes > 0) l.shown.bytes = how.bytes;
    if (l.shown.state != work_state::loading) enter(l, work_state::ready, when);
}

void ledger::loading(known_as thing, std::string_view target, moment when) {
    std::lock_guard const lock{mutex_};
    auto& l = at(thing, target, when);
    l.shown.ready_ms = 0;
    enter(l, work_state::loading, when);
}

void ledger::loaded(known_as thing, std::string_view target, double load_ms, moment when) {
    std::lock_guard const lock{mutex_};
    auto& l = at(thing, target, when);
    l.shown.load_ms = load_ms;
    enter(l, work_state::ready, when);
}

void ledger::failed(known_as thing, std::string_view target, error const& why, moment when) {
    std::lock_guard const lock{mutex_};
    auto& l = at(thing, target, when);
    l.shown.error = why.message();
    l.shown.log = why.log();
    enter(l, why.code() == errc::cancelled ? work_state::cancelled : work_state::failed, when);
}

void ledger::wait_begins(known_as thing, std::string_view target) {
    std::lock_guard const lock{mutex_};
    ++at(thing, target, {}).shown.waiters;
}

void ledger::wait_ends(known_as thing, std::string_view target, std::int64_t ns) {
    std::lock_guard const lock{mutex_};
    auto& l = at(thing, target, {}).shown;
    --l.waiters;
    ++l.waits;
    l.blocked_ms += ms(ns);
}

void ledger::waited(known_as thing, std::string_view target, std::int64_t ns) {
    wait_begins(thing, target);
    wait_ends(thing, target, ns);
}

std::string ledger::miss_of(known_as thing, std::string_view target) const {
    std::lock_guard const lock{mutex_};
    auto const* const l = look(thing, target);
    return l == nullptr ? std::string{} : l->shown.miss;
}

unit_status ledger::snapshot(line const& l, std::int64_t start, std::int64_t now) {
    auto out = l.shown;
    out.submitted_ms = ms(l.submitted_ns - start);
    out.since_ms = ms(std::max<std::int64_t>(0, now - l.since_ns));
    return out;
}

std::optional<unit_status> ledger::find(known_as thing, std::string_view target, moment now) const {
    std::lock_guard const lock{mutex_};
    auto const* const l = look(thing, target);
    if (l == nullptr) return std::nullopt;
    return snapshot(*l, first_ns_, now.ns);
}

warm_status ledger::report(moment now) const {
    std::lock_guard const lock{mutex_};
    warm_status out;
    for (auto const& l : lines_) {
        auto const& u = out.units.emplace_back(snapshot(l, first_ns_, now.ns));
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
