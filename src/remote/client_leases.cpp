// SPDX-License-Identifier: Apache-2.0
// Leases: of all machines that miss a request one compiles it. They only save work; see docs/decisions/0018.
#include "remote/client.hpp"

#include "base/files.hpp"

#include <algorithm>

namespace kiln::remote {

namespace {

constexpr milliseconds first_poll{20};
constexpr milliseconds slowest_poll{500};
constexpr milliseconds renewal{500};
// A lease that seems free and is never ours, so often: somebody plays with us, or a server that forgets.
constexpr unsigned most_lost = 5;
// Holders that do not end, so often running: from then on nobody waits for one for a while.
constexpr unsigned most_deadlines = 3;
constexpr std::chrono::seconds impatience{30};
// A claim that takes less than this part of a compile holds up nobody.
constexpr int not_worth_it = 50;
constexpr std::size_t most_ahead = 32;
constexpr unsigned enough_to_tell = 3;

}  // namespace

bool client::may_ask_for_leases(inquiry const& q) {
    if (of_.leases == nullptr) return false;
    if (!lease_guard_.is_open()) return true;
    // Whether they are to be had again is found out behind this question, which does without.
    if (lease_guard_.may_try()) {
        of_.leases->look({q.lease}, [this, alive = alive_](std::vector<lease_look> const& seen) {
            if (!*alive) return;
            if (seen.at(0).why) (void)lease_guard_.failed(seen[0].why);
            else heard_of_leases();
        });
    }
    return false;
}

bool client::is_lease_worth_its_way(inquiry const& q) const noexcept {
    if (of_.rules.options.patience) return true;
    bool const somebody_waits = q.what.how == store::urgency::somebody_waits;
    return way_for_a_lease() <= (somebody_waits ? q.what.compile / 4 : 4 * q.what.compile);
}

void client::lease_failed(failure const& why) {
    if (of_.rules.options.leases != leasing::elsewhere) return failed(why);
    of_.counts.error(name_of(why.what));
    rest_from_leases(why);
}

void client::rest_from_leases(failure const& why) {
    if (!lease_guard_.failed(why)) return;
    auto const& o = of_.rules.options;
    auto const& keeper = o.leases == leasing::elsewhere ? *o.lease_at : o.at;
    of_.events.emit({.kind = event_kind::fault,
                     .reason = "fleet",
                     .detail = fmt::format("{}: {}: no leases for a while, so others may compile the same: {}",
                                           name_of(why.what), keeper.text(), why.detail)});
    wait_no_longer();
}

void client::watch_silence(inquiry_ptr const& q) {
    auto const most = keeper_is_known_ ? budgets_.for_an_answer(q->what) : budgets_.for_a_first_answer();
    of_.loop.cancel(q->timer);
    q->watched_from = base::clock::now();
    q->timer = of_.loop.at(q->watched_from + most, [this, q] {
        q->timer = 0;
        fell_silent(q);
    });
}

void client::heard_of_leases() noexcept {
    keeper_is_known_ = true;
    if (of_.rules.options.leases != leasing::elsewhere) of_.guard.heard();
    (void)lease_guard_.answered();
}

void client::fell_silent(inquiry_ptr const& q) {
    // The bytes may still come.
    if (q->at == stage::looking || q->at == stage::looking_again) {
        of_.guard.late(q->watched_from);
        return be_late(q, "fleet-late");
    }
    if (q->at != stage::taking && q->at != stage::waiting) return;
    bool const awaits_leases = q->at == stage::taking || polling_ == polling::leases;
    if (q->at == stage::taking) --taking_;
    count_late(*q);
    std::erase(waiting_, q);
    finish(q, {.why = q->why, .late = "fleet-late"});
    // Bytes that do not come, be it those of others, are not the fault of who keeps leases.
    if (!awaits_leases) return;
    lose_patience(*q);
    rest_from_leases({trouble::timeout, "no answer about a lease"});
}

bool client::can_write() const noexcept {
    return of_.rules.options.writes == writing::allowed && !writing_denied_ &&
           base::clock::now() >= writing_rests_until_;
}

std::size_t client::being_made() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(claims_, [](auto const& c) { return !c.second.is_made; }));
}

// Nothing where a claim takes next to no time beside a compile: what is claimed and not made yet others wait for. Where others are at work
// it is rounded down.
std::size_t client::ahead() const noexcept {
    if (making_.count() <= 0 || claiming_ * not_worth_it < making_) return 0;
    auto const whole = static_cast<std::size_t>(claiming_ / making_);
    return std::min(most_ahead, whole + (blind_ ? 1 : 0));
}

