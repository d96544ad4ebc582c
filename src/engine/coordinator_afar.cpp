// SPDX-License-Identifier: Apache-2.0
//
// What the coordinator asks of tiers that answer later, and what it does with their answers.
#include "engine/flight.hpp"

#include <algorithm>

namespace kiln::engine_detail {

namespace {

constexpr std::chrono::milliseconds between_looks{250};

}  // namespace

bool coordinator::is_shared(order const& what) const {
    auto const* const c = std::get_if<compile::compile_job>(&what.job.task);
    if (c == nullptr) return true;
    auto const options = compile::normalize(c->unit.options);
    return options && !options->debug;  // their keys have this machine's paths
}

store::question coordinator::question_for(flight& f) const {
    auto const& s = f.order.subject;
    bool const can_compile = !s.toolchain.empty() && options_.jit != jit_policy::forbid;
    store::question out{.family = s.id.family,
                        .key = key_in_advance(s),
                        .expected = {f.target, std::string{name_of(s.target.kind)}, s.toolchain},
                        .nth = f.nth};
    out.unit = s.name;
    if (!s.toolchain.empty()) out.request = s.id.request;
    if (auto const typical = typical_compile_ns_.load(std::memory_order_relaxed); typical > 0)
        out.compile = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::nanoseconds{typical});
    std::lock_guard const lock{f.mutex};
    out.how = !can_compile                  ? store::urgency::nothing_else_will_do
              : f.how == priority::blocking ? store::urgency::somebody_waits
                                            : store::urgency::nobody_waits;
    if (can_compile) {
        out.claims = store::claiming::wanted;
        out.makers = static_cast<std::size_t>(std::max(1, pool_.capacity()));
    }
    return out;
}

bool coordinator::is_waited_for(flight& f) {
    std::lock_guard const lock{f.mutex};
    return f.how == priority::blocking;
}

void coordinator::look_further(flight_ptr const& f) {
    if (!f->asked_further) return compile(f);
    if (!is_shared(f->order)) {
        if (is_allowed(f, f->why)) compile(f);
        return;
    }
    // Answers from afar come to nobody any more. What is asked for later than that is not among what abandon() finishes.
    if (is_stopped()) return finish(f, shutting_down(f->order.subject));
    auto const question = question_for(*f);
    f->unhurried = question.how == store::urgency::nobody_waits;
    watch_who_answers(f, question.how);
    store_.ask(question, [back = hand().back, f](store::far_answer what) {
        if (hand_over(*back, f, std::move(what))) return;
        // Not with its lock: whoever is told may ask for more.
        back->with_coordinator(
            [&](coordinator& c) { c.guarded(f, [&] { c.finish(f, c.background().why_not(f->order.subject.name)); }); });
    });
    // Somebody may have come between the question and the mark.
    if (f->unhurried.load() && is_waited_for(*f)) hurry_later(f);
}

void coordinator::watch_who_answers(flight_ptr const& f, store::urgency how) {
    auto& mine = hand();
    {
        std::lock_guard const lock{mine.mutex};
        mine.afar.push_back({f, how});
        if (std::exchange(mine.looks_after_them, true)) return;
    }
    if (background().post_at(base::clock::now() + between_looks, [this] { look_after_them(); })) return;
    std::lock_guard const lock{mine.mutex};  // no thread is to be had now: whoever asks next tries again
    mine.looks_after_them = false;
}

// On the thread that hears the answers.
void coordinator::look_after_them() {
    using store::urgency;
    bool const late = store_.is_one_held_up(urgency::somebody_waits);
    bool const late_for_all = late && store_.is_one_held_up(urgency::nothing_else_will_do);
    std::vector<flight_ptr> seen, in_vain;  // none of them goes while the lock is held
    bool goes_on = false;
    auto& mine = hand();
    {
        std::lock_guard const lock{mine.mutex};
        std::erase_if(mine.afar, [&](auto const& one) {
            auto const& f = seen.emplace_back(one.what.lock());
            if (!f || f->finished.load() || f->making) return true;
            if (!(one.how == urgency::nothing_else_will_do ? late_for_all : late)) return false;
            in_vain.push_back(f);
            return true;
        });
        goes_on = mine.looks_after_them = !mine.afar.empty();
    }
    for (auto const& f : in_vain) {
        store::far_answer none{.late = "fleet-late", .is_last = false, .said = "no answer in time"};
        none.what.why = store::miss::disabled;
        guarded(f, [&] { heard_of(f, none); });
    }
    if (goes_on) (void)background().post_at(base::clock::now() + between_looks, [this] { look_after_them(); });
}

