// SPDX-License-Identifier: Apache-2.0
//
// What kernels with a tile per block share. CUB's agents hold all of an algorithm once for full tiles and once for the last one,
// and those that look back at other tiles hold both once more for the first. Here tiles differ only in how they are loaded and
// stored and in what they find before them, and share the rest: a link with a new operator has that much less to make.
#pragma once

#include <cub/agent/single_pass_scan_operators.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/iterator/cache_modified_input_iterator.cuh>

namespace kiln_device {

// `count` of a tile's items are there, at least one. The others are given the first one's value.
template <class Load, class Iterator, class T, int Items>
static __device__ __forceinline__ void load_tile(typename Load::TempStorage& shared, Iterator in, T (&to)[Items], int count, int full) {
    if (count == full) Load(shared).Load(in, to);
    else Load(shared).Load(in, to, count, *in);
}

template <class Store, class T, int Items>
static __device__ __forceinline__ void store_tile(typename Store::TempStorage& shared, T* out, T (&from)[Items], int count, int full) {
    if (count == full) Store(shared).Store(out, from);
    else Store(shared).Store(out, from, count);
}

// Which of a thread's items are kept, a bit for each: far fewer instructions than a flag for each, and one number to add up. A
// thread's items are next to each other.
template <int Items>
struct kept_items {
    static_assert(Items <= 64);
    using bits = ::cuda::std::conditional_t<Items <= 32, unsigned, unsigned long long>;
    bits these = 0;

    __device__ __forceinline__ void set(int i, bool keep) { these |= bits(keep) << i; }
    // Of the tile's items only the first `count` are there.
    __device__ __forceinline__ void limit(int count) {
        int const mine = count - int(threadIdx.x) * Items;
        if (mine < Items) these &= mine > 0 ? (bits(1) << mine) - 1 : 0;
    }
    [[nodiscard]] __device__ __forceinline__ int count() const { return Items <= 32 ? __popc(unsigned(these)) : __popcll(these); }
    // Puts them one after the other.
    template <class T>
    __device__ __forceinline__ void put(T const (&from)[Items], T* to) const {
#pragma unroll
        for (int i = 0; i < Items; ++i)
            if (these >> i & 1) *to++ = from[i];
    }
};

template <class Offset>
static __device__ __forceinline__ int items_of_tile(Offset n, int full) {
    return int((::cuda::std::min)(n - Offset(blockIdx.x) * Offset(full), Offset(full)));
}

template <class T>
static __device__ __forceinline__ cub::ScanTileState<T> tile_states(void* memory, int tiles) {
    cub::ScanTileState<T> out;
    out.Init(tiles, memory, ~size_t{0});
    return out;
}

// What a tile finds before it, asked for by a block's first warp: the first tile `init`, every other what the tiles before it
// have published. Then all of the block may ask for GetExclusivePrefix() and its like.
template <class T, class Op, class Delay>
struct tile_prefix : cub::TilePrefixCallbackOp<T, Op, cub::ScanTileState<T>, Delay> {
    using look_back = cub::TilePrefixCallbackOp<T, Op, cub::ScanTileState<T>, Delay>;
    T init;

    __device__ __forceinline__ tile_prefix(cub::ScanTileState<T>& states, typename look_back::TempStorage& shared, Op op, T init)
        : look_back{states, shared, op, int(blockIdx.x)}, init{init} {}

    __device__ __forceinline__ T operator()(T sum) {
        if (blockIdx.x != 0) return look_back::operator()(sum);
        if (threadIdx.x == 0) {
            T const through = this->scan_op(init, sum);
            // A single tile has nobody to tell and no memory for it.
            if (gridDim.x > 1) this->tile_status.SetInclusive(0, through);
            this->temp_storage.block_aggregate = sum;
            this->temp_storage.exclusive_prefix = init;
            this->temp_storage.inclusive_prefix = through;
        }
        return init;
    }
};

}  // namespace kiln_device
