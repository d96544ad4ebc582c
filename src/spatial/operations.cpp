// SPDX-License-Identifier: Apache-2.0
#include "spatial/operations.hpp"

#include "base/check.hpp"
#include "spatial/row_facts.hpp"

namespace kiln::spatial {

namespace {

constexpr std::array<variant, 2> both(std::string_view needs) {
    return {variant{.name = "gpu", .where = place::gpu, .needs = needs}, variant{.name = "cpu", .where = place::cpu}};
}

constexpr auto locate_variants =
    both("words geometry_layers point_location point_in_polygon pair_lists exclusive_scan_i64 radix_sort_u64_i32");
constexpr auto query_variants =
    both("words geometry_layers spatial_index pair_lists exclusive_scan_i64 radix_sort_i32_i32 radix_sort_u64_i32");
constexpr auto segments_variants = both(
    "words geometry_layers spatial_index segment_intersection exclusive_scan_i64 radix_sort_i32_i32 "
    "radix_sort_u64_i32");
constexpr auto meet_variants = both(
    "words geometry_layers point_location point_in_polygon spatial_index segment_intersection path_points "
    "rectangles pair_lists exclusive_scan_i64 radix_sort_i32_i32 radix_sort_u64_i32");
constexpr auto join_variants = both(
    "words geometry_layers noding point_location point_in_polygon spatial_index segment_intersection "
    "polygon_predicates ring_checks "
    "path_points rectangles pair_lists exclusive_scan_i64 radix_sort_i32_i32 radix_sort_u64_i32");
constexpr auto nearest_variants = both(
    "words geometry_layers point_location point_in_polygon spatial_index segment_intersection point_distance "
    "path_points "
    "pair_lists exclusive_scan_i64 radix_sort_i32_i32 radix_sort_u64_i32");
constexpr auto disjoint_variants = both(
    "words geometry_layers point_location point_in_polygon spatial_index segment_intersection path_points pair_lists "
    "pair_complement exclusive_scan_i64 radix_sort_i32_i32 radix_sort_u64_i32");
constexpr auto distance_variants = both("words geometry_layers row_blocks pair_distance exclusive_scan_i64");
constexpr auto within_variants = both(
    "words geometry_layers row_blocks point_location point_in_polygon path_points pair_distance spatial_index "
    "pair_lists "
    "exclusive_scan_i64 radix_sort_i32_i32 radix_sort_u64_i32");
constexpr auto nearest_many_variants = both(
    "words geometry_layers row_blocks point_location point_in_polygon spatial_index segment_intersection "
    "point_distance path_points pair_lists nearest_many exclusive_scan_i64 radix_sort_i32_i32 radix_sort_u64_i32");
constexpr auto choose_variants = both("row_choice exclusive_scan_i64");
constexpr auto wkb_variants = both("words wkb_rows exclusive_scan_i64");
constexpr auto shapes_variants = both("geometry_layers row_shapes exclusive_scan_i64");
constexpr auto overlay_variants = both(
    "words geometry_layers noding point_location spatial_index segment_intersection overlay_noding overlay_borders "
    "overlay_rings overlay_areas overlay_crossings overlay_table overlay_clip row_shapes row_choice measures "
    "path_points exclusive_scan_i64 radix_sort_i32_i32 radix_sort_u64_i32");
constexpr auto dissolve_variants = both(
    "words geometry_layers noding point_location spatial_index segment_intersection overlay_noding overlay_borders "
    "overlay_rings overlay_sameness row_choice exclusive_scan_i64 radix_sort_i32_i32 radix_sort_u64_i32");
constexpr auto buffer_variants = both(
    "words geometry_layers noding point_location spatial_index segment_intersection overlay_noding overlay_borders "
    "overlay_rings overlay_areas buffer_pieces exclusive_scan_i64 radix_sort_i32_i32 radix_sort_u64_i32");
constexpr auto simplify_variants = both(
    "words geometry_layers noding point_location spatial_index segment_intersection overlay_noding overlay_borders "
    "overlay_rings row_outlines row_shapes row_choice simplify exclusive_scan_i64 radix_sort_i32_i32 "
    "radix_sort_u64_i32");
constexpr auto coverage_variants = both(
    "words geometry_layers noding point_location point_in_polygon spatial_index segment_intersection overlay_noding "
    "overlay_borders overlay_rings simplify simplify_coverage exclusive_scan_i64 radix_sort_i32_i32 "
    "radix_sort_u64_i32");
constexpr auto outlines_variants =
    both("words geometry_layers measures row_outlines row_shapes row_choice exclusive_scan_i64 radix_sort_u64_i32");
constexpr auto measures_variants = both("geometry_layers measures exclusive_scan_i64");
constexpr auto bounds_variants = both("words geometry_layers measures exclusive_scan_i64");

}  // namespace

// Every result is discrete and exact: the same on both sides, whatever the order of threads. Sizes are vertices and rows of
// both operands, until `kiln calibrate` has measured: a transfer and the launches of an index against one core.
constinit operation const locate_operation{"spatial_locate", "spatial", {.pairwise = 1 << 15}, locate_variants};
constinit operation const meet_operation{"spatial_intersects", "spatial", {.pairwise = 1 << 13}, meet_variants};
constinit operation const join_operation{"spatial_join", "spatial", {.pairwise = 1 << 13}, join_variants};
constinit operation const disjoint_operation{"spatial_disjoint", "spatial", {.pairwise = 1 << 13}, disjoint_variants};
constinit operation const distance_operation{"spatial_distance", "spatial", {.pairwise = 1 << 15}, distance_variants};
constinit operation const within_operation{"spatial_within", "spatial", {.pairwise = 1 << 13}, within_variants};
constinit operation const relate_operation{"spatial_relate", "spatial", {.pairwise = 1 << 13}, join_variants};
constinit operation const query_operation{"spatial_query", "spatial", {.pairwise = 1 << 14}, query_variants};
constinit operation const segments_operation{"spatial_segments", "spatial", {.pairwise = 1 << 13}, segments_variants};
constinit operation const nearest_operation{"spatial_nearest", "spatial", {.pairwise = 1 << 13}, nearest_variants};
constinit operation const nearest_many_operation{
    "spatial_nearest_many", "spatial", {.pairwise = 1 << 13}, nearest_many_variants};
constinit operation const bounds_operation{"spatial_bounds", "spatial", {.pairwise = 1 << 16}, bounds_variants};
constinit operation const measures_operation{"spatial_measures", "spatial", {.pairwise = 1 << 16}, measures_variants};
constinit operation const shapes_operation{"spatial_shapes", "spatial", {.pairwise = 1 << 16}, shapes_variants};
constinit operation const overlay_operation{"spatial_overlay", "spatial", {.pairwise = 1 << 13}, overlay_variants};
constinit operation const dissolve_operation{"spatial_dissolve", "spatial", {.pairwise = 1 << 13}, dissolve_variants};
constinit operation const buffer_operation{"spatial_buffer", "spatial", {.pairwise = 1 << 12}, buffer_variants};
constinit operation const outlines_operation{"spatial_outlines", "spatial", {.pairwise = 1 << 15}, outlines_variants};
constinit operation const simplify_operation{"spatial_simplify", "spatial", {.pairwise = 1 << 14}, simplify_variants};
constinit operation const coverage_operation{
    "spatial_simplify_coverage", "spatial", {.pairwise = 1 << 13}, coverage_variants};
// These run where their rows are.
constinit operation const choose_operation{
    "spatial_choose", "spatial", {.pairwise = ~std::uint64_t{0} >> 1}, choose_variants};
constinit operation const wkb_operation{"spatial_wkb", "spatial", {.pairwise = ~std::uint64_t{0} >> 1}, wkb_variants};

call_facts facts_of(geometries const& one) {
    return {.items = one.vertices() + one.rows(), .type = scalar::f64, .where = one.where()};
}
result<call_facts> facts_of(operation const& what, geometries const& left, geometries const& right) {
    auto const empty = [](geometries const& g) { return g.rows() == 0; };
    if (!empty(left) && !empty(right) && on_device(left.where()) != on_device(right.where())) {
        return fail(errc::invalid_argument,
                    "{}: one operand is on the host and one on the device; move one of them by name", what.name());
    }
    return call_facts{.items = left.vertices() + left.rows() + right.vertices() + right.rows(),
                      .type = scalar::f64,
                      .where = on_device(left.where()) ? left.where() : right.where()};
}

result<geometries> brought(runtime::operation_call const& call, stream_ref on, geometries const& what) {
    if (call.on_gpu() && on_device(what.where())) return what;
    KILN_TRY(auto here, on_device(what.where()) ? what.to_host_sync(on) : result<geometries>{what});
    KILN_CHECK(require_valid_once(here));
    return call.on_gpu() ? here.to_device(on, what.device()) : result<geometries>{std::move(here)};
}

}  // namespace kiln::spatial
