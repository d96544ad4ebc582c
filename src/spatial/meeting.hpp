// SPDX-License-Identifier: Apache-2.0
// Rows that have a point in common, where a queue runs: those of which elements meet, and those of which one lies inside the other.
#pragma once

#include "spatial/kept_layer.hpp"

#include <kiln/spatial/join.hpp>

namespace kiln::spatial {

[[nodiscard]] result<pair_list> meeting_rows(queue& on, geometries const& left, geometries const& right);

}  // namespace kiln::spatial
