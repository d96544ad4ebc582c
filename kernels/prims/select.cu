// SPDX-License-Identifier: Apache-2.0
//
// Compaction: keeps the items, or with KILN_SELECT_INDICES the indices 0, 1, ..., whose mask byte is not zero or, with
// KILN_SELECT_IF, for which the operator says so. At most 2^31 - 1 items a launch; the host strings launches together.
#include "kiln/prims/prelude.cuh"

#include <cub/agent/agent_select_if.cuh>

#include "kiln/prims/tuning.cuh"

#include <cub/device/dispatch/tuning/tuning_select_if.cuh>

#ifdef KILN_SELECT_IF
#define KILN_OPERATOR_RESULT bool
#define KILN_OPERATOR_PARAMETERS kiln_value
#include "kiln/prims/operator.cuh"
#else
#include "kiln/prims/support.cuh"
#endif
#include "kiln/prims/tiles.cuh"

namespace kiln_device {

#ifdef KILN_SELECT_INDICES
struct counting {
    using value_type = kiln_value;
    using difference_type = kiln_i64;
    using reference = kiln_value;
    using pointer = kiln_value const*;
    using iterator_category = cuda::std::random_access_iterator_tag;

    kiln_value first;
    __device__ __forceinline__ kiln_value operator[](kiln_i64 i) const { return first + kiln_value(i); }
    __device__ __forceinline__ kiln_value operator*() const { return first; }
    __device__ __forceinline__ counting operator+(kiln_i64 i) const { return {kiln_value(first + kiln_value(i))}; }
};
#endif

// Which part of the whole input a launch is given.
struct part {
    kiln_u64 before;              // items of earlier parts
    kiln_u64 const* kept_before;  // how many of those were kept; null for the first part
};

#ifdef KILN_SELECT_IF
using flag = cub::NullType;
#else
using flag = kiln_u8;
#endif
using hub = cub::detail::select::policy_hub<kiln_value, flag, kiln_i32, false, cub::SelectImpl::Select>;
using policy = hub::MaxPolicy::ActivePolicy::SelectIfPolicyT;
using tile_state = cub::ScanTileState<kiln_i32>;

// Keeps what is to be kept of one tile.
struct tile_agent {
    static constexpr int threads = policy::BLOCK_THREADS, items = policy::ITEMS_PER_THREAD, full = threads * items;
    using block_load = cub::BlockLoad<kiln_value, threads, items, policy::LOAD_ALGORITHM>;
    using block_load_mask = cub::BlockLoad<kiln_u8, threads, items, policy::LOAD_ALGORITHM>;
    using block_scan = cub::BlockScan<kiln_i32, threads, policy::SCAN_ALGORITHM>;
    using prefix = tile_prefix<kiln_i32, cuda::std::plus<>, policy::detail::delay_constructor_t>;
    template <class T>
    using input = cub::CacheModifiedInputIterator<policy::LOAD_MODIFIER, T, kiln_i64>;

    union storage {
        struct {
            typename block_scan::TempStorage scan;
            typename prefix::look_back::TempStorage before;
        } scanning;
        typename block_load::TempStorage load;
        typename block_load_mask::TempStorage load_mask;
        cub::Uninitialized<kiln_value[full]> packed;
    };

    storage& shared;
    tile_state& states;
    int count;  // of the tile's items, 1 to `full`
    kiln_value held[items];
    kept_items<items> kept{};

    template <class Iterator>
    __device__ __forceinline__ void load(Iterator in) {
        load_tile<block_load>(shared.load, in, held, count, full);
    }

#ifdef KILN_SELECT_IF
    __device__ __forceinline__ void choose(kiln_functor op) {
#pragma unroll
        for (int i = 0; i < items; ++i) kept.set(i, op(held[i]));
    }
#else
    __device__ __forceinline__ void choose(kiln_u8 const* mask) {
        kiln_u8 flags[items];
        __syncthreads();
        load_tile<block_load_mask>(shared.load_mask, input<kiln_u8>{mask}, flags, count, full);
#pragma unroll
        for (int i = 0; i < items; ++i) kept.set(i, flags[i] != 0);
    }
#endif

    // Gives how many of this tile and those before it are kept.
    __device__ __forceinline__ kiln_i32 write(kiln_value* out) {
        if (count != full) kept.limit(count);
        __syncthreads();
        kiln_i32 at;
        prefix before{states, shared.scanning.before, cuda::std::plus<>{}, 0};
        block_scan(shared.scanning.scan).ExclusiveSum(kept.count(), at, before);
        kiln_i32 const here = before.GetBlockAggregate(), first = before.GetExclusivePrefix();
        if (here > threads) {  // so many that packing them first pays
            __syncthreads();
            kiln_value* const packed = shared.packed.Alias();
            kept.put(held, packed + (at - first));
            __syncthreads();
            for (int i = threadIdx.x; i < here; i += threads) out[first + i] = packed[i];
        } else {
            kept.put(held, out + at);
        }
        return first + here;
    }
};
static_assert(sizeof(tile_agent::storage) <= 48 * 1024, "items too large for shared memory");

KILN_PRIM_INFO(policy::BLOCK_THREADS, policy::ITEMS_PER_THREAD, int(tile_state::description_bytes_per_tile),
               int(tile_state::payload_bytes_per_tile), int(tile_state::TILE_STATUS_PADDING));

extern "C" __global__ void __launch_bounds__(128) kiln_select_init(void* memory, int tiles) {
    let_next_begin();
    tile_states<kiln_i32>(memory, tiles).InitializeStatus(tiles);
}

// `where` is read in place: a copy of it costs NVRTC 24 registers, and with them a third of the blocks that fit.
// `kept` may be `where.kept_before` of the next launch, never of this one.
extern "C" __global__ void __launch_bounds__(policy::BLOCK_THREADS)
    kiln_select(kiln_value const* in, kiln_u8 const* mask, kiln_value* out, kiln_u64* kept, void* memory, int tiles, kiln_i32 n,
                const __grid_constant__ part where
#ifdef KILN_SELECT_IF
                ,
                KILN_STATE_PARAMETER
#endif
    ) {
    __shared__ tile_agent::storage storage;
    auto states = tile_states<kiln_i32>(memory, tiles);
    kiln_u64 const begin = where.before + kiln_u64(blockIdx.x) * tile_agent::full;
    tile_agent tile{storage, states, items_of_tile(n, tile_agent::full)};
#ifdef KILN_SELECT_INDICES
    tile.load(counting{kiln_value(begin)});
#else
    tile.load(tile_agent::input<kiln_value>{in + begin});
#endif
#ifdef KILN_SELECT_IF
    tile.choose(kiln_functor{state});
#else
    tile.choose(mask + begin);
#endif
    wait_for_previous();
    kiln_u64 const kept_before = where.kept_before != nullptr ? *where.kept_before : 0;
    kiln_i32 const all = tile.write(out + kept_before);
    if (int(blockIdx.x) == tiles - 1 && threadIdx.x == 0) *kept = kept_before + kiln_u64(all);
}

}  // namespace kiln_device
