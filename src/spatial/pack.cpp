// SPDX-License-Identifier: Apache-2.0
// The spatial units as a pack: by name for demands, for 'kiln warm' and in profiles.
#include "spatial/pack.hpp"

#include "spatial/operations.hpp"
#include "spatial/units.hpp"
#include "spatial/warm.hpp"

#include "embedded/spatial_products.hpp"

namespace kiln::spatial {

namespace {

constexpr operation const* all_operations[] = {
    &locate_operation,       &meet_operation,     &join_operation,     &disjoint_operation, &relate_operation,
    &query_operation,        &segments_operation, &distance_operation, &within_operation,   &nearest_operation,
    &nearest_many_operation, &bounds_operation,   &measures_operation, &choose_operation,   &wkb_operation,
    &shapes_operation,       &overlay_operation,  &dissolve_operation, &buffer_operation,   &outlines_operation,
    &simplify_operation,     &coverage_operation};

engine_detail::unit_pack const the_pack{{.name = "spatial",
                                         .ships = embedded::spatial_products(),
                                         .operations = all_operations,
                                         .requirements = family_requirements()},
                                        named_units};

}  // namespace

}  // namespace kiln::spatial

KILN_PACK(spatial);
