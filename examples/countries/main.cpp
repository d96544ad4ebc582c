// SPDX-License-Identifier: Apache-2.0
//
// Ten million points, equally spaced over the globe, joined with the 177 countries of Natural Earth: which country is each one in? A
// country's share of the points is its share of the Earth. The picture is drawn by joins, too: its dots take the colour of the
// country they fall into, and countries that touch get different colours. Points are located on the GPU where there is one, unless
// KILN_EXECUTION_MODE=cpu; the answer is the same.
//
//     example_countries [points] [picture.svg]
#include <kiln/device.hpp>
#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/files.hpp>
#include <kiln/spatial/join.hpp>
#include <kiln/spatial/locate.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/relate.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace kiln;
namespace spatial = kiln::spatial;

struct place_on_earth {
    double lon, lat;
};
// Point i of n, equally spaced: a turn by the golden angle and a step from pole to pole.
place_on_earth lattice_point(std::int64_t i, std::int64_t n) {
    double const turns = static_cast<double>(i) * (2 - std::numbers::phi);
    double const height = 1 - (2 * static_cast<double>(i) + 1) / static_cast<double>(n);
    return {360 * (turns - std::floor(turns)) - 180, std::asin(height) * 180 / std::numbers::pi};
}
spatial::geometries lattice_points(std::int64_t first, std::int64_t last, std::int64_t n) {
    auto x = buffer<double>::on_host(static_cast<std::size_t>(last - first));
    auto y = buffer<double>::on_host(x.size());
    for (auto i = first; i < last; ++i) {
        auto const p = lattice_point(i, n);
        x.data()[i - first] = p.lon, y.data()[i - first] = p.lat;
    }
    return spatial::geometries::points(std::move(x), std::move(y)).value();
}

// How many points each country has. Some at a time: the index is built once and asked as often as wanted.
struct census {
    std::vector<std::int64_t> points;
    std::int64_t on_land = 0, on_borders = 0;
    double ms = 0;
};
census count_points(spatial::cpu::area_index const& countries, std::size_t rows, std::int64_t n) {
    census out;
    out.points.assign(rows, 0);
    constexpr std::int64_t chunk = 1'000'000;
    for (std::int64_t first = 0; first < n; first += chunk) {
        auto const points = lattice_points(first, std::min(n, first + chunk), n);
        auto const begin = std::chrono::steady_clock::now();
        std::int32_t last = -1;
        for (auto const& found : countries.locate(points).value()) {
            ++out.points[static_cast<std::size_t>(found.area)];
            out.on_borders += found.how == spatial::standing::on_boundary ? 1 : 0;
            out.on_land += std::exchange(last, found.point) != found.point ? 1 : 0;
        }
        out.ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    }
    return out;
}

// The same on a GPU. Nothing is listed there: a country's points are counted, and so are those on borders and those in any country.
census count_points_there(spatial::geometries const& countries, std::int64_t n) {
    using spatial::predicate;
    census out;
    out.points.assign(countries.rows(), 0);
    auto const on = stream::make().value();
    auto const index = spatial::area_index::make(on, countries.to_device(on).value()).value();
    constexpr std::int64_t chunk = 10'000'000;
    for (std::int64_t first = 0; first < n; first += chunk) {
        auto const points = lattice_points(first, std::min(n, first + chunk), n).to_device(on).value();
        auto const begin = std::chrono::steady_clock::now();
        auto const here =
            spatial::join_histogram(on, points, index, predicate::intersects).value().to_host_sync(on).value();
        auto const on_border =
            spatial::join_histogram(on, points, index, predicate::touches).value().to_host_sync(on).value();
        auto const in_any =
            spatial::join_any(on, points, index, predicate::intersects).value().to_host_sync(on).value();
        out.ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
        for (std::size_t i = 0; i < out.points.size(); ++i) out.points[i] += here.data()[i];
        out.on_borders += std::accumulate(on_border.host_span().begin(), on_border.host_span().end(), std::int64_t{0});
        out.on_land += std::accumulate(in_any.host_span().begin(), in_any.host_span().end(), std::int64_t{0});
    }
    return out;
}
bool has_gpu() {
    auto const all = devices();
    return all && !all->empty() && requested_mode() != execution_mode::cpu;
}

// ---- The picture ----

constexpr double width = 1200, height = 702, scale = 205, middle_x = 600, middle_y = 306;
constexpr std::array palette{"#ffb454", "#7fd1ae", "#6cb6ff", "#f07178", "#c792ea", "#e6e1a8"};

