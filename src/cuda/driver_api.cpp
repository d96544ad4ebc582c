// SPDX-License-Identifier: Apache-2.0
#include "cuda/driver_api.hpp"

#include <algorithm>

namespace kiln::cuda {

namespace {

template <auto Member>
constexpr driver_entry row(char const* symbol, char const* exported, int since, presence need = presence::always) {
    return {symbol,
            exported,
            since,
            need,
            [](driver_api& api, void* function) {
                api.*Member = reinterpret_cast<std::remove_reference_t<decltype(api.*Member)>>(function);
            },
            [](driver_api const& api) -> void const* { return &(api.*Member); }};
}

using d = driver_api;

// cuInit and cuDriverGetVersion are rows too: the stub library and old drivers have them.
constexpr driver_entry rows[] = {
    row<&d::init>("cuInit", "cuInit", 2000),
    row<&d::driver_get_version>("cuDriverGetVersion", "cuDriverGetVersion", 2020),
    row<&d::get_error_name>("cuGetErrorName", "cuGetErrorName", 6000),
    row<&d::get_error_string>("cuGetErrorString", "cuGetErrorString", 6000),

    row<&d::device_get_count>("cuDeviceGetCount", "cuDeviceGetCount", 2000),
    row<&d::device_get>("cuDeviceGet", "cuDeviceGet", 2000),
    row<&d::device_get_name>("cuDeviceGetName", "cuDeviceGetName", 2000),
    row<&d::device_get_attribute>("cuDeviceGetAttribute", "cuDeviceGetAttribute", 2000),
    row<&d::device_total_mem>("cuDeviceTotalMem", "cuDeviceTotalMem_v2", 3020),
    row<&d::device_get_uuid>("cuDeviceGetUuid", "cuDeviceGetUuid_v2", 11040, presence::optional),

    row<&d::primary_ctx_retain>("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain", 7000),
    row<&d::primary_ctx_release>("cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2", 11000),
    row<&d::ctx_get_current>("cuCtxGetCurrent", "cuCtxGetCurrent", 4000),
    row<&d::ctx_set_current>("cuCtxSetCurrent", "cuCtxSetCurrent", 4000),
    row<&d::ctx_push_current>("cuCtxPushCurrent", "cuCtxPushCurrent_v2", 4000),
    row<&d::ctx_pop_current>("cuCtxPopCurrent", "cuCtxPopCurrent_v2", 4000),

    row<&d::stream_create>("cuStreamCreate", "cuStreamCreate", 2000),
    row<&d::stream_destroy>("cuStreamDestroy", "cuStreamDestroy_v2", 4000),
    row<&d::stream_synchronize>("cuStreamSynchronize", "cuStreamSynchronize", 2000),
    row<&d::stream_query>("cuStreamQuery", "cuStreamQuery", 2000),
    row<&d::stream_wait_event>("cuStreamWaitEvent", "cuStreamWaitEvent", 3020),
    row<&d::stream_get_id>("cuStreamGetId", "cuStreamGetId", 12000, presence::optional),
    row<&d::stream_get_capture_info>("cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo", 10010, presence::optional),
    row<&d::stream_begin_capture>("cuStreamBeginCapture", "cuStreamBeginCapture_v2", 10010, presence::optional),

    row<&d::event_create>("cuEventCreate", "cuEventCreate", 2000),
    row<&d::event_destroy>("cuEventDestroy", "cuEventDestroy_v2", 4000),
    row<&d::event_record>("cuEventRecord", "cuEventRecord", 2000),
    row<&d::event_query>("cuEventQuery", "cuEventQuery", 2000),
    row<&d::event_synchronize>("cuEventSynchronize", "cuEventSynchronize", 2000),
    row<&d::event_elapsed_time>("cuEventElapsedTime", "cuEventElapsedTime", 2000),

    row<&d::mem_alloc>("cuMemAlloc", "cuMemAlloc_v2", 3020),
    row<&d::mem_free>("cuMemFree", "cuMemFree_v2", 3020),
    row<&d::memcpy_htod_async>("cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2", 3020),
    row<&d::memcpy_dtoh_async>("cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2", 3020),
    row<&d::memcpy_dtod_async>("cuMemcpyDtoDAsync", "cuMemcpyDtoDAsync_v2", 3020),
    row<&d::memset_d8_async>("cuMemsetD8Async", "cuMemsetD8Async", 3020),
    row<&d::mem_alloc_async>("cuMemAllocAsync", "cuMemAllocAsync", 11020, presence::optional),
    row<&d::mem_free_async>("cuMemFreeAsync", "cuMemFreeAsync", 11020, presence::optional),
    row<&d::mem_alloc_from_pool_async>("cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync", 11020, presence::optional),
    row<&d::mem_pool_create>("cuMemPoolCreate", "cuMemPoolCreate", 11020, presence::optional),
    row<&d::mem_pool_destroy>("cuMemPoolDestroy", "cuMemPoolDestroy", 11020, presence::optional),
    row<&d::mem_pool_set_attribute>("cuMemPoolSetAttribute", "cuMemPoolSetAttribute", 11020, presence::optional),
    row<&d::mem_pool_get_attribute>("cuMemPoolGetAttribute", "cuMemPoolGetAttribute", 11020, presence::optional),
    row<&d::mem_pool_trim_to>("cuMemPoolTrimTo", "cuMemPoolTrimTo", 11020, presence::optional),
    row<&d::mem_alloc_managed>("cuMemAllocManaged", "cuMemAllocManaged", 6000),
    row<&d::mem_get_info>("cuMemGetInfo", "cuMemGetInfo_v2", 3020),
    row<&d::mem_host_alloc>("cuMemHostAlloc", "cuMemHostAlloc", 2020),
    row<&d::mem_free_host>("cuMemFreeHost", "cuMemFreeHost", 2000),
    row<&d::ctx_synchronize>("cuCtxSynchronize", "cuCtxSynchronize", 2000),

    row<&d::library_load_data>("cuLibraryLoadData", "cuLibraryLoadData", 12000, presence::optional),
    row<&d::library_unload>("cuLibraryUnload", "cuLibraryUnload", 12000, presence::optional),
    row<&d::library_get_kernel>("cuLibraryGetKernel", "cuLibraryGetKernel", 12000, presence::optional),
    row<&d::library_get_global>("cuLibraryGetGlobal", "cuLibraryGetGlobal", 12000, presence::optional),
    row<&d::library_get_managed>("cuLibraryGetManaged", "cuLibraryGetManaged", 12000, presence::optional),
    row<&d::library_get_kernel_count>("cuLibraryGetKernelCount", "cuLibraryGetKernelCount", 12040, presence::optional),
    row<&d::library_enumerate_kernels>("cuLibraryEnumerateKernels", "cuLibraryEnumerateKernels", 12040,
                                       presence::optional),
    row<&d::kernel_get_name>("cuKernelGetName", "cuKernelGetName", 12030, presence::optional),
    row<&d::kernel_get_function>("cuKernelGetFunction", "cuKernelGetFunction", 12000, presence::optional),

    row<&d::func_load>("cuFuncLoad", "cuFuncLoad", 12040, presence::optional),
    row<&d::func_get_name>("cuFuncGetName", "cuFuncGetName", 12030, presence::optional),
    row<&d::func_get_attribute>("cuFuncGetAttribute", "cuFuncGetAttribute", 2020),
    row<&d::func_set_attribute>("cuFuncSetAttribute", "cuFuncSetAttribute", 9000),
    row<&d::func_get_param_info>("cuFuncGetParamInfo", "cuFuncGetParamInfo", 12040, presence::optional),
    row<&d::occupancy_max_active_blocks>("cuOccupancyMaxActiveBlocksPerMultiprocessor",
                                         "cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050),
    row<&d::launch_kernel>("cuLaunchKernel", "cuLaunchKernel", 4000),
    row<&d::launch_kernel_ex>("cuLaunchKernelEx", "cuLaunchKernelEx", 11060, presence::optional),
};

driver_entry const& entry_at(driver_api const& api, void const* slot) {
    auto const* at = std::ranges::find_if(rows, [&](driver_entry const& e) { return e.slot(api) == slot; });
    KILN_ASSERT(at != std::end(rows));
    return *at;
}

std::string spelled(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

errc code_of(CUresult status) {
    switch (status) {
        case CUDA_ERROR_OUT_OF_MEMORY: return errc::out_of_memory;
        case CUDA_ERROR_NO_DEVICE:
        case CUDA_ERROR_STUB_LIBRARY: return errc::no_device;
        case CUDA_ERROR_NO_BINARY_FOR_GPU:
        case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        case CUDA_ERROR_NOT_SUPPORTED: return errc::unsupported;
        case CUDA_ERROR_INVALID_IMAGE: return errc::corrupt;
        case CUDA_ERROR_INVALID_PTX: return errc::compile_failed;
        case CUDA_ERROR_NOT_FOUND: return errc::not_found;
        default: return errc::driver;
    }
}

}  // namespace

std::span<driver_entry const> driver_entries() noexcept { return rows; }

std::string driver_api::version_text() const { return spelled(version); }

std::string driver_api::words(CUresult status) const {
    char const* name = nullptr;
    char const* text = nullptr;
    if (get_error_name != nullptr) static_cast<void>(get_error_name(status, &name));
    if (get_error_string != nullptr) static_cast<void>(get_error_string(status, &text));
    if (name == nullptr) return fmt::format("CUDA error {}", static_cast<int>(status));
    return text == nullptr ? std::string{name} : fmt::format("{}: {}", name, text);
}

result<driver_api> resolve_driver(symbol_source const& symbols) {
    driver_api out;
    auto const get_version = reinterpret_cast<PFN_cuDriverGetVersion_v2020>(symbols("cuDriverGetVersion"));
    if (get_version != nullptr) static_cast<void>(get_version(&out.version));

    auto const get_proc = reinterpret_cast<PFN_cuGetProcAddress_v12000>(symbols("cuGetProcAddress_v2"));
    for (auto const& entry : rows) {
        void* function = nullptr;
        if (get_proc != nullptr) {
            CUdriverProcAddressQueryResult found{};
            auto const status =
                get_proc(entry.symbol, &function, entry.since, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
            if (status != CUDA_SUCCESS || found != CU_GET_PROC_ADDRESS_SUCCESS) function = nullptr;
        }
        if (function == nullptr) function = symbols(entry.exported);
        if (function != nullptr) entry.set(out, function);
        else if (entry.need == presence::always) return missing_entry(out, entry.slot(out));
    }
    return out;
}

error missing_entry(driver_api const& api, void const* slot) {
    auto const& entry = entry_at(api, slot);
    auto const needed = std::max(entry.since, 12000);
    auto const present = api.version == 0 ? std::string{} : fmt::format("; this one is {}", api.version_text());
    return fail(errc::unsupported, "{}: driver {} or newer is needed{}", entry.symbol, spelled(needed), present);
}

error driver_error(driver_api const& api, void const* slot, CUresult status) {
    return fail(code_of(status), "{}: {}", entry_at(api, slot).symbol, api.words(status))
        .with_status(static_cast<int>(status));
}

}  // namespace kiln::cuda
