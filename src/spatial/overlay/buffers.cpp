// SPDX-License-Identifier: Apache-2.0
#include "spatial/overlay/buffers.hpp"

#include "spatial/buffer_pieces.cuh"
#include "spatial/operations.hpp"
#include "spatial/overlay/overlay.hpp"
#include "spatial/overlay_areas.cuh"
#include "spatial/overlay_rings.cuh"
#include "spatial/shapes.hpp"

#include <kiln/spatial/validate.hpp>

#include <cmath>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

struct pieces_of_rows {
    kept_layer rings;
    buffer<std::int32_t> row_of, block;
};
result<pieces_of_rows> cut_pieces(queue& on, kept_layer const& of, piece_choice const& which) {
    auto const n = of.vertices();
    auto const most_corners =
        5 * static_cast<std::size_t>(which.of.how.circle.steps) + 12;  // with what two blocks have
    if (n > 0x7fffffff / most_corners)
        return fail(errc::unsupported, "buffer_of: {} vertices with up to {} corners each: take the rows in parts", n,
                    most_corners);
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_pieces{which, raw(place)}, n));
    KILN_TRY(auto const total, on.total_sync(place));
    auto const rings = std::size_t{high_of(total)}, corners = std::size_t{low_of(total)};
    KILN_TRY(auto at, on.room<point>(corners));
    KILN_TRY(auto first, on.room<std::int32_t>(rings + 1));
    KILN_TRY(auto ring_of, on.room<std::int32_t>(corners));
    pieces_of_rows out;
    KILN_TRY(out.row_of, on.room<std::int32_t>(rings));
    KILN_TRY(out.block, on.room<std::int32_t>(rings));
    KILN_CHECK(on.launch(
        write_pieces{which, raw(place), at.data(), first.data(), ring_of.data(), out.row_of.data(), out.block.data()},
        n + 1));
    KILN_TRY(out.rings, kept_layer::of_rings(on, std::move(at), std::move(first), std::move(ring_of)));
    KILN_CHECK(out.rings.drop_repeated(on));  // next to large coordinates, a small step is none
    return out;
}

// Where most segments are short beside the distance, each place is in many strips, and all of them would be asked about. So neighbours are made one
// before, again and again, until each row is one.
result<void> join_neighbours(queue& on, pieces_of_rows& pieces) {
    for (;;) {
        auto const n = pieces.row_of.size();
        KILN_TRY(auto number, on.room<std::int64_t>(n + 1));
        KILN_CHECK(on.launch(begin_piece_groups{pieces.row_of.data(), pieces.block.data(), raw(number)}, n));
        KILN_TRY(auto const total, on.total_sync(number));
        auto const groups = static_cast<std::size_t>(total);
        if (groups == n) return {};
        KILN_TRY(auto group_of, on.room<std::int32_t>(n));
        KILN_TRY(auto row_of, on.room<std::int32_t>(groups));
        KILN_CHECK(on.launch(set_piece_groups{pieces.row_of.data(), raw(number), group_of.data(), row_of.data()}, n));
        KILN_TRY(auto parts, put_together(on, std::move(pieces.rings), {"spatial_buffer", group_of}, groups));
        KILN_TRY(auto const together, geometries::make(std::move(parts)));
        KILN_TRY(pieces.rings, kept_layer::distinct(on, together));
        pieces.row_of = std::move(row_of);
        pieces.block = {};
    }
}

result<void> check_buffer(double distance, buffer_options const& how) {
    if (!in_domain(distance))
        return fail(errc::invalid_argument,
                    "buffer_of: a distance of {}: 0 and magnitudes from 2^{} to below 2^{} are taken", distance,
                    least_exponent, most_exponent);
    if (how.quarter < 1 || how.quarter > most_quarter)
        return fail(errc::invalid_argument, "buffer_of: {} steps a quarter: 1 to {} are taken", how.quarter,
                    static_cast<int>(most_quarter));
    if (!(how.mitre_limit >= 1) || !in_domain(how.mitre_limit))
        return fail(errc::invalid_argument, "buffer_of: mitres to {}: from 1 to below 2^{} is taken", how.mitre_limit,
                    most_exponent);
    return {};
}

}  // namespace

