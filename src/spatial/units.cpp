// SPDX-License-Identifier: Apache-2.0
#include "spatial/units.hpp"

#include "base/check.hpp"
#include "embedded/spatial_kernels.hpp"

namespace kiln::spatial {

namespace {

struct unit_row {
    char const* name;
    std::vector<std::string> kernels;
};

std::vector<unit_row> const& rows() {
    static std::vector<unit_row> const all{
        {"point_in_polygon",
         {"locate_first", "locate_first_exact", "locate_count", "locate_count_exact", "locate_pairs"}},
        {"segment_intersection", {"contact_count", "contact_scatter", "contact_exact", "crossing_points"}},
        {"polygon_predicates", {"contact_evidence"}},
        {"spatial_index", {"box_keys", "leaf_nodes", "inner_nodes", "box_count", "box_scatter"}},
        {"point_distance", {"nearest_element"}},
    };
    return all;
}

std::string text_of(std::string_view name) {
    for (auto const& f : embedded::spatial_kernels())
        if (f.name == name) return std::string{f.data};
    KILN_ASSERT(false);
    return {};
}

}  // namespace

std::vector<unit> all_units() {
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

}  // namespace kiln::spatial
