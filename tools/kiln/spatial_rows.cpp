// SPDX-License-Identifier: Apache-2.0
// kiln spatial measure, distance, convert, buffer, shape: a line for every row
#include "misuse.hpp"
#include "spatial_verbs.hpp"

#include <kiln/spatial/outlines.hpp>
#include <kiln/spatial/simplify.hpp>

#include <algorithm>
#include <cmath>

namespace kiln::cli {

namespace {

json number_json(double v) { return std::isnan(v) ? json(nullptr) : json(v); }

}  // namespace

void deliver_drawn(spatial_arguments const& a, spatial_layer const& of, spatial_calls::drawn_rows const& made,
                   json what) {
    std::vector<json> rows;
    std::string text;
    for (std::size_t i = 0; i < made.areas.size(); ++i) {
        auto const row = static_cast<std::int32_t>(i);
        rows.push_back({{"row", of.name_in_json(row)}, {"area", number_json(made.areas[i])}});
        text += of.name(row) + ',' + number_or_nothing(made.areas[i]) + '\n';
    }
    if (a.as_json) {
        what["rows"] = rows;
        return deliver_json(a, what);
    }
    if (output_kind(a.output) == spatial_output::csv) return deliver(a, text);
    deliver_geometry(a, made.rows, rows, carried_from(of));
}

int write_measures(spatial_arguments const& a) {
    check_lines_output(a);
    mode_in_force const mode{a.mode};
    auto const layer = read_layer(a.left, a.reading).value();
    auto const found = spatial_calls::measures(layer.rows()).value();
    json rows = json::array();
    std::string text;
    for (std::size_t i = 0; i < found.data.size(); ++i) {
        auto const& m = found.data[i];
        auto const row = static_cast<std::int32_t>(i);
        if (a.as_json) {
            rows.push_back({{"row", layer.name_in_json(row)},
                            {"area", number_json(m.area)},
                            {"length", number_json(m.length)},
                            {"x", number_json(m.centroid.x)},
                            {"y", number_json(m.centroid.y)},
                            {"valid", m.is_valid}});
        } else {
            text += layer.name(row);
            for (double const v : {m.area, m.length, m.centroid.x, m.centroid.y}) text += ',' + number_or_nothing(v);
            text += m.is_valid ? ",valid\n" : ",invalid\n";
        }
    }
    if (!a.as_json) return deliver(a, text), ok;
    auto out = about(layer, found.how);
    out["rows"] = std::move(rows);
    deliver_json(a, out);
    return ok;
}

int write_distances(spatial_arguments const& a) {
    check_lines_output(a);
    mode_in_force const mode{a.mode};
    spatial_progress bar{"distance", 3, {a.left.file, a.right.file}};
    auto const layers = read_both(a, bar);
    require_as_many(layers);
    auto const found = spatial_calls::distance(layers.left.rows(), layers.right.rows()).value();
    bar.step(fmt::format("{} distances on the {}", found.data.size(), name_of(found.how.selected)));
    json pairs = json::array();
    std::string text;
    for (std::size_t i = 0; i < found.data.size(); ++i) {
        auto const row = static_cast<std::int32_t>(i);
        double const d = found.data[i];
        if (a.as_json)
            pairs.push_back(
                json::array({layers.left.name_in_json(row), layers.right.name_in_json(row), number_json(d)}));
        else text += layers.left.name(row) + ',' + layers.right.name(row) + ',' + number_or_nothing(d) + '\n';
    }
    if (!a.as_json) return deliver(a, text), ok;
    auto out = about(layers, found.how);
    out["pairs"] = std::move(pairs);
    deliver_json(a, out);
    return ok;
}

int write_converted(spatial_arguments const& a) {
    if (a.as_json) throw misuse{std::string{"convert writes geometry: -o FILE.geojson, .wkt or .wkb"}};
    check_geometry_output(a);
    auto const layer = read_layer(a.left, keeping_properties(a).reading).value();
    bool const has_own = std::ranges::any_of(layer.data.properties, [](auto const& p) { return p.size() > 2; });
    std::vector<json> rows;
    for (std::size_t i = 0; i < layer.rows().rows(); ++i)
        rows.push_back(has_own ? json::object() : json{{"row", layer.name_in_json(static_cast<std::int32_t>(i))}});
    deliver_geometry(a, layer.rows(), rows, carried_from(layer));
    return ok;
}

namespace {

template <class Style>
Style style_named(std::string const& option, std::string const& name, std::initializer_list<std::string_view> names) {
    int number = 0;
    std::string all;
    for (auto const known : names) {
        if (name == known) return static_cast<Style>(number);
        all += (number++ == 0 ? "" : ", ") + std::string{known};
    }
    throw misuse{fmt::format("{} '{}': {}", option, name, all)};
}

}  // namespace

int write_buffers(spatial_arguments const& a) {
    if (!a.distance) throw misuse{std::string{"buffer needs --distance D"}};
    if (!std::isfinite(*a.distance)) throw misuse{std::string{"--distance is finite"}};
    if (a.quarter < 1 || a.quarter > 32) throw misuse{fmt::format("--quarter {}: 1 to 32", a.quarter)};
    if (!(a.mitre_limit >= 1 && std::isfinite(a.mitre_limit)))
        throw misuse{std::string{"--mitre-limit is at least 1, and finite"}};
    spatial::buffer_options const how{
        .quarter = a.quarter,
        .caps = style_named<spatial::cap_style>("--caps", a.caps, {"round", "flat", "square"}),
        .joins = style_named<spatial::join_style>("--joins", a.joins, {"round", "mitre", "bevel"}),
        .mitre_limit = a.mitre_limit};
    check_spatial_output(a);
    mode_in_force const mode{a.mode};
    spatial_progress bar{"buffer", 3, {a.left.file}};
    auto const layer = read_layer(a.left, keeping_properties(a).reading).value();
    bar.step(fmt::format("{}: {} rows", a.left.file, layer.rows().rows()));
    auto const made = spatial_calls::buffer_of(layer.rows(), *a.distance, how).value();
    bar.step(fmt::format("{} rows on the {}", made.data.areas.size(), name_of(made.how.selected)));
    deliver_drawn(a, layer, made.data, about(layer, made.how));
    bar.step("written");
    return ok;
}

namespace {

struct named_shape {
    std::string_view name;
    result<spatial::geometries> (*make)(stream_ref on, spatial::geometries const& of);
};
constexpr named_shape all_shapes[] = {
    {"convex_hull", spatial::convex_hull},
    {"envelope", spatial::envelope},
    {"boundary", spatial::boundary},
    {"point_on_surface", spatial::point_on_surface},
    {"make_valid", [](stream_ref on, spatial::geometries const& of) { return spatial::make_valid(on, of); }}};

struct named_simplification {
    std::string_view name;
    result<spatial::geometries> (*make)(stream_ref on, spatial::geometries const& of, double tolerance);
};
constexpr named_simplification all_simplified[] = {{"simplify", spatial::simplify},
                                                   {"simplify_coverage", spatial::simplify_coverage}};

}  // namespace

int write_shapes(spatial_arguments const& a) {
    auto what = a.what;
    std::ranges::replace(what, '-', '_');  // point-on-surface is point_on_surface
    auto const* const found = std::ranges::find(all_shapes, what, &named_shape::name);
    auto const* const simpler = std::ranges::find(all_simplified, what, &named_simplification::name);
    bool const simplifies = simpler != std::end(all_simplified);
    if (simplifies && !a.distance) throw misuse{fmt::format("--what {} needs --distance D", what)};
    if (simplifies && !(*a.distance >= 0)) throw misuse{fmt::format("--distance is at least 0 for --what {}", what)};
    if (!simplifies && a.distance)
        throw misuse{std::string{"--distance goes with --what simplify and --what simplify_coverage"}};
    if (found == std::end(all_shapes) && !simplifies) {
        std::string names{"simplify, simplify_coverage"};
        for (auto const& known : all_shapes) names += ", " + std::string{known.name};
        throw misuse{fmt::format("--what '{}': {}", a.what, names)};
    }
    check_spatial_output(a);
    mode_in_force const mode{a.mode};
    spatial_progress bar{"shape", 3, {a.left.file}};
    auto const layer = read_layer(a.left, keeping_properties(a).reading).value();
    bar.step(fmt::format("{}: {} rows", a.left.file, layer.rows().rows()));
    auto const made = spatial_calls::shape(layer.rows(), [&](stream_ref on, spatial::geometries const& rows) {
                          return simplifies ? simpler->make(on, rows, *a.distance) : found->make(on, rows);
                      }).value();
    bar.step(fmt::format("{} rows on the {}", made.data.areas.size(), name_of(made.how.selected)));
    deliver_drawn(a, layer, made.data, about(layer, made.how));
    bar.step("written");
    return ok;
}

}  // namespace kiln::cli
