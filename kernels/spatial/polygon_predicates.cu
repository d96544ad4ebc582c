// SPDX-License-Identifier: Apache-2.0
// What each contact proves of its pair's DE-9IM matrix; pairs are reduced by key afterwards.
#include "grid.cuh"
#include "relate.cuh"

using namespace kiln_spatial;

// Keys are row of a << 32 | row of b; a contact that turned out to be none gets the largest.
extern "C" __global__ void __launch_bounds__(128)
    contact_evidence(layer a, layer b, u64 count, i32 const* left, i32 const* right, u8 const* how, u64* key, u32* bits) {
    for (u64 k = (static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x); k < count; k += (static_cast<u64>(gridDim.x) * blockDim.x)) {
        if (how[k] == apart) {
            key[k] = ~u64{0}, bits[k] = 0;
            continue;
        }
        i32 const v = left[k], w = right[k];
        key[k] = static_cast<u64>(row_at(a, v)) << 32 | static_cast<u64>(row_at(b, w));
        bits[k] = evidence_of(a, v, b, w, static_cast<segment_contact>(how[k]));
    }
}
