// SPDX-License-Identifier: Apache-2.0
#include "spatial/kept_layer.hpp"

#include "spatial/geometry_layers.cuh"

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

constexpr std::size_t most_of_layer = 0x7fffffff;  // rows, paths, vertices

family_memory memory_of(geometry_parts const& p) {
    family_memory out{p.x.data(), p.y.data(), {}};
    for (std::size_t i = 0; i < p.offsets.size(); ++i) out.offsets[i] = p.offsets[i].data();
    return out;
}

}  // namespace

geometry_rows memory_rows_of(geometries const& from) {
    auto const data = [](auto const& b) { return b ? b->data() : nullptr; };
    auto const index = [](family kind) { return static_cast<std::size_t>(kind) - 1; };
    geometry_rows out{};
    out.rows = static_cast<i32>(from.rows());
    out.chosen = data(from.chosen());
    if (from.kind() == family::mixed) {
        auto const& m = from.mixed();
        out.type = reinterpret_cast<signed char const*>(m.type.data());
        out.child_row = m.child_row.data();
        out.validity = data(m.validity);
        for (auto const& child : m.children) out.memory[index(child.kind())] = memory_of(child.parts());
    } else {
        out.family = static_cast<i32>(index(from.kind()));
        out.validity = data(from.parts().validity);
        out.memory[out.family] = memory_of(from.parts());
    }
    return out;
}

result<kept_layer> kept_layer::plain(queue& on, geometries const& from) {
    auto const rows = from.rows();
    if (rows > most_of_layer) return fail(errc::unsupported, "spatial: {} rows: take them in parts", rows);
    auto const g = memory_rows_of(from);
    kept_layer out;
    out.rows_ = rows;
    KILN_TRY(auto extent, on.room<std::int64_t>(rows + 1));
    KILN_TRY(out.state_, on.room<std::uint8_t>(rows));
    KILN_TRY(out.dimension_, on.room<std::int8_t>(rows));
    // Memory alone has as many of anything as its offsets can count.
    bool const may_wrap = rows > 0 && (from.chosen() || from.kind() == family::mixed);
    buffer<std::uint64_t> wraps;
    if (may_wrap) {
        KILN_TRY(wraps, on.room<std::uint64_t>(1));
    }
    KILN_CHECK(
        on.launch(row_extents{g, raw(extent), out.state_.data(), reinterpret_cast<signed char*>(out.dimension_.data()),
                              may_wrap ? raw(wraps) : nullptr},
                  rows));
    std::int64_t total = 0;
    std::uint64_t wrapped = 0;
    if (may_wrap) {
        KILN_CHECK(on.sum(extent));
        KILN_CHECK(on.launch(find_wrapped_sums{raw(extent), raw(wraps)}, rows));
        KILN_CHECK(on.read_sync({{extent.data() + rows, total}, {wraps.data(), wrapped}}));
    } else {
        KILN_TRY(total, on.total_sync(extent));
    }
    auto const paths = high_of(total), vertices = low_of(total);
    if (wrapped != 0 || paths > most_of_layer || vertices > most_of_layer)
        return fail(
            errc::unsupported,
            "spatial: {} rows have more than 2^31 - 1 vertices, which count as often as they are repeated: take "
            "the rows in parts",
            rows);
    auto const* const summed = raw(extent);

    KILN_TRY(out.row_first_, on.room<std::int32_t>(rows + 1));
    KILN_CHECK(on.launch(row_table{summed, out.row_first_.data()}, rows + 1));
    KILN_TRY(out.path_first_, on.room<std::int32_t>(paths + 1));
    KILN_TRY(out.row_of_, on.room<std::int32_t>(paths));
    KILN_TRY(out.kind_, on.room<std::uint8_t>(paths));
    KILN_TRY(auto source, on.room<std::int32_t>(paths));
    KILN_TRY(auto families_of, on.room<std::uint8_t>(paths));
    auto const share = [](std::size_t of, std::size_t in) {
        return static_cast<double>(of) / static_cast<double>(std::max<std::size_t>(in, 1));
    };
    KILN_CHECK(on.launch(path_table{g, summed, paths, vertices, share(rows, paths), out.path_first_.data(),
                                    out.row_of_.data(), out.kind_.data(), source.data(), families_of.data()},
                         std::size_t{paths} + 1));
    KILN_TRY(out.at_, on.room<point>(vertices));
    KILN_TRY(out.path_of_, on.room<std::int32_t>(vertices));
    KILN_CHECK(on.launch(vertex_table{g, out.path_first_.data(), source.data(), families_of.data(), paths,
                                      share(paths, vertices), out.path_of_.data(), out.at_.data()},
                         vertices));
    return out;
}

