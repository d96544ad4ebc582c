// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "command.hpp"
#include "misuse.hpp"
#include "spatial_calls.hpp"
#include "spatial_files.hpp"

#include <kiln/spatial/validate.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

namespace kiln::cli {

namespace {

struct spatial_arguments {
    std::vector<std::string> files;
    spatial_input left, right;
    spatial_reading reading;
    std::optional<std::string> pattern;
    std::string predicate = "intersects", mode = "auto", output, ties = "kept", how = "intersection";
    std::optional<double> distance, most;
    std::int64_t count = 1;
    bool as_json = false, row_by_row = false;
};

class mode_in_force {
public:
    explicit mode_in_force(std::string const& name) {
        auto const mode = parse_execution_mode(name);
        if (!mode) throw misuse{mode.error().message()};
        if (*mode == execution_mode::gpu) {
            // Said before a long file is read, with what is missing.
            scoped_execution_mode const asked{*mode};
            if (auto const gpu = usable_gpu(); !gpu)
                throw misuse{fmt::format("--mode gpu: {}; mode auto would run it on the CPU", gpu.error().message())};
        }
        if (name != "auto") mode_.emplace(*mode);  // auto: as KILN_EXECUTION_MODE says
    }

private:
    std::optional<scoped_execution_mode> mode_;
};

void deliver(spatial_arguments const& a, std::string_view text) {
    write_text_output(a.output.empty() ? "-" : a.output, base::as_bytes(text)).value();
}
void deliver_json(spatial_arguments const& a, json const& data) {
    if (a.output.empty()) return print_json(data);
    deliver(a, base::json_text(data, 2) + "\n");
}
void check_spatial_output(spatial_arguments const& a) {
    if (!a.output.empty()) check_text_output(a.output).value();
}
// Of what has no geometry to write.
void check_lines_output(spatial_arguments const& a) {
    if (!a.as_json && output_kind(a.output) != spatial_output::csv)
        throw misuse{
            fmt::format("-o {}: there is no geometry in the answer; name a .csv, or ask for --json", a.output)};
    check_spatial_output(a);
}

struct both_layers {
    spatial_layer left, right;
};
both_layers read_both(spatial_arguments const& a, spatial_progress& bar) {
    if (a.left.file == "-" && a.right.file == "-")
        throw misuse{std::string{"only one of --left and --right can be standard input"}};
    auto left = read_layer(a.left, a.reading).value();
    bar.step(fmt::format("{}: {} rows", a.left.file, left.rows().rows()));
    auto right = read_layer(a.right, a.reading).value();
    bar.step(fmt::format("{}: {} rows", a.right.file, right.rows().rows()));
    return {std::move(left), std::move(right)};
}

bool has_paths(spatial::geometries const& g) {
    for (std::size_t i = 0; i < g.rows(); ++i)
        if (!g.is_null(i) && g.kind_of(i) != spatial::family::point && g.kind_of(i) != spatial::family::multipoint)
            return true;
    return false;
}
// Rows whose rings are no borders have no matrix.
void require_rings(spatial_layer const& of, spatial_layer const& other) {
    if (!has_paths(other.rows())) return;
    constexpr std::size_t shown = 3, counted = 1000;
    auto const bad = spatial::validate_rings(of.rows(), counted).value();
    if (bad.empty()) return;
    std::string rows;
    for (std::size_t i = 0; i < std::min(bad.size(), shown); ++i)
        rows += fmt::format("{}{}", i == 0 ? "" : "; ", bad[i].message);
    throw fail(errc::invalid_argument,
               "{}: {}{} of its areas have rings that are no borders, and no matrix: {}{}. Mend them first: 'kiln "
               "spatial shape {} --what make_valid -o MENDED'",
               of.file, bad.size(), bad.size() == counted ? " or more" : "", rows, bad.size() > shown ? "; ..." : "",
               of.file);
}
// The call's answer. On the host the library has looked, but names one row and no file; on a device nobody has.
template <class T>
T with_rings(both_layers const& of, result<T> got) {
    if (!got || got->how.selected == place::gpu) {
        require_rings(of.left, of.right);
        require_rings(of.right, of.left);
    }
    return std::move(got).value();
}

json about(both_layers const& of, spatial_calls::decided const& how) {
    return json{{"left", of.left.file},
                {"right", of.right.file},
                {"left_rows", of.left.rows().rows()},
                {"right_rows", of.right.rows().rows()},
                {"where", name_of(how.selected)},
                {"reason", how.reason}};
}

std::string number_text(double v) {
    char digits[32];
    auto const [end, problem] = std::to_chars(digits, digits + sizeof(digits), v);
    return {digits, end};
}

// ---- info ----

json box_json(std::optional<spatial::bounding_box> const& b) {
    return b ? json{b->min_x, b->min_y, b->max_x, b->max_y} : json(nullptr);
}

struct layer_facts {
    std::map<std::string, std::size_t> families;
    std::size_t nulls = 0, empties = 0;
};
layer_facts facts_of(spatial::geometries const& g) {
    layer_facts out;
    for (std::size_t i = 0; i < g.rows(); ++i) {
        if (g.is_null(i)) {
            ++out.nulls;
            continue;
        }
        ++out.families[std::string{name_of(g.kind_of(i))}];
        out.empties += g.is_empty(i) ? 1 : 0;
    }
    return out;
}

int show_info(spatial_arguments const& a) {
    json list = json::array();
    std::vector<std::vector<std::string>> lines{{"file", "rows", "null", "empty", "vertices", "families", "bounds"}};
    for (auto const& file : a.files) {
        auto const layer = read_layer({file, {}}, a.reading).value();
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
                        {"vertices", g.vertices()},
                        {"bytes", g.bytes()},
                        {"families", std::move(families)},
                        {"bounds", box_json(box)}});
        lines.push_back({file, std::to_string(g.rows()), std::to_string(facts.nulls), std::to_string(facts.empties),
                         std::to_string(g.vertices()), kinds.empty() ? "-" : kinds,
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
std::vector<std::string> properties_of(std::vector<json> const& rows) {
    std::vector<std::string> out;
    for (auto const& r : rows) out.push_back(base::json_text(r));
    return out;
}

int write_bounds(spatial_arguments const& a) {
    check_spatial_output(a);
    mode_in_force const mode{a.mode};
    auto const layer = read_layer(a.left, a.reading).value();
    auto const boxes = spatial_calls::bounds(layer.rows()).value();
    auto const kind = output_kind(a.output);
    if (a.as_json) {
        json list = json::array();
        for (std::size_t i = 0; i < boxes.data.size(); ++i)
            list.push_back(
                {{"row", layer.name_in_json(static_cast<std::int32_t>(i))}, {"bounds", box_json(boxes.data[i])}});
        deliver_json(a, json{{"file", a.left.file},
                             {"where", name_of(boxes.how.selected)},
                             {"total", box_json(spatial::cpu::total_bounds(layer.rows()).value())},
                             {"rows", std::move(list)}});
    } else if (kind == spatial_output::geojson) {
        std::vector<json> rows;
        for (std::size_t i = 0; i < boxes.data.size(); ++i)
            rows.push_back({{"row", layer.name_in_json(static_cast<std::int32_t>(i))}});
        deliver(a, spatial::to_geojson(boxes_as_polygons(boxes.data), properties_of(rows)).value());
    } else if (kind == spatial_output::wkb) {
        deliver(a, spatial::to_wkb_lines(boxes_as_polygons(boxes.data)).value());
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
    auto const kind = output_kind(a.output);
    if (a.as_json) {
        auto out = about(layers, found.how);
        out["predicate"] = a.predicate;
        json pairs = json::array();
        for (auto const& p : found.data)
            pairs.push_back(json::array({layers.left.name_in_json(p.left), layers.right.name_in_json(p.right)}));
        out["pairs"] = std::move(pairs);
        deliver_json(a, out);
    } else if (kind == spatial_output::csv) {
        deliver(a, pairs_text(layers, found.data));
    } else {
        auto const matched = matched_of(layers.left, found.data);
        deliver(a, kind == spatial_output::wkb
                       ? spatial::to_wkb_lines(matched.rows).value()
                       : spatial::to_geojson(matched.rows, properties_of(matched.properties)).value());
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

int write_relate(spatial_arguments const& a) {
    if (a.pattern)
        if (auto const good = spatial::matrix{}.matches(*a.pattern); !good) throw misuse{good.error().message()};
    check_lines_output(a);
    mode_in_force const mode{a.mode};
    spatial_progress bar{"relate", 3, {a.left.file, a.right.file}};
    auto const layers = read_both(a, bar);
    std::vector<spatial::related_pair> pairs;
    spatial_calls::decided how;
    if (a.row_by_row) {
        if (layers.left.rows().rows() != layers.right.rows().rows())
            throw fail(errc::invalid_argument, "--rows: {} has {} rows, {} has {}", a.left.file,
                       layers.left.rows().rows(), a.right.file, layers.right.rows().rows());
        auto const found = with_rings(layers, spatial_calls::relate(layers.left.rows(), layers.right.rows()));
        how = found.how;
        for (std::size_t i = 0; i < found.data.size(); ++i)
            if (found.data[i])
                pairs.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(i), *found.data[i]});
    } else {
        auto found = with_rings(layers, spatial_calls::relate_join(layers.left.rows(), layers.right.rows()));
        how = found.how;
        pairs = std::move(found.data);
    }
    if (a.pattern) std::erase_if(pairs, [&](auto const& p) { return !p.how.matches(*a.pattern).value(); });
    bar.step(fmt::format("{} matrices on the {}", pairs.size(), name_of(how.selected)));
    if (a.as_json) {
        auto out = about(layers, how);
        json list = json::array();
        for (auto const& p : pairs)
            list.push_back(
                json::array({layers.left.name_in_json(p.left), layers.right.name_in_json(p.right), p.how.text()}));
        out["pairs"] = std::move(list);
        deliver_json(a, out);
        return ok;
    }
    std::string text;
    for (auto const& p : pairs)
        text += layers.left.name(p.left) + ',' + layers.right.name(p.right) + ',' + p.how.text() + '\n';
    deliver(a, text);
    return ok;
}

// ---- overlay, dissolve ----

// Rows that were made: as lines with their areas, or, where the file's name says so, as geometry.
void deliver_rows(spatial_arguments const& a, spatial_calls::drawn_rows const& made,
                  std::vector<json> const& about_rows, std::vector<std::string> const& names) {
    auto const kind = output_kind(a.output);
    if (kind == spatial_output::geojson) {
        auto rows = about_rows;
        for (std::size_t i = 0; i < rows.size(); ++i) rows[i]["area"] = made.areas[i];
        return deliver(a, spatial::to_geojson(made.rows, properties_of(rows)).value());
    }
    if (kind == spatial_output::wkb) return deliver(a, spatial::to_wkb_lines(made.rows).value());
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) text += names[i] + ',' + number_text(made.areas[i]) + '\n';
    deliver(a, text);
}

int write_overlay(spatial_arguments const& a) {
    auto const what = spatial::overlay_kind_of(a.how);
    if (!what)
        throw misuse{fmt::format(
            "--how '{}': intersection, union, difference, symmetric_difference, identity or update", a.how)};
    check_spatial_output(a);
    mode_in_force const mode{a.mode};
    spatial_progress bar{"overlay", 4, {a.left.file, a.right.file}};
    auto const layers = read_both(a, bar);
    auto const made = spatial_calls::overlay(layers.left.rows(), layers.right.rows(), *what).value();
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
        deliver_rows(a, made.data, rows, names);
    }
    bar.step("written");
    return ok;
}

int write_dissolve(spatial_arguments const& a) {
    check_spatial_output(a);
    mode_in_force const mode{a.mode};
    spatial_progress bar{"dissolve", 3, {a.left.file}};
    auto const layer = read_layer(a.left, a.reading).value();
    bar.step(fmt::format("{}: {} rows", a.left.file, layer.rows().rows()));
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
    auto const made = spatial_calls::dissolve(layer.rows(), keys, values.size()).value();
    bar.step(fmt::format("{} rows on the {}", values.size(), name_of(made.how.selected)));
    std::vector<json> rows;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < values.size(); ++i) {
        rows.push_back({{"key", values[i]}, {"rows", sizes[i]}});
        names.push_back(csv_field(values[i]) + ',' + std::to_string(sizes[i]));
    }
    if (a.as_json) {
        for (std::size_t i = 0; i < rows.size(); ++i) rows[i]["area"] = made.data.areas[i];
        deliver_json(a, json{{"file", a.left.file},
                             {"where", name_of(made.how.selected)},
                             {"reason", made.how.reason},
                             {"rows", rows}});
    } else {
        deliver_rows(a, made.data, rows, names);
    }
    bar.step("written");
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
        return std::pair{app, arguments};
    };
    auto const [info, info_of] = verb("info", show_info);
    info->add_option("FILE", info_of->files, "layers")->required();
    auto const [bounds, bounds_of] = computing("bounds", write_bounds);
    bounds->add_option("FILE", bounds_of->left.file, "layer")->required();
    bounds->add_option("--id", bounds_of->left.id, "column or property");
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
    auto const [dissolve, dissolve_of] = computing("dissolve", write_dissolve);
    dissolve->add_option("FILE", dissolve_of->left.file, "layer")->required();
    dissolve->add_option("--key,--id", dissolve_of->left.id, "column or property");
}

}  // namespace kiln::cli
