// SPDX-License-Identifier: Apache-2.0
//
// Borders that do not cross inside of segments meet in vertices of the noded layer. There every ray has its row's interior on one side, so that
// around a vertex the sides must change from ray to ray: if they do not, rings cross in that vertex, or lie in each other where they must not.
// Rings that touch each other, directly or through others, are then right or wrong together; whether they are right is told by one of their
// points and the parity there of all rings that they do not touch.
#include "spatial/rings.hpp"

#include "base/check.hpp"
#include "spatial/relate.cuh"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace kiln::spatial {

namespace {

using namespace kiln_spatial;

class ring_check {
public:
    ring_check(host_layer const& of, row_lookup& rows) : of_{of}, l_{of.view()}, rows_{rows} {}

    std::optional<flawed_row> run(i32 row) {
        row_ = row;
        first_ = l_.row_first[row], last_ = l_.row_first[row + 1];
        if (of_.dimension(static_cast<std::size_t>(row)) != 2 || first_ == last_) return {};
        finding_.reset();
        group_.resize(static_cast<std::size_t>(last_ - first_));
        std::iota(group_.begin(), group_.end(), 0);
        if (have_area() && are_apart() && change_sides()) lie_where_they_should();
        return finding_;
    }

private:
    template <class... Args>
    bool found(flaw what, fmt::format_string<Args...> format, Args&&... args) {
        finding_ = flawed_row{static_cast<std::size_t>(row_), what,
                              fmt::format("row {}: {}", row_, fmt::format(format, std::forward<Args>(args)...))};
        return false;
    }

    // What had several vertices and has one left is a point.
    bool have_area() {
        for (i32 p = first_; p < last_; ++p)
            if (!is_ring(l_.kind[p]))
                return found(flaw::shared_border, "a ring has no area: all its vertices are ({0}, {1})",
                             l_.at[l_.path_first[p]].x, l_.at[l_.path_first[p]].y);
        return true;
    }

    // No two segments cross inside.
    bool are_apart() {
        rows_.elements_in(row_, rows_.box_of(row_), all_);
        bool const many_pass_one_x = all_.size() > 20'000;
        for (std::size_t i = 0; i < all_.size(); ++i) {
            auto const& a = all_[i];
            if (many_pass_one_x) rows_.elements_in(row_, a.around, near_);
            auto const& others = many_pass_one_x ? near_ : all_;
            for (std::size_t k = many_pass_one_x ? 0 : i + 1; k < others.size(); ++k) {
                auto const& b = others[k];
                if (b.around.min_x > a.around.max_x) break;
                if (b.around.min_y > a.around.max_y || a.around.min_y > b.around.max_y) continue;
                if (!cross(a.vertex, b.vertex)) continue;
                point const p = l_.at[a.vertex], q = l_.at[a.vertex + 1], r = l_.at[b.vertex], s = l_.at[b.vertex + 1];
                return found(flaw::crossing_rings, "rings cross: ({} {}, {} {}) and ({} {}, {} {})", p.x, p.y, q.x, q.y,
                             r.x, r.y, s.x, s.y);
            }
        }
        return true;
    }
    [[nodiscard]] bool cross(i32 v, i32 w) const {
        point const a = l_.at[v], b = l_.at[v + 1], c = l_.at[w], d = l_.at[w + 1];
        if (a == d || b == c || a == c || b == d) return false;  // neighbours, nearly always
        return contact_of(a, b, c, d) == crossing;
    }

    // A border that leaves a vertex, and whether its row's interior is on its left, that is, counter-clockwise of it.
    struct ray {
        point to;
        bool has_interior_left;
    };
    void take_rays(i32 v) {
        bool const is_reversed = l_.kind[l_.path_of[v]] == reversed_ring;
        rays_.push_back({l_.at[vertex_before(l_, v)], is_reversed});
        rays_.push_back({l_.at[vertex_after(l_, v)], !is_reversed});
    }
    static bool is_same(point x, point a, point b) { return orient(x, a, b) == 0 && same_direction(x, a, b); }

    // Rays in the order in which they come clockwise; false where two are one.
    bool turn_from(point x) {
        auto const first = rays_.front().to;
        for (std::size_t k = 1; k < rays_.size(); ++k)
            if (is_same(x, first, rays_[k].to)) return false;
        std::sort(rays_.begin() + 1, rays_.end(),
                  [&](ray const& a, ray const& b) { return is_before(x, first, a.to, b.to); });
        for (std::size_t k = 2; k < rays_.size(); ++k)
            if (is_same(x, rays_[k - 1].to, rays_[k].to)) return false;
        return true;
    }

