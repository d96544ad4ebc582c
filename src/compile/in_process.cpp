// SPDX-License-Identifier: Apache-2.0
#include "compile/in_process.hpp"

#include "base/caught.hpp"
#include "base/clock.hpp"
#include "base/fork_guard.hpp"

#include <atomic>
#include <cstdlib>
#include <pthread.h>

namespace kiln::compile {

namespace {

// Compiles in this process, which exit() has to wait for.
constinit std::atomic<int> running{0};
constinit std::atomic<bool> is_ending{false};

void wait_for_compiles() {
    constexpr std::chrono::seconds patience{10};
    is_ending.store(true);
    auto const end = base::clock::now() + patience;
    while (running.load() > 0 && base::clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

// Its parent's compiles have no thread in a child.
[[maybe_unused]] int const forgotten_in_children = ::pthread_atfork(nullptr, nullptr, [] { running.store(0); });

struct running_compile {
    std::uint64_t const generation = base::fork_generation();
    running_compile() noexcept { running.fetch_add(1); }
    ~running_compile() {
        if (generation == base::fork_generation()) running.fetch_sub(1);
    }
    running_compile(running_compile const&) = delete;
    running_compile& operator=(running_compile const&) = delete;
};

result<product> run_guarded(job_runner const& run, job const& work) {
    try {
        return run(work);
    } catch (std::exception const&) {
        return base::caught_error(work.name());
    }
}

}  // namespace

result<void> in_process_runner::start(std::shared_ptr<job const> work) {
    // NVRTC registers exit functions while it compiles, and they take away what it uses; what is registered last runs first. So this is
    // registered anew for each: of the first compile of a process alone it comes too early.
    static_cast<void>(std::atexit(wait_for_compiles));
    auto holds = std::make_shared<running_compile>();
    if (is_ending.load()) return fail(errc::cancelled, "'{}': the program is ending", work->name());
    auto mine = std::make_shared<slot>();
    KILN_TRY(auto thread, base::start_quiet_thread([mine, work = std::move(work), run = run_, wake = wake_,
                                                    holds = std::move(holds)]() mutable {
                 auto outcome = run_guarded(run, *work);
                 holds.reset();
                 std::lock_guard const lock{mine->mutex};
                 mine->outcome = std::move(outcome);
                 wake->ring();
             }));
    thread.detach();
    slot_ = std::move(mine);
    return {};
}

std::optional<result<product>> in_process_runner::take() {
    if (!slot_) return std::nullopt;
    std::optional<result<product>> out;
    {
        std::lock_guard const lock{slot_->mutex};
        out = std::move(slot_->outcome);
    }
    if (out) slot_.reset();
    return out;
}

}  // namespace kiln::compile
