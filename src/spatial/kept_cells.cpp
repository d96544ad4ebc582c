// SPDX-License-Identifier: Apache-2.0
#include "spatial/kept_cells.hpp"

#include "spatial/point_location.cuh"

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

u32* edges_in(buffer<std::int32_t> const& b, std::size_t from = 0) { return reinterpret_cast<u32*>(b.data()) + from; }

error too_many(std::string_view what) {
    return fail(errc::unsupported, "spatial: more than 2^31 {} in the index: take the areas in parts", what);
}

}  // namespace

// Level by level. What a level needs of the one before are its entries and which of its cells are divided. Of one layer or two, each a storey.
class cell_builder {
public:
    cell_builder(queue& on, std::initializer_list<kept_layer const*> of, cell_options const& how, box const& around,
                 std::size_t edges)
        : on_{on}, how_{how}, around_{around}, edges_{edges}, by_{} {
        take(frame_cells(around, edges, how));
        std::size_t most_rows = 0;
        for (auto const* const l : of) layers_.push_back(l->view()), most_rows = std::max(most_rows, l->rows());
        by_.row_bits = bits_for(most_rows);
    }

    // Each world in a frame of its own. A fence.
    result<void> part(kept_layer const& of, kept_worlds const& worlds) {
        built_.world_of_ = worlds.number;
        auto const n = worlds.count + 1;
        KILN_TRY(auto const boxes, of.row_boxes(on_));
        KILN_TRY(around_worlds_, on_.filled<std::uint64_t>(4 * n, ~0U));
        KILN_TRY(edges_of_worlds_, on_.filled<std::uint64_t>(n, 0));
        KILN_CHECK(on_.launch(
            world_extents{of.view(), boxes.data(), worlds.number.data(), raw(around_worlds_), raw(edges_of_worlds_)},
            of.rows()));
        return frame_worlds();
    }

    result<void> build() {
        KILN_CHECK(list_entries());
        cells_ = all_cells();
        for (int left = how_.levels - 1; cells_ > 0; --left) {
            KILN_CHECK(write_level(left));
            KILN_CHECK(divide());
        }
        KILN_TRY(built_.heads_, concatenated(&level::heads, heads_));
        KILN_TRY(built_.records_, concatenated(&level::records, records_));
        KILN_TRY(built_.subs_, concatenated(&level::subs, subs_));
        built_.frame_ = frame_;
        return {};
    }
    [[nodiscard]] kept_cells cells_of(std::size_t storey) const {
        auto out = built_;
        out.at_ = layers_[storey].at;
        out.first_cell_ = static_cast<u32>(storey * all_cells() / layers_.size());
        return out;
    }

private:
    void take(framed_cells const& framed) { frame_ = framed.frame, least_side_ = framed.least_side; }
    [[nodiscard]] bool has_worlds() const { return !edges_of_worlds_.empty(); }

    result<void> frame_worlds() {
        auto const n = edges_of_worlds_.size();
        KILN_TRY(built_.own_, on_.room<world_frame>(n));
        KILN_TRY(auto cells, on_.room<std::int64_t>(n + 1));
        KILN_TRY(auto fewest, on_.filled<std::uint64_t>(2, ~0U));
        KILN_CHECK(on_.launch(make_world_frames{raw(around_worlds_), raw(edges_of_worlds_), how_.cells_per_edge,
                                                built_.own_.data(), raw(cells), raw(fewest)},
                              n));
        KILN_CHECK(on_.sum(cells));
        KILN_CHECK(on_.launch(number_world_cells{raw(cells), built_.own_.data()}, n));
        std::int64_t total = 0;
        std::uint64_t rows = 0, columns = 0;
        KILN_CHECK(on_.read_sync({{cells.data() + n, total}, {fewest.data(), rows}, {fewest.data() + 1, columns}}));
        if (total > head_value) return too_many("cells");
        cells_of_worlds_ = static_cast<std::size_t>(total);
        frame_.rows = static_cast<i32>(~rows), frame_.columns = static_cast<i32>(~columns);  // the most of any
        return {};
    }
    // Fewer and larger cells; false where there are none.
    result<bool> make_coarser() {
        if (!has_worlds()) {
            auto const fewer = coarser(frame_, around_, edges_, how_);
            if (fewer) take(*fewer);
            return fewer.has_value();
        }
        auto const own = built_.own_;
        auto const before = cells_of_worlds_;
        auto const most = frame_;
        how_.cells_per_edge /= 4;
        KILN_CHECK(frame_worlds());
        if (cells_of_worlds_ < before) return true;
        built_.own_ = own, cells_of_worlds_ = before, frame_ = most;
        return false;
    }

