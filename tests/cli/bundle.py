# SPDX-License-Identifier: Apache-2.0
"""kiln build, inspect, verify, key: a bundle built here serves where nothing can be compiled."""

import hashlib
import json
import os
import shutil

from _kiln import CACHE, KERNEL, SCRATCH, check, data, run, write

write("k.cu", '#include "value.h"\n' + KERNEL)
write("value.h", "#define VALUE 3\n")
write("j.cu", 'extern "C" __global__ void j(float* x) { *x = 1; }\n')
built = data("build", "k.cu", "j.cu", "--arch", "sm_80,sm_90,sm_100", "-o", "app.kiln")
check(built["artifacts"] == 6 and built["failed"] == 0, "six artifacts", built)
shown = data("inspect", "app.kiln")
check(len(shown["items"]) == 6 and {i["target"] for i in shown["items"]} == {"sm_80", "sm_90", "sm_100"}, "inspect shows them", shown)
check(data("verify", "app.kiln")["bad"] == [], "verify is content")
deep = data("verify", "app.kiln", "--deep", "k.cu", "j.cu")
check(deep["recompiled"] == 6 and deep["bad"] == [], "and so is a recompile", deep)

# What it was made of, for build systems: a header is as good a reason to build again as a source.
write("odd name/n.h", "#define N 1\n")
write("n.cu", '#include <n.h>\nextern "C" __global__ void n(int* x) { x[0] = N; }\n')
run("build", "n.cu", "-I", "odd name", "--arch", "sm_90", "-o", "n.kiln", "--depfile", "n.kiln.d")
rule = (SCRATCH / "n.kiln.d").read_text()
header = str(SCRATCH / "odd name/n.h").replace(" ", "\\ ")
write("apart/n.cu", (SCRATCH / "n.cu").read_text().replace("#include <n.h>", "#if __has_include(<late.h>)\n#endif\n#include <n.h>"))
os.symlink("odd name", SCRATCH / "linked")
run("build", "apart/n.cu", "-I", "linked", "-I", "not/there", "--arch", "sm_90", "-o", "apart.kiln", "--depfile", "apart.kiln.d")
folders = (SCRATCH / "apart.kiln.d").read_text().replace("\\\n", "").split()
check(str(SCRATCH / "apart") in folders and str(SCRATCH / "linked") in folders, "and the folders in which headers were looked for", folders)
check(str(SCRATCH) not in folders, "but not the one that the bundle is put into", folders)
(SCRATCH / "out").mkdir()
run("build", "apart/n.cu", "-I", "linked", "-I", "not/there", "--arch", "sm_90", "-o", "out/apart.kiln", "--depfile", "out/apart.kiln.d")
folders = (SCRATCH / "out/apart.kiln.d").read_text().replace("\\\n", "").split()
check(str(SCRATCH) in folders, "the folder of a link, and the first that is there above one that is not", folders)
check(rule.startswith("n.kiln:") and header in rule and str(SCRATCH / "n.cu") in rule, "the rule names header and source", rule)

# Alone on another machine: no cache, no headers, no compiler allowed.
os.remove(SCRATCH / "value.h")
forbidden = dict(KILN_CACHE_DIR=SCRATCH / "empty", KILN_JIT="forbid")
served = data("compile", "k.cu", "--arch", "sm_90", KILN_BUNDLES=SCRATCH / "app.kiln", **forbidden)
check(served[0]["from"] == "bundle", "served from the bundle", served)
(SCRATCH / "none").mkdir()
served = data("compile", "k.cu", "--arch", "sm_90", KILN_BUNDLES=SCRATCH / "app.kiln", KILN_CUDA_PATH=SCRATCH / "none", **forbidden)
check(served[0]["from"] == "bundle", "without any compiler, too", served)
served = data("compile", "k.cu", "--arch", "sm_90", KILN_BUNDLES=SCRATCH / "app.kiln", KILN_CUDA_PATH=SCRATCH / "removed", **forbidden)
check(served[0]["from"] == "bundle", "and where one is named that is not there", served)
denied = run("compile", "k.cu", "--arch", "sm_90", status=1, **forbidden).stderr
check("'k'" in denied and "sm_90" in denied and "KILN_JIT" in denied, "without it the error names what is missing", denied)
denied = run("compile", "k.cu", "--arch", "sm_120", status=1, KILN_BUNDLES=SCRATCH / "app.kiln", **forbidden).stderr
check("sm_120" in denied and "nearest found: sm_" in denied, "another architecture names the nearest", denied)
write("value.h", "#define VALUE 4\n")
denied = run("compile", "k.cu", "--arch", "sm_90", status=1, KILN_BUNDLES=SCRATCH / "app.kiln", **forbidden).stderr
check("forbid" in denied, "a header that is there and differs is never overruled by a bundle", denied)
write("value.h", "#define VALUE 3\n")

