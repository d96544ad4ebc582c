// SPDX-License-Identifier: Apache-2.0
// A layer (kernels/spatial/layer.cuh) in buffers, made where a queue runs: what host_layer is, without the host.
#pragma once

#include "spatial/geometry_rows.cuh"
#include "spatial/kept_worlds.hpp"
#include "spatial/layer.cuh"
#include "spatial/queue.hpp"

#include <kiln/spatial/geometry.hpp>

#include <memory>

namespace kiln_spatial {
struct row_grids;  // spatial/overlay_noding.cuh
}

namespace kiln::spatial {

struct kept_elements;  // spatial/kept_elements.hpp

// The memory of geometries, for kernels that run where it lies.
[[nodiscard]] kiln_spatial::geometry_rows memory_rows_of(geometries const& from);

// As kept_layer::row_boxes(), where a layer is not needed for anything else. No fence.
[[nodiscard]] result<buffer<kiln_spatial::box>> boxes_of_rows(queue& on, geometries const& of);

struct chosen_layer;

class kept_layer {
public:
    // As the geometries are, which lie where the queue runs. One fence.
    [[nodiscard]] static result<kept_layer> plain(queue& on, geometries const& from);
    // Without repeated vertices, with counts by row. Two fences.
    [[nodiscard]] static result<kept_layer> distinct(queue& on, geometries const& from);
    // Makes a plain one distinct. One fence.
    [[nodiscard]] result<void> make_distinct(queue& on);
    // Noded, for relations. Five fences, and a sixth where segments are divided.
    [[nodiscard]] static result<kept_layer> noded(queue& on, geometries const& from);
    // Of a distinct one: the rows whose number is set in `rows` are noded, all if it is null. What nobody touches need not be: a
    // row's own vertices matter only where it meets another row in one of them.
    [[nodiscard]] result<void> node(queue& on, std::uint32_t const* rows);

    // Of a distinct one: a ring's kind tells on which side of it its row is, instead of whether it is a hole. No fence.
    [[nodiscard]] result<void> orient_rings(queue& on) { return find_orientations(on, nullptr); }

    // The rows of one, then those of the other; neither noded. No fence.
    [[nodiscard]] static result<kept_layer> joined(queue& on, kept_layer const& first, kept_layer const& second);
    // Without the rows whose number here is negative: they stay, and have no paths.
    [[nodiscard]] result<void> leave_out(queue& on, buffer<std::int32_t> const& numbers);
    // A copy of which that is so; this one stays as it is.
    [[nodiscard]] result<kept_layer> without(queue& on, buffer<std::int32_t> const& numbers) const;
    // Coordinates become those of the rows' grids, but for rows whose number here is negative; repeated vertices go. Two fences.
    [[nodiscard]] result<void> round(queue& on, kiln_spatial::row_grids const& grids, std::int32_t const* numbers);
    // Some rows in any order, as a layer of their own. One fence.
    [[nodiscard]] result<chosen_layer> choose(queue& on, buffer<std::int32_t> const& rows) const;
    // The same where another queue runs, over this stream. Blocks where that is on the host and this one is not.
    [[nodiscard]] result<kept_layer> brought_sync(queue const& to, stream_ref on) const;
    // Rings as rows: `first` has one more than there are of them, `ring_of` one for every vertex. No fence.
    [[nodiscard]] static result<kept_layer> of_rings(queue& on, buffer<kiln_spatial::point> at,
                                                     buffer<std::int32_t> first, buffer<std::int32_t> ring_of);
    // The same of lines.
    [[nodiscard]] static result<kept_layer> of_lines(queue& on, buffer<kiln_spatial::point> at,
                                                     buffer<std::int32_t> first, buffer<std::int32_t> line_of);
    // Repeated vertices go. One fence.
    [[nodiscard]] result<void> drop_repeated(queue& on);
    // Only those stay that are counted here: by vertex, one more. One fence.
    [[nodiscard]] result<void> keep_vertices(queue& on, buffer<std::int64_t> const& counted);
    // The same of rings, which then begin and end with the first that stays; the vertex that closes one is counted. One fence.
    [[nodiscard]] result<void> keep_corners(queue& on, buffer<std::int64_t> const& counted);
    // New vertices inside segments: numbers of divisions, those of one segment next to each other and in the order they have along
    // it, with their segments; each is at places[vertex[number]]. Returns where each vertex went, one more than there were. One fence.
    struct divisions {
        buffer<std::uint64_t> segment_of;
        buffer<std::int32_t> number, vertex;
        kiln_spatial::point const* places;
    };
    [[nodiscard]] result<buffer<std::int64_t>> divide(queue& on, divisions const& at);

