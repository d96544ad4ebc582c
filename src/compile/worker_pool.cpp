// SPDX-License-Identifier: Apache-2.0
#include "compile/worker_pool.hpp"

#include "base/standard_streams.hpp"
#include "compile/host_resources.hpp"
#include "compile/options.hpp"
#include "compile/pool_core.hpp"
#include "compile/source_prefix.hpp"
#include "compile/viewpoint.hpp"

#include <atomic>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

namespace kiln::compile {

namespace {

constexpr int most_workers = 1024;

// A worker costs the host three descriptors; take at most half of what it may have.
int workers_by_descriptors() {
    ::rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= 6 * most_workers) return most_workers;
    return std::max(1, static_cast<int>(files.rlim_cur / 6));
}

int decide_capacity(pool_options const& options, host_resources const& host) {
    if (options.workers >= 0) return std::min(options.workers, most_workers);
    return std::min(fitting_workers(host), workers_by_descriptors());
}

// Workers have a working directory of their own, and descriptors. What has no name for others they refuse.
void make_absolute(std::string& directory) {
    if (auto name = name_for_others(directory)) directory = *std::move(name);
}

void make_absolute(job& work) {
    auto* const c = std::get_if<compile_job>(&work.task);
    if (c == nullptr) return;
    auto& u = c->unit;
    // Options that mean nothing are the compile's to tell.
    if (auto options = normalize(u.options)) {
        u.options = std::move(options->arguments);
        u.include_dirs.insert(u.include_dirs.end(), options->include_dirs.begin(), options->include_dirs.end());
    }
    make_absolute(u.directory);
    for (auto& directory : u.include_dirs) make_absolute(directory);
}

error cancelled(std::string const& name) { return fail(errc::cancelled, "{}: withdrawn before it was compiled", name); }

// With core->mutex held, which the new thread asks for first.
result<void> start(std::shared_ptr<pool_core> const& core) {
    KILN_TRY(auto made, bell::make());
    auto wake = std::make_shared<bell const>(std::move(made));
    KILN_TRY(core->thread, base::start_quiet_thread([core] { run_dispatcher(core); }));
    core->wake = std::move(wake);
    return {};
}

}  // namespace

result<bell> bell::make() {
    base::file_descriptor fd{base::above_standard_streams([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); })};
    if (!fd) return io_error("eventfd", errno);
    return bell{std::move(fd)};
}

