// SPDX-License-Identifier: Apache-2.0
//
// One answer per identity (identity.hpp), however many ask: looks an order up, and on a miss sees that one thread of one
// process compiles it. The life of an order here:
//
//     look ──hit──► answer
//       └─miss─► allowed? ─► lead (of all processes)? ──busy──► look again a little later, while it is at work
//                                    └─yes─► look once more ─► ask further away ──hit──► answer
//                                                                   └─miss─► worker ─► answer + publish
//
// Tiers that answer later are asked by the leader only. Where they take longer than it is worth, a worker begins meanwhile, and
// whichever comes first is the answer; what no worker has begun by then is asked for once more.
//
// Steps run on whichever thread has the order in hand (the asker, the background thread, a thread of the pool); none
// of them blocks on a compiler or on another process. A child of fork() that goes on with its parent's coordinator has none of its
// orders: what was under way there is asked for anew.
#pragma once

#include "base/fork_guard.hpp"
#include "compile/worker_pool.hpp"
#include "engine/background_thread.hpp"
#include "engine/identity.hpp"
#include "engine/ledger.hpp"

#include <atomic>
#include <condition_variable>
#include <map>

namespace kiln::engine_detail {

enum class jit_policy { allow, warn, forbid };

struct coordinator_options {
    jit_policy jit = jit_policy::allow;
    std::string jit_doubt = {};  // why it is forbidden although nobody said so: a word that means nothing
    std::chrono::milliseconds flight_deadline{
        10'000};  // another process that shows no sign of work is waited for this long
    std::chrono::milliseconds failure_memory{250};  // what failed is answered from memory this long
    double least_shared_ms = 10;                    // what compiles faster is not worth another machine's question
    std::string producer;
};

// Everything needed to look for and to make one artifact.
struct order {
    engine_detail::subject subject;
    compile::job job;
    std::string licence;
    std::string unusable = {};  // where there is no compiler: what is wrong with those that are here
    // Without, there are images of it or nothing.
    [[nodiscard]] bool has_text() const noexcept {
        auto const* const c = std::get_if<compile::compile_job>(&job.task);
        return c == nullptr || c->unit.images_of.empty();
    }
    // Nothing is looked up, led or kept: what comes of these options no key can tell.
    [[nodiscard]] bool goes_around_the_cache() const noexcept {
        auto const* const c = std::get_if<compile::compile_job>(&job.task);
        return c != nullptr && !c->unit.uncached_options.empty();
    }
};

// The store entry of an artifact made for this order. `a.key` and `a.inputs` are filled in. The compiler that ran may be
// another build than the file promised: its own identity counts.
[[nodiscard]] std::shared_ptr<store::entry> entry_for(order const& from, kiln::artifact& a,
                                                      std::string const& producer);

// Whether a header that is edited, or can be read again, may make an end of this failure.
[[nodiscard]] bool may_be_mended(order const& what, error const& why);

// Its line in the ledger. What is linked belongs to a pack, which has one line for all it takes to make it.
[[nodiscard]] known_as line_of(order const& of);

class coordinator {
public:
    struct parts {
        store::store& kept;
        compile::worker_pool& pool;
        event_log& events;
        ledger& book;
    };
    coordinator(coordinator_options options, parts of);
    ~coordinator();

    struct flight;
    using flight_ptr = std::shared_ptr<flight>;

    struct asked {
        pending<obtained> answer;
        // It was under way before this ask: headers may have changed since the compiler read them.
        bool joined = false;
        flight_ptr behind;
    };
    // Returns at once; the answer comes through the pending. With priority::blocking the lookup is done on this thread.
    [[nodiscard]] asked ask(order what, priority how);
    // For a pending of somebody's own that is answered when this is: see awaited.hpp.
    class awaited;
    [[nodiscard]] std::shared_ptr<awaited> make_awaited() const;
    // Looks, never compiles, and joins no compile in progress. nullopt on a miss, which is told and counted nowhere.
    [[nodiscard]] std::optional<obtained> find(order const& what);
    // Never lowers; no effect on what nobody asked for or a process already has.
    void raise(base::digest const& identity, priority how);
    // Takes back one ask. The last one withdraws the order, if no process has taken it yet: errc::cancelled for it.
    void cancel(base::digest const& identity);

    // The driver would not load it: forget these bytes everywhere.
    void reject(store::address const& at);

    // The next ask for what failed tries again.
    void forget_failures();

    [[nodiscard]] engine_status status() const;
    // Something was asked for and found past ask(): by find(), and by packs, which have addresses of their own.
    void count_found(provenance from);
    void count_blocked(std::int64_t ns, std::uint64_t callers = 1);
    // By this process: a child of fork() may go on with its parent's, or leave it alone.
    [[nodiscard]] bool is_used() const noexcept { return hands_.peek() != nullptr; }
    // As background_thread::stop().
    void stop(std::optional<base::time_point> deadline = {}) noexcept;
    // After the pool was stopped: everything still unanswered ends with errc::cancelled.
    void abandon() noexcept;

