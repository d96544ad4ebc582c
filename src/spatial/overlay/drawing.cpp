// SPDX-License-Identifier: Apache-2.0
#include "spatial/overlay/drawing.hpp"

#include "spatial/overlay_rings.cuh"

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// Doubling reaches everything after as many steps as there are bits in the longest ring; whether it has is asked now and then.
constexpr int steps_between_questions = 4;
constexpr int most_steps = 32;

}  // namespace

struct drawing::rings {
    std::size_t count = 0, vertices = 0, polygons = 0;
    buffer<point> at;
    buffer<std::int32_t> ring_of, first, result;
    std::size_t results = 0;
    buffer<std::uint64_t>
        least;  // of each ring the vertex where it is leftmost and lowest, and that, then of each result the first shell
    buffer<std::uint64_t> numbers;  // of shells and of holes, by result
    buffer<std::uint8_t> is_shell;
    buffer<std::int32_t> shell;
    buffer<std::int32_t> order, rank;  // empty: as they are

    [[nodiscard]] drawn_rings view() const noexcept { return {at.data(), ring_of.data(), first.data(), result.data()}; }
    [[nodiscard]] u64* lowest() const noexcept { return raw(least); }
    [[nodiscard]] shell_counts counts() const noexcept {
        return {raw(numbers), raw(numbers) + results, raw(least) + 3 * count};
    }
};

result<void> drawing::order(result_borders const& of) {
    auto const n = of.key.size();
    auto key = of.key;
    KILN_TRY(auto number, on_.room<std::int32_t>(n));
    KILN_CHECK(on_.launch(number_words{number.data()}, n));
    KILN_CHECK(on_.sort(key, number, 64));
    KILN_TRY(auto is_new, on_.room<std::int64_t>(n + 1));
    KILN_CHECK(on_.launch(count_results{raw(key), raw(is_new)}, n));
    KILN_TRY(auto const total, on_.total_sync(is_new));
    results_ = static_cast<std::size_t>(total);
    KILN_TRY(piece_, on_.room<std::int32_t>(n));
    KILN_TRY(result_, on_.room<std::int32_t>(n));
    KILN_TRY(left_, on_.room<std::int32_t>(results_));
    KILN_TRY(right_, on_.room<std::int32_t>(results_));
    KILN_TRY(first_, on_.room<std::int32_t>(results_ + 1));
    return on_.launch(set_results{raw(key), raw(is_new), number.data(), of.piece.data(), piece_.data(), result_.data(),
                                  left_.data(), right_.data(), first_.data(), n},
                      n);
}

result<geometry_parts> drawing::draw() {
    KILN_CHECK(link());
    KILN_TRY(auto made, draw_rings());
    return assemble(made, results_, nullptr);
}

result<geometry_parts> drawing::draw(std::size_t rows) {
    KILN_CHECK(link());
    KILN_TRY(auto made, draw_rings());
    return assemble(made, rows, left_.data());
}

result<void> drawing::link() {
    auto const n = piece_.size();
    auto const place_bits = bits_for(of_.places());
    KILN_TRY(auto key, on_.room<std::uint64_t>(2 * n));
    KILN_TRY(auto end, on_.room<std::int32_t>(2 * n));
    KILN_CHECK(on_.launch(end_keys{pieces(), result_.data(), place_bits, raw(key), end.data()}, 2 * n));
    KILN_CHECK(on_.sort(key, end, place_bits + bits_for(results_)));
    KILN_TRY(next_, on_.room<std::int32_t>(n));
    KILN_TRY(auto changed, on_.filled<std::int64_t>(1, 0));
    link_pieces to_next{pieces(), raw(key), end.data(), 2 * n, nullptr, next_.data(), counts_in(changed)};
    KILN_CHECK(on_.launch(to_next, 2 * n));
    // Where a ring comes to a place again, hole and shell come apart.
    KILN_TRY(auto const first, first_of_rings(next_));
    to_next.ring = first.data();
    return on_.launch(to_next, 2 * n);
}

