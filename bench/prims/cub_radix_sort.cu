// SPDX-License-Identifier: Apache-2.0
// CUB's radix sort of one type of keys, alone and with values of four bytes. Compiled once per type: KILN_KEY is its name in CUDA C++,
// KILN_KEY_NAME in Kiln.
#include "cub_reference.hpp"

#include <cub/device/device_radix_sort.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define KILN_JOINED(a, b) a##b
#define KILN_NAME_OF(key) KILN_JOINED(cub_radix_sort_, key)

extern "C" int KILN_NAME_OF(KILN_KEY_NAME)(cub_call const* call, cub_sorted what) {
    cub_call const& c = *call;
    auto const* const keys = static_cast<KILN_KEY const*>(c.keys);
    auto* const keys_out = static_cast<KILN_KEY*>(c.keys_out);
    auto* const stream = static_cast<cudaStream_t>(c.stream);
    int const n = int(c.n), bits = int(sizeof(KILN_KEY) * 8);
    std::size_t bytes = c.scratch_bytes;
    if (what == cub_keys_alone) return cub::DeviceRadixSort::SortKeys(c.scratch, bytes, keys, keys_out, n, 0, bits, stream);
    return cub::DeviceRadixSort::SortPairs(c.scratch, bytes, keys, keys_out, static_cast<int const*>(c.values),
                                           static_cast<int*>(c.values_out), n, 0, bits, stream);
}
