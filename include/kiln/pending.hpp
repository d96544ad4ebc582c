// SPDX-License-Identifier: Apache-2.0
//
// An answer that will come: made by the engine, shared by whoever holds a copy. Dropping it cancels nothing. And how
// urgent the work behind it is.
#pragma once

#include <kiln/result.hpp>

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

template <class T>
class pending {
public:
    struct state {
        std::mutex mutex;
        std::condition_variable changed;
        std::optional<result<T>> answer;
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
        std::unique_lock lock{state_->mutex};
        if (!state_->changed.wait_until(lock, deadline, [&] { return state_->answer.has_value(); }))
            return std::nullopt;
        return *state_->answer;
    }

    // errc::timeout when the deadline passes first; the work goes on.
    [[nodiscard]] result<T> wait_sync(std::chrono::milliseconds deadline = std::chrono::minutes{10}) const {
        auto answer = wait_until_sync(std::chrono::steady_clock::now() + deadline);
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
    std::shared_ptr<state> state_;
};

}  // namespace kiln
