// SPDX-License-Identifier: Apache-2.0
// C++, linked with NVRTC and nvJitLink.
#include "_cxx_link.hpp"

namespace {

struct linked_with {
    decltype(&nvrtcCreateProgram) create_program = nvrtcCreateProgram;
    decltype(&nvrtcCompileProgram) compile = nvrtcCompileProgram;
    decltype(&nvrtcGetProgramLogSize) log_size = nvrtcGetProgramLogSize;
    decltype(&nvrtcGetProgramLog) log = nvrtcGetProgramLog;
    decltype(&nvrtcGetLTOIRSize) bitcode_size = nvrtcGetLTOIRSize;
    decltype(&nvrtcGetLTOIR) bitcode = nvrtcGetLTOIR;
    decltype(&nvrtcDestroyProgram) destroy_program = nvrtcDestroyProgram;
    decltype(&nvJitLinkCreate) create_link = nvJitLinkCreate;
    decltype(&nvJitLinkAddData) add = nvJitLinkAddData;
    decltype(&nvJitLinkComplete) complete = nvJitLinkComplete;
    decltype(&nvJitLinkGetLinkedCubinSize) cubin_size = nvJitLinkGetLinkedCubinSize;
    decltype(&nvJitLinkGetLinkedCubin) cubin = nvJitLinkGetLinkedCubin;
    decltype(&nvJitLinkDestroy) destroy_link = nvJitLinkDestroy;
};

}  // namespace

int main() { return program::compile_link_and_launch(linked_with{}); }
