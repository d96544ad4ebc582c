// SPDX-License-Identifier: Apache-2.0
// The pack's operations, and what is decided of a call.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/runtime/pack_call.hpp>
#include <kiln/spatial/geometry.hpp>

namespace kiln::spatial {

extern operation const locate_operation, meet_operation, join_operation, disjoint_operation, relate_operation,
    query_operation, nearest_operation, nearest_many_operation, segments_operation, distance_operation,
    within_operation, bounds_operation, measures_operation, choose_operation, wkb_operation, shapes_operation,
    overlay_operation, dissolve_operation, buffer_operation, outlines_operation, simplify_operation, coverage_operation;

// errc::invalid_argument where one is on the host and the other on a device.
[[nodiscard]] result<call_facts> facts_of(operation const& what, geometries const& left, geometries const& right);

[[nodiscard]] call_facts facts_of(geometries const& one);

// The geometries where the call runs: the caller's own, or a copy. The device is the one of what is on one already. What is on the host, or comes
// there, is checked here, once for each array: errc::invalid_argument with row and reason. What is on a device only relations look at (kept_rings.hpp).
[[nodiscard]] result<geometries> brought(runtime::operation_call const& call, stream_ref on, geometries const& what);

// Runs `use` with a queue where the call runs.
template <class Use>
auto with_queue(bool on_gpu, stream_ref on, int device, Use const& use) {
    if (on_gpu) {
        device_queue there{on, device};
        return use(static_cast<queue&>(there));
    }
    host_queue here;
    return use(static_cast<queue&>(here));
}
// A call of two operands: decided, both brought to where it runs, and use(queue, left, right) there.
template <class Use>
auto with_operands(operation const& what, stream_ref on, geometries const& left, geometries const& right,
                   Use const& use) -> decltype(use(std::declval<queue&>(), left, right)) {
    KILN_TRY(auto const facts, facts_of(what, left, right));
    KILN_TRY(auto const call, runtime::operation_call::begin(what, facts));
    KILN_TRY(auto const a, brought(call, on, left));
    KILN_TRY(auto const b, brought(call, on, right));
    return with_queue(call.on_gpu(), on, a.device(), [&](queue& q) { return use(q, a, b); });
}

}  // namespace kiln::spatial
