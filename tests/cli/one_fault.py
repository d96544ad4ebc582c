# SPDX-License-Identifier: Apache-2.0
"""One system call of a compile fails, once, in every way it can: the right artifact or an error, and nothing wrong kept.

Run by the tests on a sample drawn with a fixed seed. By hand, on all there is or on another sample, and on any build:

    one_fault.py [--all] [--seed N] [--count N] [--skip N] [--only SCENARIO] [--bin DIR] [--library FILE] [--findings FILE]

A preloaded library (tests/support/preload/fail_one_call.cpp) counts the calls of the C library's wrappers that a command
makes, in the command or in its worker, and fails the N-th of one kind. Every such run must end in time and by no signal, with
the right image or with an error; then the same command without the fault must give the right image, and `kiln cache verify`
must have nothing to say. Prints what was done, by scenario, and every finding; exit status 1 if there is one.
"""

import argparse
import concurrent.futures
import dataclasses
import errno
import itertools
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

arguments = argparse.ArgumentParser()
arguments.add_argument("--all", action="store_true")
arguments.add_argument("--seed", type=int, default=17)
arguments.add_argument("--count", type=int, default=150)
arguments.add_argument("--skip", type=int, default=0, help="leave out the first, which another run had")
arguments.add_argument("--seconds", type=float, default=45, help="begin nothing after this; not with --all")
arguments.add_argument("--only", help="this scenario")
arguments.add_argument("--calls", help="only these calls, separated by commas")
arguments.add_argument("--jobs", type=int, default=2)
arguments.add_argument("--limit", type=float, default=60, help="seconds after which a command hangs")
arguments.add_argument("--bin", type=pathlib.Path, help="directory of kiln and kiln-worker")
arguments.add_argument("--library", type=pathlib.Path, help="the library to preload")
arguments.add_argument("--findings", type=pathlib.Path, help="also written here")
ask = arguments.parse_args()
if ask.bin:
    ask.bin = ask.bin.resolve()
    os.environ.update(KILN_TEST_CLI=str(ask.bin / "kiln"), KILN_TEST_BIN_DIR=str(ask.bin), KILN_TEST_SOURCE_DIR=".")

from _kiln import BIN, FULL, SCRATCH, check, run, write  # noqa: E402

LIBRARY = ask.library or BIN / "kiln-test-fail_one_call.so"
WORKER = BIN / "kiln-worker"
SHORT = -1

