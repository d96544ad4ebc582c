// SPDX-License-Identifier: Apache-2.0
#include "spatial/overlay/row_chunks.hpp"

#include "spatial/overlay_noding.cuh"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::spatial {

using namespace kiln_spatial;

// ---- Rows of a layer ----

result<chosen_layer> kept_layer::choose(queue& on, buffer<std::int32_t> const& rows) const {
    auto const n = rows.size();
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    chosen_rows const of{view(), rows.data(), raw(place)};
    KILN_CHECK(on.launch(count_chosen{of}, n));
    KILN_TRY(auto const total, on.total_sync(place));
    auto const paths = high_of(total), vertices = low_of(total);
    chosen_layer out;
    auto& l = out.layer;
    l.rows_ = n;
    KILN_TRY(l.row_first_, on.room<std::int32_t>(n + 1));
    KILN_TRY(l.state_, on.room<std::uint8_t>(n));
    if (!dimension_.empty()) {
        KILN_TRY(l.dimension_, on.room<std::int8_t>(n));
    }
    KILN_TRY(out.shift, on.room<std::int32_t>(n));
    KILN_TRY(l.path_first_, on.room<std::int32_t>(std::size_t{paths} + 1));
    KILN_TRY(l.row_of_, on.room<std::int32_t>(paths));
    KILN_TRY(l.kind_, on.room<std::uint8_t>(paths));
    KILN_TRY(l.at_, on.room<point>(vertices));
    KILN_TRY(l.path_of_, on.room<std::int32_t>(vertices));
    auto const* const dimension = reinterpret_cast<signed char const*>(dimension_.data());
    KILN_CHECK(
        on.launch(choose_rows{of, n, state_.data(), dimension_.empty() ? nullptr : dimension, l.row_first_.data(),
                              l.state_.data(), reinterpret_cast<signed char*>(l.dimension_.data()), out.shift.data()},
                  n + 1));
    KILN_CHECK(on.launch(choose_paths{of, n, paths, l.path_first_.data(), l.row_of_.data(), l.kind_.data()},
                         std::size_t{paths} + 1));
    KILN_CHECK(on.launch(choose_vertices{of, n, l.at_.data(), l.path_of_.data()}, vertices));
    return out;
}

result<kept_layer> kept_layer::brought_sync(queue const& to, stream_ref on) const {
    kept_layer out;
    out.rows_ = rows_;
    auto const bring = [&](auto& b, auto const& from) -> result<void> {
        KILN_TRY(b, spatial::brought_sync(to, on, from));
        return {};
    };
    KILN_CHECK(bring(out.at_, at_));
    KILN_CHECK(bring(out.path_first_, path_first_));
    KILN_CHECK(bring(out.path_of_, path_of_));
    KILN_CHECK(bring(out.row_of_, row_of_));
    KILN_CHECK(bring(out.row_first_, row_first_));
    KILN_CHECK(bring(out.kind_, kind_));
    KILN_CHECK(bring(out.state_, state_));
    if (!dimension_.empty()) KILN_CHECK(bring(out.dimension_, dimension_));
    return out;
}

// ---- Rows that may meet ----

namespace {

template <class T>
result<std::vector<T>> values_here(stream_ref on, buffer<T> const& of) {
    KILN_TRY(auto const here, of.to_host_sync(on));
    return std::vector<T>(here.host_span().begin(), here.host_span().end());
}

}  // namespace

result<row_neighbours> row_neighbours::make(chunk_places const& in, kept_layer const& of,
                                            buffer<std::int32_t> const& worlds, kept_grids const& grids) {
    row_neighbours out;
    KILN_TRY(auto const boxes, of.row_boxes(in.home));
    KILN_TRY(out.boxes_, values_here(in.on, boxes));
    KILN_TRY(auto const first, in.home.room<std::int32_t>(of.rows() + 1));
    KILN_CHECK(in.home.launch(first_vertices{of.view(), first.data()}, of.rows() + 1));
    KILN_TRY(out.first_, values_here(in.on, first));
    if (!worlds.empty()) {
        KILN_TRY(out.worlds_, values_here(in.on, worlds));
    }
    out.step_ = grids.step;
    if (!grids.scales.empty()) {
        KILN_TRY(out.scales_, values_here(in.on, grids.scales));
    }
    std::vector<box> there;
    for (std::int32_t row = 0; row < static_cast<std::int32_t>(out.rows()); ++row)
        if (out.items(row) > 0) out.in_tree_.push_back(row), there.push_back(out.boxes_[static_cast<std::size_t>(row)]);
    out.tree_ = host_tree{there};
    if (!out.worlds_.empty()) {
        out.by_world_ = out.in_tree_;
        std::ranges::stable_sort(out.by_world_, {},
                                 [&](std::int32_t row) { return out.worlds_[static_cast<std::size_t>(row)]; });
    }
    out.seen_.assign(out.rows(), 0);
    return out;
}

