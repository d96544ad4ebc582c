# SPDX-License-Identifier: Apache-2.0
"""`kiln run`. What a program may notice: signals, jobs, descriptors, limits, its place, its rights."""

import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time

from _run import BIN, CACHE, CLI, KERNEL, NVJITLINK, NVRTC, PYTHON, SCRATCH, bare, check, one, run, run_tests, test, under, write


@test
def the_program_is_itself():
    check(under("sh", "-c", "exit 7", status=7).returncode == 7, "the exit status is the program's")
    run("run", "--", "/no/such/program", status=127)
    killed = run("run", "--", "sh", "-c", "kill -TERM $$", status=None)
    check(killed.returncode == -signal.SIGTERM, "a signal that ends it ends kiln run", killed.returncode)
    odd = run("run", "--record", SCRATCH / "odd.json", "--", "sh", "-c", "exit 7", "bad\udcff", status=7)
    check(json.loads((SCRATCH / "odd.json").read_text())["program"][-1] == "bad\ufffd", "nor is a word that is no text in its way", odd)
    done = under("sh", "-c", "cat; echo to-stderr >&2")
    check(done.stdout == "" and done.stderr == "to-stderr\n", "nothing is added where nothing was compiled", done)
    child = subprocess.Popen([CLI, "run", "--", "sh", "-c", "trap 'exit 9' USR1; echo ready; while :; do sleep 0.05; done"],
                             stdout=subprocess.PIPE, text=True, env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
    child.stdout.readline()
    child.send_signal(signal.SIGUSR1)
    check(child.wait(30) == 9, "signals are passed on")
    for key in (signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO, signal.SIGPWR, signal.SIGRTMIN, signal.SIGRTMAX,  # these ended kiln run, and the program with it
                signal.SIGINT, signal.SIGQUIT):  # sent to kiln run alone, and not by a terminal, which tells both
        child = subprocess.Popen([CLI, "run", "--", PYTHON, "-uc", f"import signal, sys\nsignal.signal({int(key)}, lambda *_: sys.exit(8))\nprint('ready')\nsignal.pause()"],
                                 stdout=subprocess.PIPE, text=True, env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
        child.stdout.readline()
        child.send_signal(key)
        check(child.wait(30) == 8, f"{key.name} is passed on")
    for option in (("--json",), ("--record", SCRATCH / "odd.json")):
        done = subprocess.run([CLI, "run", *map(str, option), "--", "sh", "-c", "exit 7", b"caf\xe9"], capture_output=True, env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
        check(done.returncode == 7, "a word that is no text", done)
    check(json.loads((SCRATCH / "odd.json").read_text())["program"][:2] == ["sh", "-c"], "is recorded as well as can be")
    for option in ("-v", "--json"):  # nobody reads what kiln run says of it
        unread, end = os.pipe()
        os.close(unread)
        done = subprocess.run([CLI, "run", option, "--", "sh", "-c", "exit 7"], stderr=end, env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
        os.close(end)
        check(done.returncode == 7, "nor does it matter who listens", done)
    done = under("sh", "-c", 'echo "$LD_AUDIT"', LD_AUDIT="/some/where.so")
    check(done.stdout.startswith("/some/where.so:"), "an auditor that was there stays", done.stdout)
    one(100)
    done = under("sh", "-c", f'exec "{PYTHON}" "$0" "$@"', SCRATCH / "one.py", NVRTC, KERNEL % 100, "-arch=sm_90")
    check(not json.loads(done.stdout)["loaded"] and " 0 made" in done.stderr, "children are served", done.stdout, done.stderr)
    for options in ((), ("--json",)):
        words = ["a", "--", "b", "-v", "--json", "--", ""]
        done = under("printf", "<%s>", *words, options=options)
        check(done.stdout == "".join(f"<{w}>" for w in words), "the program's words are its own", done.stdout)
    # Called by a name that the folder has, too: what belongs to kiln is looked for where kiln is.
    write("decoy/kiln", "")
    (SCRATCH / "decoy/kiln").chmod(0o755)
    write("decoy/kiln-worker", f"#!/bin/sh\ntouch {SCRATCH}/decoy/used\n").chmod(0o755)
    words = ["run", "-v", "--", PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 101, "-arch=sm_90"]
    for more in ((), ("--json",)):
        done = run(f"PATH={BIN}:{os.environ['PATH']}", "kiln", *words[:2], *more, *words[2:], program="env", cwd=SCRATCH / "decoy")
        check("no stand-ins" not in done.stderr and not (SCRATCH / "decoy/used").exists(), "what lies here is not ours", done.stderr)
        check('"made"' in done.stderr or "made 'k'" in done.stderr or "answered" in done.stderr, "it is served", done.stderr)
    again = run("run", "--", CLI, "run", "--", "sh", "-c", 'echo "$LD_AUDIT"')
    check(again.stdout.count("hook.so") == 1, "kiln run in kiln run", again.stdout)


# What a shell does for one job at its terminal: whoever stops it is told, and it goes on in the foreground.
write("shell.py", r"""
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    if sys.argv[1] == "foreground": os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL); os.execv(sys.argv[2], sys.argv[2:])
while True:
    _, status = os.waitpid(job, os.WUNTRACED); os.tcsetpgrp(0, os.getpgrp())
    if not os.WIFSTOPPED(status): break
    print("stopped by", os.WSTOPSIG(status) == signal.SIGSTOP and "SIGSTOP" or "a terminal", flush=True)
    os.tcsetpgrp(0, job); os.killpg(job, signal.SIGCONT)
print("ended", os.waitstatus_to_exitcode(status), flush=True)
""")
# Of a job: Ctrl-Z does with it what it wants.
write("job.py", r"""
import os, signal, sys
mode = sys.argv[1]
def stopped(*_): os.write(1, b"stops\n"); os.kill(os.getpid(), signal.SIGSTOP)
went = []
def went_on(*_): went or os.write(1, b"goes on\n"); went.append(1)
signal.signal(signal.SIGCONT, went_on)
if mode == "ignores": signal.signal(signal.SIGTSTP, signal.SIG_IGN)
if mode == "handles": signal.signal(signal.SIGTSTP, stopped)
os.write(1, b"ready\n")
while os.read(0, 100).strip() != b"end": pass
sys.exit(4)
""")


def at_a_terminal(keys, where, *words):
    """What a terminal shows of a job: `keys` are typed, each when the text before it is there."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(PYTHON, [PYTHON, str(SCRATCH / "shell.py"), where, *map(str, words)], {**os.environ, "KILN_CACHE_DIR": str(CACHE)})
    shown, typed = "", 0
    mode = termios.tcgetattr(terminal)
    mode[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, mode)
    try:
        while select.select([terminal], [], [], 120)[0]:
            shown += os.read(terminal, 1000).decode().replace("\r", "")
            while keys and keys[0][0] in shown[typed:]:
                typed = shown.index(keys[0][0], typed) + len(keys[0][0])
                os.write(terminal, keys.pop(0)[1])
        os.kill(pid, signal.SIGKILL)
        shown += "hangs"
    except OSError:  # nobody is left
        pass
    os.waitpid(pid, 0)
    os.close(terminal)
    return shown


@test
def a_job_of_a_shell():
    """Ctrl-Z, fg and bg do with the program what they do without us."""
    if not os.path.exists("/dev/ptmx"):
        return
    ctrl_z, end = b"\x1a", b"end\n"
    for mode, where, keys in (("stops", "foreground", [("ready\n", ctrl_z), ("goes on\n", end)]), ("handles", "foreground", [("ready\n", ctrl_z), ("goes on\n", end)]),
                              ("ignores", "foreground", [("ready\n", ctrl_z + end)]), ("reads", "background", [("goes on\n", end)])):
        words = [PYTHON, SCRATCH / "job.py", mode]
        want, got = at_a_terminal(list(keys), where, *words), at_a_terminal(list(keys), where, CLI, "run", "--", *words)
        check(got == want and "ended 4" in want, f"one that {mode} in the {where}", got, want)


@test
def a_program_that_stops_is_seen_to_be_stopped():
    """By who started kiln run, who may have no terminal, and may or may not be the one who continues it."""
    def starts(text, *before):
        text = "import os, signal, sys, time\nme, kiln = os.getpid(), os.getppid()\ndef is_stopped(pid): return open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0] == 'T'\n" + text
        return subprocess.Popen([*before, CLI, "run", "--", PYTHON, "-uc", text], env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})

    def ended(child, options=0):
        for _ in range(6000):
            pid, status = os.waitpid(child.pid, options | os.WNOHANG)
            if pid:
                if not os.WIFSTOPPED(status):
                    child.returncode = os.waitstatus_to_exitcode(status)
                return status
            time.sleep(0.01)
        child.kill()
        child.wait()
        return None

    for times in (1, 3):
        child = starts(f"for _ in range({times}): os.kill(me, signal.SIGSTOP)\nsys.exit(7)")
        for _ in range(times):
            status = ended(child, os.WUNTRACED)
            check(status is not None and os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGSTOP, "stopped as it is", status)
            child.send_signal(signal.SIGCONT)
        check(ended(child) == 7 << 8, "who continues kiln run continues it", child.returncode)
    other = "if os.fork() == 0:\n    while not (is_stopped(me) and is_stopped(kiln)): time.sleep(0.01)\n    os.kill(me, signal.%s)\n    os._exit(0)\nos.kill(me, signal.SIGSTOP)\nsys.exit(5)"
    check(ended(starts(other % "SIGCONT")) == 5 << 8, "who continues it continues kiln run")
    check(ended(starts(other % "SIGKILL")) == signal.SIGKILL, "who ends it ends kiln run")
    if subprocess.run(["unshare", "-pf", "true"], capture_output=True).returncode == 0:
        check(ended(starts("os.kill(me, signal.SIGSTOP)\nsys.exit(6)", "unshare", "-pf")) == 6 << 8, "the first process of a container cannot be stopped")


@test
def what_is_out_of_reach_runs_as_it_is():
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("still.c", "int main(void) { return 3; }\n")
    built = subprocess.run([compiler, "-static", "-o", SCRATCH / "still", SCRATCH / "still.c"], capture_output=True)
    if built.returncode == 0:
        done = under(SCRATCH / "still", options=("-v",), status=3)
        check("linked statically" in done.stderr, "a static program is named", done.stderr)
    subprocess.run([compiler, "-o", SCRATCH / "raised", SCRATCH / "still.c"], check=True)
    os.chmod(SCRATCH / "raised", 0o4755)
    done = under(SCRATCH / "raised", options=("-v",), status=3)
    check("raised privileges" not in done.stderr, "who owns it has no more rights by its mode", done.stderr)
    if os.geteuid() == 0:
        os.chown(SCRATCH / "raised", 65534, 65534)
        os.chmod(SCRATCH / "raised", 0o4755)
        done = under(SCRATCH / "raised", options=("-v",), status=3)
        check("raised privileges" in done.stderr, "and one with another's rights", done.stderr)
        done = under(SCRATCH / "raised", options=("--jit=forbid", "-q"), status=3)
        check("what it compiles is not forbidden" in done.stderr, "who forbids is told, whatever else is said", done.stderr)
        os.chown(SCRATCH / "raised", 0, 0)
    os.chmod(SCRATCH / "raised", 0o755)
    try:
        # cap_net_raw, permitted: the loader is as careful with it.
        os.setxattr(SCRATCH / "raised", "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))
        done = under(SCRATCH / "raised", options=("-v",), status=3)
        check("raised privileges" in done.stderr, "by capabilities of its file", done.stderr)
    except OSError:
        print("capabilities of files cannot be set here: not tried")
    if shutil.which("musl-gcc"):
        write("musl.c", "#include <stdlib.h>\n#include <stdio.h>\nint main(void) { puts(getenv(\"LD_AUDIT\") ? \"audited\" : \"\"); return 4; }\n")
        subprocess.run(["musl-gcc", "-o", SCRATCH / "musl", SCRATCH / "musl.c"], check=True)
        subprocess.run(["musl-gcc", "-static", "-o", SCRATCH / "still", SCRATCH / "musl.c"], check=True)
        for program, why in (("musl", "runs on musl"), ("still", "linked statically")):
            done = under(SCRATCH / program, options=("-v",), status=4)
            check(why in done.stderr and done.stdout == "audited\n", "another libc", done.stdout, done.stderr)


@test
def raised_privileges_take_nothing():
    """A program that becomes root by its file's mode is not given our libraries, nor anything of who started it."""
    compiler = shutil.which("cc")
    if compiler is None or os.geteuid() != 0:
        return
    nobody = 65534
    place = pathlib.Path(tempfile.mkdtemp(prefix="kiln-raised-"))
    try:
        place.chmod(0o755)
        (place / "cache").mkdir()
        os.chown(place / "cache", nobody, nobody)
        write("raising.c", "#include <dlfcn.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n"
              "int main(int n, char** v) { void* h = dlopen(v[1], RTLD_NOW); char line[4096]; int ours = 0; FILE* maps = fopen(\"/proc/self/maps\", \"r\");\n"
              "while (fgets(line, sizeof line, maps)) ours |= strstr(line, \"hook.so\") || strstr(line, \"standins\"); printf(\"%d %d %d\\n\", h != 0, geteuid(), ours); return 0; }\n")
        subprocess.run([compiler, "-o", place / "raising", SCRATCH / "raising.c", "-ldl"], check=True)
        env = {**{k: v for k, v in os.environ.items() if not k.startswith("KILN_")}, "KILN_CACHE_DIR": str(place / "cache"), "HOME": str(place)}

        def as_nobody(mode):
            (place / "raising").chmod(mode)
            return subprocess.run([CLI, "run", "--", place / "raising", NVRTC], capture_output=True, text=True, env=env, user=nobody, group=nobody, extra_groups=[], cwd=place)

        plain = as_nobody(0o755)
        if plain.returncode != 0:
            print("another user cannot run kiln here: not tried", plain.stderr)
            return
        check(plain.stdout == f"1 {nobody} 1\n", "served as what it is", plain)
        raised = as_nobody(0o4755)
        check(raised.returncode == 0 and raised.stdout in ("1 0 0\n", f"1 {nobody} 1\n"), "root's program has nothing of ours in it", raised)
    finally:
        shutil.rmtree(place)


@test
def limits_of_the_program():
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("opens.c", "#include <dlfcn.h>\n#include <stdio.h>\nint main(int n, char** v) { void* h = dlopen(v[1], RTLD_NOW); puts(h ? \"opened\" : dlerror()); return 0; }\n")
    subprocess.run([compiler, "-o", SCRATCH / "opens", SCRATCH / "opens.c", "-ldl"], check=True)
    for blocks in (0, 1, 4, 100, 1000, 10000):
        fresh = SCRATCH / f"limited-{blocks}"
        done = run("run", "--", "sh", "-c", f'ulimit -f {blocks}; exec "$0" "$1"', SCRATCH / "opens", NVRTC, KILN_CACHE_DIR=fresh)
        check(done.stdout == "opened\n", "files of the program may be small", blocks, done)
        check(not list(fresh.glob("run/standins/*.part")), "nothing is left behind", blocks)
    # Descriptors that run out come back.
    write("none_left.py", r'''
import ctypes as C, os, sys
n = C.CDLL(sys.argv[1]); a, b, p, all = C.c_int(), C.c_int(), C.c_void_p(), []
try:
    while True: all.append(os.open("/dev/null", 0))
except OSError: pass
n.nvrtcVersion(C.byref(a), C.byref(b))
for f in all: os.close(f)
print(n.nvrtcVersion(C.byref(a), C.byref(b)), n.nvrtcCreateProgram(C.byref(p), b"__global__ void d() {}", None, 0, None, None), n.nvrtcCompileProgram(p, 0, None))
''')
    done = under("sh", "-c", 'ulimit -n 64; exec "$0" "$@"', PYTHON, SCRATCH / "none_left.py", NVRTC, KILN_CACHE_DIR=SCRATCH / "limited")
    check(done.stdout == "0 0 0\n", "a failure of the moment is not kept", done)


@test
def relative_settings():
    place = SCRATCH / "relative"
    (place / "sub").mkdir(parents=True)
    words = ["sh", "-c", 'cd sub; exec "$0" "$@"', PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 480, "-arch=sm_90"]
    for again in range(2):
        run("run", "--", *words, cwd=place, KILN_EVENTS="events.jsonl", KILN_CACHE_DIR="kept", KILN_CACHE_PATH_RO="other::/not/there")
    check((place / "events.jsonl").exists() and not list((place / "sub").iterdir()), "nothing in the program's own folder", list(place.rglob("*"))[:20])
    done = run("run", "--jit=forbid", "--", *words, cwd=place, KILN_CACHE_PATH_RO="nothing:kept", KILN_CACHE_DIR=SCRATCH / "relative.empty")
    check("1 compiles answered" in done.stderr, "a list of relative folders", done.stderr)
    shown = run("run", "--", "sh", "-c", "echo $KILN_CACHE_PATH_RO", cwd=place, KILN_CACHE_PATH_RO="a::/b").stdout
    check(shown == f"{place}/a::/b\n", "each of them", shown)
    done = run("run", "-v", "--", *words, cwd=place, KILN_CACHE_DIR="kept", NVRTC_HOME="/opt/nvrtc")
    check("1 compiles answered" in done.stderr, "a variable that is a place changes no result", done.stderr)


@test
def nothing_of_ours_is_visible():
    if shutil.which("nm") is None:
        return
    def exported(file):
        lines = subprocess.run(["nm", "-D", "--defined-only", file], capture_output=True, text=True, check=True).stdout.split("\n")
        return {line.split()[2].split("@")[0] for line in lines if " T " in line or " A " in line}

    place = SCRATCH / "visible"
    for file in filter(None, (NVRTC, NVJITLINK)):
        under(PYTHON, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", file, KILN_CACHE_DIR=place / file.name)
        copies = list((place / file.name / "run/standins").iterdir())
        bridge, standin = sorted(copies, key=lambda f: f.suffix != ".bridge")
        seen = {n for n in exported(bridge) if n.isprintable()}
        check({n for n in seen if n != file.name and n != "KILN_NODE"} == {n for n in exported(file) if re.match("(__)?nv", n)}, f"{file.name}: what the real one exports", seen ^ exported(file))
        check({n for n in exported(standin) if n.isprintable()} <= {file.name}, f"{file.name}: nothing is found behind it", exported(standin))


@test
def a_search_for_leaks_is_not_misled():
    """AddressSanitizer guesses where memory of a thread is, by where it begins: ours must not lie where it guesses wrong."""
    for file in sorted((BIN.parent / "lib/kiln/intercept").glob("lib*")):
        data = file.read_bytes()
        start, size, count = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
        parts = [struct.unpack_from("<IIQQQQQQ", data, start + i * size) for i in range(count)]
        check(all(part[7] % 32 == 0 for part in parts if part[0] == 7), f"{file.name}: where its threads' memory begins", parts)
    compiler = shutil.which("gcc")
    if compiler is None:
        return
    write("leaks.c", r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int nvrtcVersion(int*, int*);
int main(void) { int a, b; printf("%d\n", nvrtcVersion(&a, &b)); return 0; }
""")
    built = subprocess.run([compiler, "-w", "-fsanitize=address", "-o", SCRATCH / "leaks", SCRATCH / "leaks.c", NVRTC, f"-Wl,-rpath,{NVRTC.parent}"], capture_output=True)
    if built.returncode != 0 or bare(SCRATCH / "leaks", status=None).returncode != 0:  # no sanitizer here, or none that works
        return
    for state in ("cold", "warm"):
        done = under(SCRATCH / "leaks", KILN_CACHE_DIR=SCRATCH / "leaks.cache", status=None)
        check((done.returncode, done.stdout) == (0, "0\n"), f"nothing is found, {state}", done)


@test
def without_a_home():
    words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 475, "-arch=sm_90"]
    want = bare(*words).stdout
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "XDG_")) and k != "HOME"}
    for more in ({}, {"HOME": ""}, {"HOME": "/nowhere"}, {"HOME": "relative"}, {"TMPDIR": "/nowhere"}):
        done = subprocess.run([CLI, "run", "--", *map(str, words)], capture_output=True, text=True, cwd=SCRATCH, env={**env, **more})
        check(done.returncode == 0 and {**json.loads(done.stdout), "loaded": 0} == {**json.loads(want), "loaded": 0}, f"with {more} alone", done)
    check(not (SCRATCH / "relative").exists(), "nothing is made where the program happens to be")


@test
def descriptors_of_the_program():
    """A program that closes what it does not know and opens files of its own finds nothing of ours in them."""
    write("closes.py", r'''
import ctypes as C, os, sys
n = C.CDLL(sys.argv[1])
def one(number):
    p = C.c_void_p(); options = (C.c_char_p * 1)(b"-arch=sm_90")
    return n.nvrtcCreateProgram(C.byref(p), b'extern "C" __global__ void k(int* a) { *a = %d; }' % number, None, 0, None, None) or n.nvrtcCompileProgram(p, 1, options)
said = [one(981)]; os.closerange(3, 256)
mine = [os.open(f"{sys.argv[2]}/{i}", os.O_RDWR | os.O_CREAT, 0o600) for i in range(16)]
said += [one(981), one(982)]; print(said, sum(os.fstat(f).st_size for f in mine))
''')
    (SCRATCH / "its-own").mkdir()
    for workers in ("1", "0"):
        events = SCRATCH / f"closed-{workers}.jsonl"
        done = under(PYTHON, SCRATCH / "closes.py", NVRTC, SCRATCH / "its-own", KILN_EVENTS=events, KILN_WORKERS=workers)
        check(done.stdout == "[0, 0, 0] 0\n", "its files are its own", done.stdout, done.stderr)
        check(len(events.read_text().splitlines()) >= 4, "and the events go on", events.read_text())
    # One that has no standard streams, and goes on writing to them: nothing of ours is there that would take it, and it is not ended for it.
    write("says.py", r'''
import ctypes as C, os, signal, sys
n, saying, told = C.CDLL(sys.argv[1]), os.dup(1), []
signal.signal(signal.SIGPIPE, signal.SIG_DFL); os.closerange(0, 3)
for number in range(2):
    p = C.c_void_p(); options = (C.c_char_p * 1)(b"-arch=sm_90")
    n.nvrtcCreateProgram(C.byref(p), b'extern "C" __global__ void k(int* a) { *a = %d; }' % (983 + number), None, 0, None, None)
    told.append(n.nvrtcCompileProgram(p, 1, options))
    for stream in (0, 1, 2) * 20:
        try: told.append(os.write(stream, b"said to nobody"))
        except OSError: pass
os.write(saying, b"%r\n" % told)
''')
    events = SCRATCH / "said.jsonl"
    done = under(PYTHON, SCRATCH / "says.py", NVRTC, KILN_EVENTS=events)
    check(done.stdout == "[0, 0]\n" and " 2 made" in done.stderr, "nobody hears it", done.stdout, done.stderr)
    check(events.exists() and "nobody" not in events.read_text(), "nor do the events", events.read_text())


@test
def words_to_closed_streams_get_into_no_file_of_ours():
    """A thread that prints all the time, while the compiler is opened for the first time: what is kept for the processes to come is made then."""
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("talks.c", r'''
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static volatile int done;
static void* talk(void* nothing) {
    while (!done)
        for (int stream = 0; stream < 3; ++stream) (void)!write(stream, "said to nobody", 14);
    return 0;
}
int main(int count, char** words) {
    pthread_t talker;
    int const out = fcntl(1, F_DUPFD_CLOEXEC, 50);
    for (int stream = 0; stream < 3; ++stream) close(stream);
    pthread_create(&talker, 0, talk, 0);
    usleep(1000);
    void* const library = dlopen(words[1], RTLD_NOW);
    char const* const why = library ? "opened" : dlerror();
    done = 1;
    pthread_join(talker, 0);
    dprintf(out, "%s\n", why);
    return 0;
}
''')
    subprocess.run([compiler, "-w", "-pthread", "-o", SCRATCH / "talks", SCRATCH / "talks.c", "-ldl"], check=True)
    for number in range(12):
        folder = SCRATCH / f"talks-{number}"
        done = under(SCRATCH / "talks", NVRTC, KILN_CACHE_DIR=folder)
        check(done.stdout == "opened\n", "the compiler is opened", done.stdout, done.stderr)
        spoilt = [f for f in (folder / "run").rglob("*") if f.is_file() and b"said to nobody" in f.read_bytes()]
        check(not spoilt, "nothing is said in what is kept", *spoilt)
    # One that has it from the beginning finds them as without us when it looks.
    look = "import os, sys; os.write(int(sys.argv[1]), repr([sys.stdin, sys.stdout, sys.stderr]).encode())"
    for number in range(2):
        done = under("sh", "-c", 'exec 9>&1 <&- >&- 2>&-; LD_PRELOAD="$1" exec "$2" -c "$3" 9', "sh", NVRTC, PYTHON, look,
                     KILN_CACHE_DIR=SCRATCH / "preloaded")
        check(done.stdout == "[None, None, None]", "no streams", done.stdout, done.stderr)


run_tests()
