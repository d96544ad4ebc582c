// SPDX-License-Identifier: Apache-2.0
// Plain CUB behind a C function, so that the benchmark can load what nvcc made of it and run both sides in one process.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

enum cub_algorithm : int {
    cub_exclusive_scan_i32,
    cub_exclusive_scan_i64,
    cub_select_i32,
    cub_select_i64,
    cub_reduce_sum_f64,
    cub_reduce_sum_i32,
    cub_segmented_reduce_sum_f64,
    cub_segmented_reduce_min_f64,
    cub_segmented_reduce_max_f64,
    cub_lower_bound_i32,  // Thrust: CUB 3.0 has none
    cub_lower_bound_u64,
    cub_upper_bound_i32,
    cub_upper_bound_u64,
    cub_radix_sort_i32_i32,
    cub_radix_sort_u64_i32,
    cub_merge_sort_u64_i32,
    cub_unique_by_key_i32_i32,
    cub_unique_by_key_u64_i32,
    cub_scan_i32_functor,  // operators CUB does not know: a saturating sum, a saturating sum, a remainder
    cub_reduce_i32_functor,
    cub_select_if_i32,
    cub_scan_record,  // a struct of 16 bytes, in cub_records.cu
    cub_reduce_record,
    cub_segmented_reduce_record,
    cub_select_if_record,
    cub_lower_bound_record,
    cub_merge_sort_record,
    cub_unique_by_key_record,
    cub_sort_first,  // of these on, a radix sort: keys of a kiln::scalar, twice its number, and with values one more
};

enum cub_sorted : int { cub_keys_alone, cub_keys_with_values };

struct cub_call {
    void const* keys;
    void const* values;  // also: mask, queries, offsets
    void* keys_out;
    void* values_out;
    void* count;
    std::size_t n;
    std::size_t segments;
    void* scratch;
    std::size_t scratch_bytes;
    void* stream;
};

// 0, or a cudaError_t.
int cub_run(int algorithm, cub_call const* call);
}
