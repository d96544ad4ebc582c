// SPDX-License-Identifier: Apache-2.0
// Pairs of rows on the host: which boxes meet, where their elements do, what is inside of what. All of it pair by pair, so nothing is
// kept for longer than a pair but what a row is asked for again and again: boxes around blocks of its vertices, which are in the order of
// its paths, where neighbours are near each other and nothing has to be sorted, and where it is large and asked often a tree.
#pragma once

#include "spatial/layer.hpp"

#include <memory>

namespace kiln::spatial {

class row_lookup {
public:
    explicit row_lookup(host_layer const& of);  // borrows it

    static constexpr std::int32_t block = 16;
    struct element {
        kiln_spatial::box around;
        std::int32_t vertex;
    };

    // Of a row's vertices; (inf, inf, -inf, -inf) where it has none.
    [[nodiscard]] kiln_spatial::box const& box_of(std::int32_t row) const noexcept {
        return boxes_[static_cast<std::size_t>(row)];
    }
    [[nodiscard]] std::vector<kiln_spatial::box> const& boxes() const noexcept { return boxes_; }

    // The row's elements whose boxes meet this one, by least x.
    void elements_in(std::int32_t row, kiln_spatial::box const& in, std::vector<element>& out);
    // Whether a point that is on no ring of the row's is inside its area.
    [[nodiscard]] bool is_inside(std::int32_t row, kiln_spatial::point p);

private:
    // Over the elements of one row.
    struct element_tree {
        std::vector<std::int32_t> vertices;
        host_tree tree;
    };
    struct row_state_of_lookup {
        bool has_blocks = false;
        std::int32_t asked = 0;
        std::unique_ptr<element_tree> tree;
    };
    [[nodiscard]] std::int32_t first_vertex(std::int32_t row) const noexcept {
        return layer_.path_first[layer_.row_first[row]];
    }
    // The box of each block of vertices of a row, with the one behind it, where the last segment may end.
    [[nodiscard]] kiln_spatial::box* blocks_of(std::int32_t row) const noexcept {
        return blocks_.get() + first_vertex(row) / block + row;
    }
    row_state_of_lookup& prepared(std::int32_t row);
    template <class Visit>
    void visit_elements(std::int32_t from, std::int32_t to, Visit visit) const;
    template <class Visit>
    void visit(std::int32_t row, kiln_spatial::box const& in, Visit visit);

    kiln_spatial::layer layer_;
    std::vector<kiln_spatial::box> boxes_;
    std::vector<row_state_of_lookup> rows_;
    std::unique_ptr<kiln_spatial::box[]> blocks_;
};

// Does the segment pass strictly above p? Half open, so that a vertex at that x counts once.
[[nodiscard]] bool passes_above(kiln_spatial::layer const& l, std::int32_t v, kiln_spatial::point p);

// Right rows whose boxes meet a box, in order.
class row_candidates {
public:
    explicit row_candidates(row_lookup const& right);
    void of(kiln_spatial::box const& left, std::vector<std::int32_t>& out) const;

private:
    std::vector<std::int32_t> there_;  // rows that have a box
    std::vector<kiln_spatial::box> boxes_;
    host_tree tree_;
};

inline bool meet(kiln_spatial::box const& a, kiln_spatial::box const& b) noexcept {
    return a.min_x <= b.max_x && b.min_x <= a.max_x && a.min_y <= b.max_y && b.min_y <= a.max_y;
}
inline bool covers(kiln_spatial::box const& a, kiln_spatial::box const& b) noexcept {
    return a.min_x <= b.min_x && a.min_y <= b.min_y && a.max_x >= b.max_x && a.max_y >= b.max_y;
}

// Elements of two rows that may meet: visit(vertex of left, vertex of right) until it returns true.
class element_pairs {
public:
    template <class Visit>
    void of(row_lookup& left, std::int32_t i, row_lookup& right, std::int32_t j, Visit visit) {
        auto const &a = left.box_of(i), &b = right.box_of(j);
        kiln_spatial::box const common{std::max(a.min_x, b.min_x), std::max(a.min_y, b.min_y),
                                       std::min(a.max_x, b.max_x), std::min(a.max_y, b.max_y)};
        left.elements_in(i, common, left_);
        if (left_.empty()) return;
        right.elements_in(j, common, right_);
        // Both by least x: whichever begins first is compared with those that begin before it ends.
        for (std::size_t p = 0, q = 0; p < left_.size() && q < right_.size();) {
            if (left_[p].around.min_x < right_[q].around.min_x) {
                for (auto k = q; k < right_.size() && right_[k].around.min_x <= left_[p].around.max_x; ++k)
                    if (meet_in_y(left_[p], right_[k]) && visit(left_[p].vertex, right_[k].vertex)) return;
                ++p;
            } else {
                for (auto k = p; k < left_.size() && left_[k].around.min_x <= right_[q].around.max_x; ++k)
                    if (meet_in_y(left_[k], right_[q]) && visit(left_[k].vertex, right_[q].vertex)) return;
                ++q;
            }
        }
    }

private:
    static bool meet_in_y(row_lookup::element const& a, row_lookup::element const& b) noexcept {
        return a.around.min_y <= b.around.max_y && b.around.min_y <= a.around.max_y;
    }
    std::vector<row_lookup::element> left_, right_;
};

}  // namespace kiln::spatial
