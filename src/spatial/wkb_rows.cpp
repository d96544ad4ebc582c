// SPDX-License-Identifier: Apache-2.0
#include "spatial/wkb_rows.hpp"

#include "spatial/kept_layer.hpp"
#include "spatial/operations.hpp"
#include "spatial/wkb_rows.cuh"

#include <algorithm>
#include <optional>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

std::string_view reason_of(std::uint64_t flaw) {
    switch (flaw) {
        case wkb_ends: return "the row ends within a geometry";
        case wkb_byte_order: return "a byte order that is neither 0 nor 1";
        case wkb_dimensions: return "Z or M coordinates; only x and y are taken";
        case wkb_type: return "a type that is none of the six families of simple features";
        case wkb_member: return "a member of another family than that of its multi";
        case wkb_count: return "members that do not fit into the bytes left";
        case wkb_more: return "bytes that follow the geometry";
        case wkb_empty_point: return "an empty point inside a multipoint";
        default: return "offsets that leave the column";
    }
}

class wkb_reader {
public:
    wkb_reader(queue& on, column<std::uint8_t> const& rows)
        : on_{on},
          rows_{rows},
          n_{rows.rows()},
          of_{rows.values().data(), rows.values().size(), rows.offsets()->data(),
              rows.validity() ? rows.validity()->data() : nullptr} {}

    result<geometries> read() {
        KILN_TRY(auto points, read_points());
        if (points) return geometries::make(std::move(*points));
        KILN_CHECK(inspect());
        std::vector<std::uint8_t> families;
        for (std::uint8_t f = 1; f <= single_families; ++f)
            if ((families_ >> f & 1) != 0) families.push_back(f);
        if (families.empty()) families.push_back(1);  // nothing but null rows
        if (families.size() == 1) {
            KILN_TRY(auto parts, read_family(families[0]));
            parts.validity = rows_.validity();
            return geometries::make(std::move(parts));
        }
        mixed_parts out;
        KILN_TRY(out.type, on_.room<std::int8_t>(n_));
        KILN_TRY(out.child_row, on_.room<std::int32_t>(n_));
        out.validity = rows_.validity();
        for (auto const f : families) {
            KILN_CHECK(count(f));
            KILN_TRY(auto parts, read_family(f));
            KILN_TRY(auto child, geometries::make(std::move(parts)));
            out.children.push_back(std::move(child));
            KILN_CHECK(on_.launch(place_wkb_rows{family_.data(), f, families[0], raw(rows_at_),
                                                 reinterpret_cast<signed char*>(out.type.data()), out.child_row.data()},
                                  n_));
        }
        return geometries::make(std::move(out));
    }

private:
    // Where there are so few bytes that all rows may be points.
    result<std::optional<geometry_parts>> read_points() {
        std::optional<geometry_parts> none;
        if (n_ == 0 || rows_.values().size() > 25 * n_) return none;
        geometry_parts out;
        out.kind = family::point;
        KILN_TRY(out.x, on_.room<double>(n_));
        KILN_TRY(out.y, on_.room<double>(n_));
        KILN_TRY(auto others, on_.filled<std::uint64_t>(1, 0));
        KILN_CHECK(on_.launch(read_wkb_points{of_, out.x.data(), out.y.data(), raw(others)}, n_));
        std::uint64_t found = 0;
        KILN_CHECK(on_.read_sync({{others.data(), found}}));
        if (found != 0) return none;
        out.validity = rows_.validity();
        return std::optional{std::move(out)};
    }

