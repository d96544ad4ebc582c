// SPDX-License-Identifier: Apache-2.0
// Well-known binary on the device: what <kiln/spatial/wkb.hpp> reads and writes, byte for byte. A thread goes through a row from count to
// count, twice: first for its numbers of everything, then for where each of its paths lies in the bytes and in memory, which sums of those
// say. No count is believed before it is compared with the bytes that are left. Vertices of paths are then read and written one by one,
// whatever row they are of. Columns of nothing but points are read and written at once.
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

// Eight bytes at any place, the first one lowest. On a device by two loads of words that lie within a range.
KILN_HD u64 bytes_one_by_one(u8 const* at, u64 n) {
    u64 out = 0;
    for (u64 i = 0; i < n; ++i) out |= u64{at[i]} << (8 * i);
    return out;
}
KILN_HD u64 eight_bytes(u8 const* at, u8 const* first, u8 const* last) {
#ifdef __CUDA_ARCH__
    u64 const beside = reinterpret_cast<u64>(at) & 7;
    u64 const* const word = reinterpret_cast<u64 const*>(at - beside);
    if (beside == 0) return *word;
    if (at - beside >= first && at - beside + 16 <= last) return word[0] >> (8 * beside) | word[1] << (64 - 8 * beside);
#else
    (void)first, (void)last;
#endif
    return bytes_one_by_one(at, 8);
}
KILN_HD u64 turned_round(u64 v) {
    v = (v & 0x00ff00ff00ff00ffU) << 8 | (v >> 8 & 0x00ff00ff00ff00ffU);
    v = (v & 0x0000ffff0000ffffU) << 16 | (v >> 16 & 0x0000ffff0000ffffU);
    return v << 32 | v >> 32;
}

struct wkb_cursor {
    u8 const* bytes;  // of the row
    u64 size;
    u8 const* first;  // of the column
    u8 const* last;
    u64 at = 0;
    u32 flaw = wkb_good;
    bool swapped = false;