// What somebody waits for need not queue behind what nobody does.
bool client::may_claim(inquiry const& q) const noexcept {
    auto const makers = std::max<std::size_t>(1, q.what.makers);
    auto const of_each = 1 + ahead() + (q.what.how == store::urgency::nobody_waits ? 0 : 1);
    return can_write() && being_made() + taking_ < makers * of_each;
}

void client::claim_more() {
    if (waiting_.empty()) return;
    take_some();
    // As long as nobody else was seen at work there is nothing to look at.
    if (blind_) return;
    of_.loop.cancel(poll_timer_);
    schedule_poll(milliseconds{0});
}

void client::wait_for_lease(inquiry_ptr const& q) {
    q->at = stage::waiting;
    q->waited_from = base::clock::now();
    of_.loop.cancel(q->timer);
    bool const first = std::ranges::all_of(waiting_, [](auto const& other) { return other->told_late.has_value(); });
    waiting_.push_back(q);
    if (polling_ != polling::no) watch_silence(q);  // the next look is behind the one under way
    // Who may not write only wants to know whether somebody is at it.
    if (!can_write()) return schedule_poll(milliseconds{0});
    if (first) {
        blind_ = true;
        pause_ = first_poll;
    }
    if (take_timer_ == 0) take_timer_ = of_.loop.at(q->waited_from, [this] { take_some(); });
    schedule_poll(pause_);
}

// Each process begins elsewhere in what is missing, so that a herd shares the work.
void client::take_some() {
    take_timer_ = 0;
    std::vector<inquiry_ptr> able;
    for (auto const& q : waiting_) {
        if (q->at == stage::waiting && (q->seen == lease_seen::free || (blind_ && q->seen == lease_seen::unknown)))
            able.push_back(q);
    }
    std::ranges::shuffle(able, random_);
    std::stable_partition(able.begin(), able.end(),
                          [](auto const& q) { return q->what.how != store::urgency::nobody_waits; });
    for (auto const& q : able) {
        if (may_claim(*q)) take(q);
    }
}

void client::take(inquiry_ptr const& q) {
    q->at = stage::taking;
    q->token = base::random_name() + base::random_name();
    q->taken_from = base::clock::now();
    ++taking_;
    watch_silence(q);
    of_.leases->take(q->lease, q->token, [this, q, alive = alive_](lease_look seen) {
        if (!*alive) return;
        if (q->at != stage::taking) return taken_too_late(*q, seen);
        --taking_;
        of_.loop.cancel(q->timer);
        taken(q, std::move(seen));
    });
}

// Whoever wanted it does without by now.
void client::taken_too_late(inquiry const& q, lease_look const& seen) {
    if (seen.why) return lease_failed(seen.why);
    heard_of_leases();
    if (seen.state == lease_state::ours) of_.leases->end(q.lease, q.token, [](failure const&) {});
}

void client::taken(inquiry_ptr const& q, lease_look seen) {
    auto const leave = [&] { std::erase(waiting_, q); };
    if (seen.why) {
        // A server without room for a lease has none for the entry either, and says so then.
        bool const said_later = seen.why.what == trouble::full || seen.why.what == trouble::denied;
        if (said_later && of_.rules.options.leases != leasing::elsewhere) of_.counts.error(name_of(seen.why.what));
        else lease_failed(seen.why);
        leave();
        return finish(q, {.why = q->why});
    }
    heard_of_leases();
    if (of_.guard.is_open()) {  // meanwhile: whoever has it could publish nowhere
        if (seen.state == lease_state::ours) of_.leases->end(q->lease, q->token, [](failure const&) {});
        leave();
        return finish(q, {.why = q->why});
    }
    switch (seen.state) {
        case lease_state::ours: {
            leave();
            of_.counts.add("leases");
            claims_[*q->what.request] = {.lease = q->lease, .token = q->token};
            renew_later(*q->what.request);
            // Whoever had it before may have published between our look and our lease.
            q->at = stage::looking_again;
            q->slot = q->what.nth;
            rename(*q);
            watch_silence(q);
            return look(q);
        }
        case lease_state::open: leave(); return finish(q, {.why = q->why});
        case lease_state::absent: q->seen = lease_seen::free; break;
        case lease_state::held:
            note_held(*q);
            if (is_overdue(*q)) be_late(q, "lease-deadline");
            break;
    }
    ++q->lost;
    q->at = stage::waiting;
    if (polling_ != polling::no) watch_silence(q);  // as in wait_for_lease()
    blind_ = false;                                 // others are at work: look before the next one is tried
    schedule_poll(pause_);
}

