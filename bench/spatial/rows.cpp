// SPDX-License-Identifier: Apache-2.0
#include "spatial/rows.hpp"

#include "cuda/context.hpp"
#include "spatial/generators.hpp"
#include "spatial/overlay/overlay.hpp"
#include "spatial/timed_queue.hpp"
#include "spatial/wkb_rows.hpp"

#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/overlay.hpp>
#include <kiln/spatial/shapes.hpp>
#include <kiln/spatial/wkb.hpp>

#include <cmath>

namespace kiln::spatial_bench {

using namespace spatial;

namespace {

// GB/s, read and written together, of a copy from device memory to device memory.
double copy_speed(stream const& on) {
    auto const where = made(cuda::context::of(0));
    device_queue q{on, 0};
    std::size_t const words = std::size_t{1} << 28;
    auto const from = made(q.filled<std::uint32_t>(words, 1)), to = made(q.room<std::uint32_t>(words));
    double const ms = device_ms(on, [&] {
        (void)where->api().memcpy_dtod_async(reinterpret_cast<CUdeviceptr>(to.data()),
                                             reinterpret_cast<CUdeviceptr>(from.data()), 4 * words, on.get());
    });
    return 8.0 * static_cast<double>(words) / ms * 1e-6;
}

// Share of the speed of a copy of as many bytes, each read once and written once.
void measure_bytes(stream const& on, std::string const& name, geometries const& of, double copied, double wanted) {
    auto const there = made(of.to_device(on));
    auto bytes = made(to_wkb_sync(on, there));
    auto back = made(from_wkb_sync(on, bytes));
    auto const size = static_cast<double>(bytes.values().size());
    auto const again = made(to_wkb_sync(on, back));
    bool const same = host_values(on, again.values()) == host_values(on, bytes.values());
    auto const share = [&](double ms) { return 100 * 2 * size / ms * 1e-6 / copied; };
    double const in_ms = device_ms(on, [&] { back = made(from_wkb_sync(on, bytes)); });
    double const out_ms = device_ms(on, [&] { bytes = made(to_wkb_sync(on, there)); });
    row({name + ", from WKB", share(in_ms), "% copy", wanted, better::higher, same});
    row({name + ", to WKB", share(out_ms), "% copy", wanted, better::higher, same});
    std::printf("    %.1f MB, %.3f and %.3f ms\n", size * 1e-6, in_ms, out_ms);
    timed_queue by_kernel{on};
    (void)made(read_wkb(by_kernel, made(write_wkb(by_kernel, there))));
    by_kernel.print_sync(8);
}

void measure_areas(stream const& on, std::size_t n) {
    auto const a = made(houses(n, 5, 0).to_device(on)), b = made(houses(n, 5'000'011, 8).to_device(on));
    auto common = made(intersection_area(on, a, b));
    double const drawn_area = [&] {
        double sum = 0;
        auto const drawn = made(overlay_row_by_row(on, a, b, overlay_kind::intersection));
        for (double const v : host_values(on, made(area(on, drawn)))) sum += v;
        return sum;
    }();
    double sum = 0;
    for (double const v : host_values(on, common)) sum += v;
    double const ms = device_ms(on, [&] { common = made(intersection_area(on, a, b)); });
    row({"areas of pairs of houses", static_cast<double>(n) / ms * 1e-3, "Mpair/s", 917, better::higher,
         std::abs(sum - drawn_area) <= 1e-9 * drawn_area});
    timed_queue by_kernel{on};
    (void)made(areas_in_common_row_by_row(by_kernel, a, b));
    by_kernel.print_sync(8);
}

void measure_circles(stream const& on, std::size_t n) {
    auto const points = made(uniform_points(n, world).to_device(on));
    auto out = made(point_buffer(on, points, 0.1));
    double const ms = device_ms(on, [&] { out = made(point_buffer(on, points, 0.1)); });
    row({"circles around " + std::to_string(n) + " points", ms, "ms", 0, better::lower, out.rows() == n});
}

void measure_growth(stream const& on) {
    double first = 0;
    for (int const times : {1, 2, 4, 8}) {
        extent const moved{world.x0 + 0.5, world.y0 + 0.5, world.x1, world.y1};
        auto const left = made(tiling({100 * times, 125, 5, 3, world}).to_device(on));
        auto const right = made(tiling({75 * times, 160, 5, 8, moved}).to_device(on));
        auto parts = made(overlay(on, left, right, overlay_kind::intersection));
        double const ms = device_ms(on, [&] { parts = made(overlay(on, left, right, overlay_kind::intersection)); });
        double const edge = ms * 1e6 / static_cast<double>(left.vertices() + right.vertices());
        if (times == 1) first = edge;
        row({"growth: overlay of " + std::to_string(left.vertices() + right.vertices()) + " vertices", edge,
             "ns/vertex", 0, better::lower, edge <= 1.3 * first});
    }
}

}  // namespace

void rows(stream const& on, options const& how) {
    std::size_t const n = how.quick ? 100'000 : 10'000'000;
    double const copied = copy_speed(on);
    row({"copy, read and written", copied, "GB/s", 0});
    measure_bytes(on, std::to_string(n) + " points", uniform_points(n, world), copied, 60);
    measure_bytes(on, "tiling of 10,000 x 128 edges", tiling({100, 100, 5}), copied, 40);
    if (!how.quick) measure_bytes(on, "tiling of 10,000 x 1,024 edges", tiling({100, 100, 8}), copied, 40);
    measure_areas(on, how.quick ? 100'000 : 1'000'000);
    measure_circles(on, how.quick ? 100'000 : 1'000'000);
    if (!how.quick) measure_growth(on);
}

}  // namespace kiln::spatial_bench
