# SPDX-License-Identifier: Apache-2.0
"""A bundle of kiln_add_kernels is made anew when a header of its sources was edited, and only then."""

import shutil
import subprocess
import sys

from _kiln import BIN, CLI, SCRATCH, SOURCE, check, run, write

if not shutil.which("cmake"):
    print("cmake is not installed")
    sys.exit(77)

# Of the library only the program is needed: nothing is linked.
write("project/CMakeLists.txt", f"""\
cmake_minimum_required(VERSION 3.20)
project(consumer CXX)
add_executable(kiln::cli IMPORTED)
set_target_properties(kiln::cli PROPERTIES IMPORTED_LOCATION {CLI})
include({SOURCE}/cmake/KilnAddKernels.cmake)
add_library(consumer STATIC consumer.cpp)
target_compile_features(consumer PRIVATE cxx_std_20)
target_include_directories(consumer PRIVATE {SOURCE}/include)
kiln_add_kernels(consumer SOURCES k.cu NAME kernels ARCHS 90 INCLUDES ${{CMAKE_CURRENT_SOURCE_DIR}}/inc BUNDLE)
""")
write("project/consumer.cpp", "int consumer() { return 0; }\n")
write("project/k.cu", '#include <h.h>\nextern "C" __global__ void k(int* x) { x[0] = H; }\n')
header = write("project/inc/h.h", "#define H 1\n")


def cmake(*arguments):
    done = subprocess.run(["cmake", *map(str, arguments)], capture_output=True, text=True, cwd=SCRATCH, timeout=240)
    check(done.returncode == 0, f"cmake {arguments}", done.stdout, done.stderr)


# Without C++ the generated source would be dropped, and the linker would complain of what is in it.
write("no_cxx/CMakeLists.txt", (SCRATCH / "project/CMakeLists.txt").read_text().replace("consumer CXX", "consumer C"))
write("no_cxx/consumer.cpp", "")
refused = subprocess.run(["cmake", "-S", "no_cxx", "-B", "no_cxx_build"], capture_output=True, text=True, cwd=SCRATCH, timeout=240)
said = " ".join(refused.stderr.split())
check(refused.returncode != 0 and "project(consumer LANGUAGES CXX C)" in said, "a project without C++ is told so", said)

# A word without its value, though only a variable behind it is empty, is not taken for one that was not written.
whole = (SCRATCH / "project/CMakeLists.txt").read_text()
for word in ("NAME", "SIGN", "SOURCES", "ARCHS", "NAMES", "EXPORTS", "OPTIONS", "INCLUDES"):
    for value in ("${EMPTY}", '"${EMPTY}"'):
        write("empty/CMakeLists.txt", whole.replace("SOURCES k.cu NAME kernels ARCHS 90 INCLUDES ${CMAKE_CURRENT_SOURCE_DIR}/inc BUNDLE",
                                                    ("" if word == "SOURCES" else "SOURCES k.cu ") + f"{word} {value} BUNDLE" + ("" if word == "ARCHS" else " ARCHS 90")))
        write("empty/consumer.cpp", "")
        refused = subprocess.run(["cmake", "-S", "empty", "-B", "empty_build"], capture_output=True, text=True, cwd=SCRATCH, timeout=240)
        check(refused.returncode != 0 and f"{word} has no value" in " ".join(refused.stderr.split()), f"{word} {value} is an error", refused.stderr)

bundle = SCRATCH / "build/consumer.kernels/kernels.kiln"
cmake("-S", "project", "-B", "build")
cmake("--build", "build")
first = bundle.stat()
cmake("--build", "build")
check(bundle.stat().st_ino == first.st_ino, "nothing was edited, nothing is made")
header.write_text("#define H 2\n")
# Newer than the bundle by any clock of a file system.
subprocess.run(["touch", "-d", "+2 seconds", header], check=True)
cmake("--build", "build")
check(bundle.stat().st_ino != first.st_ino, "a header was edited: the bundle is made anew")

# An option with a semicolon in it is one option.
write("parted/CMakeLists.txt", (SCRATCH / "project/CMakeLists.txt").read_text().replace(" BUNDLE)", " OPTIONS \"-DTWO=int a;int b\" \"-DMORE=int c\\;int d\" -DH=1)").replace("${CMAKE_CURRENT_SOURCE_DIR}/inc", "${CMAKE_CURRENT_SOURCE_DIR}"))
write("parted/consumer.cpp", "")
write("parted/k.cu", 'struct s { TWO; MORE; };\nextern "C" __global__ void k(s* x) { x->a = x->b + x->c + x->d + H; }\n')
cmake("-S", "parted", "-B", "parted_build")
cmake("--build", "parted_build")
said = run("build", "parted/k.cu", "project/k.cu", "-a", "sm_90", "--embed", "x.cpp", "--as", "one", status=2).stderr
check("1 name and 2 files (parted/k.cu, project/k.cu)" in said, "--as counts", said)
# Each file is a function of its own, which C++ can call so.
write("project/v.1.cu", (SCRATCH / "project/k.cu").read_text())
for names, told in (((), ("parted/k.cu and project/k.cu", "k()")), (("--as", "f,f"), ("parted/k.cu and project/k.cu", "f()")), (("--as", "f,2f"), ("project/k.cu", "'2f'"))):
    said = run("build", "parted/k.cu", "project/k.cu", "-a", "sm_90", "--embed", "x.cpp", *names, status=2).stderr
    check(all(part in said for part in told) and "--as" in said, "two files of one function are named", said)
    check(not (SCRATCH / "x.cpp").exists() and not (SCRATCH / "x.hpp").exists(), "and nothing is written")