    // Where edges cross the lower lines of cells, sorted; every two of them are a span of corners that are inside.
    struct crossed_lines {
        buffer<std::int64_t> counts;  // of cells and lines by vertex, summed
        line_key by;
        buffer<std::uint64_t> line;
        buffer<std::int64_t> lengths;  // of spans, summed
        std::size_t edges = 0, spans = 0, corners = 0;
    };

    struct level {
        buffer<std::uint32_t> heads;
        buffer<cell_record> records;
        buffer<sub_grid> subs;
    };

    [[nodiscard]] entry_list entries() const {
        return {raw(key_), reinterpret_cast<u32 const*>(edge_.data()), key_.size()};
    }
    [[nodiscard]] cell_level where() const {
        return {frames(), parents_.empty() ? nullptr : parents_.data(), parents_.size()};
    }
    [[nodiscard]] cell_frames frames() const {
        return {frame_, has_worlds() ? built_.own_.data() : nullptr, built_.world_of_.data(), edges_of_worlds_.size()};
    }
    [[nodiscard]] std::size_t all_cells() const {
        return has_worlds() ? cells_of_worlds_ : layers_.size() * cells_in(frame_);
    }
    // call(layer, its first line, its first vertex among those of all).
    template <class Call>
    result<void> each_storey(Call call) const {
        std::size_t vertices = 0;
        i32 line = 0;
        for (auto const& l : layers_) {
            KILN_CHECK(call(l, line, vertices));
            vertices += static_cast<std::size_t>(l.vertices), line += frame_.rows;
        }
        return {};
    }
    result<void> sort_entries(std::size_t cells) { return on_.sort(key_, edge_, by_.row_bits + bits_for(cells)); }

    result<crossed_lines> cross_lines() {
        crossed_lines out;
        std::size_t vertices = 0;
        for (auto const& l : layers_) vertices += static_cast<std::size_t>(l.vertices);
        KILN_TRY(out.counts, on_.room<std::int64_t>(vertices + 1));
        KILN_CHECK(each_storey([&](layer const& l, i32, std::size_t first) {
            return on_.launch(edge_counts{l, frames(), raw(out.counts) + first}, static_cast<std::size_t>(l.vertices));
        }));
        KILN_CHECK(on_.sum(out.counts));
        std::int64_t total = 0, corners = 0;
        KILN_CHECK(on_.read_sync({{out.counts.data() + vertices, total}}));
        if (total < 0) return too_many("entries");
        out.edges = high_of(total);
        std::size_t const lines = low_of(total);

        out.by = {bits_for(layers_.size() * static_cast<std::uint64_t>(frame_.rows)),
                  bits_for(static_cast<std::uint64_t>(frame_.columns))};
        KILN_TRY(out.line, on_.room<std::uint64_t>(lines));
        KILN_TRY(auto unused, on_.room<std::int32_t>(lines));
        KILN_CHECK(each_storey([&](layer const& l, i32 first_line, std::size_t first) {
            return on_.launch(edge_lines{l, frames(), out.by, first_line, raw(out.counts) + first, raw(out.line)},
                              static_cast<std::size_t>(l.vertices));
        }));
        KILN_CHECK(on_.sort(out.line, unused, by_.row_bits + out.by.line_bits + out.by.column_bits));
        out.spans = lines / 2;
        KILN_TRY(out.lengths, on_.room<std::int64_t>(out.spans + 1));
        KILN_CHECK(on_.launch(line_spans{out.by, raw(out.line), raw(out.lengths)}, out.spans));
        KILN_CHECK(on_.sum(out.lengths));
        KILN_CHECK(on_.read_sync({{out.lengths.data() + out.spans, corners}}));
        out.corners = static_cast<std::size_t>(corners);
        return out;
    }

    // Corners first, then edges in the order of the rings.
    result<void> list_entries() {
        auto const most_corners = most_corners_for(all_cells());
        KILN_TRY(auto crossed, cross_lines());
        while (crossed.corners > most_corners) {
            KILN_TRY(bool const fewer, make_coarser());
            if (!fewer) break;
            KILN_TRY(crossed, cross_lines());
        }
        auto const n = crossed.corners, edges = crossed.edges;
        if (n + edges > 0x7fffffff) return too_many("entries");

        KILN_TRY(key_, on_.room<std::uint64_t>(n + edges));
        KILN_TRY(edge_, on_.room<std::int32_t>(n + edges));
        KILN_CHECK(on_.launch(corner_entries{crossed.by, by_, raw(crossed.line), raw(crossed.lengths), crossed.spans,
                                             frames(), raw(key_), edges_in(edge_)},
                              n));
        KILN_CHECK(each_storey([&](layer const& l, i32 first_line, std::size_t first) {
            return on_.launch(edge_entries{l, frames(), by_, first_line, raw(crossed.counts) + first, raw(key_) + n,
                                           edges_in(edge_, n)},
                              static_cast<std::size_t>(l.vertices));
        }));
        return sort_entries(all_cells());
    }

