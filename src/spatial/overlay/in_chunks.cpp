// SPDX-License-Identifier: Apache-2.0
#include "spatial/overlay/in_chunks.hpp"

#include "spatial/overlay_noding.cuh"
#include "spatial/overlay_rings.cuh"
#include "spatial/overlay_sameness.cuh"

#include <kiln/event.hpp>
#include <kiln/runtime/memory.hpp>

#include <algorithm>
#include <numeric>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// Multipolygons that come in pieces, put end to end.
class pieces_end_to_end {
public:
    explicit pieces_end_to_end(chunked_call const& by) : by_{by} {}

    // All of it or nothing: what does not fit is tried again in halves.
    result<void> add(geometry_parts piece) {
        KILN_CHECK(bring(piece.x));
        KILN_CHECK(bring(piece.y));
        for (auto& offsets : piece.offsets) KILN_CHECK(bring(offsets));
        x_.push_back(std::move(piece.x)), y_.push_back(std::move(piece.y));
        for (std::size_t level = 0; level < offsets_.size(); ++level)
            offsets_[level].push_back(std::move(piece.offsets[level]));
        return {};
    }
    result<geometry_parts> all() {
        geometry_parts out;
        out.kind = family::multipolygon;
        std::size_t vertices = 0;
        for (auto const& x : x_) vertices += x.size();
        if (vertices > 0x7fffffff)
            return fail(errc::unsupported, "overlay: {} vertices in the result: take the arrays in parts", vertices);
        KILN_TRY(out.x, end_to_end(by_.results, x_));
        KILN_TRY(out.y, end_to_end(by_.results, y_));
        for (std::size_t level = 0; level < offsets_.size(); ++level) {
            KILN_TRY(out.offsets[level], offsets_end_to_end(offsets_[level]));
        }
        return out;
    }

private:
    template <class T>
    result<void> bring(buffer<T>& what) const {
        KILN_TRY(what, copied_sync(by_.results, by_.in.on, what));
        return {};
    }
    // Each piece counts from 0, and its last offset is where the next begins.
    result<buffer<std::int32_t>> offsets_end_to_end(std::vector<buffer<std::int32_t>> const& of) const {
        std::vector<buffer<std::int32_t>> parts;
        std::vector<std::int64_t> counted{0};
        for (auto const& o : of) {
            parts.push_back(o.first(o.size() - 1));
            KILN_TRY(auto const last, last_of(o));
            counted.push_back(counted.back() + last);
        }
        KILN_TRY(auto const end, by_.results.filled<std::int32_t>(1, 0));
        parts.push_back(end);
        KILN_TRY(auto out, end_to_end(by_.results, parts));
        std::size_t at = 0;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            KILN_CHECK(by_.results.launch(shift_words{out.data() + at, static_cast<i32>(counted[i])}, parts[i].size()));
            at += parts[i].size();
        }
        return out;
    }
    result<std::int32_t> last_of(buffer<std::int32_t> const& offsets) const {
        KILN_TRY(auto const one, offsets.part(offsets.size() - 1, 1).to_host_sync(by_.in.on));
        return one.data()[0];
    }

    chunked_call const& by_;
    std::vector<buffer<double>> x_, y_;
    std::array<std::vector<buffer<std::int32_t>>, 3> offsets_;
};

void tell_chunks(std::string_view operation, chunk_places const& in, std::size_t divided, std::size_t drawn) {
    event_log::process().emit({.kind = event_kind::note,
                               .unit = operation,
                               .reason = "in-chunks",
                               .detail = fmt::format("within {} bytes: {} to divide segments, {} to draw results",
                                                     in.most_bytes, divided, drawn),
                               .value = static_cast<std::int64_t>(divided + drawn)});
}

std::vector<std::int32_t> numbers_from(std::int32_t first, std::size_t n) {
    std::vector<std::int32_t> out(n);
    std::iota(out.begin(), out.end(), first);
    return out;
}

std::string name_of_overlaid(std::int32_t row, std::size_t left_rows) {
    auto const left = static_cast<std::int32_t>(left_rows);
    return row < left ? fmt::format("overlay: left row {}", row) : fmt::format("overlay: right row {}", row - left);
}
std::function<std::string(std::int32_t)> names_of_rows(std::string operation) {
    return [operation](std::int32_t row) { return fmt::format("{}: row {}", operation, row); };
}