    result<void> inspect() {
        KILN_TRY(family_, on_.room<std::uint8_t>(n_));
        KILN_TRY(auto flaw, on_.filled<std::uint64_t>(1, ~0U));
        KILN_TRY(auto families, on_.filled<std::uint64_t>(1, 0));
        KILN_TRY(parts_at_, on_.room<std::int64_t>(n_ + 1));
        KILN_TRY(items_at_, on_.room<std::int64_t>(n_ + 1));
        KILN_CHECK(on_.launch(inspect_wkb{of_, family_.data(), raw(flaw), reinterpret_cast<u32*>(families.data()),
                                          raw(parts_at_), raw(items_at_)},
                              n_));
        KILN_CHECK(on_.sum(parts_at_));
        KILN_CHECK(on_.sum(items_at_));
        std::uint64_t found = 0;
        rows_found_ = static_cast<std::int64_t>(n_);
        KILN_CHECK(on_.read_sync({{flaw.data(), found},
                                  {families.data(), families_},
                                  {parts_at_.data() + n_, parts_found_},
                                  {items_at_.data() + n_, items_found_}}));
        if (found == ~std::uint64_t{0}) return {};
        auto const row = found >> 4, what = found & 15;
        std::int64_t byte = 0;
        if (what != wkb_offsets) {
            KILN_TRY(auto at, on_.filled<std::int64_t>(1, 0));
            KILN_CHECK(on_.launch(find_wkb_flaw{of_, row, raw(at)}, 1));
            KILN_CHECK(on_.read_sync({{at.data(), byte}}));
        }
        bool const unsupported = what == wkb_dimensions || what == wkb_type || what == wkb_empty_point;
        return fail(unsupported ? errc::unsupported : errc::corrupt, "WKB, row {}, byte {}: {}", row, byte,
                    reason_of(what));
    }

    // Of one family among several.
    result<void> count(std::uint8_t f) {
        for (auto* b : {&rows_at_, &parts_at_, &items_at_}) {
            KILN_TRY(*b, on_.room<std::int64_t>(n_ + 1));
        }
        KILN_CHECK(
            on_.launch(count_wkb_rows{of_, family_.data(), f, raw(rows_at_), raw(parts_at_), raw(items_at_)}, n_));
        for (auto* b : {&rows_at_, &parts_at_, &items_at_}) KILN_CHECK(on_.sum(*b));
        return on_.read_sync({{rows_at_.data() + n_, rows_found_},
                              {parts_at_.data() + n_, parts_found_},
                              {items_at_.data() + n_, items_found_}});
    }

    result<geometry_parts> read_family(std::uint8_t f) {
        std::size_t const rows = static_cast<std::size_t>(rows_found_), paths = high_of(items_found_);
        std::size_t const vertices = f == 1 ? rows : low_of(items_found_);
        geometry_parts out;
        out.kind = static_cast<family>(f);
        KILN_TRY(out.x, on_.room<double>(vertices));
        KILN_TRY(out.y, on_.room<double>(vertices));
        auto const levels = levels_of(out.kind);
        std::size_t const sizes[3] = {rows, levels == 3 ? static_cast<std::size_t>(parts_found_) : paths, paths};
        for (std::size_t level = 0; level < levels; ++level) {
            KILN_TRY(out.offsets[level], on_.room<std::int32_t>(sizes[level] + 1));
            KILN_CHECK(on_.fill(out.offsets[level].part(0, 1), 0));
        }
        wkb_memory to{out.x.data(), out.y.data(), nullptr, nullptr, nullptr, nullptr};
        if (levels > 0) to.row_end = out.offsets[0].data() + 1;
        if (levels == 3) to.part_end = out.offsets[1].data() + 1;
        bool const has_paths = f != 1 && out.kind != family::multipoint;
        buffer<std::int32_t> path_first;
        buffer<std::uint32_t> source;
        if (has_paths) {
            if (levels > 1) path_first = out.offsets[levels - 1];
            else {
                KILN_TRY(path_first, on_.room<std::int32_t>(paths + 1));
                KILN_CHECK(on_.fill(path_first.part(0, 1), 0));
            }
            KILN_TRY(source, on_.room<std::uint32_t>(paths));
            to.path_end = path_first.data() + 1, to.source = source.data();
        }
        wkb_places const at{rows_at_.empty() ? nullptr : raw(rows_at_), raw(parts_at_), raw(items_at_)};
        KILN_CHECK(on_.launch(write_wkb_rows{of_, family_.data(), f, at, to}, n_));
        if (!has_paths || vertices == 0) return out;
        double const share = static_cast<double>(paths) / static_cast<double>(vertices);
        KILN_CHECK(on_.launch(
            read_wkb_vertices{of_, source.data(), path_first.data(), paths, share, out.x.data(), out.y.data()},
            vertices));
        return out;
    }

    queue& on_;
    column<std::uint8_t> const& rows_;
    std::size_t n_;
    wkb_column of_;
    buffer<std::uint8_t> family_;
    std::uint64_t families_ = 0;
    buffer<std::int64_t> rows_at_, parts_at_, items_at_;  // rows: empty where those of the column are all of one family
    std::int64_t rows_found_ = 0, parts_found_ = 0, items_found_ = 0;
};

}  // namespace

