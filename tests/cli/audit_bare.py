# SPDX-License-Identifier: Apache-2.0
"""Programs do under `kiln audit` what they do bare: statuses that nobody wrote, small stacks, a second libc, old versions of functions, another root, little
address space, no memory left, and a first thread that ends before the others."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from _audit import COMPILER, FAKE, build, same, waiting
from _kiln import BIN, CLI, SCRATCH, check, run, write

PYTHON = os.path.realpath(sys.executable)
PLAYED = {"KILN_AUDIT_CUPTI_ALWAYS": FAKE, "KILN_TEST_CUPTI": write("script", waiting(40))}
if not COMPILER:
    print("skipped: no compiler")
    sys.exit(77)

# ---- what was not written stays as it was

same("a status is written where a child was collected", build("status", r"""
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) { pause(); _exit(3); }
    printf("%d", waitpid(child, &status, WNOHANG)); printf(" %d\n", status);
    printf("%d", wait4(child, &status, WNOHANG, 0)); printf(" %d\n", status);
    kill(child, SIGTERM);
    printf("%d", waitpid(child, &status, 0) == child); printf(" %d\n", status);
    status = -1;
    printf("%d %d", waitpid(child, &status, 0), errno == ECHILD); printf(" %d\n", status);
    return status == 0 ? 0 : 1;
}
"""))

# ---- small stacks

SIGNAL_STACK = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int ended;
static void collect(int signal) { while (waitpid(-1, 0, WNOHANG) > 0) ++ended; }
int main(void) {
    char* memory = mmap(0, 65536 + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, 65536, PROT_NONE);
    stack_t stack = {.ss_sp = memory + 65536, .ss_size = 8192};
    sigaltstack(&stack, 0);
    struct sigaction action = {.sa_handler = collect, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGCHLD, &action, 0);
    if (fork() == 0) _exit(0);
    while (!ended) usleep(1000);
    puts("collected");
    return 0;
}
"""
CLONE_STACK = r"""
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
extern char** environ;
static int become(void* how) {
    char* arguments[] = {"true", 0};
    if (how) execl("/bin/true", "true", (char*)0);
    else execve("/bin/true", arguments, environ);
    _exit(9);
}
int main(void) {
    char* memory = mmap(0, 65536 + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, 65536, PROT_NONE);
    for (int how = 0; how < 2; ++how) {
        int status = 1;
        waitpid(clone(become, memory + 65536 + 8192, CLONE_VM | CLONE_VFORK | SIGCHLD, how ? &status : 0), &status, 0);
        printf("%x\n", status);
    }
    return 0;
}
"""
same("a handler on a small stack", build("signal_stack", SIGNAL_STACK))
same("a child on a small stack", build("clone_stack", CLONE_STACK))

# The frame of a signal takes more than 3 KiB where registers are long, so of 4 KiB little is left.
USED_STACK = SIGNAL_STACK.replace('puts("collected");', """
    char const* at = stack.ss_sp;
    while (*at == 0x5a) ++at;
    printf("%ld\\n", (char const*)stack.ss_sp + stack.ss_size - at);
""").replace("sigaltstack(", "for (int i = 0; i < 8192; ++i) memory[65536 + i] = 0x5a;\n    sigaltstack(")
uses = build("used_stack", USED_STACK, "-Wl,-z,now")
alone = int(subprocess.run([str(uses)], capture_output=True, text=True).stdout)
audited = int(run("audit", "--", uses, TMPDIR="/tmp").stdout)
check(audited - alone <= 700, "of a handler's stack a wait takes", audited - alone)

# ---- where Landlock keeps the companion from being opened, nobody is told that it could not be

