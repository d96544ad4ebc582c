// SPDX-License-Identifier: Apache-2.0
// Where segments meet, where a queue runs.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/segments.hpp>

namespace kiln::spatial {

[[nodiscard]] result<segment_list> meeting_segments(queue& on, geometries const& left, geometries const& right);

}  // namespace kiln::spatial
