// SPDX-License-Identifier: Apache-2.0
// The spatial pack's table: which primitives an operation uses, and for which families of geometry it is worth having them.
#include "spatial/requirements.hpp"

namespace kiln::spatial {

namespace {

requirement const within{
    "within", {"select_i32", "select_i64"}, {.when = {"polygon", "multipolygon"}, .pack = "spatial"}};
requirement const to_wkb{
    "to_wkb", {"exclusive_scan_i32", "exclusive_scan_i64"}, {.when = {"linestring", "polygon"}, .pack = "spatial"}};
requirement const sjoin{"sjoin",
                        {"exclusive_scan_i32", "exclusive_scan_i64", "select_i32", "select_i64", "radix_sort_i32_i32",
                         "radix_sort_u64_i32", "merge_sort_u64_i32", "lower_bound_i32", "lower_bound_u64",
                         "upper_bound_i32", "upper_bound_u64", "segmented_reduce_min_f64"},
                        {.when = {"polygon", "multipolygon"}, .pack = "spatial"}};
requirement const overlay{"overlay",
                          {"exclusive_scan_i32", "exclusive_scan_i64", "radix_sort_i32_i32", "radix_sort_u64_i32",
                           "merge_sort_u64_i32", "unique_by_key_u64_i32"},
                          {.when = {"polygon"}, .pack = "spatial"}};
requirement const dissolve{"dissolve",
                           {"radix_sort_i32_i32", "radix_sort_u64_i32", "merge_sort_u64_i32"},
                           {.when = {"polygon"}, .pack = "spatial"}};

}  // namespace

std::vector<requirement const*> requirements() { return {&within, &to_wkb, &sjoin, &overlay, &dissolve}; }

}  // namespace kiln::spatial
