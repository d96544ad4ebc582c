// SPDX-License-Identifier: Apache-2.0
//
// The exact requirements of a pipeline. prepare() starts bringing them in; ensure_warm() waits for them, up to a deadline for
// all of them together, and names what is still cold and why. A plan can also refuse to begin a graph capture while something
// is cold: a compile or a load inside a capture would be an error, or a stall baked into it. Safe from any thread.
//
//     kiln::plan join{"sjoin", {pip, "select_i32", "exclusive_scan_i32"}};
//     join.prepare();                                       // returns at once
//     if (auto const r = join.ensure_warm(200ms); !r) log(r.text());
#pragma once

#include <kiln/demand.hpp>
#include <kiln/status.hpp>

#include <atomic>
#include <optional>

namespace KILN_PUBLIC kiln {

// The generic variant now, the tuned one as soon as it is there; if it never comes, the generic one stays.
//
//     kiln::switching<kiln::ready_unit> const k{e.get_sync(generic).value(), e.get(tuned)};
//     k.current().kernel("k");
template <class T>
class switching {
public:
    switching(T generic, pending<T> tuned) : state_{std::make_shared<state>(std::move(generic))} {
        tuned.then([s = state_](result<T> const& answer) {
            if (!answer) return;
            s->tuned.emplace(*answer);
            s->switched.store(true, std::memory_order_release);
        });
    }

    // No lock. What it refers to lives as long as this, or a copy of it.
    [[nodiscard]] T const& current() const noexcept { return switched() ? *state_->tuned : state_->generic; }
    [[nodiscard]] bool switched() const noexcept { return state_->switched.load(std::memory_order_acquire); }

private:
    struct state {
        explicit state(T g) : generic{std::move(g)} {}
        T generic;
        std::optional<T> tuned;
        std::atomic<bool> switched{false};
    };
    std::shared_ptr<state> state_;
};

struct cold_item {
    std::string name;
    std::string target;
    work_state state = work_state::queued;  // queued, compiling, loading, failed, cancelled or deferred
    double since_ms = 0;                    // in this state
    std::string why = {};                   // the error's line for what failed
    std::string log = {};
    std::optional<errc> code = {};  // what kind of error; nullopt for what may still come
};

struct warm_report {
    std::vector<cold_item> cold;
    double waited_ms = 0;

    [[nodiscard]] bool warm() const noexcept { return cold.empty(); }
    explicit operator bool() const noexcept { return warm(); }
    // "2 of 20 cold: pip (compiling since 120 ms), select_i32 (queued)".
    [[nodiscard]] std::string text() const;
    std::size_t total = 0;
};

class plan {
public:
    plan(std::string name, std::vector<want> what, demand_options how = {});

    [[nodiscard]] std::string const& name() const noexcept { return name_; }
    // Idempotent; never blocks.
    void prepare() const;
    // prepare(), then waits until all is warm, or failed for good, or `deadline` has passed: in total, not per unit.
    [[nodiscard]] warm_report ensure_warm(std::chrono::milliseconds deadline) const;
    // What is cold now; waits for nothing.
    [[nodiscard]] warm_report cold() const;

    // Begins capturing on `on` (thread-local mode) unless something is cold: errc::timeout that names it, and no capture.
    // End it with cuStreamEndCapture or cudaStreamEndCapture as usual.
    [[nodiscard]] result<void> begin_capture(stream_ref on) const;

private:
    [[nodiscard]] demanded const& start() const;

    struct state;
    std::string name_;
    std::shared_ptr<state> state_;
};

}  // namespace kiln