void bell::ring() const noexcept {
    std::uint64_t const one = 1;
    // A ring that is lost is a job that nobody looks at.
    while (::write(fd_.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
}

void bell::clear() const noexcept {
    std::uint64_t rings = 0;
    [[maybe_unused]] auto const ignored = ::read(fd_.get(), &rings, sizeof rings);
}

int pool_core::capacity() {
    std::call_once(decided, [this] {
        // Who says how many needs to be told nothing of the machine, unless there is memory to share out.
        bool const asks = options.workers < 0 || (options.workers > 0 && options.precompiled > 0);
        auto const host = asks ? host_resources::read() : host_resources{};
        most_workers = decide_capacity(options, host);
        most_precompiled = fitting_precompiled(host, most_workers, {options.precompiled, options.worker_memory});
    });
    return most_workers;
}

std::uint64_t pool_core::precompiled() { return capacity() > 0 ? most_precompiled : 0; }

bool pool_core::sees(file_view const& here) {
    std::lock_guard const lock{mutex};
    if (stopping) return true;
    if (!seen_from) seen_from = here;
    if (*seen_from == here) return true;
    // chroot() is everybody's: the thread has moved with it. Where nobody tells, it has.
    auto const now = thread_id != 0 ? file_view::of_thread(thread_id) : *seen_from;
    return now == here || (thread_id != 0 && !now.is_known());
}

// A pool survives fork(): the child's first call finds that all cores have another owner, whose threads, sockets and perhaps locked
// mutexes are no use to it, and goes on with a new one. The old ones are left as they are; they are not the child's to clean up.
// Threads that see other files than the pool's have a core of their own.
struct worker_pool::state {
    struct holder {
        std::shared_ptr<pool_core> core;
        holder* next = nullptr;
    };
    std::atomic<holder*> first;
    std::atomic<ticket> last_ticket{0};

    explicit state(std::shared_ptr<pool_core> core) : first{new holder{std::move(core)}} {}

    [[nodiscard]] std::vector<std::shared_ptr<pool_core>> cores() const {
        std::vector<std::shared_ptr<pool_core>> out;
        for (auto const* at = first.load(std::memory_order_acquire); at != nullptr; at = at->next) {
            if (at->core->owner == ::getpid()) out.push_back(at->core);
        }
        return out;
    }
    // The first that will do, or a new one.
    template <class Predicate>
    [[nodiscard]] std::shared_ptr<pool_core> core_that(Predicate will_do) {
        auto* seen = first.load(std::memory_order_acquire);
        for (;;) {
            for (auto const* at = seen; at != nullptr; at = at->next) {
                if (at->core->owner == ::getpid() && will_do(*at->core)) return at->core;
            }
            auto const& old = *seen->core;
            std::unique_ptr<holder> fresh{new holder{std::make_shared<pool_core>(old.options, old.events), seen}};
            // It is this thread's before another can find it.
            (void)will_do(*fresh->core);
            if (first.compare_exchange_strong(seen, fresh.get(), std::memory_order_acq_rel))
                return fresh.release()->core;
        }
    }
    [[nodiscard]] std::shared_ptr<pool_core> core() {
        return core_that([](pool_core const&) { return true; });
    }
    [[nodiscard]] std::shared_ptr<pool_core> core_for(file_view const& here) {
        return core_that([&](pool_core& one) { return one.sees(here); });
    }
};

worker_pool::worker_pool(pool_options options, event_log& events) {
    state_ = std::make_unique<state>(std::make_shared<pool_core>(std::move(options), events));
}

worker_pool::~worker_pool() {
    stop();
    for (auto* at = state_->first.load(std::memory_order_acquire); at != nullptr;) {
        auto* const next = at->next;
        if (at->core->owner == ::getpid()) delete at;
        at = next;
    }
}

namespace {

void stop_core(pool_core& core) noexcept {
    {
        std::lock_guard const lock{core.mutex};
        core.stopping = true;
        if (core.wake) core.wake->ring();
    }
    if (!core.thread.joinable()) return;
    // The last completion may be what destroys the pool; its thread then ends by itself.
    if (core.thread.get_id() == std::this_thread::get_id()) core.thread.detach();
    else core.thread.join();
}

}  // namespace

void worker_pool::stop() noexcept {
    for (auto* at = state_->first.load(std::memory_order_acquire); at != nullptr; at = at->next) {
        if (at->core->owner == ::getpid()) stop_core(*at->core);
    }
}

worker_pool::ticket worker_pool::submit(job work, priority how, completion done, job_notices tell) {
    auto const core = state_->core_for(file_view::of_this_thread());
    make_absolute(work);
    auto const prefix =
        core->options.workers != 0 && core->options.precompiled > 0 ? prefix_of(work) : std::optional<base::digest>{};
    queued_job next{0, how, std::move(work), std::move(done), std::move(tell), prefix};
    auto enqueue = [&]() -> result<ticket> {
        std::lock_guard const lock{core->mutex};
        if (core->stopping) return cancelled(next.work.name());
        if (!core->wake) KILN_CHECK(start(core));
        auto const id = next.id = 1 + state_->last_ticket.fetch_add(1, std::memory_order_relaxed);
        core->queue.push(std::move(next));
        ++core->counters.submitted;
        core->wake->ring();
        return id;
    };
    auto accepted = enqueue();
    if (accepted) return *accepted;
    next.done(std::move(accepted).error());
    return 0;
}

void worker_pool::raise(ticket which, priority how) {
    for (auto const& core : state_->cores()) {
        std::lock_guard const lock{core->mutex};
        if (core->queue.raise(which, how)) return;
        if (how != priority::blocking || !core->wake) continue;
        core->waited_for.push_back(which);
        core->wake->ring();
    }
}

bool worker_pool::cancel(ticket which) {
    for (auto const& core : state_->cores()) {
        auto withdrawn = [&] {
            std::lock_guard const lock{core->mutex};
            return core->queue.take(which);
        }();
        if (!withdrawn) continue;
        core->count([](counters& c) { ++c.failed; });
        withdrawn->done(cancelled(withdrawn->work.name()));
        return true;
    }
    return false;
}

std::vector<worker_pool::worker_state> worker_pool::workers() const {
    auto const now = base::clock::now();
    std::vector<worker_state> out;
    for (auto const& core : state_->cores()) {
        std::lock_guard const lock{core->mutex};
        for (auto const& w : core->workers) {
            out.push_back(w.state);
            if (w.state.busy) out.back().busy_ns += std::chrono::nanoseconds{now - w.busy_since}.count();
        }
    }
    return out;
}

worker_pool::counters& worker_pool::counters::operator+=(counters const& more) noexcept {
    submitted += more.submitted, done += more.done, failed += more.failed, retried += more.retried;
    started += more.started, died += more.died, in_process += more.in_process, queued += more.queued;
    headers_made += more.headers_made, headers_reused += more.headers_reused;
    return *this;
}

worker_pool::counters worker_pool::count() const {
    counters out;
    for (auto const& core : state_->cores()) {
        std::lock_guard const lock{core->mutex};
        out += core->counters;
        out.queued += core->queue.size();
    }
    return out;
}

int worker_pool::capacity() const { return state_->core()->capacity(); }

}  // namespace kiln::compile
