#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real programs without and with `kiln run`, each with homes and caches of its own: results, exit statuses, what was
answered, and first results in milliseconds.

    run_list.py KILN [--only REGEX] [--jobs N] [--out DIR] [--phases LIST] [--limit SECONDS] [--json FILE] [--drop-caches]
                     [--programs FOLDER]

The runs of a program, in this order:

    cold      without Kiln, nothing cached
    own       once more, with the caches of the framework
    made      kiln run --record, Kiln's cache empty
    answered  kiln run, its cache full, those of the framework empty
    verify    kiln run --verify: every answer compiled again and compared
    capsule   with the capsule of that record, in another folder, another home, an empty cache
    again     the next start there

A program is a file of tests/run/programs: it checks its own result and prints one line of JSON (_program.py). One that the
machine cannot run says so and is named. Exit status 1 if a result is wrong, a status is not the one without Kiln, an answer
differs from what is made again, or something was made that should have been there; 77 if nothing could be run.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import site
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
PHASES = ("cold", "own", "made", "answered", "verify", "capsule", "again")
NEEDS = {"own": "cold", "answered": "made", "verify": "made", "capsule": "made", "again": "capsule"}
BARE = ("cold", "own")
ELSEWHERE = ("capsule", "again")

# The longest first: the others go beside them.
SLOW = ("torch_compile", "torch_special", "cupy_reduction", "torch_cudnn", "triton_kernel", "cxx_linked", "cxx_opened")
# What asks NVRTC or nvJitLink for something; if it does not, nothing stood in for them.
SERVED = {"cupy_reduction", "cupy_elementwise", "cupy_rawmodule", "cupy_cub", "cuda_core", "cuda_core_link", "torch_jiterator",
          "torch_special", "cxx_linked", "cxx_opened", "cufft_patient"}
# What is known, and why it is no fault: (program, run or None for all, what).
LTO = "LTO-IR has the working directory in it: in a new folder it is made anew"
MAY = {
    ("cxx_linked", "capsule", "made"): LTO,
    ("cxx_opened", "capsule", "made"): LTO,
    ("cuda_core_link", "capsule", "made"): LTO,
    ("torch_cudnn", None, "left"): "cuDNN compiles by a private function of NVRTC",
}

FRAMEWORKS = ("CUPY_CACHE_DIR TRITON_CACHE_DIR TORCHINDUCTOR_CACHE_DIR PYTORCH_KERNEL_CACHE_PATH JAX_COMPILATION_CACHE_DIR "
              "CUDA_CACHE_PATH NUMBA_CACHE_DIR").split()
# JAX keeps nothing that was quick, unless it is told to.
WITH_FRAMEWORKS = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
# Caches and settings of whoever starts this.
FOREIGN = re.compile(r"LD_AUDIT|PYTHONPYCACHEPREFIX|CUDA_CACHE_.*|(CUPY|JAX|TRITON|TORCHINDUCTOR|PYTORCH|NUMBA)_.*CACHE.*|"
                     r"KILN_(RUN_.*|CACHE_.*|BUNDLE.*|EVENTS|PROFILE|DISABLE|READONLY|CONFIG)")
SENTENCE = re.compile(r"^kiln: run: (\d+) compiles answered in [\d.]+ s, (\d+) made", re.MULTILINE)


@dataclasses.dataclass
class seen:
    """One run."""

    status: int | None  # None: it took too long
    said: dict  # the program's line
    compiles: dict | None  # the last line of kiln run; None: there is none
    last_words: str = ""
    wrong: list = dataclasses.field(default_factory=list)
    allowed: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class outcome:
    """All runs of a program."""

    name: str
    runs: dict
    why_not: str = ""  # the runs that are missing were not made


