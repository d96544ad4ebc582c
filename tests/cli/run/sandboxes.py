# SPDX-License-Identifier: Apache-2.0
"""`kiln run`. Kernels, filters and sandboxes that refuse what Kiln would do."""

import json
import os
import platform
import time

from _run import CLI, CUDA, KERNEL, NVRTC, PYTHON, SCRATCH, bare, check, mounted, mounts_are_possible, run, run_tests, test, under, write

# Runs a command as if the kernel did not have a system call (seccomp): old kernels, sandboxes.
WITHOUT_CALL = r'''
import ctypes as C, os, platform, struct, sys
arch = {"aarch64": 0xC00000B7, "x86_64": 0xC000003E}[platform.machine()]
load, equal, give, allow, no_such_call, kill = 0x20, 0x15, 0x06, 0x7FFF0000, 0x50000 | 38, 0x80000000
refusal = kill if os.environ.get("REFUSAL") == "kill" else no_such_call
steps = [(load, 0, 0, 4), (equal, 0, 2, arch), (load, 0, 0, 0), (equal, 1, 0, int(sys.argv[1])), (give, 0, 0, allow), (give, 0, 0, refusal)]
code = C.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
class program(C.Structure): _fields_ = [("count", C.c_ushort), ("code", C.c_void_p)]
libc = C.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, C.byref(program(len(steps), C.cast(code, C.c_void_p))), 0, 0): sys.exit(77)
if sys.argv[2] != "-": os.execvp(sys.argv[2], sys.argv[2:])
'''


@test
def kernels_and_sandboxes_that_know_less():
    write("without.py", WITHOUT_CALL)
    pidfd_open = 434
    words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 470, "-arch=sm_90"]
    started = time.time()
    done = run(SCRATCH / "without.py", pidfd_open, CLI, "run", "--", *words, program=PYTHON, status=None)
    if done.returncode != 77:
        check(not json.loads(done.stdout)["loaded"] and " 1 made" in done.stderr, "a worker makes it all the same", done.stdout, done.stderr)
        check(time.time() - started < 9, "nobody waits for one that does not come", time.time() - started)
    # Who started us may not want to hear of its children.
    write("deaf.py", "import os, signal, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nos.execvp(sys.argv[1], sys.argv[1:])\n")
    told = "import signal, sys; sys.exit(5 if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN else 6)"
    run(SCRATCH / "deaf.py", CLI, "run", "--", PYTHON, "-c", told, program=PYTHON, status=5)
    if not mounts_are_possible():
        return
    # Nothing in /proc: where kiln lies is known all the same; whether a worker sees the same files is not.
    write("plain.py", (SCRATCH / "one.py").read_text().replace("loaded = ", "loaded = None # "))
    words[1], words[3] = SCRATCH / "plain.py", KERNEL % 471
    for what in (" 1 made", "1 compiles answered"):
        done = run(*mounted("mount -t tmpfs none /proc", CLI, "run", "--", *words)[1:], program="unshare")
        check(json.loads(done.stdout)["status"] == 0 and what in done.stderr, "without /proc", done.stdout, done.stderr)


CALLS = {"socket": (198, 41), "connect": (203, 42), "flock": (32, 73), "inotify_init1": (26, 294), "memfd_create": (279, 319), "renameat2": (276, 316), "statx": (291, 332),
             "getrandom": (278, 318), "ftruncate": (46, 77), "fsync": (82, 74), "mkdirat": (34, 258), "unlinkat": (35, 263), "utimensat": (88, 280), "fallocate": (47, 285), "ppoll": (73, 271),
         "getdents64": (61, 217), "statfs": (43, 137), "fstatfs": (44, 138), "getpid": (172, 39), "prctl": (167, 157), "clone3": (435, 435), "readlinkat": (78, 267)}


