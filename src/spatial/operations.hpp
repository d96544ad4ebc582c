// SPDX-License-Identifier: Apache-2.0
// The pack's operations, and what is decided of a call.
#pragma once

#include <kiln/runtime/pack_call.hpp>
#include <kiln/spatial/geometry.hpp>

namespace kiln::spatial {

extern operation const index_operation, locate_operation, join_operation;

// errc::invalid_argument where one is on the host and the other on a device.
[[nodiscard]] result<call_facts> facts_of(operation const& what, geometries const& left, geometries const& right);

// The geometries where the call runs: the caller's own, or a copy. The device is the one of what is on one already.
[[nodiscard]] result<geometries> brought(runtime::operation_call const& call, stream_ref on, geometries const& what);

}  // namespace kiln::spatial
