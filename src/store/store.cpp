// SPDX-License-Identifier: Apache-2.0
#include "store/store_state.hpp"

#include "base/caught.hpp"

#include <map>
#include <set>

namespace kiln::store {

store::store(store_options options, event_log& log)
    : options_{std::move(options)}, state_{std::make_shared<state>(options_, log)} {
    state_->assemble();
}

store::~store() {
    auto const deadline = std::min(end_by_, base::clock::now() + options_.drain);
    base::if_memory_allows([&] { (void)state_->send_counts(); });
    auto const all = state_->open_tiers();
    for (auto const& s : *all) {
        if (s->queue) s->queue->stop(deadline);
    }
    state_->events->close();
}

void store::add_tier(std::shared_ptr<tier> more) {
    auto const fresh = state_->slot_for(std::move(more));  // before the lock: it has mutexes of its own
    // Asked apart from the others, so its place among them does not matter, and it costs nothing until it is asked.
    bool const is_apart = fresh->what->traits().answers_later;
    std::lock_guard const lock{state_->mutex};
    if (is_apart || state_->bundles_open) state_->append(fresh);
    else state_->extra.push_back(fresh);
}

std::shared_ptr<event_outlet> const& store::outlet() const noexcept { return state_->events; }

found store::peek(address const& at, expectation const& expected) {
    found out;
    auto const try_all = [&](slots const& some, std::size_t from) {
        for (std::size_t i = from; i < some.size() && !out.hit; ++i) {
            base::stopwatch const watch;
            auto const& tier = *some[i]->what;
            if (tier.traits().answers_later) continue;
            auto answer = state_->ask(*some[i], at, expected);
            if (!answer.hit) {
                out.misses.push_back({.tier = tier.name(), .why = answer.why});
                continue;
            }
            out.hit = std::move(answer.hit);
            out.tier = tier.name();
            out.where = tier.traits().where;
            out.by = some[i];
            out.ns = watch.ns();
        }
    };
    auto const first = state_->open_tiers();
    try_all(*first, 0);
    if (!out.hit) {
        auto const all = state_->tiers();
        try_all(*all, first->size());
    }
    if (!out.hit) out.why = most_telling(out.misses);
    return out;
}

found store::peek(listed const& candidate, expectation const& expected) {
    base::stopwatch const watch;
    auto const& tier = *candidate.by->what;
    auto answer = state_->ask(*candidate.by, candidate.what.about.at, expected);
    found out{.hit = std::move(answer.hit),
              .tier = tier.name(),
              .where = tier.traits().where,
              .why = answer.why,
              .misses = {},
              .by = candidate.by,
              .ns = watch.ns()};
    if (!out.hit) out.misses.push_back({.tier = tier.name(), .why = answer.why});
    return out;
}

void store::used(found const& what, flight leading) {
    KILN_ASSERT(what.hit != nullptr && what.by != nullptr);
    auto const& about = what.hit->about;
    state_->tally([&](statistics& counts) {
        counts.requests += 1;
        counts.hits[std::string{what.tier}] += 1;
    });
    state_->events->emit({.kind = event_kind::found,
                          .unit = about.name,
                          .target = about.target,
                          .reason = what.tier,
                          .key = about.at.key.prefix(),
                          .duration_ns = what.ns,
                          .value = static_cast<std::int64_t>(what.hit->payload.size())});
    base::if_memory_allows([&] { what.by->what->used(about.at); });
    state_->copy_nearer(what, std::move(leading));
}

found store::find(address const& at, expectation const& expected) {
    auto out = peek(at, expected);
    for (auto const& s : out.hit ? slots{} : state_->far_tiers()) {
        listed wherever{.what = {}, .tier = s->what->name(), .by = s};
        wherever.what.about.at = at;
        auto far = peek(wherever, expected);
        if (far.hit) {
            far.misses = std::move(out.misses);
            out = std::move(far);
            break;
        }
        out.misses.insert(out.misses.end(), far.misses.begin(), far.misses.end());
        out.why = most_telling(out.misses);
    }
    if (out.hit) {
        used(out);
    } else {
        state_->events->emit({.kind = event_kind::missed,
                              .target = expected.target,
                              .reason = name_of(out.why),
                              .key = at.key.prefix()});
    }
    return out;
}

bool store::has_far() const { return !state_->far_tiers().empty(); }

bool store::is_one_held_up(urgency how) const {
    return std::ranges::any_of(state_->far_tiers(), [&](auto const& s) { return s->what->is_held_up(how); });
}

// The last of them that can be written is asked last, whatever the order, because the claim is asked for with it.
void store::ask(question const& what, std::function<void(far_answer)> then) {
    auto j = std::make_shared<journey>();
    j->what = what;
    j->then = std::move(then);
    j->stops = state_->far_tiers();
    j->claims_at = j->stops.size();
    for (std::size_t i = 0; i < j->stops.size(); ++i) {
        if (j->stops[i]->what->traits().writable) j->claims_at = i;
    }
    if (j->claims_at + 1 < j->stops.size()) {
        j->stops.push_back(j->stops[j->claims_at]);
        j->claims_at = j->stops.size() - 1;
    }
    // Who may write nowhere still waits for those who can.
    if (j->claims_at == j->stops.size() && !j->stops.empty()) j->claims_at = j->stops.size() - 1;
    state::travel(state_, j);
}

void store::candidates(digest const& family, std::optional<digest> const& request,
                       std::function<visit(listed const&)> const& each) {
    std::map<std::pair<digest, digest>, origin> shown;
    auto const is_new = [&](summary const& what) {
        auto const [at, fresh] = shown.emplace(std::pair{what.about.at.request, what.about.at.key}, what.from);
        if (fresh) return true;
        if (allows(at->second, what.from)) return false;
        at->second = what.from;
        return true;
    };
    auto const show = [&](std::shared_ptr<slot> const& s) {
        if (s->what->traits().answers_later) return visit::go_on;
        for (auto& what : state_->list(*s, family, request)) {
            if (!is_new(what)) continue;
            if (each({.what = std::move(what), .tier = s->what->name(), .by = s}) == visit::stop) return visit::stop;
        }
        return visit::go_on;
    };
    auto const first = state_->open_tiers();
    for (auto const& s : *first) {
        if (show(s) == visit::stop) return;
    }
    auto const all = state_->tiers();
    for (auto i = first->size(); i < all->size(); ++i) {
        if (show((*all)[i]) == visit::stop) return;
    }
}

std::vector<listed> store::list(digest const& family, std::optional<digest> const& request) {
    std::vector<listed> out;
    std::set<std::pair<digest, digest>> seen;
    candidates(family, request, [&](listed const& one) {
        if (seen.emplace(one.what.about.at.request, one.what.about.at.key).second) out.push_back(one);
        return visit::go_on;
    });
    return out;
}

void store::put(entry_ptr what, put_how how) {
    KILN_ASSERT(what != nullptr);
    bool somewhere = false;
    auto const all = state_->open_tiers();
    for (auto const& s : *all) {
        auto const traits = s->what->traits();
        if (!traits.writable || !may_hold(traits, {.headers_sealed = what->from.headers_sealed, .any_compiler = false}))
            continue;
        bool const far = traits.where == location::fleet;
        if (far && how.how_far == sharing::this_machine) continue;
        if (!s->queue) {
            (void)guarded([&] { return s->what->put(what); });
            continue;
        }
        somewhere = true;
        // Those who wait for the flight look on this machine.
        auto lead = traits.where == location::machine ? std::exchange(how.leading, {}) : flight{};
        if (s->queue->enqueue(what, errand::keep, std::move(lead), far ? how.under : nullptr)) continue;
        state_->tally([](statistics& counts) {
            counts.dropped += 1;
            counts.errors["queue-full"] += 1;
        });
        state_->note_lost(s.get(), "queue-full", "too much was waiting to be written");
    }
    if (somewhere) return;
    state_->note_lost(nullptr, "no-cache",
                      !options_.no_disk_reason.empty() ? options_.no_disk_reason
                      : options_.disk                  ? "the cache is only read (KILN_READONLY)"
                                                       : "there is no cache on disk (KILN_DISABLE)");
}

void store::reject(address const& at) {
    auto const all = state_->tiers();
    // What is queued but not yet written is known by the copy in memory.
    for (auto const& s : *all) {
        if (s->what->traits().where != location::process) continue;
        if (auto const here = guarded([&] { return s->what->find(at, {}); }); here && here->hit)
            state_->refused.add(at.key, base::sha256_of(here->hit->payload));
    }
    for (auto const& s : *all) s->what->reject(at);
    state_->tally([](statistics& counts) { counts.rejected[std::string{name_of(miss::refused)}] += 1; });
    state_->events->emit({.kind = event_kind::rejected, .reason = name_of(miss::refused), .key = at.key.prefix()});
}

flight store::try_lead(digest const& request, base::time_point deadline) {
    if (!state_->disk || !state_->disk->traits().writable) return flight{flight_outcome::unsupported};
    return state_->disk->try_lead(request, deadline);
}

kept_report store::flush(base::time_point deadline, while_written beyond) {
    return state_->settle_all(deadline, beyond, state::after::more);
}

kept_report store::finish(base::time_point deadline, while_written beyond) {
    end_by_ = deadline;
    return state_->settle_all(deadline, beyond, state::after::nothing);
}

void store::count(statistics const& more) {
    state_->tally([&](statistics& counts) { counts.add(more); });
}

statistics store::counts() const {
    state_->gather();
    std::lock_guard const lock{state_->mutex};
    return state_->sum;
}

std::optional<directory_report> store::directory() {
    if (!state_->disk) return std::nullopt;
    return state_->disk->report();
}

std::optional<directory_report> store::probe_directory() {
    if (!state_->disk) return std::nullopt;
    return state_->disk->probe();
}

std::vector<directory_report> store::probe_read_only() const {
    std::vector<directory_report> out;
    for (auto const& root : options_.read_only_roots) out.push_back(try_directory(root, access::read_only));
    return out;
}

std::vector<std::shared_ptr<bundle_tier>> store::bundles() {
    (void)state_->tiers();
    std::lock_guard const lock{state_->mutex};
    return state_->bundles;
}

std::vector<refused_bundle> store::refused_bundles() {
    (void)state_->tiers();
    std::lock_guard const lock{state_->mutex};
    return state_->refused_bundles;
}

std::unique_ptr<store> make_store(base::config const& config, event_log& log) {
    return std::make_unique<store>(options_from(config), log);
}

}  // namespace kiln::store