result<geometries> read_wkb(queue& on, column<std::uint8_t> const& rows) {
    if (!rows.offsets()) return fail(errc::invalid_argument, "from_wkb: a column of bytes without offsets");
    return wkb_reader{on, rows}.read();
}

namespace {

error too_many_bytes(std::int64_t total) {
    return fail(errc::unsupported, "to_wkb: {} bytes in one column; 2^31 - 1 at most", total);
}

bool is_plain_points(geometry_rows const& g) {
    return g.type == nullptr && g.chosen == nullptr && g.validity == nullptr && g.family == a_point;
}
result<column<std::uint8_t>> write_points(queue& on, family_memory const& from, std::size_t rows) {
    if (21 * rows > 0x7fffffff) return too_many_bytes(static_cast<std::int64_t>(21 * rows));
    KILN_TRY(auto bytes, on.room<std::uint8_t>(21 * rows));
    KILN_TRY(auto offsets, on.room<std::int32_t>(rows + 1));
    KILN_CHECK(on.launch(wkb_point_words{from.x, from.y, static_cast<u32>(rows), offsets.data(), bytes.data()},
                         std::max<std::size_t>((21 * rows + 7) / 8, 1)));
    return column<std::uint8_t>::lists(std::move(bytes), std::move(offsets));
}

}  // namespace

result<column<std::uint8_t>> write_wkb(queue& on, geometries const& from) {
    auto const n = from.rows();
    wkb_source const of{memory_rows_of(from)};
    if (is_plain_points(of.g)) return write_points(on, of.g.memory[a_point], n);
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_TRY(auto items, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(wkb_sizes{of, raw(place), raw(items)}, n));
    KILN_CHECK(on.sum(place));
    KILN_CHECK(on.sum(items));
    std::int64_t total = 0, counts = 0;
    KILN_CHECK(on.read_sync({{place.data() + n, total}, {items.data() + n, counts}}));
    if (total > 0x7fffffff) return too_many_bytes(total);
    std::size_t const paths = high_of(counts), vertices = low_of(counts);
    KILN_TRY(auto bytes, on.room<std::uint8_t>(static_cast<std::size_t>(total)));
    KILN_TRY(auto offsets, on.room<std::int32_t>(n + 1));
    KILN_TRY(auto path_first, on.room<std::int32_t>(paths));
    KILN_TRY(auto path_from, on.room<std::int32_t>(paths));
    KILN_TRY(auto path_to, on.room<std::uint32_t>(paths));
    KILN_TRY(auto path_family, on.room<std::uint8_t>(paths));
    wkb_paths const written{path_first.data(), path_from.data(), path_to.data(), path_family.data()};
    KILN_CHECK(on.launch(wkb_offsets_of{raw(place), offsets.data()}, n + 1));
    KILN_CHECK(on.launch(wkb_headers{of, raw(place), raw(items), bytes.data(), written}, n));
    double const share = static_cast<double>(paths) / static_cast<double>(std::max<std::size_t>(vertices, 1));
    KILN_CHECK(on.launch(wkb_vertices{of, written, paths, vertices, share, bytes.data()}, vertices));
    // Which rows are null is the array's to say; through a view it is asked anew.
    std::optional<buffer<std::uint8_t>> validity;
    if (of.g.validity != nullptr) {
        KILN_TRY(validity, on.room<std::uint8_t>((n + 7) / 8));
        KILN_CHECK(on.launch(wkb_validity{of.g, n, validity->data()}, (n + 7) / 8));
    }
    return column<std::uint8_t>::lists(std::move(bytes), std::move(offsets), std::move(validity));
}

result<geometries> from_wkb_sync(stream_ref on, column<std::uint8_t> const& rows) {
    if (!on_device(rows.where())) return from_wkb(rows);
    call_facts const facts{.items = rows.values().size(), .type = scalar::f64, .where = rows.where()};
    KILN_TRY(auto const call, runtime::operation_call::begin(wkb_operation, facts));
    device_queue there{on, rows.values().device()};
    return read_wkb(there, rows);
}

result<column<std::uint8_t>> to_wkb_sync(stream_ref on, geometries const& from) {
    if (!on_device(from.where())) return to_wkb(from);
    KILN_TRY(auto const call, runtime::operation_call::begin(wkb_operation, facts_of(from)));
    device_queue there{on, from.device()};
    return write_wkb(there, from);
}

}  // namespace kiln::spatial
