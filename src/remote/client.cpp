// SPDX-License-Identifier: Apache-2.0
#include "remote/client.hpp"

#include "remote/answer_times.hpp"
#include "remote/secrets.hpp"

#include <algorithm>

namespace kiln::remote {

namespace {

constexpr std::chrono::seconds absence_is_believed{2};
constexpr std::size_t most_remembered = 1 << 16;
constexpr std::size_t worth_a_thread = 8;  // so many in one batch
// What waits for its checks: a server may send faster than anybody checks. No more of them than keep every thread busy, so that their
// bytes are still in a cache when their turn comes, and their memory is used again.
constexpr std::size_t most_aside = 16;
constexpr std::size_t most_bytes_aside = std::size_t{64} << 20;
constexpr std::chrono::milliseconds token_is_looked_at{500};

using store::event_outlet;

// Where it is written who we are there; empty where that is in the environment.
std::filesystem::path const& secret_file(remote_options const& o) noexcept {
    return o.at.by == scheme::s3 ? o.credentials_file : o.token_file;
}

}  // namespace

client::client(client_parts of)
    : of_{of},
      budgets_{of.rules.options.patience, of.rules.options.timeout},
      keeper_is_known_{of.rules.options.leases != leasing::elsewhere},
      random_{std::random_device{}()} {
    of_.bytes.on_connected = [this] { budgets_.connected(base::clock::now()); };
}

client::~client() {
    *alive_ = false;
    of_.bytes.on_connected = {};
}

void client::rename(inquiry& q) {
    auto const& space = of_.rules.options.space;
    q.name = q.what.request ? object_name(space, *q.what.request, q.slot)
                            : family_name(space, q.what.family, q.what.expected.target, q.what.expected.kind);
    if (q.what.request) q.lease = lease_name(space, *q.what.request);
}

void client::ask(store::question const& what, store::answered then) {
    note_token();
    auto q = std::make_shared<inquiry>();
    q->what = what;
    q->then = std::move(then);
    q->slot = what.nth;
    q->asked = base::clock::now();
    if (!what.repeats) of_.counts.add("asked");
    if (what.nth >= slots || (what.nth > 0 && !what.request)) return finish(q, {});
    rename(*q);
    // Who has nothing else is not told by the background: he tries himself when it is time, unless his answer is known without it.
    bool const tries = what.how == store::urgency::nothing_else_will_do && !is_known_missing(q->name) && may_try_now();
    if (of_.guard.is_open() && !tries)
        return finish(q, {.hit = {}, .why = miss::disabled, .detail = "the server does not answer"});
    watch_budget(q);
    if (q->at != stage::done) look(q);
    else if (tries) of_.guard.try_later();
}

// One timer for a question: looked at again when it rings, because what is known of the server may have changed.
void client::watch_budget(inquiry_ptr const& q) {
    if (of_.guard.is_silent() && q->what.how == store::urgency::somebody_waits) return be_late(q, "fleet-late");
    auto const end = budgets_.end_of(q->what, q->asked);
    if (end <= base::clock::now()) {
        of_.guard.late(q->asked);
        // Late is for who can do without. Nobody else has it to offer, but perhaps the next server.
        if (q->what.how == store::urgency::nothing_else_will_do)
            return finish(q, {.why = miss::disabled,
                              .detail = fmt::format("no answer in {} ms", of_.rules.options.timeout.count())});
        be_late(q, "fleet-late");
        // From now on nobody is kept waiting for it: also not those who had more time.
        if (of_.guard.is_out_of_reach()) everybody_is_late();
        return;
    }
    q->timer = of_.loop.at(end, [this, q] {
        q->timer = 0;
        if (q->at == stage::looking) watch_budget(q);
    });
}

void client::everybody_is_late() {
    std::vector<inquiry_ptr> all;
    for (auto const& [name, q] : under_way_) {
        all.push_back(q);
        all.insert(all.end(), q->followers.begin(), q->followers.end());
    }
    for (auto const& q : all) {
        if (q->what.how != store::urgency::nothing_else_will_do) be_late(q, "fleet-late");
    }
}

void client::be_late(inquiry_ptr const& q, std::string_view why) {
    if (q->told_late || q->at == stage::done) return;
    q->told_late = base::clock::now();
    count_late(*q);
    tell_waits(*q, q->at, *q->told_late);
    // Copied: whoever is told may ask again at once.
    auto const then = q->then;
    then({.hit = {}, .why = q->why, .late = why, .is_last = false});
}

bool client::is_known_missing(digest const& name) const {
    if (bad_.contains(name)) return true;
    auto const gone = absent_.find(name);
    return gone != absent_.end() && base::clock::now() < gone->second;
}

void client::look(inquiry_ptr const& q) {
    if (q->at != stage::looking_again) {
        q->at = stage::looking;
        if (is_known_missing(q->name)) return missed(q);
        auto const [first, is_first] = under_way_.emplace(q->name, q);
        if (!is_first) return first->second->followers.push_back(q);
    }
    to_look_.push_back(q);
    if (look_timer_ == 0) look_timer_ = of_.loop.at(base::clock::now(), [this] { send_looks(); });
}

void client::send_looks() {
    look_timer_ = 0;
    auto const some = std::exchange(to_look_, {});
    auto const now = base::clock::now();
    for (std::size_t from = 0; from < some.size(); from += of_.bytes.batch()) {
        auto const end = std::min(some.size(), from + of_.bytes.batch());
        std::vector<inquiry_ptr> part{some.begin() + static_cast<std::ptrdiff_t>(from),
                                      some.begin() + static_cast<std::ptrdiff_t>(end)};
        std::vector<digest> names;
        for (auto const& q : part) {
            q->sent = now;
            q->among_many = part.size() >= worth_a_thread;
            names.push_back(q->name);
        }
        of_.bytes.get(names, [this, part, alive = alive_](std::size_t i, got g) {
            if (*alive) received(part[i], std::move(g));
        });
    }
}

void client::answered(inquiry const& q) {
    auto const took = base::clock::now() - q.sent;
    bool const in_time = budgets_.is_in_time(q.what, took);
    budgets_.answered(took);
    of_.counts.add(answer_time_counter(took));
    is_there(in_time ? breaker::pace::in_time : breaker::pace::too_late);
}

void client::is_there(breaker::pace how) {
    if (!of_.guard.answered(how)) return;
    told_.clear();
    of_.events.emit({.kind = event_kind::note, .reason = "fleet-back", .detail = of_.rules.options.at.text()});
}

void client::failed(failure const& why) {
    of_.counts.error(name_of(why.what));
    if (told_.insert(std::string{name_of(why.what)}).second) {
        of_.events.emit(
            {.kind = event_kind::fault,
             .reason = "fleet",
             .detail = fmt::format("{}: {}: {}", name_of(why.what), of_.rules.options.at.text(), why.detail)});
    }
    if (!of_.guard.failed(why)) return;
    of_.counts.add("breaker_opened");
    of_.events.emit({.kind = event_kind::note,
                     .reason = "fleet-off",
                     .detail = fmt::format("{}: not asked for a while: {}", of_.rules.options.at.text(), why.detail)});
    of_.bytes.give_up_waiting(why);
    wait_no_longer();
}

void client::told_bad(digest const& name, miss why) {
    if (bad_.size() < most_remembered) bad_.emplace(name, why);
}

wanted client::wanted_by(inquiry const& q) const {
    return {.family = q.what.family, .request = q.what.request, .key = {}, .expected = q.what.expected};
}

opened client::unless_refused(opened what) {
    if (what.what && may_give && !may_give(what.what->about.at.key, what.payload))
        return {.what = nullptr, .why = miss::refused};
    return what;
}

opened client::check(inquiry const& q, base::bytes packet) {
    auto const& how = of_.rules;
    return unless_refused(open_packet(std::move(packet), how.believed, wanted_by(q), how.options.most_entry));
}

void client::check_aside(inquiry_ptr const& q, base::bytes packet) {
    struct work {
        base::bytes packet;
        opened found{};
    };
    auto const bytes = packet.size();
    ++aside_;
    aside_bytes_ += bytes;
    auto const box = std::make_shared<work>(work{std::move(packet)});
    of_.aside.run(
        [box, asked_for = wanted_by(*q), &how = of_.rules] {
            box->found = open_packet(std::move(box->packet), how.believed, asked_for, how.options.most_entry);
        },
        [this, q, box, bytes, alive = alive_] {
            if (!*alive) return;
            --aside_;
            aside_bytes_ -= bytes;
            checked(q, unless_refused(std::move(box->found)));
        });
}

void client::received(inquiry_ptr const& q, got g) {
    if (auto const at = under_way_.find(q->name); at != under_way_.end() && at->second == q) under_way_.erase(at);
    if (q->at == stage::done && q->followers.empty()) {
        // Too late for whoever asked; but it answers, and he may have been the one who tries it.
        if (g.state == presence::failed) failed(g.why);
        else is_there(breaker::pace::too_late);
        return;
    }
    switch (g.state) {
        case presence::failed:
            failed(g.why);
            q->why = miss::disabled;
            if (q->at == stage::looking_again && q->what.request) end_claim(*q->what.request);
            for (auto const& f : std::exchange(q->followers, {}))
                finish(f, {.why = miss::disabled, .detail = g.why.detail});
            return finish(q, {.why = miss::disabled, .detail = std::move(g.why.detail)});
        case presence::too_large:
            answered(*q);
            told_bad(q->name, miss::too_large);
            return all_missed(q, miss::too_large);
        case presence::absent:
            answered(*q);
            if (absent_.size() > most_remembered) absent_.clear();
            absent_[q->name] = base::clock::now() + absence_is_believed;
            return all_missed(q, miss::absent);
        case presence::here: break;
    }
    answered(*q);
    of_.counts.add("bytes_in", g.packet.size());
    // Checked here where too much waits already: nothing more is received meanwhile.
    bool const has_room = aside_ < most_aside && aside_bytes_ + g.packet.size() <= most_bytes_aside;
    if (q->among_many && has_room) return check_aside(q, std::move(g.packet));
    checked(q, check(*q, std::move(g.packet)));
}

void client::checked(inquiry_ptr const& q, opened found) {
    for (auto const& f : std::exchange(q->followers, {})) checked(f, found);
    if (q->at == stage::done) return;
    if (!found.what) {
        q->why = found.why;
        // A sound entry that is not the one asked for may be what the next one asks for.
        if (found.payload == digest{} && found.why != miss::disabled) told_bad(q->name, found.why);
        return missed(q);
    }
    settle_found(q, std::move(found));
}

void client::settle_found(inquiry_ptr const& q, opened found) {
    bad_.erase(q->name);
    // A sound entry of the same request, made from other headers.
    if (q->what.key && found.what->about.at.key != *q->what.key) return next_slot(q);
    if (q->at == stage::looking_again) end_claim(*q->what.request);
    // Asked for by family there is no compiler to compare with: then it serves as what a bundle ships does.
    bool const shipped = !q->what.request;
    found.what->from = {.where = store::location::fleet, .headers_sealed = shipped, .any_compiler = shipped};
    finish(q, {.hit = std::move(found.what)});
}

void client::next_slot(inquiry_ptr const& q) {
    if (++q->slot >= slots || !q->what.request) return missed(q);
    rename(*q);
    if (q->timer == 0) watch_silence(q);  // who waited for a lease waits for an answer again
    look(q);
}

void client::missed(inquiry_ptr const& q) {
    if (q->at == stage::looking_again) return won(q);
    if (q->told_late || q->what.claims == store::claiming::no || !q->what.request || of_.guard.is_open() ||
        !is_lease_worth_its_way(*q) || !may_ask_for_leases(*q))
        return finish(q, {.why = q->why});
    wait_for_lease(q);
}

// Whoever asked for the same meanwhile goes his own way from here: he may want a lease, or not.
void client::all_missed(inquiry_ptr const& q, miss why) {
    auto all = std::exchange(q->followers, {});
    all.insert(all.begin(), q);
    for (auto const& one : all) {
        if (one->at == stage::done) continue;
        if (why != miss::absent) one->why = why;
        missed(one);
    }
}

void client::finish(inquiry_ptr const& q, store::answer with) {
    if (q->at == stage::done) return;
    auto const was = std::exchange(q->at, stage::done);
    of_.loop.cancel(q->timer);
    if (!with.hit && !q->what.repeats) of_.counts.add("misses");
    if (q->told_late && with.hit && !q->what.repeats) of_.counts.add("hedged");
    if (!q->told_late) tell_waits(*q, was, base::clock::now());
    auto const then = std::exchange(q->then, {});
    if (then) then(std::move(with));
}

// From when he was told that it is late nobody waited.
void client::tell_waits(inquiry const& q, stage at, base::time_point until) {
    if (q.what.how == store::urgency::nobody_waits) return;
    bool const leased = at == stage::waiting || at == stage::taking || at == stage::looking_again;
    auto const tell = [&](char const* what_for, base::clock::duration took) {
        of_.events.emit({.kind = event_kind::waited,
                         .unit = q.what.unit,
                         .target = q.what.expected.target,
                         .reason = what_for,
                         .key = q.what.key ? q.what.key->prefix() : 0,
                         .request = q.what.request ? q.what.request->prefix() : 0,
                         .duration_ns = took.count()});
    };
    tell("fleet", (leased ? q.waited_from : until) - q.asked);
    if (leased) tell("lease", until - q.waited_from);
}

// Once for a question, whoever asked it again because he waits.
void client::count_late(inquiry& q) {
    auto const first = q.what.repeats ? under_way_.find(q.name) : under_way_.end();
    auto& of = first != under_way_.end() ? *first->second : q;
    if (!std::exchange(of.is_counted_late, true)) of_.counts.add("late");
}

void client::note_token() {
    if (!token_stamp_) token_stamp_ = token_source{secret_file(of_.rules.options)}.stamp();
}

bool client::has_another_token() {
    auto const now = base::clock::now();
    if (now - token_looked_at_ < token_is_looked_at) return false;
    token_looked_at_ = now;
    auto const stamp = token_source{secret_file(of_.rules.options)}.stamp();
    if (std::exchange(token_stamp_, stamp) == stamp) return false;
    writing_denied_ = false;
    // A connection that is kept is still that of who we were.
    of_.bytes.close();
    return true;
}

bool client::is_in_vain() {
    return of_.guard.is_denied() && !secret_file(of_.rules.options).empty() && !has_another_token();
}

bool client::may_try_now() {
    if (!of_.guard.may_try()) return false;
    if (!is_in_vain()) return true;
    of_.guard.try_later();
    return false;
}

void client::try_again() {
    if (is_in_vain()) return of_.guard.try_later();
    of_.bytes.ping([this, alive = alive_](failure why) {
        if (!*alive) return;
        if (why) {
            (void)of_.guard.failed(why);
            return;
        }
        is_there(breaker::pace::in_time);
    });
}

}  // namespace kiln::remote