template <class Step>
result<void> drawing::until_nothing_changes(Step step) {
    KILN_TRY(auto const changed, on_.filled<std::uint64_t>(most_steps, 0));
    for (int taken = 0; taken < most_steps;) {
        for (int k = 0; k < steps_between_questions; ++k, ++taken) KILN_CHECK(step(raw(changed) + taken));
        std::uint64_t more = 0;
        KILN_CHECK(on_.read_sync({{changed.data() + taken - 1, more}}));
        if (more == 0) break;
    }
    return {};
}

result<buffer<std::int32_t>> drawing::first_of_rings(buffer<std::int32_t> const& next) {
    auto const n = next.size();
    buffer<std::int32_t> first[2], jump[2];
    for (auto* const b : {first, jump})
        for (int k = 0; k < 2; ++k) {
            KILN_TRY(b[k], on_.room<std::int32_t>(n));
        }
    KILN_CHECK(on_.launch(begin_rings{next.data(), first[0].data(), jump[0].data()}, n));
    KILN_CHECK(until_nothing_changes([&](u64* changed) -> result<void> {
        KILN_CHECK(
            on_.launch(double_rings{first[0].data(), jump[0].data(), first[1].data(), jump[1].data(), changed}, n));
        std::swap(first[0], first[1]), std::swap(jump[0], jump[1]);
        return {};
    }));
    return first[0];
}

result<buffer<std::int32_t>> drawing::vertices_left(buffer<std::int32_t> const& next,
                                                    buffer<std::int32_t> const& first) {
    auto const n = next.size();
    buffer<std::int32_t> jump[2], left[2];
    for (auto* const b : {jump, left})
        for (int k = 0; k < 2; ++k) {
            KILN_TRY(b[k], on_.room<std::int32_t>(n));
        }
    KILN_CHECK(on_.launch(begin_ranks{pieces(), next.data(), first.data(), jump[0].data(), left[0].data()}, n));
    KILN_CHECK(until_nothing_changes([&](u64* changed) -> result<void> {
        KILN_CHECK(
            on_.launch(double_ranks{jump[0].data(), left[0].data(), jump[1].data(), left[1].data(), changed}, n));
        std::swap(jump[0], jump[1]), std::swap(left[0], left[1]);
        return {};
    }));
    return left[0];
}

result<drawing::rings> drawing::draw_rings() {
    auto const n = piece_.size();
    rings out;
    KILN_TRY(auto const first, first_of_rings(next_));
    KILN_TRY(auto const left, vertices_left(next_, first));
    KILN_TRY(auto place, on_.room<std::int64_t>(n + 1));
    KILN_TRY(auto begin, on_.room<std::int64_t>(n + 1));
    KILN_CHECK(on_.launch(count_rings{first.data(), left.data(), pieces(), raw(place), raw(begin)}, n));
    KILN_CHECK(on_.sum(begin));
    KILN_CHECK(on_.sum(place));
    std::int64_t total = 0, items = 0;
    KILN_CHECK(on_.read_sync({{place.data() + n, total}, {begin.data() + n, items}}));
    if (items > 0x7fffffff - static_cast<std::int64_t>(n))
        return fail(errc::unsupported, "overlay: {} vertices in the result: take the arrays in parts", items);
    out.count = high_of(total), out.vertices = low_of(total);
    KILN_TRY(out.first, on_.room<std::int32_t>(out.count + 1));
    KILN_TRY(out.result, on_.room<std::int32_t>(out.count));
    KILN_CHECK(on_.launch(set_rings{raw(place), result_.data(), n, {out.first.data(), out.result.data()}}, n + 1));
    KILN_TRY(out.at, on_.room<point>(out.vertices));
    KILN_TRY(out.ring_of, on_.room<std::int32_t>(out.vertices));
    auto const share = static_cast<double>(n) / static_cast<double>(std::max<std::int64_t>(items, 1));
    KILN_CHECK(on_.launch(write_rings{pieces(), n, share, raw(begin), raw(place), first.data(), left.data(),
                                      out.at.data(), out.ring_of.data()},
                          static_cast<std::size_t>(items)));
    KILN_CHECK(find_shells(out));
    return out;
}

