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
#include <unistd.h>

// What atexit() and the static objects of a library call, which no header of libc declares.
extern "C" int __cxa_atexit(void (*function)(void*), void* argument, void* owner) noexcept;

namespace kiln::compile {

namespace {

constinit std::atomic<int> running{0};
constinit std::atomic<int> opening{0};  // of them, those whose compiler may not be open yet
constinit std::atomic<bool> is_ending{false};
constinit thread_local compile_in_program* here = nullptr;

constexpr std::chrono::seconds longest_wait{10};
constinit std::atomic<base::clock::rep> end_of_patience{
    0};  // one for thousands of exit functions: whoever waits first decides

void wait_until(base::time_point end, std::atomic<int> const& of, int most) noexcept {
    while (of.load() > most && base::clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

int own_compiles() noexcept { return here == nullptr ? 0 : 1; }

void wait_for_compiles() noexcept {
    is_ending.store(true);
    if (running.load() <= own_compiles()) return;
    auto const own = (base::clock::now() + longest_wait).time_since_epoch().count();
    base::clock::rep end = 0;
    if (end_of_patience.compare_exchange_strong(end, own)) end = own;
    wait_until(base::time_point{base::clock::duration{end}}, running, own_compiles());
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
    call->function(call->argument);
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

// Of a compiler that was loaded just now, or by the program before we came. False: its calls are not seen, and this is done for each compile.
bool take_exit_functions(void* library) {
    // What it calls, and what it registers, is here.
    base::keep_loaded(reinterpret_cast<void const*>(&hooked_atexit));
    std::array slots{import_slot{"__cxa_atexit", reinterpret_cast<void*>(&hooked_atexit)}};
    auto const done = point_imports(library, slots);
    // What it has registered until now, unseen, is run after this.
    wait_for_compiles_at_exit();
    return done && slots[0].pointed > 0;
}

struct end_of_thread {
    bool is_first_of_program = false;
    ~end_of_thread() {
        if (!is_first_of_program || opening.load() <= own_compiles()) return;
        auto const end = base::clock::now() + longest_wait;
        wait_until(end, opening, own_compiles());
        // What does not come to an end in all that time is not waited for once more.
        if (opening.load() > own_compiles()) end_of_patience.store(end.time_since_epoch().count());
    }
};

}  // namespace

// They have no thread in a child, but for one that forked itself.
struct compiles_of_parent {
    static void forget() noexcept {
        running.store(here != nullptr ? 1 : 0);
        opening.store(here != nullptr && here->is_opening_ ? 1 : 0);
    }
};

namespace {
[[maybe_unused]] int const forgotten_in_children = ::pthread_atfork(nullptr, nullptr, compiles_of_parent::forget);
}

compile_in_program::compile_in_program() noexcept {
    running.fetch_add(1);
    opening.fetch_add(1);
    wait_for_compiles_once_at_exit();
}

compile_in_program::~compile_in_program() { done(); }

void compile_in_program::runs_here() noexcept { here = this; }

void compile_in_program::done() noexcept {
    if (!is_counted_) return;
    compiler_is_open();
    is_counted_ = false;
    if (here == this) here = nullptr;
    running.fetch_sub(1);
}

void compile_in_program::compiler_is_open() noexcept {
    if (is_opening_) opening.fetch_sub(1);
    is_opening_ = false;
}

bool is_program_ending() noexcept { return is_ending.load(); }

void keep_exit_functions(void* library) {
    auto& known = seen.get([] { return std::make_unique<compilers_seen>(); });
    bool const is_kept = [&] {
        std::lock_guard const lock{known.mutex};
        return known.all.contains(library);
    }();
    // Two threads may do it at a time, as anybody may do it twice; the loader is not asked under a lock that fork() waits for.
    if (!is_kept && take_exit_functions(library)) {
        std::lock_guard const lock{known.mutex};
        known.all.insert(library);
    }
    if (here != nullptr) here->compiler_is_open();
}

void wait_at_end_of_this_thread() noexcept {
    wait_for_compiles_once_at_exit();
    thread_local end_of_thread at_end;
    if (!at_end.is_first_of_program) at_end.is_first_of_program = ::gettid() == ::getpid();
}

}  // namespace kiln::compile
