// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudaTypedefs.h>
#include <dlfcn.h>

namespace kiln::device_tests {

// Graph calls, which Kiln itself does not need.
struct graph_api {
    PFN_cuStreamBeginCapture_v10010 begin;
    PFN_cuStreamEndCapture_v10000 end;
    PFN_cuGraphInstantiateWithFlags_v11040 instantiate;
    PFN_cuGraphLaunch_v10000 launch;
    PFN_cuGraphExecDestroy_v10000 destroy_exec;
    PFN_cuGraphDestroy_v10000 destroy;

    static graph_api load() {
        void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
        auto const from = [&]<class F>(F& out, char const* name) { out = reinterpret_cast<F>(::dlsym(library, name)); };
        graph_api out{};
        from(out.begin, "cuStreamBeginCapture_v2");
        from(out.end, "cuStreamEndCapture");
        from(out.instantiate, "cuGraphInstantiateWithFlags");
        from(out.launch, "cuGraphLaunch");
        from(out.destroy_exec, "cuGraphExecDestroy");
        from(out.destroy, "cuGraphDestroy");
        return out;
    }
};

}  // namespace kiln::device_tests
