// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/nearest.hpp>

#include "base/check.hpp"
#include "spatial/cells.hpp"
#include "spatial/loops.hpp"
#include "spatial/near.hpp"
#include "spatial/row_pairs.hpp"
#include "spatial/within.cuh"

#include <algorithm>
#include <cmath>

namespace kiln::spatial::cpu {

namespace {

using namespace kiln_spatial;

struct zero_pair {
    i32 left, right;
};

// Rows of which one has a path inside an area of the other. (Those that touch are found at distance 0.)
std::vector<zero_pair> contained(host_layer const& left, host_layer const& right) {
    std::vector<zero_pair> out;
    for (int exchanged = 0; exchanged < 2; ++exchanged) {
        auto const& inner = exchanged == 0 ? left : right;
        host_cells const cells{exchanged == 0 ? right : left};
        auto const l = inner.view();
        for (i32 p = 0; p < l.paths; ++p) {
            cells.locate(l.at[l.path_first[p]], [&](i32 row, place) {
                out.push_back(exchanged == 0 ? zero_pair{l.row_of[p], row} : zero_pair{row, l.row_of[p]});
                return false;
            });
        }
    }
    std::sort(out.begin(), out.end(),
              [](zero_pair a, zero_pair b) { return a.left != b.left ? a.left < b.left : a.right < b.right; });
    return out;
}

// The same of the rows of one number: nothing is made of all rows together, which may lie over each other as often as there are rows.
bool has_path_inside(layer const& inner, row_lookup& areas, i32 row) {
    for (i32 p = inner.row_first[row]; p < inner.row_first[row + 1]; ++p)
        if (areas.is_inside(row, inner.at[inner.path_first[p]])) return true;
    return false;
}

std::vector<std::vector<i32>> elements_by_row(host_layer const& of) {
    std::vector<std::vector<i32>> out(of.rows());
    auto const l = of.view();
    for (auto const v : of.elements()) out[static_cast<std::size_t>(row_at(l, v))].push_back(v);
    return out;
}

box around(std::vector<box> const& all) {
    box out{INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (auto const& b : all)
        out = {least(out.min_x, b.min_x), least(out.min_y, b.min_y), most(out.max_x, b.max_x),
               most(out.max_y, b.max_y)};
    return out;
}

double square_to(layer const& a, std::vector<i32> const& elements, point c, point d) {
    double out = INFINITY;
    for (auto const v : elements) out = least(out, square_between_elements(a.at[v], element_end(a, v), c, d));
    return out;
}

// The nearest rows so far.
class shortlist {
public:
    shortlist(nearest_options const& how, double most) : how_{how}, most_{most} {}

    // The square beyond which nothing is wanted.
    double offer(i32 row, double square) {
        if (square > bound()) return bound();
        square = square_as_reported(square);
        auto const at = std::find_if(found_.begin(), found_.end(), [&](auto const& f) { return f.second == row; });
        if (at == found_.end()) found_.emplace_back(square, row);
        else at->first = least(at->first, square);
        if (found_.size() > 2 * how_.count + 16) trim();
        return bound();
    }
    double bound() {
        if (found_.size() < how_.count) return most_;
        auto const last = found_.begin() + static_cast<std::ptrdiff_t>(how_.count - 1);
        std::nth_element(found_.begin(), last, found_.end());
        return least(most_, last->first);
    }
    void write(i32 left, std::vector<near_pair>& to) {
        trim();
        for (auto const& [square, row] : found_) to.push_back({left, row, std::sqrt(square)});
    }

private:
    void trim() {
        std::sort(found_.begin(), found_.end());
        if (found_.size() <= how_.count) return;
        double const last = found_[how_.count - 1].first;
        auto end = found_.begin() + static_cast<std::ptrdiff_t>(how_.count);
        if (how_.equal == ties::kept)
            while (end != found_.end() && end->first == last) ++end;
        found_.erase(end, found_.end());
    }

    nearest_options how_;
    double most_;  // a square
    std::vector<std::pair<double, i32>> found_;
};

}  // namespace

result<std::vector<std::optional<double>>> distance(geometries const& left, geometries const& right) {
    KILN_TRY(auto const a, host_layer::plain(left));
    KILN_TRY(auto const b, host_layer::plain(right));
    auto const la = a.view(), lb = b.view();
    auto const ea = elements_by_row(a), eb = elements_by_row(b);
    row_lookup in_a{a}, in_b{b};
    std::vector<std::optional<double>> out(std::min(left.rows(), right.rows()));
    for (std::size_t r = 0; r < out.size(); ++r) {
        if (a.state(r) != row_state::there || b.state(r) != row_state::there) continue;
        auto const row = static_cast<i32>(r);
        if (has_path_inside(la, in_b, row) || has_path_inside(lb, in_a, row)) {
            out[r] = 0;
            continue;
        }
        auto const boxes = b.boxes_of(eb[r]);
        host_tree const tree{boxes};
        double square = INFINITY;
        auto const own = a.boxes_of(ea[r]);
        for (std::size_t i = 0; i < ea[r].size() && square > 0; ++i) {
            i32 const va = ea[r][i];
            nearest_in_tree(tree.view(), tree.view().rough(own[i]), square, [&](u32 slot, double) {
                i32 const vb = eb[r][tree.view().item[slot]];
                square = least(square,
                               square_between_elements(la.at[va], element_end(la, va), lb.at[vb], element_end(lb, vb)));
                return square;
            });
        }
        out[r] = std::sqrt(square);
    }
    return out;
}

result<std::vector<near_pair>> nearest(geometries const& left, geometries const& right, nearest_options const& how) {
    if (how.count == 0 || !(how.most >= 0))
        return fail(errc::invalid_argument, "nearest: count {} within {}: at least 1, within a distance of at least 0",
                    how.count, how.most);
    KILN_TRY(auto const a, host_layer::plain(left));
    KILN_TRY(auto const b, host_layer::plain(right));
    auto const la = a.view(), lb = b.view();
    auto const own = elements_by_row(a);
    auto const others = b.elements();
    auto const boxes = b.boxes_of(others);
    host_tree const tree{boxes};
    auto const view = tree.view();
    double const most = greatest_square_within(how.most);
    auto const zero = contained(a, b);
    auto next = zero.begin();
    std::vector<near_pair> out;
    for (std::size_t r = 0; r < own.size(); ++r) {
        auto const row = static_cast<i32>(r);
        if (own[r].empty()) continue;
        shortlist best{how, most};
        for (; next != zero.end() && next->left == row; ++next) best.offer(next->right, 0);
        nearest_in_tree(view, view.rough(around(a.boxes_of(own[r]))), best.bound(), [&](u32 slot, double) {
            i32 const v = others[view.item[slot]];
            return best.offer(row_at(lb, v), square_to(la, own[r], lb.at[v], element_end(lb, v)));
        });
        best.write(row, out);
    }
    return out;
}

namespace {

// Everything at most `by` from the box, and perhaps a little more.
box widened(box const& b, double by) {
    return {next_down(b.min_x - by), next_down(b.min_y - by), next_up(b.max_x + by), next_up(b.max_y + by)};
}

}  // namespace

result<std::vector<row_pair>> join_within(geometries const& left, geometries const& right, double distance) {
    if (!(distance >= 0) || !in_domain(distance))
        return fail(errc::invalid_argument, "dwithin: a distance of {}; 0, or from 2^-300 to below 2^330", distance);
    KILN_TRY(auto const a, host_layer::plain(left));
    KILN_TRY(auto const b, host_layer::plain(right));
    auto const la = a.view(), lb = b.view();
    auto const own = elements_by_row(a);
    auto const others = b.elements();
    auto const boxes = b.boxes_of(others);
    host_tree const tree{boxes};
    auto const view = tree.view();
    auto const inside = contained(a, b);
    auto next = inside.begin();
    std::vector<row_pair> out;
    std::vector<i32> seen_by(b.rows(), -1);  // the last left row that each right row was found for
    for (std::size_t r = 0; r < own.size(); ++r) {
        auto const row = static_cast<i32>(r);
        auto const first = out.size();
        auto const found = [&](i32 other) {
            if (std::exchange(seen_by[static_cast<std::size_t>(other)], row) != row) out.push_back({row, other});
        };
        for (; next != inside.end() && next->left == row; ++next) found(next->right);
        auto const own_boxes = a.boxes_of(own[r]);
        in_any_order(own[r].size(), [&](std::size_t i) {
            point const p = la.at[own[r][i]], q = element_end(la, own[r][i]);
            query_tree(view, view.rough(widened(own_boxes[i], distance)), [&](u32 slot) {
                i32 const v = others[view.item[slot]], other = row_at(lb, v);
                if (seen_by[static_cast<std::size_t>(other)] == row) return;
                if (elements_within(p, q, lb.at[v], element_end(lb, v), distance)) found(other);
            });
        });
        std::sort(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
                  [](row_pair x, row_pair y) { return x.right < y.right; });
    }
    return out;
}

}  // namespace kiln::spatial::cpu
