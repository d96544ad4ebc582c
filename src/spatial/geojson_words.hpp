// SPDX-License-Identifier: Apache-2.0
// What GeoJSON is read and written by.
#pragma once

#include <kiln/spatial/geometry.hpp>

#include <charconv>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::spatial {

inline constexpr std::pair<std::string_view, family> geojson_types[] = {
    {"Point", family::point},
    {"LineString", family::linestring},
    {"Polygon", family::polygon},
    {"MultiPoint", family::multipoint},
    {"MultiLineString", family::multilinestring},
    {"MultiPolygon", family::multipolygon},
};

inline constexpr std::string_view long_crs = "urn:ogc:def:crs:";

[[nodiscard]] inline std::string shortest(double v) {
    char digits[32];
    auto const [end, problem] = std::to_chars(digits, digits + sizeof(digits), v);
    return {digits, end};
}

}  // namespace kiln::spatial
