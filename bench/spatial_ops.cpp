// SPDX-License-Identifier: Apache-2.0
// The spatial pack's operations that bench_spatial does not time: distances, rows within one, several nearest rows, measures, lists
// in chunks; and the first join of a fresh process, with kernels shipped, on disk and nowhere. All on one GPU, from geometries
// there to results there. Times are medians of five after two; a result's size is printed beside its time.
#include "base/clock.hpp"
#include "engine/pack.hpp"

#include <kiln/engine.hpp>
#include <kiln/plan.hpp>
#include <kiln/runtime/memory.hpp>
#include <kiln/runtime/rewrite.hpp>
#include <kiln/spatial/join.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/nearest.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <unistd.h>

namespace {

using namespace kiln;
using namespace kiln::spatial;

class draw {
public:
    explicit draw(unsigned seed) : engine_{seed} {}
    double operator()() { return static_cast<double>(engine_()) * 0x1p-64; }

private:
    std::mt19937_64 engine_;
};

geometries points(std::size_t n, unsigned seed) {
    draw next{seed};
    auto x = buffer<double>::on_host(n), y = buffer<double>::on_host(n);
    for (std::size_t i = 0; i < n; ++i) x.data()[i] = next(), y.data()[i] = next();
    return geometries::points(x, y).value();
}
// Areas of so many vertices around random places.
geometries stars(std::size_t n, int vertices, double radius, unsigned seed) {
    draw next{seed};
    geometry_builder to;
    for (std::size_t i = 0; i < n; ++i) {
        double const x = next(), y = next();
        to.begin(family::polygon), to.begin_ring();
        double first_x = 0, first_y = 0;
        for (int k = 0; k < vertices; ++k) {
            double const angle = k * 6.283185307179586 / vertices, r = radius * (0.6 + 0.4 * next());
            double const px = x + r * std::cos(angle), py = y + r * std::sin(angle);
            if (k == 0) first_x = px, first_y = py;
            to.vertex(px, py);
        }
        to.vertex(first_x, first_y), to.end();
    }
    return to.finish().value();
}
geometries rectangles(std::size_t n, double side, unsigned seed) {
    draw next{seed};
    geometry_builder to;
    for (std::size_t i = 0; i < n; ++i) {
        double const x = next(), y = next(), w = side * (0.5 + next()), h = side * (0.5 + next());
        to.begin(family::polygon), to.begin_ring();
        to.vertex(x, y), to.vertex(x + w, y), to.vertex(x + w, y + h), to.vertex(x, y + h), to.vertex(x, y), to.end();
    }
    return to.finish().value();
}
geometries segments(std::size_t n, double length, unsigned seed) {
    draw next{seed};
    geometry_builder to;
    for (std::size_t i = 0; i < n; ++i) {
        double const x = next(), y = next(), angle = 6.28 * next();
        to.begin(family::linestring), to.vertex(x, y);
        to.vertex(x + length * std::cos(angle), y + length * std::sin(angle)), to.end();
    }
    return to.finish().value();
}

template <class Work>
double median_ms(stream const& on, Work const& work) {
    std::vector<double> times;
    for (int i = 0; i < 7; ++i) {
        base::stopwatch const watch;
        work();
        on.wait_sync().value();
        if (i >= 2) times.push_back(watch.ms());
    }
    std::nth_element(times.begin(), times.begin() + 2, times.end());
    return times[2];
}
void row(char const* name, double ms, std::size_t size, double items) {
    std::printf("%-58s %10.3f ms %12zu results %10.1f M/s\n", name, ms, size, items / ms / 1000);
    std::fflush(stdout);
}

void operations(stream const& on) {
    auto const there = [&](geometries const& g) { return g.to_device(on).value(); };
    auto const million = there(points(1 << 20, 1)), others = there(points(1 << 20, 2));
    auto const lines = there(segments(1 << 20, 1e-3, 3)), areas = there(stars(100'000, 32, 2e-3, 4)),
               more_areas = there(stars(100'000, 32, 2e-3, 5)), large = there(stars(200, 10'000, 0.05, 6));
    std::size_t n = 0;
    auto const timed = [&](char const* name, double items, auto const& call) {
        double const ms = median_ms(on, call);
        row(name, ms, n, items);
    };
    timed("distance, row by row, points 2^20", 1 << 20, [&] { n = distance(on, million, others).value().size(); });
    timed("distance, row by row, areas 100,000 x 33 vertices", 1e5,
          [&] { n = distance(on, areas, more_areas).value().size(); });
    timed("distance, row by row, areas 200 x 10,001 vertices", 200,
          [&] { n = distance(on, large, large).value().size(); });
    timed("within 10^-3, points 2^20 with 2^20", 1 << 20,
          [&] { n = join_within(on, million, others, 1e-3).value().size(); });
    timed("within 10^-3, points 2^20 with lines 2^20", 1 << 20,
          [&] { n = join_within(on, million, lines, 1e-3).value().size(); });
    timed("within 10^-3, areas 100,000 with 100,000", 1e5,
          [&] { n = join_within(on, areas, more_areas, 1e-3).value().size(); });
    timed("within 10^-3, points 2^20 with areas 200 x 10,001", 1 << 20,
          [&] { n = join_within(on, million, large, 1e-3).value().size(); });
    for (std::size_t const k : {4U, 16U}) {
        nearest_options const how{.count = k, .equal = ties::by_row};
        timed(k == 4 ? "nearest 4 of 2^20 points, 2^20 points" : "nearest 16 of 2^20 points, 2^20 points", 1 << 20,
              [&] { n = nearest(on, million, others, how).value().size(); });
    }
    timed("nearest 4 of 2^20 lines, 2^20 points, ties kept", 1 << 20,
          [&] { n = nearest(on, million, lines, {.count = 4}).value().size(); });
    auto const vertices = static_cast<double>(areas.vertices());
    timed("area, 100,000 x 33 vertices (vertices/s)", vertices, [&] { n = area(on, areas).value().size(); });
    timed("length, the same", vertices, [&] { n = length(on, areas).value().size(); });
    timed("centroid, the same", vertices, [&] { n = centroid(on, areas).value().x.size(); });
    timed("bounds, the same", vertices, [&] { n = bounds(on, areas).value().size(); });
    timed("area, 200 x 10,001 vertices (vertices/s)", static_cast<double>(large.vertices()),
          [&] { n = area(on, large).value().size(); });
    timed("disjoint, counted, areas 100,000 with 100,000", 1e5,
          [&] { n = join_count(on, areas, more_areas, predicate::disjoint).value().size(); });
    // What is counted is not listed; where rewrites are off, it is.
    auto const squares = there(rectangles(100'000, 0.005, 11)), more_squares = there(rectangles(100'000, 0.005, 12));
    for (bool const on_or_off : {false, true}) {
        set_rewrites(on_or_off);
        std::printf(on_or_off ? "rewrites on\n" : "rewrites off\n");
        timed("count of 2^20 points in each of 100,000 areas", 1 << 20,
              [&] { n = join_count(on, areas, million, predicate::contains).value().size(); });
        timed("count of areas that meet each, 100,000 with 100,000", 1e5,
              [&] { n = join_count(on, areas, more_areas, predicate::intersects).value().size(); });
        timed("count of areas that overlap each, 100,000 with 100,000", 1e5,
              [&] { n = join_count(on, areas, more_areas, predicate::overlaps).value().size(); });
        timed("intersects, rectangles 100,000 with 100,000", 1e5,
              [&] { n = join(on, squares, more_squares, predicate::intersects).value().size(); });
        timed("overlaps, rectangles 100,000 with 100,000", 1e5,
              [&] { n = join(on, squares, more_squares, predicate::overlaps).value().size(); });
    }
    set_rewrites(std::nullopt);
    timed("intersects in one list, areas 100,000 with 100,000", 1e5,
          [&] { n = join(on, areas, more_areas, predicate::intersects).value().size(); });
    timed("the same in 16 chunks", 1e5, [&] {
        n = 0;
        join_in_chunks(on, areas, more_areas, predicate::intersects, {}, [&](pair_list const& p) {
            n += p.size();
            return result<void>{};
        }).value();
    });
}

// So many pairs that a list of them takes 8 GB: whole, and in chunks within 8 GiB.
void chunks(stream const& on, std::size_t count) {
    auto const areas = stars(4096, 32, 0.07, 7).to_device(on).value();
    auto const many = points(count, 8).to_device(on).value();
    std::size_t whole = 0, taken = 0, lists = 0;
    auto const once = [&](char const* name, auto const& call) {
        base::stopwatch const watch;
        call();
        on.wait_sync().value();
        double const ms = watch.ms();
        std::printf("%-58s %10.3f ms %12zu pairs %10.1f M/s\n", name, ms, whole,
                    static_cast<double>(whole) / ms / 1000);
        std::fflush(stdout);
        return ms;
    };
    double by_list = 0, by_chunk = 0;
    for (int turn = 0; turn < 2; ++turn) {
        by_list = once("points in overlapping areas, one list",
                       [&] { whole = join(on, many, areas, predicate::intersects).value().size(); });
        by_chunk = once("the same in chunks, 8 GiB", [&] {
            taken = lists = 0;
            join_in_chunks(on, many, areas, predicate::intersects, {.most_bytes = std::size_t{8} << 30},
                           [&](pair_list const& p) {
                               taken += p.size(), ++lists;
                               return result<void>{};
                           })
                .value();
        });
    }
    std::printf("  %zu lists, %s; %.0f %% of the rate of one list (goal 70)\n", lists,
                taken == whole ? "the same number of pairs" : "OTHER PAIRS", 100 * by_list / by_chunk);
}

// In this process, beside creating the context: from geometries there to a list of pairs there.
int first_join() {
    auto const on = stream::make().value();
    auto const areas = stars(1000, 32, 0.02, 9).to_device(on).value(),
               places = points(10'000, 10).to_device(on).value();
    on.wait_sync().value();
    std::size_t found = 0;
    auto const timed = [&](auto const& a, auto const& b, predicate what) {
        base::stopwatch const watch;
        found = join(on, a, b, what).value().size();
        on.wait_sync().value();
        return watch.ms();
    };
    double const points_ms = timed(places, areas, predicate::within);
    auto const points = found;
    double const meeting_ms = timed(areas, areas, predicate::intersects);
    auto const status = engine::process().status();
    std::printf("%9.3f ms points in areas (%zu)   %9.3f ms areas that meet (%zu)   %s\n", points_ms, points, meeting_ms,
                found, status.compiled > 0 ? "compiled" : "found");
    // By matrices, for which rings are checked: in the first call, of arrays that nobody has looked at, of the same arrays again.
    auto const anew = [&] { return geometries::make(areas.parts()).value(); };
    double const overlaps_ms = timed(areas, areas, predicate::overlaps);
    std::vector<double> checked, known;
    for (int i = 0; i < 5; ++i) {
        auto const fresh = anew();
        checked.push_back(timed(fresh, fresh, predicate::overlaps));
        known.push_back(timed(fresh, fresh, predicate::overlaps));
    }
    auto const middle = [](std::vector<double>& of) {
        std::nth_element(of.begin(), of.begin() + 2, of.end());
        return of[2];
    };
    std::printf(
        "%15s%9.3f ms areas that overlap (%zu), first call   %9.3f ms later, rings to be checked   %9.3f ms later\n",
        "", overlaps_ms, found, middle(checked), middle(known));
    return 0;
}

void compile_everything(std::string const& cache) {
    engine fresh{{.settings = {{"KILN_CACHE_DIR", cache}, {"KILN_RECACHE", "1"}}}};
    std::vector<want> all;
    for (auto const& s : engine_detail::find_pack("spatial")->specs()) all.emplace_back(s.name);
    for (auto const* const name : {"exclusive_scan_i64", "radix_sort_u64_i32", "radix_sort_i32_i32"})
        all.emplace_back(name);
    base::stopwatch const watch;
    auto const report =
        plan{"everything", all, {.targets = {target::parse(device(0).value().target()).value()}, .engine = &fresh}}
            .ensure_warm(std::chrono::minutes{5});
    fresh.flush_sync();
    std::printf("\n%llu units from source: %.2f s\n", static_cast<unsigned long long>(fresh.status().compiled),
                watch.ms() / 1000);
    if (!report) std::printf("%s\n", report.text().c_str());
}

void first_joins() {
    auto const self = "/proc/" + std::to_string(::getpid()) + "/exe";
    auto const folder = std::filesystem::temp_directory_path() / ("kiln-bench-spatial-" + std::to_string(::getpid()));
    auto const once = [&](char const* name, std::string const& settings) {
        std::printf("  %-12s ", name);
        std::fflush(stdout);
        if (std::system((settings + " " + self + " --first-join").c_str()) != 0) std::printf("failed\n");
    };
    auto const cache = "KILN_CACHE_DIR=" + folder.string();
    compile_everything(folder / "full");
    std::printf("\nfirst joins of a fresh process, beside creating the context:\n");
    for (int i = 0; i < 3; ++i) once("shipped", cache + "/none-" + std::to_string(i));
    for (int i = 0; i < 3; ++i) once("disk", cache + "/full");
    once("neither", cache + "/new KILN_RECACHE=1");
    std::filesystem::remove_all(folder);
}

}  // namespace

int main(int count, char** arguments) {
    ::setenv("CUDA_CACHE_DISABLE", "1", 1);
    std::string const word = count > 1 ? arguments[1] : "";
    if (word == "--first-join") return first_join();
    if (!word.empty() && word != "--quick") {
        std::fprintf(stderr, "usage: bench_spatial_ops [--quick]\n");
        return 2;
    }
    if (!devices()) {
        std::printf("no GPU: nothing to measure\n");
        return 77;
    }
    auto const on = stream::make().value();
    std::printf("%s\n", device(0).value().name.c_str());
    operations(on);
    chunks(on, word == "--quick" ? 1 << 20 : 1 << 25);
    first_joins();
    return 0;
}