said = run("build", "project/v.1.cu", "-I", "project/inc", "-a", "sm_90", "--embed", "x.cpp", status=2).stderr
check("project/v.1.cu" in said and "'v.1'" in said and "--as" in said, "and so is one that C++ cannot call so", said)
run("build", "project/k.cu", "project/v.1.cu", "-I", "project/inc", "-a", "sm_90", "--embed", "x.cpp", "--as", "k,v_1")
check("v_1()" in (SCRATCH / "x.hpp").read_text(), "by names of their own they are embedded")

# To make, "lib (1)" looks like a member of an archive.
if shutil.which("make"):
    shutil.copytree(SCRATCH / "project", SCRATCH / "lib (1)/inner (2)")
    cmake("-G", "Unix Makefiles", "-S", "lib (1)/inner (2)", "-B", "lib (1)/build")
    cmake("--build", "lib (1)/build")
    cmake("--build", "lib (1)/build")

# What was looked for and not there, and what is reached by a link: nothing that was read has changed.
late = '#if __has_include(<dangling.h>)\n#include <dangling.h>\n#else\n#define D 1\n#endif\n#if __has_include(<maybe.h>)\n#include <maybe.h>\n#else\n#define M 1\n#endif\n#include <h.h>\nextern "C" __global__ void k(int* x) { x[0] = D * 10000 + H * 100 + M; }\n'
for generator, program in (("Ninja", "ninja"), ("Unix Makefiles", "make")):
    if not shutil.which(program):
        continue
    place = f"late_{program}"
    write(f"{place}/CMakeLists.txt", (SCRATCH / "project/CMakeLists.txt").read_text().replace("${CMAKE_CURRENT_SOURCE_DIR}/inc", "${CMAKE_CURRENT_SOURCE_DIR}/first ${CMAKE_CURRENT_SOURCE_DIR}/linked"))
    write(f"{place}/consumer.cpp", '#include "kernels.hpp"\n')
    write(f"{place}/k.cu", late)
    (SCRATCH / place / "first").mkdir()
    write(f"{place}/v1/h.h", "#define H 1\n")
    write(f"{place}/v2/h.h", "#define H 2\n")
    write(f"{place}/v3/h.h", "#define H 4\n")
    for folder in ("inner", "later"):
        (SCRATCH / place / folder).mkdir()
    (SCRATCH / place / "inner/link").symlink_to("../v1")
    (SCRATCH / place / "linked").symlink_to("inner/link")
    (SCRATCH / place / "first/dangling.h").symlink_to("../later/there.h")
    for made in (SCRATCH / place).rglob("*"):  # long before anything is built
        subprocess.run(["touch", "-h", "-d", "-1 hour", made], check=True)
    built = SCRATCH / place / "build"
    cmake("-G", generator, "-S", place, "-B", built)

    def kernels():
        cmake("--build", built)
        return (built / "consumer.kernels/kernels.cpp").read_text()

    def switch(link, to):
        (SCRATCH / place / link).unlink()
        (SCRATCH / place / link).symlink_to(to)

    seen = [kernels()]
    check(kernels() == seen[0], "nothing changes")
    for what, change in (("a link behind a link is switched", lambda: switch("inner/link", "../v3")),
                         ("a link has something to point at", lambda: write(f"{place}/later/there.h", "#define D 2\n")),
                         ("a link is switched", lambda: switch("linked", "v2")), ("a header is there now", lambda: write(f"{place}/v2/maybe.h", "#define M 2\n")),
                         ("a header appears in front of another", lambda: write(f"{place}/first/h.h", "#define H 3\n"))):
        change()
        # The files themselves are older than what was built: only folders tell.
        for made in (SCRATCH / place).glob("*/*.h"):
            subprocess.run(["touch", "-c", "-d", "-1 hour", made], check=True)
        seen.append(kernels())
        check(len(set(seen)) == len(seen), f"{generator}: {what}: made anew", *seen)
    # A header that is touched and says the same is looked at once; who includes the kernels is not compiled again for it.
    subprocess.run(["touch", SCRATCH / place / "first/h.h"], check=True)
    header = (built / "consumer.kernels/kernels.hpp").stat()
    once, again = (subprocess.run(["cmake", "--build", built], capture_output=True, text=True, timeout=240) for _ in range(2))
    check(once.returncode == 0 and "Compiling kernels" in once.stdout, f"{generator}: a touched header is looked at", once.stdout, once.stderr)
    check(again.returncode == 0 and "Compiling kernels" not in again.stdout and "Building" not in again.stdout, f"{generator}: once", again.stdout, again.stderr)
    check((built / "consumer.kernels/kernels.hpp").stat().st_mtime_ns == header.st_mtime_ns and "consumer.cpp" not in once.stdout, f"{generator}: nobody else is compiled for it", once.stdout)
    if program == "ninja":
        done = subprocess.run(["cmake", "--build", built, "-v"], capture_output=True, text=True)
        check("no work to do" in done.stdout, "and then there is nothing to do", done.stdout)
        again = (built / "consumer.kernels/kernels.cpp").stat()
        write(f"{place}/first/other.txt", "")
        cmake("--build", built)
        check((built / "consumer.kernels/kernels.cpp").stat().st_ino == again.st_ino, "another file in a folder changes nothing that is compiled")

