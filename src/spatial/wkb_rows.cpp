// SPDX-License-Identifier: Apache-2.0
#include "spatial/wkb_rows.hpp"

#include "spatial/kept_layer.hpp"
#include "spatial/operations.hpp"
#include "spatial/wkb_rows.cuh"

#include <bit>

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
        KILN_CHECK(inspect());
        std::vector<std::uint8_t> families;
        for (std::uint8_t f = 1; f <= single_families; ++f)
            if ((families_ >> f & 1) != 0) families.push_back(f);
        if (families.empty()) families.push_back(1);  // nothing but null rows
        if (families.size() == 1) {
            KILN_TRY(auto parts, read_family(families[0], true));
            parts.validity = rows_.validity();
            return geometries::make(std::move(parts));
        }
        mixed_parts out;
        KILN_TRY(out.type, on_.room<std::int8_t>(n_));
        KILN_TRY(out.child_row, on_.room<std::int32_t>(n_));
        out.validity = rows_.validity();
        for (auto const f : families) {
            KILN_TRY(auto parts, read_family(f, false));
            KILN_TRY(auto child, geometries::make(std::move(parts)));
            out.children.push_back(std::move(child));
            KILN_CHECK(on_.launch(place_wkb_rows{family_.data(), f, families[0], raw(rows_at_),
                                                 reinterpret_cast<signed char*>(out.type.data()), out.child_row.data()},
                                  n_));
        }
        return geometries::make(std::move(out));
    }

private:
    result<void> inspect() {
        KILN_TRY(family_, on_.room<std::uint8_t>(n_));
        KILN_TRY(auto flaw, on_.filled<std::uint64_t>(1, ~0U));
        KILN_TRY(auto families, on_.filled<std::uint64_t>(1, 0));
        KILN_CHECK(on_.launch(inspect_wkb{of_, family_.data(), reinterpret_cast<u64*>(flaw.data()),
                                          reinterpret_cast<u32*>(families.data())},
                              n_));
        std::uint64_t found = 0;
        KILN_CHECK(on_.read_sync({{flaw.data(), found}, {families.data(), families_}}));
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

    result<geometry_parts> read_family(std::uint8_t f, bool alone) {
        for (auto* b : {&rows_at_, &parts_at_, &paths_at_, &vertices_at_}) {
            KILN_TRY(*b, on_.room<std::int64_t>(n_ + 1));
        }
        KILN_CHECK(on_.launch(
            count_wkb_rows{of_, family_.data(), f, raw(rows_at_), raw(parts_at_), raw(paths_at_), raw(vertices_at_)},
            n_));
        for (auto* b : {&rows_at_, &parts_at_, &paths_at_, &vertices_at_}) KILN_CHECK(on_.sum(*b));
        std::int64_t rows = 0, parts = 0, paths = 0, vertices = 0;
        KILN_CHECK(on_.read_sync({{rows_at_.data() + n_, rows},
                                  {parts_at_.data() + n_, parts},
                                  {paths_at_.data() + n_, paths},
                                  {vertices_at_.data() + n_, vertices}}));
        if (alone) rows = static_cast<std::int64_t>(n_);
        if (f == 1) vertices = rows;
        if (vertices > 0x7fffffff)
            return fail(errc::unsupported, "WKB: {} vertices in one array; 2^31 - 1 at most", vertices);
        geometry_parts out;
        out.kind = static_cast<family>(f);
        KILN_TRY(out.x, on_.room<double>(static_cast<std::size_t>(vertices)));
        KILN_TRY(out.y, on_.room<double>(static_cast<std::size_t>(vertices)));
        auto const levels = levels_of(out.kind);
        std::int64_t const sizes[3] = {rows, levels == 3 ? parts : paths, paths};
        for (std::size_t level = 0; level < levels; ++level) {
            KILN_TRY(out.offsets[level], on_.room<std::int32_t>(static_cast<std::size_t>(sizes[level]) + 1));
            KILN_CHECK(on_.fill(out.offsets[level].part(0, 1), 0));
        }
        auto const behind_first = [&](std::size_t level) { return out.offsets[level].data() + 1; };
        wkb_memory const to{out.x.data(), out.y.data(), levels > 0 ? behind_first(0) : nullptr,
                            levels == 3 ? behind_first(1) : nullptr, levels > 1 ? behind_first(levels - 1) : nullptr};
        KILN_CHECK(on_.launch(write_wkb_rows{of_,
                                             family_.data(),
                                             f,
                                             static_cast<u8>(alone ? 1 : 0),
                                             {raw(rows_at_), raw(parts_at_), raw(paths_at_), raw(vertices_at_)},
                                             to},
                              n_));
        return out;
    }

    queue& on_;
    column<std::uint8_t> const& rows_;
    std::size_t n_;
    wkb_column of_;
    buffer<std::uint8_t> family_;
    std::uint64_t families_ = 0;
    buffer<std::int64_t> rows_at_, parts_at_, paths_at_, vertices_at_;
};

}  // namespace

result<geometries> read_wkb(queue& on, column<std::uint8_t> const& rows) {
    if (!rows.offsets()) return fail(errc::invalid_argument, "from_wkb: a column of bytes without offsets");
    return wkb_reader{on, rows}.read();
}

result<column<std::uint8_t>> write_wkb(queue& on, geometries const& from) {
    auto const n = from.rows();
    wkb_source const of{memory_rows_of(from)};
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(wkb_sizes{of, raw(place)}, n));
    KILN_TRY(auto const total, on.total_sync(place));
    if (total > 0x7fffffff) return fail(errc::unsupported, "to_wkb: {} bytes in one column; 2^31 - 1 at most", total);
    KILN_TRY(auto const layer, kept_layer::plain(on, from));
    KILN_TRY(auto bytes, on.room<std::uint8_t>(static_cast<std::size_t>(total)));
    KILN_TRY(auto offsets, on.room<std::int32_t>(n + 1));
    KILN_CHECK(on.launch(wkb_offsets_of{raw(place), offsets.data()}, n + 1));
    KILN_CHECK(on.launch(wkb_headers{of, raw(place), bytes.data()}, n));
    KILN_CHECK(on.launch(wkb_vertices{of, layer.view(), raw(place), bytes.data()}, layer.vertices()));
    // Which rows are null is the array's to say; through a view it is asked anew.
    std::optional<buffer<std::uint8_t>> validity;
    if (from.kind() == family::mixed ? from.mixed().validity.has_value() : from.parts().validity.has_value()) {
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
