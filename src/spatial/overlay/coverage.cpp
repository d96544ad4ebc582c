// SPDX-License-Identifier: Apache-2.0
#include "spatial/overlay/coverage.hpp"

#include "spatial/area_index.hpp"
#include "spatial/kept_elements.hpp"
#include "spatial/operations.hpp"
#include "spatial/overlay/overlay.hpp"
#include "spatial/overlay/simplified.hpp"
#include "spatial/overlay_rings.cuh"
#include "spatial/simplify.cuh"
#include "spatial/simplify_coverage.cuh"

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// An index that few points are asked of: crowded cells are hardly worth dividing.
constexpr cell_options cells_of_pockets{.cells_per_edge = 1, .split_above = 256, .edges_per_cell = 32};

double share_of(std::size_t few, std::size_t many) {
    return static_cast<double>(few) / static_cast<double>(std::max<std::size_t>(many, 1));
}

// The borders of an arrangement as lines, of which fewer and fewer vertices go.
class border_lines {
public:
    static result<border_lines> make(queue& on, arrangement const& of) {
        border_lines out;
        auto const n = of.borders();
        KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
        KILN_CHECK(on.launch(count_border_vertices{of.view(), raw(place)}, n));
        KILN_TRY(auto const total, on.total_sync(place));
        auto const vertices = static_cast<std::size_t>(total);
        if (vertices > 0x3fffffff)
            return fail(errc::unsupported, "simplify_coverage: {} vertices: take the areas in parts", vertices);
        KILN_TRY(auto first, on.room<std::int32_t>(n + 1));
        KILN_CHECK(on.launch(set_border_firsts{raw(place), first.data()}, n + 1));
        KILN_TRY(auto at, on.room<point>(vertices));
        KILN_TRY(auto line_of, on.room<std::int32_t>(vertices));
        KILN_TRY(out.place_of_, on.room<std::int32_t>(vertices));
        KILN_CHECK(on.launch(write_borders{of.view(), first.data(), n, share_of(n, vertices), at.data(), line_of.data(),
                                           out.place_of_.data()},
                             vertices));
        KILN_TRY(out.layer_, kept_layer::of_lines(on, std::move(at), std::move(first), std::move(line_of)));
        KILN_TRY(out.spans_, path_spans::begin(on, out.layer_));
        return out;
    }

    result<void> simplify(queue& on, double tolerance, int most_splits) {
        auto const n = layer_.vertices();
        if (n == 0) return {};
        KILN_TRY(trouble_, on.filled<std::uint32_t>(n, 0));
        KILN_CHECK(on.launch(mark_closed_lines{layer_.view(), trouble_.data()}, layer_.paths()));
        KILN_CHECK(spans_.settle(on, layer_, tolerance, trouble_.data()));
        for (int round = 0;; ++round) {
            KILN_TRY(auto const left, thin(on));
            KILN_TRY(auto const between, find_pockets(on, left));
            KILN_TRY(bool const is_troubled, find_troubles(on, left, between));
            if (!is_troubled) return {};
            bool const one_by_one = round < most_splits;
            if (int const more = round - most_splits; more > 0)
                KILN_CHECK(spread_troubles(on, between, 1U << std::min(more - 1, 30)));
            KILN_CHECK(on.launch(reopen_spans{spans_.view(), trouble_.data(), one_by_one ? fate_open : fate_stays}, n));
            if (one_by_one) KILN_CHECK(spans_.settle(on, layer_, tolerance, trouble_.data()));
        }
    }

