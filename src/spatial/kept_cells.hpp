// SPDX-License-Identifier: Apache-2.0
// The grid of kernels/spatial/cells.cuh over the rings of a layer, built where a queue runs.
#pragma once

#include "spatial/cell_frame.hpp"
#include "spatial/kept_layer.hpp"

namespace kiln::spatial {

class kept_cells {
public:
    // Shares the layer's vertices. Two fences, and three more for every level of divided cells.
    [[nodiscard]] static result<kept_cells> make(queue& on, kept_layer const& of, cell_options const& how);

    [[nodiscard]] kiln_spatial::cell_grid view() const noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept;

private:
    friend class cell_builder;
    kiln_spatial::cell_frame frame_{};
    buffer<std::uint32_t> heads_;
    buffer<kiln_spatial::cell_record> records_;
    buffer<kiln_spatial::sub_grid> subs_;
    kiln_spatial::point const* at_ = nullptr;
};

}  // namespace kiln::spatial
