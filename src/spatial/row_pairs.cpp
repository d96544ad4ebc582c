// SPDX-License-Identifier: Apache-2.0
#include "spatial/row_pairs.hpp"

#include "spatial/exact.cuh"
#include "spatial/row_search.cuh"

#include <algorithm>
#include <cmath>
#include <utility>

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

}  // namespace

bool passes_above(layer const& l, i32 v, point p) {
    point const a = l.at[v], b = l.at[v + 1];
    if ((a.x > p.x) == (b.x > p.x)) return false;
    if (a.y > p.y && b.y > p.y) return true;
    return a.x < b.x ? orient(a, b, p) < 0 : orient(b, a, p) < 0;
}

row_lookup::row_lookup(host_layer const& of) : layer_{of.view()}, boxes_(of.rows()), rows_(of.rows()) {
    for (std::size_t r = 0; r < of.rows(); ++r) {
        box b{INFINITY, INFINITY, -INFINITY, -INFINITY};
        i32 const first = layer_.path_first[layer_.row_first[r]], last = layer_.path_first[layer_.row_first[r + 1]];
        for (i32 v = first; v < last; ++v) {
            point const p = layer_.at[v];
            b = {least(b.min_x, p.x), least(b.min_y, p.y), most(b.max_x, p.x), most(b.max_y, p.y)};
        }
        boxes_[r] = b;
    }
    blocks_.reset(new box[static_cast<std::size_t>(layer_.vertices / block) + of.rows() + 1]);
}

// visit(element) for those that begin from one vertex to before another.
template <class Visit>
void row_lookup::visit_elements(std::int32_t from, std::int32_t to, Visit visit) const {
    for (i32 v = from; v < to;) {
        i32 const path = layer_.path_of[v], end = layer_.path_first[path + 1];
        u8 const kind = layer_.kind[path];
        i32 const last = kind == no_path ? v : std::min(to, kind == point_path ? end : end - 1);
        for (; v < last; ++v)
            visit(element{kiln_spatial::box_of({layer_.at[v], layer_.at[kind == point_path ? v : v + 1]}), v});
        if (last < to) v = end;
    }
}

row_lookup::row_state_of_lookup& row_lookup::prepared(std::int32_t row) {
    auto& s = rows_[static_cast<std::size_t>(row)];
    i32 const first = first_vertex(row), last = first_vertex(row + 1);
    if (!std::exchange(s.has_blocks, true)) {
        for (i32 k = first; k < last; k += block) {
            box all = no_box();
            for (i32 v = k; v <= std::min(k + block, last - 1); ++v)
                all = around_both(all, kiln_spatial::box_of({layer_.at[v], layer_.at[v]}));
            blocks_of(row)[(k - first) / block] = all;
        }
    }
    if (!s.tree && last - first >= large_row && ++s.asked > often) {
        s.tree = std::make_unique<element_tree>();
        std::vector<box> all;
        visit_elements(first, last,
                       [&](element const& e) { all.push_back(e.around), s.tree->vertices.push_back(e.vertex); });
        s.tree->tree = host_tree{all};
    }
    return s;
}

template <class Visit>
void row_lookup::visit(std::int32_t row, box const& in, Visit visit) {
    auto const& s = prepared(row);
    auto const if_met = [&](element const& e) {
        if (meet(e.around, in)) visit(e);
    };
    if (s.tree) {
        auto const view = s.tree->tree.view();
        query_tree(view, view.rough(in), [&](u32 slot) {
            auto const v = s.tree->vertices[view.item[slot]];
            visit_elements(v, v + 1, if_met);
        });
        return;
    }
    auto const* const blocks = blocks_of(row);
    i32 const first = first_vertex(row), last = first_vertex(row + 1);
    for (i32 k = first; k < last; k += block)
        if (meet(blocks[(k - first) / block], in)) visit_elements(k, std::min(k + block, last), if_met);
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
    query_tree(view, view.rough(left), [&](u32 slot) {
        auto const k = view.item[slot];
        if (meet(left, boxes_[k])) out.push_back(there_[k]);
    });
    std::sort(out.begin(), out.end());
}

}  // namespace kiln::spatial
