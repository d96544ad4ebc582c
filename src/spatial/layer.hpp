// SPDX-License-Identifier: Apache-2.0
// Makes the layer of kernels/spatial/layer.cuh from an array of geometries on the host: all families and views become rows of
// paths.
#pragma once

#include "spatial/layer.cuh"
#include "spatial/tree.hpp"

#include <kiln/spatial/geometry.hpp>

namespace kiln::spatial {

enum class row_state : std::uint8_t { null, empty, there };

class host_layer {
public:
    // As it is: for location, distances and measures.
    [[nodiscard]] static result<host_layer> plain(geometries const& from);
    // Noded: for relations.
    [[nodiscard]] static result<host_layer> noded(geometries const& from);

    [[nodiscard]] kiln_spatial::layer view() const noexcept;
    [[nodiscard]] std::size_t rows() const noexcept { return states_.size(); }
    [[nodiscard]] row_state state(std::size_t row) const noexcept { return states_[row]; }
    // Of its family; null: -1. Of a noded layer lines without length are points.
    [[nodiscard]] int dimension(std::size_t row) const noexcept { return dimensions_[row]; }
    // Of a noded layer: points in the boundary of a row's lines, each once.
    [[nodiscard]] std::int32_t ends(std::size_t row) const noexcept { return ends_[row]; }
    [[nodiscard]] std::int32_t segments(std::size_t row) const noexcept { return segments_[row]; }

    // Every vertex that is an element, with its box.
    [[nodiscard]] std::vector<std::int32_t> elements() const;
    [[nodiscard]] std::vector<kiln_spatial::box> boxes_of(std::vector<std::int32_t> const& elements) const;

private:
    friend class layer_writer;
    void finish_paths();
    void divide_at_own_vertices();
    void find_orientations();
    void find_groups();

    std::vector<kiln_spatial::point> at_;
    std::vector<std::int32_t> path_first_{0}, path_of_, row_of_, row_first_{0};
    std::vector<std::uint8_t> kind_;
    std::vector<row_state> states_;
    std::vector<std::int8_t> dimensions_;
    std::vector<std::int32_t> group_first_, group_size_, member_, ends_, segments_;
    std::vector<std::uint8_t> is_end_;
};

}  // namespace kiln::spatial
