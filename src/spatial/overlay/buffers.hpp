// SPDX-License-Identifier: Apache-2.0
// What lies within a distance of rows, where a queue runs.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/buffers.hpp>

namespace kiln::spatial {

[[nodiscard]] result<geometries> buffered_rows(queue& on, geometries const& of, double distance,
                                               buffer_options const& how);

}  // namespace kiln::spatial
