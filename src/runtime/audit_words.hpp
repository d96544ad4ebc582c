// SPDX-License-Identifier: Apache-2.0
// What a dispatch tells `kiln audit` where the program runs under it: its id goes around the kernels it launches, so that "requested,
// selected, ran" can be checked. Elsewhere it costs a look at a flag.
#pragma once

#include <kiln/runtime/operation.hpp>

namespace kiln::runtime {

// Of the call that was just decided on this thread.
void note_items(std::uint64_t items) noexcept;
// In pairs, on one thread.
void tell_dispatch(operation const& what, decision const& how, residency of_input) noexcept;
void end_dispatch() noexcept;

}  // namespace kiln::runtime
