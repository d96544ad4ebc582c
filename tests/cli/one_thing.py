# SPDX-License-Identifier: Apache-2.0
"""Units that differ in exactly one thing are never served one for the other, and what is the same is found again.

Run by the tests for a bounded time with a fixed seed. By hand for longer, and on any build:

    one_thing.py [--seed N] [--count N] [--seconds S] [--only THING] [--door DOOR] [--bin DIR] [--keep-going]

Draws two situations (a unit, the files around it, variables, a toolkit, a working directory) that differ in one thing, asks for
both through one of the doors below with a cache between them, in either order, with workers and without, and compares all that a
program can see of the artifacts with what the same situation gives with no cache at all. Prints how many cases each thing had
and every finding; exit status 1 if there is one.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

arguments = argparse.ArgumentParser()
arguments.add_argument("--seed", type=int, default=17)
arguments.add_argument("--count", type=int, default=10**9)
arguments.add_argument("--seconds", type=float, default=25, help="begin no case after this")
arguments.add_argument("--only", help="this thing")
arguments.add_argument("--door", help="this door")
arguments.add_argument("--jobs", type=int, default=2)
arguments.add_argument("--bin", type=pathlib.Path, help="directory of kiln, kiln-worker and kiln-test-asker")
ask = arguments.parse_args()
if ask.bin:
    ask.bin = ask.bin.resolve()
    os.environ.update(KILN_TEST_CLI=str(ask.bin / "kiln"), KILN_TEST_BIN_DIR=str(ask.bin), KILN_TEST_SOURCE_DIR=".")

from _kiln import BIN, CLI, SCRATCH, data  # noqa: E402

ASKER = BIN / "kiln-test-asker"

# --- situations --------------------------------------------------------------------------------------------------------------

SOURCE = """\
#if USES_Q
#include <q.h>
#endif
#if USES_BESIDE
#include "beside.h"
#endif
#if __has_include("maybe.h")
#include "maybe.h"
#endif
#ifndef V
#define V 100
#endif
#ifndef W
#define W 200
#endif
#ifndef M
#define M 300
#endif
#ifndef P
#define P 400
#endif
template <class T> __global__ void t(T* x) { x[0] = T(V + W + M + P); }
extern "C" __constant__ int c0 = 7;
extern "C" __constant__ int c1 = 8;
extern "C" __global__ void k(long* x) {
    x[0] = V; x[1] = W; x[2] = M; x[3] = P; x[4] = sizeof(__FILE__); x[5] = (long)NULL; x[6] = c0 + c1;
    x[7] = __sinf(x[8]) / x[9];
}
"""


@dataclasses.dataclass
class situation:
    unit: dict
    steps: list = dataclasses.field(default_factory=list)  # lead to it from nothing, and from the other one
    env: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class pair:
    one: situation
    two: situation
    together: bool = False  # both can be at the same time
    same: bool = False      # the design promises that the second is found
    one_process: bool = True
    differs: bool = True    # the artifacts do
    kept: bool = True       # what was asked for once is a hit the next time
    either: bool = False    # the first may also be given the second's
    breaks: bool = False    # the second fails; that is remembered for a moment by a process that asks for the first with it
    sealed: bool = False    # the same, by a bundle: the first lacks a header that the second has, which bundles are for


class world:
    """A directory for one case, and a unit with a few features drawn by chance: the ground for a difference."""

    def __init__(self, at, draw):
        self.at, self.draw = at, draw
        self.base = []
        self.unit = dict(name="u", source=SOURCE, options=["-DUSES_Q=0", "-DUSES_BESIDE=0"], kernels=[], include_dirs=[],
                         headers=[], directory="", arch="sm_90", exports=[])
        if draw.random() < 0.3:
            self.unit["kernels"] = ["k"]
        if draw.random() < 0.3:
            self.unit["options"].append("-std=c++17")
        if draw.random() < 0.25:
            self.unit["options"].append("-lineinfo")
        if draw.random() < 0.2:
            self.unit["headers"].append(["aside.h", "// in memory\n"])
        if draw.random() < 0.2:
            self.unit["include_dirs"].append(self.path("nothing"))
        if draw.random() < 0.2:
            self.unit["kind"] = "ptx"

    def path(self, *parts):
        return str(self.at.joinpath(*parts))

    def write(self, name, text):
        return ["write", name if name.startswith("/") else self.path(name), text]

    def uses(self, what, **fields):
        """The unit with `what` (Q or BESIDE) included, and other fields."""
        u = json.loads(json.dumps(self.unit))
        if what:
            u["options"] = [o.replace(f"USES_{what}=0", f"USES_{what}=1") for o in u["options"]]
        for name, value in fields.items():
            u[name] = u[name] + value if isinstance(value, list) else value
        return u


def header(value, what="V"):
    return f"#define {what} {value}\n"


THINGS = {}


def thing(make):
    THINGS[make.__name__] = make
    return make


@thing
def include_directory(w):
    steps = [w.write("a/q.h", header(1)), w.write("b/q.h", header(2))]
    return pair(*(situation(w.uses("Q", include_dirs=[w.path(d)]), steps) for d in "ab"), together=True)


@thing
def include_directory_as_an_option(w):
    steps = [w.write("a/q.h", header(1)), w.write("b/q.h", header(2))]
    return pair(*(situation(w.uses("Q", options=["-I" + w.path(d)]), steps) for d in "ab"), together=True)


@thing
def order_of_include_directories(w):
    steps = [w.write("a/q.h", header(1)), w.write("b/q.h", header(2))]
    return pair(*(situation(w.uses("Q", include_dirs=[w.path(d) for d in o]), steps) for o in ("ab", "ba")), together=True)


@thing
def directory_of_the_source(w):
    steps = [w.write("a/beside.h", header(1, "W")), w.write("b/beside.h", header(2, "W"))]
    return pair(*(situation(w.uses("BESIDE", directory=w.path(d)), steps) for d in "ab"), together=True)


@thing
def content_of_a_header(w):
    unit = w.uses("Q", include_dirs=[w.path("a")])
    return pair(*(situation(unit, [w.write("a/q.h", header(v))]) for v in (1, 2)))


@thing
def content_of_a_header_of_a_header(w):
    unit = w.uses("Q", include_dirs=[w.path("a")])
    return pair(*(situation(unit, [w.write("a/q.h", '#include "deep/d.h"\n'), w.write("a/deep/d.h", header(v))]) for v in (1, 2)))


@thing
def header_that_appears_earlier(w):
    unit = w.uses("Q", include_dirs=[w.path("a"), w.path("b")])
    there, gone = [w.write("a/q.h", header(1)), w.write("b/q.h", header(2))], [["remove", w.path("a")], w.write("b/q.h", header(2))]
    return pair(situation(unit, gone), situation(unit, there), sealed=True)


@thing
def header_or_directory_or_nothing(w):
    unit = w.uses("Q", include_dirs=[w.path("a"), w.path("b")])
    ways = [[["directory", w.path("a/q.h")]], [["link", w.path("a"), w.path("nowhere")]], [w.write("a", "a file\n")],
            [["directory", w.path("a")], ["link", w.path("a/q.h"), "nowhere"]]]
    start = [["remove", w.path("a")], w.write("b/q.h", header(2))]
    return pair(situation(unit, start + w.draw.choice(ways)), situation(unit, start + [w.write("a/q.h", header(1))]),
                sealed=True)


@thing
def where_a_link_leads(w):
    both = [w.write("x/q.h", header(1)), w.write("y/q.h", header(2)), ["remove", w.path("a")]]
    whole = w.draw.random() < 0.5
    unit = w.uses("Q", include_dirs=[w.path("a")])
    if whole:
        return pair(*(situation(unit, both + [["link", w.path("a"), d]]) for d in "xy"))
    return pair(*(situation(unit, both + [["directory", w.path("a")], ["link", w.path("a/q.h"), w.path(d, "q.h")]]) for d in "xy"))


@thing
def what_follows_a_link(w):
    """-I link/../inc is beside what the link leads to."""
    steps = [w.write("inc/q.h", header(1)), w.write("real/inc/q.h", header(2)), ["directory", w.path("real/deep")],
             ["remove", w.path("link")], ["link", w.path("link"), "real/deep"]]
    return pair(*(situation(w.uses("Q", include_dirs=[d]), steps) for d in (w.path("inc"), w.path("link") + "/../inc")), together=True)


@thing
def header_in_memory_of_the_machine(w):
    place = tempfile.mkdtemp(dir="/dev/shm", prefix=pathlib.Path(SCRATCH).name)
    w.base.append(place)
    unit = w.uses("")
    unit["source"] = f'#include "{place}/q.h"\n' + SOURCE
    return pair(*(situation(unit, [w.write(f"{place}/q.h", header(v))]) for v in (1, 2)))


@thing
def directory_in_memory_of_the_machine(w):
    place = tempfile.mkdtemp(dir="/dev/shm", prefix=pathlib.Path(SCRATCH).name)
    w.base.append(place)
    unit = w.uses("Q", include_dirs=[place], options=["-lineinfo"])
    return pair(*(situation(unit, [w.write(f"{place}/q.h", header(v))]) for v in (1, 2)))


@thing
def header_that_is_only_asked_for(w):
    unit = w.uses("", directory=w.path("a"))
    there, gone = [["directory", w.path("a")], w.write("a/maybe.h", header(5, "W"))], [["directory", w.path("a")], ["remove", w.path("a/maybe.h")]]
    return pair(situation(unit, gone), situation(unit, there), sealed=True)


@thing
def text_of_a_header_in_memory(w):
    return pair(*(situation(w.uses("Q", headers=[["q.h", header(v)]])) for v in (1, 2)), together=True)


@thing
def header_in_memory_or_in_a_file(w):
    steps = [w.write("a/q.h", header(1))]
    one = w.uses("Q", include_dirs=[w.path("a")])
    return pair(situation(one, steps), situation({**one, "headers": one["headers"] + [["q.h", header(2)]]}, steps), together=True)


@thing
def header_by_a_macro(w):
    steps = [w.write("a/x.h", header(1)), w.write("a/y.h", header(2))]
    made = []
    for name in "xy":
        unit = w.uses("", include_dirs=[w.path("a")], options=[f"-DWHICH=<{name}.h>"])
        unit["source"] = "#include WHICH\n" + SOURCE
        made.append(situation(unit, steps))
    return pair(*made, together=True)


@thing
def source(w):
    one, two = w.uses(""), w.uses("")
    two["source"] = SOURCE.replace("x[0] = V;", "x[0] = V + 1;")
    return pair(situation(one), situation(two), together=True)


@thing
def option(w):
    one, two = w.draw.choice([(["-DM=1"], ["-DM=2"]), ([], ["-DM=2"]), (["-DM=1", "-UM"], ["-UM", "-DM=1"]), ([], ["--use_fast_math"]),
                              (["-DM=1 2"], ["-DM=1", "-D2"]), (["-DM"], ["-DM=2"]),
                              (["-DM=1", "-DM=2"], ["-DM=2", "-DM=1"])])
    return pair(*(situation(w.uses("", options=list(o))) for o in (one, two)), together=True, differs=False)


@thing
def spelling_of_options(w):
    one, two = w.draw.choice([(["-DM=1", "-DP=2"], ["-DP=2", "-DM=1"]), (["-DM"], ["-DM=1"]), (["-DM=3"], ["-D", "M=3"]),
                              (["-DM=3"], ["--define-macro=M=3"]), (["--ftz=true"], ["-ftz=true"]),
                              (["-use_fast_math"], ["--use_fast_math"]), (["--ftz=false", "--ftz=true"], ["--ftz=true"]),
                              ([], ["--no-display-error-number"])])
    return pair(*(situation(w.uses("", options=list(o))) for o in (one, two)), together=True, same=True)


@thing
def pre_include(w):
    steps = [w.write("a/pre.h", header(1, "P")), w.write("b/pre.h", header(2, "P"))]
    return pair(*(situation(w.uses("", options=["--pre-include=" + w.path(d, "pre.h")]), steps) for d in "ab"), together=True)


@thing
def content_of_a_pre_include(w):
    name = w.draw.choice(["--pre-include=pre.h", "--pre-include=" + w.path("a/pre.h")])
    unit = w.uses("", options=[name])
    return pair(*(situation(unit, [w.write("a/pre.h", header(v, "P")), ["cd", w.path("a")]]) for v in (1, 2)))


@thing
def working_directory_of_a_pre_include(w):
    steps = [w.write("a/pre.h", header(1, "P")), w.write("b/pre.h", header(2, "P"))]
    unit = w.uses("", options=["--pre-include=pre.h"])
    return pair(*(situation(unit, steps + [["cd", w.path(d)]]) for d in "ab"))


@thing
def working_directory_of_a_relative_path(w):
    steps = [w.write("a/inc/q.h", header(1)), w.write("b/inc/q.h", header(2))]
    form = w.draw.choice([dict(include_dirs=["inc"]), dict(include_dirs=["./inc/"]), dict(options=["-Iinc"])])
    return pair(*(situation(w.uses("Q", **form), steps + [["cd", w.path(d)]]) for d in "ab"))


@thing
def working_directory_of_the_source(w):
    steps = [w.write("a/inc/beside.h", header(1, "W")), w.write("b/inc/beside.h", header(2, "W"))]
    unit = w.uses("BESIDE", directory="inc")
    return pair(*(situation(unit, steps + [["cd", w.path(d)]]) for d in "ab"))


@thing
def name(w):
    return pair(situation(w.uses("", name="u")), situation(w.uses("", name="longer")), together=True)


@thing
def kernel_expression(w):
    one, two = w.draw.choice([("t<int>", "t<float>"), ("t<int>", "t<long>"), ("k", "t<int>")])
    made = []
    for expression in (one, two):
        unit = w.uses("")
        unit["kernels"] = [expression]
        made.append(situation(unit))
    return pair(*made, together=True)


@thing
def exports(w):
    return pair(*(situation({**w.uses(""), "exports": [c], "kind": "cubin"}) for c in ("c0", "c1")), together=True)


@thing
def architecture(w):
    return pair(*(situation({**w.uses(""), "arch": a, "kind": "cubin"}) for a in ("sm_80", "sm_90")), together=True)


@thing
def kind(w):
    return pair(*(situation({**w.uses(""), "kind": k}) for k in ("cubin", "ptx")), together=True)


@thing
def one_that_does_not_compile(w):
    steps = [w.write("a/q.h", header(1)), w.write("b/q.h", "#error not today\n")]
    return pair(*(situation(w.uses("Q", include_dirs=[w.path(d)]), steps) for d in "ab"), together=True)


@thing
def header_that_breaks(w):
    unit = w.uses("Q", include_dirs=[w.path("a")])
    return pair(*(situation(unit, [w.write("a/q.h", text)]) for text in (header(1), "#error not today\n")),
                breaks=True)


@thing
def variable_of_the_compiler(w):
    env = w.draw.choice([{"NV_NVVM_VERSION": "nvvm-latest"}, {"LIBNVVM_NVVM_VERSION": "nvvm-latest"},
                         {"NVRTCWIZ": "3153394", "NVRTC_APPEND_FLAGS": "-use_fast_math"},
                         {"NVRTCWIZ": "3153394", "NVRTC_APPEND_FLAGS": "-DM=9"}])
    # Workers are not given it. Who compiles in the process cannot help it: what is made is not kept, and the cache has what
    # everybody else gets.
    return pair(situation(w.uses(""), env=env), situation(w.uses("")), one_process=False, differs=False, kept=False,
                either=True)


@thing
def variable_that_means_nothing(w):
    env = w.draw.choice([{"FOO": "1"}, {"LANG": "C"}, {"TMPDIR": w.path("tmp")}, {"CUDA_CACHE_DISABLE": "1"}])
    return pair(situation(w.uses(""), env=env), situation(w.uses("")), one_process=False, same=True)


@thing
def builtins(w):
    return pair(*(situation(w.uses(""), env={"KILN_CUDA_PATH": str(kit), "LD_LIBRARY_PATH": str(kit / "lib64")}) for kit in kits()),
                one_process=False)


@thing
def where_a_project_lies(w):
    steps = [w.write("a/q.h", header(1)), w.write("b/q.h", header(1))]
    w.unit["options"] = [o for o in w.unit["options"] if o != "-lineinfo"]
    return pair(*(situation(w.uses("Q", include_dirs=[w.path(d)]), steps) for d in "ab"), together=True, same=True)


@thing
def spelling_of_a_directory(w):
    steps = [w.write("a/q.h", header(1)), ["remove", w.path("link")], ["link", w.path("link"), "a"]]
    w.unit["options"] = [o for o in w.unit["options"] if o != "-lineinfo"]
    other = w.draw.choice([w.path("a") + "/", w.path("a/../a"), w.path("link")])
    return pair(*(situation(w.uses("Q", include_dirs=[d]), steps) for d in (w.path("a"), other)), together=True, same=True)


@thing
def time_of_a_header(w):
    unit = w.uses("Q", include_dirs=[w.path("a")])
    return pair(situation(unit, [w.write("a/q.h", header(1))]), situation(unit, [["remove", w.path("a")], w.write("a/q.h", header(1))]), same=True)


@thing
def order_of_kernels(w):
    made = []
    for kernels in (["k", "t<int>"], ["t<int>", "k"]):
        unit = w.uses("")
        unit["kernels"] = kernels
        made.append(situation(unit))
    return pair(*made, together=True, same=True, differs=False)


_kits = []


def kits():
    """Two toolkits that differ in the built-in headers of NVRTC."""
    if not _kits:
        found = [f for f in data("doctor", status=None)["findings"] if f["what"] == "NVRTC" and f["state"] == "ok"]
        nvrtc = pathlib.Path(found[0]["value"].split(" (")[0])
        real = min(nvrtc.parent.glob("libnvrtc-builtins.so.*.*"), key=lambda p: len(p.name))  # by the name NVRTC asks for
        for number, change in enumerate((b"0", b"7")):
            lib = SCRATCH / f"kit{number}/lib64"
            lib.mkdir(parents=True)
            try:
                os.link(nvrtc.resolve(), lib / nvrtc.name)
            except OSError:
                shutil.copy(nvrtc, lib / nvrtc.name)
            (lib / real.name).write_bytes(real.read_bytes().replace(b"#define NULL 0", b"#define NULL " + change))
            _kits.append(lib.parent)
    return _kits


# --- asking ------------------------------------------------------------------------------------------------------------------

class failed(Exception):
    pass


class case:
    def __init__(self, number, what, door, draw):
        self.number, self.what, self.door, self.draw = number, what, door, draw
        self.at = SCRATCH / f"case{number}"
        self.at.mkdir()
        self.world = world(self.at, draw)
        self.pair = THINGS[what](self.world)
        self.workers = draw.choice("01")
        self.order = draw.choice([(0, 1), (1, 0)])
        self.sides = (self.pair.one, self.pair.two)
        self.references = {}
        self.plans = 0

    def start(self, steps, env, *wrapper, cache="cache"):
        """A process that does these steps."""
        self.plans += 1
        plan = self.at / f"plan{self.plans}.json"
        plan.write_text(json.dumps(dict(units=[s.unit for s in self.sides], steps=steps)))
        full = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        full.update(KILN_CACHE_DIR=str(self.at / cache), KILN_CUDA_PATH=os.environ.get("KILN_TEST_CUDA_PATH", ""),
                    KILN_WORKERS=self.workers, KILN_WORKER=str(BIN / "kiln-worker"))
        full.update(env)
        full = {k: v for k, v in full.items() if v != ""}
        return subprocess.Popen([*map(str, wrapper), str(ASKER), str(plan)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=full, cwd=self.at)

    def answers(self, process):
        out, err = process.communicate(timeout=120)
        if process.returncode != 0:
            raise failed(f"the asker ended with {process.returncode}: {out} {err}")
        return [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    def process(self, steps, env, *wrapper, **more):
        return self.answers(self.start(steps, env, *wrapper, **more))

    def reference(self, i):
        if i not in self.references:
            self.references[i] = self.process(self.sides[i].steps + [["ask", [i]]], {**self.sides[i].env, "KILN_DISABLE": "1"})[0]
        return self.references[i]

    def expect(self, got, why="", may_fail=False):
        """An answer is what its situation gives without a cache. may_fail: or an error."""
        right = self.reference(got["unit"])
        if may_fail and "error" in got:
            return
        if got.get("image") != right.get("image"):
            other = self.reference(1 - got["unit"])
            may = self.pair.either or self.pair.sealed and got.get("from") == "bundle"
            if may and got["unit"] == 0 and got.get("image") == other.get("image"):
                return
            blame = "the other's" if got.get("image") == other.get("image") else got.get("error", "neither's")
            raise failed(f"unit {got['unit']}{why}: {blame}; from {got.get('from')}; right is {right}")

    def expect_found(self, got, why):
        if "error" not in self.reference(got["unit"]) and got.get("from") in ("compiled", None):
            raise failed(f"unit {got['unit']}{why} was compiled again: {got}")

    def command(self, *command, env=None, status=(0,)):
        full = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        full.update(KILN_CUDA_PATH=os.environ.get("KILN_TEST_CUDA_PATH", ""), KILN_WORKERS=self.workers)
        full.update(env or {})
        full = {k: v for k, v in full.items() if v != ""}
        done = subprocess.run([CLI, *map(str, command)], env=full, cwd=self.at, capture_output=True, text=True, timeout=120)
        if done.returncode not in status:
            raise failed(f"{command[:2]}: {done.returncode}: {done.stdout} {done.stderr}")
        return done

    def enter(self, i):
        """The world of situation i, for commands."""
        self.process(self.sides[i].steps, {})

    def run(self):
        references = [self.reference(i) for i in (0, 1)]
        looks = [r.get("image") for r in references]
        if self.pair.same and self.pair.differs and looks[0] != looks[1]:
            raise failed(f"what should be the same is not: {references}")
        if not self.pair.same and self.pair.differs and looks[0] == looks[1]:
            raise failed(f"the difference makes none: {references}")
        DOORS[self.door](self)


DOORS = {}


def door(walk):
    DOORS[walk.__name__] = walk
    return walk


def steps_of(c):
    """The world in which both are, for pairs that can be together."""
    return c.pair.one.steps + c.pair.two.steps


@door
def at_once_in_one_process(c):
    if not c.pair.together:
        return one_after_the_other_in_one_process(c)
    got = c.process(steps_of(c) + [["ask", list(c.order)], ["ask", list(c.order[::-1])]], {})
    for answer in got:
        c.expect(answer)
    for answer in got[2:]:
        c.expect_found(answer, ", asked again,")


@door
def one_after_the_other_in_one_process(c):
    if not c.pair.one_process:
        return one_after_the_other(c)
    a, b = c.order
    got = c.process([step for i in (a, b, a) for step in c.sides[i].steps + [["ask", [i]]]], {})
    for answer in got:
        c.expect(answer, may_fail=c.pair.breaks)
    if not c.pair.breaks:
        c.expect_found(got[2], ", asked again,")
    if c.pair.same:
        c.expect_found(got[1], ", the same as the other,")


@door
def while_the_other_is_being_made(c):
    if not c.pair.one_process:
        return one_after_the_other(c)
    a, b = c.order
    for answer in c.process(c.sides[a].steps + [["start", [a]]] + c.sides[b].steps + [["ask", [b]]], {}):
        c.expect(answer, ", asked for while the other was being made,")


@door
def one_after_the_other(c):
    a, b = c.order
    for n, i in enumerate((a, b, a)):
        got = c.process(c.sides[i].steps + [["ask", [i]]], c.sides[i].env)[0]
        c.expect(got, f" in process {n}")
        if n == 2 and (c.pair.kept or c.workers == "1"):
            c.expect_found(got, " in process 2")
        if n == 1 and c.pair.same:
            c.expect_found(got, ", the same as the other,")


@door
def at_once_in_two_processes(c):
    if not c.pair.together:
        return one_after_the_other(c)
    c.process(steps_of(c), {})
    for got in [c.answers(p) for p in [c.start([["ask", [i]]], c.sides[i].env) for i in c.order]]:
        c.expect(got[0])


@door
def a_cache_to_read(c):
    a, b = c.order
    c.expect(c.process(c.sides[a].steps + [["ask", [a]]], c.sides[a].env, cache="shared")[0])
    shared = {"KILN_CACHE_PATH_RO": str(c.at / "shared")}
    c.expect(c.process(c.sides[b].steps + [["ask", [b]]], {**c.sides[b].env, **shared})[0])
    got = c.process(c.sides[a].steps + [["ask", [a]]], {**c.sides[a].env, **shared})[0]
    c.expect(got)
    if c.pair.kept or c.workers == "1":
        c.expect_found(got, ", in a cache to read,")


def recorded(c, which, *, together=False):
    """A profile of what a process asked for, and whether there is anything in it."""
    profile = c.at / f"recorded{''.join(map(str, which))}.profile"
    steps = steps_of(c) if together else c.sides[which[0]].steps
    c.process(steps + [["ask", list(which)]], {**c.sides[which[0]].env, "KILN_DISABLE": "1"}, CLI, "record", "-o", profile, "--")
    return profile


FORBID = {"KILN_JIT": "forbid"}


def together_through(c, environment_of):
    """Both are recorded in one process and made again by a replay: into what `environment_of` says, from which alone they come."""
    profile = recorded(c, c.order, together=True)
    env = environment_of(profile)
    for _ in range(2):
        asks = [["ask", list(c.order)], ["ask", list(c.order[::-1])]]
        for answer in c.process(steps_of(c) + asks, {**FORBID, **env}):
            c.expect(answer, " of a replay")


def replay_into_bundle(c, profile, i=0):
    bundle = c.at / f"{profile.stem}.kiln"
    c.command("replay", profile, "-o", bundle, env={**c.sides[i].env, "KILN_DISABLE": "1"}, status=(0, 1, 3))
    return bundle


@door
def a_bundle(c):
    if c.pair.together and not c.sides[0].env and not c.sides[1].env:
        return together_through(c, lambda profile: {"KILN_BUNDLES": str(replay_into_bundle(c, profile)), "KILN_DISABLE": "1"})
    a, b = c.order
    profile = recorded(c, [a])
    bundle = replay_into_bundle(c, profile, a)
    env = {"KILN_BUNDLES": str(bundle)} if bundle.exists() else {}
    c.expect(c.process(c.sides[a].steps + [["ask", [a]], ["ask", [a]]], {**c.sides[a].env, **env})[0], " of the bundle")
    # Another compiler's serves by design, from a bundle: whoever ships it chose it.
    if c.what in ("builtins", "variable_of_the_compiler"):
        return
    c.expect(c.process(c.sides[b].steps + [["ask", [b]]], {**c.sides[b].env, **env}, cache="other")[0], " beside the other's bundle")
    c.expect(c.process(c.sides[b].steps + [["ask", [b]]], {**c.sides[b].env, **env, **FORBID}, cache="third")[0],
             " beside the other's bundle, no compiling,", may_fail=True)


@door
def a_replay(c):
    if c.pair.together and not c.sides[0].env and not c.sides[1].env:
        def replayed(profile):
            c.command("replay", profile, env={"KILN_CACHE_DIR": str(c.at / "made")}, status=(0, 1, 3))
            return {"KILN_CACHE_DIR": str(c.at / "made")}
        return together_through(c, replayed)
    a, b = c.order
    profile = recorded(c, [a])
    made = {"KILN_CACHE_DIR": str(c.at / "made")}
    c.command("replay", profile, env={**c.sides[a].env, **made}, status=(0, 1, 3))
    for i in (b, a):
        c.expect(c.process(c.sides[i].steps + [["ask", [i]]], {**c.sides[i].env, **made})[0], " after the replay of the other")


@door
def a_profile_at_the_start(c):
    a, b = c.order
    profile = recorded(c, [a])
    for i in (b, a, b):
        got = c.process(c.sides[i].steps + [["ask", [i]]], {**c.sides[i].env, "KILN_PROFILE": str(profile)})[0]
        c.expect(got, " with a profile")


# --- all of it ---------------------------------------------------------------------------------------------------------------

def attempt(number, what, through):
    draw = random.Random(f"{ask.seed} {number} {what} {through}")
    c = None
    try:
        c = case(number, what, through, draw)
        c.run()
        return None
    except (failed, subprocess.TimeoutExpired) as why:
        return f"case {number}: {what} through {through}, workers {c.workers}, order {c.order}: {why}"
    finally:
        if c:
            for place in [c.at, *c.world.base]:
                shutil.rmtree(place, ignore_errors=True)


def main():
    begun = time.monotonic()
    kits()
    things = [t for t in THINGS if not ask.only or t == ask.only]
    doors = [d for d in DOORS if not ask.door or d == ask.door]
    everything = [(t, d) for t in things for d in doors]
    order = random.Random(ask.seed)
    order.shuffle(everything)
    tried, findings = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(ask.jobs) as pool:
        def one(number):
            if time.monotonic() - begun > ask.seconds:
                return None
            return everything[number % len(everything)], attempt(number, *everything[number % len(everything)])
        total = min(ask.count, max(len(everything), int(ask.seconds * 20)))
        for outcome in pool.map(one, range(total)):
            if outcome is None:
                continue
            (what, _), wrong = outcome
            tried[what] += 1
            if wrong:
                findings.append((what, wrong))
                print("FOUND", wrong, flush=True)
    wrong_of = collections.Counter(what for what, _ in findings)
    for what in things:
        print(f"{tried[what]:5} cases, {wrong_of[what]:4} findings: {what.replace('_', ' ')}")
    print(f"{sum(tried.values())} cases of {len(everything)} kinds, {len(findings)} findings, {time.monotonic() - begun:.0f} s, seed {ask.seed}")
    sys.exit(1 if findings else 0)


main()
