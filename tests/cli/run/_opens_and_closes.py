# SPDX-License-Identifier: Apache-2.0
"""A program that opens, uses and closes libraries as its words say, and the same with Kiln as without."""

import shutil
import subprocess

from _run import NVRTC, SCRATCH, bare, check, under, write

# Does what its words say: o1:NAME opens, g1:NAME globally, n1:NAME only what is loaded, x1 closes; v1 asks for the version, m12 makes with one and
# compiles with the other, q1:NAME asks for a function; d:PLACE goes there, f:NAME opens as descriptor 100, s:COMMAND, k:N shuts out a call for ever.
# b1:NAME opens by dlmopen, l1:NAME in a thread of little stack; =12 are they one, e asks all for the version, a1 and r1 what the loader says of it,
# p12 opens by the name it says, 1 wants to be the only thread, z are removed compilers mapped, c1 cancels a compile, + and - make and destroy a program.
OPENS_AND_CLOSES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
static void *h[128], *kept;
static int without(int number) {
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog all = {4, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}
static void compile(void* one, void* other) {
    int (*create)(void**, char const*, char const*, int, void*, void*) = dlsym(one, "nvrtcCreateProgram");
    int (*make)(void*, int, char const**) = dlsym(other, "nvrtcCompileProgram"); int (*size)(void*, size_t*) = dlsym(one, "nvrtcGetPTXSize");
    void* p = 0; size_t n = 0; char const* options[] = {"-arch=sm_90"};
    int const created = create(&p, "extern \"C\" __global__ void m(int* a) { *a = 480; }", "m.cu", 0, 0, 0), made = make(p, 1, options);
    printf("made %d %d %d\n", created, made, size(p, &n) || n < 100);
}
static void* in_thread(void* name) { return dlopen(name, RTLD_NOW); }
static int cancel(void* payload, void* other) { ++*(int*)payload; return 1; }
static void watched(void* one) {
    int (*create)(void**, char const*, char const*, int, void*, void*) = dlsym(one, "nvrtcCreateProgram"); int (*make)(void*, int, char const**) = dlsym(one, "nvrtcCompileProgram");
    int (*watch)(void*, void*, void*) = dlsym(one, "nvrtcSetFlowCallback"); void* p = 0; int calls = 0;
    if (!watch) return;
    create(&p, "extern \"C\" __global__ void c(int* a) { *a = 481; }", "c.cu", 0, 0, 0); printf("kept %d\n", make(p, 0, 0));
    create(&p, "extern \"C\" __global__ void c(int* a) { *a = 481; }", "c.cu", 0, 0, 0); watch(p, cancel, &calls);
    int const status = make(p, 0, 0); printf("cancelled %d %d\n", status, calls > 0);
}
int main(int count, char** words) {
    setvbuf(stdout, 0, _IONBF, 0);
    for (int i = 1; i < count; ++i) {
        char const *w = words[i], *name = strchr(w, ':') ? strchr(w, ':') + 1 : ""; void** const at = h + (unsigned char)w[1];
        if (w[0] == 'o' || w[0] == 'g' || w[0] == 'n')
            *at = dlopen(name, RTLD_LAZY | (w[0] == 'g' ? RTLD_GLOBAL : w[0] == 'n' ? RTLD_NOLOAD : 0)), printf("%c %s\n", w[0], *at ? "yes" : "no");
        if (w[0] == 'x') printf("closed %d\n", dlclose(*at));
        if (w[0] == 'v') { int a = 0, b = 0; int (*f)(int*, int*) = *at ? dlsym(*at, "nvrtcVersion") : 0; printf("version %d", f ? f(&a, &b) : -1); printf(" %d.%d\n", a, b); }
        if (w[0] == 'u') { int (*f)(void) = dlsym(*at, "uses"); printf("uses %d\n", f()); }
        if (w[0] == 'm') compile(*at, h[(unsigned char)w[2]]);
        if (w[0] == 'q') printf("%s %d\n", name, dlsym(w[1] == '*' ? RTLD_DEFAULT : *at, name) != 0);
        if (w[0] == 'd' && chdir(name)) return 3;
        if (w[0] == 'f') dup2(open(name, O_RDONLY), 100);
        if (w[0] == 's' && system(name)) return 3;
        if (w[0] == 'k' && without(atoi(name))) return 77;
        if (w[0] == 'b') *at = dlmopen(LM_ID_BASE, name, RTLD_NOW), printf("b %s\n", *at ? "yes" : "no");
        if (w[0] == '=') printf("the same %d\n", *at == h[(unsigned char)w[2]]);
        if (w[0] == 'e') { int a = 0, b = 0; int (*f)(int*, int*) = dlsym(RTLD_DEFAULT, "nvrtcVersion"); printf("of all %d %d\n", f ? f(&a, &b) : -1, a); }
        if (w[0] == 'a' || w[0] == 'p') {
            Dl_info about = {0}; struct link_map* map = 0; dladdr(dlsym(*at, "nvrtcVersion"), &about); dlinfo(*at, RTLD_DI_LINKMAP, &map);
            if (w[0] == 'a') printf("in %s %s %d\n", about.dli_fname, map->l_name, (char*)map->l_addr == (char*)about.dli_fbase);
            else h[(unsigned char)w[2]] = dlopen(about.dli_fname, RTLD_NOW), puts("pinned");
        }
        if (w[0] == 'r') { char origin[9999] = ""; printf("origin %d %s\n", dlinfo(*at, RTLD_DI_ORIGIN, origin), origin); }
        if (w[0] == 'l') {
            pthread_attr_t how; pthread_t thread; pthread_attr_init(&how); printf("small %d\n", pthread_attr_setstacksize(&how, 18432));
            pthread_create(&thread, &how, in_thread, (void*)name); pthread_join(thread, at);
        }
        if (w[0] == '1') printf("alone %d\n", unshare(CLONE_NEWUSER) == 0 || errno == EPERM);
        if (w[0] == 'z') printf("held %d\n", system("grep -q 'libnvrtc.*(deleted)' /proc/$PPID/maps") == 0);
        if (w[0] == 'c') watched(*at);
        if (w[0] == '+') { int (*f)(void**, char const*, char const*, int, void*, void*) = dlsym(*at, "nvrtcCreateProgram"); printf("created %d\n", f(&kept, "", "e.cu", 0, 0, 0)); }
        if (w[0] == '-') { int (*f)(void**) = dlsym(*at, "nvrtcDestroyProgram"); printf("destroyed %d\n", f(&kept)); }
    }
    return 0;
}
"""


def opens_and_closes():
    """The program above, and a folder with another compiler of the same name; None where nothing can be compiled."""
    compiler, program, other = shutil.which("cc"), SCRATCH / "opens/program", SCRATCH / "opens/other" / NVRTC.name
    if compiler is None:
        return None
    write("opens/program.c", OPENS_AND_CLOSES)
    write("opens/other/other.c", "int nvrtcVersion(int* a, int* b) { *a = 99; *b = 1; return 0; }\n")
    write("opens/user.c", "int nvrtcVersion(int*, int*); int uses(void) { int a = 0, b = 0; nvrtcVersion(&a, &b); return a; }\n")
    subprocess.run([compiler, "-w", "-pthread", "-o", program, SCRATCH / "opens/program.c", "-ldl"], check=True)
    subprocess.run([compiler, "-shared", "-fPIC", f"-Wl,-soname,{NVRTC.name}", "-o", other, SCRATCH / "opens/other/other.c"], check=True)
    subprocess.run([compiler, "-shared", "-fPIC", f"-Wl,-rpath,{other.parent}", "-o", SCRATCH / "opens/libuser.so", SCRATCH / "opens/user.c", other], check=True)
    return program, other


def as_without(program, what, *words, options=(), before=lambda: None, **environment):
    """The same output and the same end with Kiln as without."""
    for state in ("cold", "warm"):
        before()
        want = bare(program, *words, status=None, **environment)
        before()
        done = under(program, *words, options=("-v", *options), status=None, **environment)
        check((done.returncode, done.stdout) == (want.returncode, want.stdout), f"{what}, {state}", words, done, want)
    return done
