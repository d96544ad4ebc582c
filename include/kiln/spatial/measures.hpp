// SPDX-License-Identifier: Apache-2.0
//
// Numbers of geometries, row by row: boxes, areas, lengths, centroids, as GEOS defines them: the length of an area is that of its
// rings, holes take area away whichever way they run, the centroid is that of the highest dimension with any extent. Boxes
// are exact; sums are in a fixed order, so that the CPU and the GPU give the same bits. Null rows have no value; empty ones have no
// box and no centroid, and area and length 0. What has no value is NaN in a buffer.
//
//     auto const sizes = spatial::area(stream, zones_on_device).value();      // a buffer, where it ran; nothing waits
#pragma once

#include <kiln/spatial/geometry.hpp>

namespace KILN_PUBLIC kiln {
namespace spatial {

struct bounding_box {
    double min_x = 0, min_y = 0, max_x = 0, max_y = 0;
    bool operator==(bounding_box const&) const = default;
};
struct location {
    double x = 0, y = 0;
};

// Each is decided once, on the CPU or the GPU; results live where it ran. Nothing waits but for the number of vertices.
struct box_list {
    buffer<double> min_x, min_y, max_x, max_y;
    [[nodiscard]] std::size_t size() const noexcept { return min_x.size(); }
};
[[nodiscard]] result<box_list> bounds(stream_ref on, geometries const& of);
// Around the rows of each key from 0 to before `keys`; rows with another key are left out. errc::invalid_argument for keys that are no
// numbering, as of dissolve().
[[nodiscard]] result<box_list> bounds_by_key(stream_ref on, geometries const& of, buffer<std::int32_t> const& key,
                                             std::size_t keys);
// Of all rows; nothing where there is no vertex. Waits for the answer.
[[nodiscard]] result<std::optional<bounding_box>> total_bounds_sync(stream_ref on, geometries const& of);

[[nodiscard]] result<buffer<double>> area(stream_ref on, geometries const& of);
[[nodiscard]] result<buffer<double>> length(stream_ref on, geometries const& of);
struct location_list {
    buffer<double> x, y;
};
[[nodiscard]] result<location_list> centroid(stream_ref on, geometries const& of);
// Vertices, and points, lines and rings of each row; of null and empty ones 0.
struct count_list {
    buffer<std::int32_t> vertices, paths;
};
[[nodiscard]] result<count_list> counts(stream_ref on, geometries const& of);

namespace cpu {
[[nodiscard]] result<std::vector<std::optional<bounding_box>>> bounds(geometries const& of);
// Of all rows; nothing where there is no vertex.
[[nodiscard]] result<std::optional<bounding_box>> total_bounds(geometries const& of);
[[nodiscard]] result<std::vector<std::optional<double>>> area(geometries const& of);
[[nodiscard]] result<std::vector<std::optional<double>>> length(geometries const& of);
[[nodiscard]] result<std::vector<std::optional<location>>> centroid(geometries const& of);
}  // namespace cpu

}  // namespace spatial
}  // namespace kiln