result<void> drawing::find_shells(rings& of) {
    auto const n = of.count;
    KILN_TRY(of.least, on_.filled<std::uint64_t>(3 * n + results_, ~0U));
    KILN_TRY(of.numbers, on_.filled<std::uint64_t>(2 * results_ + 2, 0));
    auto* const x = raw(of.least) + n;
    for (i32 step = 0; step < 3; ++step)
        KILN_CHECK(on_.launch(lowest_of_rings{of.view(), x, x + n, of.lowest(), step}, of.vertices));
    KILN_TRY(of.is_shell, on_.room<std::uint8_t>(n));
    of.results = results_;
    auto const counts = of.counts();
    KILN_CHECK(on_.launch(kiln_spatial::find_shells{of.view(), of.lowest(), of.is_shell.data(), counts}, n));
    KILN_TRY(of.shell, on_.room<std::int32_t>(n));
    auto const* const told = of.numbers.data() + 2 * results_;
    auto* const ambiguous = raw(of.numbers) + 2 * results_;
    KILN_CHECK(
        on_.launch(give_holes{of.view(), of.is_shell.data(), counts, of.shell.data(), ambiguous, ambiguous + 1}, n));
    std::uint64_t many = 0, several = 0;
    KILN_CHECK(on_.read_sync({{told, many}, {told + 1, several}}));
    if (several != 0) KILN_CHECK(put_in_order(of));
    if (many == 0) return {};
    auto const holes = static_cast<std::size_t>(many);
    return holes <= most_holes_by_edges(of.vertices) ? find_shells_by_edges(of, holes) : find_shells_by_cells(of);
}

// An index takes as long as so many looks at every edge.
std::size_t drawing::most_holes_by_edges(std::size_t edges) const {
    constexpr std::size_t looks_of_thread = 4096, of_any = 32;
    return std::max(of_any, looks_of_thread * on_.threads() / std::max<std::size_t>(edges, 1));
}

result<void> drawing::find_shells_by_edges(rings& of, std::size_t holes) {
    auto const n = of.count;
    lost_holes const lost{of.view(), of.is_shell.data(), of.counts()};
    begun_rings const by{of.view(), of.lowest()};
    KILN_TRY(auto place, on_.room<std::int64_t>(n + 1));
    KILN_CHECK(on_.launch(count_lost_holes{lost, raw(place)}, n));
    KILN_TRY(auto const total, on_.total_sync(place));
    KILN_TRY(auto hole, on_.room<std::int32_t>(holes));
    KILN_TRY(auto const first, on_.filled<std::uint64_t>(results_, ~0U));
    KILN_TRY(auto const best, on_.filled<std::uint32_t>(holes, ~0U));
    KILN_TRY(auto const crossed, on_.filled<std::uint32_t>(low_of(total), 0));
    KILN_CHECK(on_.launch(list_lost_holes{lost, raw(place), hole.data(), raw(first)}, n));
    KILN_CHECK(
        on_.launch(crossed_to_holes{lost, by, raw(place), hole.data(), raw(first), crossed.data()}, of.vertices));
    KILN_CHECK(on_.launch(offer_shells{lost, by, raw(place), raw(first), crossed.data(), best.data()}, n));
    return on_.launch(take_shells{hole.data(), best.data(), of.shell.data()}, holes);
}

result<void> drawing::put_in_order(rings& of) {
    auto const n = of.count;
    KILN_TRY(auto key, on_.room<std::uint64_t>(n));
    KILN_TRY(auto ring, on_.room<std::int32_t>(n));
    KILN_CHECK(on_.launch(number_words{ring.data()}, n));
    for (i32 step = 0; step < 3; ++step) {
        KILN_CHECK(on_.launch(ring_order_keys{of.view(), of.lowest(), step, ring.data(), raw(key)}, n));
        KILN_CHECK(on_.sort(key, ring, step < 2 ? 64 : bits_for(results_)));
    }
    KILN_TRY(of.order, on_.room<std::int32_t>(n));
    KILN_TRY(of.rank, on_.room<std::int32_t>(n));
    return on_.launch(rank_rings{of.view(), of.lowest(), ring.data(), n, of.order.data(), of.rank.data()}, n);
}

