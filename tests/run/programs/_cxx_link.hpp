// SPDX-License-Identifier: Apache-2.0
// Two texts compiled to LTO-IR by NVRTC, one of them with CUB's headers, linked by nvJitLink and launched. How the two
// libraries are reached is the including program's: it has a macro each, NVRTC(name) and LINK(name).
#pragma once

#include "_cxx.hpp"

#include <nvJitLink.h>
#include <nvrtc.h>
#include <vector>

namespace program {

inline constexpr char const* caller = R"(
#include <cub/block/block_reduce.cuh>
extern "C" __device__ float op(float);
extern "C" __global__ void sum(float const* a, float* out, int n) {
    using block = cub::BlockReduce<float, 256>;
    __shared__ block::TempStorage room;
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 256) s += op(a[i]);
    s = block(room).Sum(s);
    if (threadIdx.x == 0) *out = s;
}
)";
inline constexpr char const* called = "extern \"C\" __device__ float op(float x) { return x * 2 + 1; }";

template <class Api>
std::vector<char> bitcode(Api& api, char const* text, std::vector<std::string> const& options) {
    nvrtcProgram p = nullptr;
    ok(api.create_program(&p, text, "cxx.cu", 0, nullptr, nullptr), "nvrtcCreateProgram");
    std::vector<char const*> words;
    for (auto const& one : options) words.push_back(one.c_str());
    if (auto const status = api.compile(p, static_cast<int>(words.size()), words.data()); status != NVRTC_SUCCESS) {
        std::size_t size = 0;
        api.log_size(p, &size);
        std::string log(size, ' ');
        api.log(p, log.data());
        std::fprintf(stderr, "%s\n", log.c_str());
        ok(status, "nvrtcCompileProgram");
    }
    std::size_t size = 0;
    ok(api.bitcode_size(p, &size), "nvrtcGetLTOIRSize");
    std::vector<char> out(size);
    ok(api.bitcode(p, out.data()), "nvrtcGetLTOIR");
    ok(api.destroy_program(&p), "nvrtcDestroyProgram");
    return out;
}

template <class Api>
std::vector<char> linked(Api& api, std::string const& architecture) {
    std::string const root = CUDA_ROOT, arch = "-arch=sm_" + architecture;
    auto const first = bitcode(api, caller,
                               {arch, "-std=c++17", "-dlto", "-rdc=true", "-default-device",
                                "-I" + root + "/include/cccl", "-I" + root + "/include"});
    auto const second = bitcode(api, called, {arch, "-dlto", "-rdc=true"});
    nvJitLinkHandle link = nullptr;
    char const* options[] = {arch.c_str(), "-lto"};
    ok(api.create_link(&link, 2, options), "nvJitLinkCreate");
    ok(api.add(link, NVJITLINK_INPUT_LTOIR, first.data(), first.size(), "caller"), "nvJitLinkAddData");
    ok(api.add(link, NVJITLINK_INPUT_LTOIR, second.data(), second.size(), "called"), "nvJitLinkAddData");
    ok(api.complete(link), "nvJitLinkComplete");
    std::size_t size = 0;
    ok(api.cubin_size(link, &size), "nvJitLinkGetLinkedCubinSize");
    std::vector<char> out(size);
    ok(api.cubin(link, out.data()), "nvJitLinkGetLinkedCubin");
    ok(api.destroy_link(&link), "nvJitLinkDestroy");
    return out;
}

template <class Api>
int compile_link_and_launch(Api api) {
    context const here;
    auto const cubin = linked(api, here.architecture());
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    ok(DRIVER(cuModuleLoadData)(&module, cubin.data()), "cuModuleLoadData");
    ok(DRIVER(cuModuleGetFunction)(&kernel, module, "sum"), "cuModuleGetFunction");
    int count = 10000;
    std::vector<float> values(static_cast<std::size_t>(count));
    double want = 0;
    for (int i = 0; i < count; ++i) want += (values[static_cast<std::size_t>(i)] = static_cast<float>(i % 17)) * 2 + 1;
    CUdeviceptr source = 0, target = 0;
    ok(DRIVER(cuMemAlloc)(&source, values.size() * sizeof(float)), "cuMemAlloc");
    ok(DRIVER(cuMemAlloc)(&target, sizeof(float)), "cuMemAlloc");
    ok(DRIVER(cuMemcpyHtoD)(source, values.data(), values.size() * sizeof(float)), "cuMemcpyHtoD");
    void* words[] = {&source, &target, &count};
    ok(DRIVER(cuLaunchKernel)(kernel, 1, 1, 1, 256, 1, 1, 0, nullptr, words, nullptr), "cuLaunchKernel");
    float got = 0;
    ok(DRIVER(cuMemcpyDtoH)(&got, target, sizeof got), "cuMemcpyDtoH");
    if (got != static_cast<float>(want)) wrong("the sum is " + std::to_string(got) + ", not " + std::to_string(want));
    done(here);
    return 0;
}

}  // namespace program
