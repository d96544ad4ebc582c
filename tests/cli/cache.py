# SPDX-License-Identifier: Apache-2.0
"""kiln cache and explain, asserting on the counters."""

import os
import shutil
import time

from _kiln import CACHE, KERNEL, SCRATCH, check, data, run, write

write("k.cu", KERNEL)
check(data("cache", "stats")["entries"] == 0, "an absent directory is empty")
check(not CACHE.exists(), "looking does not make it")
data("compile", "k.cu", "--arch", "sm_80,sm_90", "-DVALUE=1")
stats = data("cache", "stats")
check(stats["entries"] == 2 and stats["compiled"] == 2 and stats["requests"] == 2 and stats["bytes"] > 0, "two compiled", stats)
check(set(stats) >= {"requests", "hits", "compiled", "blocked", "blocked_ms", "rejected", "errors", "entries", "bytes", "max_bytes"}, "fields", stats)
check(stats["served_without_waiting"] == 0 and stats["blocked"] == 2, "who waited for a compile is not served without waiting", stats)
check(stats["hit_rate"] == 0 and stats["since"], "a rate and since when", stats)
check(set(stats["hits"]) == {"memory", "disk", "bundle", "fleet"}, "hits per tier", stats)
data("compile", "k.cu", "--arch", "sm_80,sm_90", "-DVALUE=1")
stats = data("cache", "stats")
check(stats["hits"]["disk"] == 2 and stats["compiled"] == 2, "then two hits on disk", stats)
check(stats["requests"] == stats["found"] + stats["compiled"] + stats["failed"] == 4 and stats["hit_rate"] == 0.5, "they add up", stats)
check(stats["served_without_waiting"] == 2, "and the hits made nobody wait", stats)
check(oct(CACHE.stat().st_mode & 0o777) == "0o700", "the directory is private")

# Corrupt one: rejected, compiled again, healed.
entry = sorted(CACHE.rglob("*.kiln"))[0]
raw = bytearray(entry.read_bytes())
raw[-10] ^= 1
entry.write_bytes(raw)
bad = run("cache", "verify", status=1)
check("bad" in bad.stdout, "verify finds it", bad.stdout)
data("compile", "k.cu", "--arch", "sm_80,sm_90", "-DVALUE=1")
stats = data("cache", "stats")
check(stats["compiled"] == 3 and sum(stats["rejected"].values()) == 1 and stats["entries"] == 2, "one rejected, one compiled, as many entries", stats)
run("cache", "verify")

# Read-only, disabled, recache.
data("compile", "k.cu", "--arch", "sm_100", "-DVALUE=1", KILN_READONLY=1)
check(data("cache", "stats")["entries"] == 2, "KILN_READONLY writes nothing")
again = data("compile", "k.cu", "--arch", "sm_90", "-DVALUE=1", KILN_DISABLE=1)
check(again[0]["from"] == "compiled", "KILN_DISABLE reads nothing", again)
again = data("compile", "k.cu", "--arch", "sm_90", "-DVALUE=1", KILN_RECACHE=1)
check(again[0]["from"] == "compiled", "KILN_RECACHE compiles again", again)
shared = data("compile", "k.cu", "--arch", "sm_90", "-DVALUE=1", KILN_CACHE_DIR=SCRATCH / "mine", KILN_CACHE_PATH_RO=CACHE)
check(shared[0]["from"] == "disk", "a read-only directory of others serves", shared)

# Explain.
told = data("explain", "k.cu", "--arch", "sm_90", "-DVALUE=1")[0]
check(told["verdict"] == "hit", "a hit is a hit", told)
told = data("explain", "k.cu", "--arch", "sm_90", "-DVALUE=2")[0]
check(told["verdict"] == "miss" and [d["field"] for d in told["nearest"]["differences"]] == ["options"], "another macro", told)
told = data("explain", "k.cu", "--arch", "sm_120", "-DVALUE=1")[0]
check([d["field"] for d in told["nearest"]["differences"]] == ["target"], "another architecture", told)
write("k.cu", KERNEL + "// edited\n")
told = data("explain", "k.cu", "--arch", "sm_90", "-DVALUE=1")[0]
check([d["field"] for d in told["nearest"]["differences"]] == ["source"], "another source", told)
write("k.cu", KERNEL)

# Prune and clear.
old = time.time() - 10 * 86400
for e in CACHE.rglob("*.kiln"):
    os.utime(e, (old, old))
data("compile", "k.cu", "--arch", "sm_75", "-DVALUE=1")
dry = data("cache", "prune", "--older-than", "5d", "--dry-run")
check(dry["removed"] == 2 and dry["dry_run"], "dry run counts", dry)
check(data("cache", "stats")["entries"] == 3, "and removes nothing")
check(data("cache", "prune", "--older-than", "5d")["removed"] == 2, "prune removes")
check(len(data("cache", "list")) == 1, "one is left")
check("30d" in run("cache", "prune", "--older-than", "soon", status=2).stderr, "a bad age names a good one")
check("30d" in run("cache", "prune", "--older-than", "5", status=2).stderr, "a number alone is no age")
for far in ("200000d", "200000000000000d"):
    check("36500d" in run("cache", "prune", "--older-than", far, "--dry-run", status=2).stderr, "an age that no clock holds is not a negative one")
check("500M" in run("cache", "prune", "--to-size", "abc", status=2).stderr, "nor a word a size")
for words in (["clear"], ["prune", "--to-size", "0"], ["stats", "--zero"], ["verify", "--repair"]):
    said = run("cache", *words, status=1, KILN_READONLY=1).stderr
    check("unset KILN_READONLY" in said and len(data("cache", "list")) == 1, "a cache that is only read stays as it is", words, said)
run("cache", "prune", "--to-size", "0", "--dry-run", KILN_READONLY=1)
check(data("cache", "clear")["removed"] == 1 and data("cache", "list") == [], "clear empties")
check(run("cache", "path").stdout.strip() == str(CACHE), "path")

# N8: nowhere to keep anything is no error.
nowhere = data("compile", "k.cu", "--arch", "sm_90", "-DVALUE=1", KILN_CACHE_DIR="", HOME="", XDG_CACHE_HOME="")
check(nowhere[0]["from"] == "compiled", "no home: memory only", nowhere)
write("file", "")
nowhere = data("compile", "k.cu", "--arch", "sm_90", "-DVALUE=1", KILN_CACHE_DIR=SCRATCH / "file")
check(nowhere[0]["from"] == "compiled", "a file where the directory should be: memory only", nowhere)
shutil.rmtree(CACHE, ignore_errors=True)
