// SPDX-License-Identifier: Apache-2.0
// Matrices of pairs of rows. A fact is a contact of elements, or a path or an end of a line inside the other row. Facts are
// sorted by pair; what they prove is ORed into its matrix; and what was seen of each row is counted, since what was not seen is
// outside (relate.cuh).
#pragma once

#include "grid.cuh"
#include "relate.cuh"

namespace kiln_spatial {

struct contact_facts {
    i32 const* left;  // elements
    i32 const* right;
    u8 const* how;
};
// Questions of path_points.cuh, with the rows they were found in.
struct inside_facts {
    i32 const* question;
    i32 const* row;
};

KILN_HD i32 row_of_question(layer const& l, i32 k) { return k < l.paths ? l.row_of[k] : row_at(l, k - l.paths); }

// All facts in one row: contacts, then what of a lies in b, then what of b lies in a. Their pairs as keys, a's row first.
struct fact_list {
    layer a, b;
    contact_facts met;
    inside_facts in_b, in_a;
    u64 mets, in_bs, in_as;

    struct rows_of_fact {
        i32 a, b;  // -1: none
    };
    KILN_HD rows_of_fact rows(u64 i) const {
        if (i < mets) {
            if (met.how[i] == apart) return {-1, -1};
            return {row_at(a, met.left[i]), row_at(b, met.right[i])};
        }
        i -= mets;
        if (i < in_bs) return {row_of_question(a, in_b.question[i]), in_b.row[i]};
        i -= in_bs;
        return {in_a.row[i], row_of_question(b, in_a.question[i])};
    }
};
struct fact_keys {
    fact_list f;
    i32 bits;  // of a row of b
    u64 none;
    u64* key;
    i32* number;
    KILN_HD void operator()(u64 i) const {
        fact_list::rows_of_fact const r = f.rows(i);
        key[i] = r.a < 0 ? none : static_cast<u64>(r.a) << bits | static_cast<u64>(r.b);
        number[i] = static_cast<i32>(i);
    }
};
struct fact_pairs {
    i64 const* place;  // distinct keys so far
    u64 const* key;    // sorted
    u64 none;
    i32 const* number;
    i32* pair;  // by fact; -1: none
    KILN_HD void operator()(u64 i) const { pair[number[i]] = key[i] == none ? -1 : static_cast<i32>(place[i + 1] - 1); }
};
// Of a relation row by row the pair is the row itself.
struct fact_rows {
    fact_list f;
    i32* pair;
    KILN_HD void operator()(u64 i) const {
        fact_list::rows_of_fact const r = f.rows(i);
        pair[i] = r.a >= 0 && r.a == r.b ? r.a : -1;
    }
};

// Rows that meet in more than crossings: there it matters how their own paths meet (noding.cuh).
struct mark_touched {
    layer a, b;
    contact_facts met;
    u32* rows_a;  // of 0
    u32* rows_b;
    u32* any;
    KILN_HD void operator()(u64 i) const {
        if (met.how[i] == apart || met.how[i] == crossing) return;
        rows_a[row_at(a, met.left[i])] = 1, rows_b[row_at(b, met.right[i])] = 1, *any = 1;
    }
};

// ---- What facts prove --------------------------------------------------------------------------------------------------

// Behind the matrix: some path of the row was seen.
enum : u32 { matrix_bits = (1U << 27) - 1, seen_a = 1U << 27, seen_b = 1U << 28 };

struct prove_contacts {
    fact_list f;
    i32 const* pair;
    u32* bits;  // of 0
    KILN_HD void operator()(u64 i) const {
        if (pair[i] < 0) return;
        u32 const proved = evidence_of<share_of_contact::own>(f.a, f.met.left[i], f.b, f.met.right[i],
                                                              static_cast<segment_contact>(f.met.how[i]));
        or_into(bits + pair[i], proved | seen_a | seen_b);
    }
};
struct prove_insides {
    fact_list f;
    i32 const* pair;
    u32* bits;
    KILN_HD void operator()(u64 i) const {
        i32 const p = pair[f.mets + i];
        if (p < 0) return;
        bool const of_a = i < f.in_bs;
        layer const& l = of_a ? f.a : f.b;
        i32 const k = of_a ? f.in_b.question[i] : f.in_a.question[i - f.in_bs];
        bool const is_path = k < l.paths;
        u32 const proved = is_path ? runs_through_area(l.kind[k], interior) : proof(boundary, interior, 0);
        or_into(bits + p, (of_a ? proved : transposed(proved)) | (!is_path ? 0U : of_a ? u32{seen_a} : u32{seen_b}));
    }
};

// ---- What was seen of a row --------------------------------------------------------------------------------------------

// pair << 32 | what; all bits for nothing. One side at a time: contacts, then insides of that side.
struct facts_of_side {
    fact_list f;
    i32 const* pair;
    i32 of_b;  // 0: of a