def line_of(text):
    """The last line of JSON among what a program printed."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                return found
    return {}


def compiles_of(text):
    """What the last line of kiln run says, and of each compile that was made its name."""
    found = None
    for found in SENTENCE.finditer(text):
        pass
    if found is None:
        return None
    sentence = text[found.start():].splitlines()[0]

    def number(pattern):
        return sum(int(n) for n in re.findall(pattern, sentence))

    return {"answered": int(found[1]), "made": int(found[2]), "left": number(r"(\d+) left to the library itself"),
            "lost": number(r"(\d+) could not be kept"), "failed": number(r"(\d+) did not compile"),
            "same": number(r"(\d+) made again and the same"), "different": number(r"(\d+) different"),
            "alone": "".join(re.findall(r"; (loaded without Kiln: [^;]*)", sentence)),
            "names": re.findall(r"^kiln: run: \S+ made '([^']*)'", text, re.MULTILINE), "sentence": sentence}


def faults_of(name, phase, one, before):
    """What is wrong with a run, after those before it: pairs of what, for MAY, and words."""
    bare = before["cold"].status if "cold" in before else 0
    if one.status is None:
        yield "status", "it took too long"
        return
    c = one.compiles or {}
    differs = phase == "verify" and c.get("different", 0) > 0
    if one.status != (bare if phase not in BARE else 0) and not differs:
        beside = f", without Kiln {bare}" if phase not in BARE else ""
        yield "status", f"exit status {one.status}{beside}: {one.said.get('wrong') or one.last_words}"
    elif not one.said.get("ok"):
        yield "result", f"wrong result: {one.said.get('wrong') or 'it says none'}"
    if phase in BARE:
        return
    if one.compiles is None:
        yield "sentence", f"kiln run says nothing of its compiles: {one.last_words}"
        return
    if c["lost"]:
        yield "lost", f"{c['lost']} could not be kept"
    if c["left"]:
        yield "left", f"{c['left']} left to the library itself"
    if c["different"]:
        yield "different", f"{c['different']} different when made again"
    if phase == "made":
        if name in SERVED and c["made"] + c["answered"] + c["left"] == 0:
            yield "asked", "it asked for nothing: is there a stand-in for its compiler?"
        return
    if c["made"]:
        yield "made", f"{c['made']} made again: {', '.join(c['names'][:3])}"
    elif phase == "answered" and c["answered"] < before["made"].compiles["made"]:
        yield "asked", f"{c['answered']} answered, where {before['made'].compiles['made']} were made"
    if phase == "verify" and c["same"] + c["different"] < c["answered"]:
        yield "same", f"{c['answered']} answered, and only {c['same'] + c['different']} compared"


def judge(name, phase, one, before):
    for what, words in faults_of(name, phase, one, before):
        reason = MAY.get((name, phase, what)) or MAY.get((name, None, what))
        if reason:
            one.allowed.append(f"{words} ({reason})")
        else:
            one.wrong.append(words)


def cuda_root():
    """Where a toolkit's headers and its folder of libraries are. Wheels of pip have no names to link with."""
    for place in filter(None, (os.environ.get("KILN_CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda")):
        root = pathlib.Path(place)
        if not all((root / "include" / h).exists() for h in ("cuda.h", "nvrtc.h", "nvJitLink.h")):
            continue
        for folder in (root / "lib64", root / "lib"):
            if all((folder / f"lib{name}.so").exists() for name in ("nvrtc", "nvJitLink")):
                return root, folder
    return None, None


class program:
    """A program in a folder of its own."""

    def __init__(self, source, out, settings):
        self.source, self.name, self.settings = source, source.stem, settings
        self.place = out / self.name  # logs stay, what is in run/ goes if all was well
        self.run_folder = self.place / "run"
        shutil.rmtree(self.place, ignore_errors=True)
        self.run_folder.mkdir(parents=True)
        self.record, self.capsule = self.run_folder / "app.json", self.run_folder / "elsewhere/app.capsule"
        self.command, self.paths = [sys.executable, str(source)], {}

    def build(self):
        """Why it cannot be run, and whether that is a fault; both empty if it can."""
        if self.source.suffix == ".py":
            return "", ""
        compiler, (root, folder) = shutil.which(os.environ.get("CXX", "c++")), cuda_root()
        if compiler is None or root is None:
            return "no compiler for C++" if compiler is None else "no CUDA toolkit to build with", ""
        to = self.run_folder / "program"
        words = [compiler, "-std=c++20", f"-I{root}/include", f'-DCUDA_ROOT=std::string("{root}")', str(self.source), "-o", str(to),
                 "-Wl,--as-needed", f"-L{folder}", f"-Wl,-rpath,{folder}", "-lnvrtc", "-lnvJitLink", "-ldl"]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            (self.place / "build.err").write_text(done.stderr)
            return "", "it does not compile: " + (done.stderr.strip().splitlines() or ["?"])[0]
        self.command, self.paths = [str(to)], {"LD_LIBRARY_PATH": f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")}
        return "", ""

    def folder(self, *names):
        path = self.run_folder.joinpath(*names)
        path.mkdir(parents=True, exist_ok=True)
        return str(path)

    def environment(self, phase):
        # The folder of a run: own goes on where cold was.
        here = {"own": "cold", "again": "capsule"}.get(phase, phase)
        home = ("elsewhere",) if phase in ELSEWHERE else (here,)
        out = {k: v for k, v in os.environ.items() if not FOREIGN.fullmatch(k)}
        out.setdefault("PYTHONUSERBASE", site.getuserbase())  # it depends on HOME
        out.update(self.paths, HOME=self.folder(*home, "home"), XDG_CACHE_HOME=self.folder(*home, "xdg"), TMPDIR=self.folder(*home, "tmp"),
                   KILN_CACHE_DIR=self.folder(*(("elsewhere",) if phase in ELSEWHERE else ()), "kiln"), PWD=self.work(phase),
                   XLA_PYTHON_CLIENT_PREALLOCATE="false")
        # A record and a capsule bring folders of their own.
        if phase not in ("made", *ELSEWHERE):
            out.update({k: self.folder(here, k.lower()) for k in FRAMEWORKS}, **WITH_FRAMEWORKS)
        return out

    def work(self, phase):
        return self.folder("elsewhere", "work") if phase in ELSEWHERE else self.folder("work")

    def words(self, phase):
        options = {"made": ["--record", str(self.record)], "verify": ["--verify"], "answered": [],
                   "capsule": ["--capsule", str(self.capsule), "--unsigned"], "again": ["--capsule", str(self.capsule), "--unsigned"]}
        return self.command if phase in BARE else [self.settings.kiln, "run", "-v", *options[phase], "--", *self.command]

    def finished(self, phase, words):
        """Exit status, None if it took too long; what it says goes to files, which outlive children that stay behind."""
        if self.settings.drop_caches:
            os.sync()
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
        with open(self.place / f"{phase}.out", "wb") as out, open(self.place / f"{phase}.err", "wb") as err:
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=self.environment(phase), cwd=self.work(phase), start_new_session=True)
            try:
                return child.wait(self.settings.limit)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                return None

    def said(self, phase, what):
        return (self.place / f"{phase}.{what}").read_text(errors="replace")

    def run(self, phase):
        status = self.finished(phase, self.words(phase))
        errors = self.said(phase, "err")
        last = [line for line in errors.splitlines() if line.strip() and not line.startswith("kiln: run: ")]
        return seen(status, line_of(self.said(phase, "out")), compiles_of(errors), last[-1][:200] if last else "")

    def pack(self, made):
        """Why there is no capsule, and whether that is a fault; both empty if there is one."""
        self.folder("elsewhere")
        done = subprocess.run([self.settings.kiln, "capsule", "build", "-o", str(self.capsule), str(self.record)], capture_output=True, text=True,
                              errors="replace", env=self.environment("made"), cwd=self.work("made"))
        (self.place / "pack.err").write_text(done.stdout + done.stderr)
        words = (done.stderr.strip().splitlines() or ["?"])[-1]
        if done.returncode == 0:
            return "", ""
        if "nothing to pack" in done.stderr and made.compiles["made"] + made.compiles["answered"] == 0:
            return "nothing to pack", ""
        return "", f"kiln capsule build: status {done.returncode}: {words}"

    def all_runs(self):
        out = outcome(self.name, {})
        lacks, fault = self.build()
        for phase in self.settings.phases if not lacks and not fault else ():
            if phase == "capsule":
                lacks, fault = self.pack(out.runs["made"])
                if lacks or fault:
                    break
            one = self.run(phase)
            if one.status == 77 and not out.runs:
                lacks = one.said.get("skipped", "it says not why")
                break
            judge(self.name, phase, one, out.runs)
            out.runs[phase] = one
            if one.status is None or (phase == "made" and one.compiles is None):
                lacks = "the run before failed"
                break
        if fault:
            phase = next(p for p in self.settings.phases if p not in out.runs)
            out.runs[phase] = seen(None, {}, None, wrong=[fault])
            lacks = "the run before failed"
        out.why_not = lacks
        if not any(one.wrong for one in out.runs.values()):
            shutil.rmtree(self.run_folder, ignore_errors=True)
        return out


def cell(one):
    if one is None:
        return "-"
    if "first_ms" not in one.said:
        return "wrong"
    return f"{one.said['first_ms']:,.0f} + {one.said.get('imports_ms', 0):,.0f}" + ("!" if one.wrong else "")


def row(o, phases):
    cells = "".join(f"{cell(o.runs.get(p)):>16}" for p in phases)
    contexts = [one.said["context_ms"] for one in o.runs.values() if "context_ms" in one.said]
    words = []
    for phase, one in o.runs.items():
        c = one.compiles
        if c and phase == "made":
            words.append(f"{c['made']} made")
        if c and phase == "answered":
            words.append(f"{c['answered']} answered, {c['made']} made" + (f", {c['left']} left" if c["left"] else ""))
            words += [f"{' and '.join(one.said['mapped'])} mapped"] if one.said.get("mapped") else []
        if c and phase == "verify":
            words.append(f"{c['same']} the same, {c['different']} different")
    return f"{o.name:<17}{cells}{min(contexts, default=0):>9,.0f}  {'; '.join(words)}"


def notes(o, phases):
    for phase, one in o.runs.items():
        yield from (f"    WRONG, {phase}: {w}" for w in one.wrong)
        yield from (f"    allowed, {phase}: {a}" for a in one.allowed)
        if one.compiles and one.compiles["failed"]:
            yield f"    {phase}: {one.compiles['failed']} did not compile"
        if one.compiles and one.compiles["alone"]:
            yield f"    {phase}: {one.compiles['alone']}"
    if o.why_not:
        yield f"    not run, {', '.join(p for p in phases if p not in o.runs)}: {o.why_not}"


def counted(outcomes, phases):
    out = dict.fromkeys(("right", "wrong", "not_run", "answered", "same", "different"), 0)
    for o in outcomes:
        for phase in phases:
            one = o.runs.get(phase)
            out["not_run" if one is None else "wrong" if one.wrong else "right"] += 1
            if one and one.compiles:
                out["answered"] += one.compiles["answered"] if phase == "answered" else 0
                out["same"] += one.compiles["same"] if phase == "verify" else 0
                out["different"] += one.compiles["different"]
    return out


def parsed(words):
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    a.add_argument("kiln", type=lambda p: str(pathlib.Path(p).absolute()))
    a.add_argument("--only", default="")
    a.add_argument("--jobs", type=int, default=max(1, min(5, (os.cpu_count() or 1) // 3)))
    a.add_argument("--out", type=lambda p: pathlib.Path(p).absolute(), default="run-list")
    a.add_argument("--phases", type=lambda p: p.split(","), default=list(PHASES))
    a.add_argument("--limit", type=float, default=120, help="seconds for one run")
    a.add_argument("--json", type=pathlib.Path)
    a.add_argument("--drop-caches", action="store_true", help="a cold page cache before each run; as root, and one program at a time")
    a.add_argument("--programs", type=pathlib.Path, default=HERE / "programs")
    out = a.parse_args(words)
    for phase in out.phases:
        if phase not in PHASES:
            a.error(f"--phases: there is no {phase}; there are {','.join(PHASES)}")
        if NEEDS.get(phase, phase) not in out.phases:
            a.error(f"--phases: {phase} needs {NEEDS[phase]}")
    out.phases = [p for p in PHASES if p in out.phases]
    if out.drop_caches:
        out.jobs = 1  # it would be the others' cache, too
        if not os.access("/proc/sys/vm/drop_caches", os.W_OK):
            a.error("--drop-caches: /proc/sys/vm/drop_caches cannot be written here")
    return out


def main():
    settings = parsed(sys.argv[1:])
    began = time.monotonic()
    sources = [f for f in settings.programs.absolute().iterdir() if f.suffix in (".py", ".cpp") and not f.name.startswith("_") and re.search(settings.only, f.stem)]
    sources.sort(key=lambda f: (SLOW.index(f.stem) if f.stem in SLOW else len(SLOW), f.stem))
    if not sources:
        sys.exit(f"{settings.programs}: no program is called {settings.only!r}")
    settings.out.mkdir(parents=True, exist_ok=True)
    print(f"{'ms: first + imports':<17}" + "".join(f"{p:>16}" for p in settings.phases)[2:] + f"{'context':>9}  compiles", flush=True)
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(settings.jobs) as pool:
        for o in pool.map(lambda f: program(f, settings.out, settings).all_runs(), sources):
            outcomes.append(o)
            if o.runs:
                print(row(o, settings.phases), *notes(o, settings.phases), sep="\n", flush=True)
    nothing = [f"{o.name} ({o.why_not})" for o in outcomes if not o.runs]
    if nothing:
        print("not run:", ", ".join(nothing))
    counts = counted(outcomes, settings.phases)
    if settings.json:
        runs = {o.name: {"why_not": o.why_not, "runs": {p: dataclasses.asdict(one) for p, one in o.runs.items()}} for o in outcomes}
        settings.json.write_text(json.dumps({"counts": counts, "programs": runs}, indent=1) + "\n")
    print(f"{counts['right']} runs right, {counts['wrong']} wrong, {counts['not_run']} not run; {counts['answered']} compiles answered, "
          f"{counts['same']} the same when made again, {counts['different']} different; {time.monotonic() - began:.0f} s")
    return 1 if counts["wrong"] else 0 if counts["right"] else 77


if __name__ == "__main__":
    sys.exit(main())