same("what is started under Landlock", build("walled", r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    unsigned long const read_file = 4;
    char const* allowed[] = {"/usr", "/lib", "/lib64", "/bin", "/etc"};
    int const rules = syscall(444, &read_file, sizeof read_file, 0);
    if (rules < 0) return puts("there is none"), 0;
    for (int i = 0; i < 5; ++i) {
        struct { unsigned long access; int folder; } __attribute__((packed)) below = {read_file, open(allowed[i], O_PATH | O_CLOEXEC)};
        syscall(445, rules, 1, &below, 0);
    }
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(446, rules, 0) != 0) return puts("none may be had"), 0;
    int status = 1;
    if (fork() == 0) execlp("echo", "echo", "hello", (char*)0), _exit(9);
    wait(&status);
    return status != 0;
}
"""))

# ---- a second libc, and a second version of a function

build("plugin.so", r"""
#include <sys/wait.h>
#include <unistd.h>
int plugin_wait(void) { int status; return waitpid(-1, &status, 0); }
int plugin_exec(char* const* arguments) { return execvp("/nonexistent/x", arguments); }
""", "-shared", "-fPIC")
same("each libc has its own environment and errno", build("two_libcs", r"""
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    void* plugin = dlmopen(LM_ID_NEWLM, "./plugin.so", RTLD_NOW);
    if (!plugin) return 9;
    char* none[] = {"x", 0};
    ((int (*)(void))dlsym(plugin, "plugin_wait"))();
    ((int (*)(char* const*))dlsym(plugin, "plugin_exec"))(none);
    int status;
    errno = 0;
    printf("%d %d\n", waitpid(-1, &status, 0), errno == ECHILD);
    fflush(stdout);
    setenv("MINE", "set by the program", 1);
    char* arguments[] = {"sh", "-c", "echo $MINE", 0};
    execvp("sh", arguments);
}
""", "-Wl,-z,now"))
write("no_interpreter", "echo a script ran\n").chmod(0o755)
same("two versions of posix_spawn stay two", build("versions", r"""
#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
extern char** environ;
typedef int (*spawn)(pid_t*, char const*, void*, void*, char* const*, char* const*);
int main(void) {
    spawn all[] = {dlvsym(RTLD_DEFAULT, "posix_spawn", "GLIBC_2.15"), dlvsym(RTLD_DEFAULT, "posix_spawn", "GLIBC_2.2.5")};
    for (int i = 0; i < 2 && all[i]; ++i) {
        char* arguments[] = {"no_interpreter", 0};
        pid_t child;
        int const status = all[i](&child, "./no_interpreter", 0, 0, arguments, environ);
        if (status == 0) waitpid(child, 0, 0);
        printf("%s\n", strerror(status));
        fflush(stdout);
    }
    return 0;
}
"""))

# ---- where the companion cannot be loaded

same("little address space", "sh", "-c", "ulimit -v 3500; exec /bin/echo hi")
SHELLS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <wordexp.h>
int main(int count, char** words) {
    struct rlimit room = {5500 << 10, 5500 << 10};
    if (!strcmp(words[1], "room") && setrlimit(RLIMIT_AS, &room)) return 9;
    if (!strcmp(words[1], "root") && (chroot(words[3]) || chdir("/"))) return 9;
    char text[99] = "";
    wordexp_t all;
    FILE* from;
    if (!strcmp(words[2], "system")) return system("echo hi") != 0;
    if (!strcmp(words[2], "popen") && (from = popen("echo hi", "r"))) fgets(text, sizeof text, from), printf("%s %d", text, pclose(from));
    if (!strcmp(words[2], "wordexp")) printf("%d %s", wordexp("$(echo hi)", &all, 0), all.we_wordv[0]);
    return 0;
}
"""
shells = build("shells", SHELLS)
for how in ("system", "popen", "wordexp"):
    same(f"little address space, {how}", shells, "room", how)
