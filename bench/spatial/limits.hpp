// SPDX-License-Identifier: Apache-2.0
// What the pack's parts do by themselves and at their limits: orientations alone, growth, input on which every filter fails, and
// what a call costs beyond its kernels.
#pragma once

#include "spatial/figures.hpp"

namespace kiln::spatial_bench {

void orientations(stream const& on, options const& how);
void growth(stream const& on, options const& how);
void all_undecided(stream const& on, options const& how);
void calls(stream const& on, options const& how);

}  // namespace kiln::spatial_bench
