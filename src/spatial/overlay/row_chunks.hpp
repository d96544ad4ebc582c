// SPDX-License-Identifier: Apache-2.0
// A layer that is too large to be worked on at once lies at home, and rows of it are taken to where the work is done, a few at a
// time, with those they may meet.
#pragma once

#include "spatial/overlay/divisions.hpp"
#include "spatial/tree.hpp"

#include <algorithm>
#include <functional>
#include <span>
#include <string>

namespace kiln::spatial {

// Both queues are kept by reference, and are two: what is bounded is the work.
struct chunk_places {
    queue& home;
    queue& work;
    stream_ref on;
    std::size_t most_bytes;  // of the work
    [[nodiscard]] bool fits(std::size_t items) const noexcept { return items <= most_bytes / bytes_of_item; }

    // What a vertex, or a row, takes where the work is done: the most that layers in the tests take, and a third more.
    static constexpr std::size_t bytes_of_item = 512;
    // What its queue may take of that: the rest is for rows that come there by themselves, and for what sorts need.
    [[nodiscard]] static constexpr std::size_t bytes_to_take(std::size_t most) noexcept { return most - most / 8; }
};

// Which rows may meet: those of one world whose boxes do, or do on their grids. On the host.
class row_neighbours {
public:
    [[nodiscard]] static result<row_neighbours> make(chunk_places const& in, kept_layer const& of,
                                                     buffer<std::int32_t> const& worlds, kept_grids const& grids = {});

    [[nodiscard]] std::size_t rows() const noexcept { return boxes_.size(); }
    // Vertices, and one for the row; 0 for a row without any, and for one that is in no world.
    [[nodiscard]] std::size_t items(std::int32_t row) const noexcept;
    [[nodiscard]] std::size_t items(std::span<std::int32_t const> rows) const noexcept;
    [[nodiscard]] std::vector<std::int32_t> const& worlds() const noexcept { return worlds_; }  // empty: one
    [[nodiscard]] double step() const noexcept { return step_; }
    [[nodiscard]] std::vector<double> const& scales() const noexcept { return scales_; }  // empty: as the step is
    // Others that a row may meet, in no particular order.
    template <class Found>
    void each(std::int32_t row, Found found) const {
        if (items(row) == 0) return;
        auto const own = static_cast<std::size_t>(row);
        auto const around = grown(own);
        auto const look_at = [&](std::int32_t row_there) {
            auto const other = static_cast<std::size_t>(row_there);
            auto const& box = boxes_[other];
            bool const meets = box.min_x <= around.max_x && box.max_x >= around.min_x && box.min_y <= around.max_y &&
                               box.max_y >= around.min_y;
            if (!meets || other == own) return;
            if (worlds_.empty() || worlds_[other] == worlds_[own]) found(row_there);
        };
        // Of a world with few rows these are gone through, however many others lie at their place.
        auto const few = worlds_.empty() ? std::span<std::int32_t const>{} : rows_of_world(worlds_[own]);
        if (!few.empty() && few.size() <= few_rows) {
            for (auto const other : few) look_at(other);
            return;
        }
        kiln_spatial::query_tree(tree_.view(), tree_.view().rough(around),
                                 [&](std::uint32_t slot) { look_at(in_tree_[tree_.view().item[slot]]); });
    }
    // Those of several rows that are none of them and that `wanted` wants, each once and in order.
    using row_test = std::function<bool(std::int32_t row)>;
    [[nodiscard]] std::vector<std::int32_t> of(std::span<std::int32_t const> rows, row_test const& wanted);
    // Goes through rows in order, as many at a time as fit with what they may meet: use(first, last) for some of them, which are
    // halved where that fails with errc::out_of_memory, down to one.
    using range_user = std::function<result<void>(std::size_t first, std::size_t last)>;
    [[nodiscard]] result<void> in_chunks(chunk_places const& in, std::span<std::int32_t const> rows,
                                         row_test const& wanted, range_user const& use);

private:
    static constexpr std::size_t few_rows = 64;
    [[nodiscard]] std::span<std::int32_t const> rows_of_world(std::int32_t world) const noexcept {
        auto const of = [this](std::int32_t row) { return worlds_[static_cast<std::size_t>(row)]; };
        // Not equal_range(): clang 14 does not know what the library's has to give.
        auto const first = std::ranges::lower_bound(by_world_, world, {}, of);
        return {first, std::ranges::upper_bound(first, by_world_.end(), world, {}, of)};
    }
    // A crossing is rounded by half a step, and its square reaches half a step farther; this is three times as far, and coordinates are
    // rounded by much less than what is left.
    [[nodiscard]] kiln_spatial::box grown(std::size_t row) const noexcept {
        auto const& b = boxes_[row];
        double const apart = 3 * (scales_.empty() ? step_ : 1 / scales_[row]);
        return {b.min_x - apart, b.min_y - apart, b.max_x + apart, b.max_y + apart};
    }
    [[nodiscard]] bool is_new(std::int32_t row) {
        return std::exchange(seen_[static_cast<std::size_t>(row)], turn_) != turn_;
    }