# Where the sources are, one that would be found instead counts.
for name in ("i1", "i2"):
    (SCRATCH / name).mkdir()
write("i1/moved.h", "#define VALUE 1\n")
write("m.cu", '#include "moved.h"\n' + KERNEL)
moved = ("m.cu", "--arch", "sm_90", "-I", "i1", "-I", "i2")
run("build", *moved, "-o", "moved.kiln")
os.remove(SCRATCH / "i1/moved.h")
alone = dict(KILN_CACHE_DIR=SCRATCH / "empty2", KILN_BUNDLES=SCRATCH / "moved.kiln")
check(data("compile", *moved, **alone)[0]["from"] == "bundle", "a header that is gone is sealed")
write("i2/moved.h", "#define VALUE 4\n")
check(data("compile", *moved, **alone)[0]["from"] == "compiled", "unless another is found in its place")
told = run("explain", *moved, status=None, KILN_CACHE_DIR=SCRATCH / "empty3", KILN_BUNDLES=SCRATCH / "moved.kiln").stdout
check("would be found in its place" in told, "and explain tells which", told)

# What nobody looks at is not passed over in silence.
said = run("verify", "app.kiln", "moved.kiln", "--deep", "k.cu", status=2).stderr
check("moved.kiln is a bundle" in said, "a bundle among the files to compile", said)
said = run("verify", "app.kiln", "--deep", "k.cu", "m.cu", "-I", "i1", "-I", "i2", status=1).stderr
check("nothing was compared with m.cu" in said, "a file that the bundle has nothing of, beside one that it has", said)
write("a/same.cu", 'extern "C" __global__ void one(int* x) { *x = 1; }\n')
write("b/same.cu", 'extern "C" __global__ void two(int* x) { *x = 2; }\n')
run("build", "a/same.cu", "b/same.cu", "--arch", "sm_90", "-o", "same.kiln")
for files in (["a/same.cu", "b/same.cu"], ["a/same.cu"], ["b/same.cu"]):
    for sample in (1, 8):
        deep = data("verify", "same.kiln", "--deep", *files, "--sample", sample)
        check(deep["bad"] == [] and deep["recompiled"] == min(sample, len(files)), "each is compared with what it made", files, deep)
write("b/same.cu", 'extern "C" __global__ void two(int* x) { *x = 3; }\n')
check(data("verify", "same.kiln", "--deep", "b/same.cu", status=1)["bad"], "and an edited one with nothing")