// ---- Overlay ----

class overlay_drawer {
public:
    overlay_drawer(chunked_call const& by, kept_layer const& divided, row_neighbours near, std::size_t left_rows)
        : by_{by}, of_{divided}, near_{std::move(near)}, left_rows_{static_cast<std::int32_t>(left_rows)}, rows_{by} {}

    // Those of left rows, in order; behind them those of right rows alone.
    result<overlay_rows> draw(std::uint32_t parts) {
        KILN_CHECK(draw_left(parts & (common_parts | left_parts)));
        KILN_CHECK(draw_right(parts & (right_parts | right_rows)));
        overlay_rows out;
        KILN_TRY(auto all, rows_.all());
        KILN_TRY(out.rows, geometries::make(std::move(all)));
        KILN_TRY(out.left, end_to_end(by_.results, left_));
        KILN_TRY(out.right, end_to_end(by_.results, right_));
        return out;
    }
    [[nodiscard]] std::size_t chunks() const noexcept { return chunks_; }

private:
    using numbers = std::vector<std::int32_t>;
    [[nodiscard]] bool is_left(std::int32_t row) const noexcept { return row < left_rows_; }

    result<void> draw_left(std::uint32_t parts) {
        if (parts == 0) return {};
        auto const others = [&](std::int32_t row) { return !is_left(row); };
        auto const all = there(numbers_from(0, static_cast<std::size_t>(left_rows_)));
        return near_.in_chunks(by_.in, all, others, [&](std::size_t first, std::size_t last) {
            numbers const own(all.begin() + static_cast<std::ptrdiff_t>(first),
                              all.begin() + static_cast<std::ptrdiff_t>(last));
            auto const against = near_.of(own, others);
            return own.size() == 1 ? draw_one(own, against, parts) : draw_chunk(own, against, parts);
        });
    }
    // A row that is too large with all it meets: its parts in common are those with some of them and those with the others.
    result<void> draw_one(numbers const& own, numbers const& against, std::uint32_t parts) {
        auto done = draw_chunk(own, against, parts);
        if (done || done.error().code() != errc::out_of_memory) return done;
        if (parts == (common_parts | left_parts)) {
            KILN_CHECK(draw_one(own, against, common_parts));
            return draw_one(own, against, left_parts);
        }
        if (parts != common_parts || against.size() < 2) return done;
        auto const middle = against.begin() + static_cast<std::ptrdiff_t>(against.size() / 2);
        KILN_CHECK(draw_one(own, {against.begin(), middle}, parts));
        return draw_one(own, {middle, against.end()}, parts);
    }
    result<void> draw_right(std::uint32_t parts) {
        if (parts == 0) return {};
        // Right rows as they are need no left ones.
        auto const others = [&](std::int32_t row) { return is_left(row) && (parts & right_parts) != 0; };
        auto const all = there(numbers_from(left_rows_, near_.rows() - static_cast<std::size_t>(left_rows_)));
        return near_.in_chunks(by_.in, all, others, [&](std::size_t first, std::size_t last) {
            numbers const own(all.begin() + static_cast<std::ptrdiff_t>(first),
                              all.begin() + static_cast<std::ptrdiff_t>(last));
            return draw_chunk(near_.of(own, others), own, parts);
        });
    }
    [[nodiscard]] numbers there(numbers rows) const {
        std::erase_if(rows, [&](std::int32_t row) { return near_.items(row) == 0; });
        return rows;
    }

