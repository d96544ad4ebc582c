// SPDX-License-Identifier: Apache-2.0
// Areas put over each other, where a queue runs.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/overlay.hpp>

namespace kiln::spatial {

[[nodiscard]] result<overlay_rows> overlaid_rows(queue& on, geometries const& left, geometries const& right,
                                                 overlay_kind what);
[[nodiscard]] result<area_list> areas_in_common(queue& on, geometries const& left, geometries const& right);
[[nodiscard]] result<geometries> dissolved_rows(queue& on, geometries const& of, buffer<std::int32_t> const& key,
                                                std::size_t keys);
[[nodiscard]] result<geometries> united_rows(queue& on, geometries const& of);
[[nodiscard]] result<geometries> valid_rows(queue& on, geometries const& of);

}  // namespace kiln::spatial
