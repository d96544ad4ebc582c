# SPDX-License-Identifier: Apache-2.0
"""kiln doctor, demo and the examples."""

import os
import pathlib

from _kiln import BIN, CACHE, SCRATCH, check, data, run, write

report = data("doctor")
names = {f["what"] for f in report["findings"]}
check({"kiln", "NVRTC", "nvJitLink", "CUDA headers", "workers", "cache"} <= names, "everything is looked at", names)
check(all(f["remedy"] for f in report["findings"] if f["state"] != "ok"), "everything missing has a remedy", report)
check(report["toolchain"].startswith("nvrtc ") and report["toolchain"] in next(f["value"] for f in report["findings"] if f["what"] == "NVRTC"),
      "the compiler's identity, for cache keys", report["toolchain"])
check(data("doctor", status=1, KILN_CUDA_PATH=SCRATCH / "none")["toolchain"] == "", "and that there is none")
settings = {s["name"]: s for s in report["settings"]}
check(settings["KILN_CACHE_DIR"]["from"] == "environment" and settings["KILN_MAX_SIZE"]["from"] == "default", "where values come from", settings)
broken = run("doctor", "--json", status=1, KILN_WORKER="/nowhere/kiln-worker").stdout
check("KILN_WORKER" in broken, "a wrong worker is a problem", broken)
for program in ("/bin/true", write("talks.sh", "#!/bin/sh\necho this is no protocol >&3\n")):
    program = pathlib.Path(program)
    program.chmod(0o755) if program.name == "talks.sh" else None
    told = run("doctor", "--json", status=1, KILN_WORKER=program).stdout
    check(program.name in told or "frame" in told, "what is called ok was tried", told)
missing = run("doctor", status=1, KILN_CUDA_PATH=SCRATCH / "none").stdout
check("pip install" in missing and "KILN_CUDA_PATH" in missing and "none: no such directory" in missing, "a missing compiler names the remedy", missing)

missing = data("doctor", status=1, KILN_NVRTC="/nope")
(seen,) = [f for f in missing["findings"] if f["what"] == "NVRTC"]
check(not missing["healthy"] and seen["state"] == "problem" and "KILN_NVRTC=/nope" in seen["remedy"], "one that was named and is not there is a problem", seen)

# As others are given it to read: what the store would not use is not called ok.
write("k.cu", 'extern "C" __global__ void k(int* x) { *x = 1; }\n')
run("warm", "k.cu", "--arch", "sm_90", KILN_CACHE_DIR=SCRATCH / "ro", KILN_CACHE_MODE="shared")
(entry,) = (SCRATCH / "ro/v1").glob("??/*.kiln")
for opened in (entry, entry.parent):
    mode = opened.stat().st_mode
    opened.chmod(mode | 0o002)
    seen = [f for f in data("doctor", status=1, KILN_CACHE_PATH_RO=SCRATCH / "ro")["findings"] if f["what"] == "cache, read"]
    check([f["state"] for f in seen] == ["problem"], "open to others", opened, seen)
    opened.chmod(mode)
seen = [f for f in data("doctor", KILN_CACHE_PATH_RO=SCRATCH / "ro")["findings"] if f["what"] == "cache, read"]
check([f["state"] for f in seen] == ["ok"], "closed to others", seen)

refused = run("doctor", status=1, KILN_BUNDLES=SCRATCH / "none.kiln", KILN_BUNDLE_KEY=SCRATCH / "none.pem").stdout
check("none.kiln: no such bundle" in refused and "none.pem" in refused, "bundles that are not used are told, with the reason", refused)
wrong = run("doctor", status=1, KILN_WORKERS="many", KILN_COMPILE_TIMEOUT="soon", KILN_READONLY="maybe", KILN_CONFIG=SCRATCH / "none.conf").stdout
check(all(w in wrong for w in ("'many'", "'soon'", "'maybe'", "none.conf")), "values that mean nothing are told", wrong)
(SCRATCH / "file").write_text("")
barred = run("doctor", status=1, KILN_CACHE_DIR=SCRATCH / "file").stdout
check("Not a directory" in barred and "set KILN_CACHE_DIR" in barred, "a cache that cannot be has a remedy", barred)
if os.getuid() != 0:
    (SCRATCH / "barred").mkdir(mode=0o555)
    barred = run("doctor", status=1, KILN_CACHE_DIR=SCRATCH / "barred").stdout
    check("read-only" in barred and "Permission denied" in barred, "so has one that may not be written to", barred)
CACHE.mkdir(mode=0o700, exist_ok=True)
tried = run("doctor").stdout
check("(writable" in tried and "locks: excludes" in tried, "a cache that is there is tried out", tried)

demo = data("demo", "--quick")
check(len(demo["cold"]["things"]) >= 5 and all(t["from"] == "compiled" for t in demo["cold"]["things"]), "cold", demo)
check(all(t["from"] == "disk" for t in demo["warm"]["things"]), "then warm", demo)
check(demo["warm"]["wall_ms"] < demo["cold"]["wall_ms"], "and faster", demo)

# The front door: what ships is not compiled, the rest once, and the second time nothing.
if (pathlib.Path(os.environ["KILN_TEST_BUILD_DIR"]) / "lib/kiln/prims-sm_90.kiln").exists():
    demo = data("demo")
    cold = {t["name"]: t["from"] for t in demo["cold"]["things"]}
    check({t["kind"] for t in demo["cold"]["things"]} == {"unit", "prims", "spatial", "tropical"}, "something of everything", cold)
    if demo["target"] == "sm_90":
        check(cold["exclusive_scan_i32"] == cold["merge_sort_u64_i32"] == "bundle", "what ships is found", cold)
    check(demo["cold"]["from"]["compiled"] >= 9 and demo["cold"]["failed"] == 0, "the rest is compiled", cold)
    check(demo["warm"]["compiled"] == 0 and demo["warm"]["from"]["compiled"] == 0, "and then nothing", demo["warm"])
run("demo", "--quick", "--all", status=2)

run(program=BIN / "example_saxpy")
# Must start and work with no cache directory and no compiling.
done = run(program=BIN / "example_embedded", KILN_JIT="forbid", KILN_CACHE_DIR=SCRATCH / "absent")
check("bundle" in done.stdout, "served from itself", done.stdout)
check(not (SCRATCH / "absent").exists(), "and made no directory")
