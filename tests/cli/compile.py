# SPDX-License-Identifier: Apache-2.0
"""kiln compile: data on stdout, messages on stderr, exit status 0 only if all succeeded."""

import json
import os
import re
import shutil

from _kiln import CACHE, KERNEL, SCRATCH, check, data, run, write

write("scale.cu", "template <class T> __global__ void scale(T* x, T a) { x[threadIdx.x] *= a; }\n")
archs = "sm_75,sm_80,sm_90,sm_100,sm_120"
cold = data("compile", "scale.cu", "--arch", archs, "--name", "scale<float>", "--name", "scale<double>")
check([a["target"] for a in cold] == archs.split(","), "one artifact per architecture", cold)
check(all(a["from"] == "compiled" and a["unit"] == "scale" and len(a["key"]) == 64 for a in cold), "all compiled", cold)
check(all([k["name"] for k in a["kernels"]] == ["scale<float>", "scale<double>"] for a in cold), "kernels by name", cold)
check(all(k["lowered"].startswith("_Z5scaleI") and k["registers"] > 0 and k["shared_bytes"] == 0 and k["local_bytes"] == 0
          for a in cold for k in a["kernels"]), "lowered names and resources", cold)
warm = data("compile", "scale.cu", "--arch", archs, "--name", "scale<float>", "--name", "scale<double>")
check(all(a["from"] == "disk" for a in warm), "the next process finds them on disk", warm)
check([a["key"] for a in warm] == [a["key"] for a in cold], "under the same keys")

# A missing brace: status, file and line, and nothing left anywhere.
write("broken.cu", 'extern "C" __global__ void b(int* x) {\n  x[0] = 1;\n  if (x[1]) { x[2] = 3;\n}\n')
before = sorted(p for p in CACHE.rglob("*.kiln"))
done = run("compile", "broken.cu", "--arch", "sm_90", "-o", "out", status=1)
check("broken.cu(" in done.stderr and "error" in done.stderr, "the file and the line are named", done.stderr)
check(done.stdout == "", "no data on stdout", done.stdout)
check(sorted(p for p in CACHE.rglob("*.kiln")) == before, "nothing is cached")
check(not (SCRATCH / "out").exists(), "nothing is written")

# One of two fails: the other is still there, and the status says so.
mixed = run("compile", "scale.cu", "broken.cu", "--arch", "sm_90", "--json", status=1)
check('"unit": "scale"' in mixed.stdout, "the good one is reported", mixed.stdout)

# Macros, headers beside the file, other kinds, output files.
write("with_header.cu", '#include "value.h"\nextern "C" __global__ void k(int* x) { *x = VALUE + MORE; }\n')
write("value.h", "#define VALUE 1\n")
one = data("compile", "with_header.cu", "--arch", "90", "-DMORE=2")[0]
check(one["from"] == "compiled", "compiled with a macro", one)
write("value.h", "#define VALUE 1\n")
check(data("compile", "with_header.cu", "--arch", "90", "-DMORE=2")[0]["from"] == "disk", "touching a header is a hit")
write("value.h", "#define VALUE 7\n")
check(data("compile", "with_header.cu", "--arch", "90", "-DMORE=2")[0]["from"] == "compiled", "editing it is a miss")
run("compile", "with_header.cu", "--arch", "sm_90", "--kind", "ptx", "-DMORE=2", "-o", "images")
check(".entry k" in (SCRATCH / "images/with_header.compute_90.ptx").read_text(), "PTX is written")

# An option takes one value: what follows it is a file.
for option in (["-I", "."], ["-D", "MORE=2"], ["-U", "LESS"], ["-n", "k"], ["--arch", "90"], ["--option", "-w"], ["--export", "k"]):
    seen = data("compile", "-DMORE=2", *option, "with_header.cu", "--arch", "90", status=None)
    check([i["unit"] for i in seen] == ["with_header"], f"{option} leaves the file alone", seen)

# <cassert> says anew each time what assert is.
write("asserts.cu", """#define NDEBUG
#include <cassert>
extern "C" __global__ void off(int* x) { assert(*x == 1); }
#undef NDEBUG
#include <cassert>
extern "C" __global__ void on(int* x) { assert(*x == 2); }
#define NDEBUG
#include <assert.h>
extern "C" __global__ void off_again(int* x) { assert(*x == 3); }
""")
for more in ([], ["-DNDEBUG", "--option=-diag-suppress=47"]):
    run("compile", "asserts.cu", "--arch", "90", "--kind", "ptx", "-o", "images", *more)
    bodies = (SCRATCH / "images/asserts.compute_90.ptx").read_text().split(".visible .entry ")[1:]
    check({b.split("(")[0]: "call.uni" in b for b in bodies} == {"off": False, "on": True, "off_again": False}, "assert is on where it is asked for", bodies)

