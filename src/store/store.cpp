// SPDX-License-Identifier: Apache-2.0
#include "store/store.hpp"

#include "store/bundle_search.hpp"
#include "store/errno_names.hpp"
#include "store/publisher.hpp"
#include "store/tier_health.hpp"

#include <cerrno>
#include <exception>
#include <map>
#include <new>
#include <set>

namespace kiln::store {

struct slot {
    slot(std::shared_ptr<tier> t, health_limits limits) : what{std::move(t)}, health{limits} {}
    std::shared_ptr<tier> what;
    tier_health health;
    std::unique_ptr<publisher> queue;  // of a tier that is written in the background
};

namespace {

using slots = std::vector<std::shared_ptr<slot>>;

// Of all reasons the one that explains most: something was there; it was not to be used; nobody could be asked.
miss most_telling(std::vector<asked> const& misses) noexcept {
    bool recache = false, absent = misses.empty();
    for (auto const& m : misses) {
        if (is_rejection(m.why)) return m.why;
        recache = recache || m.why == miss::recache;
        absent = absent || m.why == miss::absent;
    }
    if (recache) return miss::recache;
    return absent ? miss::absent : miss::disabled;
}

bool says_nothing_of_tier(error const& why) noexcept {
    auto const number = why.status();
    return number == EMFILE || number == ENFILE || number == ENOMEM || why.code() == errc::out_of_memory;
}

// Whatever a tier does, it is a fault of that tier and never the end of the program.
template <class Ask>
auto guarded(Ask ask) -> decltype(ask()) {
    try {
        return ask();
    } catch (std::bad_alloc const&) {
        return fail(errc::out_of_memory, "no memory left in the middle of it");
    } catch (std::exception const& why) {
        return fail(errc::internal, "{}", why.what());
    }
}

bool reaches(fill how, location where) noexcept {
    switch (how) {
        case fill::nothing: return false;
        case fill::process: return where == location::process;
        case fill::machine: return where == location::process || where == location::machine;
    }
    return false;
}

// A tier of the process keeps the entry with its origin; any other would make it one of its own, so it must allow no less.
bool may_hold(tier_traits const& t, origin const& from) noexcept {
    return t.where == location::process || allows(origin_of(t), from);
}

}  // namespace

// One question on its way from tier to tier. Each is asked without a claim; who can be written last is asked for one.
struct journey {
    question what;
    std::function<void(far_answer)> then;
    slots stops;
    std::size_t claims_at = 0;  // index into stops; one past the end: nowhere
    std::size_t at = 0;
    bool told_late = false;
    miss why = miss::absent;
    std::vector<asked> misses;
    std::string said;
    base::stopwatch watch;
};

// Shared with the publishers' threads, which may outlive the store by one system call that does not return.
struct store::state : std::enable_shared_from_this<store::state> {
    state(store_options const& o, event_log& log) : options{o}, events{std::make_shared<event_outlet>(&log)} {}

    [[nodiscard]] std::shared_ptr<slots const> tiers();
    [[nodiscard]] std::shared_ptr<slots const> open_tiers();
    void assemble();
    [[nodiscard]] std::shared_ptr<slot> slot_for(std::shared_ptr<tier> t);
    void append(std::shared_ptr<tier> t);
    [[nodiscard]] bool is_passed_over(slot const& s) const;
    [[nodiscard]] std::vector<std::shared_ptr<slot>> far_tiers();
    [[nodiscard]] lookup ask(slot& s, address const& at, expectation const& expected);
    [[nodiscard]] std::vector<summary> list(slot& s, digest const& family, std::optional<digest> const& request);
    void copy_nearer(found const& what, flight leading);
    void note_rejection(slot const& s, address const& at, expectation const& expected, miss why);
    void note_fault(slot& s, error const& why);
    void publish(slot& s, entry_ptr const& what, errand why);
    void note_put(errand why, result<put_outcome> const& done);
    void note_lost(std::string_view reason, std::string_view why);
    static void travel(std::shared_ptr<state> const& self, std::shared_ptr<journey> const& j);
    static void arrived(std::shared_ptr<state> const& self, std::shared_ptr<journey> const& j,
                        std::shared_ptr<slot> const& s, answer a);
    void gather();
    [[nodiscard]] adding add_counts();
    void add_counts_sometimes();

    // Changes the counters since the start and those not yet added to the directory alike.
    template <class Change>
    void tally(Change change) {
        std::lock_guard const lock{mutex};
        change(sum);
        change(pending);
    }

