// SPDX-License-Identifier: Apache-2.0
// Rows with fewer vertices, where a queue runs.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/simplify.hpp>

namespace kiln::spatial {

[[nodiscard]] result<geometries> simplified_rows(queue& on, geometries const& of, double tolerance);

}  // namespace kiln::spatial
