// SPDX-License-Identifier: Apache-2.0
#include "spatial/units.hpp"

#include "base/check.hpp"
#include "embedded/spatial_kernels.hpp"

#include <algorithm>

namespace kiln::spatial {

namespace {

struct unit_row {
    char const* name;
    char const* kind;  // what it is for, in the catalogue
    std::vector<std::string> kernels;
};

std::vector<unit_row> const& rows() {
    static std::vector<unit_row> const all{
        {"geometry_layers",
         "layer",
         {"layer_rows", "layer_row_table", "layer_paths", "layer_vertices", "layer_row_extents", "layer_row_boxes",
          "layer_box"}},
        {"noding", "layer", {"node_kept_count",   "node_paths",        "node_vertices",      "node_division_count",
                             "node_divisions",    "node_segment_keys", "node_new_count",     "node_grown_count",
                             "node_add",          "node_spread",       "node_ring_extremes", "node_ring_kinds",
                             "node_member_count", "node_group_keys",   "node_group_count",   "node_group_starts",
                             "node_groups",       "node_row_paths",    "node_group_hashes",  "node_group_clashes"}},
        {"words", "layer", {"words_set", "words_copy"}},
        {"point_location",
         "index",
         {"cell_edge_counts", "cell_edge_lines", "cell_line_spans", "cell_corner_entries", "cell_edge_entries",
          "cell_entry_counts", "cell_entry_ranges", "cell_divisions", "cell_divided", "cell_entry_records",
          "cell_level_heads", "cell_part_counts", "cell_part_corners", "cell_part_corner_entries",
          "cell_part_edge_entries"}},
        {"point_in_polygon",
         "join",
         {"locate_first", "locate_first_exact", "locate_any", "locate_any_exact", "locate_count", "locate_count_exact",
          "locate_histogram", "locate_histogram_exact", "locate_histogram_sum", "locate_pairs", "locate_pairs_exact"}},
        {"path_points",
         "join",
         {"path_points", "path_point_rows", "path_point_boxes", "path_candidate_work", "path_candidate_marks",
          "path_marked_count", "path_marked"}},
        {"pair_lists",
         "join",
         {"pair_keys", "pair_parts", "pair_distinct_count", "pair_distinct", "pair_firsts", "pair_any", "pair_count",
          "pair_histogram"}},
        {"spatial_index",
         "index",
         {"box_bounds", "box_keys", "leaf_nodes", "inner_nodes", "box_count", "box_scatter", "box_scatter_more",
          "box_heavy_subtrees", "box_count_heavy", "box_light_counts", "box_heavy_counts", "box_scatter_heavy",
          "box_heavy_places"}},
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
          "relate_covered", "relate_matrices", "relate_holding_count", "relate_holding"}},
        {"point_distance",
         "distance",
         {"nearest_begin", "nearest_least", "nearest_least_exact", "nearest_inside", "nearest_count", "nearest_scatter",
          "nearest_first", "nearest_first_exact", "nearest_rows_in_order", "nearest_point_keys", "nearest_numbers",
          "nearest_found_count", "nearest_found", "nearest_distinct_count", "nearest_firsts_count",
          "nearest_distinct"}},
    };
    return all;
}

std::string text_of(std::string_view name) {
    for (auto const& f : embedded::spatial_kernels())
        if (f.name == name) return std::string{f.data};
    KILN_ASSERT(false);
    return {};
}

std::vector<unit> make_units() {
    std::vector<unit> out;
    for (auto const& row : rows()) {
        unit u;
        u.name = row.name;
        u.source = text_of(std::string{row.name} + ".cu");
        for (auto const& f : embedded::spatial_kernels())
            if (f.name.ends_with(".cuh")) u.headers.push_back({std::string{f.name}, std::string{f.data}});
        u.kernels = row.kernels;
        u.options = {"-std=c++17"};
        u.licence = "Apache-2.0";
        out.push_back(std::move(u));
    }
    return out;
}

}  // namespace

std::vector<unit> const& all_units() {
    static auto const all = make_units();
    return all;
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
