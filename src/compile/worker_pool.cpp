// SPDX-License-Identifier: Apache-2.0
#include "compile/worker_pool.hpp"

#include "compile/host_resources.hpp"
#include "compile/pool_core.hpp"
#include "compile/source_prefix.hpp"

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

// Workers have a working directory of their own.
void make_absolute(std::string& directory) {
    if (directory.empty() || directory.front() == '/') return;
    std::error_code why;
    auto const absolute = std::filesystem::absolute(directory, why);
    if (!why) directory = absolute.native();
}

// "-Idir", "-I dir" in two, "--include-path=dir" and "--include-path dir" in two.
void make_includes_absolute(std::vector<std::string>& options) {
    for (std::size_t i = 0; i < options.size(); ++i) {
        auto& option = options[i];
        bool const apart = option == "-I" || option == "--include-path";
        if (apart && i + 1 < options.size()) make_absolute(options[++i]);
        for (std::string_view const prefix : {"--include-path=", "-I=", "-I"}) {
            if (apart || !option.starts_with(prefix)) continue;
            auto directory = option.substr(prefix.size());
            make_absolute(directory);
            option = std::string{prefix} + directory;
            break;
        }
    }
}

void make_absolute(job& work) {
    auto* const c = std::get_if<compile_job>(&work.task);
    if (c == nullptr) return;
    make_absolute(c->unit.directory);
    for (auto& directory : c->unit.include_dirs) make_absolute(directory);
    make_includes_absolute(c->unit.options);
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
    base::file_descriptor fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
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

// A pool survives fork(): the child's first call finds that the core has another owner, whose thread, sockets and
// perhaps locked mutex are no use to it, and goes on with a new one. The old one is left as it is; it is not the child's
// to clean up.
struct worker_pool::state {
    struct holder {
        std::shared_ptr<pool_core> core;
    };
    std::atomic<holder*> current;

    explicit state(std::shared_ptr<pool_core> core) : current{new holder{std::move(core)}} {}

    [[nodiscard]] std::shared_ptr<pool_core> core() {
        auto* seen = current.load(std::memory_order_acquire);
        if (seen->core->owner == ::getpid()) return seen->core;
        auto const& old = *seen->core;
        auto* const fresh = new holder{std::make_shared<pool_core>(old.options, old.events)};
        if (current.compare_exchange_strong(seen, fresh, std::memory_order_acq_rel)) return fresh->core;
        delete fresh;
        return seen->core;
    }
};

worker_pool::worker_pool(pool_options options, event_log& events) {
    state_ = std::make_unique<state>(std::make_shared<pool_core>(std::move(options), events));
}

worker_pool::~worker_pool() {
    stop();
    auto* const held = state_->current.load(std::memory_order_acquire);
    if (held->core->owner == ::getpid()) delete held;
}

void worker_pool::stop() noexcept {
    auto* const held = state_->current.load(std::memory_order_acquire);
    auto& core = *held->core;
    if (core.owner != ::getpid()) return;
    {
        std::lock_guard const lock{core.mutex};
        core.stopping = true;
        if (core.wake) core.wake->ring();
    }
    if (core.thread.joinable()) {
        // The last completion may be what destroys the pool; its thread then ends by itself.
        if (core.thread.get_id() == std::this_thread::get_id()) core.thread.detach();
        else core.thread.join();
    }
}

worker_pool::ticket worker_pool::submit(job work, priority how, completion done, job_notices tell) {
    auto const core = state_->core();
    make_absolute(work);
    auto const prefix =
        core->options.workers != 0 && core->options.precompiled > 0 ? prefix_of(work) : std::optional<base::digest>{};
    queued_job next{0, how, std::move(work), std::move(done), std::move(tell), prefix};
    auto enqueue = [&]() -> result<ticket> {
        std::lock_guard const lock{core->mutex};
        if (core->stopping) return cancelled(next.work.name());
        if (!core->wake) KILN_CHECK(start(core));
        auto const id = next.id = ++core->last_ticket;
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
    auto const core = state_->core();
    std::lock_guard const lock{core->mutex};
    if (core->queue.raise(which, how) || how != priority::blocking || !core->wake) return;
    core->waited_for.push_back(which);
    core->wake->ring();
}

bool worker_pool::cancel(ticket which) {
    auto const core = state_->core();
    auto withdrawn = [&] {
        std::lock_guard const lock{core->mutex};
        return core->queue.take(which);
    }();
    if (!withdrawn) return false;
    core->count([](counters& c) { ++c.failed; });
    withdrawn->done(cancelled(withdrawn->work.name()));
    return true;
}

std::vector<worker_pool::worker_state> worker_pool::workers() const {
    auto const core = state_->core();
    auto const now = base::clock::now();
    std::lock_guard const lock{core->mutex};
    std::vector<worker_state> out;
    for (auto const& w : core->workers) {
        out.push_back(w.state);
        if (w.state.busy) out.back().busy_ns += std::chrono::nanoseconds{now - w.busy_since}.count();
    }
    return out;
}

worker_pool::counters worker_pool::count() const {
    auto const core = state_->core();
    std::lock_guard const lock{core->mutex};
    auto out = core->counters;
    out.queued = core->queue.size();
    return out;
}

int worker_pool::capacity() const { return state_->core()->capacity(); }

}  // namespace kiln::compile
