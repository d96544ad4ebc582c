// SPDX-License-Identifier: Apache-2.0
// Well-known binary on the device: what <kiln/spatial/wkb.hpp> reads and writes, byte for byte. Reading goes through every row twice,
// first for its numbers of everything, then to write it where sums of those say. No count is believed before it is compared with the
// bytes that are left. Writing knows every place from the offsets, so vertices are written one by one.
#pragma once

#include "geometry_rows.cuh"
#include "grid.cuh"
#include "layer.cuh"

namespace kiln_spatial {

enum wkb_flaw : u32 {
    wkb_good = 0,
    wkb_ends,         // within a geometry
    wkb_byte_order,
    wkb_dimensions,   // Z or M
    wkb_type,         // none of the six families
    wkb_member,       // of another family than the multi's
    wkb_count,        // of members that do not fit
    wkb_more,         // bytes follow
    wkb_empty_point,  // inside a multipoint
    wkb_offsets,      // that leave the column
};

struct wkb_cursor {
    u8 const* bytes;
    u64 size;
    u64 at = 0;
    u32 flaw = wkb_good;
    bool swapped = false;

    KILN_HD bool fail(u32 what) {
        flaw = what;
        return false;
    }
    KILN_HD bool has(u64 n) { return size - at >= n || fail(wkb_ends); }
    KILN_HD u32 word() {
        u32 out = 0;
        for (int i = 0; i < 4; ++i) out |= u32{bytes[at + static_cast<u64>(i)]} << (8 * (swapped ? 3 - i : i));
        at += 4;
        return out;
    }
    KILN_HD double number() {
        u64 out = 0;
        for (int i = 0; i < 8; ++i) out |= u64{bytes[at + static_cast<u64>(i)]} << (8 * (swapped ? 7 - i : i));
        at += 8;
        return from_bits(out);
    }
    // The family's number.
    KILN_HD bool header(i32& family) {
        if (!has(5)) return false;
        u8 const order = bytes[at++];
        if (order > 1) return --at, fail(wkb_byte_order);
        swapped = order == 0;
        u32 const type = word(), iso = (type & 0x1fffffffU) / 1000;
        if ((type & 0xc0000000U) != 0 || (iso >= 1 && iso <= 3)) return fail(wkb_dimensions);
        if ((type & 0x20000000U) != 0) {
            if (!has(4)) return false;
            at += 4;
        }
        family = static_cast<i32>(type & 0x1fffffffU);
        return (family >= 1 && family <= 6) || fail(wkb_type);
    }
    // Of members that take at least `each` bytes.
    KILN_HD bool count(u64 each, u32& n) {
        if (!has(4)) return false;
        n = word();
        if (n <= (size - at) / each) return true;
        at -= 4;
        return fail(wkb_count);
    }
};

// Goes through one row: to.part(), to.path() and to.vertices(cursor, n), which takes 16 n bytes. True where the row is good.
template <class To>
KILN_HD bool walk_wkb_body(wkb_cursor& c, i32 family, bool alone, To& to) {
    if (family == 1) {
        if (!c.has(16)) return false;
        wkb_cursor ahead = c;
        double const x = ahead.number(), y = ahead.number();
        if (!alone && x != x && y != y) return c.fail(wkb_empty_point);
        to.vertices(c, 1);
        return true;
    }
    u32 n = 0;
    if (family == 2) {
        to.path();
        if (!c.count(16, n)) return false;
        to.vertices(c, n);
        return true;
    }
    u32 rings = 0;
    to.part();
    if (!c.count(4, rings)) return false;
    for (u32 i = 0; i < rings; ++i) {
        to.path();
        if (!c.count(16, n)) return false;
        to.vertices(c, n);
    }
    return true;
}
template <class To>
KILN_HD bool walk_wkb(wkb_cursor& c, i32& family, To& to) {
    if (!c.header(family)) return false;
    if (family <= 3) {
        if (!walk_wkb_body(c, family, true, to)) return false;
    } else {
        u32 members = 0;
        if (!c.count(5, members)) return false;
        for (u32 i = 0; i < members; ++i) {
            i32 member = 0;
            if (!c.header(member)) return false;
            if (member != family - 3) return c.fail(wkb_member);
            if (!walk_wkb_body(c, member, false, to)) return false;
        }
    }
    return c.at == c.size || c.fail(wkb_more);
}

struct wkb_column {
    u8 const* bytes;
    u64 size;
    i32 const* offsets;
    u8 const* validity;
    KILN_HD bool is_null(u64 i) const { return validity != nullptr && (validity[i >> 3] >> (i & 7) & 1) == 0; }
    KILN_HD bool is_inside(u64 i) const {
        return offsets[i] >= 0 && offsets[i + 1] >= offsets[i] && static_cast<u64>(offsets[i + 1]) <= size;
    }
    KILN_HD wkb_cursor row(u64 i) const { return {bytes + offsets[i], static_cast<u64>(offsets[i + 1] - offsets[i])}; }
};

// ---- Reading -----------------------------------------------------------------------------------------------------------

struct count_wkb {
    u64 parts_seen = 0, paths_seen = 0, vertices_seen = 0;
    KILN_HD void part() { ++parts_seen; }
    KILN_HD void path() { ++paths_seen; }
    KILN_HD void vertices(wkb_cursor& c, u32 n) { vertices_seen += n, c.at += 16 * u64{n}; }
};
struct inspect_wkb {
    wkb_column of;
    u8* family;     // 0: null
    u64* flaw;      // least of row << 4 | what
    u32* families;  // bits
    KILN_HD void operator()(u64 i) const {
        family[i] = 0;
        if (of.is_null(i)) return;
        u64 found = 0;
        if (!of.is_inside(i)) {
            found = i << 4 | wkb_offsets;
        } else {
            wkb_cursor c = of.row(i);
            count_wkb counts;
            i32 kind = 0;
            if (walk_wkb(c, kind, counts)) {
                family[i] = static_cast<u8>(kind);
                or_into(families, 1U << kind);
            } else {
                found = i << 4 | c.flaw;
            }
        }
        if (found != 0) lower_to(flaw, found);
    }
};
// The byte at which a row is flawed.
struct find_wkb_flaw {
    wkb_column of;
    u64 row;
    i64* byte;
    KILN_HD void operator()(u64) const {
        wkb_cursor c = of.row(row);
        count_wkb counts;
        i32 kind = 0;
        walk_wkb(c, kind, counts);
        *byte = static_cast<i64>(c.at);
    }
};
// Rows, parts, paths and vertices of one family.
struct count_wkb_rows {
    wkb_column of;
    u8 const* family;
    u8 wanted;
    i64* rows;
    i64* parts;
    i64* paths;
    i64* vertices;
    KILN_HD void operator()(u64 i) const {
        count_wkb counts;
        bool const is_one = family[i] == wanted;
        if (is_one) {
            wkb_cursor c = of.row(i);
            i32 kind = 0;
            walk_wkb(c, kind, counts);
        }
        rows[i] = is_one ? 1 : 0, parts[i] = static_cast<i64>(counts.parts_seen), paths[i] = static_cast<i64>(counts.paths_seen);
        vertices[i] = static_cast<i64>(counts.vertices_seen);
    }
};
// Where each of them begins, and where it goes.
struct wkb_places {
    i64 const* rows;
    i64 const* parts;
    i64 const* paths;
    i64 const* vertices;
};
struct wkb_memory {
    double* x;
    double* y;
    i32* row_end;   // one behind the first element of the offsets; null where there are none
    i32* part_end;
    i32* path_end;
};
struct write_wkb {
    wkb_memory to;
    i64 part_at, path_at, vertex_at;
    // A part or path that was begun ends where the next begins: the last one's end is written last.
    KILN_HD void part() {
        if (to.part_end != nullptr) to.part_end[part_at] = static_cast<i32>(path_at);
        ++part_at;
    }
    KILN_HD void path() {
        if (to.path_end != nullptr) to.path_end[path_at] = static_cast<i32>(vertex_at);
        ++path_at;
        if (to.part_end != nullptr && part_at > 0) to.part_end[part_at - 1] = static_cast<i32>(path_at);
    }
    KILN_HD void vertices(wkb_cursor& c, u32 n) {
        for (u32 i = 0; i < n; ++i, ++vertex_at) to.x[vertex_at] = c.number(), to.y[vertex_at] = c.number();
        if (to.path_end != nullptr && path_at > 0) to.path_end[path_at - 1] = static_cast<i32>(vertex_at);
    }
};
struct write_wkb_rows {
    wkb_column of;
    u8 const* family;
    u8 wanted;
    u8 alone;  // the only family: null rows have places too
    wkb_places at;
    wkb_memory to;
    KILN_HD void operator()(u64 i) const {
        bool const is_one = family[i] == wanted;
        if (!is_one && alone == 0) return;
        i64 const row = alone != 0 ? static_cast<i64>(i) : at.rows[i];
        // Points have no offsets, and a vertex for every row.
        i64 const vertex = wanted == 1 ? row : at.vertices[i];
        write_wkb w{to, at.parts[i], at.paths[i], vertex};
        if (is_one) {
            wkb_cursor c = of.row(i);
            i32 kind = 0;
            walk_wkb(c, kind, w);
        } else if (wanted == 1) {
            to.x[row] = to.y[row] = from_bits(u64{0x7ff8} << 48);
        }
        if (to.row_end != nullptr)
            to.row_end[row] = static_cast<i32>(to.part_end != nullptr ? w.part_at : to.path_end != nullptr ? w.path_at : w.vertex_at);
    }
};
// Of mixed arrays: the family of each row and its place in it.
struct place_wkb_rows {
    u8 const* family;
    u8 wanted, fallback;
    i64 const* rows;
    signed char* type;
    i32* child_row;
    KILN_HD void operator()(u64 i) const {
        if (family[i] == wanted) type[i] = static_cast<signed char>(wanted), child_row[i] = static_cast<i32>(rows[i]);
        if (family[i] == 0 && wanted == fallback) type[i] = static_cast<signed char>(fallback), child_row[i] = 0;
    }
};

// ---- Writing -----------------------------------------------------------------------------------------------------------

KILN_HD void put_word(u8* to, u32 v) {
    for (int i = 0; i < 4; ++i) to[i] = static_cast<u8>(v >> (8 * i));
}
KILN_HD void put_number(u8* to, double v) {
    u64 const bits = bits_of(v);
    for (int i = 0; i < 8; ++i) to[i] = static_cast<u8>(bits >> (8 * i));
}
KILN_HD void put_header(u8* to, u32 family) { to[0] = 1, put_word(to + 1, family); }

struct wkb_source {
    geometry_rows g;
    KILN_HD i32 parts(row_source const& s) const {
        i32 const* const o = g.memory[s.family].offsets[0];
        return s.family == a_multipolygon ? o[s.row + 1] - o[s.row] : s.family == a_polygon ? 1 : 0;
    }
};
struct wkb_sizes {
    wkb_source of;
    i64* size;
    KILN_HD void operator()(u64 i) const {
        row_source const s = source_of(of.g, static_cast<i32>(i));
        size[i] = 0;
        if (s.family < 0 || !s.valid) return;
        family_memory const& f = of.g.memory[s.family];
        item_range const paths = paths_of(f, s.family, s.row);
        i64 const n = paths.last - paths.first;
        i64 const vertices = first_vertex(f, s.family, paths.last) - first_vertex(f, s.family, paths.first);
        switch (s.family) {
            case a_point: size[i] = 21; break;
            case a_linestring: size[i] = 9 + 16 * vertices; break;
            case a_polygon: size[i] = 9 + 4 * n + 16 * vertices; break;
            case a_multipoint: size[i] = 9 + 21 * vertices; break;
            case a_multilinestring: size[i] = 9 + 9 * n + 16 * vertices; break;
            default: size[i] = 9 + 9 * i64{of.parts(s)} + 4 * n + 16 * vertices;
        }
    }
};
struct wkb_offsets_of {
    i64 const* place;
    i32* to;
    KILN_HD void operator()(u64 i) const { to[i] = static_cast<i32>(place[i]); }
};
// Everything but coordinates, and the members of multipoints.
struct wkb_headers {
    wkb_source of;
    i64 const* place;
    u8* to;
    KILN_HD void operator()(u64 i) const {
        row_source const s = source_of(of.g, static_cast<i32>(i));
        if (s.family < 0 || !s.valid) return;
        family_memory const& f = of.g.memory[s.family];
        u8* at = to + place[i];
        put_header(at, static_cast<u32>(s.family + 1)), at += 5;
        if (s.family == a_point) return;
        item_range const paths = paths_of(f, s.family, s.row);
        auto const vertices = [&](i32 path) {
            return static_cast<u32>(first_vertex(f, s.family, path + 1) - first_vertex(f, s.family, path));
        };
        switch (s.family) {
            case a_linestring: put_word(at, vertices(paths.first)); break;
            case a_multipoint: put_word(at, static_cast<u32>(paths.last - paths.first)); break;
            case a_multilinestring:
                put_word(at, static_cast<u32>(paths.last - paths.first)), at += 4;
                for (i32 p = paths.first; p < paths.last; ++p)
                    put_header(at, 2), put_word(at + 5, vertices(p)), at += 9 + 16 * u64{vertices(p)};
                break;
            case a_polygon: rings(at, paths.first, paths.last, vertices); break;
            default: {
                i32 const first = f.offsets[0][s.row], last = f.offsets[0][s.row + 1];
                put_word(at, static_cast<u32>(last - first)), at += 4;
                for (i32 p = first; p < last; ++p)
                    put_header(at, 3), at = rings(at + 5, f.offsets[1][p], f.offsets[1][p + 1], vertices);
            }
        }
    }

private:
    template <class Vertices>
    KILN_HD static u8* rings(u8* at, i32 first, i32 last, Vertices vertices) {
        put_word(at, static_cast<u32>(last - first)), at += 4;
        for (i32 p = first; p < last; ++p) put_word(at, vertices(p)), at += 4 + 16 * u64{vertices(p)};
        return at;
    }
};
// By vertex of a layer of the same geometries.
struct wkb_vertices {
    wkb_source of;
    layer l;
    i64 const* place;
    u8* to;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), path = l.path_of[v], row = l.row_of[path];
        row_source const s = source_of(of.g, row);
        if (s.family < 0 || !s.valid) return;
        family_memory const& f = of.g.memory[s.family];
        item_range const own = paths_of(f, s.family, s.row);
        i32 const j = path - l.row_first[row], memory_path = own.first + j;
        i32 const from = first_vertex(f, s.family, memory_path) + v - l.path_first[path];
        i64 const before = v - l.path_first[l.row_first[row]];  // vertices of the row
        i64 at = 0;
        switch (s.family) {
            case a_point: at = 5; break;
            case a_linestring: at = 9; break;
            case a_polygon: at = 9 + 4 * (i64{j} + 1); break;
            case a_multipoint: at = 9 + 5 * (i64{j} + 1); break;
            case a_multilinestring: at = 9 + 9 * (i64{j} + 1); break;
            default: {
                i32 const first = f.offsets[0][s.row];
                i32 const polygon = static_cast<i32>(last_not_above(static_cast<u64>(f.offsets[0][s.row + 1] - first), memory_path,
                                                                    [&](u64 k) { return f.offsets[1][first + static_cast<i32>(k)]; }));
                at = 9 + 9 * (i64{polygon} + 1) + 4 * (i64{j} + 1);
            }
        }
        u8* const here = to + place[row] + at + 16 * before;
        if (s.family == a_multipoint) put_header(here - 5, 1);
        put_number(here, f.x[from]), put_number(here + 8, f.y[from]);
    }
};
// Eight rows at a time.
struct wkb_validity {
    geometry_rows g;
    u64 rows;
    u8* to;
    KILN_HD void operator()(u64 i) const {
        u32 bits = 0;
        for (u64 k = 0; k < 8 && 8 * i + k < rows; ++k)
            bits |= (source_of(g, static_cast<i32>(8 * i + k)).valid ? 1U : 0U) << k;
        to[i] = static_cast<u8>(bits);
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(wkb_inspect, kiln_spatial::inspect_wkb, 128, 4)
KILN_KERNEL(wkb_flawed, kiln_spatial::find_wkb_flaw, 32, 1)
KILN_KERNEL(wkb_count, kiln_spatial::count_wkb_rows, 128, 4)
KILN_KERNEL(wkb_read, kiln_spatial::write_wkb_rows, 128, 4)
KILN_KERNEL(wkb_place, kiln_spatial::place_wkb_rows, 256, 1)
KILN_KERNEL(wkb_size, kiln_spatial::wkb_sizes, 256, 1)
KILN_KERNEL(wkb_offset, kiln_spatial::wkb_offsets_of, 256, 1)
KILN_KERNEL(wkb_header, kiln_spatial::wkb_headers, 128, 4)
KILN_KERNEL(wkb_write, kiln_spatial::wkb_vertices, 128, 4)
KILN_KERNEL(wkb_valid, kiln_spatial::wkb_validity, 128, 1)
