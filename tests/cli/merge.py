# SPDX-License-Identifier: Apache-2.0
"""Bundles as they are put together: names per file, architectures as build systems write them, cubins and PTX in one, kiln merge."""

from _kiln import SCRATCH, check, data, run, write

write("heat.cu", 'extern "C" __global__ void heat(float* x) { *x += 1; }\n')
write("conv.cu", "namespace n { template <class T, int N> __global__ void conv(T* x) { *x *= N; } }\n")

# A name is of one file where it says so; a file without names has every kernel.
both = data("build", "heat.cu", "conv.cu", "-n", "conv.cu:n::conv<float,3>", "-n", "conv.cu:n::conv<double,5>", "--arch", "80", "-o", "both.kiln")
check(both["failed"] == 0, "each file has its own names", both)
told = run("build", "heat.cu", "conv.cu", "-n", "cov.cu:n::conv<float,3>", "--arch", "80", "-o", "none.kiln", status=1).stderr
check("there is no 'cov.cu' among the files: heat.cu, conv.cu" in told, "a file that is misspelt is told", told)
write("steps.cu", '__constant__ int step = 3;\nextern "C" { __constant__ int own = 4; __global__ void steps(int* x) { *x += own; } }\n')
run("build", "heat.cu", "steps.cu", "--export", "steps.cu:own", "--arch", "80", "-o", "steps.kiln")
check("'own'" in run("build", "heat.cu", "steps.cu", "--export", "own", "--arch", "80", "-o", "none.kiln", status=1).stderr, "without a file it is of every file")
check("'oun'" in run("build", "steps.cu", "--export", "oun", "--arch", "compute_80", "-o", "none.kiln", status=1).stderr, "a misspelt constant is told of PTX, too")
run("build", "steps.cu", "--export", "own", "--arch", "compute_80", "-o", "ptx.kiln")
told = run("build", "heat.cu", "-I", "no/such", "--arch", "80", "-o", "heat.kiln").stderr
check("-I no/such: there is no such directory" in told, "a missing directory is told", told)
kernels = {i["unit"]: sorted(i["kernels"]) for i in data("inspect", "both.kiln")["items"]}
check(kernels == {"heat": ["heat"], "conv": ["n::conv<double,5>", "n::conv<float,3>"]}, "as they were named", kernels)
run("build", "conv.cu", "-n", "n::conv<int,2>", "--arch", "80", "-o", "alone.kiln")  # "n:" of "n::" is no file


def targets(words, *more, status=0):
    return [f"{i['target']} {i['kind']}" for i in data("compile", "heat.cu", "--arch", words, *more, status=status)]


check(targets("80-real,90-virtual") == ["sm_80 cubin", "compute_90 ptx"], "CMake's words", targets("80-real,90-virtual"))
check(targets("compute_90,sm_90a") == ["compute_90 ptx", "sm_90a cubin"], "a virtual architecture is PTX")
check(targets("80,80-real,sm_80") == ["sm_80 cubin"], "the same thing once")
check(targets("86-89") == ["sm_86 cubin", "sm_87 cubin", "sm_88 cubin", "sm_89 cubin"] or targets("86-89")[0] == "sm_86 cubin", "a range")
check(all(t.endswith("ptx") for t in targets("86-89", "-k", "ptx")), "of the kind that is asked for")
major = targets("all-major")
check("sm_80 cubin" in major and "sm_90 cubin" in major and "sm_86 cubin" not in major and major[-1].endswith("ptx"), "one of each major, and PTX of the newest", major)
for wrong in ("80-", "real", "90-fake", "121-75", "all-minor"):
    run("compile", "heat.cu", "--arch", wrong, status=2)

# One bundle of several, as if it had been built at once.
run("build", "heat.cu", "--arch", "80", "-o", "one.kiln")
run("build", "heat.cu", "--arch", "80,compute_90", "-o", "two.kiln")
merged = data("merge", "one.kiln", "two.kiln", "both.kiln", "-o", "merged.kiln")
check(merged["artifacts"] == 3, "each artifact once", merged)
check(data("verify", "merged.kiln")["bad"] == [], "and whole")
# Also where it was made twice, by two machines: neither what it cost nor where its warnings came from makes it another.
for folder in ("here", "there"):
    write(f"{folder}/warned.cu", '#warning "old"\nextern "C" __global__ void warned(float* x) { *x += 2; }\n')
    run("build", f"{folder}/warned.cu", "--arch", "80", "-o", f"{folder}.kiln", KILN_CACHE_DIR=SCRATCH / f"cache-{folder}")
twice = data("merge", "here.kiln", "there.kiln", "-o", "twice.kiln")
check(twice["artifacts"] == 1, "made twice, in it once", twice)
# Nor does the name that NVRTC gives to what is internal: of a text of templates alone it takes time and process where nobody says better.
write("hidden.cu", "namespace { __device__ int hidden = 3; }\ntemplate <class T> __global__ void k(T* x) { *x += hidden++; }\n")
for name in ("first", "second"):
    run("build", "hidden.cu", "-n", "k<int>", "--arch", "80,compute_90", "-o", f"{name}.kiln", KILN_CACHE_DIR=SCRATCH / f"cache-{name}")
    check(data("verify", f"{name}.kiln", "--deep", "hidden.cu", "-n", "k<int>")["bad"] == [], "compiled anew it is the same")
