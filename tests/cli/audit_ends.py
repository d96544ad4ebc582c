# SPDX-License-Identifier: Apache-2.0
"""`kiln audit` where recording or telling fails: the program runs and its exit status is its own, whatever becomes of the recording, and nobody passes because
of what was not recorded."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys

from _audit import FAKE, told, waiting
from _kiln import CLI, SCRATCH, check, run, write

PYTHON = os.path.realpath(sys.executable)
temporary = SCRATCH / "temporary"
temporary.mkdir()
write("script", waiting(40))
write("any.budget", "severity <= low\n")
PLAYED = {"KILN_AUDIT_CUPTI_ALWAYS": FAKE, "KILN_TEST_CUPTI": SCRATCH / "script"}
write("gpu.py", r'''
import ctypes, os, sys
def works():
    if "CUDA_INJECTION64_PATH" in os.environ:
        assert ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection() == 1
exec(sys.argv[1])
''')


def judged(body, status, *options, **environment):
    return run("audit", *(options or ("--fail-on", "blocking")), "--", PYTHON, SCRATCH / "gpu.py", body, status=status, TMPDIR=temporary, **PLAYED, **environment)


judged("works()", 0)

# ---- where the recording cannot be made, or goes away

ways = {
    "it empties its temporary folder": (temporary, "rm -rf \"$TMPDIR\"/*"),
    "there is no temporary folder": ("/nonexistent", ":"),
}
for what, (place, does) in ways.items():
    for status, end in ((0, "exit 0"), (5, "exit 5"), (-signal.SIGTERM, "kill -TERM $$")):
        ended = run("audit", "--", "sh", "-c", f"{does}; echo ran; {end}", status=status, TMPDIR=place)
        check(ended.stdout == "ran\n", f"{what}: the program runs", ended)
        check(ended.stderr.startswith("kiln: audit: no") and ended.stderr.count("\n") == 1, f"{what}: a line says so", ended.stderr)
    for options in (("--fail-on", "low"), ("--budget", SCRATCH / "any.budget"), ("--expect-gpu",)):
        run("audit", *options, "--", "sh", "-c", does, status=4, TMPDIR=place)
    run("audit", "health", "--", "sh", "-c", f"{does}; exit 6", status=6, TMPDIR=place)
    run("audit", "health", "--write-baseline", SCRATCH / "none.json", "--", "sh", "-c", does, status=4, TMPDIR=place)
    check(not (SCRATCH / "none.json").exists(), "nothing is no baseline")
check(not list(temporary.iterdir()), "nothing is left behind", list(temporary.iterdir()))
mine = SCRATCH / "mine"
mine.mkdir()
swaps = f'mv "$KILN_AUDIT_DIR" "$KILN_AUDIT_DIR.moved"; ln -s {mine} "$KILN_AUDIT_DIR"'
for command, said in ((("audit",), "no report"), (("audit", "health"), "no report")):
    swapped = run(*command, "--", "sh", "-c", swaps, TMPDIR=temporary)
    check(said in swapped.stderr and "something else in its place" in swapped.stderr, "a folder that is another is not read", swapped.stderr)
run("audit", "--fail-on", "low", "--", "sh", "-c", swaps, status=4, TMPDIR=temporary)
check(not list(mine.iterdir()), "nor written", list(mine.iterdir()))
for left in temporary.iterdir():
    left.unlink() if left.is_symlink() else shutil.rmtree(left)


# ---- where nobody takes what we say

def bare(arguments, **how):
    return subprocess.Popen([CLI, "audit", *map(str, arguments)], env={**os.environ, "TMPDIR": str(temporary)}, **how)


for options, streams in (((), ("stderr",)), (("--json",), ("stderr", "stdout"))):
    read, to = os.pipe()
    ended = bare((*options, "--", "sh", "-c", "exit 5"), **{s: to for s in streams})
    os.close(read)
    os.close(to)
    check(ended.wait() == 5, "nobody reads", ended.returncode)
small = bare(("--", "sh", "-c", "exit 5"), stderr=subprocess.PIPE, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
check(small.communicate()[1] and small.returncode == 5, "no file may grow", small.returncode)
write("signals.c", "#include <signal.h>\nint main() { struct sigaction a; sigaction(SIGXFSZ, 0, &a); if (a.sa_handler != SIG_DFL) return 1; sigaction(SIGPIPE, 0, &a); return a.sa_handler != SIG_DFL; }\n")
if shutil.which("gcc") and subprocess.run(["gcc", "-o", SCRATCH / "signals", SCRATCH / "signals.c"]).returncode == 0:
    def as_usual():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    check(bare(("--", SCRATCH / "signals"), stderr=subprocess.DEVNULL, preexec_fn=as_usual).wait() == 0, "the program has its signals as they were")
check(not list(temporary.iterdir()), "nothing is left behind", list(temporary.iterdir()))

# ---- --json is a line of its own

for said in ("foo", "foo\n", ""):
    lines = run("audit", "--json", "--", "printf", "%s", said).stdout.splitlines()
    check(json.loads(lines[-1])["format"] == "kiln-audit" and lines[0] == said.strip(), "the last line is ours", lines)
    with open(SCRATCH / "out", "w") as out:
        subprocess.run([CLI, "audit", "--json", "--", "printf", "%s", said], stdout=out, stderr=subprocess.DEVNULL, check=True)
    lines = (SCRATCH / "out").read_text().splitlines()
    check(len(lines) == (2 if said else 1) and json.loads(lines[-1])["worst"], "in a file without an empty one before it", lines)
odd = "a\u2028b\u2029c\u0085d"
check(odd in json.loads(run("audit", "--json", "--label", odd, "--", "sh", "-c", ":", odd).stdout.splitlines()[-1])["command"], "whatever ends a line elsewhere")

# ---- what was not recorded is said, and judged by nobody

for options in (("--fail-on", "low"), ("--budget", SCRATCH / "any.budget")):
    nothing = run("audit", *options, "--", "true", status=4)
    check("nothing ran on a GPU" in nothing.stderr, "nothing was recorded", nothing.stderr)
run("audit", "--expect-gpu", "--fail-on", "low", "--", "true", status=3)
for options in (("--fail-on", "low"), ("--expect-gpu",)):
    gone = judged("works(); os._exit(0)", 4, *options)
    check("ended without a word and left nothing" in gone.stderr, "it ended at once", gone.stderr)
    if os.geteuid() == 0:
        for drops in ("os.setgid(65534); os.setuid(65534)", f"os.chroot({str(SCRATCH / 'temporary')!r})"):
            dropped = judged(f"works(); {drops}", 4, *options)
            check("could write no more" in dropped.stderr, drops, dropped.stderr)

me, program = str(SCRATCH / "gpu.py"), "works()"
for what, child in {
    "env={}": f"import subprocess; subprocess.run([sys.executable, {me!r}, {program!r}], env={{}}, check=True)",
    "posix_spawn": f"os.waitpid(os.posix_spawn(sys.executable, [sys.executable, {me!r}, {program!r}], {{}}), 0)",
    "execve": f"os.execve(sys.executable, [sys.executable, {me!r}, {program!r}], {{}})",
}.items():
    hidden = judged(child if what == "execve" else "works(); " + child, 4)
    check("was not recorded: its environment was emptied" in hidden.stderr, what, hidden.stderr)
emptied = run("audit", "--fail-on", "blocking", "--", "env", "-i", PYTHON, me, program, status=4, **PLAYED)
check("was not recorded: its environment was emptied" in emptied.stderr, "env -i", emptied.stderr)
run("audit", "health", "--baseline", write("zero.json", '{"gpu_share": 0.0}'), "--", "env", "-i", PYTHON, me, program, status=4, **PLAYED)
run("audit", "--", "env", "-i", "true")
write("starts.c", r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char** words) {
    char *none[] = {0}, **a = words + 2;
    char const* how = words[1];
    if (fork() == 0) {
        if (!strcmp(how, "execle")) execle(a[0], a[0], a[1], a[2], (char*)0, none);
        if (!strcmp(how, "execvpe")) execvpe(a[0], a, none);
        if (!strcmp(how, "fexecve")) fexecve(open(a[0], O_RDONLY), a, none);
        if (!strcmp(how, "execveat")) execveat(AT_FDCWD, a[0], a, none, 0);
        if (!strcmp(how, "nothing emptied, execl")) execl(a[0], a[0], a[1], a[2], (char*)0);
        if (!strcmp(how, "nothing emptied, execlp")) execlp(a[0], a[0], a[1], a[2], (char*)0);
        clearenv();
        if (!strcmp(how, "execl")) execl(a[0], a[0], a[1], a[2], (char*)0);
        if (!strcmp(how, "execlp")) execlp(a[0], a[0], a[1], a[2], (char*)0);
        if (!strcmp(how, "execv")) execv(a[0], a);
        char command[4096];
        snprintf(command, sizeof command, "'%s' '%s' '%s'", a[0], a[1], a[2]);
        if (!strcmp(how, "system")) _exit(system(command) != 0);
        if (!strcmp(how, "popen")) _exit(pclose(popen(command, "r")) != 0);
        _exit(99);
    }
    int status = 1;
    wait(&status);
    return status != 0;
}
""")
if shutil.which("gcc") and subprocess.run(["gcc", "-w", "-o", SCRATCH / "starts", SCRATCH / "starts.c"]).returncode == 0:
    for how in ("execle", "execvpe", "fexecve", "execveat", "execl", "execlp", "execv", "system", "popen"):
        hidden = judged(f"works(); import subprocess; subprocess.run([{str(SCRATCH / 'starts')!r}, {how!r}, sys.executable, {me!r}, {program!r}], check=True)", 4)
        check("was not recorded: its environment was emptied" in hidden.stderr, how, hidden.stderr)
    for how in ("execl", "execlp"):
        judged(f"works(); import subprocess; subprocess.run([{str(SCRATCH / 'starts')!r}, 'nothing emptied, {how}', sys.executable, {me!r}, {program!r}], check=True)", 0)