hello = build("hello", '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n')
if os.geteuid() == 0:
    root = SCRATCH / "root"
    for file in [str(hello), *re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", hello], capture_output=True, text=True, check=True).stdout)]:
        to = root / pathlib.Path(file).relative_to("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)
    for file in ["/bin/sh", *re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=True).stdout)]:
        (root / file[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, root / file[1:])
    for how in ("system", "popen", "wordexp"):
        same(f"another root, {how}", shells, "root", how, root)
    for how in ("execv", "execve", "posix_spawn"):
        same(f"another root, {how}", PYTHON, write(f"{how}.py", f"""
import os
os.chroot({str(root)!r}); os.chdir("/")
program, words = {str(hello)!r}, ["hello"]
if "{how}" == "execv": os.execv(program, words)
if "{how}" == "execve": os.execve(program, words, dict(os.environ))
os.waitpid(os.posix_spawn(program, words, dict(os.environ)), 0)
"""))

# ---- pointers that point nowhere

same("exec says so", build("nowhere", r"""
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    char *words[] = {"x", 0}, *bad[] = {"A=1", (char*)16, 0}, **none = (char**)16;
    char* many[20] = {0};
    for (int i = 0; i < 16; ++i) many[i] = "B=1";
    many[16] = (char*)16;
    pid_t child;
    for (int i = 0; i < 3; ++i) {
        char** given = i == 0 ? none : i == 1 ? bad : many;
        printf("%d", execve("/bin/true", words, given)), printf(" %s\n", strerror(errno));
        printf("%d", execvpe("true", words, given)), printf(" %s\n", strerror(errno));
        printf("%s\n", strerror(posix_spawn(&child, "/bin/true", 0, 0, words, given)));
    }
    char* path = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 4090;
    memcpy(path, "/bin/t", 6);
    munmap(path + 6, 4096);
    for (int i = 0; i < 2; ++i, path = (char*)16) {
        printf("%d", execv(path, words)), printf(" %s\n", strerror(errno));
        printf("%d", execl(path, "x", (char*)0)), printf(" %s\n", strerror(errno));
        printf("%d", execve(path, words, words)), printf(" %s\n", strerror(errno));
        printf("%d", execveat(AT_FDCWD, path, words, words, 0)), printf(" %s\n", strerror(errno));
        printf("%s\n", strerror(posix_spawn(&child, path, 0, 0, words, words)));
    }
    return 0;
}
"""))

# ---- descriptors: no thread meets one of ours

collecting = r"""
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int done;
static void* collect(void* unused) {
    char *words[] = {"true", 0}, *none[] = {"A=1", 0};
    for (int i = 0; i < 2000; ++i) {
        pid_t child = vfork();
        if (child == 0) _exit(0);
        waitpid(child, 0, 0);
        if (i % 200 == 0 && posix_spawn(&child, "/bin/true", 0, 0, words, none) == 0) waitpid(child, 0, 0);
    }
    done = 1;
    return 0;
}
"""
same("the lowest number is the program's", build("lowest", collecting + r"""
int main(void) {
    pthread_t thread;
    int other = 0;
    close(0);
    pthread_create(&thread, 0, collect, 0);
    while (!done) {
        int fd = dup(2);
        other += fd != 0;
        close(fd);
    }
    printf("%d\n", other);
    return 0;
}
"""))

# ---- variables and arguments

given = build("given", r"""
#include <unistd.h>
int main(int count, char** words) {
    char* variables[] = {"PATH=/usr/bin:/bin", "Z=1", "A=first", "A=second", "without", "=odd", "KILN_CACHE_DIR=/nonexistent", 0};
    execve(words[1], words + 1, variables);
    return 9;
}
""")
lists = build("lists", r"""
#include <stdio.h>
#include <string.h>
extern char** environ;
int main(void) {
    for (char** at = environ; *at; ++at)
        if (!strstr(*at, "INJECTION64_PATH=") && strncmp(*at, "LD_AUDIT=", 9) && strncmp(*at, "GLIBC_TUNABLES=", 15) && (strncmp(*at, "KILN_AUDIT_", 11))) puts(*at);
    return 0;
}
""")
bare = subprocess.run([given, lists], capture_output=True, text=True, check=True).stdout
audited = subprocess.run([given, CLI, "audit", "--", lists], capture_output=True, text=True, check=True).stdout
tunables = "glibc.malloc.check=0:mine.glibc.rtld.optional_static_tls.too=1"
asked = run("audit", "--", "sh", "-c", "echo $GLIBC_TUNABLES", GLIBC_TUNABLES=tunables)
check(asked.stdout == f"{tunables}:glibc.rtld.optional_static_tls=4096\n", "another name with that one in it", asked)
asked = run("audit", "--", "sh", "-c", "echo $GLIBC_TUNABLES", GLIBC_TUNABLES="glibc.malloc.check=0:glibc.rtld.optional_static_tls=512")
check(asked.stdout == "glibc.malloc.check=0:glibc.rtld.optional_static_tls=512\n", "one that is set", asked)
check(audited == bare and "A=first\nA=second\nwithout\n=odd\n" in bare, "variables as they came", bare, audited)


def runs(count, *before):
    try:
        return subprocess.run([*map(str, before), "/bin/true", "x" * count, *["x" * 1000] * thousands], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    except OSError:
        return None


def most():
    """The longest word that leaves just enough room for the program bare."""
    low, high = 0, 100_000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if runs(middle) else (low, middle)
    return low


thousands = 2000
while thousands > 0 and not runs(0):
    thousands -= 50
if runs(0) and not runs(100_000):  # there is a bound, and it is near
    words = most() - 200  # kiln's own words
    full = runs(words, CLI, "audit", "--fail-on", "low", "--")
    check(full is not None and full.returncode == 4 and "no room for it beside" in full.stderr, "no room for our variables", full)

# ---- no memory left

BEGIN = """import ctypes, os, resource, sys, time
def begin(): assert ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection() == 1
def leave(bytes):
    used = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (used + bytes, resource.RLIM_INFINITY))
"""
names = "\n".join(["once", "device 132 H200"] + [f"kernel {n + 1} 7 {10**6 + n * 9000} {10**6 + n * 9000 + 5000} 500 256 {'k' * 900}{n}" for n in range(3000)]) + "\n"
write("long_names", names)
for size in (300_000, 2_000_000, 20_000_000):
    for order in ("begin(); leave", "ctypes.CDLL(os.environ['CUDA_INJECTION64_PATH']); leave"):
        text = BEGIN + f"{order}({size})\n" + ("" if order.startswith("begin") else "begin()\n") + "time.sleep(1.3)\nprint('still here')\n"
        left = run("audit", "--fail-on", "blocking", "--", PYTHON, write("memory.py", text), status=None, **{**PLAYED, "KILN_TEST_CUPTI": SCRATCH / "long_names"})
        check(left.stdout == "still here\n" and left.returncode in (0, 4), f"{order}({size})", left)
        check(left.returncode == 4 or size == 20_000_000, "what is not whole is judged by nobody", left)

# ---- the first thread ends, and later the last

start = BIN / "kiln-test-driver_start.so"
leaves = build("leaves", r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void* last(void* unused) { usleep(300000); puts("the last thread ends"); return 0; }
int main(void) { pthread_t thread; pthread_create(&thread, 0, last, 0); pthread_exit(0); }
""")
began = time.monotonic()
ended = run("audit", "--fail-on", "blocking", "--", "env", f"LD_PRELOAD={start}", leaves, status=0, **PLAYED)
check(ended.stdout == "the last thread ends\n" and time.monotonic() - began < 60, "a process ends with the last thread of the program", ended)
check("160 records" in ended.stderr, "and its recording is whole", ended.stderr)
# ---- environments that keep LD_AUDIT and not where the recording is, and addresses at which there is nothing

same("a child that is told of us, but not where to write", "env", "-u", "KILN_AUDIT_DIR", "echo", "alive")
same("nor where there can be nothing", "env", "KILN_AUDIT_DIR=/" + 5000 * "x", "echo", "alive")
nowhere = build("nowhere", r"""
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char** words) {
    char *arguments[] = {"true", 0}, *at = (char*)(long)atoi(words[1]), *entries[] = {at, 0};
    char** const all = atoi(words[2]) ? entries : (char**)at;
    execve("/bin/true", arguments, all);
    printf("execve %d\n", errno);
    execvpe("true", arguments, all);
    printf("execvpe %d\n", errno);
    fexecve(open("/bin/true", O_RDONLY), arguments, all);
    printf("fexecve %d\n", errno);
    return 0;
}
""")
for address in (1, 4, 7, 8, 4096, -1):
    for of_entry in (0, 1):
        same(f"an environment at {address}", nowhere, address, of_entry)
print("ok")