# What each call can give, by its manual page; where a page lists what only a bug of the caller's brings (EBADF, EFAULT) it is
# left out. -1: half of what was asked for.
FILE = "EACCES EINTR EIO ELOOP EMFILE ENFILE ENOENT ENOMEM ENOSPC ENOTDIR EDQUOT EROFS ESTALE ENXIO ETIMEDOUT EPERM EOVERFLOW"
NAME = "EACCES EIO ELOOP ENOENT ENOMEM ENOTDIR ENAMETOOLONG ESTALE"
CHANGE = NAME + " EBUSY EDQUOT EEXIST ENOSPC EPERM EROFS EMLINK EXDEV"
WAYS = {
    "open": FILE, "openat": FILE, "fopen": FILE, "opendir": FILE, "close": "EIO EINTR ENOSPC EDQUOT",
    "read": "EIO EINTR ENOMEM ESTALE EAGAIN SHORT", "pread": "EIO EINTR ENOMEM ESTALE SHORT",
    "write": "EIO EINTR ENOSPC EDQUOT EFBIG EPIPE EAGAIN SHORT", "pwrite": "EIO EINTR ENOSPC EDQUOT EFBIG SHORT",
    "send": "EINTR EPIPE ECONNRESET ENOBUFS ENOMEM EAGAIN SHORT", "recv": "EINTR ECONNRESET ENOMEM EAGAIN SHORT",
    "read8": "EINTR EAGAIN", "write8": "EINTR",
    "lseek": "ESPIPE EOVERFLOW", "ftruncate": "EIO EINTR EROFS EPERM ENOSPC", "fsync": "EIO ENOSPC EDQUOT EROFS EINTR",
    "stat": NAME, "lstat": NAME, "statx": NAME + " ENOSYS", "fstat": "EIO ENOMEM EOVERFLOW ESTALE", "fstatat": NAME, "statfs": NAME + " ENOSYS",
    "fstatfs": "EIO EINTR ENOMEM ENOSYS", "access": NAME + " EROFS", "readlink": NAME, "realpath": NAME,
    "getcwd": "ENOENT EACCES ENOMEM", "chdir": NAME, "mkdir": CHANGE, "mkdtemp": CHANGE, "rmdir": CHANGE + " ENOTEMPTY",
    "rename": CHANGE, "renameat2": CHANGE + " EINVAL ENOSYS", "link": CHANGE, "linkat": CHANGE + " EOPNOTSUPP",
    "unlink": CHANGE, "unlinkat": CHANGE, "utimensat": "EACCES EPERM EROFS ENOENT ESTALE",
    "flock": "EINTR EWOULDBLOCK ENOLCK EIO EOPNOTSUPP", "fcntl": "EINTR EMFILE ENOLCK EINVAL", "fdopendir": "ENOMEM EMFILE",
    "readdir": "EIO ENOENT ESTALE", "getdents64": "EIO ENOENT ESTALE EINTR", "fdopen": "ENOMEM EMFILE",
    "mmap": "ENOMEM EACCES EAGAIN ENFILE EPERM", "mprotect": "EACCES ENOMEM", "memfd_create": "EMFILE ENFILE ENOMEM ENOSYS",
    "eventfd": "EMFILE ENFILE ENOMEM", "socketpair": "EMFILE ENFILE ENOMEM EACCES", "getsockopt": "ENOBUFS EACCES",
    "poll": "EINTR ENOMEM EAGAIN", "ppoll": "EINTR ENOMEM EAGAIN", "posix_spawn": "EAGAIN ENOMEM EACCES ENOENT EMFILE E2BIG ETXTBSY",
    "posix_spawnp": "EAGAIN ENOMEM", "pthread_create": "EAGAIN EPERM", "waitpid": "EINTR ECHILD", "kill": "EPERM ESRCH",
    "prctl": "EINVAL EPERM", "setrlimit": "EPERM EINVAL", "getrandom": "EINTR EAGAIN ENOSYS",
}
# What was found once is tried every time: each of these calls, in this way.
REMEMBERED = {("warm", "pthread_create", errno.EAGAIN), ("cold, in the worker", "stat", errno.ENOENT),
              ("cold, without workers", "write8", errno.EINTR), ("a bundle of other headers", "read", errno.ENOMEM),
              ("other headers' entries, in the command", "open", errno.EMFILE)}
# What truthfully says "there is no such file": whoever is told it of a header may go on without that header, for this once.
ABSENT = {errno.ENOENT, errno.ENOTDIR}


def ways_of(call):
    return [SHORT if name == "SHORT" else getattr(errno, name) for name in WAYS[call].split()]


def way_name(way):
    return "short" if way == SHORT else errno.errorcode[way]


# --- the world: a unit that tells by its bytes which headers it was made of ---------------------------------------------------

write("src/k.cu", """\
#include <q.h>
#if __has_include("beside.h")
#include "beside.h"
#else
#define W 1
#endif
#include <q.h>
extern "C" __global__ void k(int* x) {
    __shared__ int s[V * W * 64];
    s[threadIdx.x] = x[0];
    __syncthreads();
    x[threadIdx.x] = s[63 - threadIdx.x];
}
""")
write("other/other.cu", 'extern "C" __global__ void other(int* x) { x[0] = 1; }\n')
HEADERS = {"first/q.h": "#define V 4\n", "second/q.h": "#define V 1\n", "src/beside.h": "#define W 3\n"}
UNIT = [SCRATCH / "src/k.cu", "-I", SCRATCH / "first", "-I", SCRATCH / "second", "--arch", "sm_90"]
IMAGE = "k.sm_90.cubin"


def set_world(**changes):
    """The headers as they are to be, but for `changes`: texts by name, None for a file that is not there."""
    for name, text in {**HEADERS, **{k.replace("__", "/").replace("_h", ".h"): v for k, v in changes.items()}}.items():
        if text is None:
            (SCRATCH / name).unlink(missing_ok=True)
        else:
            write(name, text)


