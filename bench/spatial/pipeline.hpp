// SPDX-License-Identifier: Apache-2.0
// Seven operations from bytes to bytes: at once on the device, in chunks within a limit, and on the CPU.
#pragma once

#include "spatial/figures.hpp"

namespace kiln::spatial_bench {

void pipeline(stream const& on, options const& how);

}  // namespace kiln::spatial_bench