def in_a_sandbox(first_kernel, command, **environment):
    """Whatever of ours is refused in a sandbox costs an answer at most. command: of the words of a program, and of what its sandbox is made by."""
    write("without.py", WITHOUT_CALL)
    for number, (name, numbers) in enumerate(CALLS.items()):
        sandbox = [PYTHON, SCRATCH / "without.py", numbers[platform.machine() == "x86_64"]]
        words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % (first_kernel + number), "-arch=sm_90"]
        want = bare(*sandbox, *words, status=None, **environment)
        if want.returncode != 0:  # not without us either
            continue
        for state in ("empty", "full"):
            done = bare(*command(sandbox, words), status=None, **environment)
            check(done.returncode == 0 and {**json.loads(done.stdout), "loaded": 0} == {**json.loads(want.stdout), "loaded": 0}, f"without {name}, cache {state}", done)


@test
def sandboxes_that_refuse_a_call():
    """Kiln is in the sandbox, too: it does with what there is."""
    in_a_sandbox(10_000, lambda sandbox, words: [*sandbox, CLI, "run", "--", *words])


@test
def sandboxes_of_a_program_alone():
    """It may end who makes a call that the compiler does not make."""
    in_a_sandbox(10_100, lambda sandbox, words: [CLI, "run", "--", *sandbox, *words])
    in_a_sandbox(10_200, lambda sandbox, words: [CLI, "run", "--", *sandbox, *words], REFUSAL="kill")


SHUT_IN = r'''
import ctypes as C, os, sys
library, how, numbers = sys.argv[1], sys.argv[2], sys.argv[3:]
n = C.CDLL(library)
def shut(number):
    sys.argv[1:] = [number, "-"]
    exec(open(os.path.dirname(os.path.abspath(sys.argv[0])) + "/without.py").read(), {})
if how == "used": n.nvrtcVersion(C.byref(C.c_int()), C.byref(C.c_int()))
for number in numbers: shut(number)
major, minor, p, size = C.c_int(), C.c_int(), C.c_void_p(), C.c_size_t()
print(n.nvrtcVersion(C.byref(major), C.byref(minor)), major.value)
print(n.nvrtcCreateProgram(C.byref(p), b'extern "C" __global__ void shut_in(int* a) { *a = 7; }', b"s.cu", 0, None, None), n.nvrtcCompileProgram(p, 1, (C.c_char_p * 1)(b"-arch=sm_90")))
print(n.nvrtcGetPTXSize(p, C.byref(size)) or size.value > 100, n.nvrtcDestroyProgram(C.byref(p)), flush=True)
'''


@test
def programs_that_shut_themselves_in():
    """After the library was opened: a filter that ends who makes calls of ours."""
    write("without.py", WITHOUT_CALL)
    write("shut_in.py", SHUT_IN)
    numbers = [CALLS[name][platform.machine() == "x86_64"] for name in ("socket", "connect", "flock", "renameat2", "statx", "mkdirat", "unlinkat", "getpid", "clone3")]
    for how in ("not used", "used"):
        words = [PYTHON, SCRATCH / "shut_in.py", NVRTC, how, *numbers]
        want = bare(*words, status=None, REFUSAL="kill")
        if want.returncode != 0:
            continue
        for state in ("empty", "full"):
            done = under(*words, status=None, REFUSAL="kill")
            check((done.returncode, done.stdout) == (0, want.stdout), f"{how}, cache {state}", done, want.stdout)


