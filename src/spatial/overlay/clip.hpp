// SPDX-License-Identifier: Apache-2.0
// What of rows lies in areas, where a queue runs.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/overlay.hpp>

namespace kiln::spatial {

[[nodiscard]] result<geometries> rows_in_areas(queue& on, geometries const& of, geometries const& areas);

}  // namespace kiln::spatial
