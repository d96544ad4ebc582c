// SPDX-License-Identifier: Apache-2.0
// Areas that share borders, with fewer vertices, where a queue runs.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/simplify.hpp>

namespace kiln::spatial {

// So often troubled spans get one vertex back before they get all of them.
inline constexpr int most_splits_of_spans = 16;

[[nodiscard]] result<geometries> simplified_coverage(queue& on, geometries const& areas, double tolerance,
                                                     int most_splits = most_splits_of_spans);

}  // namespace kiln::spatial
