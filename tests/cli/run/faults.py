# SPDX-License-Identifier: Apache-2.0
"""`kiln run`. Whatever happens to the cache, to its stand-ins or on the way: the program goes on, and somebody is told."""

import json
import os
import pathlib
import shutil
import subprocess
import time

from _run import (CACHE, CLI, KERNEL, LONG, NVRTC, PYTHON, SCRATCH, WHILE, bare, check, children_of, maps_of, mounted, mounts_are_possible, one, run,
                  run_tests, test, under, write)


@test
def stand_ins_that_were_damaged():
    """A stand-in is what it should be when it is used, whatever became of its file; 'cache verify' sees it before, 'cache clear' takes it along."""
    place = {"KILN_CACHE_DIR": SCRATCH / "torn"}
    words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 970, "-arch=sm_90"]
    want = json.loads(under(*words, **place).stdout)
    kept = sorted((SCRATCH / "torn/run/standins").iterdir())
    whole = {f: f.read_bytes() for f in kept}
    check(len(kept) == 2, "a stand-in and its bridge", *kept)
    check(run("cache", "verify", **place).returncode == 0, "as they should be")

    def zeroed(f):
        f.write_bytes(bytes(len(whole[f])))

    def one_bit(f):
        f.write_bytes(bytes(b ^ (at == len(whole[f]) // 2) for at, b in enumerate(whole[f])))

    def in_secret(f):
        about = f.stat()
        zeroed(f)
        os.utime(f, ns=(about.st_atime_ns, about.st_mtime_ns))

    for damage in (zeroed, one_bit, in_secret, lambda f: f.write_bytes(b""), lambda f: f.write_bytes(whole[f][:4096]), lambda f: (f.unlink(), f.mkdir())):
        for f in kept:
            damage(f)
        done = under(*words, status=None, **place)
        is_file = all(f.is_file() for f in kept)
        check(done.returncode == 0 and json.loads(done.stdout) == {**want, "loaded": not is_file}, "a damaged stand-in is not used", done)
        check(not is_file or all(f.read_bytes() == whole[f] for f in kept), "but made anew")
        for f in kept:
            if f.is_dir():
                f.rmdir()
    # What a process of the same number left behind: in a container they all have one.
    for f in kept:
        f.unlink(missing_ok=True)
    last = int(pathlib.Path("/proc/sys/kernel/ns_last_pid").read_text()) if os.path.exists("/proc/sys/kernel/ns_last_pid") else os.getpid()
    left = [f.with_name(f"{f.name}.{number:016x}.part") for f in kept for number in range(last, last + 200)]
    for f in left:
        f.touch()
    check(not json.loads(under(*words, **place).stdout)["loaded"] and all(f.exists() for f in kept), "what others left is in nobody's way")
    for f in left:
        f.unlink()
    for damage in (zeroed, one_bit):
        under(*words, **place)
        for f in kept:
            damage(f)
        said = run("cache", "verify", status=1, **place)
        check(all(str(f) in said.stderr for f in kept), "verify names them", said.stdout, said.stderr)
        check(len(json.loads(run("cache", "verify", "--json", status=1, **place).stdout)["bad"]) == 2, "in JSON, too")
        run("cache", "verify", "--repair", **place)
        check(not any(f.exists() for f in kept), "and can remove them")
        check(run("cache", "verify", **place).returncode == 0, "then all is well")
    under(*words, **place)
    run("cache", "clear", **place)
    check(not any(f.exists() for f in kept), "cache clear takes them along")


@test
def trouble_on_the_way():
    # Killed in the middle of a compile: nothing is left that harms the next.
    long_source = LONG % os.getpid()
    child = subprocess.Popen([CLI, "run", "--", PYTHON, SCRATCH / "one.py", NVRTC, long_source, "-arch=sm_90"], stdout=subprocess.DEVNULL,
                             env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
    while child.poll() is None and not any("libnvrtc-builtins" in maps_of(c) for c in children_of(child.pid)):
        continue
    child.kill()
    child.wait(30)
    done, _ = one(0, source=long_source)
    check(done["status"] == 0, "after a kill the next one compiles", done)
    # Few descriptors, and no file may grow: the program does what it did without us.
    for limit in ("ulimit -n 32", "ulimit -f 0"):
        words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 400, "-arch=sm_90"]
        done = under("sh", "-c", limit + '; exec "$0" "$@"', *words, KILN_CACHE_DIR=SCRATCH / ("limited" + limit[-2:].strip()))
        check(json.loads(done.stdout)["status"] == 0, limit, done.stderr)
    # So few for kiln run itself that nobody who asks for a worker can be let in: the program, which has enough, does not wait for one.
    for number in range(4, 12):
        words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % (20_000 + number), "-arch=sm_90"]
        started = time.time()
        done = run("-c", f'ulimit -S -n {number}; exec "$0" "$@"', CLI, "run", "--", "sh", "-c", 'ulimit -S -n 256; exec "$0" "$@"', *words, program="sh", status=None, KILN_CACHE_DIR=SCRATCH / "few")
        check(done.returncode == 0 and json.loads(done.stdout)["status"] == 0, f"{number} descriptors for kiln run", done)
        check(time.time() - started < 9, f"{number} descriptors: nobody waits", time.time() - started)
        check(" 1 made" in done.stderr or number == 4, f"{number} descriptors: what happened is told", done.stderr)
    check(not [f for f in (SCRATCH / "few/run").iterdir() if f.name.startswith(("door-", "log-"))], "nothing is left", *(SCRATCH / "few/run").iterdir())
    # Nothing open at all: what kiln run opens is not taken for standard error, and the program has nothing that it would not have.
    listing = 'import os, sys; open(sys.argv[1], "w").write(" ".join(f for f in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + f)))'
    run("-c", 'exec "$0" "$@" <&- >&- 2>&-', CLI, "run", "-v", "--", PYTHON, "-c", listing, SCRATCH / "with", program="sh", KILN_CACHE_DIR=SCRATCH / "closed")
    run("-c", 'exec "$0" "$@" <&- >&- 2>&-', PYTHON, "-c", listing, SCRATCH / "without", program="sh")
    check((SCRATCH / "with").read_text() == (SCRATCH / "without").read_text(), "the same descriptors", (SCRATCH / "with").read_text(), (SCRATCH / "without").read_text())
    check(not any(b"kiln: " in f.read_bytes() for f in (SCRATCH / "closed").rglob("*") if f.is_file() and "standins" not in f.parts), "nothing is told to a file", *(SCRATCH / "closed").rglob("*"))
    # No folder to run copies from.
    done = under(PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 401, "-arch=sm_90", KILN_RUN_COPIES="/proc/self", HOME="/nowhere")
    check(json.loads(done.stdout)["status"] == 0, "nowhere to put copies", done.stderr)


@test
def nobody_is_left_wondering():
    """What is made again each time, and what is not served, is said with its reason."""
    words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 480, "-arch=sm_90"]
    done = under(*words, KILN_CACHE_DIR="/proc/nowhere")
    check("1 made" in done.stderr and "1 could not be kept: see 'kiln doctor'" in done.stderr, "it was not kept", done.stderr)
    done = under(*words, options=("-v",), KILN_CACHE_DIR=SCRATCH / "tiny", KILN_MAX_SIZE=100)
    check("1 could not be kept: larger than KILN_MAX_SIZE\n" in done.stderr and "new; not kept: larger" in done.stderr, "a bound of one's own is no case for the doctor", done.stderr)
    done = under(*words, KILN_DISABLE=1)
    check("1 left to the library itself: no cache directory" in done.stderr, "why it was not served", done.stderr)
    done = under(*words, KILN_CACHE_DIR=SCRATCH / "wondering")
    check("kept" not in done.stderr and "left" not in done.stderr, "nothing to say", done.stderr)


@test
def the_cache_changes_under_a_program():
    write("while.py", WHILE)
    words = [PYTHON, SCRATCH / "while.py", NVRTC]
    want = bare(*words, "true").stdout
    place, other = SCRATCH / "changing", SCRATCH / "changing.other"
    rubbish = "find %s -name '*.kiln' -exec sh -c 'echo rubbish > \"$1\"' - {} \\;" % place
    for what, happens in (("vanishes", f"rm -rf {place}"), ("is replaced", f"mv {place} {other} && mkdir {place}"), ("is a file", f"rm -rf {place} && touch {place}"),
                          ("is damaged", rubbish), ("is emptied", f"find {place} -type f -delete")):
        for again in range(2):
            done = under(*words, happens, KILN_CACHE_DIR=place)
            check(done.stdout == want, f"the cache {what}: nothing else changes", done.stdout, want, done.stderr)
        for left in (place, other):
            shutil.rmtree(left, ignore_errors=True)
            left.unlink(missing_ok=True)


@test
def places_that_refuse():
    if not mounts_are_possible():
        return
    words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 450, "-arch=sm_90"]
    want = bare(*words).stdout
    place = SCRATCH / "small"
    place.mkdir()
    small = f"mount -t tmpfs -o size=64k,mode=700 none {place}"
    everywhere = " && ".join(f"mount -t tmpfs -o noexec none {p}" for p in ("/tmp", "/dev/shm"))
    environment = {"KILN_CACHE_DIR": place}
    refusing = {"a full disk": f"{small}; head -c 60000 /dev/zero > {place}/filler", "one full to the last byte": f"{small}; cat /dev/zero > {place}/filler",
                "a read-only disk": f"{small}; mount -o remount,ro {place}", "a disk where nothing may be executed": f"{small.replace('64k', '64m')},noexec"}
    for what, script in refusing.items():
        done = run(*mounted(script, CLI, "run", "--", *words)[1:], program="unshare", **environment)
        got = json.loads(done.stdout)
        check({**got, "loaded": 0} == {**json.loads(want), "loaded": 0}, f"{what}: the answer is the same", got, want, done.stderr)
        check("1 could not be kept" in done.stderr or "executed" in what, f"{what}: and somebody is told", done.stderr)
    if pathlib.Path("/tmp") in pathlib.Path(CLI).parents:
        print("kiln itself lies in /tmp: that nothing there may be executed is not tried")
        return
    # Nowhere at all: everything this program could write to forbids execution. Its own files are on /tmp and stay visible by another name.
    script = f"mount --bind {SCRATCH} /mnt && {everywhere}"
    words[1] = "/mnt/one.py"
    done = run(*mounted(script, CLI, "run", "-v", "--", *words)[1:], program="unshare", cwd="/", KILN_CACHE_DIR="/dev/shm/cache", HOME="/dev/shm")
    check(json.loads(done.stdout)["status"] == 0 and "nothing is answered" in done.stderr, "no place to run copies from", done.stdout, done.stderr)
    before = set(SCRATCH.iterdir())
    run(*mounted(f"cd /mnt; XDG_RUNTIME_DIR=; export XDG_RUNTIME_DIR; {script.replace('/mnt &&', '/mnt && cd /mnt &&')}", CLI, "run", "--", *words)[1:], program="unshare", cwd="/", KILN_CACHE_DIR="/dev/shm/cache", HOME="/dev/shm")
    check(set(SCRATCH.iterdir()) == before, "nor one that is made in the working directory", *set(SCRATCH.iterdir()) - before)


run_tests()
