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

}  // namespace

bool client::can_write() const noexcept {
    return of_.rules.options.writes == writing::allowed && !writing_denied_ &&
           base::clock::now() >= writing_rests_until_;
}

// What somebody waits for need not queue behind what nobody does.
bool client::may_claim(inquiry const& q) const noexcept {
    auto const makers = std::max<std::size_t>(1, q.what.makers);
    auto const most = q.what.how == store::urgency::nobody_waits ? makers : 2 * makers;
    return can_write() && claims_.size() + taking_ < most;
}

void client::wait_for_lease(inquiry_ptr const& q) {
    q->at = stage::waiting;
    q->waited_from = base::clock::now();
    of_.loop.cancel(q->timer);
    bool const first = waiting_.empty();
    waiting_.push_back(q);
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
    ++taking_;
    of_.leases->take(q->lease, q->token, [this, q, alive = alive_](lease_look seen) {
        if (!*alive) return;
        --taking_;
        taken(q, std::move(seen));
    });
}

void client::taken(inquiry_ptr const& q, lease_look seen) {
    if (q->at != stage::taking) return;
    auto const leave = [&] { std::erase(waiting_, q); };
    if (seen.why) {
        // A server without room for a lease has none for the entry either.
        if (seen.why.what != trouble::full && seen.why.what != trouble::denied) failed(seen.why);
        else of_.counts.error(name_of(seen.why.what));
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
            return look(q);
        }
        case lease_state::open: leave(); return finish(q, {.why = q->why});
        case lease_state::absent: q->seen = lease_seen::free; break;
        case lease_state::held:
            of_.counts.add("lease_waits");
            q->seen = lease_seen::held;
            q->held_since = base::clock::now();
            break;
    }
    q->at = stage::waiting;
    blind_ = false;  // others are at work: look before the next one is tried
    schedule_poll(pause_);
}

void client::won(inquiry_ptr const& q) {
    auto const& request = *q->what.request;
    auto const at = claims_.find(request);
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
    if (poll_timer_ != 0 || polling_ || waiting_.empty()) return;
    std::uniform_int_distribution<std::int64_t> part{-pause.count() * 250, pause.count() * 250};  // a quarter, in us
    auto const when = base::clock::now() + pause + std::chrono::microseconds{part(random_)};
    poll_timer_ = of_.loop.at(when, [this] {
        poll_timer_ = 0;
        poll();
    });
    pause_ = std::min(std::max(pause_, first_poll) * 2, slowest_poll);
}

// Everything that is missing, in one batch: is it there by now, and is anybody at it?
void client::poll() {
    std::vector<inquiry_ptr> some;
    for (auto const& q : waiting_) {
        if (q->at == stage::waiting && some.size() < of_.bytes.batch()) some.push_back(q);
    }
    if (some.empty()) return schedule_poll(pause_);
    polling_ = true;
    std::vector<digest> names, leases;
    auto const now = base::clock::now();
    for (auto const& q : some) {
        q->sent = now;
        names.push_back(q->name);
        leases.push_back(q->lease);
    }
    struct both {
        std::vector<got> bytes;
        std::size_t left = 0;
        std::vector<lease_look> leases;
        bool looked = false;
    };
    auto all = std::make_shared<both>();
    all->bytes.resize(some.size());
    all->left = some.size();
    auto const when_both = [this, some, all, alive = alive_] {
        if (*alive && all->left == 0 && all->looked) polled(some, std::move(all->bytes), std::move(all->leases));
    };
    of_.bytes.get(names, [all, when_both](std::size_t i, got g) {
        all->bytes[i] = std::move(g);
        --all->left;
        when_both();
    });
    of_.leases->look(leases, [all, when_both](std::vector<lease_look> seen) {
        all->leases = std::move(seen);
        all->looked = true;
        when_both();
    });
}

void client::polled(std::vector<inquiry_ptr> const& some, std::vector<got> bytes, std::vector<lease_look> leases) {
    polling_ = false;
    auto const now = base::clock::now();
    std::vector<inquiry_ptr> leaving;
    for (std::size_t i = 0; i < some.size(); ++i) {
        auto const& q = some[i];
        if (q->at != stage::waiting) continue;
        // What fails a check is as good as absent, until whoever has the lease has replaced it.
        if (bytes[i].state == presence::here) {
            of_.counts.add("bytes_in", bytes[i].packet.size());
            auto found = check(*q, std::move(bytes[i].packet));
            if (found.what) {
                std::erase(waiting_, q);
                settle_found(q, std::move(found));
                continue;
            }
            q->why = found.why;
        } else if (bytes[i].state != presence::absent) {
            std::erase(waiting_, q);
            received(q, std::move(bytes[i]));
            continue;
        }
        if (i == 0) answered(*q);
        auto const& lease = leases[i];
        bool const given_up = lease.why || lease.state == lease_state::open;
        bool const only_reads = !can_write();
        if (given_up || (only_reads && lease.state == lease_state::absent)) {
            if (lease.why) failed(lease.why);
            std::erase(waiting_, q);
            finish(q, {.why = q->why});
            continue;
        }
        bool const free = lease.state == lease_state::absent;
        q->seen = free ? lease_seen::free : lease_seen::held;
        if (free) q->held_since.reset();
        else if (!q->held_since) {
            q->held_since = now;
            of_.counts.add("lease_waits");
        }
        if (q->held_since && now - *q->held_since >= budgets_.for_a_lease(q->what)) leaving.push_back(q);
    }
    for (auto const& q : leaving) {
        std::erase(waiting_, q);
        finish(q, {.why = q->why, .late = "lease-deadline"});
    }
    take_some();
    schedule_poll(pause_);
}

void client::end_claim(digest const& request) {
    auto const at = claims_.find(request);
    if (at == claims_.end()) return;
    auto mine = std::move(at->second);
    of_.loop.cancel(mine.renewal);
    claims_.erase(at);
    of_.leases->end(mine.lease, mine.token, [](failure const&) {});
    for (unsigned slot = 0; slot < slots; ++slot) absent_.erase(object_name(of_.rules.options.space, request, slot));
    // There is room for one more: what is still missing is looked at now.
    if (!waiting_.empty()) {
        of_.loop.cancel(poll_timer_);
        schedule_poll(milliseconds{0});
    }
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
    if (!waiting_.empty()) {
        of_.loop.cancel(poll_timer_);
        schedule_poll(milliseconds{0});
    }
}

void client::cannot_publish(digest const& request, std::string_view why) {
    auto const at = claims_.find(request);
    if (at != claims_.end()) cannot_publish(request, std::string{at->second.token}, why);
}

void client::end_all() {
    while (!claims_.empty()) end_claim(claims_.begin()->first);
}

}  // namespace kiln::remote
