// SPDX-License-Identifier: Apache-2.0
// What families of geometry bring along.
#pragma once

#include <kiln/spatial/warm.hpp>

namespace kiln::spatial {

[[nodiscard]] std::span<requirement const* const> family_requirements() noexcept;
[[nodiscard]] std::vector<std::string_view> families_of(geometries const& g);

}  // namespace kiln::spatial
