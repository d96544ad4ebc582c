// SPDX-License-Identifier: Apache-2.0
// What must be true of arrays before anything is written: each is errc::invalid_argument that names the argument and what to do.
#pragma once

#include "arrays.hpp"

#include <initializer_list>
#include <span>

namespace kiln::python {

// With shape and strides unless its items are one after the other.
void want_contiguous(array const& a);
void want_writable(array const& a);
// Where what is written lies over what is read; `in_place`: the very same memory is allowed.
enum class in_place : std::uint8_t { refused, allowed };
void want_apart(array const& out, std::initializer_list<array const*> inputs, in_place same = in_place::refused);
// Where two places of what is written are one in memory.
void want_no_item_twice(array const& out);
// From an array's first byte to its last, gaps and all, so that its strides hold there.
[[nodiscard]] std::span<std::byte> whole_of(array const& of);

}  // namespace kiln::python