    // A caller was blocked on it: counted, and told as an event.
    struct blocked_caller {
        std::int64_t ns = 0;
        bool is_answered = false;
        bool is_first = true;  // else he, or another with him, was counted before
        std::string_view who = {};
        std::optional<base::digest> key = {};
    };
    void tell_wait(order const& what, blocked_caller const& how);

private:
    void begin(flight_ptr const& f, priority how);
    void advance(flight_ptr const& f);
    template <class Body>
    void guarded(flight_ptr const& f, Body body) noexcept;
    void step(flight_ptr const& f) noexcept;
    [[nodiscard]] bool answer_from_store(flight_ptr const& f);
    [[nodiscard]] bool is_allowed(flight_ptr const& f, found_artifact const& missed);
    void look_further(flight_ptr const& f);
    // Somebody waits by now for what was asked for afar when nobody did.
    void hurry(flight_ptr const& f);
    void hurry_later(flight_ptr const& f);
    // Who answers keeps the time that others wait for him, unless he is held up himself.
    void watch_who_answers(flight_ptr const& f, store::urgency how);
    void look_after_them();
    struct way_back;
    [[nodiscard]] static bool hand_over(way_back& back, flight_ptr const& f, store::far_answer what);
    void heard_of(flight_ptr const& f, store::far_answer const& what);
    static void keep_lead(flight& f, store::flight mine);
    [[nodiscard]] static store::flight take_lead(flight& f);
    static void keep_claim(flight& f, store::claim_ptr mine);
    [[nodiscard]] static store::claim_ptr take_claim(flight& f);
    [[nodiscard]] bool recall(flight_ptr const& f);
    [[nodiscard]] bool take_from_afar(flight_ptr const& f, store::far_answer const& what);
    [[nodiscard]] store::question question_for(flight& f) const;
    [[nodiscard]] bool is_shared(order const& what) const;
    void compile(flight_ptr const& f);
    void complete(flight_ptr const& f, result<compile::product> made);
    void finish(flight_ptr const& f, result<obtained> with) noexcept;
    void tell_failure(flight const& f, error const& why);
    void count_hit(provenance from);
    void raise(flight_ptr const& f, priority how);
    [[nodiscard]] flight_ptr in_flight(base::digest const& identity) const;
    [[nodiscard]] bool failed_long_ago(flight& f) const;
    void forget_what_was_mended(base::digest const& identity);
    [[nodiscard]] static bool is_withdrawn(flight& f);
    [[nodiscard]] static bool is_waited_for(flight& f);
    template <class Fill>
    void count(Fill fill);

    coordinator_options options_;
    store::store& store_;
    compile::worker_pool& pool_;
    event_log& events_;
    ledger& book_;
    std::atomic<std::int64_t> typical_compile_ns_{0};  // of the last ones here; 0: none yet
    struct counts {
        std::atomic<std::uint64_t> requests{0}, memory{0}, disk{0}, bundle{0}, fleet{0}, compiled{0}, failed{0},
            blocked{0}, headers_made{0}, headers_reused{0};
        std::atomic<std::int64_t> blocked_ns{0};
    } counts_;
    // The way back for answers that come from threads of tiers, and for the program's own that were blocked: both may outlive this.
    struct way_back {
        mutable std::mutex mutex;
        coordinator* to = nullptr;
        std::condition_variable left;
        int inside = 0;
        // Nothing, where it is gone. Without the lock: what is done there may come back. stop() waits for it.
        template <class Body>
        void with_coordinator(Body body);
    };
    struct in_hand {
        explicit in_hand(coordinator& of) { back->to = &of; }
        std::mutex mutex;
        std::map<base::digest, flight_ptr> flights;  // by identity: in progress, and failures for a moment
        struct asked_afar {
            std::weak_ptr<flight> what;
            store::urgency how;
        };
        std::vector<asked_afar> afar;  // some of it answered
        bool looks_after_them = false;
        std::shared_ptr<way_back> const back = std::make_shared<way_back>();
        background_thread background;  // last: its tasks use everything above
    };
    mutable base::per_process<in_hand> hands_;  // last: its tasks use everything above
    [[nodiscard]] in_hand& hand() const { return hands_.get(); }
    [[nodiscard]] background_thread& background() const { return hand().background; }
    [[nodiscard]] bool is_stopped() const {
        auto const& back = *hand().back;
        std::lock_guard const lock{back.mutex};
        return back.to == nullptr;
    }
};

}  // namespace kiln::engine_detail