    result<void> write_level(int levels_left) {
        auto const e = entries();
        KILN_TRY(auto const ranges, on_.filled<std::uint32_t>(2 * cells_, 0));
        auto* const first = ranges.data();
        auto* const last = first + cells_;
        KILN_TRY(auto counts, on_.room<std::int64_t>(e.count + 1));
        KILN_CHECK(on_.launch(entry_counts{e, raw(counts)}, e.count));
        KILN_CHECK(on_.sum(counts));
        KILN_CHECK(on_.launch(cell_ranges{e, by_, first, last}, e.count));

        cell_sizes const sizes_of{where(),     {how_.split_above, how_.edges_per_cell, least_side_, levels_left},
                                  first,       last,
                                  raw(counts), nullptr,
                                  nullptr};
        std::int64_t records = 0, divided_total = 0, work_total = 0;
        buffer<std::int64_t> divided, work;
        if (levels_left > 0) {
            auto sizes = sizes_of;
            KILN_TRY(divided, on_.room<std::int64_t>(cells_ + 1));
            KILN_TRY(work, on_.room<std::int64_t>(cells_ + 1));
            sizes.divided = raw(divided), sizes.work = raw(work);
            KILN_CHECK(on_.launch(sizes, cells_));
            KILN_CHECK(on_.sum(divided));
            KILN_CHECK(on_.sum(work));
            KILN_CHECK(on_.read_sync({{counts.data() + e.count, records},
                                      {divided.data() + cells_, divided_total},
                                      {work.data() + cells_, work_total}}));
        } else {
            KILN_CHECK(on_.read_sync({{counts.data() + e.count, records}}));
        }
        std::size_t const record_count = low_of(records), divisions = high_of(divided_total);
        work_ = static_cast<std::size_t>(work_total), next_cells_ = low_of(divided_total);
        if (heads_ + cells_ + next_cells_ > head_value || records_ + record_count > head_value)
            return too_many("cells");

        level to;
        KILN_TRY(to.heads, on_.room<std::uint32_t>(cells_));
        KILN_TRY(to.records, on_.room<cell_record>(record_count));
        KILN_TRY(to.subs, on_.room<sub_grid>(divisions));
        buffer<divided_cell> next;
        if (divisions > 0) {
            KILN_TRY(next, on_.room<divided_cell>(divisions));
            KILN_CHECK(on_.launch(divided_cells{sizes_of, raw(divided), raw(work), static_cast<u32>(heads_ + cells_),
                                                next.data(), to.subs.data()},
                                  cells_));
        }
        KILN_CHECK(on_.launch(entry_records{e, by_, raw(counts), to.records.data()}, e.count));
        KILN_CHECK(on_.launch(
            cell_heads{first, last, raw(counts), divisions > 0 ? raw(divided) : nullptr, static_cast<u32>(records_),
                       static_cast<u32>(subs_), to.records.data(), to.heads.data()},
            cells_));
        heads_ += cells_, records_ += record_count, subs_ += divisions;
        levels_.push_back(std::move(to));
        parents_ = std::move(next);
        return {};
    }

    // The same entries for the parts of divided cells: corners by the walk that locates points, edges by another look at them.
    result<void> divide() {
        cells_ = next_cells_;
        if (cells_ == 0) return {};
        divided_entries const d{entries(), layers_.front().at, layers_.back().at, parents_.data(), parents_.size()};
        KILN_TRY(auto counts, on_.room<std::int64_t>(work_ + 1));
        KILN_CHECK(on_.launch(part_counts{d, raw(counts)}, work_));
        KILN_CHECK(on_.sum(counts));
        std::int64_t total = 0;
        KILN_CHECK(on_.read_sync({{counts.data() + work_, total}}));
        if (total < 0) return too_many("corners");
        std::size_t const questions = high_of(total), edges = low_of(total);

        KILN_TRY(auto inside, on_.room<std::int64_t>(questions + 1));
        KILN_CHECK(on_.launch(part_corners{d, raw(counts), work_, raw(inside)}, questions));
        KILN_CHECK(on_.sum(inside));
        std::int64_t corners = 0;
        KILN_CHECK(on_.read_sync({{inside.data() + questions, corners}}));
        auto const n = static_cast<std::size_t>(corners);
        KILN_TRY(auto key, on_.room<std::uint64_t>(n + edges));
        KILN_TRY(auto edge, on_.room<std::int32_t>(n + edges));
        KILN_CHECK(on_.launch(part_corner_entries{d, by_, raw(counts), work_, raw(inside), raw(key), edges_in(edge)},
                              questions));
        KILN_CHECK(on_.launch(part_edge_entries{d, by_, raw(counts), raw(key) + n, edges_in(edge, n)}, work_));
        key_ = std::move(key), edge_ = std::move(edge);
        return sort_entries(cells_);
    }

