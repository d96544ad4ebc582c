// SPDX-License-Identifier: Apache-2.0
#include "spatial/kept_rings.hpp"

#include "spatial/area_index.hpp"
#include "spatial/kept_elements.hpp"
#include "spatial/ring_checks.cuh"
#include "spatial/rings.hpp"
#include "spatial/row_facts.hpp"

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

constexpr std::uint64_t no_row = ~std::uint64_t{0};
std::optional<std::size_t> row_of(std::uint64_t least) {
    return least == no_row ? std::nullopt : std::optional<std::size_t>{least};
}

std::int64_t count_in(auto const& b) { return static_cast<std::int64_t>(b.size()); }

family_size size_of(geometry_parts const& p) {
    return {count_in(p.x), {count_in(p.offsets[0]), count_in(p.offsets[1]), count_in(p.offsets[2])}};
}
check_memory memory_check_of(geometries const& of) {
    auto const index = [](family kind) { return static_cast<std::size_t>(kind) - 1; };
    check_memory out{};
    out.g = memory_rows_of(of);
    if (of.kind() == family::mixed) {
        out.rows = count_in(of.mixed().type);
        for (auto const& child : of.mixed().children) out.size[index(child.kind())] = size_of(child.parts());
    } else {
        auto const& size = out.size[index(of.kind())] = size_of(of.parts());
        out.rows = levels_of(of.kind()) == 0 ? size.vertices : size.offsets[0] - 1;
    }
    return out;
}

class ring_checker {
public:
    ring_checker(queue& on, geometries const& of, std::size_t most_steps) : on_{on}, of_{of}, most_steps_{most_steps} {}

    result<row_flaws> run() {
        KILN_TRY(least_, on_.filled<std::uint64_t>(2, ~0U));
        KILN_TRY(any_, on_.filled<std::uint64_t>(2, 0));
        std::uint64_t not_there = no_row, not_valid = no_row, no_border = no_row, special = 0, lengths = 0;
        auto memory = memory_check_of(of_);
        memory.least_row = raw(least_);
        KILN_CHECK(on_.launch(memory, of_.rows()));
        KILN_CHECK(on_.read_sync({{least_.data(), not_there}}));
        row_flaws out;
        out.not_valid = row_of(not_there);
        if (out.not_valid) return out;  // nothing may be read, not even of rows before it

        KILN_TRY(layer_, kept_layer::plain(on_, of_));
        KILN_CHECK(on_.launch(check_vertices{layer_.view(), dimensions(), raw(least_)}, layer_.vertices()));
        KILN_CHECK(on_.read_sync({{least_.data(), not_valid}}));
        out.not_valid = row_of(not_valid);
        if (out.not_valid) return out;

        KILN_CHECK(layer_.make_distinct(on_));
        KILN_TRY(rows_, on_.filled<std::uint32_t>(layer_.rows(), 0));
        KILN_CHECK(on_.launch(mark_rows{raw(layer_.row_paths()), raw(layer_.row_segments()), dimensions(), rows_.data(),
                                        raw(any_), raw(any_) + 1},
                              layer_.rows()));
        bool const has_areas = of_.kind() == family::mixed || dimension_of(of_.kind()) == 2;
        if (has_areas) KILN_CHECK(meet_themselves());
        KILN_CHECK(on_.read_sync({{any_.data(), special}, {any_.data() + 1, lengths}, {least_border(), no_border}}));
        if (special != 0) {
            KILN_CHECK(look_around());
            KILN_CHECK(on_.read_sync({{least_border(), no_border}}));
        }
        out.no_border = row_of(no_border), out.has_length = lengths != 0;
        return out;
    }

private:
    [[nodiscard]] signed char const* dimensions() const {
        return reinterpret_cast<signed char const*>(layer_.dimensions().data());
    }
    [[nodiscard]] std::uint64_t* least_border() const { return least_.data() + 1; }

    // Marks rows that touch themselves, and finds those that do worse.
    result<void> meet_themselves() {
        auto const l = layer_.view();
        auto* const least = raw(least_) + 1;
        KILN_CHECK(on_.launch(check_turns{l, dimensions(), least}, layer_.vertices()));
        KILN_CHECK(layer_.keep_elements(on_));
        auto const& elements = layer_.elements();
        asking_own const who{{{l, l, elements.tree.view(), elements.in_order.data(), rows_wanted::same}}};
        auto const groups = (layer_.vertices() + 1) / 2;
        KILN_TRY(auto unsure, on_.room<std::uint32_t>(groups));
        KILN_TRY(auto heavy, on_.room<std::uint32_t>(groups));
        KILN_TRY(auto counts, on_.filled<std::uint32_t>(2, 0));
        auto* const unsures = counts.data();
        auto* const heavies = counts.data() + 1;
        KILN_CHECK(on_.launch(find_own_contacts{who, least, unsure.data(), unsures, heavy.data(), heavies}, groups));
        settle_contacts const settle{who, least, rows_.data(), raw(any_)};
        auto const threads = on_.threads();
        KILN_CHECK(on_.launch(settle_unsure{settle, unsure.data(), unsures, threads}, threads));
        auto const cut = elements.tree.cut_for(1, 4096);
        return on_.launch(settle_heavy{settle, heavy.data(), heavies, cut.first_node, cut.nodes, cut.level, threads},
                          threads);
    }

