// SPDX-License-Identifier: Apache-2.0
// Well-known binary, where a queue runs.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/wkb.hpp>

namespace kiln::spatial {

[[nodiscard]] result<geometries> read_wkb(queue& on, column<std::uint8_t> const& rows);
[[nodiscard]] result<column<std::uint8_t>> write_wkb(queue& on, geometries const& from);

}  // namespace kiln::spatial
