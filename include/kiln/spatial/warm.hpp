// SPDX-License-Identifier: Apache-2.0
//
// The pack's kernels before the first call asks for them. They ship, so that a call finds them; this has them loaded as well. By
// operation ('kiln warm --operations' names them), by the families of the arrays a program has loaded, or as a plan with a
// deadline. Neither blocks; without a GPU they do nothing.
//
//     spatial::demand_families({zones, places});                                       // areas and points, so no lines
//     kiln::plan const join{"join", spatial::wants_of({"spatial_locate"}).value()};    // exactly what it launches
//     join.ensure_warm(200ms);
#pragma once

#include <kiln/demand.hpp>
#include <kiln/spatial/geometry.hpp>

namespace KILN_PUBLIC kiln {
namespace spatial {

// Units and primitives that the GPU variants of these operations launch, each once; also those that run rarely, for what filters
// cannot decide. errc::not_found for a name that is none.
[[nodiscard]] result<std::vector<want>> wants_of(std::initializer_list<std::string_view> operations);

// What work on such arrays may need, by family; of mixed ones, by those of their rows' families.
demanded demand_families(std::initializer_list<geometries> loaded, demand_options how = {});

}  // namespace spatial
}  // namespace kiln