# A flipped byte in each tenth of the file: rejected with a reason, never wrong, and compiling still works.
good = (SCRATCH / "app.kiln").read_bytes()
for part in range(10):
    bad = bytearray(good)
    bad[len(bad) * part // 10 + 5] ^= 0x40
    (SCRATCH / "bad.kiln").write_bytes(bad)
    seen = run("verify", "bad.kiln", status=None)
    check(seen.returncode == 1, f"a flipped byte in part {part} is found", seen.stdout, seen.stderr)
    again = data("compile", "j.cu", "--arch", "sm_90", KILN_BUNDLES=SCRATCH / "bad.kiln", KILN_CACHE_DIR=SCRATCH / f"cache{part}")
    check(again[0]["from"] in ("compiled", "bundle"), "and the program still runs", again)

# A newer format, as a version to come would write it: told apart from damage, and compiling still works.
newer = bytearray(good)
newer[8:12] = (99).to_bytes(4, "little")
newer[16:48] = hashlib.sha256(newer[:16]).digest()
(SCRATCH / "newer.kiln").write_bytes(newer)
seen = run("verify", "newer.kiln", status=1)
check("format 99" in seen.stderr and "newer Kiln" in seen.stderr, "the reason is the format", seen.stderr)
again = data("compile", "j.cu", "--arch", "sm_90", KILN_BUNDLES=SCRATCH / "newer.kiln", KILN_CACHE_DIR=SCRATCH / "cachenewer")
check(again[0]["from"] == "compiled", "and the program still runs", again)

# Signatures.
run("key", "mine.pem")
run("key", "other.pem")
check(oct((SCRATCH / "mine.pem").stat().st_mode & 0o777) == "0o600", "a private key is private")
run("key", "mine.pem", status=1)
run("build", "j.cu", "--arch", "sm_90", "-o", "signed.kiln", "--sign", "mine.pem")
run("verify", "signed.kiln", "--key", "mine.pem.pub")
wrong = run("verify", "signed.kiln", "--key", "other.pem.pub", status=1).stderr
check("sign" in wrong, "another key is refused with a reason", wrong)
unsigned = run("verify", "app.kiln", "--key", "mine.pem.pub", status=1).stderr
check("sign" in unsigned, "an unsigned bundle, too", unsigned)
trusted = dict(KILN_BUNDLE_KEY=SCRATCH / "mine.pem.pub", **forbidden)
check(data("compile", "j.cu", "--arch", "sm_90", KILN_BUNDLES=SCRATCH / "signed.kiln", **trusted)[0]["from"] == "bundle", "trusted")
said = run("compile", "j.cu", "--arch", "sm_90", status=1, KILN_BUNDLES=SCRATCH / "app.kiln", **trusted).stderr
check(f"refused: {SCRATCH}/app.kiln: " in said and "sign" in said, "where compiling is forbidden the error says why a bundle is not used", said)
lost = {**trusted, "KILN_BUNDLE_KEY": SCRATCH / "lost.pem.pub"}
said = run("compile", "j.cu", "--arch", "sm_90", status=1, KILN_BUNDLES=SCRATCH / "signed.kiln", **lost).stderr
check("the key it must be signed by cannot be read" in said and "lost.pem.pub" in said, "also where it is the key that is missing", said)
said = run("doctor", status=1, KILN_BUNDLES=SCRATCH / "signed.kiln", KILN_BUNDLE_KEY=SCRATCH / "lost.pem.pub").stdout
check("lost.pem.pub" in said and "not signed" not in said and "unsigned" not in said, "doctor does not call it unsigned", said)

# What is merged of signed bundles is signed, or said not to be.
run("build", "j.cu", "--arch", "sm_80", "-o", "plain.kiln")
said = run("merge", "signed.kiln", "plain.kiln", "-o", "both.kiln", status=1).stderr
check("signed.kiln" in said and "--sign KEY" in said and not (SCRATCH / "both.kiln").exists(), "no signature is lost in silence", said)
run("merge", "signed.kiln", "plain.kiln", "-o", "both.kiln", "--unsigned")
run("merge", "signed.kiln", "plain.kiln", "-o", "both.kiln", "--sign", "mine.pem")
run("verify", "both.kiln", "--key", "mine.pem.pub")
said = run("merge", "signed.kiln", "plain.kiln", "-o", "never.kiln", "--sign", "mine.pem", status=1, KILN_BUNDLE_KEY=SCRATCH / "mine.pem.pub").stderr
check("plain.kiln" in said and not (SCRATCH / "never.kiln").exists(), "nobody signs what the key does not vouch for", said)
run("merge", "signed.kiln", "-o", "again.kiln", "--sign", "mine.pem", KILN_BUNDLE_KEY=SCRATCH / "mine.pem.pub")

# Partial failure: a bundle with the rest, and a status that says so.
write("broken.cu", "extern \"C\" __global__ void b( {}\n")
part = run("build", "j.cu", "broken.cu", "--arch", "sm_90", "-o", "part.kiln", "--json", status=1)
check('"failed": 1' in part.stdout and "broken.cu(" in part.stderr, "the failure is reported per unit", part.stdout, part.stderr)
check(data("inspect", "part.kiln")["artifacts"] == 1, "and the rest is there")

shutil.rmtree(CACHE)
run("verify", "nowhere.kiln", status=1)
nothing = json.loads(run("build", "broken.cu", "--arch", "sm_90", "-o", "none.kiln", "--json", status=1).stdout)
check(nothing["bundle"] is None and not (SCRATCH / "none.kiln").exists(), "no bundle is named where none was written", nothing)
here = run("build", "j.cu", "-o", "here.kiln", "--json")
check(("no GPU here" not in here.stderr) or ("for sm_90" in here.stderr and json.loads(here.stdout)["items"][0]["target"] == "sm_90"),
      "it is said for what, where nobody and nothing says it", here)

# A whole pack, named instead of files.
check("kiln list" in run("build", "--pack", "nowhere", "--arch", "sm_90", "-o", "p.kiln", status=2).stderr, "an unknown pack names the list")
run("build", "--arch", "sm_90", "-o", "p.kiln", status=2)

# Several at once: one bad bundle among good ones is found.
run("verify", "app.kiln", "app.kiln")
several = run("verify", "app.kiln", "bad.kiln", "--json", status=1)
check(len(json.loads(several.stdout)) == 2, "each has its place in the answer", several.stdout)
run("verify", "app.kiln", "--deep", "k.cu", "--sample", "0", status=2)
os.remove(SCRATCH / "mine.pem")
check("mine.pem.pub exists" in run("key", "mine.pem", status=1).stderr, "a public key is not overwritten either")
check("there is no directory nowhere" in run("build", "j.cu", "-o", "nowhere/x.kiln", status=1).stderr, "a missing folder is named")
