// SPDX-License-Identifier: Apache-2.0
// Rows with fewer vertices, where a queue runs.
#pragma once

#include "spatial/kept_layer.hpp"
#include "spatial/vertex_spans.cuh"

#include <kiln/spatial/simplify.hpp>

namespace kiln::spatial {

// Which vertices of lines and rings stay (kernels/spatial/simplify.cuh).
class path_spans {
public:
    // Only ends of paths are sure to stay. No fence.
    [[nodiscard]] static result<path_spans> begin(queue& on, kept_layer const& l);
    // Until every vertex stays or goes. `must`, by vertex: 1 where a span begins that is split once, however near its vertices are. A fence for every few levels.
    [[nodiscard]] result<void> settle(queue& on, kept_layer const& l, double tolerance,
                                      std::uint32_t const* must = nullptr);
    [[nodiscard]] kiln_spatial::vertex_spans view() const noexcept { return {low_.data(), high_.data(), fate_.data()}; }

private:
    buffer<std::int32_t> low_, high_;
    buffer<std::uint32_t> fate_;
    buffer<std::uint64_t> square_, vertex_;
};

// errc::invalid_argument for one that no distance can be compared with.
[[nodiscard]] result<void> require_tolerance(std::string_view call, double tolerance);

[[nodiscard]] result<geometries> simplified_rows(queue& on, geometries const& of, double tolerance);

}  // namespace kiln::spatial
