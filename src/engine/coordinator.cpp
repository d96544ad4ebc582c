// SPDX-License-Identifier: Apache-2.0
#include "engine/flight.hpp"
#include "engine/nearest.hpp"
#include "engine/pack_verbs.hpp"

#include <algorithm>

namespace kiln::engine_detail {

namespace {

constexpr std::chrono::milliseconds longest_pause{50};

std::string_view reason_of(compile::header_use headers) {
    switch (headers) {
        case compile::header_use::made: return "headers-made";
        case compile::header_use::reused: return "headers-reused";
        case compile::header_use::plain: break;
    }
    return {};
}

}  // namespace

std::shared_ptr<store::entry> entry_for(order const& from, kiln::artifact& a, std::string const& producer) {
    auto request = from.subject.id.request;
    if (auto const* c = std::get_if<compile::compile_job>(&from.job.task)) {
        if (auto const options = compile::normalize(c->unit.options))
            a.inputs = compile::describe_inputs(c->unit, *options);
        if (auto const id = compile::identify(c->unit, a.target, a.toolchain))
            request = compile::with_uncached(*id, c->unit.uncached_options).request;
    } else request = compile::identify(std::get<compile::link_job>(from.job.task), a.toolchain).request;
    auto const key = compile::seal(request, a.dependencies);
    a.key = key.hex();

    return entry_of(a, {.at = {from.subject.id.family, request, key}, .producer = producer, .licence = from.licence});
}

bool may_be_mended(order const& what, error const& why) {
    bool const is_of_headers = why.code() == errc::compile_failed || why.code() == errc::io;
    return is_of_headers && !what.subject.id.self_contained && !what.goes_around_the_cache();
}

known_as line_of(order const& of) {
    bool const links = std::holds_alternative<compile::link_job>(of.job.task);
    return {of.subject.name, links ? base::digest{} : identity_of(of.subject)};
}

coordinator::coordinator(coordinator_options options, parts of)
    : options_{std::move(options)}, store_{of.kept}, pool_{of.pool}, events_{of.events}, book_{of.book}, hands_{[this] {
          return std::make_unique<in_hand>(*this);
      }} {}

coordinator::~coordinator() { stop(); }

void coordinator::stop(std::optional<base::time_point> deadline) noexcept {
    auto* const mine = hands_.peek();
    if (mine == nullptr) return;
    {
        auto& back = *mine->back;
        std::unique_lock lock{back.mutex};
        back.to = nullptr;
        // Not for ever: whoever is told of an event may be the one who ends the program.
        back.left.wait_for(lock, std::chrono::seconds{1}, [&] { return back.inside == 0; });
    }
    mine->background.stop(deadline);
}

template <class Fill>
void coordinator::count(Fill fill) {
    store::statistics more;
    fill(more);
    store_.count(more);
}

bool coordinator::is_withdrawn(flight& f) {
    std::lock_guard const lock{f.mutex};
    return f.withdrawn;
}

bool coordinator::failed_long_ago(flight& f) const {
    std::lock_guard const lock{f.mutex};
    return f.failed_at && base::clock::now() - *f.failed_at > options_.failure_memory;
}

// A failure holds while what the compiler read says the same: people mend a header and ask again at once.
void coordinator::forget_what_was_mended(base::digest const& identity) {
    auto const f = in_flight(identity);
    if (!f) return;
    {
        std::lock_guard const lock{f->mutex};
        if (!f->may_be_mended) return;
    }
    if (f->read && compile::first_change(*f->read, f->order.subject.roots, compile::absent_headers::are_misses).empty())
        return;
    auto& mine = hand();
    std::lock_guard const lock{mine.mutex};
    if (auto const at = mine.flights.find(identity); at != mine.flights.end() && at->second == f)
        mine.flights.erase(at);
}

coordinator::asked coordinator::ask(order what, priority how) {
    auto const identity = identity_of(what.subject);
    forget_what_was_mended(identity);
    flight_ptr f;
    bool mine = false;
    {
        auto& all = hand();
        std::lock_guard const lock{all.mutex};
        auto const at = all.flights.find(identity);
        // A failure is remembered for a moment, so that a thousand threads in a row do not compile it a thousand times.
        mine = at == all.flights.end() || failed_long_ago(*at->second);
        if (mine) {
            f = std::make_shared<flight>(std::move(what));
            all.flights.insert_or_assign(identity, f);
        } else f = at->second;
        std::lock_guard const inner{f->mutex};
        ++f->asks;
    }
    if (mine) guarded(f, [&] { begin(f, how); });
    else raise(f, how);
    return {pending<obtained>{f->answer}, !mine, f};
}

void coordinator::begin(flight_ptr const& f, priority how) {
    raise(f, how);
    book_.asked(f->line(), f->target, how);
    if (how == priority::blocking) step(f);
    else if (!background().post([this, f] { step(f); })) finish(f, background().why_not(f->order.subject.name));
}

std::optional<obtained> coordinator::find(order const& what) {
    if (what.goes_around_the_cache()) return std::nullopt;
    auto found = look_up(store_, what.subject);
    if (!found.what) return std::nullopt;
    count_found(found.from);
    return obtained{std::move(found.what), found.from, 0, std::move(found.detail)};
}

coordinator::flight_ptr coordinator::in_flight(base::digest const& identity) const {
    auto& mine = hand();
    std::lock_guard const lock{mine.mutex};
    auto const at = mine.flights.find(identity);
    return at == mine.flights.end() ? nullptr : at->second;
}

void coordinator::raise(base::digest const& identity, priority how) {
    if (auto const f = in_flight(identity)) raise(f, how);
}

void coordinator::raise(flight_ptr const& f, priority how) {
    {
        std::lock_guard const lock{f->mutex};
        if (how <= f->how) return;
        f->how = how;
        book_.raised(f->line(), f->target, how);
        if (f->ticket) pool_.raise(*f->ticket, how);
    }
    if (how == priority::blocking && f->unhurried.load()) hurry_later(f);
}

void coordinator::cancel(base::digest const& identity) {
    flight_ptr f;
    std::optional<compile::worker_pool::ticket> ticket;
    {
        auto& mine = hand();
        std::lock_guard const lock{mine.mutex};
        auto const at = mine.flights.find(identity);
        if (at == mine.flights.end()) return;
        f = at->second;
        std::lock_guard const inner{f->mutex};
        if (f->asks == 0 || --f->asks > 0 || f->running || f->failed_at) return;
        f->withdrawn = true;
        ticket = f->ticket;
        // Whoever asks from now on starts afresh.
        mine.flights.erase(at);
    }
    if (ticket) pool_.cancel(*ticket);
}

bool coordinator::answer_from_store(flight_ptr const& f) {
    cuda::nvtx_range const range{"find", f->order.subject.name, f->target};
    auto found = look_up(store_, f->order.subject);
    if (!found.what) {
        // Looked up again after waiting for a lead: the miss was told, and allowed, the first time.
        if (f->missed.exchange(true)) return false;
        f->asked_further = store_.has_far();
        if (!f->asked_further) return !is_allowed(f, found);
        f->why = std::move(found);
        return false;
    }
    count_hit(found.from);
    book_.obtained(f->line(), f->target, {found.from, found.what->compile_ms, found.what->image.size()});
    finish(f, obtained{std::move(found.what), found.from, f->watch.ms(), std::move(found.detail)});
    return true;
}

// Emits why it was missed, and answers with an error where compiling cannot or must not happen.
bool coordinator::is_allowed(flight_ptr const& f, found_artifact const& missed) {
    auto const& subject = f->order.subject;
    auto why = f->describe(event_kind::missed);
    why.reason = missed.reason;
    why.detail = missed.detail;
    events_.emit(why);
    book_.missed(f->line(), f->target, missed.reason);

    // What is there and not served although it is the nearest says itself why.
    auto const nearest = [&] {
        return missed.reason == "headers-unknown" ? missed.detail : describe_nearest(store_, f->order);
    };
    auto const wanted = fmt::format("'{}' for {} {}", subject.name, f->target, name_of(subject.target.kind));
    if (!f->order.has_text()) {
        finish(f,
               fail(errc::not_found,
                    "{} was not shipped, and cannot be compiled: the program has images of this unit and not its text "
                    "(IMAGES_ONLY); nearest found: {}; build it for {} as well (ARCHS), or without IMAGES_ONLY",
                    wanted, nearest(), f->target));
        return false;
    }
    if (options_.jit == jit_policy::forbid) {
        finish(
            f,
            fail(errc::forbidden,
                 "{} would have to be compiled, and KILN_JIT=forbid does not allow it{}; asked: {}; nearest found: {}; "
                 "ship a bundle that has it ('kiln build --arch {}') or set KILN_JIT=allow",
                 wanted, options_.jit_doubt, describe_tiers(store_) + f->said, nearest(), f->target));
        return false;
    }
    if (subject.toolchain.empty()) {
        bool const links = std::holds_alternative<compile::link_job>(f->order.job.task);
        finish(
            f,
            fail(
                errc::not_found,
                "{} must be {} and no {} was found on this machine{}{}; asked: {}; nearest found: {}; install the CUDA "
                "toolkit or "
                "'pip install {}', set KILN_CUDA_PATH, or ship a bundle; 'kiln doctor' shows where it was looked for",
                wanted, links ? "linked" : "compiled", links ? "nvJitLink" : "NVRTC",
                f->order.unusable.empty() ? "" : " that can be used: ", f->order.unusable,
                describe_tiers(store_) + f->said, nearest(), links ? "nvidia-nvjitlink" : "nvidia-cuda-nvrtc"));
        return false;
    }
    if (options_.jit == jit_policy::warn) {
        auto warned = f->describe(event_kind::warned);
        warned.reason = "jit";
        warned.detail = fmt::format("compiling at run time ({}); nearest found: {}", missed.reason, nearest());
        events_.emit(warned);
    }
    return true;
}

void coordinator::step(flight_ptr const& f) noexcept {
    guarded(f, [&] { advance(f); });
}

void coordinator::advance(flight_ptr const& f) {
    if (is_withdrawn(*f)) return finish(f, withdrawn(f->order.subject));
    if (f->order.goes_around_the_cache()) {
        found_artifact missed;
        missed.reason = "uncached";
        missed.detail = "the unit has options that no key can have";
        f->missed = true;
        if (is_allowed(f, missed)) compile(f);
        return;
    }
    if (answer_from_store(f)) return;
    auto const now = base::clock::now();
    if (!f->leader) f->leader.emplace(options_.flight_deadline);
    auto lead = store_.try_lead(f->identity, now);
    switch (lead.outcome()) {
        case store::flight_outcome::leader:
            keep_lead(*f, std::move(lead));
            // Whoever led before may have published between our look and our lead.
            if (!answer_from_store(f)) look_further(f);
            return;
        case store::flight_outcome::unsupported: look_further(f); return;
        case store::flight_outcome::finished:
        case store::flight_outcome::timed_out: break;
    }
    if (!f->leader->at_work(lead, now)) {
        auto slow = f->describe(event_kind::fell_back);
        slow.reason = "flight-deadline";
        slow.detail = "another process leads and shows no sign of work; compiling here";
        events_.emit(slow);
        look_further(f);
        return;
    }
    auto const when = now + std::exchange(f->pause, std::min(f->pause * 2, longest_pause));
    if (!background().post_at(when, [this, f] { step(f); })) finish(f, background().why_not(f->order.subject.name));
}

void coordinator::compile(flight_ptr const& f) {
    auto how = priority::predicted;
    {
        std::lock_guard const lock{f->mutex};
        how = f->how;
    }
    auto const started = [this, f](int pid) {
        {
            std::lock_guard const lock{f->mutex};
            f->running = true;
        }
        auto taken = f->describe(event_kind::compiling);
        taken.value = pid;
        events_.emit(taken);
        f->compiling.begin("compile", f->order.subject.name, f->target);
        book_.compiling(f->line(), f->target);
    };
    // Not under the flight's lock: a pool that is going down answers at once, on this thread.
    auto const ticket =
        pool_.submit(f->order.job, how,
                     [this, f](result<compile::product> made) { guarded(f, [&] { complete(f, std::move(made)); }); },
                     {.started = started,
                      .headers = [f](compile::header_use what) { f->headers = what; },
                      .read = [f](std::vector<dependency> what) { f->read = std::move(what); }});
    {
        std::lock_guard const lock{f->mutex};
        f->ticket = ticket;
        if (f->how > how) pool_.raise(ticket, f->how);
    }
    if (is_withdrawn(*f)) pool_.cancel(ticket);
}

void coordinator::keep_lead(flight& f, store::flight mine) {
    std::lock_guard const lock{f.mutex};
    f.lead = std::move(mine);
}

// By whoever comes first: the program may end while a caller's thread is about to let go of it.
store::flight coordinator::take_lead(flight& f) {
    std::lock_guard const lock{f.mutex};
    return std::move(f.lead);
}

store::claim_ptr coordinator::take_claim(flight& f) {
    std::lock_guard const lock{f.mutex};
    return std::exchange(f.claim, nullptr);
}

void coordinator::complete(flight_ptr const& f, result<compile::product> made) {
    f->compiling.end();
    if (!made && made.error().code() == errc::cancelled) {
        if (!f->leaving_the_queue.load()) finish(f, std::move(made).error());
        return;
    }
    if (f->decided.exchange(true)) return;  // it came from afar meanwhile
    auto claim = take_claim(*f);
    if (!made) {
        if (claim) claim->cannot_publish("failed");
        finish(f, std::move(made).error());
        return;
    }
    auto a = *std::move(made);
    auto const took = static_cast<std::int64_t>(a.compile_ms * 1e6);
    if (claim) claim->made(std::chrono::nanoseconds{took});
    auto const typical = typical_compile_ns_.load(std::memory_order_relaxed);
    typical_compile_ns_.store(typical == 0 ? took : typical + (took - typical) / 4, std::memory_order_relaxed);
    auto entry = entry_for(f->order, a, options_.producer);

    bool const links = std::holds_alternative<compile::link_job>(f->order.job.task);
    auto done = f->describe(links ? event_kind::linked : event_kind::compiled);
    done.detail = entry->about.at.key.hex();
    done.key = entry->about.at.key.prefix();
    done.duration_ns = took;
    done.value = static_cast<std::int64_t>(a.image.size());
    done.reason = reason_of(f->headers);
    events_.emit(done);
    counts_.compiled.fetch_add(1, std::memory_order_relaxed);
    if (f->headers == compile::header_use::made) counts_.headers_made.fetch_add(1, std::memory_order_relaxed);
    if (f->headers == compile::header_use::reused) counts_.headers_reused.fetch_add(1, std::memory_order_relaxed);
    count([](store::statistics& more) { more.requests = more.compiled = 1; });

    bool const shared = a.compile_ms >= options_.least_shared_ms && is_shared(f->order);
    if (!shared && claim) claim->cannot_publish("not-shared");
    if (!f->order.goes_around_the_cache())
        store_.put(std::move(entry), {.leading = take_lead(*f),
                                      .under = std::move(claim),
                                      .how_far = shared ? store::sharing::everywhere : store::sharing::this_machine});
    book_.obtained(f->line(), f->target, {provenance::compiled, a.compile_ms, a.image.size()});
    finish(f, obtained{std::make_shared<artifact const>(std::move(a)), provenance::compiled, f->watch.ms(), {}});
}

// Whoever waits is answered, whether or not there is memory to tell others of it.
void coordinator::finish(flight_ptr const& f, result<obtained> with) noexcept {
    if (f->finished.exchange(true)) return;
    // What was withdrawn is nobody's request. What was found the store has counted, and what was compiled complete().
    bool const is_withdrawn = !with && with.error().code() == errc::cancelled;
    if (!is_withdrawn) counts_.requests.fetch_add(1, std::memory_order_relaxed);
    if (!with && !is_withdrawn) counts_.failed.fetch_add(1, std::memory_order_relaxed);
    (void)take_lead(*f);
    (void)take_claim(*f);
    {
        auto& mine = hand();
        std::lock_guard const lock{mine.mutex};
        auto const at = mine.flights.find(f->identity);
        if (at != mine.flights.end() && at->second == f) {
            bool const forget =
                with || is_withdrawn || options_.failure_memory.count() == 0 || f->order.goes_around_the_cache();
            if (forget) mine.flights.erase(at);
            else {
                std::lock_guard const inner{f->mutex};
                f->failed_at = base::clock::now();
                f->may_be_mended = may_be_mended(f->order, with.error());
            }
        }
    }
    if (!with) base::if_memory_allows([&] { tell_failure(*f, with.error()); });
    f->answer->finish(std::move(with));
}

void coordinator::tell_failure(flight const& f, error const& why) {
    bool const is_withdrawn = why.code() == errc::cancelled;
    if (!is_withdrawn) count([](store::statistics& more) { more.requests = more.failed = 1; });
    auto failed = f.describe(is_withdrawn ? event_kind::note : event_kind::compile_failed);
    failed.reason = name_of(why.code());
    failed.detail = why.message();
    events_.emit(failed);
    book_.failed(f.line(), f.target, why);
}

void coordinator::forget_failures() {
    auto& mine = hand();
    std::lock_guard const lock{mine.mutex};
    std::erase_if(mine.flights, [](auto const& at) {
        std::lock_guard const inner{at.second->mutex};
        return at.second->failed_at.has_value();
    });
}

void coordinator::abandon() noexcept {
    auto* const mine = hands_.peek();
    if (mine == nullptr) return;
    std::map<base::digest, flight_ptr> left;
    {
        std::lock_guard const lock{mine->mutex};
        left.swap(mine->flights);
    }
    for (auto const& [identity, f] : left) {
        (void)take_lead(*f);
        finish(f, shutting_down(f->order.subject));
    }
}

void coordinator::reject(store::address const& at) { store_.reject(at); }

void coordinator::count_blocked(std::int64_t ns, std::uint64_t callers) {
    counts_.blocked.fetch_add(callers, std::memory_order_relaxed);
    counts_.blocked_ns.fetch_add(ns, std::memory_order_relaxed);
    count([&](store::statistics& more) {
        more.blocked = callers;
        more.blocked_ms = static_cast<std::uint64_t>((ns + 500'000) / 1'000'000);
    });
}

void coordinator::tell_wait(order const& what, blocked_caller const& how) {
    count_blocked(how.ns, how.is_first ? 1 : 0);
    if (!how.is_first && !how.is_answered) return;
    auto const target_name = what.subject.target.arch.name();
    auto const miss = book_.miss_of(line_of(what), target_name);
    auto const key = how.key ? how.key : key_in_advance(what.subject);
    events_.emit({.kind = event_kind::waited,
                  .unit = what.subject.name,
                  .target = target_name,
                  .reason = how.is_answered ? "compile" : "deadline",
                  .detail = fmt::format("{}{}missed: {}", how.who, how.who.empty() ? "" : "; ",
                                        miss.empty() ? "not yet looked for" : miss),
                  .key = key ? key->prefix() : 0,
                  .request = identity_of(what.subject).prefix(),
                  .duration_ns = how.ns});
}

void coordinator::count_hit(provenance from) {
    auto& hits = from == provenance::memory  ? counts_.memory
                 : from == provenance::disk  ? counts_.disk
                 : from == provenance::fleet ? counts_.fleet
                                             : counts_.bundle;
    hits.fetch_add(1, std::memory_order_relaxed);
}

void coordinator::count_found(provenance from) {
    counts_.requests.fetch_add(1, std::memory_order_relaxed);
    count_hit(from);
}

engine_status coordinator::status() const {
    auto const load = [](auto const& n) { return n.load(std::memory_order_relaxed); };
    engine_status out;
    out.requests = load(counts_.requests);
    out.from_memory = load(counts_.memory);
    out.from_disk = load(counts_.disk);
    out.from_bundle = load(counts_.bundle);
    out.from_fleet = load(counts_.fleet);
    out.compiled = load(counts_.compiled);
    out.failed = load(counts_.failed);
    out.headers_made = load(counts_.headers_made);
    out.headers_reused = load(counts_.headers_reused);
    out.blocked = load(counts_.blocked);
    out.blocked_ms = static_cast<double>(load(counts_.blocked_ns)) * 1e-6;
    auto& mine = hand();
    std::lock_guard const lock{mine.mutex};
    for (auto const& [identity, f] : mine.flights) {
        std::lock_guard const inner{f->mutex};
        if (!f->failed_at) ++out.in_progress;
    }
    return out;
}

}  // namespace kiln::engine_detail
