// SPDX-License-Identifier: Apache-2.0
//
// One order in the coordinator's hands, for the sources the coordinator is made of.
#pragma once

#include "base/caught.hpp"
#include "cuda/nvtx.hpp"
#include "engine/coordinator.hpp"

#include <new>

namespace kiln::engine_detail {

inline error shutting_down(subject const& of) noexcept {
    try {
        return fail(errc::cancelled, "'{}': the engine is shutting down", of.name);
    } catch (std::bad_alloc const&) {
        return {errc::cancelled, "shutting down"};
    }
}

inline error withdrawn(subject const& of) { return fail(errc::cancelled, "'{}': the demand was withdrawn", of.name); }

// One order in progress. `mutex` guards what several threads touch; the rest belongs to whoever runs the step.
struct coordinator::flight {
    explicit flight(engine_detail::order o)
        : order{std::move(o)},
          identity{identity_of(order.subject)},
          target{order.subject.target.arch.name()},
          answer{std::make_shared<pending<obtained>::state>()} {}

    [[nodiscard]] known_as line() const { return line_of(order); }
    [[nodiscard]] event describe(event_kind kind) const {
        auto const key = key_in_advance(order.subject);
        return {.kind = kind,
                .unit = order.subject.name,
                .target = target,
                .key = key ? key->prefix() : 0,
                .request = identity.prefix()};
    }

    engine_detail::order const order;
    base::digest const identity;
    std::string const target;
    std::shared_ptr<pending<obtained>::state> answer;
    base::stopwatch watch;
    std::atomic<bool> missed{false};     // the first look found nothing
    found_artifact why;                  // and this is why
    bool asked_further = false;          // the miss is told when all have answered
    unsigned nth = 0;                    // entries from afar that were made from other headers
    bool allowed = false;                // to be compiled, and the miss was told
    std::string said;                    // by those far away, for error messages
    std::atomic<bool> unhurried{false};  // asked for afar, and nobody waited for it then
    bool making = false;                 // a worker has it; those far away may still answer
    bool recalled = false;               // from the line for a worker, to ask those far away again
    std::atomic<bool> leaving_the_queue{false};
    std::atomic<bool> decided{false};           // by one of the two
    std::optional<store::leader_watch> leader;  // of another process that compiles this
    std::chrono::milliseconds pause{2};
    cuda::nvtx_span compiling;
    // Told before the flight is completed, on the same thread.
    compile::header_use headers = compile::header_use::plain;
    std::optional<std::vector<dependency>> read;  // by a compile that failed
    std::atomic<bool> finished{false};

    std::mutex mutex;
    priority how = priority::predicted;
    std::size_t asks = 0;    // not taken back
    bool running = false;    // a process has it
    bool withdrawn = false;  // by all who asked; no longer in the table
    std::optional<compile::worker_pool::ticket> ticket;
    store::flight lead;      // of all processes of this machine
    store::claim_ptr claim;  // others wait for what is made here
    std::optional<base::time_point> failed_at;
    bool may_be_mended = false;  // it failed, and headers had a part in it
};

// An order in hand is answered, whatever happens to its step: shortage of memory, a fault of ours. On a thread of our own
// nobody else could catch it, and the host program would end.
template <class Body>
void coordinator::guarded(flight_ptr const& f, Body body) noexcept {
    try {
        body();
    } catch (std::exception const&) {
        finish(f, base::caught_error(f->order.subject.name));
    }
}

template <class Body>
void coordinator::way_back::with_coordinator(Body body) {
    coordinator* there = nullptr;
    {
        std::lock_guard const lock{mutex};
        there = to;
        if (there == nullptr) return;
        ++inside;
    }
    base::if_memory_allows([&] { body(*there); });
    std::lock_guard const lock{mutex};
    if (--inside == 0) left.notify_all();
}

}  // namespace kiln::engine_detail
