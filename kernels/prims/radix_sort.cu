// SPDX-License-Identifier: Apache-2.0
//
// Radix sort of keys, or of keys with values (KILN_SORT_PAIRS), ascending or KILN_SORT_DESCENDING: one block for what fits
// in it, else a histogram of all digits and then one sweep per digit.
#include "kiln/prims/prelude.cuh"

#include <cub/device/dispatch/kernels/radix_sort.cuh>

#include "kiln/prims/tuning.cuh"

#include <cub/device/dispatch/tuning/tuning_radix_sort.cuh>

#include "kiln/prims/support.cuh"

namespace kiln_device {

#ifdef KILN_SORT_DESCENDING
constexpr bool descending = true;
#else
constexpr bool descending = false;
#endif
#ifdef KILN_SORT_PAIRS
using mapped = kiln_mapped;
constexpr bool keys_only = false;
#else
using mapped = cub::NullType;
constexpr bool keys_only = true;
#endif

using policy = cub::detail::radix::policy_hub<kiln_value, mapped, kiln_offset>::MaxPolicy::ActivePolicy;
using histogram_policy = policy::HistogramPolicy;
using sum_policy = policy::ExclusiveSumPolicy;
using sweep_policy = policy::OnesweepPolicy;
using small_policy = policy::SingleTilePolicy;
using decomposer = cub::detail::identity_decomposer_t;
using histogram_agent =
    cub::detail::radix_sort::AgentRadixSortHistogram<histogram_policy, descending, kiln_value, kiln_offset, decomposer>;
using sweep_agent = cub::detail::radix_sort::AgentRadixSortOnesweep<sweep_policy, descending, kiln_value, mapped, kiln_offset,
                                                                    int, decomposer>;

// Three blocks of a multiprocessor sweep keys without values faster than two: those of four bytes by a tenth to a sixth, and they fit without
// spilling; those of eight by a hundredth, though a few words spill, but for signed integers, whose 22 cost a small sort more than that. A compiler
// that is not told takes the registers of one of them: of floats alone it depended on what else was in the kernel. 0: its choice.
constexpr bool spills_much =
    sizeof(kiln_value) == 8 && cuda::std::is_integral_v<kiln_value> && cuda::std::is_signed_v<kiln_value>;
constexpr int sweep_blocks =
    keys_only && sizeof(kiln_value) >= 4 && !spills_much && sweep_policy::BLOCK_THREADS == 384 ? 3 : 0;

KILN_PRIM_INFO(sweep_policy::BLOCK_THREADS, sweep_policy::ITEMS_PER_THREAD, int(policy::ONESWEEP_RADIX_BITS),
               histogram_policy::BLOCK_THREADS, sum_policy::BLOCK_THREADS, small_policy::BLOCK_THREADS,
               small_policy::ITEMS_PER_THREAD, int(sizeof(kiln_offset)));

extern "C" __global__ void __launch_bounds__(histogram_policy::BLOCK_THREADS)
    kiln_radix_histogram(kiln_offset* bins, kiln_value const* keys, kiln_offset n, int first_bit, int last_bit) {
    __shared__ histogram_agent::TempStorage storage;
    let_next_begin();
    histogram_agent(storage, bins, keys, n, first_bit, last_bit, decomposer{}).Process();
}

extern "C" __global__ void __launch_bounds__(sum_policy::BLOCK_THREADS) kiln_radix_sums(kiln_offset* bins) {
    constexpr int digits = 1 << sum_policy::RADIX_BITS;
    constexpr int per_thread = (digits + sum_policy::BLOCK_THREADS - 1) / sum_policy::BLOCK_THREADS;
    using block_scan = cub::BlockScan<kiln_offset, sum_policy::BLOCK_THREADS>;
    __shared__ block_scan::TempStorage storage;
    kiln_offset* const mine = bins + blockIdx.x * digits;
    kiln_offset sums[per_thread];
    let_next_begin();
    wait_for_previous();
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
        int const bin = threadIdx.x * per_thread + i;
        sums[i] = bin < digits ? mine[bin] : 0;
    }
    block_scan(storage).ExclusiveSum(sums, sums);
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
        int const bin = threadIdx.x * per_thread + i;
        if (bin < digits) mine[bin] = sums[i];
    }
}

// Besides its own work, a sweep clears what the next one looks back at: without anything between them, that one may begin
// while this one ends.
extern "C" __global__ void __launch_bounds__(sweep_policy::BLOCK_THREADS, sweep_blocks)
    kiln_radix_sweep(int* lookback, int* next_lookback, int next_words, int* counter, kiln_offset* bins_out,
                     kiln_offset const* bins_in, kiln_value* keys_out, kiln_value const* keys_in, mapped* values_out,
                     mapped const* values_in, int n, int bit, int bits) {
    __shared__ sweep_agent::TempStorage storage;
    let_next_begin();
    wait_for_previous();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < unsigned(next_words); i += gridDim.x * blockDim.x)
        next_lookback[i] = 0;
    sweep_agent(storage, lookback, counter, bins_out, bins_in, keys_out, keys_in, values_out, values_in, n, bit, bits,
                decomposer{})
        .Process();
}

extern "C" __global__ void __launch_bounds__(small_policy::BLOCK_THREADS, 1)
    kiln_radix_small(kiln_value const* keys_in, kiln_value* keys_out, mapped const* values_in, mapped* values_out, int n,
                     int first_bit, int last_bit) {
    constexpr int threads = small_policy::BLOCK_THREADS;
    constexpr int items = small_policy::ITEMS_PER_THREAD;
    using sort = cub::BlockRadixSort<kiln_value, threads, items, mapped, small_policy::RADIX_BITS,
                                     (small_policy::RANK_ALGORITHM == cub::RADIX_RANK_MEMOIZE), small_policy::SCAN_ALGORITHM>;
    using load_keys = cub::BlockLoad<kiln_value, threads, items, small_policy::LOAD_ALGORITHM>;
    using load_values = cub::BlockLoad<mapped, threads, items, small_policy::LOAD_ALGORITHM>;
    using traits = cub::detail::radix::traits_t<kiln_value>;
    __shared__ union {
        sort::TempStorage sorting;
        load_keys::TempStorage keys;
        load_values::TempStorage values;
    } storage;

    // Missing keys sort last and, the sort being stable, behind real ones of the same value.
    decomposer whole{};
    auto bits = descending ? traits::min_raw_binary_key(whole) : traits::max_raw_binary_key(whole);
    kiln_value const missing = reinterpret_cast<kiln_value&>(bits);
    kiln_value keys[items];
    mapped values[items];
    load_keys(storage.keys).Load(keys_in, keys, n, missing);
    __syncthreads();
    if constexpr (!keys_only) {
        load_values(storage.values).Load(values_in, values, n);
        __syncthreads();
    }
    sort(storage.sorting)
        .SortBlockedToStriped(keys, values, first_bit, last_bit, cub::detail::bool_constant_v<descending>,
                              cub::detail::bool_constant_v<keys_only>, whole);
#pragma unroll
    for (int i = 0; i < items; ++i) {
        int const at = i * threads + int(threadIdx.x);
        if (at < n) {
            keys_out[at] = keys[i];
            if constexpr (!keys_only) values_out[at] = values[i];
        }
    }
}

}  // namespace kiln_device
