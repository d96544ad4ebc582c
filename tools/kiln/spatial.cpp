// SPDX-License-Identifier: Apache-2.0
#include "misuse.hpp"
#include "spatial_verbs.hpp"

#include <kiln/spatial/validate.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace kiln::cli {

namespace {

// ---- Rings ----

bool has_paths(spatial::geometries const& g) {
    for (std::size_t i = 0; i < g.rows(); ++i)
        if (!g.is_null(i) && g.kind_of(i) != spatial::family::point && g.kind_of(i) != spatial::family::multipoint)
            return true;
    return false;
}
// Rows whose rings are no borders have no matrix.
void require_rings(spatial_layer const& of, spatial_layer const& other) {
    if (!has_paths(other.rows())) return;
    constexpr std::size_t counted = 1000;
    auto const bad = spatial::validate_rings(of.rows(), counted).value();
    if (bad.empty()) return;
    auto const others =
        bad.size() == 1 ? "" : fmt::format(" ({} such rows{})", bad.size(), bad.size() == counted ? " or more" : "");
    throw fail(errc::invalid_argument,
               "{}: {}{}: rings that are no borders have no matrix; 'kiln spatial shape {} --what make_valid -o "
               "MENDED.geojson' mends them",
               place_of_row(of, bad[0].row), bad[0].message, others, of.file);
}
// The call's answer. The library has looked, but names one row and no file.
template <class T>
T with_rings(both_layers const& of, result<T> got) {
    if (!got) {
        require_rings(of.left, of.right);
        require_rings(of.right, of.left);
    }
    return std::move(got).value();
}

// ---- info ----

json box_json(std::optional<spatial::bounding_box> const& b) {
    return b ? json{b->min_x, b->min_y, b->max_x, b->max_y} : json(nullptr);
}

struct layer_facts {
    std::map<std::string, std::size_t> families;
    std::size_t nulls = 0, empties = 0, vertices = 0;
};
layer_facts facts_of(spatial::geometries const& g) {
    layer_facts out;
    out.vertices = g.vertices();
    for (std::size_t i = 0; i < g.rows(); ++i) {
        if (g.is_null(i)) {
            ++out.nulls;
            out.vertices -= g.kind() == spatial::family::point ? 1 : 0;  // a place in the array, and no vertex
            continue;
        }
        ++out.families[std::string{name_of(g.kind_of(i))}];
        out.empties += g.is_empty(i) ? 1 : 0;
        out.vertices -= g.is_empty(i) && g.kind_of(i) == spatial::family::point ? 1 : 0;
    }
    return out;
}

int show_info(spatial_arguments const& a) {
    json list = json::array();
    std::vector<std::vector<std::string>> lines{{"file", "rows", "null", "empty", "vertices", "families", "bounds"}};
    for (auto const& file : a.files) {
        auto const layer = read_layer({file, {}, a.left.layer}, a.reading).value();
        auto const& g = layer.rows();
        auto const facts = facts_of(g);
        auto const box = spatial::cpu::total_bounds(g).value();
        json families = json::object();
        std::string kinds;
        for (auto const& [name, n] : facts.families) {
            families[name] = n;
            kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", n, name);
        }
        list.push_back({{"file", file},
                        {"rows", g.rows()},
                        {"null", facts.nulls},
                        {"empty", facts.empties},
                        {"vertices", facts.vertices},
                        {"bytes", g.bytes()},
                        {"families", std::move(families)},
                        {"bounds", box_json(box)}});
        lines.push_back({file, std::to_string(g.rows()), std::to_string(facts.nulls), std::to_string(facts.empties),
                         std::to_string(facts.vertices), kinds.empty() ? "-" : kinds,
                         box ? fmt::format("{} {} {} {}", number_text(box->min_x), number_text(box->min_y),
                                           number_text(box->max_x), number_text(box->max_y))
                             : "-"});
    }
    if (a.as_json) print_json(list);
    else print(table(lines));
    return ok;
}

// ---- bounds ----

spatial::geometries boxes_as_polygons(std::vector<std::optional<spatial::bounding_box>> const& boxes) {
    spatial::geometry_builder to;
    for (auto const& b : boxes) {
        if (!b) {
            to.null();
            continue;
        }
        to.begin(spatial::family::polygon), to.begin_ring();
        to.vertex(b->min_x, b->min_y), to.vertex(b->max_x, b->min_y), to.vertex(b->max_x, b->max_y);
        to.vertex(b->min_x, b->max_y), to.vertex(b->min_x, b->min_y), to.end();
    }
    return to.finish(spatial::family::polygon).value();
}

int write_bounds(spatial_arguments const& a) {
    check_spatial_output(a);
    mode_in_force const mode{a.mode};
    auto const layer = read_layer(a.left, a.reading).value();
    auto const boxes = spatial_calls::bounds(layer.rows()).value();
    if (a.as_json) {
        json list = json::array();
        for (std::size_t i = 0; i < boxes.data.size(); ++i)
            list.push_back(
                {{"row", layer.name_in_json(static_cast<std::int32_t>(i))}, {"bounds", box_json(boxes.data[i])}});
        auto out = about(layer, boxes.how);
        out["total"] = box_json(spatial::cpu::total_bounds(layer.rows()).value());
        out["rows"] = std::move(list);
        deliver_json(a, out);
    } else if (output_kind(a.output) != spatial_output::csv) {
        std::vector<json> rows;
        for (std::size_t i = 0; i < boxes.data.size(); ++i)
            rows.push_back({{"row", layer.name_in_json(static_cast<std::int32_t>(i))}});
        deliver_geometry(a, boxes_as_polygons(boxes.data), rows);
    } else {
        std::string text;
        for (std::size_t i = 0; i < boxes.data.size(); ++i) {
            auto const& b = boxes.data[i];
            text += layer.name(static_cast<std::int32_t>(i));
            text += b ? fmt::format(",{},{},{},{}\n", number_text(b->min_x), number_text(b->min_y),
                                    number_text(b->max_x), number_text(b->max_y))
                      : ",,,,\n";
        }
        deliver(a, text);
    }
    return ok;
}

// ---- join ----

std::optional<spatial::predicate> predicate_named(std::string_view name) {
    using spatial::predicate;
    for (int i = 0; i <= static_cast<int>(predicate::equals); ++i)
        if (name == name_of(static_cast<predicate>(i))) return static_cast<predicate>(i);
    return {};
}

std::string pairs_text(both_layers const& of, std::vector<spatial::row_pair> const& pairs) {
    std::string out;
    if (of.left.data.ids.empty() && of.right.data.ids.empty()) {
        out.reserve(pairs.size() * 12);
        for (auto const& p : pairs) fmt::format_to(std::back_inserter(out), "{},{}\n", p.left, p.right);
        return out;
    }
    for (auto const& p : pairs) out += of.left.name(p.left) + ',' + of.right.name(p.right) + '\n';
    return out;
}

// The left rows that are in a pair, with the number of their pairs.
struct matched_rows {
    spatial::geometries rows;
    std::vector<json> properties;
};
matched_rows matched_of(spatial_layer const& left, std::vector<spatial::row_pair> const& pairs) {
    matched_rows out;
    std::vector<std::int32_t> chosen;
    for (std::size_t first = 0, last = 0; first < pairs.size(); first = last) {
        while (last < pairs.size() && pairs[last].left == pairs[first].left) ++last;
        chosen.push_back(pairs[first].left);
        out.properties.push_back({{"row", left.name_in_json(pairs[first].left)}, {"matches", last - first}});
    }
    out.rows = left.rows().view(buffer<std::int32_t>::copy_of(chosen)).value();
    return out;
}

int write_join(spatial_arguments const& a) {
    bool const within = a.predicate == "dwithin";
    auto const what = predicate_named(a.predicate);
    if (!within && !what) {
        std::string names;
        for (int i = 0; i <= static_cast<int>(spatial::predicate::equals); ++i)
            names += std::string{name_of(static_cast<spatial::predicate>(i))} + ", ";
        throw misuse{fmt::format("there is no predicate '{}'; there are {}dwithin", a.predicate, names)};
    }
    if (within && !a.distance) throw misuse{std::string{"--predicate dwithin needs --distance D"}};
    if (!within && a.distance) throw misuse{std::string{"--distance goes with --predicate dwithin"}};
    if (within && !(*a.distance >= 0 && std::isfinite(*a.distance)))
        throw misuse{std::string{"--distance is at least 0, and finite"}};
    check_spatial_output(a);
    mode_in_force const mode{a.mode};
    spatial_progress bar{"join", 4, {a.left.file, a.right.file}};
    auto const layers = read_both(a, bar);
    bool const by_contact = within || *what == spatial::predicate::intersects || *what == spatial::predicate::disjoint;
    auto joined = within ? spatial_calls::join_within(layers.left.rows(), layers.right.rows(), *a.distance)
                         : spatial_calls::join(layers.left.rows(), layers.right.rows(), *what);
    auto const found = by_contact ? std::move(joined).value() : with_rings(layers, std::move(joined));
    bar.step(fmt::format("{} pairs on the {}", found.data.size(), name_of(found.how.selected)));
    if (a.as_json) {
        auto out = about(layers, found.how);
        out["predicate"] = a.predicate;
        json pairs = json::array();
        for (auto const& p : found.data)
            pairs.push_back(json::array({layers.left.name_in_json(p.left), layers.right.name_in_json(p.right)}));
        out["pairs"] = std::move(pairs);
        deliver_json(a, out);
    } else if (output_kind(a.output) == spatial_output::csv) {
        deliver(a, pairs_text(layers, found.data));
    } else {
        auto const matched = matched_of(layers.left, found.data);
        deliver_geometry(a, matched.rows, matched.properties);
    }
    bar.step("written");
    return ok;
}

// ---- nearest, relate ----

int write_nearest(spatial_arguments const& a) {
    if (a.ties != "kept" && a.ties != "by-row") throw misuse{fmt::format("--ties '{}': kept or by-row", a.ties)};
    if (a.count < 1 || (a.most && !(*a.most >= 0)))
        throw misuse{std::string{"--count is at least 1 and --most at least 0"}};
    check_lines_output(a);
    mode_in_force const mode{a.mode};
    spatial_progress bar{"nearest", 3, {a.left.file, a.right.file}};
    auto const layers = read_both(a, bar);
    spatial::nearest_options how;
    how.count = static_cast<std::size_t>(a.count);
    if (a.most) how.most = *a.most;
    how.equal = a.ties == "kept" ? spatial::ties::kept : spatial::ties::by_row;
    auto const found = spatial_calls::nearest(layers.left.rows(), layers.right.rows(), how).value();
    bar.step(fmt::format("{} pairs on the {}", found.data.size(), name_of(found.how.selected)));
    if (a.as_json) {
        auto out = about(layers, found.how);
        json pairs = json::array();
        for (auto const& p : found.data)
            pairs.push_back(
                json::array({layers.left.name_in_json(p.left), layers.right.name_in_json(p.right), p.distance}));
        out["pairs"] = std::move(pairs);
        deliver_json(a, out);
        return ok;
    }
    std::string text;
    for (auto const& p : found.data)
        text += layers.left.name(p.left) + ',' + layers.right.name(p.right) + ',' + number_text(p.distance) + '\n';
    deliver(a, text);
    return ok;
}

// Without a matrix where one of the rows is null.
struct related_rows {
    std::int32_t left = 0, right = 0;
    std::optional<spatial::matrix> how;
};

int write_relate(spatial_arguments const& a) {
    if (a.pattern)
        if (auto const good = spatial::matrix{}.matches(*a.pattern); !good) throw misuse{good.error().message()};
    check_lines_output(a);
    mode_in_force const mode{a.mode};
    spatial_progress bar{"relate", 3, {a.left.file, a.right.file}};
    auto const layers = read_both(a, bar);
    std::vector<related_rows> pairs;
    spatial_calls::decided how;
    if (a.row_by_row) {
        require_as_many(layers);
        auto const found = with_rings(layers, spatial_calls::relate(layers.left.rows(), layers.right.rows()));
        how = found.how;
        for (std::size_t i = 0; i < found.data.size(); ++i)
            pairs.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(i), found.data[i]});
    } else {
        auto found = with_rings(layers, spatial_calls::relate_join(layers.left.rows(), layers.right.rows()));
        how = found.how;
        for (auto const& p : found.data) pairs.push_back({p.left, p.right, p.how});
    }
    if (a.pattern) std::erase_if(pairs, [&](auto const& p) { return !p.how || !p.how->matches(*a.pattern).value(); });
    bar.step(fmt::format("{} matrices on the {}", pairs.size(), name_of(how.selected)));
    if (a.as_json) {
        auto out = about(layers, how);
        json list = json::array();
        for (auto const& p : pairs)
            list.push_back(json::array({layers.left.name_in_json(p.left), layers.right.name_in_json(p.right),
                                        p.how ? json(p.how->text()) : json(nullptr)}));
        out["pairs"] = std::move(list);
        deliver_json(a, out);
        return ok;
    }
    std::string text;
    for (auto const& p : pairs)
        text += layers.left.name(p.left) + ',' + layers.right.name(p.right) + ',' + (p.how ? p.how->text() : "") + '\n';
    deliver(a, text);
    return ok;
}

}  // namespace

