// SPDX-License-Identifier: Apache-2.0
// Goes through the rows of an array on the host in the order of their text: for writers and whoever copies rows. A visitor has
// null(), begin(family), begin_polygon(), begin_ring(), begin_line(), vertex(x, y) and end(), as geometry_builder has.
#pragma once

#include "base/check.hpp"

#include <kiln/spatial/geometry.hpp>

#include <cmath>

namespace kiln::spatial {

struct row_in_memory {
    geometry_parts const* parts = nullptr;
    std::size_t row = 0;
};

// The memory of a row that is not null.
inline row_in_memory locate_row(geometries const& in, std::size_t row) {
    if (in.chosen()) row = static_cast<std::size_t>(in.chosen()->data()[row]);
    if (in.kind() != family::mixed) return {&in.parts(), row};
    auto const& m = in.mixed();
    for (auto const& child : m.children) {
        if (static_cast<std::int8_t>(child.kind()) == m.type.data()[row])
            return {&child.parts(), static_cast<std::size_t>(m.child_row.data()[row])};
    }
    return {};
}

namespace detail {

struct index_range {
    std::size_t first, last;
};
inline index_range inside(buffer<std::int32_t> const& offsets, std::size_t at) {
    return {static_cast<std::size_t>(offsets.data()[at]), static_cast<std::size_t>(offsets.data()[at + 1])};
}

template <class Visitor>
void visit_vertices(geometry_parts const& p, index_range of, Visitor& to) {
    for (auto v = of.first; v < of.last; ++v) to.vertex(p.x.data()[v], p.y.data()[v]);
}
template <class Visitor>
void visit_rings(geometry_parts const& p, index_range rings, std::size_t level, Visitor& to) {
    for (auto r = rings.first; r < rings.last; ++r) {
        to.begin_ring();
        visit_vertices(p, inside(p.offsets[level], r), to);
    }
}

}  // namespace detail

template <class Visitor>
void visit_row(geometries const& in, std::size_t row, Visitor& to) {
    if (in.is_null(row)) return to.null();
    auto const [parts, at] = locate_row(in, row);
    auto const& p = *parts;
    to.begin(p.kind);
    switch (p.kind) {
        case family::point:
            if (!std::isnan(p.x.data()[at]) || !std::isnan(p.y.data()[at])) to.vertex(p.x.data()[at], p.y.data()[at]);
            break;
        case family::linestring:
        case family::multipoint: detail::visit_vertices(p, detail::inside(p.offsets[0], at), to); break;
        case family::polygon: detail::visit_rings(p, detail::inside(p.offsets[0], at), 1, to); break;
        case family::multilinestring: {
            auto const lines = detail::inside(p.offsets[0], at);
            for (auto l = lines.first; l < lines.last; ++l) {
                to.begin_line();
                detail::visit_vertices(p, detail::inside(p.offsets[1], l), to);
            }
            break;
        }
        case family::multipolygon: {
            auto const polygons = detail::inside(p.offsets[0], at);
            for (auto i = polygons.first; i < polygons.last; ++i) {
                to.begin_polygon();
                detail::visit_rings(p, detail::inside(p.offsets[1], i), 2, to);
            }
            break;
        }
        case family::mixed: break;
    }
    to.end();
}

// Of rows that do not come from Kiln: that offsets and numbers stay inside of the memory. Coordinates and rings may be anything.
// errc::invalid_argument with the first row that is not there. Host only.
[[nodiscard]] result<void> require_memory(geometries const& what);

template <class Visitor>
[[nodiscard]] result<void> visit_rows(geometries const& in, Visitor& to) {
    KILN_CHECK(require_memory(in));
    for (std::size_t row = 0; row < in.rows(); ++row) visit_row(in, row, to);
    return {};
}

}  // namespace kiln::spatial
