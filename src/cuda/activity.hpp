// SPDX-License-Identifier: Apache-2.0
//
// Where transfers, waits and allocations are counted: at the call that makes them, before it is made, so that a scope can
// forbid it. Thread-local, off the heap unless something is forbidden.
#pragma once

#include "base/check.hpp"

#include <kiln/activity.hpp>

namespace kiln::cuda {

enum class host_memory : std::uint8_t { pageable, pinned };

struct transfer {
    transfer_direction way;
    std::size_t bytes = 0;
    std::string_view site;  // the call: "buffer::to_host_sync"
    host_memory memory = host_memory::pageable;
};

// Counts and tells; errc::forbidden where a scope or a strict operation does not allow it.
[[nodiscard]] result<void> note_transfer(transfer const& what);
[[nodiscard]] result<void> note_sync(std::string_view site);
void note_allocation(std::size_t bytes, std::string_view site) noexcept;

enum class moves : std::uint8_t {
    declared,    // the operation said that it may move data
    undeclared,  // it did not: an error
};

// Names the operation this thread is in. The outermost one counts: what an operation calls is part of it. True if this
// one is it, and then leave_operation() must follow.
[[nodiscard]] bool enter_operation(std::string_view name, moves allowed) noexcept;
void leave_operation() noexcept;
// Empty outside of any.
[[nodiscard]] std::string_view current_operation() noexcept;

enum class dispatch : std::uint8_t { cpu, cpu_as_fallback, gpu };
void count_dispatch(dispatch to) noexcept;

}  // namespace kiln::cuda