def image_now():
    out = SCRATCH / "reference"
    run("compile", *UNIT, "-o", out, KILN_DISABLE="1")
    return (out / IMAGE).read_bytes()


# Images by the headers that were there. The right one first; the others are what a file that is said to be absent may lead to.
worlds = [{}, {"src__beside_h": None}, {"first__q_h": None}, {"first__q_h": None, "src__beside_h": None}]
images = []
for world in worlds:
    set_world(**world)
    images.append(image_now())
check(len(set(images)) == len(images), "each world has an image of its own")
RIGHT = images[0]

templates = SCRATCH / "templates"


def make_template(name, *states):
    """A cache in which the unit was compiled in these states of the world."""
    at = templates / name
    run("compile", SCRATCH / "other/other.cu", "--arch", "sm_90", KILN_CACHE_DIR=at)
    for state in states:
        set_world(**state)
        run("compile", *UNIT, KILN_CACHE_DIR=at)
    set_world()
    return at


OLD = [{"first__q_h": None}, {"first__q_h": "#define V 2\n"}, {"src__beside_h": None}]
make_template("used")
make_template("stale", *OLD)
make_template("full", *OLD, {})
set_world()
run("build", *UNIT, "-o", SCRATCH / "right.kiln", KILN_DISABLE="1")
set_world(first__q_h="#define V 2\n")
run("build", *UNIT, "-o", SCRATCH / "old.kiln", KILN_DISABLE="1")
SEALED = image_now()
set_world()


@dataclasses.dataclass
class scenario:
    name: str
    program: str  # whose calls fail
    command: list
    cache: str = "used"
    environment: dict = dataclasses.field(default_factory=dict)
    finds: bool = True  # without a fault it gives the image
    output: str = "image"  # what -o names: images, a bundle or nothing
    sealed: list = dataclasses.field(default_factory=list)  # images a bundle may serve where the headers are not there


FORBID = {"KILN_JIT": "forbid"}
scenarios = [
    scenario("cold, in the command", "kiln", ["compile", *UNIT]),
    scenario("cold, in the worker", "kiln-worker", ["compile", *UNIT]),
    scenario("cold, without workers", "kiln", ["compile", *UNIT], environment={"KILN_WORKERS": "0"}),
    scenario("a cache that is not there", "kiln", ["compile", *UNIT], cache=""),
    scenario("other headers' entries, in the command", "kiln", ["compile", *UNIT], cache="stale"),
    scenario("found on disk", "kiln", ["compile", *UNIT], cache="full"),
    scenario("found in a bundle", "kiln", ["compile", *UNIT],
             environment={**FORBID, "KILN_BUNDLES": str(SCRATCH / "right.kiln")}),
    scenario("a bundle of other headers", "kiln", ["compile", *UNIT], sealed=[SEALED],
             environment={"KILN_BUNDLES": str(SCRATCH / "old.kiln")}),
    scenario("a bundle of other headers, no compiling", "kiln", ["compile", *UNIT], finds=False, sealed=[SEALED],
             environment={**FORBID, "KILN_BUNDLES": str(SCRATCH / "old.kiln")}),
    scenario("warm", "kiln", ["warm", *UNIT], output=""),
    scenario("build", "kiln", ["build", *UNIT], output="bundle"),
    scenario("build, in the worker", "kiln-worker", ["build", *UNIT], output="bundle"),
]

# --- one run -----------------------------------------------------------------------------------------------------------------

PLACES, BOARD_BYTES = 96, 4096
workers_guard = threading.Lock()


