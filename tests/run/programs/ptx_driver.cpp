// SPDX-License-Identifier: Apache-2.0
// PTX given to the driver, as a module and to be linked: 4000 multiply-adds in a row, which the host does, too.
#include "_cxx.hpp"

#include <cmath>
#include <cstring>

namespace {

struct text_and_result {
    std::string ptx;
    float result = 0;
};

text_and_result long_text(float from) {
    text_and_result out{
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
        ".reg .b64 %rd<3>;\n.reg .f32 %f<3>;\nld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd2, %rd1;\n"
        "ld.global.f32 %f1, [%rd2];\nmov.f32 %f2, %f1;\n"};
    float values[] = {from, from};
    unsigned random = 2654435761U;
    for (unsigned i = 0; i < 4000; ++i) {
        random = random * 1664525U + 1013904223U;
        float const by = 0.5F + static_cast<float>(random >> 20) / 16384.F;
        unsigned bits = 0;
        std::memcpy(&bits, &by, sizeof bits);
        unsigned const to = i % 2, other = 1 - to;
        char line[80];
        std::snprintf(line, sizeof line, "fma.rn.f32 %%f%u, %%f%u, 0f%08X, %%f%u;\n", to + 1, to + 1, bits, other + 1);
        out.ptx += line;
        values[to] = std::fma(values[to], by, values[other]);
        if (i % 16 != 15) continue;  // kept small
        out.ptx += "mul.f32 %f1, %f1, 0f3D800000;\nmul.f32 %f2, %f2, 0f3D800000;\n";
        for (auto& v : values) v *= 0.0625F;
    }
    out.ptx += "st.global.f32 [%rd2], %f1;\nret;\n}\n";
    out.result = values[0];
    return out;
}

float run_of(void const* image, float from) {
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    program::ok(DRIVER(cuModuleLoadData)(&module, image), "cuModuleLoadData");
    program::ok(DRIVER(cuModuleGetFunction)(&kernel, module, "k"), "cuModuleGetFunction");
    CUdeviceptr at = 0;
    program::ok(DRIVER(cuMemAlloc)(&at, sizeof from), "cuMemAlloc");
    program::ok(DRIVER(cuMemcpyHtoD)(at, &from, sizeof from), "cuMemcpyHtoD");
    void* words[] = {&at};
    program::ok(DRIVER(cuLaunchKernel)(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, words, nullptr), "cuLaunchKernel");
    program::ok(DRIVER(cuMemcpyDtoH)(&from, at, sizeof from), "cuMemcpyDtoH");
    return from;
}

}  // namespace

int main() {
    auto text = long_text(0.5F);
    program::context const here;
    if (run_of(text.ptx.c_str(), 0.5F) != text.result) program::wrong("as a module");
    CUlinkState link = nullptr;
    void* cubin = nullptr;
    std::size_t size = 0;
    program::ok(DRIVER(cuLinkCreate)(0, nullptr, nullptr, &link), "cuLinkCreate");
    program::ok(
        DRIVER(cuLinkAddData)(link, CU_JIT_INPUT_PTX, text.ptx.data(), text.ptx.size() + 1, "k", 0, nullptr, nullptr),
        "cuLinkAddData");
    program::ok(DRIVER(cuLinkComplete)(link, &cubin, &size), "cuLinkComplete");
    if (run_of(cubin, 0.5F) != text.result) program::wrong("linked");
    program::done(here);
}