    KILN_HD layer const& own() const { return of_b != 0 ? f.b : f.a; }
    KILN_HD layer const& other() const { return of_b != 0 ? f.a : f.b; }
    KILN_HD i32 element(u64 contact) const { return of_b != 0 ? f.met.right[contact] : f.met.left[contact]; }
    KILN_HD i32 other_element(u64 contact) const { return of_b != 0 ? f.met.left[contact] : f.met.right[contact]; }
    KILN_HD i32 pair_of(u64 i) const { return i < f.mets || of_b == 0 ? pair[i] : pair[f.in_bs + i]; }
    KILN_HD i32 question(u64 i) const { return of_b != 0 ? f.in_a.question[i - f.mets] : f.in_b.question[i - f.mets]; }
    KILN_HD static u64 key(i32 pair, i32 what) { return static_cast<u64>(static_cast<u32>(pair)) << 32 | static_cast<u32>(what); }
};
// Paths of rows that have several. Facts that follow each other are often of the same.
struct seen_paths {
    facts_of_side s;
    u64 const* row_paths;
    u64* list;
    u32* listed;
    KILN_HD void operator()(u64 i) const {
        u64 const k = key(i);
        append(k != ~u64{0} && (i == 0 || key(i - 1) != k), k, list, listed);
    }

private:
    KILN_HD u64 key(u64 i) const {
        i32 const p = s.pair_of(i), path = i < s.f.mets ? s.own().path_of[s.element(i)] : s.question(i);
        if (p < 0 || path >= s.own().paths || path_count{row_paths[s.own().row_of[path]]}.all() < 2) return ~u64{0};
        return s.key(p, path);
    }
};
// Ends of lines: two for each contact, and insides.
struct seen_ends {
    facts_of_side s;
    u64* end;
    KILN_HD void operator()(u64 i) const {
        if (i < s.f.mets) return see_contact(i);
        layer const& own = s.own();
        i32 const p = s.pair_of(i), q = s.question(i);
        end[s.f.mets + i] = p >= 0 && q >= own.paths ? s.key(p, own.group_first[q - own.paths]) : ~u64{0};
    }

private:
    KILN_HD void see_contact(u64 i) const {
        layer const& own = s.own();
        layer const& other = s.other();
        i32 const p = s.pair[i], v = s.element(i), w = s.other_element(i);
        point const c = other.at[w], d = element_end(other, w);
        for (int k = 0; k < 2; ++k) {
            i32 const vertex = k == 0 ? v : end_vertex(own, v);
            bool const touched = p >= 0 && own.is_end[vertex] != 0 && on_segment(c, d, own.at[vertex]);
            end[2 * i + static_cast<u64>(k)] = touched ? s.key(p, own.group_first[vertex]) : ~u64{0};
        }
    }
};
// Of sorted keys: how many different ones each pair has.
struct count_seen {
    u64 const* key;
    u8 const* kind;  // of paths, which make a path_count; null: of other things
    u64* count;      // of 0
    KILN_HD void operator()(u64 i) const {
        if (key[i] == ~u64{0} || (i > 0 && key[i] == key[i - 1])) return;
        add_to(count + (key[i] >> 32), kind != nullptr ? path_count::one(kind[static_cast<u32>(key[i])]) : 1);
    }
};

// Common pieces with lines, by pair and segment.
struct piece_keys {
    fact_list f;
    i32 const* pair;
    i32 of_b;
    u64* key;
    i32* number;
    KILN_HD void operator()(u64 i) const {
        i32 const v = of_b != 0 ? f.met.right[i] : f.met.left[i];
        bool const is_piece = pair[i] >= 0 && f.met.how[i] == overlapping;
        key[i] = is_piece ? static_cast<u64>(static_cast<u32>(pair[i])) << 32 | static_cast<u32>(v) : ~u64{0};
        number[i] = static_cast<i32>(i);
    }
};
// Segments that their pieces cover from end to end. There are few to a segment, in any order.
struct count_covered {
    fact_list f;
    i32 of_b;
    u64 const* key;  // sorted
    i32 const* number;
    u64* count;
    KILN_HD void operator()(u64 i) const {
        if (key[i] == ~u64{0} || (i > 0 && key[i] == key[i - 1])) return;
        layer const& own = of_b != 0 ? f.b : f.a;
        layer const& other = of_b != 0 ? f.a : f.b;
        i32 const s = static_cast<i32>(static_cast<u32>(key[i]));
        point const a0 = own.at[s], a1 = own.at[s + 1];
        bool const upright = a0.x == a1.x;
        double reached = upright ? least(a0.y, a1.y) : least(a0.x, a1.x);
        double const end = upright ? most(a0.y, a1.y) : most(a0.x, a1.x);
        for (bool further = true; further && reached < end;) {
            further = false;
            for (u64 k = i; k < f.mets && key[k] == key[i]; ++k) {
                i32 const c = number[k], w = of_b != 0 ? f.met.left[c] : f.met.right[c];
                point const b0 = other.at[w], b1 = other.at[w + 1];
                double const p = upright ? b0.y : b0.x, q = upright ? b1.y : b1.x;
                if (least(p, q) <= reached && most(p, q) > reached) reached = most(p, q), further = true;
            }
        }
        if (reached >= end) add_to(count + (key[i] >> 32), 1);
    }
};

// ---- The matrix --------------------------------------------------------------------------------------------------------

struct seen_of_side {
    u64 const* paths;    // seen of rows that have several, a path_count by pair; null: of none
    u64 const* ends;     // null: no lines
    u64 const* covered;  // null: the other has no lines
    u64 const* row_paths;
    u64 const* row_ends;
    u64 const* row_segments;
    u8 const* state;
    signed char const* dimension;
};
// Entries are (own, other).
KILN_HD u32 evidence_of_rest(seen_of_side const& s, u64 pair, bool seen, i32 row, int other_dimension) {
    u32 out = 0;
    int const d = s.dimension[row];
    path_count const all{s.row_paths[row]};
    path_count const there{all.all() < 2 ? (seen ? all.both : 0) : s.paths != nullptr ? s.paths[pair] : 0};
    u64 const outside = all.all() - there.all(), points = all.points() - there.points();
    if (d == 2 && outside > 0) out |= evidence_outside(ring_path);
    if (d < 2 && outside > points) out |= evidence_outside(line_path);
    if (d < 2 && points > 0) out |= evidence_outside(point_path);
    if (s.ends != nullptr && s.ends[pair] < s.row_ends[row]) out |= proof(boundary, exterior, 0);
    if (s.covered != nullptr && other_dimension == 1 && d > 0 && s.covered[pair] < s.row_segments[row])
        out |= proof(d == 2 ? boundary : interior, exterior, 1);
    return out;
}
struct finish_matrices {
    i32 const* left;  // rows of pairs; null: the pair's own number
    i32 const* right;
    seen_of_side a, b;
    u32* bits;
    KILN_HD void operator()(u64 i) const {
        i32 const ra = left != nullptr ? left[i] : static_cast<i32>(i), rb = right != nullptr ? right[i] : static_cast<i32>(i);
        if (a.state[ra] == 0 || b.state[rb] == 0) {  // null
            bits[i] = 0;
            return;
        }
        int const da = a.dimension[ra], db = b.dimension[rb];
        bool const saw_a = (bits[i] & seen_a) != 0, saw_b = (bits[i] & seen_b) != 0;
        u32 out = (bits[i] & matrix_bits) | proof(exterior, exterior, 2);
        if (a.state[ra] == 2 && b.state[rb] == 2) out |= evidence_of_dimensions(da, db);
        bits[i] = out | evidence_of_rest(a, i, saw_a, ra, db) | transposed(evidence_of_rest(b, i, saw_b, rb, da));
    }
};

// ---- Predicates --------------------------------------------------------------------------------------------------------

// As holds() of <kiln/spatial/relate.hpp>, numbered as there. Entries that must be there and entries that must not, by number.
struct predicate_test {
    i32 what;
    KILN_HD static bool there(u32 bits, int entry) { return (bits >> (3 * entry) & 7U) != 0; }
    KILN_HD static int dimension(u32 bits, int entry) {
        u32 const e = bits >> (3 * entry) & 7U;
        return e >= 4 ? 2 : e >= 2 ? 1 : e >= 1 ? 0 : -1;
    }
    KILN_HD bool holds(u32 m, int da, int db) const {
        enum { ii, ib, ie, bi, bb, be, ei, eb };
        bool const meets = there(m, ii) || there(m, ib) || there(m, bi) || there(m, bb);
        bool const no_a_outside = !there(m, ie) && !there(m, be), no_b_outside = !there(m, ei) && !there(m, eb);
        switch (what) {
            case 0: return meets;
            case 1: return !meets;
            case 2: return there(m, ii) && no_b_outside;
            case 3: return there(m, ii) && !there(m, bi) && !there(m, bb) && no_b_outside;
            case 4: return there(m, ii) && no_a_outside;
            case 5: return meets && no_b_outside;
            case 6: return meets && no_a_outside;
            case 7: return !(da == 0 && db == 0) && !there(m, ii) && meets;
            case 8:
                if (da < db) return there(m, ii) && there(m, ie);
                if (da > db) return there(m, ii) && there(m, ei);
                return da == 1 && dimension(m, ii) == 0;
            case 9: return da == db && (da == 1 ? dimension(m, ii) == 1 : there(m, ii)) && there(m, ie) && there(m, ei);
            default: return da == db && there(m, ii) && no_a_outside && no_b_outside;
        }
    }
};
struct held_pairs {
    predicate_test what;
    u32 const* bits;
    i32 const* left;
    i32 const* right;
    signed char const* dimension_a;
    signed char const* dimension_b;
    KILN_HD bool holds(u64 i) const { return what.holds(bits[i], dimension_a[left[i]], dimension_b[right[i]]); }
};
struct count_holding {
    held_pairs of;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = of.holds(i) ? 1 : 0; }
};
// How many of a row, which are not listed.
struct count_holding_of_rows {
    held_pairs of;
    i32 const* row;  // by pair
    u64* count;      // of 0
    KILN_HD void operator()(u64 i) const {
        if (of.holds(i)) count_in(count, static_cast<u32>(row[i]));
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(relate_fact_keys, kiln_spatial::fact_keys, 256, 1)
KILN_KERNEL(relate_fact_pairs, kiln_spatial::fact_pairs, 256, 1)
KILN_KERNEL(relate_fact_rows, kiln_spatial::fact_rows, 256, 1)
KILN_KERNEL(relate_contacts, kiln_spatial::prove_contacts, 128, 4)
KILN_KERNEL(relate_insides, kiln_spatial::prove_insides, 256, 1)
KILN_KERNEL(relate_touched, kiln_spatial::mark_touched, 256, 1)
KILN_KERNEL(relate_seen_paths, kiln_spatial::seen_paths, 256, 1)
KILN_KERNEL(relate_seen_ends, kiln_spatial::seen_ends, 128, 1)
KILN_KERNEL(relate_seen_count, kiln_spatial::count_seen, 256, 1)
KILN_KERNEL(relate_pieces, kiln_spatial::piece_keys, 256, 1)
KILN_KERNEL(relate_covered, kiln_spatial::count_covered, 128, 1)
KILN_KERNEL(relate_matrices, kiln_spatial::finish_matrices, 256, 1)
KILN_KERNEL(relate_holding_count, kiln_spatial::count_holding, 256, 1)
KILN_KERNEL(relate_holding_rows, kiln_spatial::count_holding_of_rows, 256, 1)
