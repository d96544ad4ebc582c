// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/measures.hpp>

#include "base/check.hpp"
#include "spatial/layer.hpp"

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
    return out;
}

// Twice the signed area and six times its first moments, around the ring's first vertex: small numbers stay small.
struct ring_sums {
    double area = 0, x = 0, y = 0;
};
ring_sums sums_of(layer const& l, i32 path) {
    ring_sums out;
    i32 const first = l.path_first[path];
    point const o = l.at[first];
    for (i32 v = first; v + 1 < l.path_first[path + 1]; ++v) {
        double const ax = l.at[v].x - o.x, ay = l.at[v].y - o.y, bx = l.at[v + 1].x - o.x, by = l.at[v + 1].y - o.y;
        double const cross = ax * by - ay * bx;
        out.area += cross, out.x += cross * (ax + bx), out.y += cross * (ay + by);
    }
    // As if it ran counter-clockwise; holes count down.
    double const sign = (out.area < 0) != (l.kind[path] == reversed_ring) ? -1 : 1;
    return {sign * out.area, sign * out.x, sign * out.y};
}

double area_of_row(layer const& l, i32 row) {
    double out = 0;
    for (i32 p = l.row_first[row]; p < l.row_first[row + 1]; ++p)
        if (l.kind[p] >= ring_path) out += sums_of(l, p).area / 2;
    return out;
}

double distance_between(point a, point b) { return std::hypot(b.x - a.x, b.y - a.y); }

double length_of_row(layer const& l, i32 row) {
    double out = 0;
    for (i32 v = l.path_first[l.row_first[row]]; v < l.path_first[l.row_first[row + 1]]; ++v)
        if (is_segment(l, v)) out += distance_between(l.at[v], l.at[v + 1]);
    return out;
}

location centroid_of_row(layer const& l, i32 row) {
    i32 const first = l.row_first[row], last = l.row_first[row + 1];
    double weight = 0, x = 0, y = 0;
    point const o = l.at[l.path_first[first]];  // one origin, so that sums of paths fit together
    for (i32 p = first; p < last; ++p) {
        if (l.kind[p] < ring_path) continue;
        auto const s = sums_of(l, p);
        point const own = l.at[l.path_first[p]];
        weight += 3 * s.area;
        x += s.x + 3 * s.area * (own.x - o.x), y += s.y + 3 * s.area * (own.y - o.y);
    }
    if (weight == 0) {
        x = y = 0;
        for (i32 v = l.path_first[first]; v < l.path_first[last]; ++v) {
            if (!is_segment(l, v)) continue;
            double const d = distance_between(l.at[v], l.at[v + 1]);
            weight += 2 * d;
            x += d * (l.at[v].x - o.x + (l.at[v + 1].x - o.x)), y += d * (l.at[v].y - o.y + (l.at[v + 1].y - o.y));
        }
    }
    if (weight == 0) {
        x = y = 0;
        for (i32 v = l.path_first[first]; v < l.path_first[last]; ++v)
            weight += 1, x += l.at[v].x - o.x, y += l.at[v].y - o.y;
    }
    return {o.x + x / weight, o.y + y / weight};
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
result<std::vector<std::optional<double>>> area(geometries const& of) { return by_row<double>(of, 0.0, area_of_row); }
result<std::vector<std::optional<double>>> length(geometries const& of) {
    return by_row<double>(of, 0.0, length_of_row);
}
result<std::vector<std::optional<location>>> centroid(geometries const& of) {
    return by_row<location>(of, {}, centroid_of_row);
}

}  // namespace kiln::spatial::cpu