layer kept_layer::view() const noexcept {
    return {.at = at_.data(),
            .path_first = path_first_.data(),
            .path_of = path_of_.data(),
            .row_of = row_of_.data(),
            .row_first = row_first_.data(),
            .kind = kind_.data(),
            .group_first = group_first_.data(),
            .group_size = group_size_.data(),
            .member = member_.data(),
            .is_end = is_end_.data(),
            .rows = static_cast<i32>(rows_),
            .paths = static_cast<i32>(kind_.size()),
            .vertices = static_cast<i32>(at_.size())};
}

std::size_t kept_layer::bytes() const noexcept {
    auto const of = [](auto const&... b) { return (std::size_t{0} + ... + b.raw().bytes()); };
    return of(at_, path_first_, path_of_, row_of_, row_first_, kind_, state_, dimension_);
}

result<buffer<std::uint64_t>> kept_layer::extent(queue& on, std::uint32_t kinds) const {
    KILN_TRY(auto least, on.filled<std::uint64_t>(4, ~0U));
    auto const threads = std::min(4 * on.threads(), vertices());
    KILN_CHECK(on.launch(layer_extent{view(), kinds, threads, reinterpret_cast<u64*>(least.data())}, threads));
    return least;
}

result<box> kept_layer::bounds(queue& on, std::uint32_t kinds) const {
    KILN_TRY(auto const least, extent(on, kinds));
    std::uint64_t got[4];
    auto const* const from = least.data();
    KILN_CHECK(on.read_sync({{from, got[0]}, {from + 1, got[1]}, {from + 2, got[2]}, {from + 3, got[3]}}));
    if (got[0] == ~std::uint64_t{0}) return box{1, 1, -1, -1};
    return box{unordered(got[0]), unordered(got[1]), -unordered(got[2]), -unordered(got[3])};
}

result<buffer<box>> kept_layer::row_boxes(queue& on) const {
    KILN_TRY(auto least, on.filled<std::uint64_t>(rows_ * 4, ~0U));
    auto* const around = reinterpret_cast<u64*>(least.data());
    auto const items = (vertices() + vertices_of_item - 1) / vertices_of_item;
    KILN_CHECK(on.launch(row_extents_of_layer{view(), around}, items));
    KILN_TRY(auto out, on.room<box>(rows_));
    KILN_CHECK(on.launch(kiln_spatial::row_boxes{around, out.data()}, rows_));
    return out;
}

result<buffer<box>> boxes_of_rows(queue& on, geometries const& of) {
    auto const rows = of.rows();
    KILN_TRY(auto out, on.room<box>(rows));
    // No more rows are long than have room for their vertices; of a view, any.
    auto const most_long = of.chosen() ? rows : std::min<std::size_t>(rows, of.vertices() / vertices_of_short_row);
    KILN_TRY(auto later, on.room<std::uint32_t>(most_long));
    KILN_TRY(auto laters, on.filled<std::uint32_t>(1, 0));
    short_row_boxes const quick{memory_rows_of(of), out.data(), later.data(), laters.data()};
    KILN_CHECK(on.launch(quick, rows));
    if (most_long == 0) return out;
    KILN_TRY(auto least, on.filled<std::uint64_t>(4 * most_long, ~0U));
    auto const threads = std::max<std::size_t>(on.threads(), threads_of_long_row);
    KILN_CHECK(on.launch(long_row_boxes{quick, threads, raw(least)}, threads));
    KILN_CHECK(on.launch(set_long_row_boxes{quick, threads, raw(least)}, threads));
    return out;
}

}  // namespace kiln::spatial
