// SPDX-License-Identifier: Apache-2.0
// Points in the areas of a cell grid. Filters alone in the first kernel of each pair, which keeps it small; points that it could
// not decide are listed and looked at again, exactly, by the second.
#pragma once

#include "cells.cuh"
#include "grid.cuh"

namespace kiln_spatial {

// Rows of an array of points. Null ones, and empty ones (NaN), are nowhere.
struct point_rows {
    double const* x;
    double const* y;
    u8 const* validity;
    i32 const* chosen;
    KILN_HD point at(u64 i) const {
        u64 const m = chosen != nullptr ? static_cast<u64>(chosen[i]) : i;
        if (validity != nullptr && (validity[m >> 3] >> (m & 7) & 1) == 0) return {from_bits(~u64{0}), 0};
        return {x[m], y[m]};
    }
};

enum : u32 { wanted_inside = 1, wanted_on = 2 };

struct undecided {
    u32* list;
    u32* count;
};

struct areas_found {
    u32 count = 0;
    i32 first = -1;
};
enum class looking_for : int { first, all };

struct point_question {
    cell_grid g;
    point_rows p;
    u32 wanted;

    // False where a filter failed.
    template <certainty How, looking_for What>
    KILN_HD bool ask(u64 i, areas_found& out) const {
        areas_found found;
        bool const sure = locate<tie::on, How>(g, p.at(i), [&](i32 row, place where) {
            if ((wanted & (where == place::on ? wanted_on : wanted_inside)) == 0) return false;
            if (found.count++ == 0) found.first = row;
            return What == looking_for::first;
        });
        out = found;
        return sure;
    }
    template <certainty How, class Found>
    KILN_HD void each(u64 i, Found found) const {
        locate<tie::on, How>(g, p.at(i), [&](i32 row, place where) {
            if ((wanted & (where == place::on ? wanted_on : wanted_inside)) != 0) found(row);
            return false;
        });
    }
};

// What becomes of the answers.
struct first_sink {
    static constexpr looking_for what = looking_for::first;
    i32* area;  // -1: none
    template <certainty>
    KILN_HD void put(point_question const&, u64 i, areas_found const& f) const { area[i] = f.first; }
};
struct any_sink {
    static constexpr looking_for what = looking_for::first;
    u8* any;
    template <certainty>
    KILN_HD void put(point_question const&, u64 i, areas_found const& f) const { any[i] = f.count != 0 ? 1 : 0; }
};
struct count_sink {
    static constexpr looking_for what = looking_for::all;
    i64* count;
    i32* first;  // may be null
    template <certainty>
    KILN_HD void put(point_question const&, u64 i, areas_found const& f) const {
        count[i] = f.count;
        if (first != nullptr) first[i] = f.first;
    }
};
struct histogram_sink {
    static constexpr looking_for what = looking_for::all;
    u64* bins;
    template <certainty How>
    KILN_HD void put(point_question const& q, u64 i, areas_found const& f) const {
        if (f.count == 1) count_in(bins, static_cast<u32>(f.first));
        if (f.count > 1) q.template each<How>(i, [this](i32 row) { add_to(bins + row, 1); });
    }
};

template <class Sink>
struct locate_quickly {
    point_question q;
    Sink to;
    undecided later;
    KILN_HD void operator()(u64 i) const {
        areas_found f;
        bool const sure = q.ask<certainty::filtered, Sink::what>(i, f);
        if (sure) to.template put<certainty::filtered>(q, i, f);
        append(!sure, static_cast<u32>(i), later.list, later.count);
    }
};
// As many threads as the launch has share what is left.
template <class Sink>
struct locate_exactly {
    point_question q;
    Sink to;
    undecided later;
    u64 threads;
    KILN_HD void operator()(u64 thread) const {
        for (u64 k = thread; k < *later.count; k += threads) {
            u32 const i = later.list[k];
            areas_found f;
            q.ask<certainty::exact, Sink::what>(i, f);
            to.template put<certainty::exact>(q, i, f);
        }
    }
};

// Pairs at their places. Rows of a cell are in order, so pairs are too.
struct locate_pairs {
    point_question q;
    i64 const* place;  // summed counts
    i32 const* first;
    i32* left;
    i32* right;
    KILN_HD void operator()(u64 i) const {
        u64 at = static_cast<u64>(place[i]);
        u64 const count = static_cast<u64>(place[i + 1]) - at;
        if (count == 0) return;
        if (count == 1) {
            left[at] = static_cast<i32>(i), right[at] = first[i];
            return;
        }
        q.each<certainty::exact>(i, [&](i32 row) { left[at] = static_cast<i32>(i), right[at++] = row; });
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(locate_first, kiln_spatial::locate_quickly<kiln_spatial::first_sink>, 256, 6)
KILN_KERNEL(locate_first_exact, kiln_spatial::locate_exactly<kiln_spatial::first_sink>, 128, 1)
KILN_KERNEL(locate_any, kiln_spatial::locate_quickly<kiln_spatial::any_sink>, 256, 6)
KILN_KERNEL(locate_any_exact, kiln_spatial::locate_exactly<kiln_spatial::any_sink>, 128, 1)
KILN_KERNEL(locate_count, kiln_spatial::locate_quickly<kiln_spatial::count_sink>, 256, 6)
KILN_KERNEL(locate_count_exact, kiln_spatial::locate_exactly<kiln_spatial::count_sink>, 128, 1)
KILN_KERNEL(locate_histogram, kiln_spatial::locate_quickly<kiln_spatial::histogram_sink>, 256, 5)
KILN_KERNEL(locate_histogram_exact, kiln_spatial::locate_exactly<kiln_spatial::histogram_sink>, 128, 1)
KILN_KERNEL(locate_point_pairs, kiln_spatial::locate_pairs, 128, 1)
