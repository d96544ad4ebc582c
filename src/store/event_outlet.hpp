// SPDX-License-Identifier: Apache-2.0
// The way to an event_log that may die before the last thread that would use it.
#pragma once

#include <kiln/event.hpp>

#include "base/fork_guard.hpp"

#include <atomic>
#include <thread>

namespace kiln::store {

class event_outlet {
public:
    explicit event_outlet(event_log* log) noexcept : log_{log} {}

    void emit(event const& e) noexcept {
        users_.fetch_add(1);
        if (auto* const log = log_.load()) log->emit(e);
        users_.fetch_sub(1);
    }
    // Later events are lost; on return none is being emitted. In a fork's child nobody else can be emitting.
    void close() noexcept {
        log_.store(nullptr);
        while (users_.load() != 0 && base::fork_generation() == generation_) std::this_thread::yield();
    }

private:
    std::atomic<event_log*> log_;
    std::atomic<int> users_{0};
    std::uint64_t generation_ = base::fork_generation();
};

}  // namespace kiln::store
