// SPDX-License-Identifier: Apache-2.0
#include "spatial/rectangles.hpp"

#include "spatial/kept_layer.hpp"
#include "spatial/pairs.hpp"
#include "spatial/rectangles.cuh"

namespace kiln::spatial {

using namespace kiln_spatial;

bool may_be_rectangles(geometries const& g) noexcept {
    if (g.kind() != family::polygon) return false;
    auto const rings = g.parts().offsets[1].size();
    return rings > 1 && g.vertices() == 5 * (rings - 1);
}

result<std::optional<rectangle_rows>> rectangle_rows::make(queue& on, geometries const& left, geometries const& right) {
    std::optional<rectangle_rows> out;
    if (!may_be_rectangles(left) || !may_be_rectangles(right)) return out;
    rectangle_rows found{on};
    KILN_TRY(auto others, on.filled<std::uint64_t>(1, 0));
    KILN_TRY(found.left_, on.room<box>(left.rows()));
    KILN_TRY(found.right_, on.room<box>(right.rows()));
    KILN_CHECK(on.launch(find_rectangles{memory_rows_of(left), found.left_.data(), raw(others)}, left.rows()));
    KILN_CHECK(on.launch(find_rectangles{memory_rows_of(right), found.right_.data(), raw(others)}, right.rows()));
    std::uint64_t none = 0;
    KILN_CHECK(on.read_sync({{others.data(), none}}));
    if (none == 0) out = std::move(found);
    return out;
}

result<pair_list> rectangle_rows::pairs(predicate what) const {
    KILN_TRY(auto const tree, kept_tree::make(*on_, right_));
    KILN_TRY(auto const met, query_boxes(*on_, tree, left_, 0));
    if (what == predicate::intersects || met.size() == 0) return met;
    KILN_TRY(auto const counts, on_->room<std::int64_t>(met.size() + 1));
    KILN_CHECK(on_->launch(judge_rectangles{static_cast<i32>(what), met.left.data(), met.right.data(), left_.data(),
                                            right_.data(), raw(counts)},
                           met.size()));
    return counted_pairs(*on_, met, counts);
}

}  // namespace kiln::spatial
