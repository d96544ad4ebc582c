// SPDX-License-Identifier: Apache-2.0
#include "engine/coordinator.hpp"

#include "engine/pack_verbs.hpp"

#include <algorithm>

namespace kiln::engine_detail {

namespace {

constexpr std::chrono::milliseconds first_pause{2};
constexpr std::chrono::milliseconds longest_pause{50};

error shutting_down(subject const& what) {
    return fail(errc::cancelled, "'{}': the engine is shutting down", what.name);
}

error withdrawn(subject const& what) { return fail(errc::cancelled, "'{}': the demand was withdrawn", what.name); }

event describe(event_kind kind, subject const& what) {
    return {.kind = kind, .unit = what.name, .target = what.target.arch.name(), .key = what.id.request.prefix()};
}

}  // namespace

std::shared_ptr<store::entry> entry_for(order const& what, kiln::artifact& a, std::string const& producer) {
    auto request = what.subject.id.request;
    if (auto const* c = std::get_if<compile::compile_job>(&what.job.task)) {
        if (auto const options = compile::normalize(c->unit.options))
            a.inputs = compile::describe_inputs(c->unit, *options);
        if (auto const id = compile::identify(c->unit, a.target, a.toolchain)) request = id->request;
    } else request = compile::identify(std::get<compile::link_job>(what.job.task), a.toolchain).request;
    auto const key = compile::seal(request, a.dependencies);
    a.key = key.hex();

    return entry_of(a, {.at = {what.subject.id.family, request, key}, .producer = producer, .licence = what.licence});
}

// One request in progress. `mutex` guards what several threads touch; the rest belongs to whoever runs the step.
struct coordinator::flight {
    explicit flight(engine_detail::order o)
        : order{std::move(o)}, answer{std::make_shared<pending<obtained>::state>()} {}

    engine_detail::order order;
    std::shared_ptr<pending<obtained>::state> answer;
    base::stopwatch watch;
    store::flight lead;
    bool missed = false;                      // the first look found nothing
    std::optional<base::time_point> give_up;  // when to stop waiting for another process
    std::chrono::milliseconds pause{first_pause};

