// SPDX-License-Identifier: Apache-2.0
//
// What became of everything that was demanded or asked for: per unit and in total, with times, tier of origin, callers
// that waited and how long. A snapshot: plain values, from any thread. `kiln status` shows the same of another process.
#pragma once

#include <kiln/engine.hpp>

#include <functional>

namespace KILN_PUBLIC kiln {

enum class work_state : std::uint8_t {
    queued,     // looked for, or waiting for a compile process
    compiling,  // a process has it
    loading,    // found or made; the driver gets it
    ready,      // an artifact where only that was asked for, else loaded with its kernels resolved
    failed,     // unit_status::error says why; whoever asks for it gets the same
    cancelled,  // withdrawn before it was done
    deferred,   // nothing to do here: no GPU, and no target was named
};
[[nodiscard]] std::string_view name_of(work_state state) noexcept;

struct unit_status {
    std::string name;
    std::string target;  // "sm_90"; empty while it is not known
    work_state state = work_state::queued;
    priority how = priority::declared;
    std::optional<provenance> from = {};  // set once found or compiled
    std::string miss = {};                // why it was not simply found: absent, header-changed, ...
    std::string consumers = {};           // who demanded it: "sjoin, overlay"
    double submitted_ms = 0;              // when, since the first request of all
    double since_ms = 0;                  // how long it has been in this state
    double ready_ms = 0;                  // from submitted to ready; 0 until then
    double compile_ms = 0;                // what it cost to make, wherever that was
    double load_ms = 0;
    std::uint64_t bytes = 0;    // of the image
    std::uint64_t waiters = 0;  // callers blocked on it now
    std::uint64_t waits = 0;    // callers that were
    double blocked_ms = 0;      // all of them together
    std::string error = {};     // one line
    std::string log = {};       // the compiler's own words
};

struct warm_status {
    std::uint64_t submitted = 0;  // all of the below together
    std::uint64_t ready = 0, loading = 0, compiling = 0, queued = 0, failed = 0, cancelled = 0, deferred = 0;
    std::uint64_t compiled = 0;  // of those ready: made by this process
    std::uint64_t pending = 0;   // loading, compiling or queued
    std::uint64_t waits = 0;     // callers that were blocked
    double blocked_ms = 0;
    double wall_ms = 0;              // from the first request to the last that was done, or to now
    std::vector<unit_status> units;  // in order of submission

    // The first of that name: two libraries may have one each.
    [[nodiscard]] unit_status const* find(std::string_view name) const noexcept;
};

[[nodiscard]] warm_status status(engine& of = engine::process());

struct progress_report {
    std::uint64_t done = 0, total = 0;  // of what was demanded so far
    std::string name;                   // what was just done
    work_state state = work_state::ready;
    double remaining_ms = 0;  // an estimate from recorded costs; 0 where nothing is known
};

// Called after each demanded unit, on a thread of Kiln's, until the token dies. Must be quick and must not throw.
using progress_token = std::shared_ptr<void>;
[[nodiscard]] progress_token on_progress(std::function<void(progress_report const&)> callback,
                                         engine& of = engine::process());

}  // namespace kiln