void client::won(inquiry_ptr const& q) {
    auto const& request = *q->what.request;
    auto const at = claims_.find(request);
    claiming_ = base::clock::now() - q->taken_from;
    auto mine = at != claims_.end() && make_claim ? make_claim(request, at->second.token) : nullptr;
    finish(q, {.why = q->why, .mine = std::move(mine)});
}

void client::renew_later(digest const& request) {
    auto const at = claims_.find(request);
    at->second.renewal = of_.loop.at(base::clock::now() + renewal, [this, request] {
        auto const mine = claims_.find(request);
        if (mine == claims_.end()) return;
        of_.leases->renew(mine->second.lease, mine->second.token);
        renew_later(request);
    });
}

void client::schedule_poll(milliseconds pause) {
    if (poll_timer_ != 0 || polling_ != polling::no || waiting_.empty()) return;
    std::uniform_int_distribution<std::int64_t> part{-pause.count() * 250, pause.count() * 250};  // a quarter, in us
    auto const when = base::clock::now() + pause + std::chrono::microseconds{part(random_)};
    poll_timer_ = of_.loop.at(when, [this] {
        poll_timer_ = 0;
        poll();
    });
    pause_ = std::min(std::max(pause_, first_poll) * 2, slowest_poll);
}

bool client::is_overdue(inquiry const& q) const noexcept {
    auto const now = base::clock::now();
    if (now < impatient_until_) return true;
    auto const most = budgets_.for_a_lease(q.what);
    auto const held = q.held_since ? now - *q.held_since : base::clock::duration{};
    // One holder after the other, each within its time: also that ends.
    return held >= most || q.held_before + held >= 2 * most;
}

bool client::is_given_up(inquiry const& q) const noexcept {
    return q.told_late && base::clock::now() - *q.told_late >= of_.rules.options.timeout;
}

// Once for all who waited together.
void client::lose_patience(inquiry const& q) noexcept {
    if (q.waited_from < lost_patience_) return;
    lost_patience_ = base::clock::now();
    if (++deadlines_ >= most_deadlines) impatient_until_ = lost_patience_ + impatience;
}

// Is anybody at what is missing? All of it in one batch.
void client::poll() {
    std::vector<inquiry_ptr> some;
    for (auto const& q : waiting_) {
        if (q->at == stage::waiting && some.size() < of_.bytes.batch()) some.push_back(q);
    }
    if (some.empty()) return schedule_poll(pause_);
    polling_ = polling::leases;
    std::vector<digest> names;
    for (auto const& q : some) names.push_back(q->lease);
    for (auto const& q : waiting_) {
        if (q->at == stage::waiting) watch_silence(q);
    }
    of_.leases->look(names, [this, some, alive = alive_](std::vector<lease_look> seen) {
        if (*alive) looked(some, std::move(seen));
    });
}

// Whoever has a lease ends it when the bytes are there: what is held is asked for only once, when patience with its holder is over.
void client::looked(std::vector<inquiry_ptr> const& some, std::vector<lease_look> leases) {
    auto const all = std::make_shared<std::vector<polled>>();
    std::vector<digest> names;
    auto const now = base::clock::now();
    for (std::size_t i = 0; i < some.size(); ++i) {
        auto const& q = some[i];
        if (q->at != stage::waiting) continue;
        if (!leases[i].why) heard_of_leases();
        if (!leases[i].why && leases[i].state == lease_state::held) {
            note_held(*q);
            if (is_given_up(*q)) {
                std::erase(waiting_, q);
                finish(q, {.why = q->why, .late = "lease-deadline"});
                continue;
            }
            if (q->told_late || !is_overdue(*q)) {
                watch_silence(q);  // until this look ends, which the bytes of others may put off
                continue;
            }
        }
        q->sent = now;
        watch_silence(q);
        names.push_back(q->name);
        all->push_back({.who = q, .lease = std::move(leases[i])});
    }
    if (names.empty()) return end_poll();
    polling_ = polling::bytes;
    of_.bytes.get(names, [this, all, left = names.size(), alive = alive_](std::size_t i, got g) mutable {
        if (!*alive) return;
        // Each as it comes: a whole batch of large ones is not kept.
        (*all)[i].bytes = std::move(g);
        settle_polled((*all)[i]);
        if (--left == 0) end_poll();
    });
}

