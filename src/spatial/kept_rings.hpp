// SPDX-License-Identifier: Apache-2.0
// Whether rows are what relations take them for, where a queue runs: what rings.hpp is, without the host.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/geometry.hpp>

#include <optional>

namespace kiln::spatial {

struct row_flaws {
    std::optional<std::size_t> not_valid;  // the first row that validate() would name; one of unreadable memory first
    std::optional<std::size_t> no_border;  // the first that validate_rings() would; not asked where one is not valid
    bool has_length = false;               // some row is a line or an area
};
// Up to so many steps, rings are held against all edges of their rows; beyond, there is an index. Some ten milliseconds on an H200.
inline constexpr std::size_t most_ring_steps = std::size_t{1} << 30;
// Six fences, one more where paths are short, and those of a noded layer where rows touch themselves or have several rings.
[[nodiscard]] result<row_flaws> flaws_of(queue& on, geometries const& of, std::size_t most_steps = most_ring_steps);

// What relations need of both, or the error that the host's would give: errc::invalid_argument with row and reason, for which the array comes back to the
// host. What passed is not looked at again. `first`: the number of the first left row.
struct related_operands {
    geometries const& left;
    geometries const& right;
    std::size_t first = 0;
};
[[nodiscard]] result<void> require_borders(queue& on, stream_ref stream, related_operands const& of);

}  // namespace kiln::spatial
