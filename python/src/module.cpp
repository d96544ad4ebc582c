// SPDX-License-Identifier: Apache-2.0
#include "module.hpp"

#include "gil.hpp"

#include <kiln/engine.hpp>
#include <kiln/version.hpp>

#include <nanobind/stl/string.h>

#include <execinfo.h>
#include <pthread.h>

namespace kiln::python {

namespace {

// At exit: nobody waits any more, and what was compiled has a moment to reach the disk.
void end() {
    ending.store(true);
    if (!in_use.load()) return;
    without_gil const unlocked;
    engine::process().flush_sync(std::chrono::milliseconds{200});
    // Python ends a thread that wants the lock from now on by unwinding it. One of ours would take the process with it.
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds{2};
    while (taking_lock.load() > 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(std::chrono::microseconds{200});
}

// What is thrown past one of glibc's own frames, as out of std::call_once, needs libgcc_s, which glibc then asks its loader for. Where there is no
// memory for that, it ends the process. At the import there is some.
void ask_for_unwinder() {
    void* here = nullptr;
    static_cast<void>(::backtrace(&here, 1));
}

}  // namespace

}  // namespace kiln::python

NB_MODULE(_kiln, m) {
    using namespace kiln::python;
    // A forked child begins anew: its end must not wait for what a thread of its parent had begun.
    ::pthread_atfork(nullptr, nullptr, [] { in_use.store(false), taking_lock.store(0); });
    ask_for_unwinder();
    nanobind::set_leak_warnings(false);  // a thread that waits at the end keeps what it holds
    m.attr("version") = std::string{kiln::version}.c_str();
    bind_errors(m);
    bind_kernels(m);
    bind_prims(m);
    bind_tropical(m);
    bind_warmup(m);
    bind_views(m);
    bind_device_array(m);
    bind_geometries(m);
    bind_spatial(m);
    m.def("end", &end);
    m.def("in_use", [] { return in_use.load(); });
}
