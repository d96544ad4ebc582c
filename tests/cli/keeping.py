# SPDX-License-Identifier: Apache-2.0
"""Where nothing is kept somebody is told: warm fails, compile and build say it, doctor knows why. verify --deep compiles."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from _kiln import CACHE, CLI, KERNEL, SCRATCH, check, data, run, write

write("k.cu", KERNEL.replace("VALUE", "1"))
warm = ("warm", "k.cu", "-a", "sm_90")
open_to_all = SCRATCH / "open"
open_to_all.mkdir()
open_to_all.chmod(0o775)
cannot_be = "/proc/kiln"
for where, why in ((open_to_all, "chmod go-w"), (cannot_be, "/proc/kiln")):
    said = run(*warm, status=1, KILN_CACHE_DIR=where)
    check("1 of 1 compiled is not kept" in said.stderr and why in said.stderr and "1 not kept" in said.stdout, "warm fails", said)
    for command in (["compile", "k.cu", "-a", "sm_90"], ["build", "k.cu", "-a", "sm_90", "-o", "x.kiln"]):
        said = run(*command, KILN_CACHE_DIR=where).stderr
        check(said.count("not kept") == 1 and why in said, "others say it once", command, said)
# A place that everybody may write to, as /tmp and a fresh volume of a container are: a folder of one's own in it.
for mode in (0o777, 0o1777):
    everybodys = SCRATCH / f"everybodys{mode:o}"
    everybodys.mkdir()
    everybodys.chmod(mode)
    own = everybodys / f"kiln-{os.geteuid()}"
    run(*warm, KILN_CACHE_DIR=everybodys)
    check([p.name for p in everybodys.iterdir()] == [own.name] and own.stat().st_mode & 0o777 == 0o700, "a folder of one's own", *everybodys.iterdir())
    check(run("cache", "path", KILN_CACHE_DIR=everybodys).stdout.strip() == str(own), "which is the cache")
    check("not kept" not in run(*warm, KILN_CACHE_DIR=everybodys).stderr, "and keeps")
    check(run("doctor", status=None, KILN_CACHE_DIR=everybodys).stdout.count(f"{own} (writable") == 1, "doctor knows it")
    if os.geteuid() == 0:
        shutil.rmtree(own)
        own.mkdir(0o700)
        os.chown(own, 65534, 65534)
        said = run(*warm, status=1, KILN_CACHE_DIR=everybodys).stderr
        check("belongs to user 65534" in said and "chmod" not in said, "another's is not used", said)
        # Nobody chose to share it: it is not read, either, and nothing that is executed is put there.
        seen = json.loads(run("compile", "k.cu", "-a", "sm_90", "--json", KILN_CACHE_DIR=everybodys, KILN_READONLY=1).stdout)
        check(seen[0]["from"] == "compiled", "and not read", seen)
        run("run", "--", "true", KILN_CACHE_DIR=everybodys)
        check(not (own / "run").exists(), "nor are stand-ins put there", *own.iterdir())
    seen = run("doctor", status=None, KILN_CACHE_PATH_RO=everybodys).stdout
    check("others may write there" in seen and (mode == 0o777 or "chmod" not in seen), "nobody is told to close what is others', too", seen)
for setting in ("KILN_READONLY", "KILN_DISABLE"):
    check(setting in run(*warm, status=1, **{setting: 1}).stderr, "warm cannot warm what is off", setting)
    check("not kept" not in run("compile", "k.cu", "-a", "sm_90", **{setting: 1}).stderr, "compile may", setting)
# What ships was compiled elsewhere: nothing is lost where it is not kept here.
shipped = run("build", "--pack", "tropical", "--arch", "sm_90", "-o", "shipped.kiln", KILN_JIT="forbid", KILN_CACHE_DIR=cannot_be, status=None)
check(shipped.returncode == 1 or "not kept" not in shipped.stderr, "a shipped pack is built in silence", shipped)
run(*warm)
check("not kept" not in run(*warm).stderr, "what is there is there")
run(*warm, KILN_READONLY=1)

# doctor tries what it calls good.
for where, why in ((cannot_be, "cannot be made"), (open_to_all, "chmod go-w")):
    seen = run("doctor", status=1, KILN_CACHE_DIR=where).stdout
    line = next(l for l in seen.splitlines() if " cache " in l)
    check(line.startswith("problem") and why in line, "a cache that cannot be", line)
before = sorted(SCRATCH.iterdir())
check("will be made" in run("doctor", KILN_CACHE_DIR=SCRATCH / "fresh/deep").stdout, "one that can")
check(sorted(SCRATCH.iterdir()) == before, "and doctor leaves nothing behind")
seen = run("doctor", status=1, KILN_CACHE_PATH_RO=f"{SCRATCH}/absent:{CACHE}").stdout
if os.geteuid() == 0:
    # Locks and what is on its way stay closed in a cache for all: no reason to call it one that cannot be read.
    with tempfile.TemporaryDirectory(prefix="kiln-shared-") as place:
        os.chmod(place, 0o755)
        root = Path(place) / "cache"

        def as_another():
            env = {"KILN_CACHE_DIR": "/proc/kiln", "KILN_CACHE_PATH_RO": str(root), "PATH": os.environ["PATH"]}
            return subprocess.run([CLI, "doctor"], capture_output=True, text=True, cwd="/", env=env, user=65534, group=65534, extra_groups=[]).stdout

        run(*warm, KILN_CACHE_DIR=root, KILN_CACHE_MODE="shared")
        (shard,) = root.glob("v1/[0-9a-f][0-9a-f]")
        check((root / "v1/tmp").stat().st_mode & 0o777 == 0o700, "as a shared cache is made")
        good = f"ok       cache, read    {root} (read-only"
        if "setting" in (said := as_another()):  # another user can run it here
            check(good in said, "a cache that others may read", said)
            os.chmod(shard, 0o700)
            check("cannot be read" in (said := as_another()), "one that they may not", said)
            shutil.rmtree(shard)
            check(good in (said := as_another()), "one with nothing in it", said)
check("absent: there is no such directory" in seen and f"{CACHE} (read-only" in seen, "read-only caches", seen)
run("build", "k.cu", "-a", "sm_90", "-o", "app.kiln")
seen = run("doctor", KILN_BUNDLES=SCRATCH / "app.kiln").stdout
check("all read and whole, unsigned" in seen, "a bundle that was read", seen)
damaged = bytearray((SCRATCH / "app.kiln").read_bytes())
damaged[len(damaged) // 3] ^= 1
(SCRATCH / "damaged.kiln").write_bytes(damaged)
seen = run("doctor", status=1, KILN_BUNDLES=SCRATCH / "damaged.kiln").stdout
check(any(l.startswith("problem") and "damaged.kiln" in l for l in seen.splitlines()), "one with a flipped byte is no good one", seen)
deep = SCRATCH / ("deep" * 40) / ("down" * 40)
deep.mkdir(parents=True)
(deep / "b.kiln").write_text("no bundle")
seen = run("doctor", status=1, KILN_BUNDLES=deep / "b.kiln").stdout
line = next(l for l in seen.splitlines() if "b.kiln" in l and l.startswith("problem"))
check(len(line.split("b.kiln", 1)[1]) > 5, "the reason of a refusal, however long the path", line)
os.mkfifo(SCRATCH / "fifo")
check("nobody reads this pipe" in run("doctor", status=1, KILN_EVENTS=SCRATCH / "fifo").stdout, "and does not hang")

# A full disk, where we may make one.
if os.getuid() == 0:
    script = f"""mount --make-rprivate / && mount -t tmpfs -o size=256k,mode=0700 t /mnt && cd {SCRATCH}
