// SPDX-License-Identifier: Apache-2.0
#include "spatial/units.hpp"

#include "base/check.hpp"
#include "base/fork_guard.hpp"
#include "embedded/spatial_kernels.hpp"

#include <algorithm>
#include <memory>

namespace kiln::spatial {

namespace {

struct unit_row {
    char const* name;
    char const* kind;  // what it is for, in the catalogue
    std::vector<std::string> kernels;
};

std::vector<unit_row> make_rows() {
    return {
        {"geometry_layers",
         "layer",
         {"layer_rows", "layer_wrapped_sums", "layer_row_table", "layer_paths", "layer_vertices", "layer_row_extents",
          "layer_row_boxes", "layer_box", "layer_short_row_boxes", "layer_long_row_boxes", "layer_set_long_row_boxes"}},
        {"noding", "layer", {"node_kept_count",     "node_paths",         "node_vertices",
                             "node_division_count", "node_divisions",     "node_segment_keys",
                             "node_new_count",      "node_grown_count",   "node_add",
                             "node_spread",         "node_ring_extremes", "node_ring_kinds",
                             "node_member_count",   "node_group_keys",    "node_group_count",
                             "node_group_starts",   "node_groups",        "node_row_paths",
                             "node_group_hashes",   "node_group_clashes", "node_line_dimensions"}},
        {"words", "layer", {"words_set", "words_copy", "words_number", "words_shift"}},
        {"point_location",
         "index",
         {"cell_edge_counts", "cell_edge_lines", "cell_line_spans", "cell_corner_entries", "cell_edge_entries",
          "cell_entry_counts", "cell_entry_ranges", "cell_divisions", "cell_divided", "cell_entry_records",
          "cell_level_heads", "cell_part_counts", "cell_part_corners", "cell_part_corner_entries",
          "cell_part_edge_entries", "cell_world_extents", "cell_world_frames", "cell_world_numbers"}},
        {"point_in_polygon",
         "join",
         {"locate_first", "locate_first_exact", "locate_any", "locate_any_exact", "locate_count", "locate_count_exact",
          "locate_histogram", "locate_histogram_exact", "locate_histogram_sum", "locate_pairs", "locate_pairs_exact"}},
        {"path_points",
         "join",
         {"path_points", "path_point_rows", "path_point_boxes", "path_candidate_work", "path_candidate_marks",
          "path_candidate_marks_down", "path_marked_count", "path_marked"}},
        {"pair_lists",
         "join",
         {"pair_keys", "pair_parts", "pair_distinct_count", "pair_distinct", "pair_firsts", "pair_any", "pair_count",
          "pair_histogram", "pair_counted", "pair_key_firsts", "pair_key_count", "pair_any_counted"}},
        {"rectangles", "join", {"rectangle_boxes", "rectangle_judge"}},
        {"spatial_index",
         "index",
         {"box_bounds", "box_keys", "leaf_nodes", "inner_nodes", "box_count", "box_scatter", "box_scatter_more",
          "box_heavy_subtrees", "box_count_heavy", "box_light_counts", "box_heavy_counts", "box_scatter_heavy",
          "box_heavy_places", "box_by_item", "box_mark_heavy", "box_scatter_marked"}},
        {"segment_intersection",
         "join",
         {"element_vertex_keys", "element_count", "element_list_keys", "element_leaf_nodes", "element_list_leaf_nodes",
          "element_order", "contact_count", "contact_scatter", "contact_count_heavy", "contact_scatter_heavy",
          "contact_count_each", "contact_scatter_each", "contact_count_heavy_each", "contact_scatter_heavy_each",
          "contact_exact", "crossing_points", "contact_keys", "contact_element_keys", "contact_row_pairs"}},
        {"polygon_predicates",
         "join",
         {"relate_fact_keys", "relate_fact_pairs", "relate_fact_rows", "relate_contacts", "relate_insides",
          "relate_touched", "relate_seen_paths", "relate_seen_ends", "relate_seen_count", "relate_pieces",
          "relate_covered", "relate_matrices", "relate_holding_count", "relate_holding_rows"}},
        {"ring_checks",
         "join",
         {"ring_memory", "ring_vertices", "ring_turns", "ring_contacts", "ring_contacts_exact", "ring_contacts_heavy",
          "ring_rows", "ring_sides", "ring_steps", "ring_flips", "ring_places_by_cells", "ring_places"}},
        {"point_distance",
         "distance",
         {"nearest_begin", "nearest_least", "nearest_least_exact", "nearest_inside", "nearest_count", "nearest_scatter",
          "nearest_first", "nearest_first_exact", "nearest_rows_in_order", "nearest_point_keys", "nearest_numbers",
          "nearest_found_count", "nearest_found", "nearest_distinct_count", "nearest_firsts_count",
          "nearest_distinct"}},
        {"row_blocks", "distance", {"row_block_boxes", "row_group_boxes"}},
        {"pair_distance",
         "distance",
         {"pair_distance_items", "pair_distance_squares", "pair_distance_exact", "pair_distance_roots",
          "pair_within_boxes", "pair_within_insides", "pair_within_quick", "pair_within_exact", "pair_within_count"}},
        {"nearest_many",
         "distance",
         {"nearest_many_find", "nearest_many_exact", "nearest_many_equal_count", "nearest_many_equal_list",
          "nearest_many_distinct", "nearest_many_count", "nearest_many_list", "nearest_many_last"}},
        {"measures",
         "measure",
         {"measure_ring_runs", "measure_line_runs", "measure_point_runs", "measure_areas", "measure_lengths",
          "measure_centroids", "measure_boxes", "measure_boxes_by_key", "measure_counts"}},
        {"row_choice",
         "layer",
         {"choose_through", "choose_count", "choose_list", "choose_dimension_count", "choose_sources",
          "choose_new_sources", "choose_validity"}},
        {"wkb_rows",
         "format",
         {"wkb_points", "wkb_inspect", "wkb_flawed", "wkb_count", "wkb_read", "wkb_read_vertices", "wkb_place",
          "wkb_point_words", "wkb_size", "wkb_offset", "wkb_header", "wkb_write", "wkb_valid"}},
        {"row_shapes",
         "shape",
         {"shape_valid", "circle_count", "circle_row_rings", "circle_ring_vertices", "circle_draw", "clip_line_count",
          "clip_line_write", "clip_point_rows", "clip_multipoint_count", "clip_multipoint_write",
          "clip_multipoint_rows"}},
        {"overlay_noding", "overlay", {"overlay_worlds",        "overlay_pair_worlds",    "overlay_left_out",
                                       "overlay_join_rows",     "overlay_join_paths",     "overlay_join_vertices",
                                       "overlay_meeting_count", "overlay_meetings",       "overlay_division_pairs",
                                       "overlay_divisions",     "overlay_rounded",        "overlay_hot_count",
                                       "overlay_hot",           "overlay_division_keys",  "overlay_moved",
                                       "overlay_owned",         "overlay_restless",       "overlay_world_sizes",
                                       "overlay_row_scales",    "overlay_largest_world",  "overlay_world_divisions",
                                       "overlay_judge_worlds",  "overlay_calm_count",     "overlay_calm_divisions",
                                       "overlay_forget_moved",  "overlay_calm_rows",      "overlay_rows_with",
                                       "overlay_crossed_rows",  "overlay_chosen_worlds",  "overlay_chosen_count",
                                       "overlay_chosen_rows",   "overlay_chosen_paths",   "overlay_chosen_vertices",
                                       "overlay_chosen_asking", "overlay_tell_moved",     "overlay_tell_segments",
                                       "overlay_asking_rows",   "overlay_first_vertices", "overlay_numbered",
                                       "overlay_new_worlds",    "overlay_number_worlds",  "overlay_item_worlds",
                                       "overlay_begin_worlds",  "overlay_kept_rows"}},
        {"overlay_borders",
         "overlay",
         {"overlay_place_hashes", "overlay_place_keys", "overlay_place_count", "overlay_places", "overlay_junctions",
          "overlay_anchors", "overlay_strands", "overlay_strand_keys", "overlay_border_count", "overlay_borders",
          "overlay_cover_count", "overlay_covers", "overlay_pair_count", "overlay_pairs", "overlay_world_count",
          "overlay_world_borders"}},
        {"overlay_rings",
         "overlay",
         {"overlay_result_count",    "overlay_results",     "overlay_end_keys",         "overlay_links",
          "overlay_ring_begin",      "overlay_ring_double", "overlay_rank_begin",       "overlay_rank_double",
          "overlay_ring_count",      "overlay_rings",       "overlay_ring_vertices",    "overlay_ring_lowest",
          "overlay_shells",          "overlay_holes",       "overlay_ring_rows",        "overlay_innermost",
          "overlay_lost_hole_count", "overlay_lost_holes",  "overlay_crossed_to_holes", "overlay_offered_shells",
          "overlay_taken_shells",    "overlay_ring_keys",   "overlay_ring_sizes",       "overlay_row_polygons",
          "overlay_ring_offsets",    "overlay_row_offsets", "overlay_validity",         "overlay_output_vertices",
          "overlay_ring_order",      "overlay_ring_ranks"}},
        {"overlay_sameness",
         "overlay",
         {"overlay_ring_marks", "overlay_polygon_count", "overlay_polygon_marks", "overlay_row_marks",
          "overlay_shrunk_rows", "overlay_number_areas", "overlay_rows_compare"}},
        {"overlay_areas",
         "overlay",
         {"overlay_path_signs", "overlay_common_areas", "overlay_common_sums", "overlay_ratios"}},
        {"buffer_pieces",
         "shape",
         {"buffer_piece_count", "buffer_piece_write", "buffer_short_count", "buffer_vanishing", "buffer_group_begin",
          "buffer_groups", "buffer_worlds"}},
        {"simplify",
         "shape",
         {"simplify_begin", "simplify_open_count", "simplify_open", "simplify_clear", "simplify_farthest",
          "simplify_split", "simplify_staying"}},
        {"simplify_coverage",
         "shape",
         {"coverage_border_count", "coverage_border_first", "coverage_borders", "coverage_closed", "coverage_sources",
          "coverage_contacts", "coverage_points", "coverage_pocket_count", "coverage_pocket_first", "coverage_pockets",
          "coverage_jumped", "coverage_returning", "coverage_reached", "coverage_reopen", "coverage_places",
          "coverage_corner_count", "coverage_rings"}},
        {"overlay_clip",
         "overlay",
         {"clip_segments_by_areas", "clip_vertices_by_areas", "clip_part_count", "clip_parts", "clip_part_rows",
          "clip_vertex_count", "clip_point_write", "clip_part_restless", "clip_choose_divided"}},
        {"overlay_crossings",
         "overlay",
         {"crossing_count", "crossing_scatter", "crossing_count_heavy", "crossing_scatter_heavy", "crossing_count_each",
          "crossing_scatter_each", "crossing_count_heavy_each", "crossing_scatter_heavy_each", "crossing_exact"}},
        {"overlay_table", "overlay", {"table_changes",      "table_begins",         "table_marked_begins",
                                      "table_ends",         "table_left_run_count", "table_right_run_count",
                                      "table_left_runs",    "table_right_runs",     "table_left_crowds",
                                      "table_right_crowds", "table_crossing_order", "table_crossing_count",
                                      "table_crossings",    "table_pair_count",     "table_pairs",
                                      "table_unsure",       "table_beside",         "table_share_areas",
                                      "table_share_sums",   "table_real_count",     "table_areas"}},
        {"row_outlines",
         "shape",
         {"outline_vertex_keys", "outline_hulls",      "outline_hull_count",    "outline_hull_write",
          "outline_box_count",   "outline_box_write",  "boundary_line_count",   "boundary_lines",
          "boundary_vertices",   "boundary_row_lines", "boundary_end_count",    "boundary_ends",
          "boundary_odd_count",  "boundary_odd_ends",  "boundary_row_ends",     "inside_polygon_count",
          "inside_heights",      "inside_gaps",        "inside_crossing_count", "inside_crossings",
          "inside_polygon_keys", "inside_widest",      "inside_nearest",        "inside_points"}},
        {"pair_complement",
         "join",
         {"apart_rows_there", "apart_count", "apart_list", "apart_first", "apart_histogram"}},
    };
}

std::vector<unit_row> const& rows() {
    static constinit base::made_once<std::vector<unit_row> const> all;
    return all.get([] { return std::make_unique<std::vector<unit_row> const>(make_rows()); });
}

std::string text_of(std::string_view name) {
    for (auto const& f : embedded::spatial_kernels())
        if (f.name == name) return std::string{f.data};
    KILN_ASSERT(false);
    return {};
}

// The files that a text includes, and those that they do: a change elsewhere is none of the unit's.
void add_headers(std::string const& text, std::vector<header>& to) {
    constexpr std::string_view before = "#include \"";
    for (auto at = text.find(before); at != std::string::npos; at = text.find(before, at + 1)) {
        auto const from = at + before.size();
        auto const name = text.substr(from, text.find('"', from) - from);
        if (std::ranges::any_of(to, [&](auto const& h) { return h.name == name; })) continue;
        to.push_back({name, text_of(name)});
        add_headers(std::string{to.back().text}, to);
    }
}

std::vector<unit> make_units() {
    std::vector<unit> out;
    for (auto const& row : rows()) {
        unit u;
        u.name = row.name;
        u.source = text_of(std::string{row.name} + ".cu");
        add_headers(u.source, u.headers);
        u.kernels = row.kernels;
        u.options = {"-std=c++17"};
        u.licence = "Apache-2.0";
        out.push_back(std::move(u));
    }
    return out;
}

}  // namespace

std::vector<unit> const& all_units() {
    static constinit base::made_once<std::vector<unit> const> all;
    return all.get([] { return std::make_unique<std::vector<unit> const>(make_units()); });
}

unit const& unit_with(std::string_view kernel) {
    auto const& all = all_units();
    auto const found = std::ranges::find_if(
        all, [&](unit const& u) { return std::ranges::find(u.kernels, kernel) != u.kernels.end(); });
    KILN_ASSERT(found != all.end());
    return *found;
}

std::vector<engine_detail::named_unit> named_units() {
    std::vector<engine_detail::named_unit> out;
    auto row = rows().begin();
    for (auto const& u : all_units()) {
        spec about{
            .name = u.name, .kind = row->kind, .types = {"f64"}, .by = {}, .kernels = u.kernels, .pack = "spatial"};
        out.push_back({std::move(about), u});
        ++row;
    }
    return out;
}

}  // namespace kiln::spatial
