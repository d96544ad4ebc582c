// SPDX-License-Identifier: Apache-2.0
// Areas put over each other and made one.
#pragma once

#include "spatial/figures.hpp"

namespace kiln::spatial_bench {

void overlays(stream const& on, options const& how);

}  // namespace kiln::spatial_bench
