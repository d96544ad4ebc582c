# SPDX-License-Identifier: Apache-2.0
"""Kernels by one name that differ in anything are told apart: libraries of one path, targets of one directory, configurations of one build."""

import shutil
import subprocess
import sys

from _kiln import BIN, CLI, SCRATCH, SOURCE, check, write

compiler = shutil.which("c++") or shutil.which("g++")
if not shutil.which("cmake") or not compiler or not (BIN.parent / "lib/libkiln.so").exists():
    print("no cmake, no C++ compiler, or no shared library")
    sys.exit(77)

KILN = BIN.parent / "lib/libkiln.so"
HEAD = f"""\
cmake_minimum_required(VERSION 3.20)
project(apart CXX)
set(CMAKE_CXX_STANDARD 20)
include_directories({SOURCE}/include)
add_executable(kiln::cli IMPORTED GLOBAL)
set_target_properties(kiln::cli PROPERTIES IMPORTED_LOCATION {CLI})
include({SOURCE}/cmake/KilnAddKernels.cmake)
"""


def do(*command, cwd=SCRATCH):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=cwd, timeout=280)
    check(done.returncode == 0, " ".join(map(str, command)), done.stdout, done.stderr)
    return done.stdout


# Two archives, built one after the other at the same path, from the same .cu: what tells them apart is a header, or an option.
MAIN = """\
#include <cstdio>
#include <string>
std::string first();
std::string second();
int main() { std::printf("%s %s", first().c_str(), second().c_str()); }
"""
LIBRARY = """\
#include "kernels.hpp"
#include <string>
std::string FUNCTION() {
    auto const& unit = kernels::k();
    std::string out;
    for (auto const& option : unit.options) out += option;
    for (auto const& header : unit.carried)
        if (header.place == "i0/h.h") out += header.text.substr(0, header.text.size() - 1);
    return out;
}
"""
write("main.cpp", MAIN)
write("same/k.cu", '#include <h.h>\nextern "C" __global__ void k(int* x) { x[0] = H; }\n')


def archive(function, header, options, place):
    write("same/CMakeLists.txt", HEAD + f"add_library(lib STATIC lib.cpp)\n"
          f"kiln_add_kernels(lib NAME kernels SOURCES k.cu ARCHS 90 BUNDLE INCLUDES inc OPTIONS {options})\n")
    write("same/lib.cpp", LIBRARY.replace("FUNCTION", function))
    write("same/inc/h.h", header)
    shutil.rmtree(SCRATCH / "same/build", ignore_errors=True)
    do("cmake", "-S", "same", "-B", "same/build")
    do("cmake", "--build", "same/build")
    shutil.copy(SCRATCH / "same/build/liblib.a", SCRATCH / place)


def linked(*archives):
    do(compiler, "-o", "both", "main.cpp", *archives, KILN, f"-Wl,-rpath,{KILN.parent}")
    return do(SCRATCH / "both")


archive("first", "#define H 1\n", "-DA", "one.a")
archive("second", "#define H 2\n", "-DA", "header.a")
archive("second", "#define H 1\n", "-DB", "option.a")
archive("second", "#define H 1\n", "-DA", "equal.a")
check(linked("one.a", "header.a") == "-DA#define H 1 -DA#define H 2", "another header", linked("one.a", "header.a"))
check(linked("header.a", "one.a") == "-DA#define H 1 -DA#define H 2", "whichever the linker finds first")
check(linked("one.a", "option.a") == "-DA#define H 1 -DB#define H 1", "another option", linked("one.a", "option.a"))
whole = ("-Wl,--whole-archive", "one.a", "equal.a", "-Wl,--no-whole-archive")
check(linked(*whole) == "-DA#define H 1 -DA#define H 1", "what is equal is shared, also where both are linked as a whole")

# Two targets of one directory, and whoever links one of them.
write("pair/CMakeLists.txt", HEAD + f"""\
add_library(first STATIC first.cpp)
kiln_add_kernels(first NAME kernels SOURCES k.cu ARCHS 90 OPTIONS -DA)
add_library(second STATIC second.cpp)
kiln_add_kernels(second NAME kernels SOURCES k.cu ARCHS 90 OPTIONS -DB)
add_executable(both ../main.cpp)
target_link_libraries(both first second {KILN})
add_executable(includes includes.cpp)
target_link_libraries(includes second {KILN})
""")
write("pair/k.cu", 'extern "C" __global__ void k(int* x) { x[0] = 1; }\n')
write("pair/includes.cpp", '#include "kernels.hpp"\n#include <cstdio>\nint main() { std::printf("%s", kernels::k().options.at(0).c_str()); }\n')
for function in ("first", "second"):
    write(f"pair/{function}.cpp", LIBRARY.replace("FUNCTION", function))
for generator, program in (("Ninja", "ninja"), ("Unix Makefiles", "make")):
    if not shutil.which(program):
        continue
    do("cmake", "-G", generator, "-S", "pair", "-B", f"pair/{program}")
    do("cmake", "--build", f"pair/{program}")
    check(do(SCRATCH / f"pair/{program}/both") == "-DA -DB", f"{generator}: each target of a directory has its own")
    check(do(SCRATCH / f"pair/{program}/includes") == "-DB", f"{generator}: who links a library may include its kernels")

# Both configurations of one build, in one run.
if shutil.which("ninja"):
    write("several/CMakeLists.txt", HEAD + f"""\
add_executable(one includes.cpp)
target_link_libraries(one {KILN})
kiln_add_kernels(one NAME kernels SOURCES k.cu ARCHS 90 BUNDLE INCLUDES inc OPTIONS "-DC=$<CONFIG>" -DV=1)
""")
    write("several/k.cu", '#include <v.h>\nextern "C" __global__ void k(int* x) { x[0] = V; }\n')
    header = write("several/inc/v.h", "// first\n")
    write("several/includes.cpp", (SCRATCH / "pair/includes.cpp").read_text())
    do("cmake", "-G", "Ninja Multi-Config", "-S", "several", "-B", "several/build", "-DCMAKE_CONFIGURATION_TYPES=Debug;Release",
       "-DCMAKE_CROSS_CONFIGS=all", "-DCMAKE_DEFAULT_CONFIGS=all")
    do("ninja", "-C", "several/build")
    for configuration in ("Debug", "Release"):
        said = do(SCRATCH / "several/build" / configuration / "one")
        check(said == f"-DC={configuration}", "each configuration has its own kernels", said)
    check("no work to do" in do("ninja", "-C", "several/build"), "and then there is nothing to do")
    header.write_text("// second\n")
    subprocess.run(["touch", "-d", "+2 seconds", header], check=True)
    do("ninja", "-C", "several/build")
    for configuration in ("Debug", "Release"):
        program = SCRATCH / "several/build" / configuration / "one"
        check(b"// second" in program.read_bytes(), "an edited header counts for both", configuration)
