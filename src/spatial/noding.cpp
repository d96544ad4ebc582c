// SPDX-License-Identifier: Apache-2.0
// A layer in buffers is noded: see kernels/spatial/noding.cuh.
#include "spatial/noding.cuh"

#include "spatial/kept_elements.hpp"

namespace kiln::spatial {

using namespace kiln_spatial;

result<kept_layer> kept_layer::distinct(queue& on, geometries const& from) {
    KILN_TRY(auto out, plain(on, from));
    KILN_CHECK(out.make_distinct(on));
    return out;
}

result<void> kept_layer::make_distinct(queue& on) {
    KILN_CHECK(drop_repeated(on));
    return count_rows(on);
}

result<kept_layer> kept_layer::noded(queue& on, geometries const& from) {
    KILN_TRY(auto out, distinct(on, from));
    KILN_CHECK(out.node(on, nullptr));
    if (from.kind() != family::mixed && dimension_of(from.kind()) != 1) return out;
    KILN_CHECK(on.launch(line_dimensions{raw(out.row_paths_), raw(out.row_segments_),
                                         reinterpret_cast<signed char*>(out.dimension_.data())},
                         out.rows()));
    return out;
}

result<void> kept_layer::node(queue& on, std::uint32_t const* rows) {
    KILN_CHECK(divide_at_own_vertices(on, rows));
    KILN_CHECK(find_orientations(on, rows));
    return find_groups(on, rows);
}

result<void> kept_layer::count_rows(queue& on) {
    KILN_TRY(row_paths_, on.filled<std::uint64_t>(rows(), 0));
    KILN_TRY(row_segments_, on.filled<std::uint64_t>(rows(), 0));
    return on.launch(count_row_paths{view(), raw(row_paths_), raw(row_segments_)}, paths());
}

result<void> kept_layer::drop_repeated(queue& on) {
    KILN_TRY(auto place, on.room<std::int64_t>(vertices() + 1));
    KILN_CHECK(on.launch(count_kept_vertices{view(), raw(place)}, vertices()));
    return keep_vertices(on, place);
}

result<void> kept_layer::keep_vertices(queue& on, buffer<std::int64_t> const& place) {
    KILN_CHECK(on.sum(place));
    std::int64_t kept = 0;
    KILN_CHECK(on.read_sync({{place.data() + vertices(), kept}}));
    if (static_cast<std::size_t>(kept) == vertices()) return {};
    auto const n = static_cast<std::size_t>(kept);
    KILN_TRY(auto path_first, on.room<std::int32_t>(paths() + 1));
    KILN_TRY(auto kind, on.room<std::uint8_t>(paths()));
    KILN_TRY(auto at, on.room<point>(n));
    KILN_TRY(auto path_of, on.room<std::int32_t>(n));
    KILN_CHECK(on.launch(move_paths{view(), raw(place), path_first.data(), kind.data()}, paths() + 1));
    KILN_CHECK(on.launch(move_vertices{view(), raw(place), at.data(), path_of.data()}, vertices()));
    path_first_ = std::move(path_first), kind_ = std::move(kind), at_ = std::move(at), path_of_ = std::move(path_of);
    return {};
}

result<void> kept_layer::keep_elements(queue& on, kept_worlds const& worlds) {
    if (elements_ && elements_->are_in(worlds)) return {};
    KILN_TRY(auto made, kept_elements::make(on, *this, worlds));
    elements_ = std::make_shared<kept_elements const>(std::move(made));
    return {};
}

result<void> kept_layer::divide_at_own_vertices(queue& on, std::uint32_t const* rows) {
    auto const n = vertices();
    KILN_CHECK(keep_elements(on));
    vertex_on_segments const search{view(), elements_->tree.view(), {rows}};
    KILN_TRY(auto counts, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_divisions{search, raw(counts)}, n));
    KILN_CHECK(on.sum(counts));
    std::int64_t found = 0;
    KILN_CHECK(on.read_sync({{counts.data() + n, found}}));
    if (found == 0) return {};
    auto const m = static_cast<std::size_t>(found);

    KILN_TRY(auto key, on.room<std::uint64_t>(m));
    KILN_TRY(auto number, on.room<std::int32_t>(m));
    KILN_TRY(auto segment_of, on.room<std::int32_t>(m));
    KILN_TRY(auto vertex, on.room<std::int32_t>(m));
    KILN_CHECK(
        on.launch(list_divisions{search, raw(counts), raw(key), number.data(), segment_of.data(), vertex.data()}, n));
    KILN_CHECK(on.sort(key, number, 64));
    KILN_CHECK(on.launch(segment_keys{number.data(), segment_of.data(), raw(key)}, m));
    KILN_CHECK(on.sort(key, number, bits_for(n)));

    KILN_TRY(auto const moved, divide(on, {std::move(key), std::move(number), std::move(vertex), at_.data()}));
    return count_rows(on);
}

