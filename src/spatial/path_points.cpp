// SPDX-License-Identifier: Apache-2.0
#include "spatial/path_points.hpp"

#include "spatial/path_points.cuh"

namespace kiln::spatial {

using namespace kiln_spatial;

result<pair_list> questions_in(queue& on, kept_layer const& of, area_index::state const& areas, std::uint32_t wanted,
                               line_ends ends) {
    auto const n = of.paths() + (ends == line_ends::asked ? of.vertices() : 0);
    KILN_TRY(auto x, on.room<double>(n));
    KILN_TRY(auto y, on.room<double>(n));
    KILN_CHECK(on.launch(path_questions{of.view(), x.data(), y.data()}, n));
    return point_locator{on, {x.data(), y.data(), nullptr, nullptr}, n, areas, wanted}.pairs();
}

result<pair_list> first_vertices_in(queue& on, kept_layer const& of, area_index::state const& areas,
                                    std::uint32_t wanted) {
    KILN_TRY(auto out, questions_in(on, of, areas, wanted, line_ends::no));
    KILN_CHECK(on.launch(rows_of_questions{of.view(), out.left.data()}, out.size()));
    return out;
}

}  // namespace kiln::spatial
