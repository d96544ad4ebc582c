// SPDX-License-Identifier: Apache-2.0
// The spatial pack for Kiln's own programs.
#include "spatial/operations.hpp"
#include "workshop/pack_tool.hpp"
#include "workshop/settled.hpp"

#include <kiln/spatial/buffers.hpp>
#include <kiln/spatial/choose.hpp>
#include <kiln/spatial/join.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/nearest.hpp>
#include <kiln/spatial/outlines.hpp>
#include <kiln/spatial/overlay.hpp>
#include <kiln/spatial/query.hpp>
#include <kiln/spatial/segments.hpp>
#include <kiln/spatial/shapes.hpp>
#include <kiln/spatial/simplify.hpp>
#include <kiln/spatial/wkb.hpp>

#include <cmath>

namespace kiln::spatial {

namespace {

double number(std::size_t k) { return static_cast<double>(k * 2'654'435'761U % 1'000'003) / 1'000'003; }

// So many vertices and rows: short lines all over, or squares with eight corners on their sides.
geometries lines_of(std::size_t items, std::size_t seed) {
    geometry_builder to;
    for (std::size_t i = 0; i * 3 < items; ++i) {
        double const x = number(seed + 2 * i), y = number(seed + 2 * i + 1),
                     side = 1 / std::sqrt(static_cast<double>(items + 1));
        to.begin(family::linestring), to.vertex(x, y), to.vertex(x + side, y + side * number(i)), to.end();
    }
    return to.finish(family::linestring).value();
}
geometries areas_of(std::size_t items, std::size_t seed) {
    geometry_builder to;
    for (std::size_t i = 0; i * 10 < items; ++i) {
        double const x = number(seed + 2 * i), y = number(seed + 2 * i + 1),
                     h = 1 / std::sqrt(static_cast<double>(items + 1));
        to.begin(family::polygon), to.begin_ring();
        constexpr int corners[9][2] = {{0, 0}, {1, 0}, {2, 0}, {2, 1}, {2, 2}, {1, 2}, {0, 2}, {0, 1}, {0, 0}};
        for (auto const& c : corners) to.vertex(x + c[0] * h, y + c[1] * h);
        to.end();
    }
    return to.finish(family::polygon).value();
}
geometries points_of(std::size_t items) {
    auto x = buffer<double>::on_host(items / 2 + 1), y = buffer<double>::on_host(items / 2 + 1);
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = number(2 * i), y.data()[i] = number(2 * i + 1);
    return geometries::points(x, y).value();
}

class spatial_tool final : public workshop::pack_tool {
public:
    spatial_tool() : pack_tool{"spatial"} {}
    [[nodiscard]] std::vector<workshop::trial> trials() const override {
        auto const half = [](std::size_t n) { return n / 2 + 1; };
        return {
            {&locate_operation,
             [](stream_ref on, std::size_t n) {
                 return workshop::settled(join_first(on, points_of(n), areas_of(500, 1), predicate::intersects), on);
             }},
            {&meet_operation,
             [=](stream_ref on, std::size_t n) -> result<void> {
                 KILN_TRY(auto out, join(on, areas_of(half(n), 1), areas_of(half(n), 7), predicate::intersects));
                 return workshop::settled(result<buffer<std::int32_t>>{out.left}, on);
             }},
            {&join_operation,
             [=](stream_ref on, std::size_t n) -> result<void> {
                 KILN_TRY(auto out, join(on, areas_of(half(n), 1), areas_of(half(n), 7), predicate::overlaps));
                 return workshop::settled(result<buffer<std::int32_t>>{out.left}, on);
             }},
            {&relate_operation,
             [=](stream_ref on, std::size_t n) {
                 return workshop::settled(relate(on, areas_of(half(n), 1), areas_of(half(n), 7)), on);
             }},
            {&query_operation,
             [=](stream_ref on, std::size_t n) -> result<void> {
                 KILN_TRY(auto out, query(on, lines_of(half(n), 1), lines_of(half(n), 7)));
                 return workshop::settled(result<buffer<std::int32_t>>{out.left}, on);
             }},
            {&segments_operation,
             [=](stream_ref on, std::size_t n) -> result<void> {
                 KILN_TRY(auto out, segment_intersections(on, lines_of(half(n), 1), lines_of(half(n), 7)));
                 return workshop::settled(result<buffer<std::int32_t>>{out.left}, on);
             }},
            {&nearest_operation,
             [=](stream_ref on, std::size_t n) -> result<void> {
                 KILN_TRY(auto out, nearest(on, points_of(half(n)), lines_of(half(n), 7), {.equal = ties::by_row}));
                 return workshop::settled(result<buffer<std::int32_t>>{out.left}, on);
             }},
            {&nearest_many_operation,
             [=](stream_ref on, std::size_t n) -> result<void> {
                 KILN_TRY(auto out, nearest(on, points_of(half(n)), lines_of(half(n), 7), {.count = 4}));
                 return workshop::settled(result<buffer<std::int32_t>>{out.left}, on);
             }},
            {&disjoint_operation,
             [=](stream_ref on, std::size_t n) {
                 return workshop::settled(
                     join_count(on, areas_of(half(n), 1), areas_of(half(n), 7), predicate::disjoint), on);
             }},
            {&distance_operation,
             [=](stream_ref on, std::size_t n) {
                 return workshop::settled(distance(on, areas_of(half(n), 1), areas_of(half(n), 7)), on);
             }},
            {&within_operation,
             [=](stream_ref on, std::size_t n) -> result<void> {
                 double const near = 1 / std::sqrt(static_cast<double>(n + 1));
                 KILN_TRY(auto out, join_within(on, points_of(half(n)), lines_of(half(n), 7), near));
                 return workshop::settled(result<buffer<std::int32_t>>{out.left}, on);
             }},
            {&bounds_operation,
             [](stream_ref on, std::size_t n) -> result<void> {
                 KILN_TRY(auto out, bounds(on, areas_of(n, 1)));
                 return workshop::settled(result<buffer<double>>{out.min_x}, on);
             }},
            {&measures_operation,
             [](stream_ref on, std::size_t n) { return workshop::settled(area(on, areas_of(n, 1)), on); }},
            {&shapes_operation,
             [](stream_ref on, std::size_t n) -> result<void> {
                 KILN_TRY(auto out, clip_by_rect(on, lines_of(n, 1), {0.25, 0.25, 0.75, 0.75}));
                 return workshop::settled(result<buffer<double>>{out.parts().x}, on);
             }},
            {&wkb_operation,
             [](stream_ref on, std::size_t n) -> result<void> {
                 KILN_TRY(auto out, to_wkb_sync(on, areas_of(n, 1)));
                 return workshop::settled(result<buffer<std::uint8_t>>{out.values()}, on);
             }},
            {&overlay_operation,
             [=](stream_ref on, std::size_t n) -> result<void> {
                 KILN_TRY(auto out,
                          overlay(on, areas_of(half(n), 1), areas_of(half(n), 7), overlay_kind::intersection));
                 return workshop::settled(result<buffer<std::int32_t>>{out.left}, on);
             }},
            {&dissolve_operation,
             [](stream_ref on, std::size_t n) -> result<void> {
                 KILN_TRY(auto out, union_all(on, areas_of(n, 1)));
                 return workshop::settled(result<buffer<double>>{out.parts().x}, on);
             }},
            {&buffer_operation,
             [](stream_ref on, std::size_t n) -> result<void> {
                 double const near = 1 / std::sqrt(static_cast<double>(n + 1));
                 KILN_TRY(auto out, buffer_of(on, lines_of(n, 1), near / 4));
                 return workshop::settled(result<buffer<double>>{out.parts().x}, on);
             }},
            {&outlines_operation,
             [](stream_ref on, std::size_t n) -> result<void> {
                 KILN_TRY(auto out, point_on_surface(on, areas_of(n, 1)));
                 return workshop::settled(result<buffer<double>>{out.parts().x}, on);
             }},
            {&simplify_operation,
             [](stream_ref on, std::size_t n) -> result<void> {
                 KILN_TRY(auto out, simplify(on, lines_of(n, 1), 1e-3));
                 return workshop::settled(result<buffer<double>>{out.parts().x}, on);
             }},
            {&coverage_operation,
             [](stream_ref on, std::size_t n) -> result<void> {
                 KILN_TRY(auto out, simplify_coverage(on, areas_of(n, 1), 1e-3));
                 return workshop::settled(result<buffer<double>>{out.parts().x}, on);
             }},
            {&choose_operation,
             [](stream_ref on, std::size_t n) -> result<void> {
                 auto const all = points_of(n);
                 auto keep = buffer<std::uint8_t>::on_host(all.rows());
                 for (std::size_t i = 0; i < keep.size(); ++i) keep.data()[i] = i % 2 == 0 ? 1 : 0;
                 KILN_TRY(auto out, filter_sync(on, all, keep));
                 return workshop::settled(result<buffer<std::int32_t>>{*out.chosen()}, on);
             }},
        };
    }
};

spatial_tool const the_tool;

}  // namespace

}  // namespace kiln::spatial