    // Rows that are marked: noded, around their vertices and between their rings.
    result<void> look_around() {
        auto* const least = raw(least_) + 1;
        some_rows const rows{rows_.data()};
        KILN_TRY(auto const inside, rings_inside(rows));
        KILN_CHECK(layer_.node(on_, rows_.data()));
        KILN_CHECK(on_.launch(check_sides{layer_.view(), rows, least}, layer_.vertices()));
        return on_.launch(check_places{layer_.view(), rows, inside.data(), least}, layer_.paths());
    }
    // By path: whether its first vertex, moved, is inside of its row. Before rings are noded, which changes nothing of that.
    result<buffer<std::uint32_t>> rings_inside(some_rows const& rows) {
        auto const l = layer_.view();
        auto const n = layer_.paths();
        KILN_TRY(auto out, on_.filled<std::uint32_t>(n, 0));
        KILN_TRY(auto first, on_.room<std::int64_t>(n + 1));
        KILN_CHECK(on_.launch(count_ring_steps{l, rows, raw(first)}, n));
        KILN_TRY(auto const total, on_.total_sync(first));
        auto const steps = static_cast<std::size_t>(total);
        if (steps <= most_steps_) {
            double const share = static_cast<double>(n) / static_cast<double>(std::max<std::size_t>(steps, 1));
            KILN_CHECK(on_.launch(flip_rings{l, raw(first), steps, share, out.data()}, steps));
            return out;
        }
        KILN_TRY(auto const index, build_brief_index(on_, layer_));
        KILN_CHECK(on_.launch(locate_rings{l, rows, index->cells.view(), out.data()}, n));
        return out;
    }

    queue& on_;
    geometries const& of_;
    std::size_t most_steps_;
    kept_layer layer_;
    buffer<std::uint64_t> least_, any_;  // not valid, no border; special rows, rows with a length
    buffer<std::uint32_t> rows_;         // that touch themselves or have several rings
};

class checked_operand {
public:
    checked_operand(queue& on, geometries const& of, std::string_view side, std::size_t first)
        : on_{on}, of_{of}, side_{side}, first_{first} {}

    // Looks at it, once.
    result<row_flaws> flaws() {
        if (found_) return *found_;
        KILN_TRY(found_, flaws_of(on_, of_));
        if (!found_->not_valid && !found_->no_border && !of_.empty()) row_facts::of(of_)->are_borders = true;
        return *found_;
    }
    [[nodiscard]] bool is_known() const { return of_.empty() || row_facts::of(of_)->are_borders; }

    // The host has the words: the same as if it had looked.
    [[nodiscard]] error refuse(stream_ref stream, std::size_t row) const {
        auto const why = why_not(stream, row);
        if (!why)
            return fail(errc::invalid_argument,
                        "relate: on the {}, row {} has no border or is not valid; why, only the host can tell: {}",
                        side_, first_ + row, why.error().message());
        if (why->what >= flaw::crossing_rings) return refused_rings(side_, first_, *why);
        auto const reason = std::string_view{why->message}.substr(why->message.find(": "));  // after the number
        return fail(errc::invalid_argument, "geometries: row {}{}", first_ + why->row, reason);
    }

private:
    [[nodiscard]] result<flawed_row> why_not(stream_ref stream, std::size_t row) const {
        KILN_TRY(auto const here, of_.to_host_sync(stream));
        KILN_TRY(auto found, validate(here, 1));
        if (!found.empty()) return found[0];
        KILN_TRY(auto const alone, here.view(buffer<std::int32_t>::copy_of({static_cast<std::int32_t>(row)})));
        KILN_TRY(found, validate_rings(alone, 1));
        if (found.empty()) return fail(errc::internal, "it finds nothing wrong with this row");
        found[0].row = row;
        return found[0];
    }

    queue& on_;
    geometries const& of_;
    std::string_view side_;
    std::size_t first_;
    std::optional<row_flaws> found_;
};

}  // namespace

result<row_flaws> flaws_of(queue& on, geometries const& of, std::size_t most_steps) {
    if (of.empty()) return row_flaws{};
    return ring_checker{on, of, most_steps}.run();
}

result<void> require_borders(queue& on, stream_ref stream, related_operands const& of) {
    checked_operand both[] = {{on, of.left, "left", of.first}, {on, of.right, "right", 0}};
    for (auto& one : both) {
        if (one.is_known()) continue;
        KILN_TRY(auto const found, one.flaws());
        if (found.not_valid) return one.refuse(stream, *found.not_valid);
    }
    for (int const i : {0, 1}) {
        auto &one = both[i], &other = both[1 - i];
        if (one.is_known()) continue;
        KILN_TRY(auto const found, one.flaws());
        KILN_TRY(auto const others, other.flaws());
        if (others.has_length) return one.refuse(stream, *found.no_border);
    }
    return {};
}

}  // namespace kiln::spatial
