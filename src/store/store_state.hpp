// SPDX-License-Identifier: Apache-2.0
// The inside of the store: its tiers in their places, what is asked of one of them, and what is counted.
#pragma once

#include "store/bundle_search.hpp"
#include "store/publisher.hpp"
#include "store/store.hpp"
#include "store/tier_health.hpp"

#include <exception>
#include <new>

namespace kiln::store {

struct slot {
    slot(std::shared_ptr<tier> t, health_limits limits) : what{std::move(t)}, health{limits} {}
    std::shared_ptr<tier> what;
    tier_health health;
    std::unique_ptr<publisher> queue;  // of a tier that is written in the background
    std::uint64_t lost = 0;            // of what was put; with the reason of the first, under the mutex of all
    std::string why_lost;
};

using slots = std::vector<std::shared_ptr<slot>>;

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

// Of all reasons the one that explains most: something was there; it was not to be used; nobody could be asked.
[[nodiscard]] miss most_telling(std::vector<asked> const& misses) noexcept;

// A tier of the process keeps the entry with its origin; any other would make it one of its own, so it must allow no less.
inline bool may_hold(tier_traits const& t, origin const& from) noexcept {
    return t.where == location::process || allows(origin_of(t), from);
}

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
    void append(std::shared_ptr<slot> const& s);
    [[nodiscard]] bool is_passed_over(slot const& s) const;
    [[nodiscard]] std::vector<std::shared_ptr<slot>> far_tiers();
    [[nodiscard]] lookup ask(slot& s, address const& at, expectation const& expected);
    [[nodiscard]] std::vector<summary> list(slot& s, digest const& family, std::optional<digest> const& request);
    void copy_nearer(found const& what, flight leading);
    void note_rejection(slot const& s, address const& at, expectation const& expected, miss why);
    void note_fault(slot& s, error const& why);
    void publish(slot& s, entry_ptr const& what, errand why);
    void note_put(slot& s, errand why, result<put_outcome> const& done);
    void note_lost(slot* s, std::string_view reason, std::string_view why);
    enum class after { more, nothing };
    [[nodiscard]] kept_report settle_all(base::time_point deadline, while_written beyond, after that);
    void give_up_waiting();
    [[nodiscard]] bool settle(slot& s, base::time_point deadline, while_written beyond = {});
    [[nodiscard]] std::vector<unsent_report> unsent();
    static void travel(std::shared_ptr<state> const& self, std::shared_ptr<journey> const& j);
    static void arrived(std::shared_ptr<state> const& self, std::shared_ptr<journey> const& j,
                        std::shared_ptr<slot> const& s, answer a);
    void gather();
    void add_counts();
    void add_counts_sometimes(bool is_disk);
    bool send_counts();  // false: nothing is on its way
    void settle_counts(base::time_point deadline, while_written beyond);

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
    std::vector<refused_bundle> refused_bundles;
    slots extra;  // behind the bundles, once they are open
    bool bundles_open = false;
    bool told = false;
    statistics sum;      // since the start
    statistics pending;  // not yet added to the directory
    kept_report puts;
    base::time_point added_at{};
    bool is_adding_busy = false;  // another process had the lock, the last time
};

}  // namespace kiln::store
