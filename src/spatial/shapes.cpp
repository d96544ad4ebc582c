// SPDX-License-Identifier: Apache-2.0
#include "spatial/shapes.hpp"

#include "spatial/kept_layer.hpp"
#include "spatial/operations.hpp"
#include "spatial/row_room.hpp"
#include "spatial/row_shapes.cuh"

#include <cmath>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

result<void> check_rectangle(bounding_box const& r) {
    bool const good = in_domain(r.min_x) && in_domain(r.min_y) && in_domain(r.max_x) && in_domain(r.max_y) &&
                      r.min_x <= r.max_x && r.min_y <= r.max_y;
    if (good) return {};
    return fail(errc::invalid_argument, "clip_by_rect: ({}, {}) to ({}, {}) is no rectangle", r.min_x, r.min_y, r.max_x,
                r.max_y);
}

result<geometry_parts> clipped_lines(queue& on, kept_layer const& l, box const& r) {
    auto const rows = l.rows();
    KILN_TRY(auto place, on.room<std::int64_t>(rows + 1));
    KILN_CHECK(on.launch(count_clipped_lines{l.view(), r, raw(place)}, rows));
    KILN_TRY(auto const total, on.total_sync(place));
    KILN_TRY(auto out, room_for_lines(on, rows, total));
    KILN_CHECK(on.launch(write_clipped_lines{l.view(), r, raw(place), out.x.data(), out.y.data(), out.offsets[0].data(),
                                             out.offsets[1].data()},
                         rows + 1));
    return out;
}

result<geometry_parts> clipped_points(queue& on, kept_layer const& l, box const& r) {
    auto const n = l.vertices();
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_clipped_points{l.view(), r, raw(place)}, n));
    KILN_TRY(auto const total, on.total_sync(place));
    KILN_TRY(auto out, room_for_multipoints(on, l.rows(), total));
    KILN_CHECK(on.launch(write_clipped_points{l.view(), raw(place), out.x.data(), out.y.data()}, n));
    KILN_CHECK(on.launch(clipped_point_rows{l.view(), raw(place), out.offsets[0].data()}, l.rows() + 1));
    return out;
}

}  // namespace

quarter_circle quarter_of(int steps) {
    quarter_circle out{};
    out.steps = steps;
    for (int k = 0; k <= steps; ++k) out.cosine[k] = std::cos(k * (std::acos(-1.0) / 2 / steps));
    out.cosine[0] = 1, out.cosine[steps] = 0;
    return out;
}

result<geometries> circles_around(queue& on, geometries const& points, double distance, circle_options const& how) {
    auto const rows = points.rows();
    auto const corners = 4 * static_cast<std::size_t>(how.quarter) + 1;
    KILN_TRY(auto const l, kept_layer::plain(on, points));
    KILN_TRY(auto place, on.room<std::int64_t>(rows + 1));
    KILN_CHECK(on.launch(count_circles{l.states().data(), raw(place)}, rows));
    KILN_TRY(auto const total, on.total_sync(place));
    auto const rings = static_cast<std::size_t>(total);
    if (rings * corners > 0x7fffffff)
        return fail(errc::unsupported, "point_buffer: {} circles of {} corners: take them in parts", rings, corners);
    geometry_parts out;
    out.kind = family::polygon;
    KILN_TRY(out.x, on.room<double>(rings * corners));
    KILN_TRY(out.y, on.room<double>(rings * corners));
    KILN_TRY(out.offsets[0], on.room<std::int32_t>(rows + 1));
    KILN_TRY(out.offsets[1], on.room<std::int32_t>(rings + 1));
    KILN_CHECK(on.launch(circle_rows{raw(place), out.offsets[0].data()}, rows + 1));
    KILN_CHECK(on.launch(circle_rings{static_cast<i32>(corners), out.offsets[1].data()}, rings + 1));
    KILN_CHECK(
        on.launch(draw_circles{l.view(), raw(place), quarter_of(how.quarter), distance, out.x.data(), out.y.data()},
                  rows * corners));
    KILN_TRY(out.validity, validity_of_rows(on, l));
    return geometries::make(std::move(out));
}

result<geometries> clipped_rows(queue& on, geometries const& of, bounding_box const& to) {
    box const r{to.min_x, to.min_y, to.max_x, to.max_y};
    KILN_TRY(auto const l, kept_layer::plain(on, of));
    geometry_parts out;
    switch (of.kind()) {
        case family::point: {
            KILN_TRY(out.x, on.room<double>(of.rows()));
            KILN_TRY(out.y, on.room<double>(of.rows()));
            KILN_CHECK(on.launch(clip_points{l.view(), l.states().data(), r, out.x.data(), out.y.data()}, of.rows()));
            break;
        }
        case family::multipoint: {
            KILN_TRY(out, clipped_points(on, l, r));
            break;
        }
        case family::linestring:
        case family::multilinestring: {
            KILN_TRY(out, clipped_lines(on, l, r));
            break;
        }
        default:
            return fail(errc::unsupported, "clip_by_rect: points and lines are clipped, not {}", name_of(of.kind()));
    }
    KILN_TRY(out.validity, validity_of_rows(on, l));
    return geometries::make(std::move(out));
}

result<geometries> point_buffer(stream_ref on, geometries const& points, double distance, circle_options const& how) {
    if (points.kind() != family::point)
        return fail(errc::invalid_argument, "point_buffer: an array of points is needed, not of {}",
                    name_of(points.kind()));
    if (!(distance > 0) || !in_domain(distance) || how.quarter < 1 || how.quarter > most_quarter)
        return fail(errc::invalid_argument, "point_buffer: a distance of {} in {} steps a quarter; 1 to {} steps",
                    distance, how.quarter, static_cast<int>(most_quarter));
    KILN_TRY(auto const call, runtime::operation_call::begin(shapes_operation, facts_of(points)));
    KILN_TRY(auto const here, brought(call, on, points));
    return with_queue(call.on_gpu(), on, here.device(),
                      [&](queue& q) { return circles_around(q, here, distance, how); });
}

result<geometries> clip_by_rect(stream_ref on, geometries const& of, bounding_box const& to) {
    KILN_CHECK(check_rectangle(to));
    KILN_TRY(auto const call, runtime::operation_call::begin(shapes_operation, facts_of(of)));
    KILN_TRY(auto const here, brought(call, on, of));
    return with_queue(call.on_gpu(), on, here.device(), [&](queue& q) { return clipped_rows(q, here, to); });
}

}  // namespace kiln::spatial
