// SPDX-License-Identifier: Apache-2.0
//
// An answer that will come: made by the engine, shared by whoever holds a copy. Dropping it cancels nothing. And how
// urgent the work behind it is.
#pragma once

#include <kiln/result.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace KILN_PUBLIC kiln {

// Larger goes first: a caller is blocked on it > a plan wants it by its deadline > somebody declared it > a profile
// predicts it. Equals go in order of asking.
enum class priority : std::uint8_t { predicted, declared, planned, blocking };
[[nodiscard]] std::string_view name_of(priority how) noexcept;

// What somebody who is blocked on an answer tells those who work at it: that he is, and when it is over how long he was.
struct blocked_wait {
    bool is_over = false;
    bool is_answered = false;
    std::chrono::nanoseconds time{0};
};

template <class T>
class pending {
public:
    struct state {
        std::mutex mutex;
        std::condition_variable changed;
        std::optional<result<T>> answer;
        // Set before the state is shared; called without the lock, only by those who find no answer. False: none will come, as in a
        // child of fork(). Throws nothing.
        std::function<bool(blocked_wait const&)> blocked;
        std::vector<std::function<void(result<T> const&)>> then;

        // Once; wakes everybody. Callbacks run here, on the answering thread.
        void finish(result<T> with) {
            std::vector<std::function<void(result<T> const&)>> callbacks;
            {
                std::lock_guard const lock{mutex};
                if (answer) return;
                answer.emplace(std::move(with));
                callbacks.swap(then);
            }
            changed.notify_all();
            for (auto const& callback : callbacks) callback(*answer);
        }
    };

    explicit pending(std::shared_ptr<state> s) noexcept : state_{std::move(s)} {}

    [[nodiscard]] bool ready() const {
        std::lock_guard const lock{state_->mutex};
        return state_->answer.has_value();
    }

    // nullopt when the deadline passes first.
    [[nodiscard]] std::optional<result<T>> wait_until_sync(std::chrono::steady_clock::time_point deadline) const {
        return wait(deadline, {});
    }
    // The same, and `goes_on` is asked every 100 ms, without a lock: false ends the wait as a deadline does.
    [[nodiscard]] std::optional<result<T>> wait_until_sync(std::chrono::steady_clock::time_point deadline,
                                                           std::function<bool()> const& goes_on) const {
        return wait(deadline, goes_on);
    }

    // errc::timeout when the deadline passes first; the work goes on.
    [[nodiscard]] result<T> wait_sync(std::chrono::milliseconds deadline = std::chrono::minutes{10}) const {
        constexpr std::chrono::milliseconds for_ever = std::chrono::hours{24 * 365};  // and no sum that is too large
        auto answer = wait_until_sync(std::chrono::steady_clock::now() + std::min(deadline, for_ever));
        if (!answer)
            return error{errc::timeout,
                         "not ready within " + std::to_string(deadline.count()) + " ms; the work goes on"};
        return *std::move(answer);
    }

    // Runs at once if the answer is there, else on the thread that brings it, perhaps after waiters have gone on: own what you
    // use. Must be quick and must not throw.
    void then(std::function<void(result<T> const&)> callback) const {
        {
            std::lock_guard const lock{state_->mutex};
            if (!state_->answer) {
                state_->then.push_back(std::move(callback));
                return;
            }
        }
        callback(*state_->answer);
    }

private:
    [[nodiscard]] std::optional<result<T>> wait(std::chrono::steady_clock::time_point deadline,
                                                std::function<bool()> const& goes_on) const {
        auto const begin = std::chrono::steady_clock::now();
        auto const is_there = [&] { return state_->answer.has_value(); };
        std::unique_lock lock{state_->mutex};
        if (is_there()) return *state_->answer;
        if (deadline <= begin) return std::nullopt;
        auto const tell = [&](blocked_wait const& what) {
            if (!state_->blocked) return true;
            lock.unlock();
            bool const is_coming = state_->blocked(what);
            lock.lock();
            return is_coming;
        };
        if (!tell({}))
            return error{errc::cancelled,
                         "it was asked for before fork(), and the parent has the answer: ask again here"};
        if (!goes_on) state_->changed.wait_until(lock, deadline, is_there);
        while (goes_on && !is_there() && std::chrono::steady_clock::now() < deadline) {
            auto const slice = std::chrono::steady_clock::now() + std::chrono::milliseconds{100};
            if (state_->changed.wait_until(lock, std::min(deadline, slice), is_there)) break;
            lock.unlock();
            bool const more = goes_on();
            lock.lock();
            if (!more) break;
        }
        bool const answered = is_there();
        blocked_wait over;  // by name: nvcc hands designators to its host compiler in a form that clang warns of
        over.is_over = true;
        over.is_answered = answered;
        over.time = std::chrono::steady_clock::now() - begin;
        (void)tell(over);
        if (!answered) return std::nullopt;
        return *state_->answer;
    }

    std::shared_ptr<state> state_;
};

}  // namespace kiln
