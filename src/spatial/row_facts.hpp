// SPDX-License-Identifier: Apache-2.0
// What was found out about the rows of an array, and need not be found out again: copies share it, wherever they are. Views take good news of rings, and are looked at for
// the numbers they have.
#pragma once

#include <kiln/spatial/geometry.hpp>

#include <atomic>

namespace kiln::spatial {

struct row_facts {
    std::atomic<bool> are_valid{false};    // require_valid() says so
    std::atomic<bool> are_borders{false};  // of all rows: validate_rings() has nothing to say

    // Null where there are no rows.
    [[nodiscard]] static row_facts* of(geometries const& g) noexcept { return g.facts_.get(); }
};

// require_valid(), unless it has said so.
[[nodiscard]] result<void> require_valid_once(geometries const& of);

}  // namespace kiln::spatial