    result<void> draw_chunk(numbers const& lefts, numbers const& rights, std::uint32_t parts) {
        if (parts == common_parts && (lefts.empty() || rights.empty())) return {};
        auto const items = near_.items(lefts) + near_.items(rights);
        if (!by_.in.fits(items)) {
            auto const& own = (parts & (right_parts | right_rows)) != 0 ? rights : lefts;
            return too_large(name_of_overlaid(own[0], static_cast<std::size_t>(left_rows_)), items, by_.in);
        }
        auto rows = lefts;
        rows.insert(rows.end(), rights.begin(), rights.end());
        auto& work = by_.in.work;
        KILN_TRY(auto const chosen, uploaded(by_.in.home, by_.in.on, rows));
        KILN_TRY(auto const some, of_.choose(by_.in.home, chosen));
        KILN_TRY(auto layer, some.layer.brought_sync(work, by_.in.on));
        KILN_TRY(auto const in, arrangement::of_divided(work, std::move(layer)));
        KILN_TRY(auto drawn, ordered_parts(work, in, lefts.size(), parts));
        KILN_TRY(auto piece, drawn.draw());
        KILN_TRY(auto const left, numbered(drawn.left(), lefts, 0));
        KILN_TRY(auto const right, numbered(drawn.right(), rights, left_rows_));
        KILN_CHECK(rows_.add(std::move(piece)));
        left_.push_back(left), right_.push_back(right);
        ++chunks_;
        return {};
    }
    result<buffer<std::int32_t>> numbered(buffer<std::int32_t> const& what, numbers rows, std::int32_t first) const {
        for (auto& row : rows) row -= first;
        auto& to = by_.results;
        KILN_TRY(auto const here, uploaded(to, by_.in.on, rows));
        KILN_TRY(auto out, copied_sync(to, by_.in.on, what));
        KILN_CHECK(to.launch(number_in_whole{out.data(), here.data()}, out.size()));
        return out;
    }

    chunked_call const& by_;
    kept_layer const& of_;
    row_neighbours near_;
    std::int32_t left_rows_;
    pieces_end_to_end rows_;
    std::vector<buffer<std::int32_t>> left_, right_;
    std::size_t chunks_ = 0;
};

// ---- Worlds ----

// Rows by world, of worlds from 0 on.
class rows_of_worlds {
public:
    rows_of_worlds(std::vector<std::int32_t> const& worlds, std::size_t count) : first_(count + 1, 0) {
        for (auto const w : worlds)
            if (w >= 0) ++first_[static_cast<std::size_t>(w) + 1];
        std::partial_sum(first_.begin(), first_.end(), first_.begin());
        rows_.resize(first_.back());
        auto at = first_;
        for (std::size_t row = 0; row < worlds.size(); ++row)
            if (worlds[row] >= 0) rows_[at[static_cast<std::size_t>(worlds[row])]++] = static_cast<std::int32_t>(row);
    }
    [[nodiscard]] std::vector<std::int32_t> of(std::size_t first, std::size_t last) const {
        auto const from = rows_.begin();
        return {from + static_cast<std::ptrdiff_t>(first_[first]), from + static_cast<std::ptrdiff_t>(first_[last])};
    }

private:
    std::vector<std::size_t> first_;
    std::vector<std::int32_t> rows_;
};

using world_namer = std::function<std::string(std::size_t world)>;

// Worlds of a divided layer, some at a time: draw(arrangement of them, question, how many).
class world_chunks {
public:
    static result<world_chunks> make(chunk_places const& in, arrangement const& divided,
                                     buffer<std::int32_t> const& worlds, std::size_t count, world_namer names) {
        KILN_TRY(auto near, row_neighbours::make(in, divided.noded(), worlds));
        return world_chunks{in, divided, std::move(near), count, std::move(names)};
    }

    template <class Draw>
    result<void> each(Draw const& draw) {
        auto const use = [&](std::size_t first, std::size_t last) { return draw_some(first, last, draw); };
        for (std::size_t first = 0; first < count_;) {
            std::size_t last = first, sum = 0;
            for (; last < count_; ++last) {
                auto const more = near_.items(by_world_.of(last, last + 1)) + 1;
                if (last > first && !in_.fits(sum + more)) break;
                sum += more;
            }
            KILN_CHECK(halved_where_too_large(first, last, use));
            first = last;
        }
        return {};
    }
    [[nodiscard]] std::size_t chunks() const noexcept { return chunks_; }

private:
    world_chunks(chunk_places const& in, arrangement const& divided, row_neighbours near, std::size_t count,
                 world_namer names)
        : in_{in},
          of_{divided.noded()},
          worth_it_{divided.worlds().worth_it},
          near_{std::move(near)},
          by_world_{near_.worlds(), count},
          names_{std::move(names)},
          count_{count} {}

