// SPDX-License-Identifier: Apache-2.0
//
// The driver's entry points, resolved once, each at the version whose signature stands here. A driver too
// old for an entry leaves it null, and `call` turns that into an error naming the version needed. Handles
// share the table; a test passes a table of fakes.
#pragma once

#include "cuda/loaded_library.hpp"

#include <atomic>
#include <cuda.h>
#include <cudaTypedefs.h>
#include <memory>

namespace kiln::cuda {

// Shared by all handles of one table.
struct driver_state {
    std::atomic<bool> exiting{false};          // the process is ending: the driver must not be called again
    std::atomic<std::uint64_t> unreleased{0};  // what destructors could not give back
};

struct driver_api {
    loaded_library library;  // empty in tests
    int version = 0;         // 13000 for 13.0
    std::shared_ptr<driver_state> state = std::make_shared<driver_state>();

    PFN_cuInit_v2000 init = nullptr;
    PFN_cuDriverGetVersion_v2020 driver_get_version = nullptr;
    PFN_cuGetErrorName_v6000 get_error_name = nullptr;
    PFN_cuGetErrorString_v6000 get_error_string = nullptr;

    PFN_cuDeviceGetCount_v2000 device_get_count = nullptr;
    PFN_cuDeviceGet_v2000 device_get = nullptr;
    PFN_cuDeviceGetName_v2000 device_get_name = nullptr;
    PFN_cuDeviceGetAttribute_v2000 device_get_attribute = nullptr;
    PFN_cuDeviceTotalMem_v3020 device_total_mem = nullptr;
    PFN_cuDeviceGetUuid_v11040 device_get_uuid = nullptr;

    PFN_cuDevicePrimaryCtxRetain_v7000 primary_ctx_retain = nullptr;
    PFN_cuDevicePrimaryCtxRelease_v11000 primary_ctx_release = nullptr;
    PFN_cuCtxGetCurrent_v4000 ctx_get_current = nullptr;
    PFN_cuCtxSetCurrent_v4000 ctx_set_current = nullptr;
    PFN_cuCtxPushCurrent_v4000 ctx_push_current = nullptr;
    PFN_cuCtxPopCurrent_v4000 ctx_pop_current = nullptr;

    PFN_cuStreamCreate_v2000 stream_create = nullptr;
    PFN_cuStreamDestroy_v4000 stream_destroy = nullptr;
    PFN_cuStreamSynchronize_v2000 stream_synchronize = nullptr;
    PFN_cuStreamQuery_v2000 stream_query = nullptr;
    PFN_cuStreamWaitEvent_v3020 stream_wait_event = nullptr;
    PFN_cuStreamGetId_v12000 stream_get_id = nullptr;
    PFN_cuStreamGetCaptureInfo_v10010 stream_get_capture_info = nullptr;
    PFN_cuStreamBeginCapture_v10010 stream_begin_capture = nullptr;

    PFN_cuEventCreate_v2000 event_create = nullptr;
    PFN_cuEventDestroy_v4000 event_destroy = nullptr;
    PFN_cuEventRecord_v2000 event_record = nullptr;
    PFN_cuEventQuery_v2000 event_query = nullptr;
    PFN_cuEventSynchronize_v2000 event_synchronize = nullptr;
    PFN_cuEventElapsedTime_v2000 event_elapsed_time = nullptr;

    PFN_cuMemAlloc_v3020 mem_alloc = nullptr;
    PFN_cuMemFree_v3020 mem_free = nullptr;
    PFN_cuMemcpyHtoDAsync_v3020 memcpy_htod_async = nullptr;
    PFN_cuMemcpyDtoHAsync_v3020 memcpy_dtoh_async = nullptr;
    PFN_cuMemcpyDtoDAsync_v3020 memcpy_dtod_async = nullptr;
    PFN_cuMemsetD8Async_v3020 memset_d8_async = nullptr;
    PFN_cuMemAllocAsync_v11020 mem_alloc_async = nullptr;
    PFN_cuMemFreeAsync_v11020 mem_free_async = nullptr;
    PFN_cuMemAllocFromPoolAsync_v11020 mem_alloc_from_pool_async = nullptr;
    PFN_cuMemPoolCreate_v11020 mem_pool_create = nullptr;
    PFN_cuMemPoolDestroy_v11020 mem_pool_destroy = nullptr;
    PFN_cuMemPoolSetAttribute_v11020 mem_pool_set_attribute = nullptr;
    PFN_cuMemPoolGetAttribute_v11020 mem_pool_get_attribute = nullptr;
    PFN_cuMemPoolTrimTo_v11020 mem_pool_trim_to = nullptr;
    PFN_cuMemAllocManaged_v6000 mem_alloc_managed = nullptr;
    PFN_cuMemGetInfo_v3020 mem_get_info = nullptr;
    PFN_cuMemHostAlloc_v2020 mem_host_alloc = nullptr;
    PFN_cuMemFreeHost_v2000 mem_free_host = nullptr;
    PFN_cuCtxSynchronize_v2000 ctx_synchronize = nullptr;