    KILN_HD bool fail(u32 what) {
        flaw = what;
        return false;
    }
    KILN_HD bool has(u64 n) { return size - at >= n || fail(wkb_ends); }
    // Those that are left, if there are less.
    KILN_HD u64 eight() const {
        return size - at >= 8 ? eight_bytes(bytes + at, first, last) : bytes_one_by_one(bytes + at, size - at);
    }
    KILN_HD static u32 word_of(u64 v, bool is_swapped) { return static_cast<u32>(is_swapped ? turned_round(v) >> 32 : v); }
    KILN_HD u32 word() {
        u32 const out = word_of(eight(), swapped);
        at += 4;
        return out;
    }
    KILN_HD double number() {
        u64 const v = eight();
        at += 8;
        return from_bits(swapped ? turned_round(v) : v);
    }
    // The family's number.
    KILN_HD bool header(i32& family) {
        if (!has(5)) return false;
        u64 const ahead = eight();
        if ((ahead & 0xff) > 1) return fail(wkb_byte_order);
        swapped = (ahead & 0xff) == 0;
        u32 const type = word_of(ahead >> 8, swapped), iso = (type & 0x1fffffffU) / 1000;
        at += 5;
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
    KILN_HD wkb_cursor row(u64 i) const {
        return {bytes + offsets[i], static_cast<u64>(offsets[i + 1] - offsets[i]), bytes, bytes + size};
    }
    KILN_HD wkb_cursor from(u64 byte) const { return {bytes + byte, size - byte, bytes, bytes + size}; }
};

// ---- Reading -----------------------------------------------------------------------------------------------------------

// Of nothing but points, and null rows.
struct read_wkb_points {
    wkb_column of;
    double* x;
    double* y;
    u64* others;  // of 0
    KILN_HD void operator()(u64 i) const {
        bool good = of.is_inside(i);
        double px = from_bits(u64{0x7ff8} << 48), py = px;
        if (good && !of.is_null(i)) {
            wkb_cursor c = of.row(i);
            i32 family = 0;
            good = c.header(family) && family == 1 && c.size - c.at == 16;
            if (good) px = c.number(), py = c.number();
        }
        x[i] = px, y[i] = py;
        if (!good) *others = 1;
    }
};

struct count_wkb {
    u64 parts_seen = 0, paths_seen = 0, vertices_seen = 0;
    KILN_HD void part() { ++parts_seen; }
    KILN_HD void path() { ++paths_seen; }
    KILN_HD void vertices(wkb_cursor& c, u32 n) { vertices_seen += n, c.at += 16 * u64{n}; }
    // Bytes are less than 2^31, so sums of these are as well.
    KILN_HD i64 items() const { return static_cast<i64>(paths_seen << 32 | vertices_seen); }
};
struct inspect_wkb {
    wkb_column of;
    u8* family;     // 0: null
    u64* flaw;      // least of row << 4 | what
    u32* families;  // bits
    i64* parts;
    i64* items;  // paths, and below them vertices
    KILN_HD void operator()(u64 i) const {
        count_wkb counts;
        i32 kind = 0;
        u64 found = 0;
        if (!of.is_inside(i)) {
            found = i << 4 | wkb_offsets;
        } else if (!of.is_null(i)) {
            wkb_cursor c = of.row(i);
            if (walk_wkb(c, kind, counts)) or_into(families, 1U << kind);
            else found = i << 4 | c.flaw, kind = 0;
        }
        if (found != 0) lower_to(flaw, found);
        family[i] = static_cast<u8>(kind);
        parts[i] = static_cast<i64>(counts.parts_seen), items[i] = counts.items();
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
// Of one family among several.
struct count_wkb_rows {
    wkb_column of;
    u8 const* family;
    u8 wanted;
    i64* rows;
    i64* parts;
    i64* items;
    KILN_HD void operator()(u64 i) const {
        count_wkb counts;
        bool const is_one = family[i] == wanted;
        if (is_one) {
            wkb_cursor c = of.row(i);
            i32 kind = 0;
            walk_wkb(c, kind, counts);
        }
        rows[i] = is_one ? 1 : 0, parts[i] = static_cast<i64>(counts.parts_seen), items[i] = counts.items();
    }
};
// Where a row's begin.
struct wkb_places {
    i64 const* rows;  // null: rows are those of the column
    i64 const* parts;
    i64 const* items;
};
enum : u32 { wkb_turned = 0x80000000U };
struct wkb_memory {
    double* x;
    double* y;
    i32* row_end;   // one behind the first element of the offsets; null where there are none
    i32* part_end;
    i32* path_end;
    u32* source;  // by path: its first byte, and whether its numbers are turned round; null where rows read their vertices
};
struct write_wkb {
    wkb_memory to;
    u8 const* first;
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
        if (to.source == nullptr) {
            for (u32 i = 0; i < n; ++i, ++vertex_at) to.x[vertex_at] = c.number(), to.y[vertex_at] = c.number();
            return;
        }
        to.source[path_at - 1] = static_cast<u32>(c.bytes + c.at - first) | (c.swapped ? u32{wkb_turned} : 0U);
        c.at += 16 * u64{n}, vertex_at += n;
        to.path_end[path_at - 1] = static_cast<i32>(vertex_at);
    }
};
struct write_wkb_rows {
    wkb_column of;
    u8 const* family;
    u8 wanted;
    wkb_places at;
    wkb_memory to;
    KILN_HD void operator()(u64 i) const {
        bool const is_one = family[i] == wanted;
        if (!is_one && at.rows != nullptr) return;
        i64 const row = at.rows != nullptr ? at.rows[i] : static_cast<i64>(i);
        // Points have no offsets, and a vertex for every row.
        i64 const vertex = wanted == 1 ? row : at.items[i] & 0xffffffff;
        write_wkb w{to, of.bytes, at.parts[i], at.items[i] >> 32, vertex};
        if (is_one) {
            wkb_cursor c = of.row(i);
            i32 kind = 0;
            walk_wkb(c, kind, w);
        } else if (wanted == 1) {
            to.x[row] = to.y[row] = from_bits(u64{0x7ff8} << 48);
        }
        if (to.row_end == nullptr) return;
        bool const has_paths = wanted == 3 || wanted == 5;
        to.row_end[row] = static_cast<i32>(to.part_end != nullptr ? w.part_at : has_paths ? w.path_at : w.vertex_at);
    }
};
struct read_wkb_vertices {
    wkb_column of;
    u32 const* source;
    i32 const* path_first;
    u64 paths;
    double share;  // paths for a vertex
    double* x;
    double* y;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        u64 const path = last_not_above_near(evenly(i, share), paths, v, [this](u64 k) { return path_first[k]; });
        u32 const from = source[path];
        wkb_cursor c = of.from((from & ~u32{wkb_turned}) + 16 * static_cast<u64>(v - path_first[path]));
        c.swapped = (from & wkb_turned) != 0;
        x[i] = c.number(), y[i] = c.number();
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

// A point, where it goes. Neighbours along a path go one behind the other, and on a device each writes the words that begin in its
// bytes: the end of such a word is the beginning of the next.
KILN_HD void put_point(u8* to, double x, double y, bool is_first, double const* next_x) {
#ifdef __CUDA_ARCH__
    u32 const short_of = static_cast<u32>(-reinterpret_cast<u64>(to) & 7);
    u64 const own[2] = {bits_of(x), bits_of(y)};
    u64* const words = reinterpret_cast<u64*>(to + short_of);
    if (short_of == 0) {
        words[0] = own[0], words[1] = own[1];
        return;
    }
    u32 const shift = 8 * short_of;
    if (is_first)
        for (u32 i = 0; i < short_of; ++i) to[i] = static_cast<u8>(own[0] >> (8 * i));
    words[0] = own[0] >> shift | own[1] << (64 - shift);
    u64 const rest = own[1] >> shift;
    if (next_x != nullptr) {
        words[1] = rest | bits_of(*next_x) << (64 - shift);
    } else {
        for (u32 i = 0; i < 8 - short_of; ++i) to[8 + short_of + i] = static_cast<u8>(rest >> (8 * i));
    }
#else
    (void)is_first, (void)next_x;
    put_number(to, x), put_number(to + 8, y);
#endif
}

// A column of points, all there: by words of eight bytes of it, which are more than its offsets.
struct wkb_point_words {
    double const* x;
    double const* y;
    u32 rows;
    i32* offsets;
    u8* to;
    KILN_HD void operator()(u64 i) const {
        if (i <= rows) offsets[i] = static_cast<i32>(21 * i);
        u32 const first = static_cast<u32>(8 * i), row = first / 21, end = 21 * rows;
        if (first >= end) return;
        i32 const at = static_cast<i32>(first - 21 * row);
        u64 out = bytes_of(row, at);
        if (at > 13 && row + 1 < rows) out |= bytes_of(row + 1, at - 21);
        if (first + 8 <= end) {
            *reinterpret_cast<u64*>(to + first) = out;
        } else {
            for (u32 k = first; k < end; ++k, out >>= 8) to[k] = static_cast<u8>(out);
        }
    }

private:
    // Eight bytes of a row from `at` on, zero before its first and behind its last.
    KILN_HD u64 bytes_of(u32 row, i32 at) const {
        u64 out = at < 5 ? moved(0x0101, at) : 0;
        if (at > -3 && at < 13) out |= moved(bits_of(x[row]), at - 5);
        if (at > 5) out |= moved(bits_of(y[row]), at - 13);
        return out;
    }
    KILN_HD static u64 moved(u64 v, i32 by) { return by < 0 ? v << (-8 * by) : v >> (8 * by); }
};

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
    i64* items;  // paths, the vertices of a multipoint being one, and below them vertices
    KILN_HD void operator()(u64 i) const {
        row_source const s = source_of(of.g, static_cast<i32>(i));
        size[i] = items[i] = 0;
        if (s.family < 0 || !s.valid) return;
        family_memory const& f = of.g.memory[s.family];
        item_range const paths = paths_of(f, s.family, s.row);
        i64 const n = paths.last - paths.first;
        i64 const vertices = first_vertex(f, s.family, paths.last) - first_vertex(f, s.family, paths.first);
        if (s.family != a_point) items[i] = (s.family == a_multipoint ? 1 : n) << 32 | vertices;
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
// By path: its first vertex among all that are written, where that is in memory, and where it goes.
struct wkb_paths {
    i32* first;
    i32* from;
    u32* to;
    u8* family;
};
// Everything but the coordinates of paths.
struct wkb_headers {
    wkb_source of;
    i64 const* place;
    i64 const* items;
    u8* to;
    wkb_paths paths;
    KILN_HD void operator()(u64 i) const {
        row_source const s = source_of(of.g, static_cast<i32>(i));
        if (s.family < 0 || !s.valid) return;
        family_memory const& f = of.g.memory[s.family];
        writer w{*this, f, s.family, static_cast<u64>(place[i]), items[i] >> 32, items[i] & 0xffffffff};
        w.header(static_cast<u32>(s.family + 1));
        item_range const own = paths_of(f, s.family, s.row);
        switch (s.family) {
            case a_point: put_number(to + w.at, f.x[s.row]), put_number(to + w.at + 8, f.y[s.row]); break;
            case a_linestring: w.path(own.first); break;
            case a_multipoint: w.word(static_cast<u32>(own.last - own.first)), w.vertices(own.first, own.last); break;
            case a_multilinestring:
                w.word(static_cast<u32>(own.last - own.first));
                for (i32 p = own.first; p < own.last; ++p) w.header(2), w.path(p);
                break;
            case a_polygon: w.rings(own.first, own.last); break;
            default: {
                i32 const first = f.offsets[0][s.row], last = f.offsets[0][s.row + 1];
                w.word(static_cast<u32>(last - first));
                for (i32 p = first; p < last; ++p) w.header(3), w.rings(f.offsets[1][p], f.offsets[1][p + 1]);
            }
        }
    }

private:
    struct writer {
        wkb_headers const& all;
        family_memory const& f;
        i32 family;
        u64 at;
        i64 path_at, vertex_at;

        KILN_HD void header(u32 type) { put_header(all.to + at, type), at += 5; }
        KILN_HD void word(u32 v) { put_word(all.to + at, v), at += 4; }
        KILN_HD void vertices(i32 first, i32 last) {
            all.paths.first[path_at] = static_cast<i32>(vertex_at), all.paths.from[path_at] = first;
            all.paths.to[path_at] = static_cast<u32>(at), all.paths.family[path_at] = static_cast<u8>(family);
            ++path_at, vertex_at += last - first, at += 16 * static_cast<u64>(last - first);
        }
        KILN_HD void path(i32 p) {
            i32 const first = first_vertex(f, family, p), last = first_vertex(f, family, p + 1);
            word(static_cast<u32>(last - first)), vertices(first, last);
        }
        KILN_HD void rings(i32 first, i32 last) {
            word(static_cast<u32>(last - first));
            for (i32 p = first; p < last; ++p) path(p);
        }
    };
};
struct wkb_vertices {
    wkb_source of;
    wkb_paths paths;
    u64 path_count, vertex_count;
    double share;  // paths for a vertex
    u8* to;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        u64 const path = last_not_above_near(evenly(i, share), path_count, v, [this](u64 k) { return paths.first[k]; });
        u64 const end = path + 1 < path_count ? static_cast<u64>(paths.first[path + 1]) : vertex_count;
        family_memory const& f = of.g.memory[paths.family[path]];
        i32 const k = v - paths.first[path], from = paths.from[path] + k;
        u8* const here = to + paths.to[path];
        if (paths.family[path] == a_multipoint) {
            u8* const member = here + 21 * static_cast<u64>(k);
            put_header(member, 1), put_number(member + 5, f.x[from]), put_number(member + 13, f.y[from]);
            return;
        }
        put_point(here + 16 * static_cast<u64>(k), f.x[from], f.y[from], k == 0, i + 1 < end ? f.x + from + 1 : nullptr);
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

KILN_KERNEL(wkb_points, kiln_spatial::read_wkb_points, 256, 1)
KILN_KERNEL(wkb_inspect, kiln_spatial::inspect_wkb, 128, 4)
KILN_KERNEL(wkb_flawed, kiln_spatial::find_wkb_flaw, 32, 1)
KILN_KERNEL(wkb_count, kiln_spatial::count_wkb_rows, 128, 4)
KILN_KERNEL(wkb_read, kiln_spatial::write_wkb_rows, 128, 4)
KILN_KERNEL(wkb_read_vertices, kiln_spatial::read_wkb_vertices, 256, 1)
KILN_KERNEL(wkb_place, kiln_spatial::place_wkb_rows, 256, 1)
KILN_KERNEL(wkb_point_words, kiln_spatial::wkb_point_words, 256, 1)
KILN_KERNEL(wkb_size, kiln_spatial::wkb_sizes, 256, 1)
KILN_KERNEL(wkb_offset, kiln_spatial::wkb_offsets_of, 256, 1)
KILN_KERNEL(wkb_header, kiln_spatial::wkb_headers, 128, 4)
KILN_KERNEL(wkb_write, kiln_spatial::wkb_vertices, 256, 1)
KILN_KERNEL(wkb_valid, kiln_spatial::wkb_validity, 128, 1)
