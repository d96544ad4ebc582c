// SPDX-License-Identifier: Apache-2.0
// The grid of kernels/spatial/cells.cuh over the rings of a layer, built where a queue runs.
#pragma once

#include "spatial/cell_frame.hpp"
#include "spatial/kept_layer.hpp"

#include <utility>

namespace kiln::spatial {

class kept_cells {
public:
    // Shares the layer's vertices. Two fences, and three more for every level of divided cells; one more where there are several worlds, each of which
    // has a grid of its own then: by_world().
    [[nodiscard]] static result<kept_cells> make(queue& on, kept_layer const& of, cell_options const& how,
                                                 kept_worlds const& worlds = {});

    // Of two layers, each as above; with the fences of one where they are small and lie in nearly the same place.
    [[nodiscard]] static result<std::pair<kept_cells, kept_cells>> make_both(queue& on, kept_layer const& a,
                                                                             kept_layer const& b,
                                                                             cell_options const& how);

    [[nodiscard]] kiln_spatial::cell_grid view() const noexcept;
    [[nodiscard]] kiln_spatial::world_cells by_world() const noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept;

private:
    friend class cell_builder;
    [[nodiscard]] static result<kept_cells> make_in(queue& on, kept_layer const& of, kiln_spatial::box const& around,
                                                    cell_options const& how, kept_worlds const& worlds = {});

    kiln_spatial::cell_frame frame_{};
    buffer<std::uint32_t> heads_;
    buffer<kiln_spatial::cell_record> records_;
    buffer<kiln_spatial::sub_grid> subs_;
    kiln_spatial::point const* at_ = nullptr;
    std::uint32_t first_cell_ = 0;
    buffer<kiln_spatial::world_frame> own_;  // of worlds, and one for rows of none; empty: there is one
    buffer<std::int32_t> world_of_;          // by row
};

}  // namespace kiln::spatial
