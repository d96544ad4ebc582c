# SPDX-License-Identifier: Apache-2.0
"""`kiln run`. The same answers with Kiln as without, from whatever state the cache is in; and what is looked at to see that one fits."""

import json
import os
import re
import shutil
import subprocess

from _run import CACHE, HERE, NVJITLINK, NVRTC, PYTHON, SCRATCH, WORK, bare, check, one, run, run_tests, test, under, write


@test
def answers_are_the_same():
    calls = [PYTHON, HERE / "_foreign_calls.py", NVRTC, NVJITLINK or "-", WORK]
    want = json.loads(bare(*calls).stdout)

    def compare(state, options=(), expected=want, **environment):
        done = under(*calls, options=options, **environment)
        got = json.loads(done.stdout)
        different = [k for k in expected if got.get(k) != expected[k]]
        check(not different, f"{state}: other answers to {different}", *(f"{k}\n  want {expected[k]}\n  got  {got.get(k)}" for k in different))
        return done.stderr

    compare("empty cache")
    said = compare("full cache", options=("-v",))
    made = [line for line in said.splitlines() if " made " in line and "run: nv" in line]
    check(not made, "with a full cache nothing is made", *made)
    compare("read-only cache", KILN_READONLY=1)
    compare("no cache", KILN_DISABLE=1)
    compare("a cache that cannot be made", KILN_CACHE_DIR="/proc/nowhere")
    write("work/include/kiln_test_header.h", "#define VALUE 42\n")
    edited = json.loads(bare(*calls).stdout)
    check(edited["header on disk"] != want["header on disk"], "the edit changes the result")
    compare("a header edited", expected=edited)
    write("work/include/kiln_test_header.h", "#define VALUE 41\n")
    compare("the edit taken back")
    said = compare("every answer verified", options=("--verify",))
    check("0 different" in said, "nothing differs when it is made again", said)
    for entry in CACHE.glob("v1/*/*.kiln"):
        data = bytearray(entry.read_bytes())
        data[len(data) // 2] ^= 1
        entry.write_bytes(data)
    compare("every entry damaged")
    flags = json.loads(bare(*calls, NVRTC_APPEND_FLAGS="-lineinfo").stdout)
    compare("flags from the environment", expected=flags, NVRTC_APPEND_FLAGS="-lineinfo")


@test
def a_hit_loads_no_compiler():
    want, _ = one(100, kiln=False)
    first, said = one(100)
    check(first == {**want, "loaded": False} and " 1 made" in said, "made first, by a worker", first, want, said)
    again, said = one(100)
    check(again == {**want, "loaded": False}, "answered without the compiler", again, want)
    check("1 compiles answered" in said and " 0 made" in said, "one line says so", said)
    listed = run("cache", "list").stdout
    check("nvrtc" in listed, "the answer is in Kiln's cache", listed)
    check(run("cache", "verify").returncode == 0, "and passes its checks")


@test
def links_of_files():
    """A file counts by what was in it when the program gave it to the linker, whatever became of it since; what comes after the end is told by the linker itself."""
    if NVJITLINK is None:
        return
    write("links.py", r'''
import ctypes as C, hashlib, os, sys
n, j = C.CDLL(sys.argv[1]), C.CDLL(sys.argv[2])
def made(source):
    p = C.c_void_p(); z = C.c_size_t(); o = (C.c_char_p * 2)(b"-arch=sm_90", b"-rdc=true")
    assert n.nvrtcCreateProgram(C.byref(p), source.encode(), b"k.cu", 0, None, None) == 0 and n.nvrtcCompileProgram(p, 2, o) == 0
    n.nvrtcGetCUBINSize(p, C.byref(z)); d = C.create_string_buffer(z.value); n.nvrtcGetCUBIN(p, d)
    return d.raw
def said(h):
    out = []
    for kind in ("LinkedCubin", "ErrorLog"):
        z = C.c_size_t(); out.append(getattr(j, f"nvJitLinkGet{kind}Size")(h, C.byref(z)))
        d = C.create_string_buffer(max(1, z.value)); out.append(getattr(j, f"nvJitLinkGet{kind}")(h, d) if z.value else None); out.append(hashlib.sha256(d.raw).hexdigest()[:8])
    return out
h = C.c_void_p(); print(j.nvJitLinkCreate(C.byref(h), 1, (C.c_char_p * 1)(b"-arch=sm_90")))
place = sys.argv[3].encode()  # one file for all of them, one after the other
for source in sys.argv[4:]:
    with open(place, "wb") as f: f.write(made(source))
    print(j.nvJitLinkAddFile(h, 1, place))
os.unlink(place)
print(j.nvJitLinkComplete(h), said(h))
print(j.nvJitLinkComplete(h), said(h))
print(j.nvJitLinkAddData(h, 1, b"x", C.c_size_t(1), b"late"), said(h), j.nvJitLinkDestroy(C.byref(h)))
''')
    pieces = ["__device__ int f(int x) { return x + %d; }", "__device__ int g(int x) { return x * 3; }", "__device__ int f(int); __device__ int g(int); extern \"C\" __global__ void k(int* a) { *a = f(g(*a)) + %d; }"]
    for first, last in ((1, 1), (1, 1), (1, 2), (2, 2), (1, 2)):
        words = [PYTHON, SCRATCH / "links.py", NVRTC, NVJITLINK, SCRATCH / "piece", pieces[0] % first, pieces[1], pieces[2] % last]
        want, done = bare(*words).stdout, under(*words)
        check(done.stdout == want and want.startswith("0\n0\n0\n0\n0 "), f"linked of files, {first} and {last}", want, done.stdout, done.stderr)


@test
def links_of_temporary_files():
    """What an input is called decides messages alone: a link is answered whatever its inputs are called this time."""
    if NVJITLINK is None:
        return
    write("inputs.py", r'''
import ctypes as C, hashlib, sys
n, j = C.CDLL(sys.argv[1]), C.CDLL(sys.argv[2]); z = C.c_size_t()
def made(source):
    p = C.c_void_p(); o = (C.c_char_p * 2)(b"-arch=sm_90", b"-rdc=true")
    assert n.nvrtcCreateProgram(C.byref(p), source.encode(), b"k.cu", 0, None, None) == 0 and n.nvrtcCompileProgram(p, 2, o) == 0
    n.nvrtcGetCUBINSize(p, C.byref(z)); d = C.create_string_buffer(z.value); n.nvrtcGetCUBIN(p, d)
    return d.raw
def log(h):
    j.nvJitLinkGetErrorLogSize(h, C.byref(z)); d = C.create_string_buffer(b"untouched", z.value + 10); j.nvJitLinkGetErrorLog(h, d)
    return d.value
h = C.c_void_p(); assert j.nvJitLinkCreate(C.byref(h), 1, (C.c_char_p * 1)(b"-arch=sm_90")) == 0
for name, source in zip(sys.argv[4:6], ("__device__ int f(int x) { return x + 7; }", "__device__ int f(int); extern \"C\" __global__ void k(int* a) { *a = f(*a); }" if sys.argv[3] == "good" else "__device__ int f(int x) { return x; }")):
    d = made(source); print(j.nvJitLinkAddData(h, 1, d, C.c_size_t(len(d)), name.encode()))
print(j.nvJitLinkAddData(h, 1, b"rubbish", C.c_size_t(7), b"not-a-cubin") if sys.argv[3] == "bad" else "", j.nvJitLinkComplete(h))
j.nvJitLinkGetLinkedCubinSize(h, C.byref(z)); d = C.create_string_buffer(max(1, z.value)); j.nvJitLinkGetLinkedCubin(h, d)
print(hashlib.sha256(d.raw).hexdigest() if sys.argv[3] == "good" else "", log(h))
h = C.c_void_p(3); print(j.nvJitLinkCreate(C.byref(h), 1, (C.c_char_p * 1)(b"-no-such-option")), h.value not in (3, None), log(h), j.nvJitLinkDestroy(C.byref(h)))
h = C.c_void_p(3); print(j.nvJitLinkCreate(C.byref(h), 0, (C.c_char_p * 1)()), j.nvJitLinkCreate(C.byref(C.c_void_p()), 0, None), j.nvJitLinkComplete(None))
h = C.c_void_p(); j.nvJitLinkCreate(C.byref(h), 1, (C.c_char_p * 1)(b"-arch=sm_90")); print([j.nvJitLinkAddData(h, kind, None, C.c_size_t(0), b"none") for kind in (1, 2, 3)], log(h))
''')
    for kind, first, made in (("good", "/tmp/one/first_piece.o", 3), ("good", "/tmp/other/another_piece.o", 0), ("twice", "twice_in_this.o", None), ("bad", "bad_with_this.o", None)):
        words = [PYTHON, SCRATCH / "inputs.py", NVRTC, NVJITLINK, kind, first, "/tmp/" + first[5:] + ".second"]
        want, done = bare(*words).stdout, under(*words)
        check(done.stdout == want, f"a link that is {kind}", want, done.stdout, done.stderr)
        check(made is None or f" {made} made" in done.stderr, f"{made} were made", done.stderr)


@test
def compiles_side_by_side():
    """One that cannot be kept reads its headers itself, whoever else is compiling in the same process; a pipe is read by the compiler alone."""
    write("side/named.h", "#define WHEN __TIME__\n")
    write("side.py", r'''
import ctypes as C, sys, threading
n = C.CDLL(sys.argv[1]); said = []
def compiled(text, *options):
    p = C.c_void_p(); o = [b"-arch=compute_90", *options]
    n.nvrtcCreateProgram(C.byref(p), text, None, 0, None, None); status = n.nvrtcCompileProgram(p, len(o), (C.c_char_p * len(o))(*o))
    z = C.c_size_t(); n.nvrtcGetProgramLogSize(p, C.byref(z)); log = C.create_string_buffer(max(1, z.value)); n.nvrtcGetProgramLog(p, log)
    said.append((status, log.value))
include = b"-I" + sys.argv[2].encode()
def timed():
    for i in range(12): compiled(b"#include <named.h>\n__device__ char const* w = WHEN; __global__ void t() {} // %d" % i, include)
def kept():
    for i in range(12): compiled(b"__global__ void k(int* a) { *a = %d; }" % i)
threads = [threading.Thread(target=f) for f in (timed, kept, timed, kept)]
for t in threads: t.start()
for t in threads: t.join()
print(sorted(set(said)))
''')
    done = under(PYTHON, SCRATCH / "side.py", NVRTC, SCRATCH / "side", KILN_WORKERS=0)
    check(done.stdout == "[(0, b'')]\n", "all compile", done.stdout, done.stderr)
    write("pipe.py", r'''
import ctypes as C, os, sys, threading
n = C.CDLL(sys.argv[1]); os.mkfifo(sys.argv[2] + "/piped.h")
def feed():
    try:
        with open(sys.argv[2] + "/piped.h", "w") as f: f.write("#define V 3\n")
    except OSError: pass  # nobody reads it to the end
t = threading.Thread(target=feed, daemon=True); t.start()
p = C.c_void_p(); o = (C.c_char_p * 2)(b"-arch=compute_90", b"-I" + sys.argv[2].encode())
n.nvrtcCreateProgram(C.byref(p), b"#include <piped.h>\n__global__ void k(int* a) { *a = V; }", None, 0, None, None); print(n.nvrtcCompileProgram(p, 2, o)); os.unlink(sys.argv[2] + "/piped.h")
''')
    (SCRATCH / "pipes").mkdir()
    words = [PYTHON, SCRATCH / "pipe.py", NVRTC, SCRATCH / "pipes"]
    want, done = bare(*words).stdout, under(*words)
    check(done.stdout == want, "a header that is a pipe", want, done.stdout, done.stderr)


@test
def what_is_the_programs_alone():
    """What the compiler finds in the program's process and nowhere else: descriptors, and how its thread computes."""
    write("alone.py", r'''
import ctypes as C, hashlib, os, struct, sys
m, n = C.CDLL("libm.so.6"), C.CDLL(sys.argv[1]); fd = os.dup2(os.open(sys.argv[2], os.O_RDONLY), 77); z = C.c_size_t()
upward, (place, small_ones_are_zero) = {"x86_64": (0x800, (28, 0x8040)), "aarch64": (0x400000, (0, 1 << 24))}[os.uname().machine]
def compute(how):
    m.fesetround(upward if how == "upward" else 0)
    all = bytearray(64); m.fegetenv((C.c_char * 64).from_buffer(all)); word, = struct.unpack_from("<I", all, place)
    struct.pack_into("<I", all, place, word | small_ones_are_zero if how == "fast" else word & ~small_ones_are_zero)
    assert m.fesetenv((C.c_char * 64).from_buffer(all)) == 0
def compiled(text, *options, kind="PTX"):
    p = C.c_void_p(); o = (C.c_char_p * len(options))(*options)
    n.nvrtcCreateProgram(C.byref(p), text, None, 0, None, None); status = n.nvrtcCompileProgram(p, len(options), o)
    getattr(n, f"nvrtcGet{kind}Size")(p, C.byref(z)); d = C.create_string_buffer(max(1, z.value)); getattr(n, f"nvrtcGet{kind}")(p, d)
    return status, d.raw
def linked(first, last):
    """Begun by a thread that computes in one way, and ended in another."""
    h = C.c_void_p(); compute(first); j.nvJitLinkCreate(C.byref(h), 2, (C.c_char_p * 2)(b"-arch=sm_90", b"-lto"))
    for part in parts: assert j.nvJitLinkAddData(h, 3, part, C.c_size_t(len(part)), b"part") == 0
    compute(last); status = j.nvJitLinkComplete(h); compute("usually")
    j.nvJitLinkGetLinkedCubinSize(h, C.byref(z)); d = C.create_string_buffer(z.value); j.nvJitLinkGetLinkedCubin(h, d); j.nvJitLinkDestroy(C.byref(h))
    return status, d.raw
def tell(what, status, bytes): print(what, status, hashlib.sha256(bytes).hexdigest()[:12])
tell("file", *compiled(b'#include "/proc/self/fd/%d"\n__global__ void k(int* a) { *a = V; }' % fd, b"-arch=compute_90"))
ways = ["upward", "fast", "usually"][::int(sys.argv[3])]
for how in ways:
    compute(how); said = compiled(b"__global__ void k(double* a) { constexpr double c = 0.1 * 0.1 * 0.7; a[0] = c; a[1] = sinf(0.3f); a[2] = ceil(1e-300 * 1e-10); }", b"-arch=compute_90"); compute("usually")
    tell(how, *said)
if sys.argv[4:]:
    j = C.CDLL(sys.argv[4]); lto = (b"-arch=sm_90", b"-dlto", b"-rdc=true")
    parts = [compiled(text, *lto, kind="LTOIR")[1] for text in (b"__device__ double f(double x) { return ceil(x * 1e-10); }", b'__device__ double f(double); extern "C" __global__ void k(double* a) { *a = f(1e-300); }')]
    for how in ways: tell(f"link {how}", *linked("usually", how))
    tell("link begun otherwise", *linked("fast", "usually"))
''')
    header = write("alone/v.h", "#define V 5\n")
    seen = {}
    for workers in (1, 0):
        for order in (1, -1):
            words = [PYTHON, SCRATCH / "alone.py", NVRTC, header, order, *filter(None, [NVJITLINK])]
            # NVRTC's own cache, beside a driver, has what another thread made and computes otherwise.
            place = {"KILN_CACHE_DIR": SCRATCH / f"alone.{workers}.{order}", "CUDA_CACHE_DISABLE": 1}
            want, done = bare(*words, CUDA_CACHE_DISABLE=1).stdout, under(*words, KILN_WORKERS=workers, **place)
            check(done.stdout == want, f"workers {workers}, order {order}", want, done.stdout, done.stderr)
            done = under(*words, **place)
            check(done.stdout == want, f"workers {workers}, order {order}, again", want, done.stdout, done.stderr)
            seen |= dict(line.split(" 0 ") for line in want.splitlines())
    if os.uname().machine != "x86_64":  # there the newest compilers work out numbers by themselves, whatever their thread does
        check(len({seen[how] for how in ("upward", "fast", "usually")}) == 3, "how a thread computes makes a difference", seen)
        check(NVJITLINK is None or seen["link fast"] != seen["link usually"], "when a link ends", seen)


@test
def forbidden_is_forbidden():
    done, said = one(200, options=("--jit=forbid",))
    check(done["status"] == 6 and "--jit=forbid" in done["log"] and "request" in done["log"], "what is not kept fails to compile", done)
    check("would have been compiled" in said and "1 forbidden" in said, "and is named", said)
    # By the request that it is kept under, whatever the folder is called this time.
    write("request.py", r'''
import ctypes as C, os, sys
n = C.CDLL(sys.argv[1]); p = C.c_void_p(); options = (C.c_char_p * 1)(b"-arch=sm_90")
n.nvrtcCreateProgram(C.byref(p), b'extern "C" __global__ void k(int* a) { *a = 202; }', f"/tmp/x{os.getpid()}/k.cu".encode(), 0, None, None)
n.nvrtcCompileProgram(p, 1, options); z = C.c_size_t(); n.nvrtcGetProgramLogSize(p, C.byref(z)); log = C.create_string_buffer(z.value); n.nvrtcGetProgramLog(p, log)
print(log.value.decode())
''')
    words, events = [PYTHON, SCRATCH / "request.py", NVRTC], SCRATCH / "forbidden.jsonl"
    asked = set()
    for _ in range(2):
        done = under(*words, options=("--jit=forbid", "--json"), KILN_EVENTS=events)
        asked |= {re.search("request ([0-9a-f]{64})", done.stdout).group(1), json.loads(done.stderr)["happenings"][0]["request"]}
    kept = json.loads(under(*words, options=("--json",)).stderr)["happenings"][0]
    check(asked == {kept["request"]} and kept["what"] == "made", "one request", asked, kept)
    named = [json.loads(line) for line in events.read_text().splitlines()]
    check({line["request"] for line in named if line["kind"] != "note"} == {kept["request"][:16]}, "in events, too", *named)
    one(200)
    done, said = one(200, options=("--jit=forbid",))
    check(done["status"] == 0 and not done["loaded"] and " 0 made" in said, "what is kept is answered", done, said)
    _, said = one(201, options=("--jit=warn",))
    check("made 'k'" in said, "warn names what was made", said)


@test
def a_difference_is_found():
    entries = set(CACHE.glob("v1/*/*.kiln"))
    one(300)
    mine = [f for f in CACHE.glob("v1/*/*.kiln") if f not in entries]
    one(301)
    # The bytes of one kernel under the key of another cannot be had by moving files: the address is checked.
    theirs = [f for f in CACHE.glob("v1/*/*.kiln") if f not in entries and f not in mine]
    check(len(mine) == 1 and len(theirs) == 1, "one entry each", mine, theirs)
    shutil.copy(theirs[0], mine[0])
    want, _ = one(300, kiln=False)
    got, said = one(300, options=("--verify",))
    check(got["cubin"] == want["cubin"], "an entry under another's name is not used", said)
    compiler = shutil.which("cc")
    if compiler is None:
        return
    # A linker that says something else each time.
    outputs = "".join(f'int nvJitLinkGet{kind}Size(void* h, size_t* s) {{ *s = {size}; return 0; }}\nint nvJitLinkGet{kind}(void* h, char* d) {{ {text} return 0; }}\n'
                      for kind, size, text in (("LinkedCubin", 5, 'memcpy(d, getenv("SAYS"), 5);'), ("LinkedPtx", 0, ""), ("LinkedLTOIR", 0, ""), ("ErrorLog", 0, ""), ("InfoLog", 0, "")))
    write("moody/moody.c", '#include <stdlib.h>\n#include <string.h>\nint nvJitLinkVersion(unsigned* a, unsigned* b) { *a = 13; *b = 0; return 0; }\nint nvJitLinkCreate(void** h, unsigned n, char const** o) { *h = malloc(1); return 0; }\n'
          'int nvJitLinkDestroy(void** h) { free(*h); *h = 0; return 0; }\nint nvJitLinkAddData(void* h, int t, void const* d, size_t s, char const* n) { return 0; }\nint nvJitLinkAddFile(void* h, int t, char const* n) { return 0; }\n'
          'int nvJitLinkComplete(void* h) { return strcmp(getenv("SAYS"), "never") == 0 ? 6 : 0; }\n' + outputs)
    moody = SCRATCH / "moody/libnvJitLink.so.13"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wl,--build-id", f"-Wl,-soname,{moody.name}", "-o", moody, SCRATCH / "moody/moody.c"], check=True)
    write("ask.py", "import ctypes as C, sys; j = C.CDLL(sys.argv[1]); h = C.c_void_p(); j.nvJitLinkCreate(C.byref(h), 0, (C.c_char_p * 1)()); j.nvJitLinkAddData(h, 1, b'x', C.c_size_t(1), b'x')\n"
          "status = j.nvJitLinkComplete(h); d = C.create_string_buffer(6); j.nvJitLinkGetLinkedCubin(h, d) if status == 0 else None; print(status, d.value.decode())")
    ask, verify = [PYTHON, SCRATCH / "ask.py", moody], ("--verify",)
    # What differs is removed, and the next run makes it anew.
    for says, options, want, status in (("first", (), "0 first", 0), ("other", (), "0 first", 0), ("other", verify, "0 other", 1), ("other", (), "0 other", 0), ("never", verify, "6 ", 1),
                                        ("first", (), "0 first", 0), ("first", verify, "0 first", 0)):
        done = under(*ask, options=options, status=status, SAYS=says)
        check(done.stdout == want + "\n", f"a linker that says '{says}' {options}", done.stdout, done.stderr)
        check(("it is removed from the cache" in done.stderr) == (status == 1), "what became of it", done.stderr)
    done = under(*ask, options=verify, status=1, SAYS="other", KILN_READONLY=1)
    check("it stays in a cache or capsule that cannot be written" in done.stderr, "where nothing may be removed", done.stderr)
    under("sh", "-c", '"$@"; exit 5', "-", *ask, options=verify, status=1, SAYS="other")


@test
def a_time_is_no_difference():
    """How long the assembler took; and that NVRTC's own cache, beside a driver, has no words of it."""
    for number in (960, 961):
        one(961, "--ptxas-options=-v", kiln=False)
        for _ in range(2):
            _, said = one(number, "--ptxas-options=-v", options=("--verify",))
            check("1 made again and the same, 0 different" in said, "how long the assembler took", said)


@test
def a_text_of_two_forms_is_no_difference():
    # NVRTC 13.0 numbers the registers of this one in two ways, one or the other from compile to compile: the same code.
    source = """__device__ double series(double x, double q) {
    double const far = __longlong_as_double(0x7ff0000000000000), none = __longlong_as_double(0x7ff8000000000000);
    if (x == 1) return far;
    if (x < 1) return none;
    if (q <= 0) { if (q == floor(q)) return far; if (x != floor(x)) return none; }
    double sum = pow(q, -x), last = 0;
    for (int i = 0; i < 9 || q < 9; ++i) { q += 1; last = pow(q, -x); sum += last; if (last < 1e-16 * sum) return sum; }
    return sum;
}
extern "C" __global__ void k(double* o, double const* p, int n) {
    double out[4];
    #pragma unroll
    for (int j = 0; j < 4; ++j) if (j < n) out[j] = series(p[j], p[j + 4]);
    #pragma unroll
    for (int j = 0; j < 4; ++j) o[j] = out[j];
}"""
    one(0, source=source)
    for _ in range(6):
        _, said = one(0, source=source, options=("--verify",))
        check("1 made again and the same, 0 different" in said, "one of its forms", said)


@test
def names_of_a_process_are_no_difference():
    # What is internal NVRTC names after the first name that others can see, and where there are templates alone after the time and its process.
    source = "namespace { __device__ int hidden = %d; } template <class T> __global__ void k(T* a) { *a += hidden++; } template __global__ void k<int>(int*);"
    apart = {one(0, kiln=False, source=source % 7)[0]["cubin"] for _ in range(2)}
    check(len(apart) == 2, "two processes give it two names", apart)
    kept, _ = one(0, source=source % 7)
    got, said = one(0, source=source % 7, options=("--verify",))
    check(got["cubin"] == kept["cubin"] and "1 made again and the same, 0 different" in said, "an answer with a name of another process", said)
    _, said = one(0, source=source % 8, options=("--verify",))
    check("1 made again and the same, 0 different" in said and " 1 made" in said, "and one that a worker made", said)


run_tests()
