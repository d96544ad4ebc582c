# SPDX-License-Identifier: Apache-2.0
"""`kiln run`. Who makes what is missing, who waits for it, and what is read ahead."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from _run import CACHE, CLI, CUDA, KERNEL, LONG, NVRTC, PYTHON, SCRATCH, SOURCE, check, children_of, data, maps_of, one, run, run_tests, test, under, write


@test
def failures_do_not_queue():
    """Ranks whose compile fails take as long as one and what the machine is short of, not one after the other."""
    write("fails.py", r'''
import ctypes as C, sys, time
n = C.CDLL(sys.argv[1]); p = C.c_void_p(); begin = time.monotonic()
n.nvrtcCreateProgram(C.byref(p), sys.argv[2].encode(), None, 0, None, None)
status = n.nvrtcCompileProgram(p, 1, (C.c_char_p * 1)(b"-arch=sm_90"))
print(status, begin, time.monotonic())
''')
    source = LONG % 490 + "\n__global__ void wrong() { asm(\"nonsense;\"); }"
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("KILN_")}, "KILN_CACHE_DIR": str(SCRATCH / "queue"), "KILN_WORKERS": "0"}
    ranks = [subprocess.Popen([CLI, "run", "-q", "--", PYTHON, SCRATCH / "fails.py", NVRTC, source], stdout=subprocess.PIPE, text=True, env=env) for _ in range(6)]
    said = [r.communicate()[0].split() for r in ranks]
    check(all(s[0] != "0" for s in said), "none compiles", said)
    ends = sorted(float(s[2]) for s in said)
    first = ends[0] - min(float(s[1]) for s in said)
    check(ends[-1] - ends[1] < 2.5 * first, "all that waited go on at once", first, ends)


@test
def who_waits_for_another_says_so():
    events, cache = SCRATCH / "joined.jsonl", {"KILN_CACHE_DIR": SCRATCH / "joined"}
    write("joined.py", r'''
import ctypes as C, sys, threading
n = C.CDLL(sys.argv[1]); options = (C.c_char_p * 1)(b"-arch=sm_90"); together = threading.Barrier(3)
def compiled():
    p = C.c_void_p(); n.nvrtcCreateProgram(C.byref(p), sys.argv[2].encode(), None, 0, None, None); together.wait()
    print(n.nvrtcCompileProgram(p, 1, options))
threads = [threading.Thread(target=compiled) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
''')
    slow = "template <int N> struct s { static __device__ int f(int x) { return s<N - 1>::f(x * N + 1) ^ s<N - 1>::f(x + N); } };\n" \
           'template <> struct s<0> { static __device__ int f(int x) { return x; } };\nextern "C" __global__ void k(int* a) { *a = s<15>::f(*a); }'
    done = under(PYTHON, SCRATCH / "joined.py", NVRTC, slow, options=("--json",), KILN_EVENTS=events, **cache)
    happenings = json.loads(done.stderr)["happenings"]
    check(sorted(h["what"] for h in happenings) == ["answered", "answered", "made"], "one makes it", *happenings)
    # Who came when it was there already has not waited.
    joined = [h for h in happenings if h["what"] == "answered" and h.get("waited_us", 0) > 0]
    check(joined, "the others wait for it", *happenings)
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    waits = [line for line in lines if line["kind"] == "waited"]
    check(len(waits) == 1 + len(joined), "a wait for each", *lines)
    check(max(line["ns"] for line in lines if line["kind"] == "found") < min(w["ns"] for w in waits), "and is not read meanwhile", *lines)
    check(data("events", events, "--summary")["blocked"] == 1 + len(joined), "kiln events", run("events", events, "--summary").stdout)
    check(data("status", events)["waits"] == 1 + len(joined), "kiln status", data("status", events))
    stats = data("cache", "stats", **cache)
    check(stats["blocked"] == 1 + len(joined) and stats["served_without_waiting"] == 2 - len(joined), "kiln cache stats", stats)


def worker_at_work(child):
    """The process that compiles for a program under this `kiln run`."""
    worker = None
    while worker is None and child.poll() is None:
        worker = next((c for c in children_of(child.pid) if name_of(c) in ("kiln-worker", "kiln-foreign-wo") and "libnvrtc-builtins" in maps_of(c)), None)
    check(worker is not None, "a worker was at work")
    return int(worker)


@test
def misses_go_to_workers():
    want, _ = one(700, kiln=False)
    got, said = one(700, options=("--json",))
    happened = json.loads(said)["happenings"]
    check(got == {**want, "loaded": False} and [h["what"] for h in happened] == ["made"], "made elsewhere: the compiler is not mapped", got, said)
    # Without one, the program compiles itself: no such program, one that is no worker, one that ends at once.
    for number, none in enumerate(({"KILN_WORKER": "/nowhere/kiln-worker"}, {"KILN_WORKER": "/bin/cat"}, {"KILN_WORKER": "/bin/false"}, {"KILN_WORKERS": 0})):
        want, _ = one(710 + number, kiln=False)
        got, said = one(710 + number, **none)
        check(got == {**want, "loaded": True} and " 1 made" in said, f"{none}: no worker", got, want, said)
    # What does not compile says the same, in whatever order it is asked.
    bad = 'extern "C" __global__ void k(int* a) { *a = nonsense; }'
    want, _ = one(0, kiln=False, source=bad)
    got, said = one(0, source=bad)
    check(got == {**want, "loaded": False} and want["status"] == 6 and "1 did not compile" in said, "a failure is passed on", got, want, said)
    # A worker that is killed in the middle: the program compiles itself.
    program = [PYTHON, SCRATCH / "one.py", NVRTC, LONG % 720, "-arch=sm_90"]
    child = subprocess.Popen([CLI, "run", "--", *program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
    os.kill(worker_at_work(child), signal.SIGKILL)
    out, said = child.communicate(timeout=200)
    got = json.loads(out)
    check(got["status"] == 0 and got["loaded"] and " 1 made" in said, "a killed worker costs time alone", got, said)
    # One that is stopped: after a while nobody waits for it.
    program[3] = LONG % 721
    child = subprocess.Popen([CLI, "run", "--", *program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
    os.kill(worker_at_work(child), signal.SIGSTOP)
    out, said = child.communicate(timeout=200)
    check(json.loads(out)["status"] == 0 and " 1 made" in said, "a stopped worker costs time alone", out, said)
    # A program that is killed in the middle, while kiln run goes on: its worker ends with it.
    endless = 'extern "C" __global__ void k(double* a) {' + "".join(f"a[{i}] = pow(a[{i + 1}], a[{i}] + {i}) + sin(a[{i}]);\n" for i in range(400)) + "}"
    child = subprocess.Popen([CLI, "run", "--", "sh", "-c", '"$0" "$@" & echo $!; read rest', *[str(w) for w in program[:3]], endless, "-arch=sm_90"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
    compiling, worker, end = int(child.stdout.readline()), None, time.time() + 60
    while worker is None and child.poll() is None and time.time() < end:
        worker = next((c for c in children_of(child.pid) if "libnvrtc-builtins" in maps_of(c)), None)
    os.kill(compiling, signal.SIGKILL)
    check(worker is not None, "a worker was at work for it")
    end = time.time() + 20
    while worker in children_of(child.pid) and name_of(worker) and state_of(worker) != "Z" and time.time() < end:
        time.sleep(0.01)
    check(time.time() < end, "the worker of a program that died is gone")
    child.communicate("\n", timeout=60)
    # A program that closes what it does not know, and opens files or sockets of its own there: nothing of ours is written to them, and they
    # stay open.
    write("closer.py", r'''
import ctypes as C, os, select, socket, sys
n = C.CDLL(sys.argv[1])
def compiled(text):
    p = C.c_void_p(); o = (C.c_char_p * 1)(b"-arch=sm_90")
    n.nvrtcCreateProgram(C.byref(p), text, None, 0, None, None)
    return n.nvrtcCompileProgram(p, 1, o)
first = compiled(b"__global__ void a() {} // %d" % os.getpid())
ours = [int(f) for f in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{f}") and os.readlink(f"/proc/self/fd/{f}").startswith("socket:")]
os.closerange(3, 256)
if sys.argv[2] == "files":
    mine = [os.open(sys.argv[3], os.O_RDWR | os.O_CREAT) for _ in range(200)]
    grown = lambda: os.path.getsize(sys.argv[3])
else:
    pairs = [socket.socketpair() for _ in range(100)]
    mine = [s.fileno() for pair in pairs for s in pair]
    def grown():
        ready = select.select([s for pair in pairs for s in pair], [], [], 0)[0]
        return len(ready)
about = [(os.fstat(f).st_dev, os.fstat(f).st_ino) for f in mine]
second = compiled(b"__global__ void b() {} // %d" % os.getpid())
def still(f, what):
    try: return (os.fstat(f).st_dev, os.fstat(f).st_ino) == what
    except OSError: return False
print(first, second, grown(), all(map(still, mine, about)), len(ours) > 0 and set(ours) <= set(mine))
''')
    for kind in ("files", "sockets"):
        done = under(PYTHON, SCRATCH / "closer.py", NVRTC, kind, SCRATCH / "mine")
        check(done.stdout == "0 0 0 True True\n", f"{kind} of the program are its own", done.stdout, done.stderr)


@test
def timers_of_the_program_do_not_make_it_wait():
    """Signals that end its waits early, again and again, do not keep it from giving up on who does not answer."""
    write("timed.py", "import atexit, os, signal, sys\nsignal.signal(signal.SIGALRM, lambda *_: None)\nsignal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)\n"
          "if sys.argv.pop(1) == 'stops kiln run':\n    os.kill(os.getppid(), signal.SIGSTOP)\n    atexit.register(os.kill, os.getppid(), signal.SIGCONT)\n" + (SCRATCH / "one.py").read_text())
    for number, whom in enumerate(("stops kiln run", "its worker is stopped")):
        words = [PYTHON, SCRATCH / "timed.py", whom, NVRTC, LONG % (730 + number), "-arch=sm_90"]
        child = subprocess.Popen([CLI, "run", "--", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
        try:
            if number == 1:
                os.kill(worker_at_work(child), signal.SIGSTOP)
            out, said = child.communicate(timeout=100)
        finally:
            child.kill()
        check(json.loads(out)["status"] == 0 and " 1 made" in said, whom, out, said)


@test
def headers_are_read_ahead():
    if not (CUDA / "include/cuda_fp16.h").exists():
        return
    write("ahead.py", r'''
import ctypes as C, os, sys, time
known, n = os.environ.get("KILN_RUN_KNOWN", ""), C.CDLL(sys.argv[1])
end = time.time() + float(sys.argv[3])
while not os.path.exists(known) and time.time() < end: time.sleep(0.002)
def read(): return int(open("/proc/self/io").read().split()[1])
p = C.c_void_p(); o = (C.c_char_p * 2)(b"-arch=sm_90", b"-I" + sys.argv[2].encode()); before = read()
n.nvrtcCreateProgram(C.byref(p), b"#include <cuda_fp16.h>\nextern \"C\" __global__ void half_sum(__half* a) { *a = *a + *a; }", None, 0, None, None)
print(n.nvrtcCompileProgram(p, 2, o), os.path.exists(known), read() - before)
''')

    def ahead(patience):
        done = under(PYTHON, SCRATCH / "ahead.py", NVRTC, CUDA / "include", patience)
        status, known, read = done.stdout.split()
        return status, known == "True", int(read), done.stderr

    status, known, _, said = ahead(0)
    check(status == "0" and not known and " 1 made" in said, "the first run knows nothing", said)
    kept = "".join(f.read_text() for f in (CACHE / "run/memory").iterdir())
    check(f"{CUDA}/include/cuda_fp16.h\n" in kept, "it leaves what the next one will need", kept)
    status, known, with_list, said = ahead(60)
    check(status == "0" and known and " 0 made" in said, "the second has it read while it starts", said)
    shutil.rmtree(CACHE / "run/memory")
    status, known, without, said = ahead(0)
    check(status == "0" and not known and without > 3 * with_list, "and reads less itself", with_list, without)
    left = [f.name for f in (CACHE / "run").iterdir() if f.name.split("-")[0] in ("known", "headers", "door", "log", "trial")]
    check(not left, "nothing is left behind", left)
    # A run that is killed cannot tidy up: others do, once a day, after a week.
    check((CACHE / "run/swept").exists(), "the day of the last time is kept")
    os.utime(CACHE / "run/swept", (time.time() - 2 * 86400,) * 2)
    long_ago, lately = CACHE / "run/log-1-0123456789abcdef", CACHE / "run/log-2-0123456789abcdef"
    for file in (long_ago, lately):
        file.touch()
    os.utime(long_ago, (time.time() - 8 * 86400,) * 2)
    under("true")
    check(not long_ago.exists() and lately.exists(), "what killed runs left goes after a week")
    lately.unlink()


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def state_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


@test
def many_at_once_make_it_once():
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("rank.c", r'''
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char** v) {
    void* h = dlopen(v[1], RTLD_NOW);
    int (*create)(void**, char const*, char const*, int, void*, void*) = dlsym(h, "nvrtcCreateProgram");
    int (*compile)(void*, int, char const**) = dlsym(h, "nvrtcCompileProgram"), (*size)(void*, size_t*) = dlsym(h, "nvrtcGetCUBINSize");
    for (int k = 0; k < 3; ++k) {
        void* p = 0; char source[99]; char const* options[] = {"-arch=sm_90"}; size_t n = 0;
        snprintf(source, sizeof source, "extern \"C\" __global__ void rank%d(int* a) { *a = %d; }", k, k);
        if (create(&p, source, "rank.cu", 0, 0, 0) || compile(p, 1, options) || size(p, &n)) return 1;
        printf("%zu ", n);
    }
    return 0;
}
''')
    subprocess.run([compiler, "-w", "-o", SCRATCH / "rank", SCRATCH / "rank.c", "-ldl"], check=True)
    # Each rank under a kiln run of its own, as launchers do it; and all of them under one.
    alone = [CLI, "run", "--json", "--", SCRATCH / "rank", NVRTC]
    together = [CLI, "run", "--json", "--", "sh", "-c", 'for i in $(seq 64); do "$0" "$1" & done; wait', SCRATCH / "rank", NVRTC]
    for name, words, count in (("own", alone, 64), ("one", together, 1)):
        env = {**os.environ, "KILN_CACHE_DIR": str(SCRATCH / ("ranks" + name))}
        ranks = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) for _ in range(count)]
        ends = [r.communicate(timeout=250) for r in ranks]
        check({r.returncode for r in ranks} == {0}, "all end well", *(said for _, said in ends))
        all_happenings = [h["what"] for _, said in ends for h in json.loads(said)["happenings"]]
        check(all_happenings.count("made") == 3 and all_happenings.count("answered") == 64 * 3 - 3,
              f"{name}: three things, each made once", {h: all_happenings.count(h) for h in set(all_happenings)})
        sizes = {o for o, _ in ends} if count > 1 else {ends[0][0][:len(ends[0][0]) // 64]}
        check(len(sizes) == 1, "the same for all", sizes)


@test
def who_waits_need_not_read():
    """Of many that wait for one compile, each would read all its headers to see that the answer fits: who made it leaves what they are."""
    if not (CUDA / "include/cccl/cuda/std/complex").exists():
        return
    write("waiter.py", r'''
import ctypes as C, os, sys
n = C.CDLL(sys.argv[1])
def read(): return int(open("/proc/self/io").read().split()[1])
p = C.c_void_p(); o = (C.c_char_p * 2)(b"-arch=sm_90", b"-I" + sys.argv[2].encode()); before = read()
n.nvrtcCreateProgram(C.byref(p), b"#include <cuda/std/complex>\nextern \"C\" __global__ void k(cuda::std::complex<float>* a) { *a = *a * *a; }", None, 0, None, None)
print(n.nvrtcCompileProgram(p, 2, o), read() - before)
''')
    words = [PYTHON, SCRATCH / "waiter.py", NVRTC, CUDA / "include/cccl"]
    mine = {"KILN_CACHE_DIR": str(SCRATCH / "waiters")}
    one(800, **mine)  # what the compiler is has been read
    ranks = [subprocess.Popen([CLI, "run", "-v", "--", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **mine}) for _ in range(6)]
    ends = [r.communicate(timeout=250) for r in ranks]
    waited = [int(out.split()[1]) for out, said in ends if " answered 'k'" in said and out.startswith("0 ")]
    check(len(waited) == 5, "one made it, for all", *ends)
    (cost,) = [float(m.group(1)) for _, said in ends if (m := re.search(r" 1 made in ([\d.]+) s", said))]
    for _, said in ends:
        if told := re.search(r"answered in ([\d.]+) s, 0 made, ([\d.]+) s not waited", said):
            check(float(told.group(2)) <= max(0, cost - float(told.group(1))) + 0.2, "and who waited is not told otherwise", said, cost)
    shutil.rmtree(SCRATCH / "waiters/run")
    alone = int(under(*words, **mine).stdout.split()[1])
    check(min(waited) * 2 < alone, "who waited read less than who comes later", waited, alone)


@test
def the_example_starts_ranks():
    words = [SOURCE / "examples/run/ranks.sh", "2", PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 550, "-arch=sm_90"]
    done = run(*words[1:], program=words[0], KILN=CLI, KILN_CACHE_DIR=SCRATCH / "ranks.example")
    check(len(done.stdout.splitlines()) == 2 and done.stderr.count(", 1 made") == 1 and done.stderr.count("1 compiles answered") == 1, "one makes it, one is answered", done.stdout, done.stderr)
    run("2", "sh", "-c", 'exit $((RANK * 5))', program=words[0], status=5, KILN=CLI)


run_tests()
