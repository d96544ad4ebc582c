// SPDX-License-Identifier: Apache-2.0
// Rows that have a point in common, where a queue runs: those of which elements meet, and those of which one lies inside the other.
#pragma once

#include "spatial/area_index.hpp"
#include "spatial/kept_elements.hpp"

#include <kiln/spatial/join.hpp>

#include <memory>

namespace kiln::spatial {

// The side that is asked: made once for many that ask.
struct meeting_target {
    kept_layer layer;
    kept_elements elements;
    std::shared_ptr<area_index::state const> areas;  // of a lasting one that has areas
    bool has_areas = false;
    std::size_t rows = 0;

    [[nodiscard]] static result<meeting_target> make(queue& on, geometries const& right);
    // With the index of its areas, which pays where it is asked again and again.
    [[nodiscard]] static result<meeting_target> make_lasting(queue& on, geometries const& right);
};

class rows_met {
public:
    // All of them lie where the queue runs, which is kept by reference.
    [[nodiscard]] static result<rows_met> make(queue& on, geometries const& left, geometries const& right);
    [[nodiscard]] static result<rows_met> make(queue& on, geometries const& left, meeting_target const& right);

    // One fence.
    [[nodiscard]] result<pair_list> pairs();
    // These list nothing, and wait for nothing.
    [[nodiscard]] result<buffer<std::int32_t>> first();
    [[nodiscard]] result<buffer<std::int64_t>> count();
    [[nodiscard]] result<buffer<std::uint8_t>> any();
    [[nodiscard]] result<buffer<std::int64_t>> histogram();

private:
    explicit rows_met(queue& on) noexcept : on_{&on} {}
    queue* on_;
    std::size_t left_rows_ = 0, right_rows_ = 0;
    int bits_ = 1;                // of a right row
    buffer<std::uint64_t> keys_;  // left row, right row; in order, may repeat
};

}  // namespace kiln::spatial
