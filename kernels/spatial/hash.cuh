// SPDX-License-Identifier: Apache-2.0
// Numbers that are spread over all their bits, for sorts that only have to bring together what is equal.
#pragma once

#include "exact.cuh"

namespace kiln_spatial {

KILN_HD u64 mixed_bits(u64 k) {
    k = (k ^ (k >> 30)) * 0xbf58476d1ce4e5b9U;
    k = (k ^ (k >> 27)) * 0x94d049bb133111ebU;
    return k ^ (k >> 31);
}

// Of a point in the so-manieth row or world.
KILN_HD u64 hash_of(point p, u64 number) {
    return mixed_bits(mixed_bits(mixed_bits(bits_of(p.x)) + bits_of(p.y)) + number * 0x9e3779b97f4a7c15U);
}

}  // namespace kiln_spatial
