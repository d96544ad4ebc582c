# SPDX-License-Identifier: Apache-2.0
"""A library with kernels that a program opens and closes: what it brought is answered as long as the program runs."""

import os
import shutil
import subprocess
import sys

from _kiln import BIN, SCRATCH, SOURCE, check, run, write

compiler = shutil.which("c++") or shutil.which("g++")
if not compiler or not (BIN.parent / "lib/libkiln.so").exists():
    print("no C++ compiler, or no shared library")
    sys.exit(77)

write("k.cu", 'extern "C" __global__ void k(int* x) { *x = 1; }\n')
run("build", "k.cu", "--arch", "80,86,90", "-o", "kernels.kiln", "--embed", "kernels.cpp")
write("plugin.cpp", '#include "kernels.hpp"\nextern "C" __attribute__((visibility("default"))) kiln::unit const* its_unit() { return &kernels::k(); }\n')
write("main.cpp", """\
#include <kiln/engine.hpp>
#include <cstdio>
#include <dlfcn.h>
int main(int, char** arguments) {
    void* const plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) return std::puts(dlerror()), 2;
    auto const unit = *reinterpret_cast<kiln::unit const* (*)()>(dlsym(plugin, "its_unit"))();
    auto const ask = [&](char const* arch) {
        auto const got = kiln::engine::process().artifact_sync(unit, kiln::target::parse(arch).value());
        std::printf("%s: %s\\n", arch, got ? kiln::name_of(got->from).data() : got.error().message().c_str());
        std::fflush(stdout);
    };
    ask("sm_80");
    dlclose(plugin);
    ask("sm_86");
    // A second one of the same name, opened where the first has been closed.
    if (dlclose(dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL)) != 0) return 3;
    ask("sm_90");
}
""")


def built(*words):
    library = ["-I", SOURCE / "include", "-I", SCRATCH, f"-L{BIN.parent / 'lib'}", "-lkiln", "-ldl", f"-Wl,-rpath,{BIN.parent / 'lib'}"]
    done = subprocess.run(list(map(str, [compiler, "-std=c++20", *words, *library])), capture_output=True, text=True, cwd=SCRATCH)
    check(done.returncode == 0, "it is linked", done.stderr)


# Symbols that are unique in a process would keep the library loaded anyhow; that is no library's to rely on.
unique = subprocess.run([compiler, "-fno-gnu-unique", "-E", "-x", "c++", os.devnull], capture_output=True).returncode == 0
built(*(["-fno-gnu-unique"] if unique else []), "-fPIC", "-shared", "-o", "plugin.so", "plugin.cpp", "kernels.cpp")
built("-o", "program", "main.cpp")
(SCRATCH / "no-cuda").mkdir()
environment = {n: v for n, v in os.environ.items() if not n.startswith("KILN_")}
environment |= {"KILN_CACHE_DIR": str(SCRATCH / "nothing"), "KILN_CUDA_PATH": str(SCRATCH / "no-cuda"), "KILN_JIT": "forbid"}
said = subprocess.run([SCRATCH / "program", SCRATCH / "plugin.so"], capture_output=True, text=True, env=environment, cwd=SCRATCH)
check(said.returncode == 0 and said.stdout.splitlines() == ["sm_80: bundle", "sm_86: bundle", "sm_90: bundle"], "what a closed library brought is still there",
      said.returncode, said.stdout, said.stderr)
