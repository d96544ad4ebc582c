// SPDX-License-Identifier: Apache-2.0
//
// Comes before every CUB header: makes NVRTC read about a quarter of what CUB would pull in. It defines the include
// guards of large headers that CUB's agents name but do not need, and includes the few small ones they do. Nothing of
// CUB is changed, and a wrong guess is a compile error, never another program: the host then compiles once more with
// KILN_PRIM_PLAIN, which turns all of this off. What follows them is for every kernel.
#pragma once

#ifndef KILN_PRIM_PLAIN
#define _CUDA_PTX
#include <cuda/__ptx/instructions/get_sreg.h>
#define _CUDA_STD_ALGORITHM
#include <cuda/std/__algorithm/clamp.h>
#include <cuda/std/__algorithm/max.h>
#include <cuda/std/__algorithm/min.h>
#define _CUDA_STD_MDSPAN
#define _CUDA_STD_SPAN
#include <cuda/std/__fwd/mdspan.h>
#include <cuda/std/__fwd/span.h>
_LIBCUDACXX_BEGIN_NAMESPACE_STD
template <class, class, class, class>
class mdspan;
_LIBCUDACXX_END_NAMESPACE_STD
#define _CUDA_STD_FUNCTIONAL
#include <cuda/std/__functional/identity.h>
#include <cuda/std/__functional/invoke.h>
#include <cuda/std/__functional/operations.h>
#define _CUDA_STD_ITERATOR
#include <cuda/std/__iterator/iterator.h>
#include <cuda/std/__iterator/iterator_traits.h>
#define _CUDA_CMATH
#include <cuda/__cmath/ceil_div.h>
#include <cuda/__cmath/round_down.h>
#include <cuda/__cmath/round_up.h>
#include <cuda/std/cstddef>
#include <cuda/std/cstdint>
#include <cuda/std/limits>
#include <cuda/std/type_traits>
#endif

#include <cub/config.cuh>

// All names of Kiln's own that do not begin with kiln_ are in here: users' types and operators are in the same text.
namespace kiln_device {

// Kernels of one call may be launched so that each begins while the one before it ends. Then each waits for the one before, and
// so for all before that, ahead of its first look at what a kernel of the call writes. The first kernel of a call is never launched
// so: the call's input is there when any of its kernels begins. Without such a launch, and before sm_90, both do nothing.
static __device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
static __device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

}  // namespace kiln_device

#ifndef __CUDACC_RDC__
// NVRTC declares these two only for relocatable code; CUB's merge sort calls them.
static __device__ __forceinline__ void cudaGridDependencySynchronize() { kiln_device::wait_for_previous(); }
static __device__ __forceinline__ void cudaTriggerProgrammaticLaunchCompletion() { kiln_device::let_next_begin(); }
#endif
