// SPDX-License-Identifier: Apache-2.0
// What is made of a list of pairs that is sorted by left, then right.
#pragma once

#include "grid.cuh"

namespace kiln_spatial {

struct pair_rows {
    i32 const* left;
    i32 const* right;
};

// For sorting by right, then left: the order of lefts is that of the list.
struct make_pair_keys {
    pair_rows p;
    i32 bits;  // of a left row
    u64* key;
    i32* unused;
    KILN_HD void operator()(u64 i) const {
        key[i] = static_cast<u64>(static_cast<u32>(p.right[i])) << bits | static_cast<u32>(p.left[i]);
        unused[i] = 0;
    }
};
struct take_pair_keys {
    u64 const* key;
    i32 bits;
    i32* high;
    i32* low;
    KILN_HD void operator()(u64 i) const {
        high[i] = static_cast<i32>(key[i] >> bits), low[i] = static_cast<i32>(key[i] & ((u64{1} << bits) - 1));
    }
};

// Keys that are in order, each once; but not `none`.
struct count_distinct_keys {
    u64 const* key;
    u64 none;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = key[i] != none && (i == 0 || key[i] != key[i - 1]) ? 1 : 0; }
};
struct take_distinct_keys {
    u64 const* key;
    i64 const* place;
    i32 bits;
    i32* high;
    i32* low;
    KILN_HD void operator()(u64 i) const {
        i64 const at = place[i];
        if (place[i + 1] == at) return;
        high[at] = static_cast<i32>(key[i] >> bits), low[at] = static_cast<i32>(key[i] & ((u64{1} << bits) - 1));
    }
};

// Those that were counted, of counts of 0 and 1.
struct list_counted_pairs {
    pair_rows p;
    i64 const* place;  // summed
    i32* to_left;
    i32* to_right;
    KILN_HD void operator()(u64 i) const {
        i64 const at = place[i];
        if (place[i + 1] != at) to_left[at] = p.left[i], to_right[at] = p.right[i];
    }
};

// The same of keys alone, of which nothing is listed: high parts are rows of the left side, low ones of the right.
struct pair_key_list {
    u64 const* key;  // in order; may repeat
    i32 bits;
    KILN_HD i32 left(u64 i) const { return static_cast<i32>(key[i] >> bits); }
    KILN_HD i32 right(u64 i) const { return static_cast<i32>(key[i] & ((u64{1} << bits) - 1)); }
    KILN_HD bool is_new(u64 i) const { return i == 0 || key[i] != key[i - 1]; }
};
enum class pair_side : int { left, right };
struct first_rights_of_keys {
    pair_key_list of;
    i32* first;  // of -1
    KILN_HD void operator()(u64 i) const {
        if (i == 0 || of.left(i - 1) != of.left(i)) first[of.left(i)] = of.right(i);
    }
};
struct count_keys_of_rows {
    pair_key_list of;
    pair_side by;
    u64* count;  // of 0
    KILN_HD void operator()(u64 i) const {
        if (of.is_new(i)) count_in(count, static_cast<u32>(by == pair_side::left ? of.left(i) : of.right(i)));
    }
};

struct first_rights {
    pair_rows p;
    i32* first;  // of -1
    KILN_HD void operator()(u64 i) const {
        if (i == 0 || p.left[i - 1] != p.left[i]) first[p.left[i]] = p.right[i];
    }
};
struct any_rights {
    i32 const* first;
    u8* any;
    KILN_HD void operator()(u64 i) const { any[i] = first[i] >= 0 ? 1 : 0; }
};
struct any_counted {
    i64 const* count;
    u8* any;
    KILN_HD void operator()(u64 i) const { any[i] = count[i] != 0 ? 1 : 0; }
};
// Where each left row's pairs end less where they begin: both are written by the pair that is there. Of 0.
struct count_rights {
    pair_rows p;
    u64 pairs;
    u64* count;
    KILN_HD void operator()(u64 i) const {
        if (i == 0 || p.left[i - 1] != p.left[i]) add_to(count + p.left[i], ~i + 1);
        if (i + 1 == pairs || p.left[i + 1] != p.left[i]) add_to(count + p.left[i], i + 1);
    }
};
struct count_lefts {
    pair_rows p;
    u64* count;  // of 0
    KILN_HD void operator()(u64 i) const { count_in(count, static_cast<u32>(p.right[i])); }
};

}  // namespace kiln_spatial

KILN_KERNEL(pair_keys, kiln_spatial::make_pair_keys, 256, 1)
KILN_KERNEL(pair_parts, kiln_spatial::take_pair_keys, 256, 1)
KILN_KERNEL(pair_distinct_count, kiln_spatial::count_distinct_keys, 256, 1)
KILN_KERNEL(pair_distinct, kiln_spatial::take_distinct_keys, 256, 1)
KILN_KERNEL(pair_firsts, kiln_spatial::first_rights, 256, 1)
KILN_KERNEL(pair_any, kiln_spatial::any_rights, 256, 1)
KILN_KERNEL(pair_count, kiln_spatial::count_rights, 256, 1)
KILN_KERNEL(pair_histogram, kiln_spatial::count_lefts, 256, 1)
KILN_KERNEL(pair_key_firsts, kiln_spatial::first_rights_of_keys, 256, 1)
KILN_KERNEL(pair_key_count, kiln_spatial::count_keys_of_rows, 256, 1)
KILN_KERNEL(pair_any_counted, kiln_spatial::any_counted, 256, 1)
KILN_KERNEL(pair_counted, kiln_spatial::list_counted_pairs, 256, 1)
