// SPDX-License-Identifier: Apache-2.0
#include "compile/program_end.hpp"

#include "base/clock.hpp"
#include "base/fork_guard.hpp"
#include "base/load_library.hpp"
#include "compile/import_slots.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <pthread.h>
#include <set>
#include <thread>

// What atexit() and the static objects of a library call, which no header of libc declares.
extern "C" int __cxa_atexit(void (*function)(void*), void* argument, void* owner) noexcept;

namespace kiln::compile {

namespace {

constinit std::atomic<int> running{0};
constinit std::atomic<int> inside{0};  // of them, those that have entered a compiler
constinit std::atomic<bool> is_left_locked{false};
constinit std::atomic<bool> is_ending{false};
constinit thread_local compile_in_program* here = nullptr;

constexpr std::chrono::seconds longest_wait{10};
constinit std::atomic<base::clock::rep> end_of_patience{
    0};  // one for thousands of exit functions: whoever waits first decides

int own_compiles() noexcept { return here == nullptr ? 0 : 1; }

bool is_compiling_elsewhere() noexcept { return running.load() > own_compiles(); }

void wait_for_compiles() noexcept {
    is_ending.store(true);
    if (!is_compiling_elsewhere()) return;
    auto const own = (base::clock::now() + longest_wait).time_since_epoch().count();
    base::clock::rep end = 0;
    if (end_of_patience.compare_exchange_strong(end, own)) end = own;
    base::time_point const until{base::clock::duration{end}};
    while (is_compiling_elsewhere() && base::clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

void wait_for_compiles_at_exit() noexcept { static_cast<void>(std::atexit(wait_for_compiles)); }

// Before anything is loaded. What is registered later runs earlier, and a child inherits it.
void wait_for_compiles_once_at_exit() noexcept {
    static constinit std::atomic<bool> is_registered{false};
    if (!is_registered.exchange(true)) wait_for_compiles_at_exit();
}

struct exit_function {
    void (*function)(void*);
    void* argument;
};

void run_after_compiles(void* what) {
    std::unique_ptr<exit_function> const call{static_cast<exit_function*>(what)};
    wait_for_compiles();
    // After that time what the compiler is using is left to the end of the process. So it is in a child whose parent was inside: it would
    // wait for a lock that nobody opens.
    if (!is_compiling_elsewhere() && !is_left_locked.load()) call->function(call->argument);
}

int hooked_atexit(void (*function)(void*), void* argument, void* owner) {
    std::unique_ptr<exit_function> call{new (std::nothrow) exit_function{function, argument}};
    if (call == nullptr) return __cxa_atexit(function, argument, owner);
    auto const status = __cxa_atexit(run_after_compiles, call.get(), owner);
    if (status == 0) static_cast<void>(call.release());
    return status;
}

// NVRTC and nvJitLink stay open for ever.
struct compilers_seen {
    base::forkable_mutex mutex;
    std::set<void*> all;
};
constinit base::made_once<compilers_seen> seen;

auto exit_slots() noexcept { return std::array{import_slot{"__cxa_atexit", reinterpret_cast<void*>(&hooked_atexit)}}; }

void see_exit_functions(ElfW(Addr) base, ElfW(Dyn) const* dynamic) noexcept {
    auto slots = exit_slots();
    point_imports(base, dynamic, slots);
}

// False: its calls are not seen, and this is done for each compile.
bool take_exit_functions(void* library) {
    // What it calls, and what it registers, is here.
    base::keep_loaded(reinterpret_cast<void const*>(&hooked_atexit));
    auto slots = exit_slots();
    auto const done = point_imports(library, slots);
    // What it has registered until now, perhaps unseen, is run after this.
    wait_for_compiles_at_exit();
    return done && slots[0].pointed > 0;
}

// Its parent's have no thread in a child, but for one that forked itself.
void forget_parents_compiles() noexcept {
    running.store(own_compiles());
    int const own = here != nullptr && here->is_inside() ? 1 : 0;
    if (inside.exchange(own) > own) is_left_locked.store(true);
}

[[maybe_unused]] int const forgotten_in_children = ::pthread_atfork(nullptr, nullptr, forget_parents_compiles);

}  // namespace

compile_in_program::compile_in_program() noexcept {
    running.fetch_add(1);
    wait_for_compiles_once_at_exit();
}

compile_in_program::~compile_in_program() { done(); }

void compile_in_program::runs_here() noexcept { here = this; }

void compile_in_program::done() noexcept {
    if (!is_counted_) return;
    is_counted_ = false;
    if (here == this) here = nullptr;
    if (is_inside_) inside.fetch_sub(1);
    running.fetch_sub(1);
}

bool is_program_ending() noexcept { return is_ending.load(); }

result<void> enter_compilers() {
    if (here == nullptr || here->is_inside_) return {};
    if (is_left_locked.load()) {
        return fail(
            errc::unsupported,
            "this process was forked while its parent compiled, so it cannot compile by itself; use compile workers "
            "(KILN_WORKERS, kiln-worker), or fork before the first compile");
    }
    here->is_inside_ = true;
    inside.fetch_add(1);
    return {};
}

base::load_watcher watcher_of_exit_functions() noexcept { return here == nullptr ? nullptr : &see_exit_functions; }

void keep_exit_functions(void* library) {
    auto& known = seen.get([] { return std::make_unique<compilers_seen>(); });
    {
        std::lock_guard const lock{known.mutex};
        if (known.all.contains(library)) return;
    }
    // Two threads may do it, as one may do it twice; the loader is not asked under a lock that fork() waits for.
    if (!take_exit_functions(library)) return;
    std::lock_guard const lock{known.mutex};
    known.all.insert(library);
}

}  // namespace kiln::compile