// Equal Earth (Savric, Patterson and Jenny, 2018): shapes as one is used to, areas as they are.
place_on_earth on_paper(place_on_earth p) {
    constexpr double a1 = 1.340264, a2 = -0.081106, a3 = 0.000893, a4 = 0.003796;
    double const root3 = std::sqrt(3.0), lat = p.lat * std::numbers::pi / 180, lon = p.lon * std::numbers::pi / 180;
    double const t = std::asin(root3 / 2 * std::sin(lat)), t2 = t * t, t6 = t2 * t2 * t2;
    double const x = 2 * root3 * lon * std::cos(t) / (3 * (9 * a4 * t6 * t2 + 7 * a3 * t6 + 3 * a2 * t2 + a1));
    double const y = t * (a4 * t6 * t2 + a3 * t6 + a2 * t2 + a1);
    return {middle_x + scale * x, middle_y - scale * y};
}

// Countries that meet get different colours, the largest ones first.
std::vector<std::size_t> colours_of(spatial::geometries const& countries, std::vector<std::size_t> const& by_size) {
    std::vector<std::vector<std::size_t>> neighbours(countries.rows());
    for (auto const& [a, b] : spatial::cpu::join(countries, countries, spatial::predicate::touches).value())
        neighbours[static_cast<std::size_t>(a)].push_back(static_cast<std::size_t>(b));
    constexpr std::size_t none = ~std::size_t{0};
    std::vector<std::size_t> out(countries.rows(), none), used(palette.size(), 0);
    for (auto const i : by_size) {
        std::array<bool, palette.size()> taken{};
        for (auto const j : neighbours[i])
            if (out[j] != none) taken[out[j]] = true;
        std::size_t best = 0;
        for (std::size_t c = 0; c < palette.size(); ++c)
            if (taken[best] || (!taken[c] && used[c] < used[best])) best = c;
        out[i] = best, ++used[best];
    }
    return out;
}

std::string with_commas(std::int64_t n) {
    auto out = std::to_string(n);
    for (auto at = static_cast<int>(out.size()) - 3; at > 0; at -= 3) out.insert(static_cast<std::size_t>(at), ",");
    return out;
}

struct picture {
    spatial::rows_of_file const& countries;
    spatial::cpu::area_index const& index;
    census const& counted;
    std::int64_t n;
    std::vector<std::size_t> by_size, colour;
    std::FILE* to;

