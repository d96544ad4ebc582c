// SPDX-License-Identifier: Apache-2.0
#include "spatial/overlays.hpp"

#include "spatial/generators.hpp"
#include "spatial/kept_cells.hpp"
#include "spatial/kept_elements.hpp"
#include "spatial/overlay/arrangement.hpp"
#include "spatial/overlay/overlay.hpp"
#include "spatial/overlay/table.hpp"
#include "spatial/timed_queue.hpp"

#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/overlay.hpp>

#include <cmath>

namespace kiln::spatial_bench {

namespace {

using namespace spatial;

double total_area(stream const& on, geometries const& of) {
    double sum = 0;
    for (double const v : host_values(on, made(area(on, of)))) sum += std::isnan(v) ? 0 : v;
    return sum;
}
bool is_near(double a, double b) { return std::abs(a - b) <= 1e-10 * std::abs(b); }

// Where the time goes: each stage from what the one before left.
void stages(stream const& on, geometries const& left, geometries const& right) {
    device_queue q{on, 0};
    auto const joined = [&] {
        auto const a = made(kept_layer::distinct(q, left)), b = made(kept_layer::distinct(q, right));
        return made(kept_layer::joined(q, a, b));
    };
    double const layers = device_ms(on, [&] { (void)joined(); });
    double const arranged = device_ms(on, [&] { (void)made(arrangement::make(q, joined())); });
    auto const in = made(arrangement::make(q, joined()));
    double const covered = device_ms(on, [&] { (void)made(in.find_covers(q)); });
    std::printf("    layers %.3f ms, arrangement %.3f, both sides of %zu borders %.3f; %zu segments divided again\n",
                layers, arranged - layers, in.borders(), covered, in.found_unrest().moved_again);
    timed_queue by_kernel{on};
    (void)made(overlaid_rows(by_kernel, left, right, overlay_kind::intersection, {}));
    by_kernel.print_sync(24);
}

// The same of the area table.
void table_stages(stream const& on, geometries const& left, geometries const& right, double whole) {
    device_queue q{on, 0};
    auto const layer_of = [&](geometries const& of) {
        auto out = made(kept_layer::distinct(q, of));
        out.orient_rings(q).value();
        return out;
    };
    auto const a = layer_of(left), b = layer_of(right);
    auto const tree = made(kept_elements::make(q, b));
    std::size_t met = 0;
    double const layers = device_ms(on, [&] { (void)layer_of(left), (void)layer_of(right); });
    double const cells = device_ms(on, [&] { (void)made(kept_cells::make_both(q, a, b, table_cells)); });
    double const trees = device_ms(on, [&] { (void)made(kept_elements::make(q, b)); });
    double const crossings = device_ms(on, [&] { met = made(find_crossings_of_moved(q, a, b, tree)).size(); });
    std::printf("    table: layers %.3f ms, cells %.3f, tree %.3f, %zu crossings %.3f, the rest %.3f\n", layers, cells,
                trees, met, crossings, whole - layers - cells - trees - crossings);
    struct fineness {
        double cells_per_edge;
        std::uint32_t split_above;
    };
    std::printf("    in other cells (an edge, divided above): ");
    for (auto const [cells_per_edge, split_above] :
         {fineness{1, 128}, fineness{2, 128}, fineness{4, 64}, fineness{4, 256}, fineness{8, 128}, fineness{8, 256}}) {
        auto how = table_cells;
        how.cells_per_edge = cells_per_edge, how.split_above = split_above;
        std::printf(" %g %u: %.3f", cells_per_edge, split_above,
                    device_ms(on, [&] { (void)made(areas_in_common(q, left, right, how)); }));
    }
    std::printf("\n");
    timed_queue by_kernel{on};
    (void)made(areas_in_common(by_kernel, left, right));
    by_kernel.print_sync(24);
}

struct figures_of_prototype {
    double table, rings, polygons;
};
void measure(stream const& on, std::string const& name, geometries const& a, geometries const& b,
             figures_of_prototype const& before) {
    auto const left = made(a.to_device(on)), right = made(b.to_device(on));
    auto table = made(area_table(on, left, right));
    double common = 0;
    for (double const v : host_values(on, table.area)) common += v;
    auto parts = made(overlay(on, left, right, overlay_kind::intersection));
    double const alone = total_area(on, made(overlay(on, left, right, overlay_kind::difference)).rows);
    bool const right_areas =
        is_near(common, total_area(on, parts.rows)) && is_near(common + alone, total_area(on, left));
    double const table_ms = device_ms(on, [&] { table = made(area_table(on, left, right)); });
    row({name + ", area table", table_ms, "ms", before.table, better::lower, right_areas});
    table_stages(on, left, right, table_ms);
    double const ms = device_ms(on, [&] { parts = made(overlay(on, left, right, overlay_kind::intersection)); });
    row({name + ", intersection, valid polygons", ms, "ms", before.polygons, better::lower, right_areas});
    auto all = made(overlay(on, left, right, overlay_kind::union_));
    double const others = total_area(on, made(overlay(on, right, left, overlay_kind::difference)).rows);
    double const both = common + alone + others;
    double const union_ms = device_ms(on, [&] { all = made(overlay(on, left, right, overlay_kind::union_)); });
    row({name + ", union, valid polygons", union_ms, "ms", 0, better::lower, is_near(total_area(on, all.rows), both)});
    std::printf("    %zu parts, %zu vertices\n", parts.size(), parts.rows.vertices());
    stages(on, left, right);
}

void measure_dissolve(stream const& on, std::string const& name, geometries const& of, std::size_t keys) {
    auto const there = made(of.to_device(on));
    // Neighbours in the file have the same key.
    std::vector<std::int32_t> number(of.rows());
    for (std::size_t i = 0; i < number.size(); ++i) number[i] = static_cast<std::int32_t>(i * keys / number.size());
    auto const key = made(buffer<std::int32_t>::copy_of(number).to_device(on));
    auto out = made(dissolve(on, there, key, keys));
    bool const right = is_near(total_area(on, out), total_area(on, there));
    double const ms = device_ms(on, [&] { out = made(dissolve(on, there, key, keys)); });
    row({name + ", dissolved", ms, "ms", 0, better::lower, right});
    std::printf("    %zu rows, %zu vertices of %zu\n", out.rows(), out.vertices(), of.vertices());
    timed_queue by_kernel{on};
    (void)made(dissolved_rows(by_kernel, there, key, keys));
    by_kernel.print_sync(16);
}

}  // namespace

void overlays(stream const& on, options const& how) {
    auto const before = read_layer(how.data + "/county2010.layer"), after = read_layer(how.data + "/county2016.layer");
    if (before && after) {
        measure(on, "counties 2010 x 2016", *before, *after, {3.3, 8.7, 13});
        measure_dissolve(on, "counties 2016 by 56 keys", *after, 56);
    }
    if (how.quick) return;
    extent const moved{world.x0 + 0.5, world.y0 + 0.5, world.x1, world.y1};
    measure(on, "tilings 100,000 x 96,000", tiling({400, 250, 5, 3, world}), tiling({300, 320, 5, 8, moved}),
            {12, 24.6, 36});
    measure_dissolve(on, "tiling of 10^7 edges by 100 keys", tiling({100, 100, 8, 3, world}), 100);
}

}  // namespace kiln::spatial_bench
