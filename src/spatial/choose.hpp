// SPDX-License-Identifier: Apache-2.0
// Rows chosen, where a queue runs.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/choose.hpp>

namespace kiln::spatial {

[[nodiscard]] result<geometries> rows_of(queue& on, geometries const& from, buffer<std::int32_t> const& rows);
[[nodiscard]] result<geometries> rows_kept(queue& on, geometries const& from, buffer<std::uint8_t> const& keep);
// Without the view.
[[nodiscard]] result<geometries> memory_of(geometries const& of);

}  // namespace kiln::spatial
