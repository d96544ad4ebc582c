// SPDX-License-Identifier: Apache-2.0
// Points in areas, where a queue runs.
#pragma once

#include "spatial/kept_cells.hpp"
#include "spatial/point_in_polygon.cuh"

#include <kiln/spatial/index.hpp>
#include <kiln/spatial/join.hpp>

namespace kiln::spatial {

struct area_index::state {
    kept_layer layer;
    kept_cells cells;
    std::size_t rows = 0;
    residency where = residency::host;
    int device = 0;
};

// One that is kept is asked by many: more cells, which take longer to make, are then worth it.
enum class index_use : std::uint8_t { once, kept };
// The index of geometries that lie where the queue runs.
[[nodiscard]] result<std::shared_ptr<area_index::state const>> build_index(queue& on, geometries const& areas,
                                                                           index_use use = index_use::once);
// The same over a layer that is there, in cells of one's own.
[[nodiscard]] result<std::shared_ptr<area_index::state const>> build_index(queue& on, kept_layer const& areas,
                                                                           cell_options const& how);
// Bytes that building it on a device may take.
[[nodiscard]] std::size_t index_estimate(geometries const& areas, index_use use) noexcept;
// And for a few questions: crowded cells are not worth dividing.
[[nodiscard]] result<std::shared_ptr<area_index::state const>> build_brief_index(queue& on, kept_layer const& areas);
[[nodiscard]] kiln_spatial::point_rows point_rows_of(geometries const& points);

// Which standings of a point to an area a predicate asks for: wanted_inside and wanted_on. Nothing: it asks for neither.
enum class operand : std::uint8_t { points_left, points_right };
[[nodiscard]] std::optional<std::uint32_t> standings_of(predicate what, operand order) noexcept;

class point_locator {
public:
    // All of them lie where the queue runs.
    point_locator(queue& on, geometries const& points, area_index::state const& areas, std::uint32_t wanted)
        : point_locator{on, point_rows_of(points), points.rows(), areas, wanted} {}
    point_locator(queue& on, kiln_spatial::point_rows const& points, std::size_t count, area_index::state const& areas,
                  std::uint32_t wanted);

    [[nodiscard]] result<buffer<std::int32_t>> first();
    [[nodiscard]] result<buffer<std::uint8_t>> any();
    [[nodiscard]] result<buffer<std::int64_t>> count();
    [[nodiscard]] result<buffer<std::int64_t>> histogram();
    // By point, then area. One fence.
    [[nodiscard]] result<pair_list> pairs();

private:
    template <class Sink>
    [[nodiscard]] result<void> locate(Sink const& to);

    queue& on_;
    kiln_spatial::point_question question_;
    std::size_t rows_, areas_;
};

}  // namespace kiln::spatial
