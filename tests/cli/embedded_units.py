# SPDX-License-Identifier: Apache-2.0
"""A program with units of one source that were built with different headers gets each its own, or an error; never the other's."""

import os
import pathlib
import shutil
import subprocess
import sys

from _kiln import BIN, SCRATCH, SOURCE, check, run, write

compiler = shutil.which("c++") or shutil.which("g++")
if not compiler or not (BIN.parent / "lib/libkiln.so").exists():
    print("no C++ compiler, or no shared library")
    sys.exit(77)

write("k.cu", """\
#if __has_include(<k.h>)
#include <k.h>
#else
#define STEP 7
#endif
#if __CUDA_ARCH__ >= 900
#include <cassert>
#include <cuda/std/tuple>
#include <cooperative_groups.h>
#if __has_include(<newer.h>)
#include <newer.h>
#endif
#endif
extern "C" __constant__ int step = STEP;
extern "C" __global__ void k(int* x) { *x += step; }
""")
write("one/k.h", "#define STEP 1\n")
write("two/k.h", "#define STEP 2\n")
write("two/newer.h", "#define NEWER\n")
for empty in ("none", "copies"):
    (SCRATCH / empty).mkdir()

PROGRAM = """\
#include <kiln/engine.hpp>
#include <cstdio>
#include <cstring>
#include <string>
UNITS
// For each unit the step it was made with, or the error.
int main(int, char** arguments) {
    for (auto const* const unit : {LIST}) {
        auto const got = kiln::engine::process().artifact_sync(*unit, kiln::target::parse(arguments[1]).value());
        int step = 0;
        if (got) std::memcpy(&step, got->what->find_constant("step")->bytes.data(), sizeof step);
        std::printf("%s\\n", got ? std::to_string(step).c_str() : got.error().message().c_str());
    }
}
"""