std::size_t row_neighbours::items(std::int32_t row) const noexcept {
    auto const i = static_cast<std::size_t>(row);
    auto const n = static_cast<std::size_t>(first_[i + 1] - first_[i]);
    return n == 0 || (!worlds_.empty() && worlds_[i] < 0) ? 0 : n + 1;
}
std::size_t row_neighbours::items(std::span<std::int32_t const> of_rows) const noexcept {
    return std::accumulate(of_rows.begin(), of_rows.end(), std::size_t{0},
                           [&](std::size_t sum, std::int32_t row) { return sum + items(row); });
}

std::vector<std::int32_t> row_neighbours::of(std::span<std::int32_t const> some, row_test const& wanted) {
    ++turn_;
    for (auto const row : some) (void)is_new(row);
    std::vector<std::int32_t> out;
    for (auto const row : some)
        each(row, [&](std::int32_t other) {
            if (wanted(other) && is_new(other)) out.push_back(other);
        });
    std::ranges::sort(out);
    return out;
}

result<void> row_neighbours::in_chunks(chunk_places const& in, std::span<std::int32_t const> some,
                                       row_test const& wanted, range_user const& use) {
    for (std::size_t first = 0; first < some.size();) {
        ++turn_;
        std::size_t last = first, sum = 0;
        for (; last < some.size(); ++last) {
            std::size_t more = is_new(some[last]) ? items(some[last]) : 0;
            each(some[last], [&](std::int32_t other) {
                if (wanted(other) && is_new(other)) more += items(other);
            });
            if (last > first && !in.fits(sum + more)) break;
            sum += more;
        }
        KILN_CHECK(halved_where_too_large(first, last, use));
        first = last;
    }
    return {};
}

error too_large(std::string_view what, std::size_t items, chunk_places const& in) {
    return fail(errc::out_of_memory, "{} with what it meets may need {} bytes, of {}", what,
                items * chunk_places::bytes_of_item, in.most_bytes);
}

result<void> halved_where_too_large(std::size_t first, std::size_t last, row_neighbours::range_user const& use) {
    auto done = use(first, last);
    if (done || done.error().code() != errc::out_of_memory || last - first < 2) return done;
    auto const middle = first + (last - first) / 2;
    KILN_CHECK(halved_where_too_large(first, middle, use));
    return halved_where_too_large(middle, last, use);
}

// ---- Divisions ----

// Some rows at home and where the work is done.
struct divisions_in_chunks::chunk {
    chosen_layer home;
    kept_layer work;
    buffer<std::uint8_t> roles;
    kept_grids grids;
    [[nodiscard]] division_question question() const noexcept { return {work, grids.view(), roles.data()}; }
};

result<divisions_in_chunks::chunk> divisions_in_chunks::taken(kept_layer const& of, std::vector<std::int32_t> rows,
                                                              std::vector<std::uint8_t> const& roles,
                                                              row_neighbours const& near, std::size_t worth_it) {
    chunk out;
    KILN_TRY(auto const chosen, uploaded(in_.home, in_.on, rows));
    KILN_TRY(out.home, of.choose(in_.home, chosen));
    KILN_TRY(out.work, out.home.layer.brought_sync(in_.work, in_.on));
    KILN_TRY(out.roles, uploaded(in_.work, in_.on, roles));
    out.grids.step = near.step();
    if (!near.scales().empty()) {
        std::vector<double> scales;
        for (auto const row : rows) scales.push_back(near.scales()[static_cast<std::size_t>(row)]);
        KILN_TRY(out.grids.scales, uploaded(in_.work, in_.on, scales));
    }
    kept_worlds own;
    if (!near.worlds().empty()) {
        for (auto& row : rows) row = near.worlds()[static_cast<std::size_t>(row)];
        KILN_TRY(auto of_row, uploaded(in_.work, in_.on, rows));
        KILN_TRY(own, kept_worlds::make(in_.work, std::move(of_row), worth_it));
    }
    KILN_CHECK(out.work.keep_elements(in_.work, own));
    return out;
}

