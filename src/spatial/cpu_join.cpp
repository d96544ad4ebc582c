// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/locate.hpp>
#include <kiln/spatial/relate.hpp>

#include "base/check.hpp"
#include "spatial/relate_pairs.hpp"

#include <algorithm>
#include <unistd.h>

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

bool by_rows(row_pair a, row_pair b) noexcept { return a.left != b.left ? a.left < b.left : a.right < b.right; }

// Whether rows of these boxes can be a pair.
bool boxes_allow(predicate what, kiln_spatial::box const& left, kiln_spatial::box const& right) noexcept {
    switch (what) {
        case predicate::contains:
        case predicate::contains_properly:
        case predicate::covers: return spatial::covers(left, right);
        case predicate::within:
        case predicate::covered_by: return spatial::covers(right, left);
        case predicate::equals: return spatial::covers(left, right) && spatial::covers(right, left);
        default: return true;
    }
}

// The first contact, or one path inside an area of the other row, is enough.
class meeting_rows {
public:
    meeting_rows(host_layer const& left, host_layer const& right)
        : left_{left.view()}, right_{right.view()}, left_rows_{left}, right_rows_{right}, candidates_{right_rows_} {}

    void of(std::int32_t i, std::vector<row_pair>& out) {
        auto const& box = left_rows_.box_of(i);
        if (!(box.min_x <= box.max_x)) return;
        candidates_.of(box, found_);
        in_any_order(found_.size(), [&](std::size_t k) {
            if (meets(i, found_[k])) out.push_back({i, found_[k]});
        });
    }

private:
    bool meets(std::int32_t i, std::int32_t j) {
        // A vertex of one inside the other's box is likely inside the other, and cheaper to ask.
        if (first_inside(left_, i, right_, right_rows_, j) || first_inside(right_, j, left_, left_rows_, i))
            return true;
        bool out = false;
        elements_.of(left_rows_, i, right_rows_, j, [&](std::int32_t a, std::int32_t b) {
            out = contact_of(left_.at[a], element_end(left_, a), right_.at[b], element_end(right_, b)) !=
                  kiln_spatial::apart;
            return out;
        });
        return out || any_inside(left_, i, right_, right_rows_, j) || any_inside(right_, j, left_, left_rows_, i);
    }
    static bool has_area(kiln_spatial::layer const& l, std::int32_t row) noexcept {
        return l.kind[l.row_first[row]] >= kiln_spatial::ring_path;
    }
    // On the boundary, either answer may come; both are right for rows that then meet anyway.
    static bool first_inside(kiln_spatial::layer const& of, std::int32_t row, kiln_spatial::layer const& in,
                             row_lookup& rows, std::int32_t other) {
        return has_area(in, other) && rows.is_inside(other, of.at[of.path_first[of.row_first[row]]]);
    }
    static bool any_inside(kiln_spatial::layer const& of, std::int32_t row, kiln_spatial::layer const& in,
                           row_lookup& rows, std::int32_t other) {
        if (!has_area(in, other)) return false;
        for (auto p = of.row_first[row] + 1; p < of.row_first[row + 1]; ++p)
            if (rows.is_inside(other, of.at[of.path_first[p]])) return true;
        return false;
    }

    kiln_spatial::layer left_, right_;
    row_lookup left_rows_, right_rows_;
    row_candidates candidates_;
    element_pairs elements_;
    std::vector<std::int32_t> found_;
};

result<std::vector<row_pair>> join_meeting(geometries const& left, geometries const& right) {
    KILN_TRY(auto const a, host_layer::plain(left));
    KILN_TRY(auto const b, host_layer::plain(right));
    meeting_rows rows{a, b};
    std::vector<row_pair> out;
    in_any_order(a.rows(), [&](std::size_t i) { rows.of(static_cast<std::int32_t>(i), out); });
    settle(out, by_rows);
    return out;
}

std::size_t rows_there(geometries const& g) {
    std::size_t out = 0;
    for (std::size_t i = 0; i < g.rows(); ++i) out += g.is_null(i) ? 0 : 1;
    return out;
}

// All pairs of rows that are there and are not among those that meet. How many is known before: nearly all of them, as a rule.
result<std::vector<row_pair>> others(geometries const& left, geometries const& right,
                                     std::vector<row_pair> const& meeting) {
    auto const count = rows_there(left) * rows_there(right) - meeting.size();
    auto const memory =
        static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    if (count > memory / sizeof(row_pair))
        return fail(errc::out_of_memory,
                    "join: {} pairs are disjoint, more than memory holds as a list; join_count counts them, and "
                    "join_in_chunks lists some at a time",
                    count);
    std::vector<row_pair> out;
    out.reserve(count);
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
    if (what == predicate::intersects) return join_meeting(left, right);
    KILN_TRY(auto layers, related_layers::make(left, right));
    std::vector<row_pair> out;
    layers.for_candidates([&](auto const& a, auto const& b) { return boxes_allow(what, a, b); },
                          [&](std::int32_t i, std::int32_t j) {
                              if (layers.holds(what, i, j)) out.push_back({i, j});
                          });
    settle(out, by_rows);
    return out;
}

}  // namespace kiln::spatial::cpu
