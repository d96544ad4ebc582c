// SPDX-License-Identifier: Apache-2.0
// How far the two rows of many pairs are apart, and whether that is at most so much. A pair is as many items as its smaller row has
// vertices, each of which looks for something near in the larger row; and where the smaller row is an area, every path of the
// larger one is asked whether it lies inside. Filters first, and what they cannot decide again, exactly.
#pragma once

#include "row_search.cuh"
#include "within.cuh"

namespace kiln_spatial {

// Row i with row i where there are no lists.
struct rows_of_pairs {
    i32 const* left;
    i32 const* right;
    KILN_HD i32 left_of(u64 k) const { return left != nullptr ? left[k] : static_cast<i32>(k); }
    KILN_HD i32 right_of(u64 k) const { return right != nullptr ? right[k] : static_cast<i32>(k); }
};

struct pair_sides {
    row_search a, b;
    rows_of_pairs p;

    KILN_HD bool are_there(u64 k) const {
        return a.state[p.left_of(k)] == row_there && b.state[p.right_of(k)] == row_there;
    }
    KILN_HD bool left_is_smaller(i32 left, i32 right) const { return a.vertices(left) <= b.vertices(right); }
    KILN_HD i64 items(u64 k) const {
        i32 const i = p.left_of(k), j = p.right_of(k);
        return left_is_smaller(i, j) ? items_of(a, i, b, j) : items_of(b, j, a, i);
    }

private:
    KILN_HD static i64 items_of(row_search const& small, i32 i, row_search const& large, i32 j) {
        return small.vertices(i) + (small.dimension[i] == 2 ? large.l.row_first[j + 1] - large.l.row_first[j] : 0);
    }
};

// Whether every pair has to be asked if a path of the left row lies in an area of the right one, or that was found before.
enum class right_areas : int { asked, known };

// Items of pairs, by the sums of their numbers.
struct pair_items {
    pair_sides of;
    i64 const* place;
    u64 pairs;
    right_areas insides;

    // found(pair) is asked first; then inside(pair) is called, or element(pair, segment, large, row). True unless something was unsure.
    template <certainty How, class Done, class Inside, class Element>
    KILN_HD bool ask(u64 item, Done done, Inside inside, Element element) const {
        u64 const k = last_not_above(pairs, static_cast<i64>(item), [this](u64 i) { return place[i]; });
        if (done(k)) return true;
        i32 const i = of.p.left_of(k), j = of.p.right_of(k);
        bool const is_left = of.left_is_smaller(i, j);
        row_search const& small = is_left ? of.a : of.b;
        row_search const& large = is_left ? of.b : of.a;
        i32 const own = is_left ? i : j, other = is_left ? j : i;
        i32 const at = static_cast<i32>(static_cast<i64>(item) - place[k]), vertices = small.vertices(own);
        bool unsure = false;
        bool const knows_small = insides == right_areas::known && !is_left, knows_large = insides == right_areas::known && is_left;
        if (at >= vertices) {
            if (knows_small) return true;
            i32 const path = large.l.row_first[other] + at - vertices;
            if (large.l.kind[path] == no_path) return true;
            bool const in = is_inside_row<How>(small, own, large.l.at[large.l.path_first[path]], unsure);
            if (in && !unsure) inside(k);
            return !unsure;
        }
        i32 const v = small.first(own) + at;
        if (!is_element(small.l, v)) return true;
        segment const s{small.l.at[v], element_end(small.l, v)};
        if (!knows_large && large.dimension[other] == 2 && v == small.l.path_first[small.l.path_of[v]]) {
            bool const in = is_inside_row<How>(large, other, s.a, unsure);
            if (unsure) return false;
            if (in) {
                inside(k);
                return true;
            }
        }
        return element(k, s, large, other);
    }
};

// Every item by filters, and again exactly where those fail.
template <class Asked>
struct ask_quickly {
    Asked of;
    u64 first;  // item
    u32* later;
    u32* laters;
    KILN_HD void operator()(u64 i) const {
        append(!of.template ask<certainty::filtered>(first + i), static_cast<u32>(i), later, laters);
    }
};
template <class Asked>
struct ask_exactly {
    ask_quickly<Asked> before;
    u64 threads;
    KILN_HD void operator()(u64 thread) const {
        for (u64 k = thread; k < *before.laters; k += threads)
            before.of.template ask<certainty::exact>(before.first + before.later[k]);
    }
};

// ---- Distances ---------------------------------------------------------------------------------------------------------

struct count_pair_items {
    pair_sides of;
    i64* count;
    u64* square;  // ordered()
    KILN_HD void operator()(u64 k) const {
        count[k] = of.are_there(k) ? of.items(k) : 0;
        square[k] = ordered(from_bits(u64{0x7ff} << 52));
    }
};
struct pair_squares {
    pair_items of;
    u64* square;

