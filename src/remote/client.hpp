// SPDX-License-Identifier: Apache-2.0
//
// The life of a question to one remote, on its reactor's thread:
//
//     look ──here──► every check ──► answer
//       └─absent─► lease ──ours──► look once more ─► answer: it is for you to make it
//                    └─another's─► look at all that is missing every now and then
//
// Questions that come together are one batch. Whoever waits is told `late` when his budget or his patience with a holder is over, and
// begins himself; the answer may still come, and the first of the two counts.
#pragma once

#include "remote/breaker.hpp"
#include "remote/budgets.hpp"
#include "remote/check_threads.hpp"
#include "remote/packet.hpp"
#include "remote/reactor.hpp"
#include "remote/settings.hpp"
#include "store/event_outlet.hpp"
#include "store/refusals.hpp"

#include <random>
#include <set>

namespace kiln::remote {

// What a client is made with; shared by all of one tier.
struct client_rules {
    remote_options options;
    trust believed;
    std::optional<signer> signs;
    bool replaces = false;  // KILN_RECACHE
};

// Counters from several threads.
class tally {
public:
    void add(std::string_view name, std::uint64_t more = 1) {
        std::lock_guard const lock{mutex_};
        counts_.fleet[std::string{name}] += more;
    }
    void error(std::string_view kind) {
        std::lock_guard const lock{mutex_};
        counts_.errors[fmt::format("fleet-{}", kind)] += 1;
    }
    void divergent() {
        std::lock_guard const lock{mutex_};
        counts_.divergent += 1;
    }
    [[nodiscard]] store::statistics take() {
        std::lock_guard const lock{mutex_};
        return std::exchange(counts_, {});
    }

private:
    base::forkable_mutex mutex_;
    store::statistics counts_;
};

struct client_parts {
    client_rules const& rules;
    reactor& loop;
    breaker& guard;
    tally& counts;
    store::refusals& refused;
    store::event_outlet& events;
    byte_server& bytes;
    lease_server* leases = nullptr;  // null: none
    check_threads& aside;
};

class client {
public:
    explicit client(client_parts of);
    ~client();
    client(client const&) = delete;
    client& operator=(client const&) = delete;

    void ask(store::question const& what, store::answered then);
    // Asks the server whether it is back.
    void try_again();

    struct parcel {
        store::label about;
        digest payload;
        std::shared_ptr<base::bytes const> packet;
        std::chrono::nanoseconds compile{0};
    };
    void put(parcel what, std::function<void(result<store::put_outcome>)> then);

    // Of a claim that was given out.
    void made(digest const& request, std::string const& token, std::chrono::nanoseconds took);
    void let_go(digest const& request, std::string const& token);
    void cannot_publish(digest const& request, std::string const& token, std::string_view why);
    // The same, whatever its token.
    void cannot_publish(digest const& request, std::string_view why);
    // Ends the leases that are held, so that others need not wait for them to expire.
    void end_all();

    [[nodiscard]] budgets const& waits() const noexcept { return budgets_; }
    [[nodiscard]] std::size_t claims() const noexcept { return claims_.size(); }
    // Set by the owner: a claim needs a way back that outlives this.
    std::function<store::claim_ptr(digest const& request, std::string const& token)> make_claim{};
    // And what is given must be known where it is refused later. False: it was refused before.
    std::function<bool(digest const& key, digest const& payload)> may_give{};

private:
    enum class stage { looking, taking, looking_again, waiting, done };
    enum class lease_seen { unknown, free, held };
    struct inquiry {
        store::question what;
        store::answered then;
        unsigned slot = 0;
        digest name;
        digest lease;
        base::time_point asked{};
        base::time_point sent{};
        std::optional<base::time_point> held_since{};  // another has the lease
        base::clock::duration held_before{};           // others had it
        base::time_point waited_from{};                // for a lease
        base::time_point taken_from{};                 // the last time it was tried for
        miss why = miss::absent;
        stage at = stage::looking;
        lease_seen seen = lease_seen::unknown;
        unsigned lost = 0;  // leases that were tried for, and are not ours
        std::optional<base::time_point> told_late{};
        bool is_counted_late = false;
        bool among_many = false;  // its checks are not worth holding up the others
        reactor::timer timer = 0;
        base::time_point watched_from{};  // watch_silence()
        std::string token{};
        // The same name, asked for while this was under way.
        std::vector<std::shared_ptr<inquiry>> followers{};
    };
    using inquiry_ptr = std::shared_ptr<inquiry>;
    struct held {
        digest lease;
        std::string token;
        reactor::timer renewal = 0;
        bool is_made = false;  // and on its way to the server
    };

    void look(inquiry_ptr const& q);
    // Without a question: it failed a check, or was not there a moment ago.
    [[nodiscard]] bool is_known_missing(digest const& name) const;
    void send_looks();
    void received(inquiry_ptr const& q, got g);
    [[nodiscard]] wanted wanted_by(inquiry const& q) const;
    [[nodiscard]] opened check(inquiry const& q, base::bytes packet);
    void check_aside(inquiry_ptr const& q, base::bytes packet);
    // Refused before, by whoever loaded it.
    [[nodiscard]] opened unless_refused(opened what);
    void checked(inquiry_ptr const& q, opened found);
    void settle_found(inquiry_ptr const& q, opened found);
    void next_slot(inquiry_ptr const& q);
    void missed(inquiry_ptr const& q);
    void all_missed(inquiry_ptr const& q, miss why);
    void finish(inquiry_ptr const& q, store::answer with);
    void watch_budget(inquiry_ptr const& q);
    void be_late(inquiry_ptr const& q, std::string_view why);
    void tell_waits(inquiry const& q, stage at, base::time_point until);
    void count_late(inquiry& q);
    void everybody_is_late();
    void failed(failure const& why);
    void answered(inquiry const& q);
    // It said something to a question.
    void is_there(breaker::pace how);
    void rename(inquiry& q);
    // Before it is read for the first time. Not where this is made: the file may lie on a disk that hangs, and no caller is to wait for it.
    void note_token();
    // Since it was last asked: who was sent away is let in, if at all, with another token.
    [[nodiscard]] bool has_another_token();
    // It does not let us in, and nothing has changed since.
    [[nodiscard]] bool is_in_vain();
    // It is open, and this question may be the one that finds out whether the server is back.
    [[nodiscard]] bool may_try_now();
    void told_bad(digest const& name, miss why);

