# SPDX-License-Identifier: Apache-2.0
# kiln::cuda_headers: the include folders of cuda.h, nvrtc.h and nvJitLink.h. Nothing is linked: the driver,
# NVRTC and nvJitLink are opened at run time.
include(KilnCudaSearch)
kiln_find_cuda()

include(FindPackageHandleStandardArgs)
list(JOIN KILN_CUDA_TRIED ", " kiln_cuda_tried)
find_package_handle_standard_args(KilnCudaHeaders
    REQUIRED_VARS KILN_CUDA_ROOT KILN_CUDA_INCLUDE_DIRS
    REASON_FAILURE_MESSAGE "no folder holds cuda.h, nvrtc.h and nvJitLink.h (tried: ${kiln_cuda_tried}). \
Set KILN_CUDA_PATH to a CUDA 12.8 or newer, or run scripts/setup, which puts NVIDIA's wheels under build/cuda")

if(KilnCudaHeaders_FOUND AND NOT TARGET kiln::cuda_headers)
    add_library(kiln::cuda_headers INTERFACE IMPORTED)
    target_include_directories(kiln::cuda_headers SYSTEM INTERFACE ${KILN_CUDA_INCLUDE_DIRS})
endif()