    void draw() const {
        std::fprintf(
            to,
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %g %g' font-family='Helvetica,Arial,sans-serif'>\n"
            "<defs><radialGradient id='sea' cx='50%%' cy='45%%' r='70%%'><stop offset='0' stop-color='#16324f'/>"
            "<stop offset='1' stop-color='#0b1a2c'/></radialGradient></defs>\n<rect width='%g' height='%g' "
            "fill='#0a1422'/>\n",
            width, height, width, height);
        globe();
        dots();
        names();
        strip();
        std::fprintf(to, "</svg>\n");
    }

private:
    void line(double lon0, double lat0, double lon1, double lat1) const {
        for (int i = 0; i <= 60; ++i) {
            auto const p = on_paper({lon0 + (lon1 - lon0) * i / 60, lat0 + (lat1 - lat0) * i / 60});
            std::fprintf(to, "%c%.1f %.1f", i == 0 ? 'M' : 'L', p.lon, p.lat);
        }
    }
    void globe() const {
        std::fprintf(to, "<path fill='url(#sea)' stroke='#2b4a6b' d='");
        line(-180, -90, -180, 90);
        for (int i = 0; i <= 60; ++i) {
            auto const p = on_paper({180, 90 - 3.0 * i});
            std::fprintf(to, "L%.1f %.1f", p.lon, p.lat);
        }
        std::fprintf(to, "Z'/>\n<path fill='none' stroke='#ffffff' stroke-opacity='.07' stroke-width='.8' d='");
        for (int lon = -150; lon <= 150; lon += 30) line(lon, -90, lon, 90);
        for (int lat = -60; lat <= 60; lat += 30) line(-180, lat, 180, lat);
        std::fprintf(to, "'/>\n");
    }
    // Equally spaced dots, joined with the countries once more; those at sea are left out.
    void dots() const {
        constexpr std::int64_t count = 30'000;
        std::array<std::string, palette.size()> paths;
        std::int32_t last = -1;
        for (auto const& found : index.locate(lattice_points(0, count, count)).value()) {
            if (std::exchange(last, found.point) == found.point) continue;
            auto const p = on_paper(lattice_point(found.point, count));
            char text[32];
            std::snprintf(text, sizeof(text), "M%.1f %.1fh0", p.lon, p.lat);
            paths[colour[static_cast<std::size_t>(found.area)]] += text;
        }
        for (std::size_t c = 0; c < palette.size(); ++c)
            std::fprintf(to, "<path fill='none' stroke='%s' stroke-width='3.3' stroke-linecap='round' d='%s'/>\n",
                         palette[c], paths[c].c_str());
    }
    // Twice: what lies below a name is darkened first.
    void names() const {
        auto const centres = spatial::cpu::centroid(countries.rows).value();
        for (auto const* style :
             {"stroke='#0b1a2c' stroke-width='4' stroke-opacity='.75' stroke-linejoin='round'", "fill='#ffffff'"}) {
            std::fprintf(to, "<g font-size='11' font-weight='bold' text-anchor='middle' letter-spacing='.4' %s>\n",
                         style);
            for (std::size_t k = 0; k < 14 && k < by_size.size(); ++k) {
                auto const at = centres[by_size[k]];
                if (!at) continue;
                auto const p = on_paper({at->x, at->y});
                std::fprintf(to, "<text x='%.0f' y='%.0f'>%s</text>\n", p.lon, p.lat + 4,
                             short_name(by_size[k]).c_str());
            }
            std::fprintf(to, "</g>\n");
        }
    }
    // The points on land in a row, from the largest country on.
    void strip() const {
        constexpr double left = 60, right = width - 60, top = 634, thick = 24;
        double at = left;
        auto const on_land = static_cast<double>(std::max<std::int64_t>(counted.on_land, 1));
        std::fprintf(to,
                     "<text x='%g' y='%g' font-size='19' font-weight='bold' fill='#dfe8f2'>Where %s equally spaced "
                     "points fall</text>\n"
                     "<text x='%g' y='%g' font-size='12' text-anchor='end' fill='#8fa6bf'>%s at sea, %s on land: each "
                     "country's share of "
                     "it</text>\n",
                     left, top - 18, with_commas(n).c_str(), right, top - 18, with_commas(n - counted.on_land).c_str(),
                     with_commas(counted.on_land).c_str());
        for (auto const i : by_size) {
            double const share = static_cast<double>(counted.points[i]) / on_land, wide = share * (right - left);
            if (wide < 0.05) break;
            std::fprintf(to, "<rect x='%.2f' y='%g' width='%.2f' height='%g' fill='%s'/>\n", at, top,
                         std::max(wide - 0.6, 0.15), thick, palette[colour[i]]);
            if (wide > 44)
                std::fprintf(
                    to,
                    "<text x='%.1f' y='%g' font-size='10' text-anchor='middle' fill='#c8d5e3'>%s</text>"
                    "<text x='%.1f' y='%g' font-size='10' text-anchor='middle' fill='#8fa6bf'>%.1f %%</text>\n",
                    at + wide / 2, top + thick + 15, short_name(i).c_str(), at + wide / 2, top + thick + 28,
                    100 * share);
            at += wide;
        }
    }
    [[nodiscard]] std::string short_name(std::size_t i) const {
        auto const& name = countries.ids[i];
        return name == "United States of America" ? "USA" : name;
    }
};

}  // namespace

int main(int count, char** arguments) try {
    std::int64_t const n = count > 1 ? std::max(1LL, std::atoll(arguments[1])) : 10'000'000;
    auto const countries = spatial::read_file(KILN_EXAMPLE_DIR "/../data/countries.geojson", {.id = "name"}).value();
    auto const index = spatial::cpu::area_index::make(countries.rows).value();
    bool const there = has_gpu();
    auto const counted = there ? count_points_there(countries.rows, n) : count_points(index, countries.rows.rows(), n);

    std::vector<std::size_t> by_size(countries.rows.rows());
    std::iota(by_size.begin(), by_size.end(), std::size_t{0});
    std::stable_sort(by_size.begin(), by_size.end(),
                     [&](auto a, auto b) { return counted.points[a] > counted.points[b]; });
    std::printf("%s points, %zu countries: %s points in one, %s on a border\n", with_commas(n).c_str(),
                countries.rows.rows(), with_commas(counted.on_land).c_str(), with_commas(counted.on_borders).c_str());
    std::fprintf(stderr, "located on the %s in %.0f ms: %.1f million points a second\n", there ? "GPU" : "CPU",
                 counted.ms, static_cast<double>(n) / counted.ms / 1000);
    for (std::size_t k = 0; k < 10; ++k)
        std::printf("%12s  %5.2f %% of the Earth  %s\n", with_commas(counted.points[by_size[k]]).c_str(),
                    100 * static_cast<double>(counted.points[by_size[k]]) / static_cast<double>(n),
                    countries.ids[by_size[k]].c_str());
    if (count > 2) {
        std::FILE* const to = std::fopen(arguments[2], "w");
        if (to == nullptr) {
            std::perror(arguments[2]);
            return 1;
        }
        auto colour = colours_of(countries.rows, by_size);
        picture{countries, index, counted, n, std::move(by_size), std::move(colour), to}.draw();
        if (std::fclose(to) != 0) return 1;
    }
    return 0;
} catch (kiln::error const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
