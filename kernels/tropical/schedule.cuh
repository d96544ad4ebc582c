// SPDX-License-Identifier: Apache-2.0
// Which tiles, and which steps of them, a block does.
#pragma once

#include "machine.cuh"
#include "tile.cuh"

// What a block does next: a tile of C, or some steps of it.
struct task {
    u32 tile;
    int begin, end;  // tiles of k
    u32* signal;     // of the tile, where several blocks do it one after the other
    u32 before;      // of them
};

// What a block does. Without signals: every gridDim.x-th tile. With: the same for as many rounds as all blocks have a tile;
// the steps of the tiles that are left are dealt out evenly, and whoever has some in the middle of a tile puts them onto what
// the blocks before it have stored. Where a tile begins nobody is waited for, so that comes first; what waits comes last, and
// waits only for blocks of lower numbers, which started earlier. The host sees to it that 32 bits are enough.
struct schedule {
    u32 k_tiles;
    u32* signals;
    int first, last;  // turns
    int begin, end;   // of whole tiles: this block's part of k
    // Of the tiles that are left: this block's steps.
    u32 left, share = 1, first_step = 0, last_step = 0;

    __device__ __forceinline__ schedule(problem const& p, u32 tiles, u32 k_tiles_, bool in_parts)
        : k_tiles{k_tiles_}, signals{p.signals} {
        u32 const rank = in_parts ? cluster_rank() : 0, parts = in_parts && cluster_size() > 1 ? most_parts : 1;
        begin = static_cast<int>(k_tiles * rank / parts);
        end = static_cast<int>(k_tiles * (rank + 1) / parts);
        u32 const rounds = tiles / gridDim.x;
        left = rounds * gridDim.x;
        first = 0;
        last = static_cast<int>(left + blockIdx.x < tiles ? rounds + 1 : rounds);
        if (signals == nullptr) return;
        first = -1;
        last = static_cast<int>(rounds + 1);
        u32 const steps = (tiles - left) * k_tiles;
        share = (steps + gridDim.x - 1) / gridDim.x;
        first_step = min(blockIdx.x * share, steps);
        last_step = min(first_step + share, steps);
    }
    // False: nothing to do in this turn.
    __device__ __forceinline__ bool get(task& out, int turn) const {
        out = {blockIdx.x + turn * gridDim.x, begin, end, nullptr, 0};
        if (signals == nullptr || (turn >= 0 && turn + 1 < last)) return true;
        if (first_step == last_step) return false;
        u32 const which = (first_step + (turn < 0 ? k_tiles - 1 : 0)) / k_tiles, from = which * k_tiles;
        if (turn < 0 ? from >= last_step : from == first_step) return false;
        out.tile = left + which;
        out.begin = static_cast<int>(turn < 0 ? 0 : first_step - from);
        out.end = static_cast<int>(min(last_step - from, k_tiles));
        out.signal = signals + which;
        out.before = turn < 0 ? 0 : blockIdx.x - from / share;
        return true;
    }
};
