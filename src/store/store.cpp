// SPDX-License-Identifier: Apache-2.0
#include "store/store.hpp"

#include "store/bundle_search.hpp"
#include "store/errno_names.hpp"
#include "store/publisher.hpp"
#include "store/tier_health.hpp"

#include <cerrno>
#include <new>
#include <set>
#include <tuple>

namespace kiln::store {

namespace {

struct slot {
    slot(std::shared_ptr<tier> t, health_limits limits) : what{std::move(t)}, health{limits} {}
    std::shared_ptr<tier> what;
    tier_health health;
};
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

bool says_nothing_of_tier(int number) noexcept { return number == EMFILE || number == ENFILE || number == ENOMEM; }

}  // namespace

// Shared with the publisher's thread, which may outlive the store by one system call that does not return.
struct store::state : std::enable_shared_from_this<store::state> {
    state(store_options const& o, event_log& log) : options{o}, events{std::make_shared<event_outlet>(&log)} {}

    [[nodiscard]] std::shared_ptr<slots const> tiers();
    void assemble();
    void append(std::shared_ptr<tier> t);
    [[nodiscard]] result<lookup> ask(slot& s, address const& at, expectation const& expected);
    void note_hit(slot const& s, entry const& hit, std::int64_t ns);
    void note_rejection(slot const& s, address const& at, expectation const& expected, miss why);
    void note_fault(slot& s, error const& why);
    void publish(entry_ptr const& what);
    void gather();
    [[nodiscard]] bool add_counts();
    void add_counts_sometimes();

    store_options const options;
    std::shared_ptr<event_outlet> const events;
    std::shared_ptr<memory_tier> memory;
    std::shared_ptr<disk_tier> disk;
    std::unique_ptr<publisher> background;
    refusals refused;