def program(name, units, *flags, source="k.cu", archs="80,86"):
    """Each unit is built by itself, with its own include directory, and all are linked into one program."""
    folder = SCRATCH / name
    folder.mkdir()
    sources = []
    for unit, directory in units:
        run("build", source, "-I", directory, "--arch", archs, "--as", "k", "--export", "step", "-o", f"{name}/{unit}.kiln", "--embed", f"{name}/{unit}.cpp", *flags)
        sources.append(folder / f"{unit}.cpp")
    declared = "".join(f'#include "{unit}.hpp"\n' for unit, _ in units)
    listed = ", ".join(f"&{unit}::k()" for unit, _ in units)
    write(f"{name}/main.cpp", PROGRAM.replace("UNITS", declared).replace("LIST", listed))
    command = [compiler, "-std=c++20", "-o", folder / "program", folder / "main.cpp", *sources, "-I", SOURCE / "include", "-I", folder,
               f"-L{BIN.parent / 'lib'}", "-lkiln", f"-Wl,-rpath,{BIN.parent / 'lib'}"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    check(done.returncode == 0, "it is linked", done.stderr)

    def ask(arch, jit="forbid", cuda=""):
        away = SCRATCH / "away"
        away.mkdir()
        for there in ("one", "two", "none", "k.cu", "copies"):
            (SCRATCH / there).rename(away / there)
        environment = {n: v for n, v in os.environ.items() if not n.startswith("KILN_")}
        environment |= {"KILN_CACHE_DIR": str(SCRATCH / f"cache-{name}"), "KILN_JIT": jit, "KILN_CUDA_PATH": str(cuda or os.environ["KILN_TEST_CUDA_PATH"])}
        said = subprocess.run([folder / "program", arch], capture_output=True, text=True, env=environment, cwd=folder)
        for there in away.iterdir():
            there.rename(SCRATCH / there.name)
        away.rmdir()
        check(said.returncode == 0, "it runs", said.stdout, said.stderr)
        return said.stdout.splitlines()

    return ask


nowhere = SCRATCH / "no-cuda"
nowhere.mkdir()
# A toolkit that has headers of its own by that name.
newer_toolkit = SCRATCH / "newer-cuda"
real = pathlib.Path(os.environ["KILN_TEST_CUDA_PATH"])
newer_toolkit.mkdir()
for part in real.iterdir():
    if part.name != "include":
        (newer_toolkit / part.name).symlink_to(part)
(newer_toolkit / "include").mkdir()
for header in (real / "include").iterdir():
    (newer_toolkit / "include" / header.name).symlink_to(header)
write("newer-cuda/include/newer.h", "// the toolkit's, and not the own one\n")
for order in (["one", "two", "none"], ["none", "two", "one"]):
    units = [(f"u_{n}", n) for n in order]
    steps = [{"one": "1", "two": "2", "none": "7"}[n] for n in order]
    text = program("text_" + order[0], units)
    images = program("images_" + order[0], units, "--images-only")
    for ask, what in ((text, "with the text"), (images, "images only")):
        for cuda in ("", nowhere, SCRATCH / "removed"):  # a toolkit, none, and one that was named and is not there
            for arch in ("sm_80", "sm_86"):
                check(ask(arch, cuda=cuda) == steps, f"{what}, {arch}: each has its own", ask(arch, cuda=cuda), steps)
    check(text("sm_75", jit="allow") == steps, "also where it is compiled", text("sm_75", jit="allow"), steps)
    for said in images("sm_75"):
        check("sm_80" in said and "ARCHS" in said, "what there is, and what to do", said)
        check(not any(noise in said for noise in ("source", "options", "directories", "KILN_JIT")), "and nothing that does not help", said)
    lines = program("lines_" + order[0], units, "--option=-lineinfo")
    check(lines("sm_80", cuda=nowhere) == steps, "with line information", lines("sm_80", cuda=nowhere), steps)
    check(str(SCRATCH).encode() not in b"".join((SCRATCH / f"lines_{order[0]}" / f"{u}.kiln").read_bytes() for u, _ in units), "which names no directory of the build")
    # Another architecture reads more. The toolkit's headers are the customer's; of an own directory it is known what it did not have; what
    # it had and nobody read is an error, also where the customer's toolkit has one of that name.
    for customers in ("", newer_toolkit) if order[0] == "one" else ():
        for directory, step, said in zip(order, steps, text("sm_90", jit="allow", cuda=customers)):
            if directory == "two":
                check("newer.h" in said and "build for this architecture, too" in said, "a header nobody read is an error", said)
            else:
                check(said == step, "what was not there is not there", directory, said)

# With line information a compiler has paths of this machine. One that a text or an option names itself is looked for by that name.
write("lines/inc/own.h", "#define OWN 5\n")
write("lines/absolute.cu", f'#include "{SCRATCH}/lines/inc/own.h"\nextern "C" __global__ void k(int* x) {{ *x = OWN; }}\n')
write("lines/pre.cu", 'extern "C" __global__ void k(int* x) { *x = OWN; }\n')
for options in ((), ("--option=-lineinfo",)):
    run("build", "lines/absolute.cu", "-I", "lines/inc", "--arch", "80", "-o", "l.kiln", "--embed", "l.cpp", *options)
    run("build", "lines/pre.cu", f"--option=--pre-include={SCRATCH}/lines/inc/own.h", "--arch", "80", "-o", "l.kiln", "--embed", "l.cpp", *options)
    run("build", "pre.cu", "--option=--pre-include=inc/own.h", "--arch", "80", "-o", "l.kiln", "--embed", "l.cpp", *options, cwd=SCRATCH / "lines")

# Headers that say the same are as many files as they were, also where no architecture of the build read more than one of them.
write("copies/c.cu", """\
#if __CUDA_ARCH__ != 860
#include "a/h.h"
#endif
#if __CUDA_ARCH__ != 800
#include "b/h.h"
#endif
#ifdef TWICE
#define STEP 2
#else
#define STEP 1
#endif
extern "C" __constant__ int step = STEP;
extern "C" __global__ void k(int* x) { *x += step; }
""")
once = write("copies/a/h.h", "#pragma once\n#ifdef ONCE\n#define TWICE\n#endif\n#define ONCE\n")
other = once.parent.parent / "b/h.h"
other.parent.mkdir()
for files, make in (("2", lambda: shutil.copy(once, other)), ("1", lambda: other.symlink_to("../a/h.h")), ("1", lambda: os.link(once, other))):
    other.unlink(missing_ok=True)
    make()
    for archs in ("80,86", "86,80"):
        name = f"copies_{len(list(SCRATCH.glob('copies_*')))}"
        ask = program(name, [("c_unit", "none")], source="copies/c.cu", archs=archs)
        check(ask("sm_80") == ["1"] and ask("sm_86") == ["1"], "what was shipped read one of them")
        check(ask("sm_75", jit="allow") == [files], f"an architecture that reads both, {archs}", files, ask("sm_75", jit="allow"))

# An -I among the options is an include directory like the others: its headers travel, and its path does not.
for option in (f"-I{SCRATCH / 'two'}", "-Itwo", f"--include-path={SCRATCH / 'two'}"):
    name = f"option_{len(list(SCRATCH.glob('option_*')))}"
    ask = program(name, [("u", "none")], f"--option={option}", "--option=-DOTHER=1")
    check(ask("sm_80", cuda=nowhere) == ["2"] and ask("sm_75", jit="allow") == ["2"], f"{option} is carried", ask("sm_75", jit="allow"))
    made = (SCRATCH / name / "program").read_bytes()
    check(str(SCRATCH / "two").encode() not in made and b"-Itwo" not in made and b"OTHER=1" in made, f"and {option} is not in the program")
    lines = program(name + "_lines", [("u", "none")], f"--option={option}", "--option=-lineinfo")
    check(lines("sm_80", cuda=nowhere) == ["2"], "also with line information", lines("sm_80", cuda=nowhere))

# With line information a compiler has the toolkit's own paths. What was shipped does not ask for them, wherever the toolkit is now.
lines = program("lines_of_a_toolkit", [("u", "one")], "--option=-lineinfo", archs="90")
for cuda in ("", nowhere, newer_toolkit):
    check(lines("sm_90", cuda=cuda) == ["1"], "line information, and headers of a toolkit that is elsewhere", cuda, lines("sm_90", cuda=cuda))
