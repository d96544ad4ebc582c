// SPDX-License-Identifier: Apache-2.0
//
// The operator as a functor. kiln_operator is a function that the host writes from what the user gave: in the same text
// when the primitive is compiled in full, else compiled apart and bound by the linker, which inlines it.
#pragma once

#include "kiln/prims/support.cuh"

#ifdef KILN_PRIM_LINKED
extern "C" __device__ KILN_OPERATOR_RESULT kiln_operator(KILN_OPERATOR_PARAMETERS, void const* state);
#else
#include "kiln/prims/written_operator.cuh"
#endif

struct kiln_functor {
    void const* state;

    __device__ __forceinline__ explicit kiln_functor(kiln_state const& captured) : state{&captured} {}
    template <class... Args>
    __device__ __forceinline__ KILN_OPERATOR_RESULT operator()(Args const&... args) const {
        return kiln_operator(args..., state);
    }
};
