// SPDX-License-Identifier: Apache-2.0
//
// Geometries from the files people have, on the host: GeoJSON (RFC 7946; also one Feature per line), lines of WKT, lines of
// hexadecimal WKB, and CSV with WKT or with x and y. What is read is not trusted: whatever is wrong is refused with file, line
// and reason, and what comes back has passed validate() (<kiln/spatial/validate.hpp>). GeoJSON is read as it streams by; properties
// are skipped, but for the one that is asked for as a name of its row, unless they are asked for. Coordinates are taken as they are, whatever CRS a file names. Other formats (GeoPackage, shapefiles) only `kiln spatial` reads, by GDAL:
// `kiln spatial convert` makes one of these of them.
//
//     auto const zones = spatial::read_file("zones.geojson", {.id = "name"}).value();
//     auto const stops = spatial::read_file("stops.csv").value();                      // columns x and y, or lon and lat, or wkt
//     for (auto const& [zone, stop] : spatial::cpu::join(zones.rows, stops.rows, spatial::predicate::contains).value())
//         use(zones.ids[zone], stop);
#pragma once

#include <kiln/spatial/geometry.hpp>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace KILN_PUBLIC kiln {
namespace spatial {

enum class file_format : std::uint8_t {
    automatic,  // by the end of the file's name, else by how the text begins
    wkt,        // a geometry per line; an empty line is a null row
    wkb,        // the same in hexadecimal digits
    csv,  // the first line names the columns; separated by comma, semicolon or tab. Of one column an empty line is a null row
    geojson,
};
[[nodiscard]] std::string_view name_of(file_format what) noexcept;

struct read_options {
    file_format format = file_format::automatic;
    // A property or column that names the rows; "id" is also a Feature's own. Text, numbers and truth values are names, null is none, an object or
    // array is refused, and so is a name that no row has.
    std::string id = {};
    std::string x = {}, y = {}, wkt = {};  // columns; empty: those with one of the usual names
    enum class check : std::uint8_t { valid, nothing } what = check::valid;
    enum class extras : std::uint8_t { skipped, kept } properties = extras::skipped;  // of a GeoJSON
};
struct rows_of_file {
    geometries rows;
    std::vector<std::string> ids = {};      // one per row where they were asked for; "" where a row has none
    bool ids_are_text = true;               // false: all of them are numbers or truth values in the file
    std::vector<std::uint32_t> lines = {};  // one per row: where it ends in the text
    // One per row where they were asked for and the format has some: the text of an object, or "".
    std::vector<std::string> properties = {};
    // As "EPSG:3035" where the file names one; a GeoJSON by a member "crs", which most have not. The WKT of one that has no number.
    std::string crs = {};
    bool has_heights = false;  // of a GeoJSON: third numbers of positions, which were left out
};

// errc::invalid_argument for what is wrong in the text, errc::unsupported for what is right but not taken: geometry collections,
// curves, Z and M of WKT. (Of a GeoJSON position the third number is left out, as its standard allows.)
[[nodiscard]] result<rows_of_file> read_file(std::filesystem::path const& from, read_options const& how = {});
// `name` is what errors call the text. Not file_format::automatic, unless the text tells.
[[nodiscard]] result<rows_of_file> read_text(std::string_view text, std::string_view name,
                                             read_options const& how = {});

// A FeatureCollection, a Feature per row, "geometry": null for null rows. Rings keep the way they run. `properties` has one
// object's text per row, or none. A CRS other than that of RFC 7946 (EPSG:4326) is written as a member "crs", as GDAL has it.
[[nodiscard]] result<std::string> to_geojson(geometries const& from, std::span<std::string const> properties = {},
                                             std::string_view crs = {});
// A line per row, in hexadecimal digits; null rows are empty lines.
[[nodiscard]] result<std::string> to_wkb_lines(geometries const& from);

}  // namespace spatial
}  // namespace kiln
