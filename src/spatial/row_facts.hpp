// SPDX-License-Identifier: Apache-2.0
// What was found out about the rows of an array, and need not be found out again: copies share it, and so do views where it is good news.
#pragma once

#include <kiln/spatial/geometry.hpp>

#include <atomic>

namespace kiln::spatial {

struct row_facts {
    std::atomic<bool> are_borders{false};  // of all rows, and they are valid

    // Null where there are no rows.
    [[nodiscard]] static row_facts* of(geometries const& g) noexcept { return g.facts_.get(); }
};

}  // namespace kiln::spatial
