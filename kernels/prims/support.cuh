// SPDX-License-Identifier: Apache-2.0
//
// What every primitive's device text shares. The host writes kiln/prims/spec.cuh for each specialisation: it includes
// kiln/prims/names.cuh and defines kiln_value (and kiln_mapped, the type of values that travel with keys).
#pragma once

#include "kiln/prims/names.cuh"
#include "kiln/prims/spec.cuh"

// Offsets within one sort or unique: 64 bits only when the host asked for more than 2^32 - 1 items.
#ifdef KILN_PRIM_WIDE
using kiln_offset = kiln_u64;
#else
using kiln_offset = kiln_u32;
#endif

// Constants the host launches with, read from the image: {abi, CUB version, architecture, threads, items per thread,
// then what the algorithm's host side names}. src/prims/prim_info.hpp is the other half.
#define KILN_PRIM_INFO(...) \
    extern "C" __constant__ int kiln_prim_info[16] = {3, CUB_VERSION, CUB_PTX_ARCH, __VA_ARGS__}

// A value an operator captured: copied with the launch, read in place.
struct alignas(16) kiln_state {
    unsigned char bytes[64];
};
#define KILN_STATE_PARAMETER const __grid_constant__ kiln_state state
