// SPDX-License-Identifier: Apache-2.0
// Contacts of the elements of two layers. A box tree over the right one is asked by the elements of the left; filters throw out
// what is certainly apart and mark what certainly crosses; the rest is classified exactly by a kernel of its own.
#include "grid.cuh"
#include "layer.cuh"
#include "tree.cuh"

using namespace kiln_spatial;

namespace {

enum : u8 { not_known = 4 };

__device__ __forceinline__ box box_of(point a, point b) { return {least(a.x, b.x), least(a.y, b.y), most(a.x, b.x), most(a.y, b.y)}; }

// `apart`, `crossing` or not_known.
__device__ __forceinline__ u8 quick_contact(point a, point b, point c, point d) {
    if (!boxes_meet(a, b, c, d)) return apart;
    guess const c_side = orient_filter(a, b, c), d_side = orient_filter(a, b, d);
    bool const cd_sure = c_side.certain && d_side.certain;
    if (cd_sure && c_side.side * d_side.side > 0) return apart;
    guess const a_side = orient_filter(c, d, a), b_side = orient_filter(c, d, b);
    bool const ab_sure = a_side.certain && b_side.certain;
    if (ab_sure && a_side.side * b_side.side > 0) return apart;
    bool const crosses = cd_sure && ab_sure && c_side.side * d_side.side < 0 && a_side.side * b_side.side < 0;
    return crosses ? u8{crossing} : u8{not_known};
}

template <class Found>
__device__ __forceinline__ void for_each_candidate(layer const& a, i32 element, layer const& b, tree const& t, Found found) {
    point const a0 = a.at[element], a1 = element_end(a, element);
    query_tree(t, outwards(box_of(a0, a1)), [&](u32 slot) {
        i32 const other = static_cast<i32>(t.item[slot]);
        if (!is_element(b, other)) return;
        u8 const how = quick_contact(a0, a1, b.at[other], element_end(b, other));
        if (how != apart) found(other, how);
    });
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128) contact_count(layer a, layer b, tree t, u32* candidates) {
    for (u64 i = (static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x); i < static_cast<u64>(a.vertices); i += (static_cast<u64>(gridDim.x) * blockDim.x)) {
        i32 const v = static_cast<i32>(i);
        u32 n = 0;
        if (is_element(a, v)) for_each_candidate(a, v, b, t, [&](i32, u8) { ++n; });
        candidates[i] = n;
    }
}
extern "C" __global__ void __launch_bounds__(128)
    contact_scatter(layer a, layer b, tree t, u64 const* first, i32* left, i32* right, u8* how) {
    for (u64 i = (static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x); i < static_cast<u64>(a.vertices); i += (static_cast<u64>(gridDim.x) * blockDim.x)) {
        i32 const v = static_cast<i32>(i);
        u64 at = first[i];
        if (!is_element(a, v)) continue;
        for_each_candidate(a, v, b, t, [&](i32 other, u8 contact) { left[at] = v, right[at] = other, how[at++] = contact; });
    }
}
// What is not known becomes apart, touching, crossing or overlapping.
extern "C" __global__ void __launch_bounds__(128) contact_exact(layer a, layer b, u64 count, i32 const* left, i32 const* right, u8* how) {
    for (u64 k = (static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x); k < count; k += (static_cast<u64>(gridDim.x) * blockDim.x)) {
        if (how[k] != not_known) continue;
        i32 const v = left[k], w = right[k];
        how[k] = static_cast<u8>(contact_of(a.at[v], element_end(a, v), b.at[w], element_end(b, w)));
    }
}
// Of those that cross; others keep what is there.
extern "C" __global__ void __launch_bounds__(128)
    crossing_points(layer a, layer b, u64 count, i32 const* left, i32 const* right, u8 const* how, double* x, double* y) {
    for (u64 k = (static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x); k < count; k += (static_cast<u64>(gridDim.x) * blockDim.x)) {
        if (how[k] != crossing) continue;
        i32 const v = left[k], w = right[k];
        point const p = crossing_point(a.at[v], a.at[v + 1], b.at[w], b.at[w + 1]);
        x[k] = p.x, y[k] = p.y;
    }
}