result<void> drawing::find_shells_by_cells(rings& of) {
    KILN_TRY(auto const layer, kept_layer::of_rings(on_, of.at, of.first, of.ring_of));
    auto const worth_it = of_.worlds().empty() ? kept_worlds::many : of_.worlds().worth_it;
    kept_worlds const results{of.result, of.result, results_, worth_it, results_ >= worth_it};
    KILN_TRY(auto const cells,
             kept_cells::make(on_, layer, {.cells_per_edge = 1, .split_above = 64, .edges_per_cell = 16}, results));
    return on_.launch(
        innermost_shells{{of.view(), of.lowest()}, of.is_shell.data(), of.counts(), cells.by_world(), of.shell.data()},
        of.count);
}

result<geometry_parts> drawing::assemble(rings const& of, std::size_t rows, std::int32_t const* row_of) {
    auto const n = of.count;
    KILN_TRY(auto key, on_.room<std::uint64_t>(n));
    KILN_TRY(auto ring, on_.room<std::int32_t>(n));
    auto const number = [](buffer<std::int32_t> const& b) { return b.empty() ? nullptr : b.data(); };
    KILN_CHECK(on_.launch(
        ring_keys{of.is_shell.data(), of.shell.data(), number(of.order), number(of.rank), raw(key), ring.data()}, n));
    KILN_CHECK(on_.sort(key, ring, 1 + bits_for(n)));
    KILN_TRY(auto rank, on_.room<std::int32_t>(n));
    KILN_TRY(auto size, on_.room<std::int64_t>(n + 1));
    KILN_CHECK(on_.launch(ring_sizes{of.view(), of.is_shell.data(), ring.data(), rank.data(), raw(size)}, n));
    KILN_TRY(auto const total, on_.total_sync(size));
    KILN_TRY(auto polygons, on_.filled<std::int64_t>(rows + 1, 0));
    KILN_CHECK(on_.launch(count_row_polygons{of.view(), of.is_shell.data(), row_of, counts_in(polygons)}, n));
    KILN_CHECK(on_.sum(polygons));

    geometry_parts out;
    out.kind = family::multipolygon;
    KILN_TRY(out.x, on_.room<double>(of.vertices));
    KILN_TRY(out.y, on_.room<double>(of.vertices));
    KILN_TRY(out.offsets[0], on_.room<std::int32_t>(rows + 1));
    KILN_TRY(out.offsets[1], on_.room<std::int32_t>(std::size_t{high_of(total)} + 1));
    KILN_TRY(out.offsets[2], on_.room<std::int32_t>(n + 1));
    KILN_CHECK(on_.launch(write_row_offsets{raw(polygons), out.offsets[0].data()}, rows + 1));
    KILN_CHECK(on_.launch(write_ring_offsets{raw(size), n, out.offsets[1].data(), out.offsets[2].data()}, n + 1));
    KILN_CHECK(on_.launch(
        write_ring_vertices{of.view(), of.lowest(), rank.data(), raw(size), out.x.data(), out.y.data()}, of.vertices));
    return out;
}

result<kept_layer> kept_layer::of_paths(queue& on, path_rows of, path_kind what) {
    kept_layer out;
    out.rows_ = of.first.size() - 1;
    out.at_ = std::move(of.at), out.path_first_ = std::move(of.first), out.path_of_ = std::move(of.path_of);
    KILN_TRY(out.row_of_, on.room<std::int32_t>(out.rows_));
    KILN_TRY(out.row_first_, on.room<std::int32_t>(out.rows_ + 1));
    KILN_TRY(out.kind_, on.room<std::uint8_t>(out.rows_));
    KILN_TRY(out.state_, on.room<std::uint8_t>(out.rows_));
    KILN_CHECK(on.launch(
        ring_rows{out.row_of_.data(), out.row_first_.data(), out.kind_.data(), out.state_.data(), out.rows_, what},
        out.rows_ + 1));
    return out;
}

result<kept_layer> kept_layer::of_rings(queue& on, buffer<point> at, buffer<std::int32_t> first,
                                        buffer<std::int32_t> ring_of) {
    return of_paths(on, {std::move(at), std::move(first), std::move(ring_of)}, ring_path);
}
result<kept_layer> kept_layer::of_lines(queue& on, buffer<point> at, buffer<std::int32_t> first,
                                        buffer<std::int32_t> line_of) {
    return of_paths(on, {std::move(at), std::move(first), std::move(line_of)}, line_path);
}

}  // namespace kiln::spatial
