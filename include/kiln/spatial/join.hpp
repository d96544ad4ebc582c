// SPDX-License-Identifier: Apache-2.0
//
// Which rows of two arrays stand in a relation. Each call is decided once, runs on the CPU or the GPU with the same result, and is
// told by an event; results live where it ran. Operands are in the same place; nothing moves but what the decision says. A
// form that lists nothing (first, count, any, histogram) makes no list where it can do without. Lists wait once on the GPU
// for their size. Null rows stand in no relation; empty ones are disjoint from everything.
//
//     auto const pairs = spatial::join(stream, places, zones, spatial::predicate::within).value();
#pragma once

#include <kiln/spatial/index.hpp>
#include <kiln/spatial/relate.hpp>

namespace KILN_PUBLIC kiln {
namespace spatial {

// By left, then right.
struct pair_list {
    buffer<std::int32_t> left, right;
    [[nodiscard]] std::size_t size() const noexcept { return left.size(); }
};

[[nodiscard]] result<pair_list> join(stream_ref on, geometries const& left, geometries const& right, predicate what);
// Rows no more than a distance apart, compared exactly. On the CPU so far.
[[nodiscard]] result<pair_list> join_within(stream_ref on, geometries const& left, geometries const& right,
                                            double distance);
// By left row: the lowest right row, or -1; how many; whether any (0 or 1). By right row: how many.
[[nodiscard]] result<buffer<std::int32_t>> join_first(stream_ref on, geometries const& left, geometries const& right,
                                                      predicate what);
[[nodiscard]] result<buffer<std::int64_t>> join_count(stream_ref on, geometries const& left, geometries const& right,
                                                      predicate what);
[[nodiscard]] result<buffer<std::uint8_t>> join_any(stream_ref on, geometries const& left, geometries const& right,
                                                    predicate what);
[[nodiscard]] result<buffer<std::int64_t>> join_histogram(stream_ref on, geometries const& left,
                                                          geometries const& right, predicate what);

// Matrices of all pairs that are not disjoint: matrix(bits, dimension of the left row, of the right one).
struct matrix_list {
    buffer<std::int32_t> left, right;
    buffer<std::uint32_t> bits;
    [[nodiscard]] std::size_t size() const noexcept { return left.size(); }
};
[[nodiscard]] result<matrix_list> relate_join(stream_ref on, geometries const& left, geometries const& right);
// Row by row, as many as both have; 0 where one of them is null.
[[nodiscard]] result<buffer<std::uint32_t>> relate(stream_ref on, geometries const& left, geometries const& right);

// The same of points and areas that have an index. They run where the index is; errc::invalid_argument where the points are
// elsewhere or are no points.
[[nodiscard]] result<pair_list> join(stream_ref on, geometries const& points, area_index const& areas, predicate what);
[[nodiscard]] result<buffer<std::int32_t>> join_first(stream_ref on, geometries const& points, area_index const& areas,
                                                      predicate what);
[[nodiscard]] result<buffer<std::int64_t>> join_count(stream_ref on, geometries const& points, area_index const& areas,
                                                      predicate what);
[[nodiscard]] result<buffer<std::uint8_t>> join_any(stream_ref on, geometries const& points, area_index const& areas,
                                                    predicate what);
[[nodiscard]] result<buffer<std::int64_t>> join_histogram(stream_ref on, geometries const& points,
                                                          area_index const& areas, predicate what);

}  // namespace spatial
}  // namespace kiln
