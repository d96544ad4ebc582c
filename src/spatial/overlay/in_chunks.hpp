// SPDX-License-Identifier: Apache-2.0
// Overlay, dissolve and make_valid of layers that are too large to be worked on at once: the same results. Segments are divided
// first, all of them and round by round as those of a layer that fits (row_chunks.hpp); then nothing moves any more, and results
// are drawn a few rows at a time.
#pragma once

#include "spatial/operations.hpp"
#include "spatial/overlay/bounded_queues.hpp"
#include "spatial/overlay/overlay.hpp"
#include "spatial/overlay/row_chunks.hpp"

#include <kiln/spatial/validate.hpp>

namespace kiln::spatial {

// Operands lie at home; results come to where `results` runs.
struct chunked_call {
    chunk_places in;
    queue& results;
};
// errc::out_of_memory where one row with what it meets, or one key, needs more than the work may take.
[[nodiscard]] result<overlay_rows> overlaid_in_chunks(chunked_call const& by, geometries const& left,
                                                      geometries const& right, overlay_kind what,
                                                      overlay_options const& how = {});
[[nodiscard]] result<geometries> dissolved_in_chunks(chunked_call const& by, geometries const& of,
                                                     buffer<std::int32_t> const& key, std::size_t keys);
[[nodiscard]] result<mended_rows> mended_in_chunks(chunked_call const& by, geometries const& of);

// What the work of a call may take, given the most that its user allows (0: what the device has room for); 0 where it is done at
// once.
[[nodiscard]] result<std::size_t> bytes_for_chunks(runtime::operation_call const& call,
                                                   std::vector<geometries> const& operands, std::size_t most);

// Where a call in chunks keeps what. A layer that takes half of what there is, or came from the host, is at home on the host.
struct chunk_plan {
    int device;
    bool home_there, results_there;  // on the device
    std::size_t most_bytes;          // of the work
};
[[nodiscard]] chunk_plan plan_chunks(runtime::operation_call const& call, std::vector<geometries> const& operands,
                                     std::size_t most);

// A call in chunks: use(where, the operands at home).
template <class Use>
auto with_chunks(runtime::operation_call const& call, stream_ref on, std::vector<geometries> operands, std::size_t most,
                 Use const& use) -> decltype(use(std::declval<chunked_call const&>(), operands)) {
    auto const plan = plan_chunks(call, operands, most);
    auto const bytes = chunk_places::bytes_to_take(plan.most_bytes);
    host_queue here;
    device_queue there{on, plan.device};
    bounded_host_queue work_here{bytes};
    bounded_device_queue work_there{on, plan.device, bytes};
    queue& home = plan.home_there ? static_cast<queue&>(there) : here;
    queue& work = call.on_gpu() ? static_cast<queue&>(work_there) : work_here;
    queue& results = plan.results_there ? static_cast<queue&>(there) : here;
    if (!plan.home_there)
        for (auto& g : operands) {
            KILN_TRY(g, g.to_host_sync(on));
            KILN_CHECK(require_valid(g));
        }
    return use(chunked_call{{home, work, on, plan.most_bytes}, results}, operands);
}

}  // namespace kiln::spatial