    result<buffer<std::uint32_t>> staying_places(queue& on, std::size_t places) const {
        KILN_TRY(auto out, on.filled<std::uint32_t>(places, 0));
        KILN_CHECK(on.launch(find_staying_places{spans_.view().fate, place_of_.data(), out.data()}, layer_.vertices()));
        return out;
    }

private:
    // Without the vertices that go.
    struct thinned {
        kept_layer layer;
        buffer<std::int32_t> source;
        [[nodiscard]] thinned_lines view() const noexcept { return {layer.view(), source.data()}; }
    };
    result<thinned> thin(queue& on) const {
        thinned out{layer_, {}};
        auto const n = layer_.vertices();
        KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
        KILN_CHECK(on.launch(count_staying{spans_.view().fate, raw(place)}, n));
        KILN_CHECK(out.layer.keep_vertices(on, place));
        KILN_TRY(out.source, on.room<std::int32_t>(out.layer.vertices()));
        KILN_CHECK(on.launch(set_sources{raw(place), out.source.data()}, n));
        return out;
    }

    // Between the spans and the segments that take their places.
    struct pockets {
        std::shared_ptr<area_index::state const> index;  // null: there are none
        buffer<std::int32_t> span;
    };
    result<pockets> find_pockets(queue& on, thinned const& left) const {
        auto const n = left.layer.vertices();
        KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
        KILN_CHECK(on.launch(count_pockets{left.view(), raw(place)}, n));
        KILN_TRY(auto const total, on.total_sync(place));
        auto const count = high_of(total), vertices = low_of(total);
        pockets out;
        if (count == 0) return out;
        KILN_TRY(auto first, on.room<std::int32_t>(count + 1));
        KILN_TRY(out.span, on.room<std::int32_t>(count));
        KILN_CHECK(on.launch(set_pockets{left.view(), raw(place), first.data(), out.span.data()}, n));
        KILN_TRY(auto at, on.room<point>(vertices));
        KILN_TRY(auto pocket_of, on.room<std::int32_t>(vertices));
        KILN_CHECK(on.launch(write_pockets{layer_.view().at, first.data(), out.span.data(), count,
                                           share_of(count, vertices), at.data(), pocket_of.data()},
                             vertices));
        KILN_TRY(auto const rings, kept_layer::of_rings(on, std::move(at), std::move(first), std::move(pocket_of)));
        KILN_TRY(out.index, build_index(on, rings, cells_of_pockets));
        return out;
    }

    result<bool> find_troubles(queue& on, thinned const& left, pockets const& between) {
        KILN_TRY(auto any, on.filled<std::uint64_t>(1, 0));
        KILN_CHECK(on.fill(trouble_, 0));
        span_troubles const to{trouble_.data(), raw(any)};
        KILN_CHECK(find_contacts_of(on, left, to));
        KILN_CHECK(find_jumps(on, left, between, to));
        std::uint64_t found = 0;
        KILN_CHECK(on.read_sync({{any.data(), found}}));
        return found != 0;
    }
    static result<void> find_contacts_of(queue& on, thinned const& left, span_troubles const& to) {
        KILN_TRY(auto const elements, kept_elements::make(on, left.layer));
        KILN_TRY(auto const met, find_contacts(on, left.layer, left.layer, elements, rows_wanted::all));
        return on.launch(find_troubled_contacts{left.view(), met.list(), to}, met.size());
    }
    static result<void> find_jumps(queue& on, thinned const& left, pockets const& between, span_troubles const& to) {
        if (between.index == nullptr) return {};
        KILN_TRY(auto const xy, separate(on, left.layer));
        point_locator inside{on, xy.rows(nullptr), left.layer.vertices(), *between.index, wanted_inside};
        KILN_TRY(auto const found, inside.histogram());
        return on.launch(find_jumped_over{raw(found), between.span.data(), to}, between.span.size());
    }