    store_options const options;
    std::shared_ptr<event_outlet> const events;
    std::shared_ptr<disk_tier> disk;  // where counters and locks are
    std::shared_ptr<slot> disk_slot;
    refusals refused;

    base::forkable_mutex mutex;  // the members below
    std::shared_ptr<slots const> current;
    std::vector<std::shared_ptr<bundle_tier>> bundles;
    std::vector<std::shared_ptr<tier>> extra;
    bool bundles_open = false;
    bool told = false;
    statistics sum;      // since the start
    statistics pending;  // not yet added to the directory
    kept_report puts;
    base::time_point added_at{};
};

std::shared_ptr<slot> store::state::slot_for(std::shared_ptr<tier> t) {
    auto const limits =
        health_limits{.faults_to_rest = options.faults_to_rest, .rest = options.tier_rest, .slow = options.slow};
    auto out = std::make_shared<slot>(std::move(t), limits);
    auto const traits = out->what->traits();
    if (!traits.writable || !traits.persistent) return out;
    // Weak: an abandoned thread must not keep itself alive; it holds the state only while it works.
    out->queue = std::make_unique<publisher>(
        traits.where == location::fleet
            ? publisher_limits{.entries = 256, .bytes = std::uint64_t{64} << 20}
            : publisher_limits{.entries = options.queue_entries, .bytes = options.queue_bytes},
        publisher::tasks{.publish =
                             [self = weak_from_this(), to = std::weak_ptr{out}](entry_ptr const& e, errand why) {
                                 auto const s = self.lock();
                                 auto const tier = to.lock();
                                 if (s && tier) s->publish(*tier, e, why);
                             },
                         .idle =
                             [self = weak_from_this()] {
                                 if (auto const s = self.lock()) s->add_counts_sometimes();
                             }});
    return out;
}

void store::state::assemble() {
    auto made = std::make_shared<slots>();
    made->push_back(slot_for(std::make_shared<memory_tier>(options.memory)));
    if (options.disk) {
        auto how = *options.disk;
        if (options.mode == reuse::recache) how.rule = put_rule::replace;
        disk = std::make_shared<disk_tier>(std::move(how), events);
        disk_slot = slot_for(disk);
        made->push_back(disk_slot);
    }
    for (auto const& root : options.read_only_roots) {
        made->push_back(
            slot_for(std::make_shared<disk_tier>(disk_options{.root = root, .mode = access::read_only}, events)));
    }
    current = std::move(made);
}

void store::state::append(std::shared_ptr<tier> t) {
    auto more = std::make_shared<slots>(*current);
    more->push_back(slot_for(std::move(t)));
    current = std::move(more);
}

// As many as are known without opening a file.
std::shared_ptr<slots const> store::state::open_tiers() {
    std::lock_guard const lock{mutex};
    return current;
}

// Bundles are opened by the first lookup that gets past the disk. Threads that come together may each open them;
// the first set is kept.
std::shared_ptr<slots const> store::state::tiers() {
    bool tell = false;
    {
        std::lock_guard const lock{mutex};
        if (bundles_open) return current;
        tell = !std::exchange(told, true) && !options.disk && !options.no_disk_reason.empty();
    }
    if (tell) events->emit({.kind = event_kind::warned, .reason = "memory-only", .detail = options.no_disk_reason});
    auto opened = open_bundles(
        {.paths = options.bundles, .beside_program = options.bundle_beside_program, .trusted_key = options.trusted_key},
        *events);
    std::lock_guard const lock{mutex};
    if (bundles_open) return current;
    bundles_open = true;
    for (auto* const counts : {&sum, &pending}) {
        for (auto const& reason : opened.rejected) counts->rejected[reason] += 1;
    }
    bundles = std::move(opened.bundles);
    for (auto const& b : bundles) append(b);
    for (auto const& t : extra) append(t);
    return current;
}

bool store::state::is_passed_over(slot const& s) const {
    return options.mode == reuse::recache && s.what->traits().persistent;
}

std::vector<std::shared_ptr<slot>> store::state::far_tiers() {
    std::vector<std::shared_ptr<slot>> out;
    auto const all = open_tiers();
    for (auto const& s : *all) {
        if (s->what->traits().answers_later && !is_passed_over(*s)) out.push_back(s);
    }
    return out;
}

lookup store::state::ask(slot& s, address const& at, expectation const& expected) {
    if (is_passed_over(s)) return {.hit = {}, .why = miss::recache};
    if (s.health.resting()) return {.hit = {}, .why = miss::disabled};
    base::stopwatch const watch;
    auto answer = guarded([&] { return s.what->find(at, expected); });
    if (!answer) {
        note_fault(s, answer.error());
        return {.hit = {}, .why = miss::disabled};
    }
    if (s.health.answered(std::chrono::nanoseconds{watch.ns()})) {
        tally([](statistics& counts) { counts.errors["slow"] += 1; });
        events->emit({.kind = event_kind::fault,
                      .reason = s.what->name(),
                      .detail = fmt::format("slow: {:.0f} ms for one lookup; not asked for a while", watch.ms()),
                      .duration_ns = watch.ns()});
    }
    if (!answer->hit && is_rejection(answer->why)) note_rejection(s, at, expected, answer->why);
    return *std::move(answer);
}

std::vector<summary> store::state::list(slot& s, digest const& family, std::optional<digest> const& request) {
    if (is_passed_over(s) || s.health.resting()) return {};
    auto some = guarded([&] { return s.what->list(family, request); });
    if (some) return *std::move(some);
    note_fault(s, some.error());
    return {};
}

void store::state::copy_nearer(found const& what, flight leading) {
    auto const how = what.by->what->traits().on_hit;
    auto const all = open_tiers();
    for (auto const& s : *all) {
        if (s == what.by) return;
        auto const traits = s->what->traits();
        if (!traits.writable || !reaches(how, traits.where) || !may_hold(traits, what.hit->from)) continue;
        auto lead = traits.where == location::machine ? std::exchange(leading, {}) : flight{};
        if (s->queue) (void)s->queue->enqueue(what.hit, errand::fill, std::move(lead));
        else (void)guarded([&] { return s->what->put(what.hit); });
    }
}

void store::state::note_rejection(slot const& s, address const& at, expectation const& expected, miss why) {
    tally([&](statistics& counts) { counts.rejected[std::string{name_of(why)}] += 1; });
    events->emit({.kind = event_kind::rejected,
                  .target = expected.target,
                  .reason = name_of(why),
                  .detail = s.what->name(),
                  .key = at.key.prefix()});
}

void store::state::note_fault(slot& s, error const& why) {
    if (!says_nothing_of_tier(why)) s.health.faulted();
    auto const reason = why.status() != 0 ? errno_name(why.status()) : std::string{name_of(why.code())};
    tally([&](statistics& counts) { counts.errors[reason] += 1; });
    events->emit({.kind = event_kind::fault, .reason = s.what->name(), .detail = reason_first(why.message())});
}

void store::state::publish(slot& s, entry_ptr const& what, errand why) {
    if (refused.any() && refused.has(what->about.at.key, base::sha256_of(what->payload)))
        return note_put(why, put_outcome{.kept = false, .why = "refused"});
    // What the disk could not write it has counted itself.
    auto const done = guarded([&] { return s.what->put(what); });
    if (!done && (s.what != disk || done.error().code() != errc::io)) note_fault(s, done.error());
    note_put(why, done);
}

void store::state::note_put(errand why, result<put_outcome> const& done) {
    if (why == errand::fill) return;
    if (!done) {
        auto const& e = done.error();
        return note_lost(e.status() != 0 ? errno_name(e.status()) : std::string{name_of(e.code())}, e.message());
    }
    if (!done->kept) return note_lost(done->why, done->detail);
    std::lock_guard const lock{mutex};
    puts.kept += 1;
}

void store::state::note_lost(std::string_view reason, std::string_view why) {
    std::lock_guard const lock{mutex};
    puts.lost += 1;
    puts.reasons[std::string{reason}] += 1;
    if (puts.why.empty()) puts.why = why.empty() ? reason : why;
}

void store::state::gather() {
    auto const all = open_tiers();
    for (auto const& s : *all) {
        auto const more = s->what->take_counts();
        if (!more.empty()) tally([&](statistics& counts) { counts.add(more); });
    }
}

adding store::state::add_counts() {
    gather();
    statistics some;
    {
        std::lock_guard const lock{mutex};
        some = std::exchange(pending, {});
        added_at = base::clock::now();
    }
    if (some.empty()) return adding::done;
    auto const how = disk ? disk->add_to_directory(some) : adding::nowhere;
    if (how == adding::done) return how;
    std::lock_guard const lock{mutex};
    pending.add(some);
    return how;
}

void store::state::add_counts_sometimes() {
    {
        std::lock_guard const lock{mutex};
        if (base::clock::now() < added_at + std::chrono::seconds{1}) return;
    }
    (void)add_counts();
}

store::store(store_options options, event_log& log)
    : options_{std::move(options)}, state_{std::make_shared<state>(options_, log)} {
    state_->assemble();
}

store::~store() {
    auto const deadline = base::clock::now() + options_.drain;
    state_->gather();
    bool counts_left = false;
    {
        std::lock_guard const lock{state_->mutex};
        counts_left = !state_->pending.empty();
        state_->added_at = {};
    }
    // On the background thread, so that a file system that hangs does not make the program hang at its end.
    if (counts_left && state_->disk_slot && state_->disk_slot->queue) state_->disk_slot->queue->poke();
    auto const all = state_->open_tiers();
    for (auto const& s : *all) {
        if (s->queue) s->queue->stop(deadline);
    }
    state_->events->close();
}

void store::add_tier(std::shared_ptr<tier> more) {
    std::lock_guard const lock{state_->mutex};
    // Asked apart from the others, so its place among them does not matter, and it costs nothing until it is asked.
    if (more->traits().answers_later) return state_->append(std::move(more));
    if (state_->bundles_open) state_->append(more);
    state_->extra.push_back(std::move(more));
}

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
    what.by->what->used(about.at);
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

void store::state::travel(std::shared_ptr<state> const& self, std::shared_ptr<journey> const& j) {
    if (j->at >= j->stops.size()) {
        far_answer out{.said = j->said};
        out.what.why = most_telling(j->misses);
        out.what.misses = j->misses;
        return j->then(std::move(out));
    }
    auto const s = j->stops[j->at];
    auto one = j->what;
    if (j->at != j->claims_at) one.claims = claiming::no;
    // Weak: a tier that answers when the store is gone answers nobody.
    s->what->ask(one, [weak = std::weak_ptr{self}, j, s](answer a) {
        auto const alive = weak.lock();
        if (alive) arrived(alive, j, s, std::move(a));
    });
}

void store::state::arrived(std::shared_ptr<state> const& self, std::shared_ptr<journey> const& j,
                           std::shared_ptr<slot> const& s, answer a) {
    auto const traits = s->what->traits();
    far_answer out{.mine = std::move(a.mine), .late = a.late, .is_last = a.is_last};
    if (!a.is_last) {
        if (!std::exchange(j->told_late, true)) j->then(std::move(out));
        return;
    }
    if (a.hit) {
        out.what = {.hit = std::move(a.hit),
                    .tier = s->what->name(),
                    .where = traits.where,
                    .misses = {},
                    .by = s,
                    .ns = j->watch.ns()};
        out.next = j->what.nth + 1;
        return j->then(std::move(out));
    }
    if (is_rejection(a.why))
        self->note_rejection(*s, {j->what.family, j->what.request.value_or(digest{}), j->what.key.value_or(digest{})},
                             j->what.expected, a.why);
    j->misses.push_back({.tier = s->what->name(), .why = a.why});
    j->said +=
        fmt::format("{}{}{}{}", j->said.empty() ? "" : "; ", name_of(a.why), a.detail.empty() ? "" : ": ", a.detail);
    if (j->at == j->claims_at) {
        out.what.why = most_telling(j->misses);
        out.what.misses = j->misses;
        out.said = j->said;
        return j->then(std::move(out));
    }
    ++j->at;
    travel(self, j);
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
        state_->note_lost("queue-full", "too much was waiting to be written");
    }
    if (somewhere) return;
    state_->note_lost("no-cache", !options_.no_disk_reason.empty() ? options_.no_disk_reason
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

kept_report store::flush(base::time_point deadline) {
    auto const settle = [&] {
        auto const all = state_->open_tiers();
        for (auto const& s : *all) {
            if (s->queue && !s->queue->wait_idle(deadline)) return false;
        }
        if (!state_->disk || !state_->disk->traits().writable) return true;
        // Nowhere to add them is no reason to wait: only a busy lock is.
        while (state_->add_counts() == adding::busy) {
            if (base::clock::now() >= deadline) return false;
        }
        return true;
    };
    bool const settled = settle();
    std::lock_guard const lock{state_->mutex};
    auto out = state_->puts;
    out.settled = settled;
    return out;
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

std::unique_ptr<store> make_store(base::config const& config, event_log& log) {
    return std::make_unique<store>(options_from(config), log);
}

}  // namespace kiln::store
