// SPDX-License-Identifier: Apache-2.0
// Distances of rows, where a queue runs.
#pragma once

#include "spatial/area_index.hpp"
#include "spatial/kept_layer.hpp"
#include "spatial/kept_tree.hpp"
#include "spatial/row_search.cuh"

#include <kiln/spatial/join.hpp>

namespace kiln_spatial {
enum class right_areas : int;  // pair_distance.cuh
}

namespace kiln::spatial {

// A layer whose rows can be searched.
class kept_search {
public:
    // One fence.
    [[nodiscard]] static result<kept_search> make(queue& on, geometries const& of);
    [[nodiscard]] kiln_spatial::row_search view() const noexcept;
    [[nodiscard]] kept_layer const& layer() const noexcept { return layer_; }

private:
    kept_layer layer_;
    buffer<kiln_spatial::box> blocks_, groups_;
};

// Row by row, as many as both have; NaN where there is none. Both lie where the queue runs.
[[nodiscard]] result<buffer<double>> distances_of_rows(queue& on, geometries const& left, geometries const& right);

// Pairs of rows that are at most so far apart, compared exactly.
class rows_within {
public:
    // So many vertices of areas may be walked past before an index over them is worth making.
    static constexpr std::size_t most_walked = std::size_t{1} << 28;
    // The right rows lie where the queue runs, which is kept by reference.
    [[nodiscard]] static result<rows_within> make(queue& on, geometries const& right, double distance,
                                                  std::size_t walked = most_walked);
    // By left, then right. Two fences, and one or two of the tree's; with an index, those of making and asking it.
    [[nodiscard]] result<pair_list> of(geometries const& left);

private:
    explicit rows_within(queue& on) noexcept : on_{&on} {}
    [[nodiscard]] result<kiln_spatial::right_areas> mark_insides(kept_layer const& left, pair_list const& asked,
                                                                 buffer<std::uint32_t> const& found);
    queue* on_;
    kept_search right_;
    buffer<kiln_spatial::box> boxes_;
    kept_tree tree_;
    std::shared_ptr<area_index::state const> areas_;  // made where it is worth it
    double distance_ = 0;
    std::size_t walked_ = most_walked;
    bool has_areas_ = false;
};

}  // namespace kiln::spatial