    forkable_mutex mutex;  // the members below
    std::shared_ptr<slots const> current;
    std::vector<std::shared_ptr<bundle_tier>> bundles;
    std::vector<std::shared_ptr<tier>> extra;
    bool bundles_open = false;
    bool told = false;
    statistics sum;      // since the start
    statistics pending;  // not yet added to the directory
    base::time_point added_at{};
};

void store::state::assemble() {
    auto made = std::make_shared<slots>();
    auto const limits =
        health_limits{.faults_to_rest = options.faults_to_rest, .rest = options.tier_rest, .slow = options.slow};
    auto const add = [&](std::shared_ptr<tier> t) { made->push_back(std::make_shared<slot>(std::move(t), limits)); };
    memory = std::make_shared<memory_tier>(options.memory);
    add(memory);
    if (options.disk) {
        auto how = *options.disk;
        if (options.mode == reuse::recache) how.rule = put_rule::replace;
        disk = std::make_shared<disk_tier>(std::move(how), events);
        add(disk);
    }
    for (auto const& root : options.read_only_roots) {
        add(std::make_shared<disk_tier>(disk_options{.root = root, .mode = access::read_only}, events));
    }
    current = std::move(made);
}

void store::state::append(std::shared_ptr<tier> t) {
    auto more = std::make_shared<slots>(*current);
    auto const limits =
        health_limits{.faults_to_rest = options.faults_to_rest, .rest = options.tier_rest, .slow = options.slow};
    more->push_back(std::make_shared<slot>(std::move(t), limits));
    current = std::move(more);
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
    for (auto const& reason : opened.rejected) sum.rejected[reason] += 1, pending.rejected[reason] += 1;
    bundles = std::move(opened.bundles);
    for (auto const& b : bundles) append(b);
    for (auto const& t : extra) append(t);
    return current;
}

result<lookup> store::state::ask(slot& s, address const& at, expectation const& expected) {
    if (options.mode == reuse::recache && s.what->can().persistent) return lookup{.hit = {}, .why = miss::recache};
    if (s.health.resting()) return lookup{.hit = {}, .why = miss::disabled};
    base::stopwatch const watch;
    auto answer = s.what->find(at, expected);
    if (!answer) {
        note_fault(s, answer.error());
        return lookup{.hit = {}, .why = miss::disabled};
    }
    if (s.health.answered(std::chrono::nanoseconds{watch.ns()})) {
        {
            std::lock_guard const lock{mutex};
            sum.errors["slow"] += 1, pending.errors["slow"] += 1;
        }
        events->emit({.kind = event_kind::fault,
                      .reason = s.what->name(),
                      .detail = fmt::format("slow: {:.0f} ms for one lookup; not asked for a while", watch.ms()),
                      .duration_ns = watch.ns()});
    }
    if (answer->hit) note_hit(s, *answer->hit, watch.ns());
    else if (is_rejection(answer->why)) note_rejection(s, at, expected, answer->why);
    return answer;
}

void store::state::note_hit(slot const& s, entry const& hit, std::int64_t ns) {
    {
        std::lock_guard const lock{mutex};
        auto const name = s.what->name();
        for (auto* counts : {&sum, &pending}) counts->hits[std::string{name}] += 1;
    }
    events->emit({.kind = event_kind::found,
                  .unit = hit.about.name,
                  .target = hit.about.target,
                  .reason = s.what->name(),
                  .key = hit.about.at.key.prefix(),
                  .duration_ns = ns,
                  .value = static_cast<std::int64_t>(hit.payload.size())});
}

void store::state::note_rejection(slot const& s, address const& at, expectation const& expected, miss why) {
    {
        std::lock_guard const lock{mutex};
        for (auto* counts : {&sum, &pending}) counts->rejected[std::string{name_of(why)}] += 1;
    }
    events->emit({.kind = event_kind::rejected,
                  .target = expected.target,
                  .reason = name_of(why),
                  .detail = s.what->name(),
                  .key = at.key.prefix()});
}

void store::state::note_fault(slot& s, error const& why) {
    if (!says_nothing_of_tier(why.status())) s.health.faulted();
    auto const reason = why.status() != 0 ? errno_name(why.status()) : std::string{name_of(why.code())};
    {
        std::lock_guard const lock{mutex};
        for (auto* counts : {&sum, &pending}) counts->errors[reason] += 1;
    }
    events->emit({.kind = event_kind::fault, .reason = s.what->name(), .detail = why.message()});
}

void store::state::publish(entry_ptr const& what) {
    auto const count_error = [&](std::string_view reason) {
        std::lock_guard const lock{mutex};
        for (auto* counts : {&sum, &pending}) counts->errors[std::string{reason}] += 1;
    };
    // On a thread of our own nobody else could catch: packing a large entry may find no memory.
    try {
        if (refused.any() && refused.has(what->about.at.key, base::sha256_of(what->payload))) return;
        auto const done = disk->put(what);
        // What the system refused is counted by the tier itself.
        if (!done && done.error().code() != errc::io) count_error(name_of(done.error().code()));
    } catch (std::bad_alloc const&) {
        count_error(name_of(errc::out_of_memory));
    }
}

void store::state::gather() {
    if (!disk) return;
    auto const more = disk->take_counts();
    std::lock_guard const lock{mutex};
    sum.add(more);
    pending.add(more);
}

bool store::state::add_counts() {
    gather();
    statistics some;
    {
        std::lock_guard const lock{mutex};
        some = std::exchange(pending, {});
        added_at = base::clock::now();
    }
    if (some.empty()) return true;
    if (disk && disk->add_to_directory(some)) return true;
    std::lock_guard const lock{mutex};
    pending.add(some);
    return false;
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
    // Weak: an abandoned thread must not keep itself alive; it holds the state only while it works.
    std::weak_ptr<state> const weak = state_;
    state_->background =
        std::make_unique<publisher>(publisher_limits{.entries = options_.queue_entries, .bytes = options_.queue_bytes},
                                    publisher::tasks{.publish =
                                                         [weak](entry_ptr const& e) {
                                                             if (auto const s = weak.lock()) s->publish(e);
                                                         },
                                                     .idle =
                                                         [weak] {
                                                             if (auto const s = weak.lock()) s->add_counts_sometimes();
                                                         }});
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
    if (counts_left && state_->disk && state_->disk->can().writable) state_->background->poke();
    state_->background->stop(deadline);
    state_->events->close();
}

void store::add_tier(std::shared_ptr<tier> more) {
    std::lock_guard const lock{state_->mutex};
    if (state_->bundles_open) state_->append(more);
    state_->extra.push_back(std::move(more));
}

found store::find(address const& at, expectation const& expected) {
    found out;
    auto const try_all = [&](slots const& some, std::size_t from) {
        for (std::size_t i = from; i < some.size() && !out.hit; ++i) {
            auto const answer = state_->ask(*some[i], at, expected);
            if (answer->hit) {
                out.hit = answer->hit;
                out.tier = some[i]->what->name();
            } else {
                out.misses.push_back({.tier = some[i]->what->name(), .why = answer->why});
            }
        }
    };
    std::shared_ptr<slots const> first;
    {
        std::lock_guard const lock{state_->mutex};
        first = state_->current;
    }
    try_all(*first, 0);
    if (!out.hit) {
        auto const all = state_->tiers();
        try_all(*all, first->size());
    }
    if (out.hit && out.tier != "memory") (void)state_->memory->put(out.hit);
    if (!out.hit) {
        out.why = most_telling(out.misses);
        state_->events->emit({.kind = event_kind::missed,
                              .target = expected.target,
                              .reason = name_of(out.why),
                              .key = at.key.prefix()});
    }
    return out;
}

std::vector<listed> store::list(digest const& family, std::optional<digest> const& request) {
    std::vector<listed> out;
    std::set<std::pair<digest, digest>> seen;
    auto const all = state_->tiers();
    for (auto const& s : *all) {
        if (options_.mode == reuse::recache && s->what->can().persistent) continue;
        if (s->health.resting()) continue;
        auto some = s->what->list(family, request);
        if (!some) {
            state_->note_fault(*s, some.error());
            continue;
        }
        for (auto& what : *some) {
            if (!seen.emplace(what.about.at.request, what.about.at.key).second) continue;
            out.push_back({.what = std::move(what), .tier = s->what->name()});
        }
    }
    return out;
}

void store::put(entry_ptr what, flight leading) {
    KILN_ASSERT(what != nullptr);
    (void)state_->memory->put(what);
    if (!state_->disk || !state_->disk->can().writable) return;
    if (state_->background->enqueue(std::move(what), std::move(leading))) return;
    std::lock_guard const lock{state_->mutex};
    for (auto* counts : {&state_->sum, &state_->pending}) {
        counts->dropped += 1;
        counts->errors["queue-full"] += 1;
    }
}

void store::reject(address const& at) {
    // What is queued but not yet on disk is known by the copy in memory.
    if (auto const here = state_->memory->find(at, {}); here && here->hit) {
        state_->refused.add(at.key, base::sha256_of(here->hit->payload));
    }
    auto const all = state_->tiers();
    for (auto const& s : *all) s->what->reject(at);
    {
        std::lock_guard const lock{state_->mutex};
        for (auto* counts : {&state_->sum, &state_->pending})
            counts->rejected[std::string{name_of(miss::refused)}] += 1;
    }
    state_->events->emit({.kind = event_kind::rejected, .reason = name_of(miss::refused), .key = at.key.prefix()});
}

flight store::try_lead(digest const& request, base::time_point deadline) {
    if (!state_->disk || !state_->disk->can().writable) return flight{flight_outcome::unsupported};
    return state_->disk->try_lead(request, deadline);
}

bool store::flush(base::time_point deadline) {
    if (!state_->background->wait_idle(deadline)) return false;
    if (!state_->disk || !state_->disk->can().writable) return true;
    while (!state_->add_counts()) {
        // Nowhere to add them is no reason to wait: only a busy lock is.
        if (base::clock::now() >= deadline) return false;
        if (state_->disk->report().state != directory_state::writable || state_->disk->resting()) return true;
    }
    return true;
}

void store::count(statistics const& more) {
    std::lock_guard const lock{state_->mutex};
    state_->sum.add(more);
    state_->pending.add(more);
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

std::vector<std::shared_ptr<bundle_tier>> store::bundles() {
    (void)state_->tiers();
    std::lock_guard const lock{state_->mutex};
    return state_->bundles;
}

std::unique_ptr<store> make_store(base::config const& config, event_log& log) {
    return std::make_unique<store>(options_from(config), log);
}

}  // namespace kiln::store
