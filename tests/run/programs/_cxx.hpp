// SPDX-License-Identifier: Apache-2.0
// What the programs in C++ share: the driver, times, and the line at the end. The same words as in _program.py.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <dlfcn.h>
#include <fstream>
#include <set>
#include <string>

namespace program {

inline double now() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What ends the program has no quotes in it.
[[noreturn]] inline void wrong(std::string const& what) {
    std::printf("{\"ok\": false, \"wrong\": \"%s\"}\n", what.c_str());
    std::exit(1);
}

[[noreturn]] inline void skip(std::string const& why) {
    std::printf("{\"skipped\": \"%s\"}\n", why.c_str());
    std::exit(77);
}

template <class Status>
void ok(Status status, char const* what) {
    if (static_cast<int>(status) != 0)
        wrong(std::string{what} + ": status " + std::to_string(static_cast<int>(status)));
}

template <class Function>
Function* found_in(void* library, char const* name) {
    auto* const function = reinterpret_cast<Function*>(dlsym(library, name));
    if (function == nullptr) wrong(std::string{"there is no "} + name);
    return function;
}

inline void* driver() {
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) skip("no GPU here");
    return library;
}

// A function of the driver, of the version that the headers name.
#define PROGRAM_TEXT(name) #name
#define PROGRAM_NAME(name) PROGRAM_TEXT(name)
#define DRIVER(name) (*program::found_in<decltype(name)>(program::driver(), PROGRAM_NAME(name)))

struct context {
    double began = now(), made = 0;
    CUdevice device = 0;

    context() {
        if (DRIVER(cuInit)(0) != CUDA_SUCCESS || DRIVER(cuDeviceGet)(&device, 0) != CUDA_SUCCESS) skip("no GPU here");
        CUcontext primary = nullptr;
        ok(DRIVER(cuDevicePrimaryCtxRetain)(&primary, device), "a context");
        ok(DRIVER(cuCtxSetCurrent)(primary), "a context");
        made = now();
    }

    [[nodiscard]] std::string architecture() const {
        int major = 0, minor = 0;
        ok(DRIVER(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device), "the GPU");
        ok(DRIVER(cuDeviceGetAttribute)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device), "the GPU");
        return std::to_string(major * 10 + minor);
    }
};

// The real compilers that are loaded: a stand-in lies in a folder of that name.
inline std::string mapped() {
    std::set<std::string> found;
    std::ifstream maps{"/proc/self/maps"};
    for (std::string line; std::getline(maps, line);) {
        if (line.find("r-xp") == line.npos || line.find("/standins/") != line.npos) continue;
        for (std::string const name : {"nvrtc", "nvJitLink"})
            if (line.find("/lib" + name + ".so") != line.npos) found.insert("\"" + name + "\"");
    }
    std::string out;
    for (auto const& one : found) out += (out.empty() ? "" : ", ") + one;
    return out;
}

inline void done(context const& c) {
    std::printf("{\"imports_ms\": 0, \"context_ms\": %.1f, \"first_ms\": %.1f, \"ok\": true, \"mapped\": [%s]}\n",
                c.made - c.began, now() - c.began, mapped().c_str());
}

}  // namespace program
