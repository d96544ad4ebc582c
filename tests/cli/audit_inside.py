# SPDX-License-Identifier: Apache-2.0
"""What `kiln audit` does inside a program's own calls: no thread is cancelled in a function that is no point for it, and a process that has locked itself in
(seccomp) makes no call that it did not allow."""

import re
import subprocess
import sys

from _audit import COMPILER, RECORDER, build, same
from _kiln import SCRATCH, check, run

if not COMPILER:
    print("skipped: no compiler")
    sys.exit(77)

# ---- functions that are no points of cancellation

build("libnvrtc.so.99", r"""
static char handles[37];
static int made;
int nvrtcCreateProgram(void** program, char const* text, char const* name, int headers, char const** sources, char const** names) { return !(*program = &handles[made++ % 37]); }
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

# ---- programs whose handles come again

names = build("names", r"""
#include <stdio.h>
int nvrtcCreateProgram(void**, char const*, char const*, int, char const**, char const**);
int nvrtcCompileProgram(void*, int, char const**);
int main(void) {
    for (int i = 0; i < 200; ++i) {
        void* program;
        char name[16];
        sprintf(name, "p%d.cu", i);
        nvrtcCreateProgram(&program, "", name, 0, 0, 0);
        nvrtcCompileProgram(program, 0, 0);
    }
    return 0;
}
""", str(SCRATCH / "libnvrtc.so.99"))
run("audit", "--keep", SCRATCH / "named", "--", names)
found = re.findall(rb"p(\d+)\.cu", next((SCRATCH / "named").glob("c*.kilnrec")).read_bytes())
check(list(map(int, found)) == list(range(200)), "each has its own name", found)

# ---- processes that have locked themselves in: what they did not allow is their end

LOCKED = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char** environ;
#define ALLOW(n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
int nvrtcCreateProgram(void**, char const*, char const*, int, char const**, char const**);
int nvrtcCompileProgram(void*, int, char const**);
static int lock(char const* by, struct sock_filter* all, int count) {
    struct sock_fprog p = {count, all};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!strcmp(by, "prctl")) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
    if (!strcmp(by, "seccomp")) return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p);
    return syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}
int main(int count, char** words) {
    char const *by = words[1], *what = words[2];
    struct sock_filter few[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), ALLOW(SYS_wait4), ALLOW(SYS_waitid), ALLOW(SYS_write), ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_filter no_prctl[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_filter no_writing[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    int status = 0;
    siginfo_t about;
    void* program = 0;
    nvrtcCreateProgram(&program, "", "a.cu", 0, 0, 0);
    pid_t child = fork();
    if (child == 0) { usleep(50000); _exit(7); }
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0) == 0) return 90;  // whether there is such a thing: it goes on as it was
    if (!strcmp(what, "waits")) {
        if (lock(by, few, sizeof few / sizeof *few)) return 77;
        nvrtcCompileProgram(program, 0, 0);
        waitid(P_PID, child, &about, WEXITED | WNOWAIT);
        waitpid(child, &status, 0);
        write(1, "collected\n", 10);
        _exit(WEXITSTATUS(status));
    }
    if (!strcmp(what, "no prctl") ? lock(by, no_prctl, sizeof no_prctl / sizeof *no_prctl) : lock(by, no_writing, sizeof no_writing / sizeof *no_writing)) return 77;
    char* arguments[] = {"echo", "hi", 0};
    if (!strcmp(words[3], "execve")) execve("/bin/echo", arguments, environ);
    if (!strcmp(words[3], "execv")) execv("/bin/echo", arguments);
    return system("/bin/echo hi");
}
"""
locked = build("locked", LOCKED, str(SCRATCH / "libnvrtc.so.99"))
if subprocess.run([locked, "prctl", "waits"], capture_output=True).returncode == 7:  # else there is no seccomp here
    for by in ("prctl", "seccomp", "syscall"):
        same(f"locked in by {by}: waits", locked, by, "waits")
        for what in ("no prctl", "no writing"):
            for how in ("execve", "execv", "system"):
                same(f"locked in by {by}, {what}: {how}", locked, by, what, how)
print("ok")