    std::mutex mutex;
    priority how = priority::predicted;
    std::size_t asks = 0;    // not taken back
    bool running = false;    // a process has it
    bool withdrawn = false;  // by all who asked; no longer in the table
    std::optional<compile::worker_pool::ticket> ticket;
    std::optional<base::time_point> failed_at;
};

coordinator::coordinator(coordinator_options options, parts of)
    : options_{std::move(options)}, store_{of.kept}, pool_{of.pool}, events_{of.events}, book_{of.book} {}

coordinator::~coordinator() { background_.stop(); }

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

pending<obtained> coordinator::ask(order what, priority how) {
    counts_.requests.fetch_add(1, std::memory_order_relaxed);
    flight_ptr f;
    bool mine = false;
    {
        std::lock_guard const lock{mutex_};
        auto& slot = flights_[what.subject.id.request];
        // A failure is remembered for a moment, so that a thousand threads in a row do not compile it a thousand times.
        if (slot && failed_long_ago(*slot)) slot.reset();
        if (!slot) {
            slot = std::make_shared<flight>(std::move(what));
            mine = true;
        }
        f = slot;
        std::lock_guard const inner{f->mutex};
        ++f->asks;
    }
    raise(f, how);
    if (mine) {
        book_.asked(f->order.subject.name, f->order.subject.target.arch.name(), how);
        if (how == priority::blocking) advance(f);
        else if (!background_.post([this, f] { advance(f); })) finish(f, shutting_down(f->order.subject));
    }
    return pending<obtained>{f->answer};
}

coordinator::flight_ptr coordinator::find(base::digest const& request) const {
    std::lock_guard const lock{mutex_};
    auto const at = flights_.find(request);
    return at == flights_.end() ? nullptr : at->second;
}

void coordinator::raise(base::digest const& request, priority how) {
    if (auto const f = find(request)) raise(f, how);
}

void coordinator::raise(flight_ptr const& f, priority how) {
    std::lock_guard const lock{f->mutex};
    if (how <= f->how) return;
    f->how = how;
    book_.raised(f->order.subject.name, f->order.subject.target.arch.name(), how);
    if (f->ticket) pool_.raise(*f->ticket, how);
}

void coordinator::cancel(base::digest const& request) {
    flight_ptr f;
    std::optional<compile::worker_pool::ticket> ticket;
    {
        std::lock_guard const lock{mutex_};
        auto const at = flights_.find(request);
        if (at == flights_.end()) return;
        f = at->second;
        std::lock_guard const inner{f->mutex};
        if (f->asks == 0 || --f->asks > 0 || f->running || f->failed_at) return;
        f->withdrawn = true;
        ticket = f->ticket;
        // Whoever asks from now on starts afresh.
        flights_.erase(at);
    }
    if (ticket) pool_.cancel(*ticket);
}

bool coordinator::answer_from_store(flight_ptr const& f) {
    auto found = look_up(store_, f->order.subject);
    if (!found.what) {
        // Looked up again after waiting for a lead: the miss was told, and allowed, the first time.
        if (std::exchange(f->missed, true)) return false;
        return !is_allowed(f, found);
    }
    count_hit(found.from);
    book_.obtained(f->order.subject.name, f->order.subject.target.arch.name(),
                   {found.from, found.what->compile_ms, found.what->image.size()});
    finish(f, obtained{std::move(found.what), found.from, f->watch.ms(), std::move(found.detail)});
    return true;
}

// Emits why it was missed, and answers with an error where compiling cannot or must not happen.
bool coordinator::is_allowed(flight_ptr const& f, found_artifact const& missed) {
    auto const& what = f->order.subject;
    auto why = describe(event_kind::missed, what);
    why.reason = missed.reason;
    why.detail = missed.detail;
    events_.emit(why);
    book_.missed(what.name, what.target.arch.name(), missed.reason);

    auto const nearest = missed.nearest.empty() ? std::string{"nothing of this unit"} : missed.nearest;
    auto const wanted = fmt::format("'{}' for {} {}", what.name, what.target.arch.name(), name_of(what.target.kind));
    if (options_.jit == jit_policy::forbid) {
        finish(
            f,
            fail(errc::forbidden,
                 "{} would have to be compiled, and KILN_JIT=forbid does not allow it; asked: {}; nearest found: {}; "
                 "ship a bundle that has it ('kiln build --arch {}') or set KILN_JIT=allow",
                 wanted, describe_tiers(store_), nearest, what.target.arch.name()));
        return false;
    }
    if (what.toolchain.empty()) {
        bool const links = std::holds_alternative<compile::link_job>(f->order.job.task);
        finish(
            f,
            fail(errc::not_found,
                 "{} must be {} and no {} was found on this machine; asked: {}; nearest found: {}; install the CUDA "
                 "toolkit or "
                 "'pip install {}', set KILN_CUDA_PATH, or ship a bundle; 'kiln doctor' shows where it was looked for",
                 wanted, links ? "linked" : "compiled", links ? "nvJitLink" : "NVRTC", describe_tiers(store_), nearest,
                 links ? "nvidia-nvjitlink" : "nvidia-cuda-nvrtc"));
        return false;
    }
    if (options_.jit == jit_policy::warn) {
        auto warned = describe(event_kind::warned, what);
        warned.reason = "jit";
        warned.detail = fmt::format("compiling at run time ({}); nearest found: {}", missed.reason, nearest);
        events_.emit(warned);
    }
    return true;
}

void coordinator::advance(flight_ptr const& f) {
    if (is_withdrawn(*f)) return finish(f, withdrawn(f->order.subject));
    if (answer_from_store(f)) return;
    auto const now = base::clock::now();
    if (!f->give_up) f->give_up = now + options_.flight_deadline;
    auto lead = store_.try_lead(f->order.subject.id.request, now);
    switch (lead.outcome()) {
        case store::flight_outcome::leader:
            f->lead = std::move(lead);
            // Whoever led before may have published between our look and our lead.
            if (!answer_from_store(f)) compile(f);
            return;
        case store::flight_outcome::unsupported: compile(f); return;
        case store::flight_outcome::finished:
        case store::flight_outcome::timed_out: break;
    }
    if (now >= *f->give_up) {
        auto slow = describe(event_kind::fell_back, f->order.subject);
        slow.reason = "flight-deadline";
        slow.detail = "another process compiles this and does not finish; compiling here";
        events_.emit(slow);
        compile(f);
        return;
    }
    background_.post_at(now + f->pause, [this, f] { advance(f); });
    f->pause = std::min(f->pause * 2, longest_pause);
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
        auto taken = describe(event_kind::compiling, f->order.subject);
        taken.value = pid;
        events_.emit(taken);
        book_.compiling(f->order.subject.name, f->order.subject.target.arch.name());
    };
    // Not under the flight's lock: a pool that is going down answers at once, on this thread.
    auto const ticket = pool_.submit(
        f->order.job, how, [this, f](result<compile::product> made) { complete(f, std::move(made)); }, started);
    {
        std::lock_guard const lock{f->mutex};
        f->ticket = ticket;
        if (f->how > how) pool_.raise(ticket, f->how);
    }
    if (is_withdrawn(*f)) pool_.cancel(ticket);
}