result<void> divisions_in_chunks::bring_home(chunk const& from, found_divisions const& found) {
    ++chunks_;
    if (found.count == 0) return {};
    KILN_TRY(auto segments, copied_sync(in_.home, in_.on, found.segment_of));
    KILN_TRY(auto places, copied_sync(in_.home, in_.on, found.at));
    KILN_CHECK(
        in_.home.launch(tell_segments{from.home.layer.view(), from.home.shift.data(), segments.data()}, found.count));
    segments_.push_back(std::move(segments)), places_.push_back(std::move(places));
    return {};
}

result<found_divisions> divisions_in_chunks::all_found() {
    found_divisions out;
    auto const segments = std::exchange(segments_, {});
    auto const places = std::exchange(places_, {});
    for (auto const& s : segments) out.count += s.size();
    if (out.count > 0x7fffffff)
        return fail(errc::unsupported, "overlay: segments are divided in {} places: take the arrays in parts",
                    out.count);
    KILN_TRY(out.segment_of, end_to_end(in_.home, segments));
    KILN_TRY(out.at, end_to_end(in_.home, places));
    KILN_TRY(out.number, in_.home.room<std::int32_t>(out.count));
    KILN_CHECK(in_.home.launch(number_words{out.number.data()}, out.count));
    return out;
}