# Two libraries of one program with kernels by the same name: each has its own.
compiler = shutil.which("c++") or shutil.which("g++")
if compiler and (BIN.parent / "lib/libkiln.so").exists():
    library = ["-I", SOURCE / "include", f"-L{BIN.parent / 'lib'}", "-lkiln", f"-Wl,-rpath,{SCRATCH}:{BIN.parent / 'lib'}"]
    for name, number in (("a", 64), ("b", 256)):
        write(f"two/{name}/k.cu", f'extern "C" __global__ void k(int* x) {{ x[{number}] = 1; }}\n')
        run("build", f"two/{name}/k.cu", "-a", "sm_90", "--embed", f"two/{name}/kernels.cpp", "--embed-name", "kernels", "--as", "k")
        write(f"two/{name}/lib.cpp", f'#include "kernels.hpp"\nchar const* text_of_{name}() {{ return kernels::k().source.c_str(); }}\n')
        done = subprocess.run(list(map(str, [compiler, "-std=c++20", "-fPIC", "-shared", "-o", f"lib{name}.so", f"two/{name}/kernels.cpp",
                                             f"two/{name}/lib.cpp", *library])), capture_output=True, text=True, cwd=SCRATCH)
        check(done.returncode == 0, "a library with kernels", done.stderr)
    write("two/main.cpp", "#include <cstdio>\nchar const* text_of_a();\nchar const* text_of_b();\nint main() { std::printf(\"%s%s\", text_of_a(), text_of_b()); }\n")
    subprocess.run(list(map(str, [compiler, "-o", "both", "two/main.cpp", "-L.", "-la", "-lb", *library])), check=True, cwd=SCRATCH)
    said = subprocess.run([SCRATCH / "both"], capture_output=True, text=True).stdout
    check("x[64]" in said and "x[256]" in said, "each library has its own kernel", said)

    # The same of archives, from which a linker takes whatever it finds first.
    def project(name, libraries, more=""):
        write(f"{name}/CMakeLists.txt", f"""\
cmake_minimum_required(VERSION 3.20)
project({name} CXX)
set(CMAKE_CXX_STANDARD 20)
include_directories({SOURCE}/include)
add_executable(kiln::cli IMPORTED GLOBAL)
set_target_properties(kiln::cli PROPERTIES IMPORTED_LOCATION {CLI})
include({SOURCE}/cmake/KilnAddKernels.cmake)
{"".join(f"add_subdirectory({n})" + chr(10) for n in libraries)}{more}""")
        for n, number in libraries.items():
            write(f"{name}/{n}/k.cu", f'extern "C" __global__ void k(int* x) {{ x[{number}] = 1; }}\n')
            write(f"{name}/{n}/lib.cpp", f'#include "kernels.hpp"\nchar const* text_of_{n}() {{ return kernels::k().source.c_str(); }}\n')
            write(f"{name}/{n}/CMakeLists.txt", f"add_library({n} STATIC lib.cpp)\nkiln_add_kernels({n} NAME kernels SOURCES k.cu ARCHS 90)\n")
        cmake("-S", name, "-B", f"{name}/build")
        cmake("--build", f"{name}/build")

    kiln = f"{BIN.parent / 'lib/libkiln.so'}"
    write("together/main.cpp", (SCRATCH / "two/main.cpp").read_text())
    project("together", {"a": 64, "b": 256}, f"add_executable(both main.cpp)\ntarget_link_libraries(both a b {kiln})\n")
    project("apart_a", {"a": 64})
    project("apart_b", {"b": 256})
    subprocess.run(list(map(str, [compiler, "-o", "apart", "two/main.cpp", "apart_a/build/a/liba.a", "apart_b/build/b/libb.a", *library])), check=True, cwd=SCRATCH)
    for program in ("together/build/both", "apart"):
        said = subprocess.run([SCRATCH / program], capture_output=True, text=True).stdout
        check("x[64]" in said and "x[256]" in said, "each archive has its own kernel", program, said)
