// SPDX-License-Identifier: Apache-2.0
//
// Boxes against boxes: which rows of two arrays have bounding boxes that meet, or are no more than a distance apart. Decided
// once per call like every operation; results live where it ran. Null and empty rows have no box.
//
//     auto const candidates = spatial::query(stream, parcels, buildings, {.distance = 5}).value();
#pragma once

#include <kiln/spatial/join.hpp>

namespace KILN_PUBLIC kiln {
namespace spatial {

struct query_options {
    double distance = 0;  // inclusive; computed in doubles, rounded once per operation: the same on the CPU and the GPU
};
[[nodiscard]] result<pair_list> query(stream_ref on, geometries const& left, geometries const& right,
                                      query_options const& how = {});

}  // namespace spatial
}  // namespace kiln