void client::settle_polled(polled& one) {
    auto const& q = one.who;
    if (q->at != stage::waiting) return;
    if (one.bytes.state == presence::failed || one.bytes.state == presence::too_large) {
        std::erase(waiting_, q);
        return received(q, std::move(one.bytes));
    }
    answered(*q);
    // What fails a check is as good as absent, until whoever has the lease has replaced it.
    if (one.bytes.state == presence::here) {
        of_.counts.add("bytes_in", one.bytes.packet.size());
        auto found = check(*q, std::move(one.bytes.packet));
        if (found.what) {
            std::erase(waiting_, q);
            deadlines_ = 0;
            return settle_found(q, std::move(found));
        }
        q->why = found.why;
    }
    bool const free = one.lease.state == lease_state::absent;
    if (one.lease.why) lease_failed(one.lease.why);
    if (one.lease.why || one.lease.state == lease_state::open || (free && !can_write())) {
        std::erase(waiting_, q);
        return finish(q, {.why = q->why});
    }
    if (free && q->lost < most_lost) {
        q->seen = lease_seen::free;
        if (q->held_since) q->held_before += base::clock::now() - *std::exchange(q->held_since, {});
        return;
    }
    lose_patience(*q);
    // Whoever holds it goes on, and is the first to have it where no worker is free before.
    if (!free) return be_late(q, "lease-deadline");
    std::erase(waiting_, q);
    finish(q, {.why = q->why, .late = "lease-deadline"});
}

void client::note_held(inquiry& q) {
    q.seen = lease_seen::held;
    if (q.held_since) return;
    q.held_since = base::clock::now();
    of_.counts.add("lease_waits");
}

void client::end_poll() {
    polling_ = polling::no;
    for (auto const& q : waiting_) {
        if (q->at == stage::waiting) of_.loop.cancel(q->timer);
    }
    take_some();
    schedule_poll(pause_);
}

// Nobody can be told of what others make: each makes it himself.
void client::wait_no_longer() {
    auto const all = std::exchange(waiting_, {});
    for (auto const& q : all) {
        if (q->at == stage::waiting) finish(q, {.why = q->why});
        else waiting_.push_back(q);
    }
}

void client::end_claim(digest const& request) {
    if (end_lease(request)) claim_more();
}

bool client::end_lease(digest const& request) {
    auto const at = claims_.find(request);
    if (at == claims_.end()) return false;
    auto mine = std::move(at->second);
    of_.loop.cancel(mine.renewal);
    claims_.erase(at);
    of_.leases->end(mine.lease, mine.token, [](failure const&) {});
    for (unsigned slot = 0; slot < slots; ++slot) absent_.erase(object_name(of_.rules.options.space, request, slot));
    return true;
}

void client::made(digest const& request, std::string const& token, std::chrono::nanoseconds took) {
    making_ = making_.count() == 0 ? took : making_ + (took - making_) / 4;
    ++times_made_;
    auto const at = claims_.find(request);
    if (at != claims_.end() && at->second.token == token) at->second.is_made = true;
    // Asked for when nobody knew how little it takes to make them.
    if (times_made_ >= enough_to_tell && !of_.rules.options.patience && way_for_a_lease() > 4 * making_)
        return wait_no_longer();
    claim_more();
}

void client::let_go(digest const& request, std::string const& token) {
    auto const at = claims_.find(request);
    if (at != claims_.end() && at->second.token == token) end_claim(request);
}

void client::cannot_publish(digest const& request, std::string const& token, std::string_view why) {
    auto const at = claims_.find(request);
    if (at == claims_.end() || at->second.token != token) return;
    of_.leases->mark_open(at->second.lease, token, why);
    of_.loop.cancel(at->second.renewal);
    claims_.erase(at);
    claim_more();
}

void client::cannot_publish(digest const& request, std::string_view why) {
    auto const at = claims_.find(request);
    if (at != claims_.end()) cannot_publish(request, std::string{at->second.token}, why);
}

void client::end_all() {
    while (!claims_.empty()) {
        auto const request = claims_.begin()->first;  // a copy: it goes with the claim
        (void)end_lease(request);
    }
}

}  // namespace kiln::remote
