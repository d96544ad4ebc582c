# SPDX-License-Identifier: Apache-2.0
"""The folder of a recording, in which the program can put what it likes: nothing in it is followed, nothing outlives the run, and neither descriptors nor
inodes are taken from the program."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import time

from _audit import COMPILER, FAKE, build, waiting
from _kiln import CLI, SCRATCH, check, run, write

PYTHON = os.path.realpath(sys.executable)
IS_ROOT = os.geteuid() == 0
temporary = SCRATCH / "temporary"
temporary.mkdir()

# ---- what has the name of a file of ours is replaced, and not followed

victim = write("victim", "precious\n")
victim.chmod(0o644)
for n, (what, does) in enumerate({"a FIFO": "mkfifo", "a link": f"ln -s {victim}", "a link to nothing": f"ln -s {SCRATCH / 'nothing'}"}.items()):
    kept = SCRATCH / f"named{n}"
    ended = run("audit", "--keep", kept, "--", "sh", "-c", f'{does} "$KILN_AUDIT_DIR/run.json"; exit 5', status=5)
    about = (kept / "run.json").lstat()
    check(stat.S_ISREG(about.st_mode) and stat.S_IMODE(about.st_mode) == 0o600, what, ended, oct(about.st_mode))
    check(victim.read_text() == "precious\n" and stat.S_IMODE(victim.stat().st_mode) == 0o644, what, "was not followed", victim.read_text())
    check(not (SCRATCH / "nothing").exists(), what, "makes nothing")
ended = run("audit", "--keep", SCRATCH / "directory", "--", "sh", "-c", 'mkdir "$KILN_AUDIT_DIR/run.json"; exit 5', status=5)
check("run.json" in ended.stderr, "what cannot be replaced is said", ended.stderr)
if IS_ROOT:
    others = SCRATCH / "others"
    others.mkdir()
    os.chown(others, 65534, 65534)
    refused = run("audit", "--keep", others, "--", "sh", "-c", "echo ran", status=1)
    check("belongs to another user" in refused.stderr and "one of your own" in refused.stderr and refused.stdout == "", "a folder of another user", refused)
    check(not list(others.iterdir()), "nothing is in it")
full = SCRATCH / "full"
full.mkdir(mode=0o755)
(full / "mine").touch()
run("audit", "--keep", full, "--", "true", status=1)
check(stat.S_IMODE(full.stat().st_mode) == 0o755, "a folder that is refused stays as it was")

# ---- a temporary one is removed, and nothing else in its place; it is found from everywhere

instead = SCRATCH / "instead"
for what, put, is_kept in (("another folder", f'mkdir "{instead}"; touch "{instead}/file"; mv "{instead}" "$KILN_AUDIT_DIR"', True),
                           ("a file", 'echo mine > "$KILN_AUDIT_DIR"', True),
                           ("a link", f'ln -s "{SCRATCH}/moved" "$KILN_AUDIT_DIR"', False)):
    run("audit", "--", "sh", "-c", f'mv "$KILN_AUDIT_DIR" "{SCRATCH}/moved"; {put}; exit 5', status=5, TMPDIR=temporary)
    left = list(temporary.iterdir())
    check(bool(left) == is_kept, what, left)
    check(what != "another folder" or (left[0] / "file").exists(), what, "stays as it is", left)
    for path in (SCRATCH / "moved", *left):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
run("audit", "--", "sh", "-c", 'cd "$KILN_AUDIT_DIR"; mkdir -p a/b/c; touch a/b/f; ln -s / a/root; mkfifo pipe; exit 5', status=5, TMPDIR=temporary)
check(not list(temporary.iterdir()), "folders in it go, too", list(temporary.iterdir()))
if IS_ROOT and shutil.which("unshare"):
    mounted = SCRATCH / "mounted"
    mounted.mkdir()
    (mounted / "file").touch()
    mounts = f'mkdir "$KILN_AUDIT_DIR/x" && mount --bind {mounted} "$KILN_AUDIT_DIR/x" || exit 6; exit 5'
    ended = subprocess.run(["unshare", "-m", "--propagation", "private", CLI, "audit", "--", "sh", "-c", mounts], capture_output=True, text=True, env={**os.environ, "TMPDIR": str(temporary)})
    check((mounted / "file").exists(), "what is mounted in it is somebody else's", ended)
    for path in temporary.iterdir():
        shutil.rmtree(path)
relative = subprocess.run([CLI, "audit", "--", "sh", "-c", 'cd /; test -d "$KILN_AUDIT_DIR" && echo there'], capture_output=True, text=True, cwd=temporary, env={**os.environ, "TMPDIR": "."})
check(relative.stdout == "there\n" and not list(temporary.iterdir()), "TMPDIR may be relative", relative)

if not COMPILER:
    sys.exit(0)

# ---- events are gathered while the program runs, whoever else's children end

lasting = build("lasting", r"""
#include <stdio.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    usleep(300000);
    for (int i = 0; i < 1000; ++i) {
        pid_t const child = fork();
        if (child == 0) _exit(0);
        waitpid(child, 0, 0);
    }
    usleep(500000);
    DIR* folder = opendir(getenv("KILN_AUDIT_DIR"));
    int names = 0;
    for (struct dirent* e; (e = readdir(folder));) names += strstr(e->d_name, ".event") != 0;
    printf("%s\n", names < 300 ? "few" : "many");
}
""")
ended = subprocess.run(["sh", "-c", f'sleep 0.05 & exec "{CLI}" audit -- "{lasting}"'], capture_output=True, text=True, env={**os.environ, "TMPDIR": str(temporary)})
check(ended.stdout == "few\n", "a child that kiln was born with", ended)


def block():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])


asks = [PYTHON, "-c", "import signal; print(signal.SIGCHLD in signal.pthread_sigmask(signal.SIG_BLOCK, []))"]
for blocks, expected in ((None, "False\n"), (block, "True\n")):
    ended = subprocess.run([CLI, "audit", "--", *asks], capture_output=True, text=True, preexec_fn=blocks)
    check(ended.stdout == expected, "the program gets the signals as they were", ended)

# ---- processes that outlive the program

forks = build("forks", r"""
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static time_t end;
static void* fork_until_then(void* unused) {
    while (time(0) < end) {
        pid_t const child = fork();
        if (child == 0) _exit(0);
        waitpid(child, 0, 0);
    }
    return unused;
}
int main(int count, char** words) {
    pthread_t threads[8];
    int const n = atoi(words[1]);
    end = time(0) + atoi(words[2]);
    for (int i = 0; i < n; ++i) pthread_create(&threads[i], 0, fork_until_then, 0);
    if (n == 0) fork_until_then(0);
    for (int i = 0; i < n; ++i) pthread_join(threads[i], 0);
}
""")
for threads in (0, 2):
    for _ in range(3):
        run("audit", "--", "sh", "-c", f"{forks} {threads} 3 >/dev/null 2>&1 & sleep 0.3; exit 3", status=3, TMPDIR=temporary)
        check(not list(temporary.iterdir()), "nothing is left behind", threads, list(temporary.iterdir()))
    kept = SCRATCH / f"outlived{threads}"
    run("audit", "--keep", kept, "--", "sh", "-c", f"{forks} {threads} 3 >/dev/null 2>&1 & sleep 0.3; exit 3", status=3)


def in_folder():
    return {f.name: f.lstat().st_size for f in kept.iterdir()}


time.sleep(0.2)  # who was about to leave an event when run.json came
before = in_folder()
time.sleep(0.5)
check(in_folder() == before, "nothing is told after the end", set(in_folder()) ^ set(before))
check(sum(n.endswith(".event") for n in before) <= 2, "what was told is in the files", before)

# ---- a signal after the program's end

for n in range(3):
    kept = SCRATCH / f"signalled{n}"
    audited = subprocess.Popen([CLI, "audit", "--keep", kept, "--", "sh", "-c", f"trap '' TERM; echo begun; {forks} 2 2"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    audited.stdout.readline()
    while audited.poll() is None:
        audited.send_signal(signal.SIGTERM)
        time.sleep(0.0005)
    check((kept / "run.json").exists(), "the recording is whole", audited.returncode)
    check(not list(kept.glob("*.event")), "what was told is in the files", list(kept.glob("*.event"))[:3])

# ---- a table of descriptors that processes share without being threads

shares = build("shares", r"""
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int others, stop;
static int open_and_close(void* unused) {
    while (!stop) {
        int const fd = open("/dev/null", O_RDONLY);
        if (fd != 3) ++others;
        close(fd);
    }
    return 0;
}
int main(void) {
    char* stack = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t const helper = clone(open_and_close, stack + 65536, CLONE_VM | CLONE_FILES | SIGCHLD, 0);
    for (int i = 0; i < 2000; ++i) {
        pid_t const child = fork();
        if (child == 0) _exit(0);
        waitpid(child, 0, 0);
    }
    stop = 1;
    waitpid(helper, 0, 0);
    printf("%s\n", others == 0 ? "always the lowest" : "another number");
}
""")
ended = run("audit", "--", shares)
check(ended.stdout == "always the lowest\n", "no descriptor of ours", ended)

# ---- events take few inodes at a time

if IS_ROOT and shutil.which("unshare"):
    few = build("few", r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static void* wait_here(void* unused) { return pause(), unused; }
int main(int count, char** words) {
    pthread_t thread;
    pthread_create(&thread, 0, wait_here, 0);
    for (int i = 0; i < 3000; ++i) {
        pid_t const child = fork();
        if (child == 0) _exit(0);
        waitpid(child, 0, 0);
        usleep(200);
    }
    FILE* mine = fopen(words[1], "w");
    puts(mine != 0 ? "there is room" : "there is none");
    fflush(stdout);
    _exit(0);
}
""")
    place = SCRATCH / "small"
    place.mkdir()
    command = f'mount -t tmpfs -o nr_inodes=1500 none {place} && TMPDIR={place} exec {CLI} audit -- {few} {place}/mine'
    ended = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", command], capture_output=True, text=True)
    if "mount" not in ended.stderr and "unshare" not in ended.stderr:
        check(ended.stdout == "there is room\n", "inodes are the program's", ended)

# ---- what is lost while a process has other rights is told when it has them again

if IS_ROOT:
    write("script", waiting(40))
    lost = run("audit", "--fail-on", "blocking", "--", PYTHON, "-c", r'''
import ctypes, os
assert ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection() == 1
def child():
    os.waitpid(os.fork() or os._exit(0), 0)
os.setresuid(-1, 65534, -1)
child()
os.setresuid(-1, 0, -1)
child()
''', status=4, TMPDIR=temporary, KILN_AUDIT_CUPTI_ALWAYS=FAKE, KILN_TEST_CUPTI=SCRATCH / "script")
    check("could take no more" in lost.stderr, "what is lost is told", lost.stderr)
