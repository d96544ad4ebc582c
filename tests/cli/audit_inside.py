# SPDX-License-Identifier: Apache-2.0
"""What `kiln audit` does inside a program's own calls: no thread is cancelled in a function that is no point for it, and a process that has locked itself in
(seccomp) makes no call that it did not allow."""

import platform
import re
import subprocess
import sys

from _audit import COMPILER, RECORDER, build, same
from _kiln import CLI, SCRATCH, check, run

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
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
int nvrtcCreateProgram(void**, char const*, char const*, int, char const**, char const**);
int nvrtcCompileProgram(void*, int, char const**);
static void* wait_here(void* unused) { for (;;) pause(); }
int main(int count, char** words) {
    pthread_t thread;
    if (count > 1) pthread_create(&thread, 0, wait_here, 0);
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
for kept, threads in (("named", ()), ("named_by_threads", ("threads",))):
    run("audit", "--keep", SCRATCH / kept, "--", names, *threads)
    found = re.findall(rb"p(\d+)\.cu", next((SCRATCH / kept).glob("c*.kilnrec")).read_bytes())
    check(list(map(int, found)) == list(range(200)), "each has its own name", threads, found)
    check(not [f for f in (SCRATCH / kept).iterdir() if f.is_symlink()], "and is in the file", list((SCRATCH / kept).iterdir()))

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

# Who locks itself in is not forgotten because another thread could not.
FILTERS = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define ALLOW(n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL(n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define PROGRAM(name) struct sock_fprog const name = {sizeof name##_lines / sizeof *name##_lines, name##_lines}
static struct sock_filter few_lines[] = {NUMBER, ALLOW(SYS_wait4), ALLOW(SYS_write), ALLOW(SYS_exit_group), ALLOW(SYS_exit), ALLOW(SYS_futex), ALLOW(SYS_nanosleep), ALLOW(SYS_clock_nanosleep),
                                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
static struct sock_filter all_lines[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
static struct sock_filter no_prctl_lines[] = {NUMBER, KILL(SYS_prctl), KILL(SYS_getpid), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
static PROGRAM(few);
static PROGRAM(all);
static PROGRAM(no_prctl);
static int lock(struct sock_fprog const* by) { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, by); }
static void become(char const* command) { execl("/bin/sh", "sh", "-c", command, (char*)0); }
#define TELL "echo ${LD_AUDIT:+companion}"
"""
race = build("race", FILTERS + r"""
static volatile int done;
static void* in_vain(void* unused) { for (int i = 0; i < 20000; ++i) prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (void*)16); done = 1; return 0; }
int main(void) {
    pthread_t thread;
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(3);
    pthread_create(&thread, 0, in_vain, 0);
    usleep(3000);
    if (lock(&few)) return 77;
    while (!done) usleep(1000);
    waitpid(child, &status, 0);
    write(1, "collected\n", 10);
    _exit(WEXITSTATUS(status));
}
""")
if subprocess.run([race], capture_output=True).returncode == 3:
    for _ in range(3):
        same("one thread locks itself in, another could not", race)

    # A child that shares the memory of who made it locks in itself alone.
    guest = build("guest", FILTERS + r"""
int main(int count, char** words) {
    int status = 0;
    pid_t child = vfork();
    if (child == 0) {
        if (!strcmp(words[1], "fails")) prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (void*)16);
        else if (lock(&all) || lock(&all)) _exit(77);
        if (!strcmp(words[1], "becomes another") && lock(&no_prctl) == 0) execve("/bin/echo", (char*[]){"echo", "became", 0}, environ);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (status) return 9;
    become(TELL);
}
""")
    for how in ("ends", "fails"):
        told = run("audit", "--", guest, how)
        check(told.stdout == "companion\n", "its parent is not locked in", how, told)
    told = run("audit", "--", guest, "becomes another")
    check(told.stdout == "became\ncompanion\n", "nor where it becomes another program", told)

    # Where all threads cannot be locked in, the call gives the number of one that could not.
    if platform.machine() == "x86_64":
        together = build("together", FILTERS + r"""
static volatile int is_apart;
static void* apart(void* unused) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    long status;
    __asm__ volatile("syscall" : "=a"(status) : "a"(SYS_seccomp), "D"(SECCOMP_SET_MODE_FILTER), "S"(0), "d"(&all) : "rcx", "r11", "memory");
    is_apart = 1;
    for (;;) sleep(10);
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, apart, 0);
    while (!is_apart) usleep(1000);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &all) <= 0) return 77;
    become(TELL);
}
""")
        told = run("audit", "--", together)
        check(told.stdout == "companion\n", "a thread's number is no success", told)

    # A lock that was there before, and forbids what only we would call.
    outer = build("outer", FILTERS + r"""
static struct sock_filter outer_lines[] = {NUMBER, KILL(SYS_process_vm_readv), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
static PROGRAM(outer);
int main(int count, char** words) { return lock(&outer) || execv(words[1], words + 1); }
""")
    inner = ["sh", "-c", "/bin/echo hi; exec /usr/bin/env X=1 /bin/echo there"]
    told = subprocess.run([outer, CLI, "audit", "--", *inner], capture_output=True, text=True)
    check((told.stdout, told.returncode) == ("hi\nthere\n", 0), "nobody's memory is read", told)

# Calls that are dispatched to the program.
same("calls that the program takes", build("dispatched", r"""
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
char const* gnu_get_libc_version(void);
static volatile int taken;
static void take(int signal) { ++taken; }
int main(void) {
    FILE* maps = fopen("/proc/self/maps", "r");
    unsigned long at = (unsigned long)gnu_get_libc_version, first = 0, last = 0;
    char line[512];
    while (fgets(line, sizeof line, maps) && (sscanf(line, "%lx-%lx", &first, &last) != 2 || at < first || at >= last)) {}
    signal(SIGSYS, take);
    static char selector = 1;  // all but libc's
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(3);
    int const began = prctl(59, 1, first, last - first, &selector);
    waitpid(child, &status, 0);
    selector = 0;
    printf("%d %x %d\n", began, status, taken);
    return 0;
}
"""))

if platform.machine() == "x86_64":
    same("a clock without the processor's counter", build("no_counter", r"""
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(3);
    int const is_off = prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    waitpid(child, &status, 0);
    printf("%d %x\n", is_off, status);
    return 0;
}
"""))
    same("a call that needs the stack as it was", build("restorer", r"""
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
__asm__(".text\nrestore: mov $15, %edi\n jmp syscall@PLT\n");
void restore(void);
static volatile int handled;
static void handle(int signal) { ++handled; }
struct { void (*handler)(int); unsigned long flags; void (*restorer)(void); unsigned long mask; } action = {handle, 0x04000000, restore, 0};
int main(void) {
    syscall(SYS_rt_sigaction, SIGUSR1, &action, 0L, 8L);
    raise(SIGUSR1);
    printf("%d\n", handled);
    return 0;
}
"""))
print("ok")