    template <certainty How>
    KILN_HD bool ask(u64 item) const {
        return of.ask<How>(
            item, [this](u64 k) { return square[k] == ordered(0); }, [this](u64 k) { lower_to(square + k, ordered(0)); },
            [this](u64 k, segment const& s, row_search const& in, i32 row) {
                bool unsure = false;
                double const best = square_from_row<How>(in, row, s, unordered(square[k]), unsure);
                if (!unsure) lower_to(square + k, ordered(best));
                return !unsure;
            });
    }
};
// NaN where there is none.
struct roots_of_squares {
    u64 const* square;
    double* to;
    KILN_HD void operator()(u64 k) const {
        double const s = unordered(square[k]), far = from_bits(u64{0x7ff} << 52);
        to[k] = s == far ? from_bits(u64{0x7ff8} << 48) : root(s);
    }
};

// ---- At most so far apart ----------------------------------------------------------------------------------------------

// What the boxes of the rows say. `far` and `near` are squares beyond and below which a distance certainly is more or less.
struct judge_pairs {
    pair_sides of;
    box const* left;
    box const* right;
    double near, far;
    i64* count;  // of items for those that are open
    u32* found;
    KILN_HD void operator()(u64 k) const {
        box const a = left[of.p.left_of(k)], b = right[of.p.right_of(k)];
        double const x = most(sub(a.max_x, b.min_x), sub(b.max_x, a.min_x)), y = most(sub(a.max_y, b.min_y), sub(b.max_y, a.min_y));
        bool const is_near = add(mul(x, x), mul(y, y)) < near;
        found[k] = is_near ? 1 : 0;
        count[k] = is_near || square_between_boxes(a, b) > far ? 0 : of.items(k);
    }
};
struct pairs_within {
    pair_items of;
    double distance, far;
    u32* found;

    template <certainty How>
    KILN_HD bool ask(u64 item) const {
        return of.ask<How>(
            item, [this](u64 k) { return found[k] != 0; }, [this](u64 k) { or_into(found + k, 1); },
            [this](u64 k, segment const& s, row_search const& in, i32 row) {
                box const around = box_of(s);
                bool unsure = false, yes = false;
                walk_row(
                    in, row, [&](box const& b) { return !(square_between_boxes(b, around) > far); },
                    [&](i32 v) {
                        segment const t{in.l.at[v], element_end(in.l, v)};
                        if (square_between_boxes(box_of(t), around) > far) return true;
                        if constexpr (How == certainty::exact) {
                            yes = elements_within(s.a, s.b, t.a, t.b, distance);
                        } else {
                            int const said = quick_elements_within(s.a, s.b, t.a, t.b, distance);
                            yes = said > 0, unsure |= said < 0;
                        }
                        return !yes;
                    });
                if (yes) or_into(found + k, 1);
                return yes || !unsure;
            });
    }
};
// Of pairs in order: those whose left row has a path in an area of the right one, as they were found.
struct mark_inside_pairs {
    i32 const* row;
    i32 const* area;
    rows_of_pairs p;
    u64 pairs;
    u32* found;
    KILN_HD void operator()(u64 i) const {
        auto const key = [](i32 left, i32 right) { return static_cast<u64>(left) << 32 | static_cast<u32>(right); };
        u64 const wanted = key(row[i], area[i]);
        auto const at = [&](u64 k) { return key(p.left_of(k), p.right_of(k)); };
        u64 const k = last_not_above(pairs, wanted, at);
        if (at(k) == wanted) or_into(found + k, 1);
    }
};
struct count_pairs_found {
    u32 const* found;
    i64* count;
    KILN_HD void operator()(u64 k) const { count[k] = found[k] != 0 ? 1 : 0; }
};

}  // namespace kiln_spatial

KILN_KERNEL(pair_distance_items, kiln_spatial::count_pair_items, 256, 1)
KILN_KERNEL(pair_distance_squares, kiln_spatial::ask_quickly<kiln_spatial::pair_squares>, 128, 4)
KILN_KERNEL(pair_distance_exact, kiln_spatial::ask_exactly<kiln_spatial::pair_squares>, 128, 4)
KILN_KERNEL(pair_distance_roots, kiln_spatial::roots_of_squares, 256, 1)
KILN_KERNEL(pair_within_boxes, kiln_spatial::judge_pairs, 256, 1)
KILN_KERNEL(pair_within_quick, kiln_spatial::ask_quickly<kiln_spatial::pairs_within>, 128, 4)
KILN_KERNEL(pair_within_exact, kiln_spatial::ask_exactly<kiln_spatial::pairs_within>, 128, 4)
KILN_KERNEL(pair_within_count, kiln_spatial::count_pairs_found, 256, 1)
KILN_KERNEL(pair_within_insides, kiln_spatial::mark_inside_pairs, 256, 1)
