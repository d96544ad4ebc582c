// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/query.hpp>

#include "spatial/kept_layer.hpp"
#include "spatial/kept_tree.hpp"
#include "spatial/operations.hpp"

#include <algorithm>
#include <limits>

namespace kiln::spatial {

namespace {

// The same memory, whole: an array with itself.
bool are_same(geometries const& a, geometries const& b) {
    bool const whole = !a.chosen() && !b.chosen() && a.kind() == b.kind();
    return whole && (a.kind() == family::mixed ? &a.mixed() == &b.mixed() : &a.parts() == &b.parts());
}

}  // namespace

result<pair_list> query(stream_ref on, geometries const& left, geometries const& right, query_options const& how) {
    if (!(how.distance >= 0)) return fail(errc::invalid_argument, "query: a distance of {}", how.distance);
    // As far as boxes can be grown by: those of missing and empty rows lie at infinity, and are within no distance.
    auto const most = std::min(how.distance, std::numeric_limits<double>::max() / 4);
    auto const ask = [&](queue& q, geometries const& a, geometries const& b) -> result<pair_list> {
        KILN_TRY(auto const boxes, boxes_of_rows(q, b));
        KILN_TRY(auto const tree, kept_tree::make(q, boxes));
        if (are_same(a, b)) return query_boxes(q, tree, boxes, most);
        KILN_TRY(auto const asked, boxes_of_rows(q, a));
        return query_boxes(q, tree, asked, most);
    };
    return with_operands(query_operation, on, left, right, ask);
}

}  // namespace kiln::spatial
