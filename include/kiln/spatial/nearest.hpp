// SPDX-License-Identifier: Apache-2.0
//
// Distances between geometries of all families, and the nearest ones. A distance is 0 exactly where the geometries meet, and
// otherwise correct to a few units in the last place of the coordinates; the CPU and the GPU give the same bits. Null and empty rows are at no
// distance from anything.
//
//     auto const nearby = spatial::nearest(stream, houses, roads, {.most = 500}).value();   // buffers, where it ran
#pragma once

#include <kiln/spatial/relate.hpp>

#include <limits>

namespace KILN_PUBLIC kiln {
namespace spatial {

enum class ties : std::uint8_t {
    kept,    // all that are as near as the last one, by the distance as it is reported
    by_row,  // the first rows of them
};
struct nearest_options {
    std::size_t count = 1;
    double most = std::numeric_limits<double>::infinity();  // distance, inclusive
    ties equal = ties::kept;
};

struct near_pair {
    std::int32_t left = 0, right = 0;
    double distance = 0;
};

// By left, then distance, then right.
struct near_list {
    buffer<std::int32_t> left, right;
    buffer<double> distance;
    [[nodiscard]] std::size_t size() const noexcept { return left.size(); }
};
// Decided once, on the CPU or the GPU; results live where it ran. On the GPU `count` rows for each are kept in memory, and
// gone through one by one when a nearer one is found: it is meant to be small.
[[nodiscard]] result<near_list> nearest(stream_ref on, geometries const& left, geometries const& right,
                                        nearest_options const& how = {});

// Row by row, up to the last row of the shorter array; NaN where there is none. Decided likewise.
[[nodiscard]] result<buffer<double>> distance(stream_ref on, geometries const& left, geometries const& right);

namespace cpu {
// Row by row, up to the last row of the shorter array.
[[nodiscard]] result<std::vector<std::optional<double>>> distance(geometries const& left, geometries const& right);
// By left, then distance, then right.
[[nodiscard]] result<std::vector<near_pair>> nearest(geometries const& left, geometries const& right,
                                                     nearest_options const& how = {});
// Pairs of rows at most `distance` apart, by left, then right. The comparison is exact, not one of rounded distances. The distance is 0 or
// within the range of coordinates (<kiln/spatial/validate.hpp>), else errc::invalid_argument.
[[nodiscard]] result<std::vector<row_pair>> join_within(geometries const& left, geometries const& right,
                                                        double distance);
}  // namespace cpu

}  // namespace spatial
}  // namespace kiln