// False: there is no thread to hear of it. Where nobody is left nobody need.
bool coordinator::hand_over(way_back& back, flight_ptr const& f, store::far_answer what) {
    std::lock_guard const lock{back.mutex};
    auto* const me = back.to;
    return me == nullptr ||
           me->background().post([me, f, what = std::move(what)] { me->guarded(f, [&] { me->heard_of(f, what); }); });
}

// On the thread that hears the answers: which of them is asked for next it may have changed by now.
void coordinator::hurry_later(flight_ptr const& f) {
    (void)background().post([this, f] { hurry(f); });
}

// The same question, by somebody who waits. It is not sent a second time, and its answer is the first one's; what it may bring is that
// the time of who waits is over.
void coordinator::hurry(flight_ptr const& f) {
    if (!f->unhurried.exchange(false) || f->finished.load()) return;
    auto question = question_for(*f);
    question.claims = store::claiming::no;
    question.repeats = true;
    store_.ask(question, [back = hand().back, f](store::far_answer what) {
        // Late, or not asked at all because nobody waits for that server any more. All else the first answer says.
        bool const in_vain = !what.late.empty() || (!what.what.hit && what.what.why == store::miss::disabled);
        if (!in_vain) return;
        if (what.late.empty()) what.late = "fleet-late";
        what.is_last = false;
        (void)hand_over(*back, f, std::move(what));
    });
}

bool coordinator::take_from_afar(flight_ptr const& f, store::far_answer const& what) {
    auto found = accept(store_, f->order.subject, what.what);
    if (!found.what) {
        f->why.reason = found.reason;
        f->why.detail = found.detail;
        return false;
    }
    if (f->decided.exchange(true)) return true;
    store_.used(what.what, take_lead(*f));
    count_hit(found.from);
    book_.obtained(f->line(), f->target, {found.from, found.what->compile_ms, found.what->image.size()});
    finish(f, obtained{std::move(found.what), found.from, f->watch.ms(), std::move(found.detail)});
    std::optional<compile::worker_pool::ticket> ticket;
    {
        std::lock_guard const lock{f->mutex};
        ticket = f->ticket;
    }
    if (ticket) pool_.cancel(*ticket);
    return true;
}

void coordinator::heard_of(flight_ptr const& f, store::far_answer const& what) {
    if (f->finished.load()) return;  // made here in the meantime
    if (is_withdrawn(*f)) return finish(f, withdrawn(f->order.subject));
    if (what.what.hit) {
        if (take_from_afar(f, what)) return;
        // Sound, and made from other headers than this machine has: there may be one more.
        f->nth = what.next;
        if (f->why.reason == "header-changed" && !f->making) return look_further(f);
    }
    // Who waits by now was told so by his own question, or will be: it is made once.
    if (f->making) {
        bool const is_absent = what.is_last && what.late.empty() && what.what.why != store::miss::disabled;
        if (what.mine) keep_claim(*f, what.mine);
        else if (is_absent && recall(f)) look_further(f);
        return;
    }
    if (!what.late.empty()) {
        auto late = f->describe(event_kind::fell_back);
        late.reason = what.late;
        late.detail = "nobody waits longer for what other machines may have; compiling here";
        events_.emit(late);
    }
    f->making = true;
    f->unhurried = false;
    if (what.mine) keep_claim(*f, what.mine);
    if (!what.said.empty()) f->said = fmt::format(", fleet ({})", what.said);
    if (std::exchange(f->allowed, true) || is_allowed(f, f->why)) compile(f);
}

// Unless it was made already: then others find it, and need not be kept waiting.
void coordinator::keep_claim(flight& f, store::claim_ptr mine) {
    std::lock_guard const lock{f.mutex};
    if (!f.decided.load()) f.claim = std::move(mine);
}

// Given up as late, and no worker has it yet, when those far away answer after all: then it is asked for once more, by the rules of
// servers that answer. A herd that finds its server busy at the start would else make everything everywhere.
bool coordinator::recall(flight_ptr const& f) {
    if (std::exchange(f->recalled, true)) return false;
    std::optional<compile::worker_pool::ticket> ticket;
    {
        std::lock_guard const lock{f->mutex};
        ticket = f->ticket;
    }
    f->leaving_the_queue = true;
    bool const left = ticket && pool_.cancel(*ticket);
    f->leaving_the_queue = false;
    if (!left) return false;
    {
        std::lock_guard const lock{f->mutex};
        f->ticket.reset();
    }
    f->making = false;
    return true;
}

}  // namespace kiln::engine_detail
