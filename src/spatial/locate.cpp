// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/locate.hpp>

#include "base/check.hpp"
#include "spatial/cells.hpp"
#include "spatial/loops.hpp"
#include "spatial/row_facts.hpp"
#include "spatial/rows.hpp"

namespace kiln::spatial::cpu {

struct area_index::state {
    explicit state(host_layer of) : layer{std::move(of)}, cells{layer} {}
    host_layer layer;
    host_cells cells;
};

result<area_index> area_index::make(geometries const& areas) {
    KILN_TRY(auto layer, host_layer::plain(areas));
    return area_index{std::make_shared<state const>(std::move(layer))};
}

result<std::vector<located_point>> area_index::locate(geometries const& points) const {
    if (points.kind() != family::point)
        return fail(errc::invalid_argument, "locate: an array of points is needed, not of {}", name_of(points.kind()));
    if (points.where() == residency::device) return fail(errc::unsupported, "locate: the points are on a device");
    KILN_CHECK(require_valid_once(points));
    std::vector<located_point> out;
    in_any_order(points.rows(), [&](std::size_t i) {
        if (points.is_null(i)) return;
        auto const [parts, at] = locate_row(points, i);
        kiln_spatial::point const p{parts->x.data()[at], parts->y.data()[at]};
        state_->cells.locate(p, [&](std::int32_t row, kiln_spatial::place where) {
            out.push_back({static_cast<std::int32_t>(i), row,
                           where == kiln_spatial::place::on ? standing::on_boundary : standing::inside});
            return false;
        });
    });
    settle(out, [](located_point const& a, located_point const& b) { return a.point < b.point; });
    return out;
}

}  // namespace kiln::spatial::cpu
