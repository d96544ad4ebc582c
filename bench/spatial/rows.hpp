// SPDX-License-Identifier: Apache-2.0
// Rows in and out as bytes, and what is made of them one by one.
#pragma once

#include "spatial/figures.hpp"

namespace kiln::spatial_bench {

void rows(stream const& on, options const& how);

}  // namespace kiln::spatial_bench