    [[nodiscard]] bool may_ask_for_leases(inquiry const& q);
    // Whoever waits gives a quarter for it of what it takes to make the thing. Where nobody does, leases are taken ahead; but a herd whose
    // way to the server is longer than a compile would only wait for one another.
    [[nodiscard]] bool is_lease_worth_its_way(inquiry const& q) const noexcept;
    // To take it, and to look once more. By the fastest answers: that a herd keeps its server busy is no reason to do without leases.
    [[nodiscard]] std::chrono::nanoseconds way_for_a_lease() const noexcept { return 2 * budgets_.fastest(); }
    [[nodiscard]] bool can_write() const noexcept;
    [[nodiscard]] bool may_claim(inquiry const& q) const noexcept;
    // So many for each maker, besides what it makes: so that it need not stand still while the next one is claimed.
    [[nodiscard]] std::size_t ahead() const noexcept;
    [[nodiscard]] std::size_t being_made() const noexcept;
    // What is missing is tried for now.
    void claim_more();
    void wait_for_lease(inquiry_ptr const& q);
    void take_some();
    void take(inquiry_ptr const& q);
    void taken(inquiry_ptr const& q, lease_look seen);
    void taken_too_late(inquiry const& q, lease_look const& seen);
    void won(inquiry_ptr const& q);
    void schedule_poll(milliseconds pause);
    void poll();
    struct polled {
        inquiry_ptr who;
        lease_look lease{};
        got bytes{};
    };
    void looked(std::vector<inquiry_ptr> const& some, std::vector<lease_look> leases);
    void settle_polled(polled& one);
    void end_poll();
    [[nodiscard]] bool is_overdue(inquiry const& q) const noexcept;
    // Long ago whoever asked was told that it is late: nobody is kept busy with it any more.
    [[nodiscard]] bool is_given_up(inquiry const& q) const noexcept;
    // With a holder, or with whoever should say something of one.
    void lose_patience(inquiry const& q) noexcept;
    void note_held(inquiry& q);
    void wait_no_longer();
    // Something was asked for this question's lease: its answer is not waited for longer than a holder.
    void watch_silence(inquiry_ptr const& q);
    void fell_silent(inquiry_ptr const& q);
    // Whoever keeps the leases has said something of one.
    void heard_of_leases() noexcept;
    // Of whoever keeps the leases, which says nothing of the bytes where they are elsewhere.
    void lease_failed(failure const& why);
    void rest_from_leases(failure const& why);
    void renew_later(digest const& request);
    void end_claim(digest const& request);
    bool end_lease(digest const& request);

    struct upload;
    void try_slot(std::shared_ptr<upload> const& u, put_rule rule);
    void settle(std::shared_ptr<upload> const& u, got there);
    void uploaded(std::shared_ptr<upload> const& u);
    void not_uploaded(std::shared_ptr<upload> const& u, failure const& why);
    void put_by_family(std::shared_ptr<upload> const& u);
    [[nodiscard]] bool is_sound(upload const& u, got there) const;

    client_parts of_;
    budgets budgets_;
    breaker lease_guard_;           // of whoever keeps the leases, as far as they go
    bool keeper_is_known_ = false;  // whoever keeps the leases has answered before
    std::vector<inquiry_ptr> to_look_;
    std::map<digest, inquiry_ptr> under_way_;  // by name, until it was received
    std::size_t aside_ = 0, aside_bytes_ = 0;  // being checked, or waiting for it
    reactor::timer look_timer_ = 0;
    std::vector<inquiry_ptr> waiting_;
    std::size_t taking_ = 0;
    bool blind_ = true;  // leases may be tried that were not looked at before
    reactor::timer poll_timer_ = 0, take_timer_ = 0;
    milliseconds pause_{0};
    enum class polling { no, leases, bytes };  // what the look under way waits for
    polling polling_ = polling::no;
    base::time_point lost_patience_{};  // when that was last
    unsigned deadlines_ = 0;            // how often running, each by somebody who came after the last
    base::time_point impatient_until_{};
    std::chrono::nanoseconds claiming_{0};  // what the last claim took
    std::chrono::nanoseconds making_{0};    // and the last compiles
    unsigned times_made_ = 0;
    std::map<digest, held> claims_;              // by request
    std::map<digest, base::time_point> absent_;  // names, until when it is believed
    std::map<digest, miss> bad_;                 // names that held what failed a check
    base::time_point writing_rests_until_{};
    bool writing_denied_ = false;
    std::optional<std::uint64_t> token_stamp_{};
    base::time_point token_looked_at_{};
    std::set<std::string> told_;  // kinds of faults that were events already, since the last answer
    std::minstd_rand random_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace kiln::remote