def environment(cache, more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    env.update(KILN_CACHE_DIR=str(cache), KILN_CUDA_PATH=os.environ.get("KILN_TEST_CUDA_PATH", ""), KILN_WORKERS="1")
    env.update(more)
    return {k: v for k, v in env.items() if v != ""}


def execute(command, env):
    """Exit status and what was said; None where it had to be killed."""
    process = subprocess.Popen([FULL, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, cwd=SCRATCH,
                               start_new_session=True, text=True, errors="replace")
    try:
        said, _ = process.communicate(timeout=ask.limit)
        return process.returncode, said
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""


class place_of_work:
    """A directory with a cache, outputs and a board, for one run after the other."""

    def __init__(self, number):
        self.root = SCRATCH / f"at{number}"
        self.root.mkdir()
        self.board = self.root / "board"
        self.worker = self.root / "worker.sh"

    def prepare(self, s):
        for name in ("cache", "out", "clean"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        if s.cache:
            shutil.copytree(templates / s.cache, self.root / "cache")
        (self.root / "out").mkdir()
        (self.root / "clean").mkdir()
        self.board.write_bytes(bytes(BOARD_BYTES))
        if s.output == "bundle":
            shutil.copy(SCRATCH / "old.kiln", self.root / "out/k.kiln")

    def command(self, s, folder):
        if not s.output:
            return s.command
        return [*s.command, "-o", self.root / folder / ("k.kiln" if s.output == "bundle" else "")]

    def run_with(self, s, fault):
        faulty = dict(LD_PRELOAD=str(LIBRARY), FAULT_PROGRAM=pathlib.Path(FULL).name if s.program == "kiln" else s.program, FAULT_BOARD=str(self.board))
        if fault:
            faulty["FAULT"] = fault
        env = environment(self.root / "cache", s.environment)
        if s.program == "kiln":
            return execute(self.command(s, "out"), {**env, **faulty})
        settings = " ".join(f"{k}='{v}'" for k, v in faulty.items())
        self.worker.write_text(f'#!/bin/sh\n{settings} exec {WORKER} "$@"\n')
        self.worker.chmod(0o755)
        return execute(self.command(s, "out"), {**env, "KILN_WORKER": str(self.worker)})

    def read_board(self):
        data = self.board.read_bytes()
        failed = struct.unpack_from("<Q", data)[0]
        calls = {}
        for i in range(PLACES):
            name = data[8 + 32 * i:32 + 32 * i].rstrip(b"\0").decode()
            if name:
                calls[name] = struct.unpack_from("<Q", data, 32 + 32 * i)[0]
        return failed, calls

    def image(self, s, folder):
        """What came out: an image's bytes, or None."""
        if s.output == "image":
            at = self.root / folder / IMAGE
            return at.read_bytes() if at.exists() else None
        env = environment(self.root / "cache", FORBID)
        if s.output == "bundle":
            env = environment(self.root / "none", {**FORBID, "KILN_BUNDLES": str(self.root / folder / "k.kiln"), "KILN_DISABLE": "1"})
        execute(["compile", *UNIT, "-o", self.root / "served"], env)
        at = self.root / "served" / IMAGE
        out = at.read_bytes() if at.exists() else None
        shutil.rmtree(self.root / "served", ignore_errors=True)
        return out


def judge(at, s, status, said, way):
    """What is wrong with a run with a fault and what it left; None where nothing is."""
    if status is None:
        return "hangs"
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    if "internal error" in said or "terminate called" in said:
        return "internal error"
    got = at.image(s, "out")
    allowed = images if way in ABSENT else images[:1]
    if way in ABSENT or way == errno.EACCES:
        allowed = allowed + s.sealed
    if status == 0:
        if got is None:
            # Told that a header is not there, it made a bundle for places where it is not: nothing for this one.
            return None if way in ABSENT and s.output == "bundle" else "says it succeeded and gave nothing"
        if got not in allowed:
            return "wrong image"
    elif s.output == "image" and got is not None and got not in allowed:
        return "error, and a wrong image left"
    elif s.output == "bundle" and got is not None and got not in allowed:
        return "error, and a wrong bundle left"
    status, said = execute(at.command(s, "clean"), environment(at.root / "cache", s.environment))
    if s.finds and (status != 0 or at.image(s, "clean") != RIGHT):
        return "wrong afterwards" if status == 0 else "fails afterwards"
    if not s.finds and status == 0:
        return "wrong afterwards"
    status, said = execute(["cache", "verify"], environment(at.root / "cache", {}))
    if status != 0 or " 0 bad" not in said and "no cache" not in said and "0 entries" not in said:
        return "cache verify: " + said.strip().replace("\n", "; ")
    return None


@dataclasses.dataclass(frozen=True)
class fault:
    scenario: int
    call: str
    number: int
    way: int

    def __str__(self):
        return f"{scenarios[self.scenario].name}: {self.call} {self.number} {way_name(self.way)}"


places = [place_of_work(i) for i in range(ask.jobs)]
free_places = list(places)


def attempt(f):
    with workers_guard:
        at = free_places.pop()
    try:
        s = scenarios[f.scenario]
        at.prepare(s)
        status, said = at.run_with(s, f"{f.call} {f.number} {f.way}")
        reached = at.read_board()[0] > 0
        return f, reached, judge(at, s, status, said, f.way), said
    finally:
        with workers_guard:
            free_places.append(at)


def numbers_of(times):
    """Every one, but of hundreds of the same kind (a new cache counts its 256 folders) the first and last and every seventh."""
    if times <= 60:
        return range(1, times + 1)
    return sorted({*range(1, 31), *range(30, times - 10, 7), *range(times - 10, times + 1)})


def all_faults():
    out = []
    for index, s in enumerate(scenarios):
        if ask.only and ask.only not in s.name:
            continue
        at = places[0]
        at.prepare(s)
        status, said = at.run_with(s, "")
        check((status == 0) == s.finds and judge(at, s, status, said, 0) is None, f"{s.name}: works without a fault", status, said)
        calls = at.read_board()[1]
        check(calls, f"{s.name}: the library is loaded")
        if os.path.exists("/dev/nvidiactl"):
            calls = {call: n for call, n in calls.items() if call not in ("connect", "socket")}  # the driver's own; without one there are none
        unknown = set(calls) - set(WAYS)
        check(not unknown, "calls without a list of ways to fail", unknown)
        for call, times in sorted(calls.items()):
            if ask.calls and call not in ask.calls.split(","):
                continue
            out += [fault(index, call, n, way) for n in numbers_of(times) for way in ways_of(call)]
    return out


def main():
    if not LIBRARY.exists():
        print("there is no library to preload: not built under sanitizers")
        sys.exit(77)
    begun = time.monotonic()
    possible = all_faults()
    chosen = possible
    if not ask.all:
        # Each kind of call of each scenario first, then more of them by chance.
        order = random.Random(ask.seed)
        order.shuffle(possible)
        groups = {}
        for f in possible:
            groups.setdefault((f.scenario, f.call), []).append(f)
        rounds = itertools.zip_longest(*groups.values())
        known = [f for f in possible if (scenarios[f.scenario].name, f.call, f.way) in REMEMBERED]
        chosen = known + [f for one in rounds for f in one if f and f not in known][ask.skip:ask.skip + ask.count]
    findings, done, missed = [], 0, 0
    per_scenario = {}
    with concurrent.futures.ThreadPoolExecutor(ask.jobs) as pool:
        late = lambda: not ask.all and time.monotonic() - begun > ask.seconds  # noqa: E731
        for outcome in pool.map(lambda f: None if late() else attempt(f), chosen):
            if outcome is None:
                continue
            f, reached, wrong, said = outcome
            done += 1
            missed += not reached
            tally = per_scenario.setdefault(scenarios[f.scenario].name, [0, 0])
            tally[0] += 1
            if wrong:
                tally[1] += 1
                findings.append(f"{f}: {wrong}" + (f"\n    {said.strip()[-600:]}" if said else ""))
                if ask.findings:
                    ask.findings.write_text("\n".join(findings) + "\n")
                print("FOUND", findings[-1], flush=True)
            elif ask.all and done % 500 == 0:
                print(f"{done} of {len(chosen)}, {len(findings)} findings, {time.monotonic() - begun:.0f} s", flush=True)
    for name, (tried, wrong) in per_scenario.items():
        print(f"{tried:6} faults, {wrong:4} findings: {name}")
    print(f"{done} of {len(possible)} faults tried, {missed} of them not reached, {len(findings)} findings, "
          f"{time.monotonic() - begun:.0f} s")
    sys.exit(1 if findings else 0)


main()
