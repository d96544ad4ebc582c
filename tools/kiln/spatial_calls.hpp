// SPDX-License-Identifier: Apache-2.0
// The one place where `kiln spatial` calls the pack: a function per verb, each decided by the mode in force, with results on the
// host.
#pragma once

#include <kiln/runtime/operation.hpp>
#include <kiln/spatial/buffers.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/nearest.hpp>
#include <kiln/spatial/overlay.hpp>
#include <kiln/spatial/relate.hpp>

#include <functional>

namespace kiln::cli::spatial_calls {

// Where a call ran, and why.
struct decided {
    place selected = place::cpu;
    std::string reason;
};
template <class T>
struct answer {
    T data;
    decided how;
};
template <class T>
using answers = result<answer<std::vector<T>>>;

[[nodiscard]] answers<std::optional<spatial::bounding_box>> bounds(spatial::geometries const& of);
[[nodiscard]] answers<spatial::row_pair> join(spatial::geometries const& left, spatial::geometries const& right,
                                              spatial::predicate what);
[[nodiscard]] answers<spatial::row_pair> join_within(spatial::geometries const& left, spatial::geometries const& right,
                                                     double distance);
[[nodiscard]] answers<spatial::near_pair> nearest(spatial::geometries const& left, spatial::geometries const& right,
                                                  spatial::nearest_options const& how);
// All pairs that meet.
[[nodiscard]] answers<spatial::related_pair> relate_join(spatial::geometries const& left,
                                                         spatial::geometries const& right);
// Row by row.
[[nodiscard]] answers<std::optional<spatial::matrix>> relate(spatial::geometries const& left,
                                                             spatial::geometries const& right);

// Rows on the host, with their areas.
struct drawn_rows {
    spatial::geometries rows;
    std::vector<double> areas;
    std::vector<std::int32_t> left, right;  // of an overlay: -1 is none
};
[[nodiscard]] result<answer<drawn_rows>> overlay(spatial::geometries const& left, spatial::geometries const& right,
                                                 spatial::overlay_kind what, spatial::overlay_options const& how);
[[nodiscard]] result<answer<drawn_rows>> overlay_row_by_row(spatial::geometries const& left,
                                                            spatial::geometries const& right,
                                                            spatial::overlay_kind what,
                                                            spatial::overlay_options const& how);
[[nodiscard]] result<answer<drawn_rows>> dissolve(spatial::geometries const& of, std::vector<std::int32_t> const& key,
                                                  std::size_t keys, spatial::memory_options const& how);

[[nodiscard]] result<answer<drawn_rows>> buffer_of(spatial::geometries const& of, double distance,
                                                   spatial::buffer_options const& how);

// What makes a row of every row.
using shape_maker = std::function<result<spatial::geometries>(stream_ref on, spatial::geometries const& of)>;
[[nodiscard]] result<answer<drawn_rows>> shape(spatial::geometries const& of, shape_maker const& make);
[[nodiscard]] result<answer<drawn_rows>> clip(spatial::geometries const& of, spatial::geometries const& areas);

struct measured_row {
    double area = 0, length = 0;
    spatial::location centroid;
    bool is_valid = true;
};
[[nodiscard]] answers<measured_row> measures(spatial::geometries const& of);
// Row by row; NaN where there is none.
[[nodiscard]] answers<double> distance(spatial::geometries const& left, spatial::geometries const& right);

}  // namespace kiln::cli::spatial_calls
