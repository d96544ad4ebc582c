// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/measures.hpp>

#include "base/check.hpp"
#include "spatial/layer.hpp"
#include "spatial/row_sums.cuh"

#include <algorithm>

namespace kiln::spatial::cpu {

namespace {

using namespace kiln_spatial;

// One value per row that is not null; `empty` for empty ones.
template <class T, class Of>
result<std::vector<std::optional<T>>> by_row(geometries const& of, std::optional<T> empty, Of value) {
    KILN_TRY(auto const rows, host_layer::plain(of));
    auto const l = rows.view();
    std::vector<std::optional<T>> out(rows.rows());
    for (std::size_t r = 0; r < out.size(); ++r) {
        if (rows.state(r) == row_state::empty) out[r] = empty;
        if (rows.state(r) == row_state::there) out[r] = value(l, static_cast<i32>(r));
    }
    return out;
}

bounding_box box_of_row(layer const& l, i32 row) {
    auto const first = l.path_first[l.row_first[row]], last = l.path_first[l.row_first[row + 1]];
    bounding_box out{l.at[first].x, l.at[first].y, l.at[first].x, l.at[first].y};
    for (i32 v = first; v < last; ++v) {
        out.min_x = std::min(out.min_x, l.at[v].x), out.min_y = std::min(out.min_y, l.at[v].y);
        out.max_x = std::max(out.max_x, l.at[v].x), out.max_y = std::max(out.max_y, l.at[v].y);
    }
    // Zeros are +0, so that the order of vertices is not in the answer.
    return {add(out.min_x, 0.0), add(out.min_y, 0.0), add(out.max_x, 0.0), add(out.max_y, 0.0)};
}

// One run of vertices after the other.
double area_of(layer const& l, i32 row) {
    return area_of_row(l, row, [&](i32 path, i32 v) { return ring_run(l, path, v); });
}
double length_of(layer const& l, i32 row) {
    return sums_of_row(l, row, [&](i32 r, i32 v) { return line_run(l, r, v); }).weight;
}
location centroid_of(layer const& l, i32 row) {
    auto const at = centroid_of_row(
        l, row, [&](i32 path, i32 v) { return ring_run(l, path, v); }, [&](i32 r, i32 v) { return line_run(l, r, v); },
        [&](i32 r, i32 v) { return point_run(l, r, v); });
    return {at.x, at.y};
}

}  // namespace

result<std::vector<std::optional<bounding_box>>> bounds(geometries const& of) {
    return by_row<bounding_box>(of, {}, box_of_row);
}
result<std::optional<bounding_box>> total_bounds(geometries const& of) {
    KILN_TRY(auto const all, bounds(of));
    std::optional<bounding_box> out;
    for (auto const& b : all) {
        if (!b) continue;
        if (!out) out = b;
        out->min_x = std::min(out->min_x, b->min_x), out->min_y = std::min(out->min_y, b->min_y);
        out->max_x = std::max(out->max_x, b->max_x), out->max_y = std::max(out->max_y, b->max_y);
    }
    return out;
}
result<std::vector<std::optional<double>>> area(geometries const& of) { return by_row<double>(of, 0.0, area_of); }
result<std::vector<std::optional<double>>> length(geometries const& of) { return by_row<double>(of, 0.0, length_of); }
result<std::vector<std::optional<location>>> centroid(geometries const& of) {
    return by_row<location>(of, {}, centroid_of);
}

}  // namespace kiln::spatial::cpu