    // Around every vertex.
    bool change_sides() {
        for (i32 v = l_.path_first[first_]; v < l_.path_first[last_]; ++v) {
            if (!is_segment(l_, v)) continue;  // a ring's last is its first
            i32 const group = l_.group_first[v];
            if (l_.member[group] != v) continue;
            point const x = l_.at[v];
            rays_.clear();
            for (i32 k = group; k < group + l_.group_size[v]; ++k) {
                take_rays(l_.member[k]);
                unite(l_.path_of[v], l_.path_of[l_.member[k]]);
            }
            if (!turn_from(x))
                return found(flaw::shared_border, "rings run twice over one piece, or back, from ({}, {})", x.x, x.y);
            if (rays_.size() == 2) continue;
            for (std::size_t k = 0; k < rays_.size(); ++k)
                if (rays_[k].has_interior_left == rays_[(k + 1) % rays_.size()].has_interior_left)
                    return found(flaw::crossing_rings,
                                 "rings cross in ({}, {}), or lie in each other where they must not", x.x, x.y);
        }
        return true;
    }

    // Rings that touch, as the least of them.
    i32 group_of(i32 path) {
        auto at = path - first_;
        while (group_[static_cast<std::size_t>(at)] != at) at = group_[static_cast<std::size_t>(at)];
        return at;
    }
    void unite(i32 a, i32 b) {
        i32 const p = group_of(a), q = group_of(b);
        group_[static_cast<std::size_t>(std::max(p, q))] = std::min(p, q);
    }

    // Left of the leftmost vertex of rings that touch each other is none of them: that is exterior exactly where the others say so.
    bool lie_where_they_should() {
        if (last_ - first_ == 1) return true;
        for (i32 p = 0; p < last_ - first_; ++p) group_[static_cast<std::size_t>(p)] = group_of(first_ + p);
        leftmost_.assign(group_.size(), -1);
        for (i32 v = l_.path_first[first_]; v < l_.path_first[last_]; ++v) {
            if (!is_segment(l_, v)) continue;
            auto& best = leftmost_[static_cast<std::size_t>(group_[static_cast<std::size_t>(l_.path_of[v] - first_)])];
            if (best < 0 || l_.at[v].x < l_.at[best].x || (l_.at[v].x == l_.at[best].x && l_.at[v].y < l_.at[best].y))
                best = v;
        }
        for (i32 g = 0; g < last_ - first_; ++g) {
            i32 const v = leftmost_[static_cast<std::size_t>(g)];
            if (v < 0 || is_interior_left_of(v) == is_inside_others(l_.at[v], g)) continue;
            return found(flaw::misplaced_ring, "the ring at ({}, {}) is {}", l_.at[v].x, l_.at[v].y,
                         is_interior_left_of(v) ? "a hole outside of its polygon" : "a polygon inside of another");
        }
        return true;
    }
    // All rays point right or up: the one that is farthest to the left of all has it on its own left.
    bool is_interior_left_of(i32 v) {
        rays_.clear();
        for (i32 k = l_.group_first[v]; k < l_.group_first[v] + l_.group_size[v]; ++k) take_rays(l_.member[k]);
        auto best = rays_.front();
        for (auto const& r : rays_)
            if (orient(l_.at[v], best.to, r.to) > 0) best = r;
        return best.has_interior_left;
    }
    bool is_inside_others(point p, i32 own) {
        bool out = false;
        rows_.elements_in(row_, {p.x, p.y, p.x, rows_.box_of(row_).max_y}, near_);
        for (auto const& e : near_)
            if (group_[static_cast<std::size_t>(l_.path_of[e.vertex] - first_)] != own && passes_above(l_, e.vertex, p))
                out = !out;
        return out;
    }

    host_layer const& of_;
    layer l_;
    row_lookup& rows_;
    i32 row_ = 0, first_ = 0, last_ = 0;  // and its paths
    std::optional<flawed_row> finding_;
    std::vector<row_lookup::element> all_, near_;
    std::vector<ray> rays_;
    std::vector<i32> group_;     // by path of the row
    std::vector<i32> leftmost_;  // by group
};

}  // namespace

std::vector<flawed_row> flawed_rings(host_layer const& noded, row_lookup& rows, std::size_t most) {
    std::vector<flawed_row> out;
    ring_check check{noded, rows};
    for (std::size_t row = 0; row < noded.rows() && out.size() < most; ++row)
        if (auto bad = check.run(static_cast<i32>(row))) out.push_back(*std::move(bad));
    return out;
}

error refused_rings(std::string_view side, std::string_view row_and_reason) {
    return fail(errc::invalid_argument, "relate: on the {}, {}; make_valid mends such rows", side, row_and_reason);
}
error refused_rings(std::string_view side, std::size_t first, flawed_row const& what) {
    auto const reason = std::string_view{what.message}.substr(what.message.find(": "));  // after the number
    return refused_rings(side, fmt::format("row {}{}", first + what.row, reason));
}

result<std::vector<flawed_row>> validate_rings(geometries const& what, std::size_t most) {
    KILN_TRY(auto const noded, host_layer::noded(what));
    row_lookup rows{noded};
    return flawed_rings(noded, rows, most);
}

}  // namespace kiln::spatial