dd if=/dev/zero of=/mnt/rest bs=1k 2>/dev/null
{CLI} doctor; {CLI} warm k.cu -a sm_90; echo "status $?" """
    env = dict(os.environ, KILN_CACHE_DIR="/mnt")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, env=env)
    if "unshare" not in done.stderr and "mount:" not in done.stderr:
        check("it is full" in done.stdout, "doctor: full", done.stdout, done.stderr)
        check("status 1" in done.stdout and "not kept" in done.stderr, "warm: full", done.stdout, done.stderr)

# Files of a certain size only, as batch systems and daemons have it: what is kept is served, what cannot be kept is compiled.
write("limit.cu", '#include <cuda/std/tuple>\nextern "C" __global__ void k(int* x) { *x = cuda::std::get<0>(cuda::std::tuple<int>{1}); }\n')


def limited(blocks, *words, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    env.update(KILN_CACHE_DIR=str(CACHE), KILN_CUDA_PATH=os.environ.get("KILN_TEST_CUDA_PATH", ""), **environment)
    env = {k: v for k, v in env.items() if v != ""}
    done = subprocess.run(["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "-", CLI, *words], capture_output=True, text=True, env=env, cwd=SCRATCH)
    check(done.returncode == 0, "ended by a limit on files", blocks, words, done)
    return done.stdout


run("compile", "k.cu", "-a", "sm_90")
check("disk" in limited(0, "compile", "k.cu", "-a", "sm_90"), "found, with nothing to be written")
limited(0, "compile", "k.cu", "-a", "sm_86")
limited(0, "compile", "k.cu", "-a", "sm_86", KILN_EVENTS=str(SCRATCH / "limited.jsonl"))
limited(0, "compile", "k.cu", "-a", "sm_86", KILN_WORKERS="0")
if data("doctor", status=None)["toolchain"] and next(f for f in data("doctor", status=None)["findings"] if f["what"] == "CUDA headers")["state"] == "ok":
    for workers in ("1", "0"):
        limited(1000, "compile", "limit.cu", "-a", "sm_90", KILN_WORKERS=workers, KILN_RECACHE="1")

# Compiled anew means compiled.
write("inc/q.h", "#define VALUE 4\n")
write("c.cu", '#include <q.h>\nextern "C" __global__ void k(int* x) { int unused; x[0] = VALUE; }\n')
include = ("-I", "inc")
run("build", "c.cu", "-a", "sm_90", *include, "-o", "w.kiln")
good = data("verify", "w.kiln", "--deep", "c.cu", *include)
check(good["recompiled"] == 1 and good["bad"] == [], "the same again", good)
events = SCRATCH / "deep.jsonl"
run("verify", "w.kiln", "--deep", "c.cu", *include, KILN_CACHE_PATH_RO=CACHE, KILN_EVENTS=events)
kinds = data("events", events, "--summary")["kinds"]
check(kinds.get("compiled") == 1 and "found" not in kinds, "around a read-only cache", kinds)
nothing = run("verify", "w.kiln", "--deep", "k.cu", status=1)
check("nothing was compared" in nothing.stderr, "comparing nothing is a failure", nothing)
