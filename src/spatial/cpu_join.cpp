// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/locate.hpp>
#include <kiln/spatial/relate.hpp>

#include "base/check.hpp"

#include <algorithm>

namespace kiln::spatial::cpu {

namespace {

bool is_area(geometries const& g) noexcept { return g.kind() == family::polygon || g.kind() == family::multipolygon; }

enum class order : std::uint8_t { point_area, area_point };

// A point is inside an area or on its boundary: that is all a predicate can ask.
bool holds_for(predicate what, standing how, order rows) noexcept {
    bool const inside = how == standing::inside;
    switch (what) {
        case predicate::intersects: return true;
        case predicate::covered_by: return rows == order::point_area;
        case predicate::within: return rows == order::point_area && inside;
        case predicate::covers: return rows == order::area_point;
        case predicate::contains:
        case predicate::contains_properly: return rows == order::area_point && inside;
        case predicate::touches: return !inside;
        default: return false;
    }
}

result<std::vector<row_pair>> join_points(geometries const& points, geometries const& areas, predicate what,
                                          order rows) {
    KILN_TRY(auto const index, area_index::make(areas));
    KILN_TRY(auto const found, index.locate(points));
    std::vector<row_pair> out;
    for (auto const& f : found) {
        if (!holds_for(what, f.how, rows)) continue;
        out.push_back(rows == order::point_area ? row_pair{f.point, f.area} : row_pair{f.area, f.point});
    }
    if (rows == order::area_point)
        std::stable_sort(out.begin(), out.end(), [](row_pair a, row_pair b) { return a.left < b.left; });
    return out;
}

// All pairs of rows that are there and are not among those that meet.
std::vector<row_pair> others(geometries const& left, geometries const& right, std::vector<row_pair> const& meeting) {
    std::vector<row_pair> out;
    auto next = meeting.begin();
    for (std::size_t i = 0; i < left.rows(); ++i) {
        if (left.is_null(i)) continue;
        for (std::size_t j = 0; j < right.rows(); ++j) {
            row_pair const pair{static_cast<std::int32_t>(i), static_cast<std::int32_t>(j)};
            if (next != meeting.end() && *next == pair) ++next;
            else if (!right.is_null(j)) out.push_back(pair);
        }
    }
    return out;
}

}  // namespace

result<std::vector<row_pair>> join(geometries const& left, geometries const& right, predicate what) {
    if (what == predicate::disjoint) {
        KILN_TRY(auto const meeting, join(left, right, predicate::intersects));
        return others(left, right, meeting);
    }
    if (left.kind() == family::point && is_area(right)) return join_points(left, right, what, order::point_area);
    if (right.kind() == family::point && is_area(left)) return join_points(right, left, what, order::area_point);
    KILN_TRY(auto const related, relate_join(left, right));
    std::vector<row_pair> out;
    for (auto const& pair : related)
        if (holds(what, pair.how)) out.push_back({pair.left, pair.right});
    return out;
}

}  // namespace kiln::spatial::cpu