check(data("merge", "first.kiln", "second.kiln", "-o", "hidden.kiln")["artifacts"] == 2, "built apart, and each once")
run("build", "heat.cu", "--arch", "80,compute_90", "-o", "heat.kiln")
run("merge", "two.kiln", "-o", "same.kiln", "--title", "heat.kiln")
check((SCRATCH / "same.kiln").read_bytes() == (SCRATCH / "heat.kiln").read_bytes(), "the same artifacts make the same file")
served = data("compile", "heat.cu", "--arch", "80", KILN_BUNDLES=SCRATCH / "merged.kiln", KILN_CACHE_DIR=SCRATCH / "empty", KILN_JIT="forbid")
check(served[0]["from"] == "bundle", "it serves", served)

# Two versions of one unit: where its header is absent, nothing would tell which of them a program means.
for version in (1, 2):
    write("step.h", f"#define STEP {version}\n")
    write("step.cu", '#include "step.h"\nextern "C" __global__ void step(float* x) { *x += STEP; }\n')
    run("build", "step.cu", "--arch", "80,90", "-o", f"v{version}.kiln")
    run("build", "step.cu", "--arch", "100", "-o", f"v{version}-100.kiln")
for one, other in (("v1", "v2"), ("v2", "v1"), ("v1", "v2-100"), ("v1-100", "v2")):
    told = run("merge", f"{one}.kiln", f"{other}.kiln", "-o", "two.versions.kiln", status=1).stderr
    check(f"{one}.kiln" in told and f"{other}.kiln" in told and "step.h" in told and "'step'" in told, "both are named, and the header", told)
check(not (SCRATCH / "two.versions.kiln").exists(), "and nothing is written")
# Nor does one that is built at once, from one text in two folders with a header each.
for number in (1, 2):
    write(f"folder{number}/same.cu", '#include "own.h"\nextern "C" __global__ void same(int* x) { x[0] = OWN; }\n')
    write(f"folder{number}/own.h", f"#define OWN {number}\n")
told = run("build", "folder1/same.cu", "folder2/same.cu", "-a", "sm_80", "-o", "neither.kiln", status=1).stderr
check("folder1/same.cu" in told and "folder2/same.cu" in told and "own.h" in told and not (SCRATCH / "neither.kiln").exists(), "two versions are named", told)
run("build", "folder1/same.cu", "folder2/same.cu", "-a", "sm_80", "-o", "both-versions.kiln", "--embed", "versions.cpp", "--as", "one,two")
check(data("merge", "v1.kiln", "v1-100.kiln", "-o", "v1-all.kiln")["artifacts"] == 3, "one version is merged")


def step(*bundles, status=0):
    return run("compile", "gone/step.cu", "--arch", "90", "-o", "served", "--json", status=status, KILN_JIT="forbid", KILN_CACHE_DIR=SCRATCH / "empty",
               KILN_BUNDLES=":".join(str(SCRATCH / f"{b}.kiln") for b in bundles))


write("gone/step.cu", (SCRATCH / "step.cu").read_text())
step("v1-all")
unclear = step("v1-all", "v2", status=1)
check("step.h" in unclear.stdout + unclear.stderr and "ship one" in unclear.stdout + unclear.stderr, "two bundles beside each other: an error that says why", unclear.stdout, unclear.stderr)
for version in (1, 2):
    write("gone/step.h", f"#define STEP {version}\n")
    step("v1-all", "v2")
    image = (SCRATCH / "served/step.sm_90.cubin").read_bytes()
    step(f"v{version}")
    check((SCRATCH / "served/step.sm_90.cubin").read_bytes() == image, "with the header it is the right one")

bad = bytearray((SCRATCH / "two.kiln").read_bytes())
bad[200] ^= 1
(SCRATCH / "bad.kiln").write_bytes(bad)
run("merge", "one.kiln", "bad.kiln", "-o", "never.kiln", status=1)
check(not (SCRATCH / "never.kiln").exists(), "a damaged one ends it, and nothing is written")

# Packed: smaller, and the same.
write("big.cu", "#include <cuda/std/tuple>\n" + 'extern "C" __global__ void big(float* x) { *x += cuda::std::get<0>(cuda::std::tuple{1, 2}); }\n')
plain = run("build", "big.cu", "--arch", "80,90", "-o", "plain.kiln")
run("build", "big.cu", "--arch", "80,90", "-o", "packed.kiln", "--compress")
sizes = [(SCRATCH / f).stat().st_size for f in ("plain.kiln", "packed.kiln")]
check(sizes[1] * 2 < sizes[0], "less than half", sizes)
print("bytes of a bundle with CCCL headers for two architectures:", *sizes)
served = data("compile", "big.cu", "--arch", "90", KILN_BUNDLES=SCRATCH / "packed.kiln", KILN_CACHE_DIR=SCRATCH / "empty", KILN_JIT="forbid")
check(served[0]["from"] == "bundle", "it serves", served)

# Misuse is told before anything is done.
for arguments in (["heat.cu"], ["heat.cu", "--embed", "x.cpp", "--as", "a,b"], ["heat.cu", "-o", "x.kiln", "--images-only"],
                  ["--pack", "tropical", "--embed", "x.cpp"]):
    run("build", *arguments, "--arch", "80", status=2)