    [[nodiscard]] kiln_spatial::layer view() const noexcept;
    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    [[nodiscard]] std::size_t paths() const noexcept { return kind_.size(); }
    [[nodiscard]] std::size_t vertices() const noexcept { return at_.size(); }
    [[nodiscard]] std::size_t bytes() const noexcept;
    [[nodiscard]] buffer<std::uint8_t> const& states() const noexcept {
        return state_;
    }  // row_null, row_empty, row_there
    [[nodiscard]] buffer<std::int8_t> const& dimensions() const noexcept { return dimension_; }

    // Of a distinct layer, by row: segments, paths that are there; of a noded one, points in the boundary of its lines.
    [[nodiscard]] buffer<std::uint64_t> const& row_ends() const noexcept { return row_ends_; }
    [[nodiscard]] buffer<std::uint64_t> const& row_segments() const noexcept { return row_segments_; }
    [[nodiscard]] buffer<std::uint64_t> const& row_paths() const noexcept { return row_paths_; }

    // The tree over its elements, those of several worlds apart: made by keep_elements() unless it is there. One fence where paths are short.
    [[nodiscard]] result<void> keep_elements(queue& on, kept_worlds const& worlds = {});
    [[nodiscard]] kept_elements const& elements() const noexcept { return *elements_; }

    // Around the vertices of paths of these kinds (bits), for frame_of_extent().
    [[nodiscard]] result<buffer<std::uint64_t>> extent(queue& on, std::uint32_t kinds) const;
    // The same as a box; turned round where there are none. One fence.
    [[nodiscard]] result<kiln_spatial::box> bounds(queue& on, std::uint32_t kinds) const;
    // Of every row; turned round (min_x > max_x) where it has no vertices.
    [[nodiscard]] result<buffer<kiln_spatial::box>> row_boxes(queue& on) const;

private:
    struct path_rows {
        buffer<kiln_spatial::point> at;
        buffer<std::int32_t> first, path_of;
    };
    [[nodiscard]] static result<kept_layer> of_paths(queue& on, path_rows of, kiln_spatial::path_kind what);
    [[nodiscard]] result<void> count_rows(queue& on);
    [[nodiscard]] result<void> divide_at_own_vertices(queue& on, std::uint32_t const* rows);
    [[nodiscard]] result<void> find_orientations(queue& on, std::uint32_t const* rows);
    [[nodiscard]] result<void> sort_members(queue& on, std::uint32_t const* rows);
    [[nodiscard]] result<void> find_groups(queue& on, std::uint32_t const* rows);

    std::size_t rows_ = 0;
    buffer<kiln_spatial::point> at_;
    buffer<std::int32_t> path_first_, path_of_, row_of_, row_first_;
    buffer<std::uint8_t> kind_, state_;
    buffer<std::int8_t> dimension_;
    buffer<std::int32_t> group_first_, group_size_, member_;
    buffer<std::uint8_t> is_end_;
    buffer<std::uint64_t> row_ends_, row_segments_, row_paths_;
    std::shared_ptr<kept_elements const> elements_;
};

struct chosen_layer {
    kept_layer layer;
    buffer<std::int32_t> shift;  // by row: from its vertices to those of the layer that it is of
};

// Memory where a queue runs: the same, or a copy. Blocks where that is on the host and this is not.
template <class T>
[[nodiscard]] result<buffer<T>> brought_sync(queue const& to, stream_ref on, buffer<T> const& what) {
    return on_device(to.where()) ? what.to_device(on, to.device()) : what.to_host_sync(on);
}

inline constexpr std::uint32_t ring_kinds = 1U << kiln_spatial::ring_path | 1U << kiln_spatial::reversed_ring;
inline constexpr std::uint32_t segment_kinds = ring_kinds | 1U << kiln_spatial::line_path;
inline constexpr std::uint32_t all_kinds = segment_kinds | 1U << kiln_spatial::point_path;

}  // namespace kiln::spatial
