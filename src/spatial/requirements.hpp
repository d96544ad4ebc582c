// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kiln/demand.hpp>

namespace kiln::spatial {

// What each operation of the spatial pack needs of the primitives, by the operation that is used first.
[[nodiscard]] std::vector<requirement const*> requirements();

}  // namespace kiln::spatial