judged(f"works(); import subprocess; subprocess.run([sys.executable, {me!r}, {program!r}], check=True)", 0)
write("no_program", "nor a script\n").chmod(0o755)
for fails in ("execve(b'/tmp', words, none)", f"execve({os.fsencode(SCRATCH / 'no_program')!r}, words, none)", "execvpe(b'nosuch', words, none)"):
    judged(f"works(); libc = ctypes.CDLL(None); words = (ctypes.c_char_p * 2)(b'x', None); none = (ctypes.c_char_p * 1)(None); assert libc.{fails} == -1", 0)
full = judged("""
works()
import resource, time
child = os.fork()
if child != 0:  # which has threads, and needs none
    os.waitpid(child, 0)
    sys.exit()
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True: held.append(os.open("/dev/null", os.O_RDONLY))
except OSError: pass
os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
os._exit(0)
""", 4)
check("was not recorded: its environment was emptied" in full.stderr, "what finds no descriptor is told all the same", full.stderr)

# ---- a program that locks itself in: a file that it opens is its end

write("locked.c", r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int lock() {
    struct sock_filter f[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)}, {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_openat},
                              {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS}, {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    struct sock_fprog p = {4, f};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}
int main() {
    int status = 0;
    if (lock() != 0) return 77;
    if (fork() == 0) _exit(3);
    wait4(-1, &status, 0, 0);
    return WEXITSTATUS(status) + 2;
}
""")
is_free = "Seccomp:\t0\n" in open("/proc/self/status").read()  # under a filter already, the two cannot be told apart
if is_free and shutil.which("gcc") and subprocess.run(["gcc", "-o", SCRATCH / "locked", SCRATCH / "locked.c"]).returncode == 0 and subprocess.run([SCRATCH / "locked"]).returncode == 5:
    run("audit", "--", SCRATCH / "locked", status=5)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", SCRATCH / "locked.so", SCRATCH / "locked.c"], check=True)
    alone = subprocess.run([PYTHON, "-c", f"import ctypes; ctypes.CDLL({str(SCRATCH / 'locked.so')!r}).lock()"])
    if alone.returncode == 0:  # some interpreters open files at their end
        judged(f"works(); lock = ctypes.CDLL({str(SCRATCH / 'locked.so')!r}).lock; sys.stdout.flush(); assert lock() == 0", 4)

# ---- a run that left the GPU, and one of which nothing is known

for name, on_gpu in (("gpu", "1"), ("cpu", "")):
    judged("if os.environ.get('ON_GPU'): works()", 0, "--keep", SCRATCH / name, ON_GPU=on_gpu)
for options in ((), ("--force",)):
    left = run("audit", "diff", *options, SCRATCH / "gpu", SCRATCH / "cpu", status=3)
    check("now nothing runs on a GPU" in left.stdout, "it left the GPU", left.stdout)
check("another device" in run("audit", "diff", SCRATCH / "cpu", SCRATCH / "gpu", status=2).stderr, "none is another device")
unknown = told(run("audit", "diff", "--json", SCRATCH / "cpu", SCRATCH / "cpu", status=4))
check(unknown["broken"] is None and unknown["why_not"], "what cannot be judged is an object, too", unknown)
os.truncate(next((SCRATCH / "gpu").glob("p*")), 40)
check("cannot be judged" in run("audit", "health", SCRATCH / "gpu").stderr, "it is said")
run("audit", "health", SCRATCH / "gpu", "--write-baseline", SCRATCH / "none.json", status=4)
check(not (SCRATCH / "none.json").exists(), "and is no baseline")

write("odd.json", '{"gpu_share": 100}')
run("audit", "health", SCRATCH / "cpu", "--baseline", SCRATCH / "odd.json", status=2)

# A process that outlives the program and has a GPU.
lives = judged("""
works()
ready, told = os.pipe()
pid = os.fork()
if pid == 0:
    os.close(1); os.close(2)
    os.environ["TOLD"] = str(told); os.set_inheritable(told, True)
    os.execv(sys.executable, [sys.executable, sys.argv[0], "works(); os.write(int(os.environ['TOLD']), b'x'); import time; time.sleep(600)"])
os.read(ready, 1)
open(os.environ["KILN_PID"], "w").write(str(pid))
""", 4, KILN_PID=SCRATCH / "pid")
os.kill(int((SCRATCH / "pid").read_text()), signal.SIGKILL)
check("still at work" in lives.stderr, "an orphan on the GPU", lives.stderr)
print("ok")
