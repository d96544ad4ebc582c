// SPDX-License-Identifier: Apache-2.0
// Where the paths of a layer begin, located in the areas of another.
#pragma once

#include "spatial/area_index.hpp"

namespace kiln::spatial {

// Pairs of a row of `of` and one of the areas, for every path; a row comes as often as it has paths there. Three fences or more.
[[nodiscard]] result<pair_list> first_vertices_in(queue& on, kept_layer const& of, kept_layer const& areas,
                                                  std::uint32_t wanted);
[[nodiscard]] result<pair_list> first_vertices_in(queue& on, kept_layer const& of, area_index::state const& areas,
                                                  std::uint32_t wanted);

enum class line_ends : std::uint8_t { no, asked };
// Pairs of a question and an area: a path's number, or the number of paths and that of a vertex which ends lines. One fence.
[[nodiscard]] result<pair_list> questions_in(queue& on, kept_layer const& of, area_index::state const& areas,
                                             std::uint32_t wanted, line_ends ends);
// The same where there is no index: one is built if there is enough to ask.
[[nodiscard]] result<pair_list> questions_in(queue& on, kept_layer const& of, kept_layer const& areas,
                                             std::uint32_t wanted, line_ends ends);

}  // namespace kiln::spatial