namespace {

using row_numbers = std::vector<std::int32_t>;

// Rows that are gone through, and where each of them comes.
class ranked_rows {
public:
    explicit ranked_rows(std::size_t all) : rank_(all, none) {}
    void add(std::int32_t row) {
        rank_[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(rows_.size());
        rows_.push_back(row);
    }
    [[nodiscard]] std::span<std::int32_t const> all() const noexcept { return rows_; }
    [[nodiscard]] std::vector<std::int32_t> part(std::size_t first, std::size_t last) const {
        auto const from = rows_.begin();
        return {from + static_cast<std::ptrdiff_t>(first), from + static_cast<std::ptrdiff_t>(last)};
    }
    // Not one of those, or one that comes at `last` or after it.
    [[nodiscard]] bool is_left(std::int32_t row, std::size_t last) const noexcept {
        auto const at = rank_[static_cast<std::size_t>(row)];
        return at == none || static_cast<std::size_t>(at) >= last;
    }

private:
    static constexpr std::int32_t none = -1;
    std::vector<std::int32_t> rank_, rows_;
};

}  // namespace

result<void> divisions_in_chunks::require_room(row_neighbours const& near, std::span<std::int32_t const> own,
                                               std::span<std::int32_t const> others) const {
    auto const items = near.items(own) + near.items(others);
    if (in_.fits(items)) return {};
    return too_large(name_of_(own[0]), items, in_);
}

result<found_divisions> divisions_in_chunks::crossings(queue& home, kept_layer& of, kept_worlds const& worlds,
                                                       buffer<std::uint32_t> const& asks,
                                                       buffer<std::uint32_t> const& moved) {
    KILN_TRY(auto near, row_neighbours::make(in_, of, worlds.of_row));
    std::vector<std::uint32_t> asking;
    if (!asks.empty()) {
        KILN_TRY(auto const rows, home.filled<std::uint32_t>(of.rows(), 0));
        KILN_CHECK(home.launch(find_asking_rows{of.view(), asks.data(), rows.data()}, of.vertices()));
        KILN_TRY(asking, values_here(in_.on, rows));
    }
    // Of two rows that ask, the first has the other one; of a row that asks and one that does not, it has that one.
    ranked_rows rows{of.rows()};
    for (std::int32_t row = 0; row < static_cast<std::int32_t>(of.rows()); ++row)
        if (near.items(row) > 0 && (asking.empty() || asking[static_cast<std::size_t>(row)] != 0)) rows.add(row);
    auto const ask = [&](row_numbers some, row_numbers const& others, std::uint8_t own_role) -> result<void> {
        KILN_CHECK(require_room(near, some, others));
        std::vector<std::uint8_t> roles(some.size(), own_role);
        roles.resize(some.size() + others.size(), held_against);
        some.insert(some.end(), others.begin(), others.end());
        KILN_TRY(auto const c, taken(of, std::move(some), roles, near, worlds.worth_it));
        auto const& l = c.home.layer;
        buffer<std::uint32_t> own_asks;
        if (!asks.empty()) {
            KILN_TRY(auto const chosen, home.room<std::uint32_t>(l.vertices()));
            KILN_CHECK(
                home.launch(choose_asking{l.view(), c.home.shift.data(), asks.data(), chosen.data()}, l.vertices()));
            KILN_TRY(own_asks, brought_sync(in_.work, in_.on, chosen));
        }
        KILN_TRY(auto const own_moved, in_.work.filled<std::uint32_t>(l.vertices(), 0));
        KILN_TRY(auto const found,
                 find_divisions(in_.work, c.question(), asks.empty() ? nullptr : own_asks.data(), own_moved));
        KILN_TRY(auto const told, brought_sync(home, in_.on, own_moved));
        KILN_CHECK(home.launch(tell_moved{l.view(), c.home.shift.data(), told.data(), moved.data()}, l.vertices()));
        return bring_home(c, found);
    };
    // One row that is too large with all it may meet is held against some of them, and then against the others.
    std::function<result<void>(row_numbers const&, row_numbers const&, std::uint8_t)> const ask_one =
        [&](row_numbers const& own, row_numbers const& others, std::uint8_t role) -> result<void> {
        auto done = ask(own, others, role);
        if (done || done.error().code() != errc::out_of_memory || others.size() < 2) return done;
        auto const middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
        KILN_CHECK(ask_one(own, {others.begin(), middle}, role));
        return ask_one(own, {middle, others.end()}, own_row_again);
    };
    auto const find = [&](std::size_t first, std::size_t last) -> result<void> {
        auto const some = rows.part(first, last);
        auto const others = near.of(some, [&](std::int32_t row) { return rows.is_left(row, last); });
        return some.size() == 1 ? ask_one(some, others, own_row) : ask(some, others, own_row);
    };
    KILN_CHECK(near.in_chunks(
        in_, rows.all(), [](std::int32_t) { return true; }, find));
    return all_found();
}

result<found_divisions> divisions_in_chunks::squares(queue&, kept_layer& of, kept_worlds const& worlds,
                                                     kept_grids const& grids, hot_vertices which) {
    KILN_TRY(auto near, row_neighbours::make(in_, of, worlds.of_row, grids));
    ranked_rows rows{of.rows()};
    for (std::int32_t row = 0; row < static_cast<std::int32_t>(of.rows()); ++row)
        if (near.items(row) > 0) rows.add(row);
    auto const all = [](std::int32_t) { return true; };
    std::size_t met = 0;
    auto const find = [&](std::size_t first, std::size_t last) -> result<void> {
        auto some = rows.part(first, last);
        auto const others = near.of(some, all);
        KILN_CHECK(require_room(near, some, others));
        std::vector<std::uint8_t> roles(some.size(), own_row);
        for (auto const row : others) roles.push_back(rows.is_left(row, last) ? held_against : only_there);
        some.insert(some.end(), others.begin(), others.end());
        KILN_TRY(auto const c, taken(of, std::move(some), roles, near, worlds.worth_it));
        KILN_TRY(auto const moved, in_.work.filled<std::uint32_t>(c.work.vertices(), 0));
        KILN_TRY(auto const crossings, find_divisions(in_.work, c.question(), nullptr, moved));
        KILN_TRY(auto const hot, find_hot(in_.work, c.question(), crossings, which));
        KILN_CHECK(bring_home(c, hot));
        met += hot.crossings;
        return {};
    };
    KILN_CHECK(near.in_chunks(in_, rows.all(), all, find));
    KILN_TRY(auto out, all_found());
    out.crossings = met;
    return out;
}

}  // namespace kiln::spatial