    std::vector<kiln_spatial::box> boxes_;
    std::vector<std::int32_t> first_;  // vertices before a row, one more
    std::vector<std::int32_t> worlds_;
    double step_ = 0;
    std::vector<double> scales_;
    std::vector<std::int32_t> in_tree_;   // rows with items
    std::vector<std::int32_t> by_world_;  // the same by their worlds, where there are any
    host_tree tree_;
    std::vector<std::uint32_t> seen_;  // in which turn
    std::uint32_t turn_ = 0;
};
// A row that is named, where it needs more than there is with what it meets.
[[nodiscard]] error too_large(std::string_view what, std::size_t items, chunk_places const& in);
// Runs use(first, last); where that fails with errc::out_of_memory, of each half by itself.
[[nodiscard]] result<void> halved_where_too_large(std::size_t first, std::size_t last,
                                                  row_neighbours::range_user const& use);

// Divisions of chunks. Each pair of rows is in one of them, so that together they are those of the whole layer, whatever the
// chunks.
class divisions_in_chunks final : public division_source {
public:
    // `name_of` names rows where one needs more than there is: "overlay: left row 3".
    using row_namer = std::function<std::string(std::int32_t row)>;
    divisions_in_chunks(chunk_places const& in, row_namer name_of) : in_{in}, name_of_{std::move(name_of)} {}

    [[nodiscard]] result<found_divisions> crossings(queue& home, kept_layer& of, kept_worlds const& worlds,
                                                    buffer<std::uint32_t> const& asks,
                                                    buffer<std::uint32_t> const& moved) override;
    [[nodiscard]] result<found_divisions> squares(queue& home, kept_layer& of, kept_worlds const& worlds,
                                                  kept_grids const& grids, hot_vertices which) override;
    [[nodiscard]] std::size_t chunks() const noexcept { return chunks_; }

private:
    struct chunk;
    [[nodiscard]] result<chunk> taken(kept_layer const& of, std::vector<std::int32_t> rows,
                                      std::vector<std::uint8_t> const& roles, row_neighbours const& near,
                                      std::size_t worth_it);
    [[nodiscard]] result<void> bring_home(chunk const& from, found_divisions const& found);
    [[nodiscard]] result<found_divisions> all_found();
    [[nodiscard]] result<void> require_room(row_neighbours const& near, std::span<std::int32_t const> own,
                                            std::span<std::int32_t const> others) const;

    chunk_places const& in_;
    row_namer name_of_;
    std::vector<buffer<std::int32_t>> segments_;
    std::vector<buffer<kiln_spatial::point>> places_;
    std::size_t chunks_ = 0;
};

// Memory end to end. Of elements of whole words.
template <class T>
[[nodiscard]] result<buffer<T>> end_to_end(queue& on, std::vector<buffer<T>> const& parts) {
    static_assert(sizeof(T) % 4 == 0);
    std::size_t total = 0;
    for (auto const& p : parts) total += p.size();
    KILN_TRY(auto out, on.room<T>(total));
    auto* to = reinterpret_cast<kiln_spatial::u32*>(out.data());
    for (auto const& p : parts) {
        auto const words = p.size() * (sizeof(T) / 4);
        KILN_CHECK(
            on.launch(kiln_spatial::copy_words{to, reinterpret_cast<kiln_spatial::u32 const*>(p.data())}, words));
        to += words;
    }
    return out;
}
// What the work made, as memory of another queue: what the work may take is not kept from it.
template <class T>
[[nodiscard]] result<buffer<T>> copied_sync(queue& to, stream_ref on, buffer<T> const& what) {
    if (on_device(to.where()) != on_device(what.where())) return brought_sync(to, on, what);
    return end_to_end(to, std::vector<buffer<T>>{what});
}
template <class T>
[[nodiscard]] result<buffer<T>> uploaded(queue const& to, stream_ref on, std::vector<T> const& values) {
    return brought_sync(to, on, buffer<T>::copy_of(values));
}

}  // namespace kiln::spatial