# Runs a program that may not read what is below a folder (Landlock), or has not root's right to read everything.
CONFINED = r"""
import ctypes as C, os, sys
libc = C.CDLL(None, use_errno=True); how, folder = sys.argv[1], os.path.realpath(sys.argv[2])
def call(number, *words):
    answer = libc.syscall(number, *words)
    if answer < 0: sys.exit(77)
    return answer
if "landlock" in how:
    class rule(C.Structure): _pack_ = 1; _fields_ = [("allowed", C.c_uint64), ("parent", C.c_int)]
    read = C.c_uint64(4); rules = call(444, C.byref(read), 8, 0); above = "/"
    for part in folder.strip("/").split("/"):
        for name in os.listdir(above):
            if name == part: continue
            try: fd = os.open(os.path.join(above, name), os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError: continue
            libc.syscall(445, rules, 1, C.byref(rule(4, fd)), 0); os.close(fd)
        above = os.path.join(above, part)
    if "kept" not in how: libc.prctl(38, 1, 0, 0, 0)
    call(446, rules, 0)
else:
    head = (C.c_uint32 * 2)(0x20080522, 0); sets = (C.c_uint32 * 6)(); call({"x86_64": 125, "aarch64": 90}[os.uname().machine], head, sets)
    for i in (0, 1): sets[i] &= ~6
    for i in (1, 2): libc.prctl(24, i, 0, 0, 0)  # nor is a root given them back
    call({"x86_64": 126, "aarch64": 91}[os.uname().machine], head, sets)
if "ahead" in how:  # and what was read for it is there
    import time
    known, end = os.environ.get("KILN_RUN_KNOWN", ""), time.time() + 60
    while not os.path.exists(known) and time.time() < end: time.sleep(0.002)
os.execv(sys.argv[3], sys.argv[3:])
"""


@test
def a_program_that_may_read_less():
    """A worker has the rights of who started the run. What the program itself would be refused it is refused with us, too."""
    write("confined.py", CONFINED)
    secret = write("secret/secret.h", "#define VALUE 9\n").parent
    source = '#include "secret.h"\nextern "C" __global__ void k(int* a) { *a = VALUE; }'
    words = [PYTHON, SCRATCH / "one.py", NVRTC, source, "-arch=sm_90", f"-I{secret}"]
    if os.geteuid() == 0:
        os.chown(secret / "secret.h", 65534, 65534)
        os.chmod(secret / "secret.h", 0o600)
    same = lambda done: {**json.loads(done.stdout), "loaded": 0}
    tried = 0
    for how in ("landlock", "landlock, rights kept", "capabilities"):
        confined = [PYTHON, SCRATCH / "confined.py", how, secret, *words]
        want = bare(*confined, status=None)
        if want.returncode != 0 or same(want)["status"] == 0:  # not a root, or no Landlock
            print(f"not tried: {how}")
            continue
        tried += 1
        for number, workers in enumerate((1, 1, 0)):
            done = under(*confined, KILN_WORKERS=workers, KILN_CACHE_DIR=SCRATCH / f"confined.{tried}")
            check(same(done) == same(want), f"{how}, workers {workers}, time {number}", want.stdout, done.stdout, done.stderr)
    # Nor is it answered because somebody else has read the headers for it.
    headers = CUDA / "include"
    if not tried or not (headers / "cuda_fp16.h").exists():
        return
    source = '#include <cuda_fp16.h>\nextern "C" __global__ void k(__half* a) { *a = *a + *a; }'
    words = [PYTHON, SCRATCH / "one.py", NVRTC, source, "-arch=sm_90", f"-I{headers}"]
    confined = [PYTHON, SCRATCH / "confined.py", "landlock ahead", headers, *words]
    want = bare(*confined, status=None, KILN_RUN_KNOWN="/")
    if want.returncode != 0 or same(want)["status"] == 0:
        return
    (SCRATCH / "nothing").mkdir()
    free = [PYTHON, SCRATCH / "confined.py", "landlock", SCRATCH / "nothing", *words]
    kept = {"KILN_CACHE_DIR": SCRATCH / "confined.ahead"}
    check(" 1 made" in under(*free, **kept).stderr, "somebody else may")
    free[2] = "landlock ahead"
    done = under(*free, **kept)
    check("1 compiles answered" in done.stderr, "who may read them is answered", done.stderr)
    done = under(*confined, **kept)
    check(same(done) == same(want), "who may not is not", want.stdout, done.stdout, done.stderr)


run_tests()