    template <class Draw>
    result<void> draw_some(std::size_t first, std::size_t last, Draw const& draw) {
        auto rows = by_world_.of(first, last);
        auto const items = near_.items(rows);
        if (!in_.fits(items))
            return fail(errc::out_of_memory, "{} may need {} bytes, of {}", names_(first),
                        items * chunk_places::bytes_of_item, in_.most_bytes);
        KILN_TRY(auto const chosen, uploaded(in_.home, in_.on, rows));
        KILN_TRY(auto const some, of_.choose(in_.home, chosen));
        KILN_TRY(auto layer, some.layer.brought_sync(in_.work, in_.on));
        for (auto& row : rows) row = near_.worlds()[static_cast<std::size_t>(row)] - static_cast<std::int32_t>(first);
        world_question how{"spatial_dissolve"};
        KILN_TRY(how.worlds, uploaded(in_.work, in_.on, rows));
        KILN_TRY(auto const in, arrangement::of_divided(in_.work, std::move(layer), {how.worlds, worth_it_}));
        KILN_CHECK(draw(in, how, last - first));
        ++chunks_;
        return {};
    }

    chunk_places const& in_;
    kept_layer const& of_;
    std::size_t worth_it_;
    row_neighbours near_;
    rows_of_worlds by_world_;
    world_namer names_;
    std::size_t count_, chunks_ = 0;
};

}  // namespace

result<overlay_rows> overlaid_in_chunks(chunked_call const& by, geometries const& left, geometries const& right,
                                        overlay_kind what, overlay_options const& how) {
    auto& home = by.in.home;
    auto const joined = [&]() -> result<kept_layer> {
        KILN_TRY(auto const a, kept_layer::distinct(home, left));
        KILN_TRY(auto const b, kept_layer::distinct(home, right));
        return kept_layer::joined(home, a, b);
    };
    KILN_TRY(auto both, joined());
    divisions_in_chunks dividing{by.in, [&](std::int32_t row) { return name_of_overlaid(row, left.rows()); }};
    KILN_TRY(auto const divided, arrangement::divided(home, std::move(both), {}, how.grid, dividing));
    tell_how_divided("spatial_overlay", divided.found_unrest());
    KILN_TRY(auto near, row_neighbours::make(by.in, divided.noded(), {}));
    overlay_drawer drawing{by, divided.noded(), std::move(near), left.rows()};
    KILN_TRY(auto out, drawing.draw(parts_of(what)));
    tell_chunks("spatial_overlay", by.in, dividing.chunks(), drawing.chunks());
    return out;
}

result<geometries> dissolved_in_chunks(chunked_call const& by, geometries const& of, buffer<std::int32_t> const& key,
                                       std::size_t keys) {
    auto& home = by.in.home;
    KILN_TRY(auto l, kept_layer::distinct(home, of));
    KILN_TRY(auto const worlds, home.room<std::int32_t>(of.rows()));
    KILN_CHECK(home.launch(worlds_of_keys{key.data(), static_cast<i32>(keys), worlds.data()}, of.rows()));
    divisions_in_chunks dividing{by.in, names_of_rows("dissolve")};
    KILN_TRY(auto const divided, arrangement::divided(home, std::move(l), {worlds, kept_worlds::many}, 0, dividing));
    tell_how_divided("spatial_dissolve", divided.found_unrest());
    auto const name = [keys](std::size_t key) {
        return keys == 1 ? std::string{"dissolve: all rows together"}
                         : fmt::format("dissolve: the rows of key {}", key);
    };
    KILN_TRY(auto chunks, world_chunks::make(by.in, divided, worlds, keys, name));
    pieces_end_to_end rows{by};
    KILN_CHECK(chunks.each([&](arrangement const& in, world_question const& how, std::size_t n) -> result<void> {
        KILN_TRY(auto piece, put_together(by.in.work, in, how, n));
        return rows.add(std::move(piece));
    }));
    tell_chunks("spatial_dissolve", by.in, dividing.chunks(), chunks.chunks());
    KILN_TRY(auto all, rows.all());
    return geometries::make(std::move(all));
}