    template <class T>
    result<buffer<T>> concatenated(buffer<T> level::*what, std::size_t n) {
        if (levels_.size() == 1) return levels_.front().*what;
        KILN_TRY(auto out, on_.room<T>(n));
        std::size_t at = 0;
        for (auto const& l : levels_) {
            auto const& part = l.*what;
            KILN_CHECK(on_.launch(
                copy_words{reinterpret_cast<u32*>(out.data() + at), reinterpret_cast<u32 const*>(part.data())},
                part.size() * (sizeof(T) / sizeof(u32))));
            at += part.size();
        }
        return out;
    }
    queue& on_;
    std::vector<layer> layers_;
    kept_cells built_;
    cell_options how_;
    box around_;
    std::size_t edges_;
    cell_frame frame_{};
    double least_side_ = 0;
    buffer<std::uint64_t> around_worlds_, edges_of_worlds_;  // empty: one frame for all
    std::size_t cells_of_worlds_ = 0;
    entry_key by_;
    buffer<std::uint64_t> key_;  // of the level's entries
    buffer<std::int32_t> edge_;
    buffer<divided_cell> parents_;
    std::size_t cells_ = 0, next_cells_ = 0, work_ = 0;
    std::size_t heads_ = 0, records_ = 0, subs_ = 0;  // so far
    std::vector<level> levels_;
};

namespace {

bool has_rings(box const& around) { return around.min_x <= around.max_x; }
std::size_t edges_for(box const& around, std::size_t vertices) { return has_rings(around) ? vertices : 0; }

// More than this keeps a device busy by itself.
constexpr std::size_t few_vertices = 1 << 23;

bool are_alike(box const& a, box const& b, box const& both) {
    auto const area = [](box const& r) { return (r.max_x - r.min_x) * (r.max_y - r.min_y); };
    return has_rings(a) && has_rings(b) && area(both) <= 2 * std::min(area(a), area(b));
}
bool are_alike(std::size_t a, std::size_t b) { return a + b <= few_vertices && std::min(a, b) >= std::max(a, b) / 4; }

}  // namespace

result<kept_cells> kept_cells::make(queue& on, kept_layer const& of, cell_options const& how,
                                    kept_worlds const& worlds) {
    KILN_TRY(auto const around, of.bounds(on, ring_kinds));
    return make_in(on, of, around, how, worlds);
}

result<kept_cells> kept_cells::make_in(queue& on, kept_layer const& of, box const& around, cell_options const& how,
                                       kept_worlds const& worlds) {
    cell_builder by{on, {&of}, how, around, edges_for(around, of.vertices())};
    if (worlds.are_apart) KILN_CHECK(by.part(of, worlds));
    KILN_CHECK(by.build());
    return by.cells_of(0);
}

result<std::pair<kept_cells, kept_cells>> kept_cells::make_both(queue& on, kept_layer const& a, kept_layer const& b,
                                                                cell_options const& how) {
    KILN_TRY(auto const in_a, a.bounds(on, ring_kinds));
    KILN_TRY(auto const in_b, b.bounds(on, ring_kinds));
    box const around{std::min(in_a.min_x, in_b.min_x), std::min(in_a.min_y, in_b.min_y),
                     std::max(in_a.max_x, in_b.max_x), std::max(in_a.max_y, in_b.max_y)};
    if (!are_alike(in_a, in_b, around) || !are_alike(a.vertices(), b.vertices())) {
        KILN_TRY(auto left, make_in(on, a, in_a, how));
        KILN_TRY(auto right, make_in(on, b, in_b, how));
        return std::pair{std::move(left), std::move(right)};
    }
    cell_builder by{on, {&a, &b}, how, around, edges_for(around, a.vertices() + b.vertices())};
    KILN_CHECK(by.build());
    return std::pair{by.cells_of(0), by.cells_of(1)};
}

cell_grid kept_cells::view() const noexcept {
    return {.x = frame_.x,
            .y = frame_.y,
            .width = frame_.width,
            .height = frame_.height,
            .per_width = 1 / frame_.width,
            .per_height = 1 / frame_.height,
            .columns = frame_.columns,
            .rows = frame_.rows,
            .head = heads_.data(),
            .record = records_.data(),
            .sub = subs_.data(),
            .at = at_,
            .first_cell = first_cell_};
}

world_cells kept_cells::by_world() const noexcept {
    return {view(), own_.empty() ? nullptr : own_.data(), world_of_.data()};
}

std::size_t kept_cells::bytes() const noexcept {
    return own_.raw().bytes() + heads_.raw().bytes() + records_.raw().bytes() + subs_.raw().bytes();
}

}  // namespace kiln::spatial
