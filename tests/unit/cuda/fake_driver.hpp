// SPDX-License-Identifier: Apache-2.0
// A driver table whose functions write down what they were asked: two GPUs of compute capability 9.0 and 8.0, and
// libraries with the kernels "one" (int*, int) and "two" ().
#pragma once

#include "cuda/library.hpp"

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace kiln::cuda::fake {

struct driver {
    std::mutex mutex;
    std::vector<std::string> calls;
    std::map<std::string, CUresult> failing;  // by function: what it answers instead
    int device_count = 2;
    std::vector<int> launched;  // first argument of every launch that has one
    std::string jit_log;

    CUresult note(std::string call) {
        std::scoped_lock const lock{mutex};
        auto const name = call.substr(0, call.find(' '));
        calls.push_back(std::move(call));
        auto const bad = failing.find(name);
        return bad == failing.end() ? CUDA_SUCCESS : bad->second;
    }
    [[nodiscard]] std::vector<std::string> take() {
        std::scoped_lock const lock{mutex};
        return std::exchange(calls, {});
    }
};

// The driver of the running test: plain functions have nowhere else to keep it.
inline driver* current = nullptr;
inline thread_local std::vector<CUcontext> stack;

template <class Handle>
Handle handle(std::uintptr_t number) {
    return reinterpret_cast<Handle>(number);
}
template <class Handle>
std::string number(Handle h) {
    return std::to_string(reinterpret_cast<std::uintptr_t>(h));
}

// Contexts are 100 + device; other handles are fixed numbers.
inline driver_api table() {
    driver_api t;
    t.version = 13000;
    t.init = [](unsigned) { return current->note("init"); };
    t.driver_get_version = [](int* v) { return *v = 13000, CUDA_SUCCESS; };
    t.get_error_name = [](CUresult s, char const** out) {
        return *out = s == CUDA_ERROR_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR_OTHER", CUDA_SUCCESS;
    };
    t.get_error_string = [](CUresult, char const** out) { return *out = "words", CUDA_SUCCESS; };
    t.device_get_count = [](int* n) { return *n = current->device_count, current->note("device_get_count"); };
    t.device_get = [](CUdevice* d, int ordinal) { return *d = ordinal, CUDA_SUCCESS; };
    t.device_get_name = [](char* name, int size, CUdevice) {
        return std::strncpy(name, "Fake GPU", static_cast<std::size_t>(size)), CUDA_SUCCESS;
    };
    t.device_get_attribute = [](int* out, CUdevice_attribute which, CUdevice device) {
        *out = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 - device
               : which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT   ? 132
                                                                     : 0;
        return CUDA_SUCCESS;
    };
    t.device_total_mem = [](std::size_t* out, CUdevice) { return *out = std::size_t{1} << 30, CUDA_SUCCESS; };
    t.device_get_uuid = [](CUuuid* out, CUdevice d) {
        for (int i = 0; i < 16; ++i) out->bytes[i] = static_cast<char>(i * 16 + d);
        return CUDA_SUCCESS;
    };
    t.primary_ctx_retain = [](CUcontext* out, CUdevice d) {
        return *out = handle<CUcontext>(100 + static_cast<std::uintptr_t>(d)),
               current->note("retain " + std::to_string(d));
    };
    t.primary_ctx_release = [](CUdevice d) { return current->note("release " + std::to_string(d)); };
    t.ctx_get_current = [](CUcontext* out) { return *out = stack.empty() ? nullptr : stack.back(), CUDA_SUCCESS; };
    t.ctx_set_current = [](CUcontext c) {
        if (stack.empty()) stack.push_back(c);
        else stack.back() = c;
        return current->note("set_current " + number(c));
    };
    t.ctx_push_current = [](CUcontext c) { return stack.push_back(c), CUDA_SUCCESS; };
    t.ctx_pop_current = [](CUcontext* out) { return *out = stack.back(), stack.pop_back(), CUDA_SUCCESS; };
    t.stream_create = [](CUstream* out, unsigned) {
        return *out = handle<CUstream>(7), current->note("stream_create");
    };
    t.stream_destroy = [](CUstream) { return current->note("stream_destroy"); };
    t.stream_synchronize = [](CUstream) { return current->note("stream_synchronize"); };
    t.stream_query = [](CUstream) { return current->note("stream_query"); };
    t.event_create = [](CUevent* out, unsigned flags) {
        return *out = handle<CUevent>(8), current->note("event_create " + std::to_string(flags));
    };
    t.event_destroy = [](CUevent) { return current->note("event_destroy"); };
    t.event_record = [](CUevent, CUstream s) { return current->note("event_record " + number(s)); };
    t.event_query = [](CUevent) { return current->note("event_query"); };
    t.event_synchronize = [](CUevent) { return current->note("event_synchronize"); };
    t.event_elapsed_time = [](float* out, CUevent, CUevent) {
        return *out = 1.5F, current->note("event_elapsed_time");
    };
    t.mem_alloc = [](CUdeviceptr* out, std::size_t n) {
        return *out = 4096, current->note("mem_alloc " + std::to_string(n));
    };
    t.mem_free = [](CUdeviceptr) { return current->note("mem_free"); };
    t.memcpy_htod_async = [](CUdeviceptr, void const*, std::size_t n, CUstream s) {
        return current->note("htod " + std::to_string(n) + " on " + number(s));
    };
    t.memcpy_dtoh_async = [](void*, CUdeviceptr, std::size_t n, CUstream s) {
        return current->note("dtoh " + std::to_string(n) + " on " + number(s));
    };
    t.memset_d8_async = [](CUdeviceptr, unsigned char, std::size_t, CUstream) { return current->note("memset"); };
    t.library_load_data = [](CUlibrary* out, void const*, CUjit_option*, void** values, unsigned count,
                             CUlibraryOption*, void**, unsigned) {
        if (count > 0) std::strcpy(static_cast<char*>(values[0]), current->jit_log.c_str());
        return *out = handle<CUlibrary>(20), current->note("library_load_data");
    };
    t.library_unload = [](CUlibrary) { return current->note("library_unload"); };
    t.library_get_kernel = [](CUkernel* out, CUlibrary, char const* name) {
        auto const n = std::string{name} == "one" ? 31 : std::string{name} == "two" ? 32 : 0;
        *out = handle<CUkernel>(static_cast<std::uintptr_t>(n));
        auto const status = current->note(std::string{"library_get_kernel "} + name);
        return n == 0 ? CUDA_ERROR_NOT_FOUND : status;
    };
    t.library_get_global = [](CUdeviceptr* out, std::size_t* bytes, CUlibrary, char const* name) {
        bool const known = std::string_view{name} == "taps";
        *out = known ? 8192 : 0, *bytes = known ? 16 : 0;
        auto const status = current->note(std::string{"library_get_global "} + name);
        return known ? status : CUDA_ERROR_NOT_FOUND;
    };
    t.library_get_managed = [](CUdeviceptr* out, std::size_t* bytes, CUlibrary, char const* name) {
        bool const known = std::string_view{name} == "shared_table";
        *out = known ? 16384 : 0, *bytes = known ? 4 : 0;
        auto const status = current->note(std::string{"library_get_managed "} + name);
        return known ? status : CUDA_ERROR_NOT_FOUND;
    };
    t.library_get_kernel_count = [](unsigned* n, CUlibrary) { return *n = 2, CUDA_SUCCESS; };
    t.library_enumerate_kernels = [](CUkernel* out, unsigned, CUlibrary) {
        return out[0] = handle<CUkernel>(31), out[1] = handle<CUkernel>(32), CUDA_SUCCESS;
    };
    t.kernel_get_name = [](char const** out, CUkernel k) {
        return *out = k == handle<CUkernel>(31) ? "one" : "two", CUDA_SUCCESS;
    };
    t.kernel_get_function = [](CUfunction* out, CUkernel k) {
        return *out = reinterpret_cast<CUfunction>(k), current->note("kernel_get_function");
    };
    t.func_load = [](CUfunction) { return current->note("func_load"); };
    t.func_get_name = [](char const** out, CUfunction f) {
        if (f != handle<CUfunction>(77)) return CUDA_ERROR_INVALID_HANDLE;
        return *out = "foreign", current->note("func_get_name");
    };
    t.func_get_attribute = [](int* out, CUfunction_attribute which, CUfunction) {
        *out = which == CU_FUNC_ATTRIBUTE_NUM_REGS ? 24 : which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
        return CUDA_SUCCESS;
    };
    t.func_set_attribute = [](CUfunction, CUfunction_attribute, int v) {
        return current->note("func_set_attribute " + std::to_string(v));
    };
    t.func_get_param_info = [](CUfunction f, std::size_t i, std::size_t*, std::size_t* size) {
        if (f != handle<CUfunction>(31) || i > 1) return CUDA_ERROR_INVALID_VALUE;
        return *size = i == 0 ? sizeof(int*) : sizeof(int), CUDA_SUCCESS;
    };
    t.occupancy_max_active_blocks = [](int* out, CUfunction, int threads, std::size_t) {
        return *out = 2048 / threads, CUDA_SUCCESS;
    };
    // Like the real one it wants the kernel's context current.
    t.launch_kernel = [](CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                         void** args, void**) {
        if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
        if (stack.back() != handle<CUcontext>(100)) return CUDA_ERROR_INVALID_HANDLE;
        if (f == handle<CUfunction>(31)) {
            std::scoped_lock const lock{current->mutex};
            current->launched.push_back(*static_cast<int*>(args[1]));
        }
        return current->note("launch");
    };
    t.launch_kernel_ex = [](CUlaunchConfig const* config, CUfunction f, void** args, void**) {
        if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
        if (stack.back() != handle<CUcontext>(100)) return CUDA_ERROR_INVALID_HANDLE;
        if (f == handle<CUfunction>(31)) {
            std::scoped_lock const lock{current->mutex};
            current->launched.push_back(*static_cast<int*>(args[1]));
        }
        auto const& c = *config;
        std::string what =
            fmt::format("launch_ex grid {}x{}x{} block {}x{}x{} shared {} stream {}", c.gridDimX, c.gridDimY,
                        c.gridDimZ, c.blockDimX, c.blockDimY, c.blockDimZ, c.sharedMemBytes, number(c.hStream));
        for (unsigned i = 0; i < c.numAttrs; ++i) {
            bool const early = c.attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
                               c.attrs[i].value.programmaticStreamSerializationAllowed == 1;
            auto const& cluster = c.attrs[i].value.clusterDim;
            if (c.attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
                what += fmt::format(" cluster {}x{}x{}", cluster.x, cluster.y, cluster.z);
            else if (c.attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && c.attrs[i].value.cooperative == 1)
                what += " cooperative";
            else if (c.attrs[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
                what += fmt::format(" priority {}", c.attrs[i].value.priority);
            else if (c.attrs[i].id == CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
                what += fmt::format(" carveout {}", c.attrs[i].value.sharedMemCarveout);
            else if (c.attrs[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
                what += fmt::format(" begun {}", number(c.attrs[i].value.launchCompletionEvent.event));
            else if (c.attrs[i].id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)
                what += fmt::format(" domain {}", static_cast<int>(c.attrs[i].value.memSyncDomain));
            else what += early ? " early" : " ?";
        }
        return current->note(std::move(what));
    };
    return t;
}

// Stands for the smallest cubin that passes check_image().
inline std::vector<std::byte> cubin() {
    std::vector<std::byte> out(64);
    unsigned char const head[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    std::memcpy(out.data(), head, sizeof head);
    return out;
}

}  // namespace kiln::cuda::fake
