// SPDX-License-Identifier: Apache-2.0
//
// The loop, and the life of workers: starting -> idle <-> busy -> dying -> gone. A worker leaves the list only when it
// has been reaped. What becomes of jobs is in dispatcher_jobs.cpp.
#include "compile/dispatcher.hpp"

#include "base/caught.hpp"
#include "compile/host_resources.hpp"

#include <cerrno>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::compile {

namespace {

using namespace std::chrono_literals;

constexpr auto reap_interval = 5ms;  // where there are no pidfds to wait for
constexpr auto shut_down_timeout = 20ms;
constexpr std::chrono::duration<int, std::milli> pause_without_memory{10};

// Their working directory is the root, whatever the program's is.
viewpoint viewpoint_of_workers() noexcept { return viewpoint::of_this_thread("/"); }

::timespec to_timespec(std::chrono::nanoseconds span) {
    auto const ns = std::max<std::int64_t>(0, span.count());
    return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

void run_dispatcher(std::shared_ptr<pool_core> core) {
    std::shared_ptr<bell const> wake;
    {
        std::lock_guard const lock{core->mutex};
        wake = core->wake;
        core->thread_id = static_cast<::pid_t>(::syscall(SYS_gettid));
    }
    std::optional<dispatcher> here;
    while (!here) {
        try {
            here.emplace(*core, wake);
        } catch (std::exception const&) {
            // Nobody else could catch here. There may be memory again in a moment.
            ::poll(nullptr, 0, pause_without_memory.count());
            std::lock_guard const lock{core->mutex};
            if (core->stopping) return;
        }
    }
    here->run();
}

dispatcher::dispatcher(pool_core& core, std::shared_ptr<bell const> wake)
    : core_{core},
      wake_{std::move(wake)},
      here_{core.options.in_process, wake_},
      limit_{core.capacity()},
      oom_kills_{oom_kills()} {}

void dispatcher::run() {
    auto const stopping = [this] {
        std::lock_guard const lock{core_.mutex};
        return core_.stopping;
    };
    while (!stopping()) {
        try {
            turn();
        } catch (std::exception const&) {
            // Nobody else could catch here. What was in hand has answered as it went; there may be memory again in a moment.
            ::poll(nullptr, 0, pause_without_memory.count());
        }
    }
    base::if_memory_allows([&] { shut_down(); });
}

void dispatcher::turn() {
    auto const now = base::clock::now();
    bury(now);
    if (auto outcome = here_.take()) {
        auto finished = std::move(*here_job_);
        here_job_.reset();
        finish(finished, *std::move(outcome));
    }
    hear_who_waits();
    expire(now);
    retire_strangers();
    start_workers(now);
    assign(now);
    run_here(now);
    publish();
    wait(now);
}

int dispatcher::count(phase where) const noexcept {
    return static_cast<int>(std::ranges::count(workers_, where, &worker::where));
}

int dispatcher::count_fresh() const noexcept {
    return static_cast<int>(std::ranges::count_if(workers_, [](worker const& w) {
        return w.where == phase::starting || (w.where == phase::idle && w.jobs_done == 0);
    }));
}

int dispatcher::count_stillborn() const noexcept {
    return static_cast<int>(std::ranges::count_if(
        workers_, [](worker const& w) { return w.where == phase::dying && !w.greeted && w.end_reason.empty(); }));
}

int dispatcher::count_alive() const noexcept { return static_cast<int>(workers_.size()) - count(phase::dying); }

void dispatcher::expire(base::time_point now) {
    int over = count_alive() - limit_.at(now);
    int without_room = count_without_room();
    for (auto& w : workers_) {
        if (w.where == phase::starting && now - w.since >= core_.options.start_timeout) {
            auto const why =
                fmt::format("{} said nothing for {} ms", program_.native(), core_.options.start_timeout.count());
            trouble_.give_up(now, why);
            end(w, "hung", why);
        } else if (w.where == phase::idle && (over-- > 0 || now - w.since >= core_.options.idle_timeout)) {
            end(w, "retired");
        } else if (w.where == phase::busy && now >= w.work->left.next_look()) {
            look_after(w, now);
        } else if (w.where == phase::busy && is_kept_waiting(w) && now >= w.work->had.next_look()) {
            begin_anew_if_starved(w, now);
        } else if (w.where == phase::busy && could_make_room(w)) {
            if (without_room <= 0) w.work->had = {};
            else if (now >= w.work->had.next_look() && makes_room_if_starved(w, now)) --without_room;
        }
    }
}

void dispatcher::look_after(worker& w, base::time_point now) {
    auto const how = w.work->left.exhausted(now, w.process.time_had());
    if (!how) return;
    auto said = fmt::format("{}: {}", w.work->work->name(), *how);
    auto job = take_job(w, "hung", std::move(said));
    came_to_grief(std::move(job), mishap::hung, *how, w.process.last_words());
}

void dispatcher::hear_who_waits() {
    std::vector<worker_pool::ticket> raised;
    {
        std::lock_guard const lock{core_.mutex};
        raised.swap(core_.waited_for);
        // It may be back in the queue by now.
        for (auto const id : raised) core_.queue.raise(id, priority::blocking);
    }
    auto const hear = [&](active_job& j) {
        if (std::ranges::find(raised, j.id) != raised.end()) j.how = priority::blocking;
    };
    for (auto& w : workers_) {
        if (w.work) hear(*w.work);
    }
    std::ranges::for_each(retries_, hear);
}

void dispatcher::begin_anew_if_starved(worker& w, base::time_point now) {
    if (!w.work->had.seen(now, w.process.time_had()) || trouble_.resting(now)) return;
    auto said = fmt::format("{}: somebody waits for it, and others left it no time", w.work->work->name());
    retries_.push_back(take_job(w, "retired", std::move(said)));
}

int dispatcher::count_without_room() const {
    int const ready = count(phase::idle) + count(phase::starting) + count(phase::dying);
    std::lock_guard const lock{core_.mutex};
    return core_.queue.count_blocking(core_.most_workers) - ready;
}

// Its job waits in the queue for its turn, as if it had not begun.
bool dispatcher::makes_room_if_starved(worker& w, base::time_point now) {
    if (!w.work->had.seen(now, w.process.time_had()) || trouble_.resting(now)) return false;
    auto said = fmt::format("{}: somebody waits for another, and others left it no time", w.work->work->name());
    auto job = take_job(w, "retired", std::move(said));
    queued_job again{job.id, job.how, *job.work, std::move(job.done), std::move(job.tell), job.prefix};
    std::lock_guard const lock{core_.mutex};
    core_.queue.push(std::move(again));
    return true;
}

// As many at once as there are jobs to take them, within the limit. A retry wants a worker that has done nothing yet; if
// there is no room for one, an idle used worker makes it.
void dispatcher::start_workers(base::time_point now) {
    if (core_.capacity() == 0 || trouble_.resting(now)) return;
    int const retries = static_cast<int>(retries_.size());
    int const jobs = static_cast<int>(queued()) + retries;
    int const ready = count(phase::idle) + count(phase::starting);
    int const wanted_fresh = std::max(0, retries - count_fresh());
    int const wanted = std::max(wanted_fresh, jobs - ready);
    if (wanted <= 0) return;
    auto const room_left = [&] { return limit_.at(now) - count_alive() - count_stillborn(); };
    int room = room_left();
    if (room < wanted_fresh) {
        retire_stale(wanted_fresh - std::max(0, room));
        room = room_left();
    }
    for (int i = 0; i < std::min(wanted, room); ++i) {
        if (auto started = start_worker(now); !started) {
            trouble_.give_up(now, started.error().message());
            program_.clear();
            return;
        }
    }
}

void dispatcher::retire_stale(int most) {
    for (auto& w : workers_) {
        if (most > 0 && w.where == phase::idle && w.jobs_done > 0) {
            end(w, "retired");
            --most;
        }
    }
}

// Workers that were started before the program changed its root or its user read what it cannot see, and what it may not.
void dispatcher::retire_strangers() {
    if (workers_.empty() || (retries_.empty() && queued() == 0)) return;
    auto const here = viewpoint_of_workers();
    for (auto& w : workers_) {
        bool const waits = w.where == phase::idle || w.where == phase::starting;
        if (waits && w.seen_from != here) end(w, "retired", "the program has another user, root or mounts now");
    }
}

result<void> dispatcher::start_worker(base::time_point now) {
    if (program_.empty()) {
        KILN_TRY(program_, worker_pool::find_worker(core_.options.worker));
    }
    worker_limits const limits{core_.options.worker_memory, static_cast<std::uint32_t>(core_.owner),
                               core_.precompiled()};
    auto const seen_from = viewpoint_of_workers();
    KILN_TRY(auto process, worker_process::start(program_, limits));
    core_.events.emit({.kind = event_kind::worker_started, .value = process.pid()});
    core_.count([](auto& c) { ++c.started; });
    workers_.push_back({.process = std::move(process), .seen_from = seen_from, .where = phase::starting, .since = now});
    if (viewpoint_of_workers() != seen_from) end(workers_.back(), "retired", "the program changed as it was started");
    return {};
}

void dispatcher::end(worker& w, std::string_view reason, std::string detail) {
    w.process.kill();
    w.where = phase::dying;
    w.end_reason = reason;
    w.end_detail = std::move(detail);
}

// A worker is busy with a job, or ends: nothing may be thrown between.
dispatcher::active_job dispatcher::take_job(worker& w, std::string_view reason, std::string detail) noexcept {
    end(w, reason, std::move(detail));
    auto out = std::move(*w.work);
    w.work.reset();
    return out;
}

void dispatcher::lost_stream(worker& w, std::string detail) {
    if (w.where == phase::dying) return;
    w.process.kill();
    w.where = phase::dying;
    w.end_detail = std::move(detail);
}

void dispatcher::hear(worker& w) {
    using stream = worker_process::stream;
    auto state = stream::more;
    while (state == stream::more) {
        auto got = w.process.receive();
        if (!got) return lost_stream(w, got.error().message());
        state = *got;
        while (w.where != phase::dying) {
            auto f = w.process.next_frame();
            if (!f) return lost_stream(w, f.error().message());
            if (!*f) break;
            if (auto understood = understand(w, **f); !understood) return lost_stream(w, understood.error().message());
        }
        // Ends, however much a worker talks: frames are bounded and one out of turn is its last.
        if (w.where == phase::dying) return;
    }
    if (state == stream::ended) lost_stream(w, {});
}

result<void> dispatcher::understand(worker& w, frame const& f) {
    if (f.kind == frame_kind::hello && w.where == phase::starting) return welcome(w, f);
    if (w.where != phase::busy || (f.kind != frame_kind::reply && f.kind != frame_kind::failure)) {
        return fail(errc::corrupt, "worker protocol: a frame out of turn");
    }
    KILN_TRY(auto const body, decode_numbered(f.body));
    if (body.id != w.work->id) return fail(errc::corrupt, "worker protocol: an answer nobody asked for");
    if (f.kind == frame_kind::reply) {
        KILN_TRY(auto made, decode_artifact(body.payload));
        KILN_CHECK(core_.options.check(*w.work->work, made));
        settle(w, std::move(made), body.headers);
    } else {
        auto failed = decode_failure(body.payload);
        if (failed.read && w.work->tell.read) w.work->tell.read(*std::move(failed.read));
        settle(w, std::move(failed.why), body.headers);
    }
    return {};
}

result<void> dispatcher::welcome(worker& w, frame const& f) {
    KILN_TRY(auto const theirs, decode_hello(f.body));
    auto const now = base::clock::now();
    if (auto same = check_protocol(theirs); !same) {
        trouble_.give_up(now, same.error().message());
        program_.clear();
        end(w, "retired", same.error().message());
        return {};
    }
    trouble_.succeeded();
    w.greeted = true;
    w.where = phase::idle;
    w.since = now;
    return {};
}

void dispatcher::bury(base::time_point now) {
    for (auto at = workers_.begin(); at != workers_.end();) {
        auto const how = at->where == phase::dying ? at->process.reap() : std::nullopt;
        // A job that it had goes with it, if there is no memory to try it again.
        if (how) base::if_memory_allows([&] { mourn(*at, *how, now); });
        at = how ? workers_.erase(at) : std::next(at);
    }
}

mishap dispatcher::classify(child_end const& how, std::string_view words) {
    if (how.from_outside()) {
        auto const kills = oom_kills();
        bool const by_kernel = kills && oom_kills_ && *kills > *oom_kills_;
        oom_kills_ = kills;
        return by_kernel ? mishap::memory : mishap::killed;
    }
    // A compiler that cannot handle the lack of memory says so and aborts.
    bool const short_of_memory = words.find("bad_alloc") != words.npos || words.find("ut of memory") != words.npos;
    return short_of_memory ? mishap::memory : mishap::crashed;
}

void dispatcher::mourn(worker& w, child_end const& how, base::time_point now) {
    auto const words = w.process.last_words();
    bool const by_us = !w.end_reason.empty();
    bool const spoke_nonsense = !by_us && !w.end_detail.empty();
    auto const what = by_us || spoke_nonsense ? mishap::crashed : classify(how, words);
    // Nobody needs it any more: that it is killed for want of a gentler way is no news, and reads like a shortage of memory.
    bool const let_go = w.end_reason == "retired" || w.end_reason == "parent";
    auto const detail = !w.end_detail.empty() ? w.end_detail : let_go ? std::string{"let go"} : how.describe();
    core_.events.emit({.kind = event_kind::worker_ended,
                       .unit = w.work ? std::string_view{w.work->work->name()} : std::string_view{},
                       .reason = by_us                    ? w.end_reason
                                 : what == mishap::memory ? "memory"
                                                          : "crashed",
                       .detail = detail,
                       .value = w.process.pid()});
    if (!let_go) core_.count([](auto& c) { ++c.died; });
    if (!by_us && !w.greeted) {
        auto const last_line = words.substr(0, words.find('\n'));
        trouble_.ended_early(w.since, now,
                             fmt::format("{} {} before it said hello{}{}", program_.native(), detail,
                                         last_line.empty() ? "" : ": ", last_line));
    }
    if (w.work) came_to_grief(std::move(*w.work), what, detail, words);
}

void dispatcher::publish() {
    std::vector<worker_snapshot> seen;
    for (auto const& w : workers_) {
        if (w.where == phase::dying) continue;
        bool const busy = w.where == phase::busy;
        seen.push_back(
            {{w.process.pid(), busy, busy ? w.work->work->name() : std::string{}, w.jobs_done, w.busy_ns}, w.since});
    }
    std::lock_guard const lock{core_.mutex};
    core_.workers = std::move(seen);
}

base::time_point dispatcher::next_wake(base::time_point now) const {
    auto wake = base::time_point::max();
    bool const is_room_wanted = count_without_room() > 0;
    auto sooner = [&](base::time_point t) { wake = std::min(wake, t); };
    for (auto const& w : workers_) {
        switch (w.where) {
            case phase::starting: sooner(w.since + core_.options.start_timeout); break;
            case phase::idle: sooner(w.since + core_.options.idle_timeout); break;
            case phase::busy:
                sooner(w.work->left.next_look());
                if (is_kept_waiting(w) || (is_room_wanted && could_make_room(w)))
                    sooner(std::max(now, w.work->had.next_look()));
                break;
            case phase::dying:
                if (w.process.pidfd() < 0) sooner(now + reap_interval);
                break;
        }
    }
    if (!retries_.empty() || queued() > 0) {
        if (limit_.next_change() > now) sooner(limit_.next_change());
        if (trouble_.resting(now)) sooner(trouble_.until());
    }
    return wake;
}

void dispatcher::wait(base::time_point now) {
    polled_.assign(1, {wake_->fd(), POLLIN, 0});
    for (auto const& w : workers_) {
        auto const interest = static_cast<short>(POLLIN | (w.process.has_unsent() ? POLLOUT : 0));
        polled_.push_back({w.where == phase::dying ? -1 : w.process.socket(), interest, 0});
        polled_.push_back({w.process.pidfd(), POLLIN, 0});
    }
    auto const wake = next_wake(now);
    auto const timeout = to_timespec(wake - base::clock::now());
    int const ready =
        ::ppoll(polled_.data(), polled_.size(), wake == base::time_point::max() ? nullptr : &timeout, nullptr);
    excuse_lateness(wake);
    if (ready > 0) listen();
}

void dispatcher::listen() {
    if (polled_[0].revents != 0) wake_->clear();
    auto entry = polled_.begin() + 1;
    // Completions called from here may submit, but nothing here changes the list itself.
    for (auto& w : workers_) {
        auto const on_socket = (entry++)->revents;
        bool const ended = (entry++)->revents != 0;
        if ((on_socket & POLLOUT) != 0 && w.where != phase::dying) {
            if (auto sent = w.process.flush(); !sent) lost_stream(w, {});
        }
        if ((on_socket & ~POLLOUT) != 0 || (ended && w.where != phase::dying)) {
            try {
                hear(w);
            } catch (std::bad_alloc const&) {
                lost_stream(w, "out of memory");  // what it said is lost, and it will not say it again
            }
        }
        if (ended) lost_stream(w, {});
    }
}

// If this whole process was stopped (a debugger, the terminal's suspend key, a frozen container), so probably were its
// workers: the time does not count against their deadlines.
void dispatcher::excuse_lateness(base::time_point planned) {
    if (planned == base::time_point::max()) return;
    auto const late = base::clock::now() - planned;
    if (late < 1s) return;
    for (auto& w : workers_) {
        if (w.where == phase::busy) w.work->left.excuse(late);
        if (w.where == phase::starting) w.since += late;
    }
}

void dispatcher::shut_down() {
    for (auto& w : workers_) orphan(w);
    auto const until = base::clock::now() + shut_down_timeout;
    for (;;) {
        auto const now = base::clock::now();
        bury(now);
        if (workers_.empty() || now >= until) break;
        ::pollfd first{workers_.front().process.pidfd(), POLLIN, 0};
        auto const timeout = to_timespec(first.fd < 0 ? reap_interval / 5 : until - now);
        ::ppoll(&first, 1, &timeout, nullptr);
    }
    base::if_memory_allows([&] { leave_to_undertaker(); });
    base::if_memory_allows([&] { publish(); });
    close_jobs();
}

void dispatcher::orphan(worker& w) noexcept {
    base::if_memory_allows([&] {
        if (w.work) retries_.push_back(std::move(*w.work));
    });
    w.work.reset();
    if (w.where != phase::dying) end(w, "parent");
}

void dispatcher::close_jobs() {
    auto const close = [&](active_job& j) {
        base::if_memory_allows([&] {
            finish(j, fail(errc::cancelled, "{}: the worker pool was closed before it was compiled", j.work->name()));
        });
    };
    if (here_job_) close(*here_job_);
    for (auto& j : retries_) close(j);
    for (bool more = true; more;) {
        // One that there is no memory to look at has answered as it went.
        base::if_memory_allows([&] {
            auto j = next_queued();
            more = j.has_value();
            if (j) close(*j);
        });
    }
}

// Killed processes go in microseconds, but theirs is a low priority and the machine may be busy. Nobody waits for those
// that take longer; a thread of their own keeps them from staying zombies in a host that lives on.
void dispatcher::leave_to_undertaker() {
    if (workers_.empty()) return;
    std::vector<pid_t> late;
    for (auto& w : workers_) {
        late.push_back(w.process.pid());
        mourn(w, {}, {});
    }
    workers_.clear();
    auto undertaker = base::start_quiet_thread([late = std::move(late)] {
        for (auto const pid : late) {
            while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
            }
        }
    });
    if (undertaker) undertaker->detach();
}

}  // namespace kiln::compile