# A link to a header that is read only once is another name of it, which the compiler does not open: still, what becomes of it counts.
write("once/k.cu", '#include "a.h"\n#include "b.h"\nextern "C" __global__ void k(int* p) {\n#ifdef TWICE\n*p = 2;\n#else\n*p = 1;\n#endif\n}\n')
write("once/a.h", "#pragma once\n#ifdef SEEN\n#define TWICE 1\n#endif\n#define SEEN 1\n")
other = SCRATCH / "once/b.h"
for make, value in ((lambda: other.symlink_to("a.h"), 1), (lambda: shutil.copy(SCRATCH / "once/a.h", other), 2), (lambda: other.write_text("#define TWICE 1\n"), 2), (lambda: os.link(SCRATCH / "once/a.h", other), 1)):
    other.unlink(missing_ok=True)
    make()
    run("compile", "once/k.cu", "--arch", "90", "--kind", "ptx", "-o", "images")
    text = (SCRATCH / "images/k.compute_90.ptx").read_text()
    check(re.search(rf"[ ,]{value};", text), "a header's other name", value, text)

# Misuse is told from failure.
check("sm_75" in run("compile", "scale.cu", "--arch", "sm_91", status=2).stderr, "an unknown architecture names the known ones")
run("compile", status=2)
run("compile", "scale.cu", "--no-such-flag", status=2)
check("--gpu-architecture" in run("compile", "scale.cu", "--option=--gpu-architecture=sm_90", status=1).stderr, "a refused option is named")
check("no such file" in run("compile", "nowhere.cu", status=1).stderr, "a missing file is named")
check("kiln compile FILE" in run("compile", "--help").stdout, "--help is the page")

# Words nobody knows come before words that are missing.
for words in (["frob"], ["cache", "frob"], ["compile", "--frob"], ["build", "--frob"]):
    check(f"'{words[-1]}' is not a command" in run(*words, status=2).stderr, "an unknown word is named", words)
check("1024" in run("compile", "scale.cu", "-j", "many", status=2).stderr, "a number of processes is a number")
check("prims, spatial, tropical" in run("list", "--pack", "nope", status=2).stderr, "an unknown pack names the known ones")
check("--spec" in run("warm", "--spec", status=2).stderr and "no pack has 'nope'" in run("warm", "--spec", "nope", status=2).stderr, "nor is a name")

# An option no key can have: refused with a remedy that works, and then nothing is said to be lost.
write("timed.cu", KERNEL.replace("VALUE", "3"))
refused = run("compile", "timed.cu", "--arch", "sm_90", "-X", "--time=times.csv", status=1).stderr
check("--uncached-option=OPT" in refused, "the remedy is one of the command line", refused)
for turn in range(2):
    made = run("compile", "timed.cu", "--arch", "sm_90", f"--uncached-option=--time={SCRATCH}/times.csv")
    check("compiled" in made.stdout and "not kept" not in made.stderr, "around the cache", made)
check((SCRATCH / "times.csv").exists(), "with what it writes")

# Two files of one name must not become one image.
write("a/same.cu", KERNEL.replace("VALUE", "1"))
write("b/same.cu", KERNEL.replace("VALUE", "2"))
check("'same'" in run("compile", "a/same.cu", "b/same.cu", "-o", "both", status=2).stderr, "one name for two images is refused")
check(len(data("compile", "a/same.cu", "b/same.cu", "--arch", "sm_90,sm_90")) == 2, "an architecture named twice is one")

# A file that is not there is an error in JSON, too; and a text ends where it ends.
said = run("compile", "timed.cu", "nosuch.cu", "--json", status=1)
check(json.loads(said.stdout) == [{"error": "nosuch.cu: no such file"}], "JSON is always JSON", said.stdout)
run("compile", "timed.cu", "--arch", "compute_90", "-o", "texts")
text = next((SCRATCH / "texts").glob("*.ptx")).read_bytes()
check(text.endswith(b"\n") and b"\0" not in text, "PTX is a text", text[-20:])
