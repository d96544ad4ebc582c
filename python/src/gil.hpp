// SPDX-License-Identifier: Apache-2.0
// The interpreter's lock is never held while something waits, and a wait in Python's main thread looks for Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>

#include <kiln/pending.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace kiln::python {

// Set when the interpreter ends: from then on no thread but the main one may take the lock again. Those that were taking it already are let
// through before the interpreter goes on with its end.
inline std::atomic<bool> ending{false};
inline std::atomic<int> taking_lock{0};

// Whether anything was asked of Kiln yet: settings are read then.
inline std::atomic<bool> in_use{false};

// Lets the lock go. A thread that would take it back from an interpreter that ends stays where it is: Python would end it by
// unwinding, in the middle of C++.
class without_gil {
public:
    without_gil() noexcept : state_{PyEval_SaveThread()} { in_use.store(true, std::memory_order_relaxed); }
    ~without_gil();
    without_gil(without_gil const&) = delete;
    without_gil& operator=(without_gil const&) = delete;

private:
    PyThreadState* state_;
};

// Takes it for a while, inside of the other.
class with_gil {
public:
    with_gil() noexcept;
    ~with_gil() { PyGILState_Release(state_); }
    with_gil(with_gil const&) = delete;
    with_gil& operator=(with_gil const&) = delete;

private:
    PyGILState_STATE state_;
};

// A reference that any thread may let go: the interpreter takes it back when it next can. The caller has the lock.
[[nodiscard]] std::shared_ptr<void const> kept(nanobind::handle object);

// Hands what a person should read, and second choices that were taken, to logging.getLogger("kiln"): what has come since the last time, on
// this thread, which has the lock. Kiln's own threads never do.
void pass_on_warnings();

// Seconds as Python gives them, None for ever.
using seconds = std::optional<double>;

inline std::chrono::steady_clock::time_point end_of(seconds timeout) {
    using clock = std::chrono::steady_clock;
    if (timeout && std::isnan(*timeout)) throw error{errc::invalid_argument, "timeout is not a number; it is in seconds, None for ever"};
    if (!timeout) return clock::now() + std::chrono::hours{24 * 365};
    return clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>{std::clamp(*timeout, 0.0, 3e7)});
}

// Calls `ask(slice)`, which waits for that long at most and gives errc::timeout, until it gives something else or `timeout`
// has passed. KeyboardInterrupt comes out of it; the work goes on.
template <class Ask>
auto in_slices(seconds timeout, Ask ask) -> decltype(ask(std::chrono::milliseconds{})) {
    constexpr std::chrono::milliseconds slice{100};
    auto const end = end_of(timeout);
    for (;;) {
        auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
        auto answer = [&] {
            without_gil const unlocked;
            return ask(std::clamp(left, std::chrono::milliseconds{0}, slice));
        }();
        if (answer || answer.error().code() != errc::timeout || left <= slice) {
            pass_on_warnings();
            return answer;
        }
        if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    }
}

// One wait for one answer, which the engine counts as one.
template <class T>
T answer_of(pending<T> const& answer, seconds timeout) {
    auto const end = end_of(timeout);
    bool is_interrupted = false;
    auto got = [&] {
        without_gil const unlocked;
        return answer.wait_until_sync(end, [&] {
            with_gil const locked;
            is_interrupted = PyErr_CheckSignals() != 0;
            return !is_interrupted;
        });
    }();
    if (is_interrupted) throw nanobind::python_error();
    pass_on_warnings();
    if (!got) throw error{errc::timeout, "not ready within the time given; the work goes on"};
    return (*std::move(got)).value();
}

// The same for work that cannot be taken up again where it stopped, as making a primitive in several steps: `work` runs on a
// thread of its own, which takes no lock of the interpreter and goes on if the caller leaves.
template <class Work>
auto in_background(seconds timeout, Work work) -> decltype(work()) {
    using answer_type = decltype(work());
    // No std::packaged_task: where no thread begins, it says so to itself, needs memory for that and ends the program without.
    struct task {
        explicit task(Work what) : work{std::move(what)} {}
        void run() noexcept {
            try {
                answer.emplace(work());
            } catch (...) {
                thrown = std::current_exception();
            }
            std::lock_guard const lock{mutex};
            is_done = true;
            changed.notify_all();
        }
        Work work;
        std::mutex mutex;
        std::condition_variable changed;
        bool is_done = false;
        std::optional<answer_type> answer;  // read when it is done, as the other
        std::exception_ptr thrown;
    };
    auto const mine = std::make_shared<task>(std::move(work));
    try {
        std::thread{[mine] { mine->run(); }}.detach();
    } catch (std::system_error const&) {
        return error{errc::io, "no thread could be started: there is no memory for its stack, or there are too many: see 'ulimit -v' and 'ulimit -u'"};
    }
    auto const done = in_slices(timeout, [&](std::chrono::milliseconds slice) -> result<void> {
        std::unique_lock lock{mine->mutex};
        if (mine->changed.wait_for(lock, slice, [&] { return mine->is_done; })) return {};
        return error{errc::timeout, "not ready in time; the work goes on"};
    });
    if (!done) return done.error();
    if (mine->thrown) std::rethrow_exception(mine->thrown);
    return *std::move(mine->answer);
}

}  // namespace kiln::python
