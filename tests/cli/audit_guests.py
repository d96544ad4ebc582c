# SPDX-License-Identifier: Apache-2.0
"""Programs that are no easy guests, under `kiln audit` as without it: they close every descriptor, wait for signals, fork beside threads, collect children
in a handler, may write no long files, and lie in folders with names of every alphabet."""

import os
import shutil
import subprocess
import sys

from _audit import FAKE, told, waiting
from _kiln import SCRATCH, check, run, write

PYTHON = os.path.realpath(sys.executable)
BEGIN = """import ctypes, os, resource, signal, sys
assert ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection() == 1
fake = ctypes.CDLL(os.environ["KILN_AUDIT_CUPTI_ALWAYS"])
"""
STEPS = 40
write("script", waiting(STEPS))
write("more", waiting(STEPS).replace("once\n", ""))  # again with every flush


def audit(program, *arguments, script="script", options=("--json",)):
    return run("audit", *options, "--", *program, *arguments, KILN_AUDIT_CUPTI_ALWAYS=FAKE, KILN_TEST_CUPTI=SCRATCH / script)


def audit_python(name, body, **how):
    return audit([PYTHON], write(name, BEGIN + body), **how)


# ---- descriptors

done = audit_python("closes.py", f"""
os.closerange(3, 256)
with open({str(SCRATCH / 'mine')!r}, "wb") as mine:
    mine.write(b"mine"); mine.flush()
    fake.cuptiActivityFlushAll(0)
print(sorted(os.listdir("/proc/self/fd"), key=int)[:3])
""")
check((SCRATCH / "mine").read_bytes() == b"mine", "nothing of ours is in the program's file", (SCRATCH / "mine").read_bytes()[:200])
check(told(done)["processes"][0]["kernels"] == STEPS, "and all of ours in our own", done.stdout)
done = audit(["sh", "-c", 'exec "$@" <&-', "sh", PYTHON], write("no_input.py", BEGIN + "print('input:', os.path.exists('/proc/self/fd/0'))\n"))
check("input: False" in done.stdout, "we do not become its standard input", done.stdout)

done = audit_python("all_open.py", """
import time
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True: held.append(os.open("/dev/null", os.O_RDONLY))
except OSError: pass
time.sleep(1.5)
for fd in held: os.close(fd)
""", script="more")
check(told(done)["can_be_judged"], "ours are not of the program's number", done)
LOWEST = r'''
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    ((int (*)(void))dlsym(dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW), "InitializeInjection"))();
    usleep(200000);
    int others = 0;
    for (time_t end = time(0) + 4; time(0) < end;) {
        close(0);
        int const fd = open("/dev/null", O_RDONLY);
        if (fd != 0) ++others, close(fd);
    }
    printf("%d others\\n", others);
    return 0;
}
'''
compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
if compiler:
    subprocess.run([compiler, "-O1", str(write("lowest.c", LOWEST)), "-o", str(SCRATCH / "lowest"), "-ldl"], check=True)
    done = audit([SCRATCH / "lowest"], script="more", options=())
    check("0 others" in done.stdout, "what a program of one thread opens is the lowest", done)

# ---- signals

done = audit_python("waits.py", """
def others_sleep():
    others = [open(f"/proc/self/task/{t}/stat").read() for t in os.listdir("/proc/self/task") if int(t) != os.getpid()]
    return others and all(about.rsplit(")", 1)[1].split()[0] == "S" for about in others)
while not others_sleep(): pass
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.kill(os.getpid(), signal.SIGTERM)
print("came:", signal.sigwait({signal.SIGTERM}) == signal.SIGTERM)
""")
check("came: True" in done.stdout, "a signal that the program waits for is the program's", done)

done = audit_python("short_files.py", """
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, resource.RLIM_INFINITY))
for _ in range(20):
    fake.cuptiActivityFlushAll(0)
print("still here")
""", script="more")
check("still here" in done.stdout and not told(done)["can_be_judged"], "who may write no long files is not ended by ours", done)
done = audit_python("children.py", """
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
for _ in range(20):
    os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0)
print("still here")
""")
check("still here" in done.stdout, "nor by what is told of its children", done)

# ---- children

FORKS = r'''
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
extern char** environ;
static char* arguments[] = {(char*)"true", 0};
static void* start_others(void* unused) {
    for (;;) {
        pid_t child;
        if (posix_spawn(&child, "/bin/true", 0, 0, arguments, environ) == 0) waitpid(child, 0, 0);
    }
    return unused;
}
int main(void) {
    pthread_t thread;
    for (int i = 0; i < 3; ++i) pthread_create(&thread, 0, start_others, 0);
    for (int i = 0; i < 300; ++i) {
        pid_t const child = fork();
        if (child == 0) {
            execve("/bin/true", arguments, environ);
            _exit(1);
        }
        int status = 1;
        waitpid(child, &status, 0);
        if (status != 0) return 1;
    }
    puts("all ended");
    fflush(stdout);
    _exit(0);
}
'''
HANDLER = r'''
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
extern char** environ;
enum { children = 1500 };
static volatile int ended;
static void collect(int signal) {
    int const before = errno;
    while (waitpid(-1, 0, WNOHANG) > 0) ++ended;
    errno = before;
    (void)signal;
}
int main(void) {
    char* arguments[] = {(char*)"true", 0};
    struct sigaction action = {0};
    action.sa_handler = collect;
    action.sa_flags = SA_RESTART;
    sigaction(SIGCHLD, &action, 0);
    for (int i = 0; i < children; ++i) {
        pid_t child;
        if (posix_spawn(&child, "/bin/true", 0, 0, arguments, environ) != 0) return 1;
    }
    while (ended < children) usleep(1000);
    puts("all ended");
    return 0;
}
'''
for name, text in (("forks", FORKS), ("handler", HANDLER)) if compiler else ():
    subprocess.run([compiler, "-O1", "-pthread", str(write(name + ".c", text)), "-o", str(SCRATCH / name)], check=True)
    done = audit([SCRATCH / name], options=())  # run() gives up on one that hangs
    check("all ended" in done.stdout, f"{name}: nobody waits for us", done)

# ---- names

for folder in ("mülleimer", "Приклад", "例え", "🔥 and a space"):
    text = BEGIN + f"def größe():\n    fake.fake_call(3)  # WAIT\nfor _ in range({STEPS}): größe()\n"
    place = SCRATCH / folder
    place.mkdir()
    (place / "träin.py").write_text(text)
    line = 1 + next(i for i, t in enumerate(text.splitlines()) if "WAIT" in t)
    found = [f for f in told(audit([PYTHON], place / "träin.py"))["findings"] if f["rule"] == "R20"]
    check([f["where"] for f in found] == [f"träin.py:{line}"], f"{folder}: the line is named", found)
    check(found[0]["stack"][0] == f"träin.py:{line} in größe", "and the function", found)
print("ok")
