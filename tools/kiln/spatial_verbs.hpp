// SPDX-License-Identifier: Apache-2.0
// What the verbs of `kiln spatial` share, and those that have files of their own.
#pragma once

#include "command.hpp"
#include "spatial_calls.hpp"
#include "spatial_files.hpp"

namespace kiln::cli {

struct spatial_arguments {
    std::vector<std::string> files;
    spatial_input left, right;
    spatial_reading reading;
    std::optional<std::string> pattern;
    std::string predicate = "intersects", mode = "auto", output, ties = "kept", how = "intersection", what;
    std::optional<double> distance, most;
    double grid = 0;
    std::string memory_limit;
    std::string caps = "round", joins = "round";
    double mitre_limit = 5;
    std::int64_t count = 1;
    int quarter = 8;
    bool as_json = false, row_by_row = false;
};

// --mode, for as long as it lives.
class mode_in_force {
public:
    explicit mode_in_force(std::string const& name);

private:
    std::optional<scoped_execution_mode> mode_;
};

// --memory-limit in bytes; 0 where it was not given.
[[nodiscard]] std::size_t memory_limit_of(spatial_arguments const& a);

// To --output or standard output, which is looked at before anything is read.
void check_spatial_output(spatial_arguments const& a);
// The same of what has no geometry to write.
void check_lines_output(spatial_arguments const& a);
// The same of what is geometry and nothing else.
void check_geometry_output(spatial_arguments const& a);
void deliver(spatial_arguments const& a, std::string_view text);
void deliver_json(spatial_arguments const& a, json const& data);
// What rows of a layer that are written again have from its file.
struct carried {
    std::vector<std::string> properties = {};  // one per row, or none
    std::string crs = {};
};
// Rows as the output's name says, not CSV; GeoJSON has these properties behind those that are carried, unless there they have the same name.
void deliver_geometry(spatial_arguments const& a, spatial::geometries const& rows, std::vector<json> const& properties,
                      carried const& from = {});
// The same arguments, by which properties are read where they are written again.
[[nodiscard]] spatial_arguments keeping_properties(spatial_arguments a);
[[nodiscard]] inline carried carried_from(spatial_layer const& of) { return {of.data.properties, of.data.crs}; }

struct both_layers {
    spatial_layer left, right;
};
[[nodiscard]] both_layers read_both(spatial_arguments const& a, spatial_progress& bar);
// errc::invalid_argument where one has more rows than the other.
void require_as_many(both_layers const& of);
// "zones.wkt, line 3"; without the line where the format has none.
[[nodiscard]] std::string place_of_row(spatial_layer const& of, std::size_t row);
// errc::unsupported with file, line and row where one is no area.
void require_areas(spatial_layer const& of, std::string_view verb);

[[nodiscard]] json about(both_layers const& of, spatial_calls::decided const& how);
[[nodiscard]] json about(spatial_layer const& of, spatial_calls::decided const& how);

[[nodiscard]] std::string number_text(double v);
[[nodiscard]] std::string number_or_nothing(double v);  // nothing for NaN, as null rows have it

// spatial_overlay.cpp
int write_overlay(spatial_arguments const& a);
int write_dissolve(spatial_arguments const& a);
int write_clipped(spatial_arguments const& a);
// spatial_rows.cpp
int write_measures(spatial_arguments const& a);
int write_distances(spatial_arguments const& a);
int write_converted(spatial_arguments const& a);
int write_buffers(spatial_arguments const& a);
int write_shapes(spatial_arguments const& a);

// A row for every row of a layer: lines "row,area", geometry, or JSON with what it is about before the rows.
void deliver_drawn(spatial_arguments const& a, spatial_layer const& of, spatial_calls::drawn_rows const& made,
                   json what);

}  // namespace kiln::cli
