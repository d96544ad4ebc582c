// SPDX-License-Identifier: Apache-2.0
// Where the paths of a layer begin, located in the areas of another.
#pragma once

#include "spatial/area_index.hpp"
#include "spatial/path_points.cuh"

#include <optional>

namespace kiln::spatial {

// Pairs of a row of `of` and one of the areas, for every path; a row comes as often as it has paths there. Three fences or more.
[[nodiscard]] result<pair_list> first_vertices_in(queue& on, kept_layer const& of, kept_layer const& areas,
                                                  std::uint32_t wanted);
[[nodiscard]] result<pair_list> first_vertices_in(queue& on, kept_layer const& of, area_index::state const& areas,
                                                  std::uint32_t wanted);

enum class line_ends : std::uint8_t { no, asked };
// Questions as above, each with the rows of areas whose boxes it lies in.
struct question_candidates {
    pair_list pairs;
    buffer<kiln_spatial::box> asked;  // by question
    buffer<std::int64_t> first;       // by pair, summed: edges to hold it against
    std::size_t steps = 0;            // all of them

    [[nodiscard]] kiln_spatial::candidate_rows in(kept_layer const& areas) const {
        return {areas.view(), pairs.left.data(), pairs.right.data()};
    }
    // By pair: mark_odd, mark_on.
    template <kiln_spatial::tie Mode>
    [[nodiscard]] result<buffer<std::uint32_t>> marks(queue& on, kept_layer const& areas) const;
};
// Pairs of a question and an area: a path's number, or the number of paths and that of a vertex which ends lines. One fence.
[[nodiscard]] result<pair_list> questions_in(queue& on, kept_layer const& of, area_index::state const& areas,
                                             std::uint32_t wanted, line_ends ends);
// Nothing where an index is better. Two fences.
[[nodiscard]] result<std::optional<question_candidates>> candidates_in(queue& on, kept_layer const& of,
                                                                       kept_layer const& areas, line_ends ends);
// The same where there is no index: one is built if there is enough to ask.
[[nodiscard]] result<pair_list> questions_in(queue& on, kept_layer const& of, kept_layer const& areas,
                                             std::uint32_t wanted, line_ends ends);

}  // namespace kiln::spatial
