// SPDX-License-Identifier: Apache-2.0
// Points in the areas of a cell grid. Filters alone in the first kernel of each pair, which keeps it small; points that it could
// not decide are listed and looked at again, exactly, by the second.
#pragma once

#include "cells.cuh"
#include "grid.cuh"
#include "layer.cuh"

namespace kiln_spatial {

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
    KILN_HD bool each(u64 i, Found found) const {
        return locate<tie::on, How>(g, p.at(i), [&](i32 row, place where) {
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
// In several copies, so that few bins are not what all threads wait for.
struct histogram_sink {
    static constexpr looking_for what = looking_for::all;
    u64* bins;
    u64 areas, copies;
    template <certainty How>
    KILN_HD void put(point_question const& q, u64 i, areas_found const& f) const {
        u64* const own = bins + i / 256 % copies * areas;
        if (f.count == 1) count_in(own, static_cast<u32>(f.first));
        if (f.count > 1) q.template each<How>(i, [own](i32 row) { add_to(own + row, 1); });
    }
};
struct sum_of_copies {
    u64 const* bins;
    u64 areas, copies;
    i64* to;
    KILN_HD void operator()(u64 i) const {
        u64 sum = 0;
        for (u64 k = 0; k < copies; ++k) sum += bins[k * areas + i];
        to[i] = static_cast<i64>(sum);
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
struct located_pairs {
    point_question q;
    i64 const* place;  // summed counts
    i32 const* first;
    i32* left;
    i32* right;
    template <certainty How>
    KILN_HD bool write(u64 i) const {
        u64 at = static_cast<u64>(place[i]);
        u64 const count = static_cast<u64>(place[i + 1]) - at;
        if (count == 1) left[at] = static_cast<i32>(i), right[at] = first[i];
        if (count < 2) return true;
        return q.each<How>(i, [&](i32 row) { left[at] = static_cast<i32>(i), right[at++] = row; });
    }
};
struct list_quickly {
    located_pairs of;
    undecided later;
    KILN_HD void operator()(u64 i) const {
        append(!of.write<certainty::filtered>(i), static_cast<u32>(i), later.list, later.count);
    }
};
struct list_exactly {
    located_pairs of;
    undecided later;
    u64 threads;
    KILN_HD void operator()(u64 thread) const {
        for (u64 k = thread; k < *later.count; k += threads) of.write<certainty::exact>(later.list[k]);
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
KILN_KERNEL(locate_pairs, kiln_spatial::list_quickly, 256, 5)
KILN_KERNEL(locate_pairs_exact, kiln_spatial::list_exactly, 128, 1)
KILN_KERNEL(locate_histogram_sum, kiln_spatial::sum_of_copies, 256, 1)