result<buffer<std::int64_t>> kept_layer::divide(queue& on, divisions const& at_places) {
    auto const& [key, number, vertex, places] = at_places;
    auto const n = vertices(), m = number.size();
    auto divided = view();
    divided.at = places;  // where new vertices are
    KILN_TRY(auto is_new, on.room<std::int64_t>(m + 1));
    KILN_TRY(auto by_segment, on.filled<std::uint64_t>(n, 0));
    KILN_CHECK(on.launch(
        count_new_vertices{divided, raw(key), number.data(), vertex.data(), raw(is_new), raw(by_segment)}, m));
    KILN_CHECK(on.sum(is_new));
    KILN_TRY(auto counts, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_with_divisions{raw(by_segment), raw(counts)}, n));
    KILN_TRY(auto const total, on.total_sync(counts));
    KILN_TRY(auto at, on.room<point>(static_cast<std::size_t>(total)));
    KILN_TRY(auto path_of, on.room<std::int32_t>(static_cast<std::size_t>(total)));
    KILN_TRY(auto path_first, on.room<std::int32_t>(paths() + 1));
    KILN_TRY(auto kind, on.room<std::uint8_t>(paths()));
    KILN_CHECK(on.launch(move_paths{view(), raw(counts), path_first.data(), kind.data()}, paths() + 1));
    KILN_CHECK(on.launch(spread_vertices{view(), raw(counts), at.data(), path_of.data()}, n));
    KILN_CHECK(on.launch(add_vertices{divided, raw(key), m, number.data(), vertex.data(), raw(is_new), raw(counts),
                                      at.data(), path_of.data()},
                         m));
    path_first_ = std::move(path_first), kind_ = std::move(kind), at_ = std::move(at), path_of_ = std::move(path_of);
    elements_.reset();
    return counts;
}

result<void> kept_layer::find_orientations(queue& on, std::uint32_t const* rows) {
    auto const n = paths();
    KILN_TRY(auto const least, on.filled<std::uint64_t>(3 * n, ~0U));
    KILN_TRY(auto const count, on.filled<std::uint64_t>(n, 0));
    auto* const x = raw(least);
    auto* const vertex = x + 2 * n;
    for (i32 step = 0; step < 3; ++step)
        KILN_CHECK(on.launch(ring_extremes{view(), {rows}, x, x + n, vertex, raw(count), step}, vertices()));
    return on.launch(ring_kinds_of{view(), {rows}, vertex, raw(count), kind_.data()}, n);
}

// Vertices of a row at one place next to each other: by a hash, or, should two hashes be the same, by row, x and y.
result<void> kept_layer::sort_members(queue& on, std::uint32_t const* rows) {
    auto const n = vertices();
    KILN_TRY(is_end_, on.room<std::uint8_t>(n));
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_members{view(), {rows}, raw(place), is_end_.data()}, n));
    KILN_CHECK(on.sum(place));
    std::int64_t total = 0, clash = 0;
    KILN_CHECK(on.read_sync({{place.data() + n, total}}));
    auto const m = static_cast<std::size_t>(total);
    KILN_TRY(auto key, on.room<std::uint64_t>(m));
    KILN_TRY(auto clashes, on.filled<std::int64_t>(1, 0));
    KILN_TRY(member_, on.room<std::int32_t>(m));
    KILN_CHECK(on.launch(group_hashes{view(), raw(place), raw(key), member_.data()}, n));
    KILN_CHECK(on.sort(key, member_, 64));
    KILN_CHECK(on.launch(check_hashes{view(), raw(key), member_.data(), reinterpret_cast<u64*>(clashes.data())}, m));
    KILN_CHECK(on.read_sync({{clashes.data(), clash}}));
    if (clash == 0) return {};
    for (i32 step = 0; step < 3; ++step) {  // the least significant first
        KILN_CHECK(on.launch(group_keys{view(), step, raw(key), member_.data()}, m));
        KILN_CHECK(on.sort(key, member_, step < 2 ? 64 : bits_for(rows_)));
    }
    return {};
}

result<void> kept_layer::find_groups(queue& on, std::uint32_t const* rows) {
    KILN_CHECK(sort_members(on, rows));
    auto const n = vertices(), m = member_.size();
    KILN_TRY(auto is_new, on.room<std::int64_t>(m + 1));
    KILN_CHECK(on.launch(count_groups{view(), member_.data(), raw(is_new)}, m));
    KILN_CHECK(on.sum(is_new));
    KILN_TRY(auto start, on.room<std::int32_t>(m + 1));
    KILN_TRY(auto ends, on.filled<std::uint64_t>(m, 0));
    KILN_CHECK(on.launch(group_starts{view(), member_.data(), raw(is_new), m, start.data(), raw(ends)}, m));
    KILN_TRY(group_first_, on.room<std::int32_t>(n));
    KILN_TRY(group_size_, on.room<std::int32_t>(n));
    KILN_TRY(row_ends_, on.filled<std::uint64_t>(rows_, 0));
    return on.launch(set_groups{view(), member_.data(), raw(is_new), start.data(), raw(ends), group_first_.data(),
                                group_size_.data(), is_end_.data(), raw(row_ends_)},
                     m);
}

}  // namespace kiln::spatial