void add_spatial(CLI::App& root, std::vector<command>& commands) {
    auto* const spatial = add_command(root, "spatial");
    spatial->require_subcommand(1);
    auto const verb = [&](char const* name, int (*run)(spatial_arguments const&)) {
        auto arguments = std::make_shared<spatial_arguments>();
        auto* const app = add_command(*spatial, name, "spatial");
        app->add_option("--format", arguments->reading.format, "of the files");
        app->add_option("--x", arguments->reading.x, "column of a CSV");
        app->add_option("--y", arguments->reading.y, "column of a CSV");
        app->add_option("--wkt", arguments->reading.wkt, "column of a CSV");
        app->add_flag("--json", arguments->as_json, "JSON on stdout");
        commands.push_back({app, [arguments, run] { return run(*arguments); }});
        return std::pair{app, arguments};
    };
    auto const computing = [&](char const* name, int (*run)(spatial_arguments const&)) {
        auto const [app, arguments] = verb(name, run);
        app->add_option("-o,--output", arguments->output, "file to write");
        app->add_option("--mode", arguments->mode, "auto, cpu or gpu");
        return std::pair{app, arguments};
    };
    auto const of_two = [&](char const* name, int (*run)(spatial_arguments const&)) {
        auto const [app, arguments] = computing(name, run);
        app->add_option("--left", arguments->left.file, "layer")->required();
        app->add_option("--right", arguments->right.file, "layer")->required();
        app->add_option("--left-id", arguments->left.id, "column or property");
        app->add_option("--right-id", arguments->right.id, "column or property");
        app->add_option("--left-layer", arguments->left.layer, "of a file with several");
        app->add_option("--right-layer", arguments->right.layer, "of a file with several");
        return std::pair{app, arguments};
    };
    auto const of_one = [&](char const* name, int (*run)(spatial_arguments const&)) {
        auto const [app, arguments] = computing(name, run);
        app->add_option("FILE", arguments->left.file, "layer")->required();
        app->add_option("--id", arguments->left.id, "column or property");
        app->add_option("--layer", arguments->left.layer, "of a file with several");
        return std::pair{app, arguments};
    };
    auto const [info, info_of] = verb("info", show_info);
    info->add_option("FILE", info_of->files, "layers")->required();
    info->add_option("--layer", info_of->left.layer, "of a file with several");
    (void)of_one("bounds", write_bounds);
    auto const [join, join_of] = of_two("join", write_join);
    join->add_option("-p,--predicate", join_of->predicate, "which pairs");
    join->add_option("-d,--distance", join_of->distance, "of dwithin");
    auto const [nearest, nearest_of] = of_two("nearest", write_nearest);
    nearest->add_option("-k,--count", nearest_of->count, "how many");
    nearest->add_option("--most", nearest_of->most, "distance");
    nearest->add_option("--ties", nearest_of->ties, "kept or by-row");
    auto const [relate, relate_of] = of_two("relate", write_relate);
    // By a function: the parser takes an empty text for a pattern that was not given.
    relate->add_option_function<std::string>(
        "--pattern", [arguments = relate_of](std::string const& text) { arguments->pattern = text; }, "of the matrix");
    relate->add_flag("--rows", relate_of->row_by_row, "row by row");
    auto const [overlay, overlay_of] = of_two("overlay", write_overlay);
    overlay->add_option("--how", overlay_of->how, "what of the two");
    overlay->add_option("--grid", overlay_of->grid, "step of coordinates");
    overlay->add_option("--memory-limit", overlay_of->memory_limit, "size");
    overlay->add_flag("--rows", overlay_of->row_by_row, "row by row");
    auto const [dissolve, dissolve_of] = computing("dissolve", write_dissolve);
    dissolve->add_option("FILE", dissolve_of->left.file, "layer")->required();
    dissolve->add_option("--key,--id", dissolve_of->left.id, "column or property");
    dissolve->add_option("--layer", dissolve_of->left.layer, "of a file with several");
    dissolve->add_option("--memory-limit", dissolve_of->memory_limit, "size");
    (void)of_one("measure", write_measures);
    (void)of_two("distance", write_distances);
    auto const [buffers, buffers_of] = of_one("buffer", write_buffers);
    buffers->add_option("-d,--distance", buffers_of->distance, "how far");
    buffers->add_option("--quarter", buffers_of->quarter, "sides of a quarter of a circle");
    buffers->add_option("--caps", buffers_of->caps, "of lines");
    buffers->add_option("--joins", buffers_of->joins, "outside of corners");
    buffers->add_option("--mitre-limit", buffers_of->mitre_limit, "in distances");
    auto const [shapes, shapes_of] = of_one("shape", write_shapes);
    shapes->add_option("--what", shapes_of->what, "which shape")->required();
    shapes->add_option("-d,--distance", shapes_of->distance, "of simplify and simplify_coverage");
    (void)of_two("clip", write_clipped);
    auto const [convert, convert_of] = verb("convert", write_converted);
    convert->add_option("FILE", convert_of->left.file, "layer")->required();
    convert->add_option("--id", convert_of->left.id, "column or property");
    convert->add_option("--layer", convert_of->left.layer, "of a file with several");
    convert->add_option("-o,--output", convert_of->output, "file to write");
}

}  // namespace kiln::cli