    PFN_cuLibraryLoadData_v12000 library_load_data = nullptr;
    PFN_cuLibraryUnload_v12000 library_unload = nullptr;
    PFN_cuLibraryGetKernel_v12000 library_get_kernel = nullptr;
    PFN_cuLibraryGetGlobal_v12000 library_get_global = nullptr;
    PFN_cuLibraryGetManaged_v12000 library_get_managed = nullptr;
    PFN_cuLibraryGetKernelCount_v12040 library_get_kernel_count = nullptr;
    PFN_cuLibraryEnumerateKernels_v12040 library_enumerate_kernels = nullptr;
    PFN_cuKernelGetName_v12030 kernel_get_name = nullptr;
    PFN_cuKernelGetFunction_v12000 kernel_get_function = nullptr;

    PFN_cuFuncLoad_v12040 func_load = nullptr;
    PFN_cuFuncGetName_v12030 func_get_name = nullptr;
    PFN_cuFuncGetAttribute_v2020 func_get_attribute = nullptr;
    PFN_cuFuncSetAttribute_v9000 func_set_attribute = nullptr;
    PFN_cuFuncGetParamInfo_v12040 func_get_param_info = nullptr;
    PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050 occupancy_max_active_blocks = nullptr;
    PFN_cuLaunchKernel_v4000 launch_kernel = nullptr;
    PFN_cuLaunchKernelEx_v11060 launch_kernel_ex = nullptr;

    // "13.0".
    [[nodiscard]] std::string version_text() const;
    // "CUDA_ERROR_INVALID_VALUE: invalid argument".
    [[nodiscard]] std::string words(CUresult status) const;
};

enum class presence { always, optional };

// One row of the table: how it is asked for and what to say when it is missing.
struct driver_entry {
    char const* symbol;    // for cuGetProcAddress and for messages: "cuMemAlloc"
    char const* exported;  // the library's own name: "cuMemAlloc_v2"
    int since;             // version of the signature, 3020, and of the driver that has it
    presence need;
    void (*set)(driver_api& api, void* function);
    void const* (*slot)(driver_api const& api);  // address of the member: how a missing entry finds its name
};
[[nodiscard]] std::span<driver_entry const> driver_entries() noexcept;

// errc::unsupported where an entry every supported driver has is missing.
[[nodiscard]] result<driver_api> resolve_driver(symbol_source const& symbols);

// The process's driver, opened and resolved, not initialised: costs a dlopen. errc::no_device with a remedy
// where there is none. The same answer ever after.
[[nodiscard]] result<std::shared_ptr<driver_api const>> load_driver();
// The same after cuInit, which takes about 0.1 s the first time.
[[nodiscard]] result<std::shared_ptr<driver_api const>> start_driver();

// "cuLibraryLoadData: driver 12.0 or newer is needed, this one is 11.8".
[[nodiscard]] error missing_entry(driver_api const& api, void const* slot);
// The error for a failed call; status() is the CUresult.
[[nodiscard]] error driver_error(driver_api const& api, void const* slot, CUresult status);

// KILN_CHECK(call<&driver_api::stream_create>(api, &handle, flags));
template <auto Entry, class... Args>
[[nodiscard]] result<void> call(driver_api const& api, Args... args) {
    auto const function = api.*Entry;
    if (function == nullptr) return missing_entry(api, &(api.*Entry));
    if (CUresult const status = function(args...); status != CUDA_SUCCESS) {
        return driver_error(api, &(api.*Entry), status);
    }
    return {};
}

// For destructors: does not call the driver once the process is ending, and counts what was not released.
template <auto Entry, class... Args>
void release(driver_api const& api, Args... args) noexcept {
    auto const function = api.*Entry;
    CUresult status = CUDA_ERROR_DEINITIALIZED;
    if (function != nullptr && !api.state->exiting.load(std::memory_order_relaxed)) status = function(args...);
    if (status == CUDA_SUCCESS) return;
    if (status == CUDA_ERROR_DEINITIALIZED) api.state->exiting.store(true, std::memory_order_relaxed);
    api.state->unreleased.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace kiln::cuda
