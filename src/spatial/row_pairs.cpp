// SPDX-License-Identifier: Apache-2.0
#include "spatial/row_pairs.hpp"

#include "spatial/exact.cuh"
#include "spatial/row_search.cuh"

#include <algorithm>
#include <cmath>

namespace kiln::spatial {

namespace {

using namespace kiln_spatial;

constexpr std::int32_t large_row = 2048, often = 8;

// Ties in any order: nothing depends on it.
struct by_least_x {
    bool operator()(row_lookup::element const& a, row_lookup::element const& b) const noexcept {
        return a.around.min_x < b.around.min_x;
    }
};

// Does the segment pass strictly above p? Half open, so that a vertex at that x counts once.
bool passes_above(layer const& l, i32 v, point p) {
    point const a = l.at[v], b = l.at[v + 1];
    if ((a.x > p.x) == (b.x > p.x)) return false;
    if (a.y > p.y && b.y > p.y) return true;
    return a.x < b.x ? orient(a, b, p) < 0 : orient(b, a, p) < 0;
}

}  // namespace

row_lookup::row_lookup(host_layer const& of) : layer_{of.view()}, boxes_(of.rows()), rows_(of.rows()) {
    for (std::size_t r = 0; r < of.rows(); ++r) {
        box b{INFINITY, INFINITY, -INFINITY, -INFINITY};
        i32 const first = layer_.path_first[layer_.row_first[r]], last = layer_.path_first[layer_.row_first[r + 1]];
        for (i32 v = first; v < last; ++v) {
            point const p = layer_.at[v];
            b = {least(b.min_x, p.x), least(b.min_y, p.y), most(b.max_x, p.x), most(b.max_y, p.y)};
        }
        boxes_[r] = b;
        rows_[r].first = first;
    }
    elements_.reset(new element[static_cast<std::size_t>(layer_.vertices)]);
    blocks_.reset(new box[static_cast<std::size_t>(layer_.vertices / block) + of.rows() + 1]);
}

row_lookup::row_state_of_lookup& row_lookup::listed(std::int32_t row) {
    auto& s = rows_[static_cast<std::size_t>(row)];
    auto* const first = elements_.get() + s.first;
    if (s.count < 0) {
        auto* to = first;
        for (auto path = layer_.row_first[row]; path < layer_.row_first[row + 1]; ++path) {
            if (layer_.kind[path] == no_path) continue;
            i32 const from = layer_.path_first[path], last = layer_.path_first[path + 1] - 1;
            if (layer_.kind[path] == point_path)
                *to++ = {kiln_spatial::box_of({layer_.at[from], layer_.at[from]}), from};
            else
                for (i32 v = from; v < last; ++v) *to++ = {kiln_spatial::box_of({layer_.at[v], layer_.at[v + 1]}), v};
        }
        s.count = static_cast<std::int32_t>(to - first);
        for (std::int32_t k = 0; k < s.count; k += block) {
            box all = first[k].around;
            for (auto e = k + 1; e < std::min(k + block, s.count); ++e) all = around_both(all, first[e].around);
            blocks_of(row)[k / block] = all;
        }
    }
    if (!s.tree && s.count >= large_row && ++s.asked > often) {
        std::vector<box> all(static_cast<std::size_t>(s.count));
        for (std::size_t k = 0; k < all.size(); ++k) all[k] = first[k].around;
        s.tree = std::make_unique<host_tree>(all);
    }
    return s;
}

template <class Visit>
void row_lookup::visit(std::int32_t row, box const& in, Visit visit) {
    auto const& s = listed(row);
    auto const* const first = elements_.get() + s.first;
    if (s.tree) {
        auto const view = s.tree->view();
        query_tree(view, outwards(in), [&](u32 slot) {
            auto const& e = first[view.item[slot]];
            if (meet(e.around, in)) visit(e);
        });
        return;
    }
    auto const* const blocks = blocks_of(row);
    for (std::int32_t k = 0; k < s.count; k += block) {
        if (!meet(blocks[k / block], in)) continue;
        for (auto e = k; e < std::min(k + block, s.count); ++e)
            if (meet(first[e].around, in)) visit(first[e]);
    }
}

void row_lookup::elements_in(std::int32_t row, box const& in, std::vector<element>& out) {
    out.clear();
    visit(row, in, [&](element const& e) { out.push_back(e); });
    std::sort(out.begin(), out.end(), by_least_x{});
}

bool row_lookup::is_inside(std::int32_t row, point p) {
    auto const& around = box_of(row);
    if (!(p.x >= around.min_x && p.x <= around.max_x && p.y >= around.min_y && p.y <= around.max_y)) return false;
    bool inside = false;
    visit(row, {p.x, p.y, p.x, around.max_y}, [&](element const& e) {
        if (layer_.kind[layer_.path_of[e.vertex]] >= ring_path && passes_above(layer_, e.vertex, p)) inside = !inside;
    });
    return inside;
}

row_candidates::row_candidates(row_lookup const& right) {
    for (std::size_t r = 0; r < right.boxes().size(); ++r) {
        auto const& b = right.boxes()[r];
        if (!(b.min_x <= b.max_x)) continue;
        there_.push_back(static_cast<std::int32_t>(r));
        boxes_.push_back(b);
    }
    tree_ = host_tree{boxes_};
}

void row_candidates::of(box const& left, std::vector<std::int32_t>& out) const {
    out.clear();
    auto const view = tree_.view();
    query_tree(view, outwards(left), [&](u32 slot) {
        auto const k = view.item[slot];
        if (meet(left, boxes_[k])) out.push_back(there_[k]);
    });
    std::sort(out.begin(), out.end());
}

}  // namespace kiln::spatial
