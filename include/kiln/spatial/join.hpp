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

#include <functional>

namespace KILN_PUBLIC kiln {
namespace spatial {

// By left, then right.
struct pair_list {
    buffer<std::int32_t> left, right;
    [[nodiscard]] std::size_t size() const noexcept { return left.size(); }
};

[[nodiscard]] result<pair_list> join(stream_ref on, geometries const& left, geometries const& right, predicate what);
// Rows no more than a distance apart, compared exactly. The distance is 0 or within the range of coordinates
// (<kiln/spatial/validate.hpp>), else errc::invalid_argument.
[[nodiscard]] result<pair_list> join_within(stream_ref on, geometries const& left, geometries const& right,
                                            double distance);

// The same lists a part at a time, in order: for lists that outgrow memory. `take` gets some left rows' pairs; an error from it ends
// the call. What a call takes beside its operands and their index stays within `most_bytes`; errc::out_of_memory where one row alone
// needs more.
//
//     spatial::join_in_chunks(stream, places, zones, predicate::within, {.most_bytes = 1 << 30}, write_to_disk).value();
struct chunk_options {
    std::size_t most_bytes = 0;  // 0: half of what the device has room for; on the host 1 GiB
};
using pair_taker = std::function<result<void>(pair_list const& pairs)>;
[[nodiscard]] result<void> join_in_chunks(stream_ref on, geometries const& left, geometries const& right,
                                          predicate what, chunk_options const& how, pair_taker const& take);
[[nodiscard]] result<void> join_within_in_chunks(stream_ref on, geometries const& left, geometries const& right,
                                                 double distance, chunk_options const& how, pair_taker const& take);

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
// Row by row, up to the last row of the shorter array; 0 where one of them is null.
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