void coordinator::complete(flight_ptr const& f, result<compile::product> made) {
    auto const& what = f->order.subject;
    if (!made && made.error().code() == errc::cancelled) return finish(f, std::move(made).error());
    if (!made) {
        auto failed = describe(event_kind::compile_failed, what);
        failed.reason = name_of(made.error().code());
        failed.detail = made.error().message();
        events_.emit(failed);
        f->lead.release();
        finish(f, std::move(made).error());
        return;
    }
    auto a = *std::move(made);
    auto entry = entry_for(f->order, a, options_.producer);

    auto done = describe(
        std::holds_alternative<compile::link_job>(f->order.job.task) ? event_kind::linked : event_kind::compiled, what);
    done.detail = entry->about.at.key.hex();
    done.duration_ns = static_cast<std::int64_t>(a.compile_ms * 1e6);
    done.value = static_cast<std::int64_t>(a.image.size());
    events_.emit(done);
    counts_.compiled.fetch_add(1, std::memory_order_relaxed);
    count([](store::statistics& more) { more.compiled = 1; });

    store_.put(std::move(entry), std::move(f->lead));
    book_.obtained(what.name, what.target.arch.name(), {provenance::compiled, a.compile_ms, a.image.size()});
    finish(f, obtained{std::make_shared<artifact const>(std::move(a)), provenance::compiled, f->watch.ms(), {}});
}

void coordinator::finish(flight_ptr const& f, result<obtained> with) {
    count([](store::statistics& more) { more.requests = 1; });
    f->lead.release();
    {
        std::lock_guard const lock{mutex_};
        auto const at = flights_.find(f->order.subject.id.request);
        if (at != flights_.end() && at->second == f) {
            bool const forget = with || with.error().code() == errc::cancelled || options_.failure_memory.count() == 0;
            if (forget) flights_.erase(at);
            else {
                std::lock_guard const inner{f->mutex};
                f->failed_at = base::clock::now();
            }
        }
    }
    if (!with) {
        counts_.failed.fetch_add(1, std::memory_order_relaxed);
        book_.failed(f->order.subject.name, f->order.subject.target.arch.name(), with.error());
    }
    f->answer->finish(std::move(with));
}

void coordinator::forget_failures() {
    std::lock_guard const lock{mutex_};
    std::erase_if(flights_, [](auto const& at) {
        std::lock_guard const inner{at.second->mutex};
        return at.second->failed_at.has_value();
    });
}

void coordinator::abandon() noexcept {
    std::vector<flight_ptr> left;
    {
        std::lock_guard const lock{mutex_};
        for (auto const& [request, f] : flights_) left.push_back(f);
    }
    for (auto const& f : left) {
        f->lead.release();
        if (!pending<obtained>{f->answer}.ready()) finish(f, shutting_down(f->order.subject));
    }
}

void coordinator::reject(store::address const& at) { store_.reject(at); }

void coordinator::count_blocked(std::int64_t ns) {
    counts_.blocked.fetch_add(1, std::memory_order_relaxed);
    counts_.blocked_ns.fetch_add(ns, std::memory_order_relaxed);
    count([&](store::statistics& more) {
        more.blocked = 1;
        more.blocked_ms = static_cast<std::uint64_t>((ns + 500'000) / 1'000'000);
    });
}

void coordinator::count_hit(provenance from) {
    auto& hits = from == provenance::memory ? counts_.memory : from == provenance::disk ? counts_.disk : counts_.bundle;
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
    out.compiled = load(counts_.compiled);
    out.failed = load(counts_.failed);
    out.blocked = load(counts_.blocked);
    out.blocked_ms = static_cast<double>(load(counts_.blocked_ns)) * 1e-6;
    std::lock_guard const lock{mutex_};
    for (auto const& [request, f] : flights_) {
        std::lock_guard const inner{f->mutex};
        if (!f->failed_at) ++out.in_progress;
    }
    return out;
}

}  // namespace kiln::engine_detail
