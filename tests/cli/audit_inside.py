# SPDX-License-Identifier: Apache-2.0
"""What `kiln audit` does inside a program's own calls: no thread is cancelled in a function that is no point for it, and a process that has locked itself in
(seccomp) makes no call that it did not allow."""

import subprocess
import sys

from _audit import COMPILER, RECORDER, build, same
from _kiln import SCRATCH, check

if not COMPILER:
    print("skipped: no compiler")
    sys.exit(77)

# ---- functions that are no points of cancellation

build("libnvrtc.so.99", r"""
#include <stdlib.h>
int nvrtcCreateProgram(void** program, char const* text, char const* name, int headers, char const** sources, char const** names) { return !(*program = malloc(1)); }
int nvrtcCompileProgram(void* program, int count, char const** options) { return 0; }
""", "-shared", "-fPIC")
CANCELLED = r"""
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char** environ;
int nvrtcCreateProgram(void**, char const*, char const*, int, char const**, char const**);
int nvrtcCompileProgram(void*, int, char const**);
static char const* how;
static int reached;
static void* go(void* unused) {
    char *words[] = {"echo", "became echo", 0}, *none[] = {"nothing", 0};
    void* program = 0;
    pid_t child = 0;
    if (!strcmp(how, "nvrtc")) nvrtcCreateProgram(&program, "", "a.cu", 0, 0, 0);
    pthread_cancel(pthread_self());
    if (!strcmp(how, "posix_spawn")) posix_spawn(&child, "/bin/echo", 0, 0, words, environ);
    if (!strcmp(how, "posix_spawnp")) posix_spawnp(&child, "echo", 0, 0, words, none);
    if (!strcmp(how, "execve")) execve("/bin/echo", words, environ);
    if (!strcmp(how, "execvpe")) execvpe("echo", words, none);
    if (!strcmp(how, "execl")) { clearenv(); execl("/bin/echo", "echo", words[1], (char*)0); }
    if (!strcmp(how, "fails")) execve("/tmp", words, none);
    if (!strcmp(how, "nvrtc")) nvrtcCompileProgram(program, 0, 0);
    reached = 1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0);
    if (child) waitpid(child, 0, 0);
    return 0;
}
int main(int count, char** words) {
    how = words[1];
    pthread_t thread;
    pthread_create(&thread, 0, go, 0);
    void* gave = 0;
    pthread_join(thread, &gave);
    printf("%s, reached %d\n", gave == PTHREAD_CANCELED ? "cancelled" : "ended", reached);
    return !reached;
}
"""
cancelled = build("cancelled", CANCELLED, str(SCRATCH / "libnvrtc.so.99"))
for how in ("posix_spawn", "posix_spawnp", "execve", "execvpe", "execl", "fails", "nvrtc"):
    same(f"{how} is no point of cancellation", cancelled, how)
points = {"open", "open64", "openat", "openat64", "creat", "close", "read", "pread", "readv", "write", "pwrite", "writev", "fcntl", "fsync", "nanosleep", "usleep", "sleep",
          "poll", "select", "pause", "wait", "waitpid", "wait4", "waitid", "system"}

nm = subprocess.run(["nm", "-D", "--undefined-only", RECORDER.with_name("libkiln-companion.so")], capture_output=True, text=True, check=True).stdout
used = {line.split()[-1].split("@")[0] for line in nm.splitlines()}
check("syscall" in used and not used & points, "the companion calls none", used & points)
print("ok")
