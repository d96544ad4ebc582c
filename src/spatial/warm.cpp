// SPDX-License-Identifier: Apache-2.0
#include "spatial/warm.hpp"

#include "base/check.hpp"
#include "engine/pack.hpp"

#include <kiln/runtime/operation.hpp>

#include <algorithm>

namespace kiln::spatial {

namespace {

// Whatever the family: layers, boxes and lists.
requirement const all_rows{
    "spatial_rows",
    {"words", "geometry_layers", "spatial_index", "pair_lists", "measures", "row_choice", "wkb_rows", "row_shapes",
     "row_blocks", "pair_distance", "point_distance", "nearest_many", "pair_complement", "buffer_pieces",
     "row_outlines", "simplify", "exclusive_scan_i64", "radix_sort_i32_i32", "radix_sort_u64_i32"},
    {.when = {"point", "multipoint", "linestring", "multilinestring", "polygon", "multipolygon"}, .pack = "spatial"}};
// Segments that meet, and what they say of their rows.
requirement const lines{"spatial_lines",
                        {"segment_intersection", "noding", "polygon_predicates"},
                        {.when = {"linestring", "multilinestring", "polygon", "multipolygon"}, .pack = "spatial"}};
// What lies inside.
requirement const areas{"spatial_areas",
                        {"point_location", "point_in_polygon", "path_points", "rectangles", "ring_checks",
                         "overlay_noding", "overlay_borders", "overlay_rings", "overlay_sameness", "overlay_areas",
                         "overlay_crossings", "overlay_table", "overlay_clip", "simplify_coverage"},
                        {.when = {"polygon", "multipolygon"}, .pack = "spatial"}};

constexpr requirement const* all[] = {&all_rows, &lines, &areas};

}  // namespace

std::span<requirement const* const> family_requirements() noexcept { return all; }

std::vector<std::string_view> families_of(geometries const& g) {
    if (g.kind() != family::mixed) return {name_of(g.kind())};
    std::vector<std::string_view> out;
    for (auto const& child : g.mixed().children) out.push_back(name_of(child.kind()));
    return out;
}

result<std::vector<want>> wants_of(std::initializer_list<std::string_view> operations) {
    std::vector<std::string> names;
    auto const& known = engine_detail::find_pack("spatial")->operations();
    for (auto const wanted : operations) {
        auto const found = std::ranges::find_if(known, [&](auto const* o) { return o->name() == wanted; });
        if (found == known.end())
            return fail(errc::not_found, "spatial: there is no operation '{}': see 'kiln warm --operations'", wanted);
        for (auto const& v : (*found)->variants())
            for (auto& name : needs_of(v, scalar::f64))
                if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
    return std::vector<want>(names.begin(), names.end());
}

demanded demand_families(std::initializer_list<geometries> loaded, demand_options how) {
    std::vector<std::string_view> facts;
    for (auto const& g : loaded)
        for (auto const name : families_of(g))
            if (std::ranges::find(facts, name) == facts.end()) facts.push_back(name);
    return demand_present(facts, std::move(how));
}

}  // namespace kiln::spatial
