// SPDX-License-Identifier: Apache-2.0
#include "spatial_verbs.hpp"

#include "base/config.hpp"
#include "base/text.hpp"
#include "message.hpp"
#include "misuse.hpp"

#include <kiln/spatial/wkt.hpp>

#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>

namespace kiln::cli {

namespace {

// auto is as KILN_EXECUTION_MODE says, and whoever slipped there would not know.
void tell_of_bad_setting() {
    auto const settings = base::config::load();
    for (auto const& problem : settings.problems())
        if (problem.find("KILN_EXECUTION_MODE:") != std::string::npos) complain(problem);
}

}  // namespace

mode_in_force::mode_in_force(std::string const& name) {
    auto const mode = parse_execution_mode(name);
    if (!mode) throw misuse{mode.error().message()};
    if (*mode == execution_mode::gpu) {
        // Said before a long file is read, with what is missing.
        scoped_execution_mode const asked{*mode};
        if (auto const gpu = usable_gpu(); !gpu)
            throw misuse{fmt::format("--mode gpu: {}; mode auto would run it on the CPU", gpu.error().message())};
    }
    if (name != "auto") mode_.emplace(*mode);
    else tell_of_bad_setting();
}

std::size_t memory_limit_of(spatial_arguments const& a) {
    if (a.memory_limit.empty()) return 0;
    auto const bytes = base::parse_size(a.memory_limit);
    if (!bytes || *bytes == 0) throw misuse{fmt::format("--memory-limit '{}': a size, as 512M or 4G", a.memory_limit)};
    return static_cast<std::size_t>(*bytes);
}

namespace {

// Formats that are read, by GDAL, and not written: whoever names one would find lines of text there.
bool is_other_geometry(std::string const& file) {
    auto const ending = ending_of(file);
    for (auto const* known : {".gpkg", ".shp", ".shx", ".dbf", ".fgb", ".kml", ".kmz", ".gml", ".gpx", ".gdb", ".dxf",
                              ".tab", ".mif", ".sqlite", ".parquet", ".topojson", ".geojsonl", ".geojsons", ".ndjson"})
        if (ending == known) return true;
    return false;
}

}  // namespace

void check_spatial_output(spatial_arguments const& a) {
    if (is_other_geometry(a.output))
        throw misuse{fmt::format("-o {}: geometry is written as .geojson, .wkt or .wkb, lines as .csv", a.output)};
    if (!a.output.empty()) check_text_output(a.output).value();
}
void check_lines_output(spatial_arguments const& a) {
    if (!a.as_json && output_kind(a.output) != spatial_output::csv)
        throw misuse{
            fmt::format("-o {}: there is no geometry in the answer; name a .csv, or ask for --json", a.output)};
    check_spatial_output(a);
}
void check_geometry_output(spatial_arguments const& a) {
    auto const ending = ending_of(a.output);
    if (output_kind(a.output) == spatial_output::csv && !ending.empty() && ending != ".txt")
        throw misuse{fmt::format("-o {}: geometry is written as .geojson, .wkt or .wkb", a.output)};
    check_spatial_output(a);
}
void deliver(spatial_arguments const& a, std::string_view text) {
    write_text_output(a.output.empty() ? "-" : a.output, base::as_bytes(text)).value();
}
void deliver_json(spatial_arguments const& a, json const& data) {
    if (a.output.empty()) return print_json(data);
    deliver(a, base::json_text(data, 2) + "\n");
}

spatial_arguments keeping_properties(spatial_arguments a) {
    a.reading.keeps_properties = !a.as_json && output_kind(a.output) == spatial_output::geojson;
    return a;
}

namespace {

// Members behind those of an object's text, which stay as they are written there.
std::string with_members(std::string const& own, json const& more) {
    auto const there = json::parse(own, nullptr, false);
    if (!there.is_object() || there.empty()) return base::json_text(more);
    auto text = own.substr(0, own.rfind('}'));
    for (auto const& [name, value] : more.items())
        if (!there.contains(name)) text += fmt::format(",{}:{}", base::json_text(json(name)), base::json_text(value));
    return text + '}';
}

bool is_longitude_and_latitude(std::string_view crs) { return crs == "EPSG:4326" || crs == "OGC:CRS84"; }
// "EPSG:3035"; of a WKT what it calls itself.
std::string_view name_of_crs(std::string_view crs) {
    auto const begin = crs.find('"');
    return begin == crs.npos ? crs : crs.substr(begin, crs.find('"', begin + 1) + 1 - begin);
}
void warn_of_different_crs(spatial_layer const& left, spatial_layer const& right) {
    auto const &a = left.data.crs, &b = right.data.crs;
    if (a.empty() || b.empty() || a == b || (is_longitude_and_latitude(a) && is_longitude_and_latitude(b))) return;
    complain(
        fmt::format("{} is in {} and {} in {}: coordinates are taken as they are; bring both files into one CRS first",
                    left.file, name_of_crs(a), right.file, name_of_crs(b)));
}

}  // namespace

void deliver_geometry(spatial_arguments const& a, spatial::geometries const& rows, std::vector<json> const& properties,
                      carried const& from) {
    switch (output_kind(a.output)) {
        case spatial_output::geojson: {
            std::vector<std::string> texts;
            for (std::size_t i = 0; i < properties.size(); ++i)
                texts.push_back(i < from.properties.size() ? with_members(from.properties[i], properties[i])
                                                           : base::json_text(properties[i]));
            return deliver(a, spatial::to_geojson(rows, texts, from.crs).value());
        }
        case spatial_output::wkb: return deliver(a, spatial::to_wkb_lines(rows).value());
        case spatial_output::wkt:
        case spatial_output::csv: break;
    }
    std::string text;
    for (auto const& row : spatial::to_wkt(rows).value()) text += row + '\n';
    deliver(a, text);
}

both_layers read_both(spatial_arguments const& a, spatial_progress& bar) {
    if (a.left.file == "-" && a.right.file == "-")
        throw misuse{std::string{"only one of --left and --right can be standard input"}};
    auto left = read_layer(a.left, a.reading).value();
    bar.step(fmt::format("{}: {} rows", a.left.file, left.rows().rows()));
    auto right = read_layer(a.right, a.reading).value();
    bar.step(fmt::format("{}: {} rows", a.right.file, right.rows().rows()));
    warn_of_different_crs(left, right);
    return {std::move(left), std::move(right)};
}

void require_as_many(both_layers const& of) {
    if (of.left.rows().rows() == of.right.rows().rows()) return;
    throw fail(errc::invalid_argument, "row by row: {} has {} rows, {} has {}", of.left.file, of.left.rows().rows(),
               of.right.file, of.right.rows().rows());
}

std::string place_of_row(spatial_layer const& of, std::size_t row) {
    return row < of.data.lines.size() ? fmt::format("{}, line {}", of.file, of.data.lines[row]) : of.file;
}

void require_areas(spatial_layer const& of, std::string_view verb) {
    for (std::size_t i = 0; i < of.rows().rows(); ++i) {
        auto const kind = of.rows().kind_of(i);
        if (of.rows().is_null(i) || dimension_of(kind) == 2) continue;
        throw fail(errc::unsupported, "{}: row {} is a {}: {} takes polygons and multipolygons; leave other rows out",
                   place_of_row(of, i), i, name_of(kind), verb);
    }
}

json about(both_layers const& of, spatial_calls::decided const& how) {
    return json{{"left", of.left.file},
                {"right", of.right.file},
                {"left_rows", of.left.rows().rows()},
                {"right_rows", of.right.rows().rows()},
                {"where", name_of(how.selected)},
                {"reason", how.reason}};
}
json about(spatial_layer const& of, spatial_calls::decided const& how) {
    return json{{"file", of.file}, {"where", name_of(how.selected)}, {"reason", how.reason}};
}

std::string number_text(double v) {
    char digits[32];
    auto const [end, problem] = std::to_chars(digits, digits + sizeof(digits), v);
    return {digits, end};
}
std::string number_or_nothing(double v) { return std::isnan(v) ? std::string{} : number_text(v); }

}  // namespace kiln::cli
