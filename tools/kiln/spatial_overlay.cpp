// SPDX-License-Identifier: Apache-2.0
// kiln spatial overlay, dissolve, clip
#include "misuse.hpp"
#include "spatial_verbs.hpp"

#include <cmath>
#include <map>

namespace kiln::cli {

namespace {

// Rows that were made: as lines with their areas, or, where the file's name says so, as geometry.
void deliver_rows(spatial_arguments const& a, spatial_calls::drawn_rows const& made,
                  std::vector<json> const& about_rows, std::vector<std::string> const& names, std::string const& crs) {
    if (output_kind(a.output) == spatial_output::csv) {
        std::string text;
        for (std::size_t i = 0; i < names.size(); ++i) text += names[i] + ',' + number_or_nothing(made.areas[i]) + '\n';
        return deliver(a, text);
    }
    auto rows = about_rows;
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i]["area"] = made.areas[i];
    deliver_geometry(a, made.rows, rows, {.crs = crs});
}

}  // namespace

int write_overlay(spatial_arguments const& a) {
    auto const what = spatial::overlay_kind_of(a.how);
    if (!what)
        throw misuse{fmt::format(
            "--how '{}': intersection, union, difference, symmetric_difference, identity or update", a.how)};
    if (!(a.grid >= 0 && std::isfinite(a.grid))) throw misuse{std::string{"--grid is a step above 0, and finite"}};
    if (a.row_by_row && (*what == spatial::overlay_kind::identity || *what == spatial::overlay_kind::update))
        throw misuse{fmt::format("--how {} is of layers, not of --rows", a.how)};
    spatial::overlay_options const options{.grid = a.grid, .most_bytes = memory_limit_of(a)};
    if (a.row_by_row && options.most_bytes != 0)
        throw misuse{std::string{"--memory-limit is of whole layers, not of --rows"}};
    check_spatial_output(a);
    mode_in_force const mode{a.mode};
    spatial_progress bar{"overlay", 4, {a.left.file, a.right.file}};
    auto const layers = read_both(a, bar);
    if (a.row_by_row) require_as_many(layers);
    require_areas(layers.left, "overlay"), require_areas(layers.right, "overlay");
    auto const made =
        (a.row_by_row ? spatial_calls::overlay_row_by_row(layers.left.rows(), layers.right.rows(), *what, options)
                      : spatial_calls::overlay(layers.left.rows(), layers.right.rows(), *what, options))
            .value();
    bar.step(fmt::format("{} rows on the {}", made.data.left.size(), name_of(made.how.selected)));
    std::vector<json> rows;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < made.data.left.size(); ++i) {
        auto const l = made.data.left[i], r = made.data.right[i];
        rows.push_back({{"left", l < 0 ? json(nullptr) : layers.left.name_in_json(l)},
                        {"right", r < 0 ? json(nullptr) : layers.right.name_in_json(r)}});
        names.push_back((l < 0 ? "" : layers.left.name(l)) + ',' + (r < 0 ? "" : layers.right.name(r)));
    }
    if (a.as_json) {
        auto out = about(layers, made.how);
        out["how"] = a.how;
        for (std::size_t i = 0; i < rows.size(); ++i) rows[i]["area"] = made.data.areas[i];
        out["rows"] = rows;
        deliver_json(a, out);
    } else {
        deliver_rows(a, made.data, rows, names, layers.left.data.crs);
    }
    bar.step("written");
    return ok;
}

int write_dissolve(spatial_arguments const& a) {
    spatial::memory_options const options{.most_bytes = memory_limit_of(a)};
    check_spatial_output(a);
    mode_in_force const mode{a.mode};
    spatial_progress bar{"dissolve", 3, {a.left.file}};
    auto const layer = read_layer(a.left, a.reading).value();
    bar.step(fmt::format("{}: {} rows", a.left.file, layer.rows().rows()));
    require_areas(layer, "dissolve");
    // Keys in the order in which they come; without an id, all rows are of one.
    std::map<std::string, std::int32_t> numbers;
    std::vector<std::string> values;
    std::vector<std::int32_t> keys;
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < layer.rows().rows(); ++i) {
        auto const value = layer.data.ids.empty() ? std::string{"all"} : layer.data.ids[i];
        auto const [found, is_new] = numbers.try_emplace(value, static_cast<std::int32_t>(values.size()));
        if (is_new) values.push_back(value), sizes.push_back(0);
        keys.push_back(found->second);
        ++sizes[static_cast<std::size_t>(found->second)];
    }
    auto const made = spatial_calls::dissolve(layer.rows(), keys, values.size(), options).value();
    bar.step(fmt::format("{} rows on the {}", values.size(), name_of(made.how.selected)));
    std::vector<json> rows;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < values.size(); ++i) {
        rows.push_back(
            {{"key", layer.data.ids.empty() ? json(values[i]) : layer.id_in_json(values[i])}, {"rows", sizes[i]}});
        names.push_back(csv_field(values[i]) + ',' + std::to_string(sizes[i]));
    }
    if (a.as_json) {
        for (std::size_t i = 0; i < rows.size(); ++i) rows[i]["area"] = made.data.areas[i];
        auto out = about(layer, made.how);
        out["rows"] = rows;
        deliver_json(a, out);
    } else {
        deliver_rows(a, made.data, rows, names, layer.data.crs);
    }
    bar.step("written");
    return ok;
}

int write_clipped(spatial_arguments const& a) {
    check_spatial_output(a);
    mode_in_force const mode{a.mode};
    spatial_progress bar{"clip", 4, {a.left.file, a.right.file}};
    auto const layers = read_both(keeping_properties(a), bar);
    require_areas(layers.right, "the right side of clip");
    auto const made = spatial_calls::clip(layers.left.rows(), layers.right.rows()).value();
    bar.step(fmt::format("{} rows on the {}", made.data.areas.size(), name_of(made.how.selected)));
    deliver_drawn(a, layers.left, made.data, about(layers, made.how));
    bar.step("written");
    return ok;
}

}  // namespace kiln::cli
