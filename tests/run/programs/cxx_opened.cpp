// SPDX-License-Identifier: Apache-2.0
// C++, NVRTC and nvJitLink opened by path. The functions of nvJitLink have its version in their names.
#include "_cxx_link.hpp"

namespace {

void* opened(std::string const& name) {
    for (std::string const folder : {"/lib64/", "/lib/"}) {
        for (auto const* const version : {".13", ".12"}) {
            auto const path = CUDA_ROOT + folder + name + version;
            if (void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
        }
    }
    program::skip("no " + name);
}

template <class Function>
Function* of_link(void* library, std::string const& name) {
    unsigned major = 0, minor = 0;
    program::ok(program::found_in<nvJitLinkResult(unsigned*, unsigned*)>(library, "nvJitLinkVersion")(&major, &minor),
                "nvJitLinkVersion");
    auto const whole = "__nvJitLink" + name + "_" + std::to_string(major) + "_0";
    return program::found_in<Function>(library, whole.c_str());
}

struct opened_by_path {
    void* nvrtc = opened("libnvrtc.so");
    void* link = opened("libnvJitLink.so");
#define FROM_NVRTC(member, name) decltype(&name) member = program::found_in<decltype(name)>(nvrtc, #name)
#define FROM_LINK(member, name) decltype(&nvJitLink##name) member = of_link<decltype(nvJitLink##name)>(link, #name)
    FROM_NVRTC(create_program, nvrtcCreateProgram);
    FROM_NVRTC(compile, nvrtcCompileProgram);
    FROM_NVRTC(log_size, nvrtcGetProgramLogSize);
    FROM_NVRTC(log, nvrtcGetProgramLog);
    FROM_NVRTC(bitcode_size, nvrtcGetLTOIRSize);
    FROM_NVRTC(bitcode, nvrtcGetLTOIR);
    FROM_NVRTC(destroy_program, nvrtcDestroyProgram);
    FROM_LINK(create_link, Create);
    FROM_LINK(add, AddData);
    FROM_LINK(complete, Complete);
    FROM_LINK(cubin_size, GetLinkedCubinSize);
    FROM_LINK(cubin, GetLinkedCubin);
    FROM_LINK(destroy_link, Destroy);
};

}  // namespace

int main() { return program::compile_link_and_launch(opened_by_path{}); }