result<geometries> buffered_rows(queue& on, geometries const& of, double distance, buffer_options const& how) {
    auto const rows = of.rows();
    KILN_TRY(auto l, kept_layer::distinct(on, of));
    buffer_shape const shape{std::abs(distance),
                             distance < 0 ? -1 : 1,
                             how.mitre_limit,
                             static_cast<cap_kind>(how.caps),
                             static_cast<join_kind>(how.joins),
                             quarter_of(how.quarter)};
    auto const* const dimension = reinterpret_cast<signed char const*>(l.dimensions().data());
    buffer<std::uint32_t> vanishes;
    if (distance < 0) {
        KILN_TRY(auto const around, l.row_boxes(on));
        KILN_TRY(vanishes, on.room<std::uint32_t>(rows));
        double const least_side = how.joins == join_style::round ? 2 * 0.38 * shape.distance : -1;
        KILN_CHECK(on.launch(find_vanishing{dimension, around.data(), least_side, vanishes.data()}, rows));
    }
    u32 const* const which_vanish = distance < 0 ? vanishes.data() : nullptr;
    // Of rows that are not crowded, then of those that are: what comes of a row does not depend on what others there are.
    pieces_of_rows pieces[2];
    if (distance != 0) {
        KILN_TRY(auto segments, on.filled<std::uint64_t>(rows, 0));
        KILN_TRY(auto short_ones, on.filled<std::uint64_t>(rows, 0));
        KILN_TRY(auto signs, on.room<double>(l.paths()));
        KILN_CHECK(on.launch(find_path_signs{l.view(), signs.data()}, l.paths()));
        KILN_CHECK(
            on.launch(count_short_segments{l.view(), shape.distance, raw(segments), raw(short_ones)}, l.vertices()));
        for (bool const in_blocks : {false, true}) {
            piece_choice const which{
                {l.view(), signs.data(), shape}, {raw(segments), raw(short_ones)}, in_blocks, which_vanish};
            KILN_TRY(pieces[in_blocks ? 1 : 0], cut_pieces(on, l, which));
        }
        KILN_CHECK(join_neighbours(on, pieces[1]));
    } else {
        for (auto& none : pieces) {
            KILN_TRY(auto first, on.filled<std::int32_t>(1, 0));
            KILN_TRY(none.rings, kept_layer::of_rings(on, {}, std::move(first), {}));
        }
    }
    auto const plain = pieces[0].row_of.size(), crowded = pieces[1].row_of.size();
    KILN_TRY(auto worlds, on.room<std::int32_t>(rows + plain + crowded));
    KILN_CHECK(on.launch(worlds_of_pieces{dimension, which_vanish, pieces[0].row_of.data(), rows, worlds.data()},
                         rows + plain));
    KILN_CHECK(on.launch(worlds_of_pieces{nullptr, nullptr, pieces[1].row_of.data(), 0, worlds.data() + rows + plain},
                         crowded));
    KILN_TRY(auto both, kept_layer::joined(on, l, pieces[0].rings));
    if (crowded > 0) {
        KILN_TRY(both, kept_layer::joined(on, both, pieces[1].rings));
    }
    auto const what = distance < 0 ? set_operation::difference : set_operation::union_;
    KILN_TRY(auto parts, put_together(on, std::move(both), {"spatial_buffer", worlds, rows, what}, rows));
    KILN_TRY(parts.validity, on.room<std::uint8_t>((rows + 7) / 8));
    KILN_CHECK(
        on.launch(set_validity{l.states().data(), l.states().data(), rows, parts.validity->data()}, (rows + 7) / 8));
    return geometries::make(std::move(parts));
}

result<geometries> buffer_of(stream_ref on, geometries const& of, double distance, buffer_options const& how) {
    KILN_CHECK(check_buffer(distance, how));
    KILN_TRY(auto const call, runtime::operation_call::begin(buffer_operation, facts_of(of)));
    KILN_TRY(auto const here, brought(call, on, of));
    if (!call.on_gpu()) KILN_CHECK(require_valid(here));
    return with_queue(call.on_gpu(), on, here.device(),
                      [&](queue& q) { return buffered_rows(q, here, distance, how); });
}

}  // namespace kiln::spatial
