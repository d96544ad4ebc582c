# SPDX-License-Identifier: Apache-2.0
"""The words of kiln_add_kernels: what cannot be meant is told when a project is configured, and everything else is built."""

import shutil
import subprocess
import sys

from _kiln import CLI, SCRATCH, SOURCE, check, write

if not shutil.which("cmake"):
    print("cmake is not installed")
    sys.exit(77)

write("k.cu", 'extern "C" { __constant__ int step = 2; __global__ void k(int* x) { *x += step; } }\n')
write("other.cu", 'extern "C" __global__ void other(int* x) { *x += 1; }\ntemplate <class T> __global__ void twice(T* x) { *x *= 2; }\n')
write("consumer.cpp", "int consumer() { return 0; }\n")
count = 0


def configured(calls, *, targets="add_library(consumer STATIC ../consumer.cpp)"):
    """Configures a project with these calls; the folder, and what was said."""
    global count
    count += 1
    write(f"p{count}/CMakeLists.txt", f"""\
cmake_minimum_required(VERSION 3.20)
project(consumer CXX)
add_executable(kiln::cli IMPORTED GLOBAL)
set_target_properties(kiln::cli PROPERTIES IMPORTED_LOCATION {CLI})
include({SOURCE}/cmake/KilnAddKernels.cmake)
{targets}
target_compile_features(consumer PRIVATE cxx_std_20)
target_include_directories(consumer PRIVATE {SOURCE}/include)
{calls}
""")
    done = subprocess.run(["cmake", "-S", f"p{count}", "-B", f"p{count}/build"], capture_output=True, text=True, cwd=SCRATCH, timeout=240)
    return SCRATCH / f"p{count}/build", done.returncode, " ".join(done.stderr.split())


def refused(calls, *words, **kwargs):
    _, status, said = configured(calls, **kwargs)
    check(status != 0 and all(word in said for word in words), calls, said)


def built(calls, **kwargs):
    place, status, said = configured(calls, **kwargs)
    check(status == 0, calls, said)
    done = subprocess.run(["cmake", "--build", place], capture_output=True, text=True, timeout=240)
    check(done.returncode == 0, calls, done.stdout, done.stderr)
    return place, done.stdout + done.stderr


def fails_to_build(calls, *words):
    place, status, said = configured(calls)
    check(status == 0, calls, said)
    done = subprocess.run(["cmake", "--build", place], capture_output=True, text=True, timeout=240)
    said = done.stdout + done.stderr
    check(done.returncode != 0 and all(word in said for word in words), calls, said)


KERNELS = "kiln_add_kernels(consumer SOURCES ../k.cu ARCHS 80"
for name in ("my-k", "a/b", "int", "std", "3d", "a::b"):
    refused(f"{KERNELS} NAME {name})", f"'{name}' can be none", "_kernels' can")
for name in ("n", "off", "no"):  # which CMake takes for false
    place, _ = built(f"{KERNELS} NAME {name})")
    check((place / f"consumer.kernels/{name}.hpp").exists(), "a name is a name", name)
refused(f'{KERNELS} OPTIONS -DA "" -DB)', "OPTIONS has no value, or an empty one among others")
refused(f"{KERNELS} SIGN n)", "SIGN is about the BUNDLE")
refused(f"{KERNELS})\n{KERNELS})", "consumer_kernels.hpp already")
refused("kiln_add_kernels(nobody SOURCES ../k.cu ARCHS 80)", "no such target yet")
write("inner/CMakeLists.txt", "kiln_add_kernels(consumer SOURCES ../k.cu ARCHS 80)\n")
refused("add_subdirectory(../inner inner)", "the target is made in", "call it there")

# Constants and names of one file; files that are none, and directories that are none.
place, _ = built('kiln_add_kernels(consumer SOURCES ../k.cu ../other.cu ARCHS 80 EXPORTS ../k.cu:step NAMES "../other.cu:twice<int>")')
source = (place / "consumer.kernels/consumer_kernels.cpp").read_text()
check(source.count('.exports = {"step", }') == 1 and source.count('.kernels = {"twice<int>", }') == 1, "each is of its file", source)
fails_to_build('kiln_add_kernels(consumer SOURCES ../k.cu ARCHS 80 NAMES "../kk.cu:k")', "there is no '../kk.cu' among the files")
_, said = built(f"{KERNELS} INCLUDES no/such)")
check("no/such: there is no such directory" in said, "a directory that is not there is told", said)

# What $<BOOL> takes for false may well be meant, and a flag has no value.
write("with/mine.h", "#define STEP 5\n")
write("asks.cu", '#if __has_include("mine.h")\n#include "mine.h"\n#endif\nextern "C" __global__ void k(int* x) { *x += STEP; }\n')
DIRECTORIES = "$<TARGET_PROPERTY:dep,INTERFACE_INCLUDE_DIRECTORIES>"
built(f"""add_library(dep INTERFACE)
set_target_properties(dep PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "{SCRATCH}/with;EXTRA-NOTFOUND")
kiln_add_kernels(consumer SOURCES ../asks.cu ARCHS 80 BUNDLE INCLUDES "{DIRECTORIES}")""")
built('kiln_add_kernels(consumer SOURCES ../asks.cu ARCHS 80 BUNDLE OPTIONS "$<1:-DSTEP=OFF>" "-DOFF=1" "$<$<CONFIG:None>:-DX>")')
refused('kiln_add_kernels(consumer SOURCES ../k.cu OPTIONS "-DL=1,2,$<CONFIG>")', "$<COMMA>")
refused(f"{KERNELS} BUNDLE IMAGES_ONLY OFF)", "unknown: OFF")