    // Also those spans that will be in trouble once the vertices of troubled ones are back: as many steps on. Else one border in another
    // in another would each be found a round later than the last. A fence for each step.
    result<void> spread_troubles(queue& on, pockets const& between, std::uint32_t steps) {
        if (between.index == nullptr) return {};
        auto const n = layer_.vertices();
        KILN_TRY(auto const xy, separate(on, layer_));
        KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
        for (std::uint32_t step = 1; step <= steps; ++step) {
            KILN_CHECK(on.launch(count_returning{spans_.view(), trouble_.data(), step, raw(place)}, n));
            KILN_TRY(auto const total, on.total_sync(place));
            if (total == 0) break;
            KILN_TRY(auto chosen, on.room<std::int32_t>(static_cast<std::size_t>(total)));
            KILN_CHECK(on.launch(set_sources{raw(place), chosen.data()}, n));
            // One on the segment that took a span's place meets it there.
            point_locator met{on, xy.rows(chosen.data()), chosen.size(), *between.index, wanted_inside | wanted_on};
            KILN_TRY(auto const found, met.histogram());
            KILN_CHECK(on.launch(find_reached{raw(found), between.span.data(), step + 1, trouble_.data()},
                                 between.span.size()));
        }
        return {};
    }

    struct coordinates {
        buffer<double> x, y;
        [[nodiscard]] point_rows rows(std::int32_t const* chosen) const {
            return {x.data(), y.data(), nullptr, chosen};
        }
    };
    static result<coordinates> separate(queue& on, kept_layer const& of) {
        coordinates out;
        KILN_TRY(out.x, on.room<double>(of.vertices()));
        KILN_TRY(out.y, on.room<double>(of.vertices()));
        KILN_CHECK(on.launch(write_points{of.view().at, out.x.data(), out.y.data()}, of.vertices()));
        return out;
    }

    kept_layer layer_;
    buffer<std::int32_t> place_of_;
    path_spans spans_;
    buffer<std::uint32_t> trouble_;
};

}  // namespace

result<void> kept_layer::keep_corners(queue& on, buffer<std::int64_t> const& counted) {
    KILN_TRY(auto at, on.room<point>(vertices()));
    KILN_CHECK(on.launch(close_rings{view(), raw(counted), at.data()}, vertices()));
    at_ = std::move(at);
    elements_.reset();
    return keep_vertices(on, counted);
}

result<geometries> simplified_coverage(queue& on, geometries const& areas, double tolerance, int most_splits) {
    constexpr std::string_view operation = "spatial_simplify_coverage";
    auto const rows = areas.rows();
    KILN_TRY(auto l, kept_layer::distinct(on, areas));
    KILN_TRY(auto const in, arrangement::make(on, std::move(l)));
    tell_how_divided(operation, in.found_unrest());
    KILN_TRY(auto lines, border_lines::make(on, in));
    KILN_CHECK(lines.simplify(on, tolerance, most_splits));
    KILN_TRY(auto const stays, lines.staying_places(on, in.places()));

    auto thinned = in.noded();
    auto const n = thinned.vertices();
    KILN_TRY(auto count, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_corners{thinned.view(), in.view().s.place_of, stays.data(), raw(count)}, n));
    KILN_CHECK(thinned.keep_corners(on, count));
    auto const states = thinned.states();
    KILN_TRY(auto worlds, on.room<std::int32_t>(rows));
    KILN_CHECK(on.launch(number_words{worlds.data()}, rows));
    // What is left meets in its vertices only: it is divided already.
    KILN_TRY(auto const drawn, arrangement::of_divided(on, std::move(thinned), {worlds}));
    KILN_TRY(auto parts, put_together(on, drawn, {operation, worlds}, rows));
    KILN_TRY(parts.validity, on.room<std::uint8_t>((rows + 7) / 8));
    KILN_CHECK(on.launch(set_validity{states.data(), states.data(), rows, parts.validity->data()}, (rows + 7) / 8));
    return geometries::make(std::move(parts));
}

result<geometries> simplify_coverage(stream_ref on, geometries const& areas, double tolerance) {
    KILN_CHECK(require_tolerance("simplify_coverage", tolerance));
    KILN_CHECK(require_areas("simplify_coverage", areas));
    KILN_TRY(auto const call, runtime::operation_call::begin(coverage_operation, facts_of(areas)));
    KILN_TRY(auto const here, brought(call, on, areas));
    return with_queue(call.on_gpu(), on, here.device(),
                      [&](queue& q) { return simplified_coverage(q, here, tolerance); });
}

}  // namespace kiln::spatial