result<mended_rows> mended_in_chunks(chunked_call const& by, geometries const& of) {
    auto& home = by.in.home;
    auto& to = by.results;
    auto const n = of.rows();
    KILN_TRY(auto areas, areas_of_rows(home, of));
    KILN_TRY(auto const states, brought_sync(to, by.in.on, areas.layer.states()));
    KILN_TRY(auto const shrunk, brought_sync(to, by.in.on, areas.shrunk));
    divisions_in_chunks dividing{by.in, names_of_rows("make_valid")};
    KILN_TRY(auto const divided, arrangement::divided(home, std::move(areas.layer), {areas.worlds}, 0, dividing));
    tell_how_divided("spatial_dissolve", divided.found_unrest());
    KILN_TRY(auto const crossed, brought_sync(to, by.in.on, divided.crossed_rows()));
    KILN_TRY(auto chunks, world_chunks::make(by.in, divided, areas.worlds, n,
                                             [](std::size_t row) { return fmt::format("make_valid: row {}", row); }));
    pieces_end_to_end rows{by};
    std::vector<buffer<std::uint64_t>> before, after;
    auto const marks = [&](kept_layer const& of_some) -> result<buffer<std::uint64_t>> {
        KILN_TRY(auto const own, marks_of(by.in.work, of_some));
        return copied_sync(to, by.in.on, own);
    };
    KILN_CHECK(chunks.each([&](arrangement const& in, world_question const& how, std::size_t some) -> result<void> {
        KILN_TRY(auto const piece, put_together(by.in.work, in, how, some));
        KILN_TRY(auto const drawn, geometries::make(piece));
        KILN_TRY(auto const drawn_layer, kept_layer::plain(by.in.work, drawn));
        KILN_TRY(auto const own, marks(in.noded()));
        KILN_TRY(auto const others, marks(drawn_layer));
        KILN_CHECK(rows.add(piece));
        before.push_back(own), after.push_back(others);
        return {};
    }));
    tell_chunks("spatial_dissolve", by.in, dividing.chunks(), chunks.chunks());
    KILN_TRY(auto all, rows.all());
    KILN_TRY(all.validity, to.room<std::uint8_t>((n + 7) / 8));
    KILN_CHECK(to.launch(set_validity{states.data(), states.data(), n, all.validity->data()}, (n + 7) / 8));
    mended_rows out;
    KILN_TRY(out.rows, geometries::make(std::move(all)));
    KILN_TRY(auto const one, end_to_end(to, before));
    KILN_TRY(auto const other, end_to_end(to, after));
    KILN_TRY(out.was_valid, to.room<std::uint8_t>(n));
    KILN_CHECK(to.launch(compare_rows{raw(one), raw(other), shrunk.data(), crossed.data(), out.was_valid.data()}, n));
    return out;
}

// ---- Whether a call is done in chunks ----

namespace {

// Nobody asks the device whether it has room for less.
constexpr std::size_t fits_anyway = std::size_t{1} << 30;
// What a layer takes for each vertex and row where it is divided, beside the work.
constexpr std::size_t bytes_at_home = 160;

std::size_t items_of(std::vector<geometries> const& operands) noexcept {
    std::size_t out = 0;
    for (auto const& g : operands) out += g.vertices() + g.rows();
    return out;
}

}  // namespace

result<std::size_t> bytes_for_chunks(runtime::operation_call const& call, std::vector<geometries> const& operands,
                                     std::size_t most) {
    auto const need = items_of(operands) * chunk_places::bytes_of_item;
    if (most != 0) return need <= most ? 0 : most;
    if (!call.on_gpu() || need <= fits_anyway) return 0;
    KILN_TRY(auto const room, admit(need, operands[0].device()));
    return room.admitted ? 0 : static_cast<std::size_t>(room.fits / 2);
}

chunk_plan plan_chunks(runtime::operation_call const& call, std::vector<geometries> const& operands, std::size_t most) {
    auto placed = operands[0];
    for (auto const& g : operands)
        if (!g.empty()) placed = g;
    bool const there = on_device(placed.where()) && call.on_gpu();
    bool const home_there = there && items_of(operands) * bytes_at_home <= most / 2;
    return {placed.device(), home_there, there, home_there ? most / 2 : most};
}

}  // namespace kiln::spatial
