# SPDX-License-Identifier: Apache-2.0
"""`kiln run`. Threads, callbacks, fork() and exit(): nobody waits for ever, and nothing of ours is left."""

import shutil
import subprocess

from _opens_and_closes import opens_and_closes
from _run import LONG, NVJITLINK, NVRTC, PYTHON, SCRATCH, bare, check, run, run_tests, test, under, write

# Compiles, or links, in main and in an exit handler that was registered before; a compile that is watched is made in the program itself.
EXITS = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void* h;
static char const* salt;
static int plain;
static int go_on(void* payload, void* other) { return 0; }
static void compile(int number) {
    int (*create)(void**, char const*, char const*, int, void*, void*) = dlsym(h, "nvrtcCreateProgram"); int (*make)(void*, int, char const**) = dlsym(h, "nvrtcCompileProgram");
    int (*watch)(void*, void*, void*) = dlsym(h, "nvrtcSetFlowCallback"), (*destroy)(void**) = dlsym(h, "nvrtcDestroyProgram"); char text[200]; void* p = 0;
    sprintf(text, "extern \"C\" __global__ void e(int* a) { *a = %d; }\n// %s", number, number ? salt : "");
    create(&p, text, "e.cu", 0, 0, 0);
    if (watch && !plain) watch(p, go_on, 0);
    int const made = make(p, 0, 0); printf("compiled %d %d\n", made, destroy(&p));
}
static void link(int number) {
    int (*create)(void**, unsigned, char const**) = dlsym(h, "nvJitLinkCreate"), (*destroy)(void**) = dlsym(h, "nvJitLinkDestroy"), (*complete)(void*) = dlsym(h, "nvJitLinkComplete");
    int (*add)(void*, int, void const*, size_t, char const*) = dlsym(h, "nvJitLinkAddData"); char const* options[] = {"-arch=sm_90"}; char text[300]; void* k = 0;
    sprintf(text, ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k%d() { ret; }\n// %s\n", number, salt);
    int const created = create(&k, 1, options), added = add(k, 2, text, strlen(text) + 1, "x"), linked = complete(k); printf("linked %d %d %d %d\n", created, added, linked, destroy(&k));
}
static void (*work)(int);
static void at_exit(void) { work(2); puts("the end"); }
static void* thread(void* none) { return 0; }
int main(int count, char** words) {
    setvbuf(stdout, 0, _IONBF, 0);
    h = dlopen(words[1], RTLD_NOW); work = strstr(words[1], "nvrtc") ? compile : link; salt = words[2]; plain = words[3] != 0;
    if (work == compile) compile(0);
    atexit(at_exit);
    work(1);
    if (words[3] && !strcmp(words[3], "in a thread")) { pthread_t last; pthread_create(&last, 0, thread, 0); }
    if (words[3]) pthread_exit(0);
    return 3;
}
"""


@test
def exit_handlers_may_compile():
    """The real library is opened late. It is ended after all that the program registered, as if it were not."""
    compiler, program = shutil.which("cc"), SCRATCH / "exits"
    if compiler is None:
        return
    write("exits.c", EXITS)
    subprocess.run([compiler, "-w", "-pthread", "-o", program, SCRATCH / "exits.c", "-ldl"], check=True)
    under(program, NVRTC, "filled", status=3)
    for library in filter(None, (NVRTC, NVJITLINK)):
        for options in ((), ("--eager",), ("--verify",)):
            for number in range(4):
                words = [library, f"{options}{number}"]
                want, done = bare(program, *words, status=3), under(program, *words, options=options, status=None)
                check((done.returncode, done.stdout) == (want.returncode, want.stdout), "compiled and linked at exit", words, done, want)
        # Where main has ended before: glibc calls exit() when the last thread ends, and a thread of ours would be the last again.
        for last in ("in main", "in a thread"):
            for settings in ({}, {"KILN_WORKERS": "0"}):
                words = [library, f"{last}{settings}", last]
                want, done = bare(program, *words), under(program, *words, status=None, **settings)
                check((done.returncode, done.stdout) == (want.returncode, want.stdout) and "the end" in want.stdout, "when the last thread has ended", words, done, want)


# A watcher that does what it is told, and who calls it.
CALLBACKS = r"""
#include <dlfcn.h>
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
static void* h; static char const *mode, *salt; static int calls;
template <class F> static F* of(F*& f, char const* name) { return f = reinterpret_cast<F*>(dlsym(h, name)); }
static int watcher(void*, void*) {
    ++calls;
    if (!strcmp(mode, "throws")) throw std::runtime_error("mine");
    if (!strcmp(mode, "ends its thread")) pthread_exit(reinterpret_cast<void*>(9));
    if (!strcmp(mode, "cancels its thread")) { pthread_cancel(pthread_self()); pthread_testcancel(); }
    return !strcmp(mode, "cancels once") && calls == 1;
}
static void* body(void*) {
    int (*create)(void**, char const*, char const*, int, void*, void*); int (*make)(void*, int, char const**); int (*watch)(void*, int (*)(void*, void*), void*); int (*destroy)(void**); int (*size)(void*, size_t*);
    of(create, "nvrtcCreateProgram"), of(make, "nvrtcCompileProgram"), of(watch, "nvrtcSetFlowCallback"), of(destroy, "nvrtcDestroyProgram"), of(size, "nvrtcGetPTXSize");
    char text[200]; void* p = nullptr; size_t n = 0; int made = -1;
    sprintf(text, "extern \"C\" __global__ void w(int* a) { *a = 482; }\n// %s", salt);
    create(&p, text, "w.cu", 0, 0, 0);
    if (mode[0]) watch(p, watcher, nullptr);
    try { made = make(p, 0, 0); } catch (std::exception const& e) { printf("caught %s\n", e.what()); }
    int const has = size(p, &n); printf("made %d, has %d, asked %d\n", made, has, calls > 0); printf("destroyed %d\n", destroy(&p));
    return nullptr;
}
int main(int, char** words) {
    setvbuf(stdout, nullptr, _IONBF, 0); h = dlopen(words[1], RTLD_NOW); salt = words[2]; mode = words[3]; pthread_t thread; void* out;
    if (!dlsym(h, "nvrtcSetFlowCallback")) return 0;
    pthread_create(&thread, nullptr, body, nullptr); pthread_join(thread, &out); printf("thread %ld\n", long(out)); printf("closed %d\n", dlclose(h));
}
"""


@test
def callbacks_of_the_program():
    """One that throws, or ends its thread, does so through us; one that cancels is heard, whoever asked it."""
    compiler, program = shutil.which("c++"), SCRATCH / "callbacks"
    if compiler is None:
        return
    write("callbacks.cpp", CALLBACKS)
    subprocess.run([compiler, "-w", "-pthread", "-o", program, SCRATCH / "callbacks.cpp", "-ldl"], check=True)
    for mode in ("throws", "ends its thread", "cancels its thread", "cancels once"):
        for options in ((), ("--eager",), ("--verify",)):
            words = [program, NVRTC, f"{mode} {options}"]
            want = bare(*words, mode, status=None)
            for state in ("cold", "warm"):
                done = under(*words, mode, options=options, status=None)
                check((done.returncode, done.stdout) == (want.returncode, want.stdout), f"a watcher that {mode}, {state}", done, want)
                under(*words, "")


@test
def a_callback_after_a_compile_that_failed():
    """The next compile asks it, also where the first was made in the program with its folders out of sight."""
    write("late.py", r'''
import ctypes as C, sys
n = C.CDLL(sys.argv[1]); z = C.c_size_t()
if not hasattr(n, "nvrtcSetFlowCallback"): sys.exit(0)
cancel = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_void_p)(lambda a, b: 1)
def words(*w): return len(w), (C.c_char_p * len(w))(*w)
for name, folder in ((sys.argv[2].encode() + b"/late.cu", b"-I/usr/include"), (b"late.cu", b"-I" + sys.argv[2].encode()), (None, b"-DNONE")):
    p = C.c_void_p(); n.nvrtcCreateProgram(C.byref(p), b"__global__ void late() { MISSING; }", name, 0, None, None)
    print(n.nvrtcCompileProgram(p, *words(b"-arch=sm_90", folder)), n.nvrtcSetFlowCallback(p, cancel, None), n.nvrtcCompileProgram(p, *words(b"-arch=sm_90", folder, b"-DMISSING")))
''')
    words = [PYTHON, SCRATCH / "late.py", NVRTC, SCRATCH]
    want = bare(*words).stdout
    for settings in ({}, {"KILN_WORKERS": "0"}):
        done = under(*words, **settings)
        check(done.stdout == want, "a callback that came late is asked", settings, done, want)


# A watcher that leaves a compile for good, and everybody who compiles after it.
LEAVING = r"""
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>
#include <unistd.h>
static void* h; static char const *mode, *salt; static int calls; static jmp_buf back; static bool again, really;
static int (*create)(void**, char const*, char const*, int, void*, void*); static int (*make)(void*, int, char const**); static int (*watch)(void*, int (*)(void*, void*), void*); static int (*destroy)(void**); static int (*size)(void*, size_t*);
template <class F> static void of(F*& f, char const* name) { f = reinterpret_cast<F*>(dlsym(h, name)); }
static int goes_on(void*, void*) { return 0; }
static void* made_by(char const* what) { static char text[300]; void* p = nullptr; sprintf(text, "extern \"C\" __global__ void w(int* a) { *a = 482; }\n// %s %s", salt, what); create(&p, text, "w.cu", 0, 0, 0); return p; }
static void tell(char const* what, int made, void* p) { size_t n = 0; int const has = size(p, &n), gone = destroy(&p); printf("%s: made %d, has %d, destroyed %d\n", what, made, has, gone); }
static void one(char const* what, bool watched) { void* const p = made_by(what); if (watched) watch(p, goes_on, nullptr); tell(what, make(p, 0, 0), p); }
// At its first question the compiler holds a lock of its own, which it never gives back if it is left then.
static int leaves(void*, void*) {
    if (++calls != 2) return 0;
    if (!strcmp(mode, "throws")) throw std::runtime_error("mine");
    if (!strcmp(mode, "jumps")) longjmp(back, 1);
    if (!strcmp(mode, "ends its thread")) pthread_exit(reinterpret_cast<void*>(9));
    if (!strcmp(mode, "cancels its thread")) { pthread_cancel(pthread_self()); pthread_testcancel(); }
    if (!strcmp(mode, "compiles")) { one("within, watched", true); one("within", false); }
    return 0;
}
static void* leaving(void*) {
    static void* p; static volatile int made; p = made_by("leaves"); made = -1;
    if (again) make(p, 0, 0);
    if (really) make(p, 0, 0);
    watch(p, leaves, nullptr);
    if (!setjmp(back)) { try { made = make(p, 0, 0); } catch (std::exception const& e) { printf("caught %s\n", e.what()); } }
    else puts("jumped");
    tell("leaves", made, p); one("the same thread, watched", true); one("the same thread", false);
    return nullptr;
}
static void* other(void*) { one("another thread, watched", true); one("another thread", false); return nullptr; }
int main(int, char** words) {
    setvbuf(stdout, nullptr, _IONBF, 0); h = dlopen(words[1], RTLD_NOW); salt = words[2]; mode = words[3]; again = words[4][0] != 'o'; really = words[4][0] == 'r'; alarm(atoi(words[5])); pthread_t thread; void* out;
    of(create, "nvrtcCreateProgram"), of(make, "nvrtcCompileProgram"), of(watch, "nvrtcSetFlowCallback"), of(destroy, "nvrtcDestroyProgram"), of(size, "nvrtcGetPTXSize");
    if (!watch) return 0;
    pthread_create(&thread, nullptr, leaving, nullptr); pthread_join(thread, &out); printf("thread %ld\n", long(out));
    pthread_create(&thread, nullptr, other, nullptr); pthread_join(thread, &out); printf("thread %ld\n", long(out));
    one("main, watched", true); printf("asked %d, closed %d\n", calls > 1, dlclose(h));
}
"""


@test
def callbacks_that_leave_keep_nobody_waiting():
    """While a function of the program runs nothing of ours is held: it may never come back, and others may compile meanwhile."""
    compiler, program = shutil.which("c++"), SCRATCH / "leaving"
    if compiler is None:
        return
    write("leaving.cpp", LEAVING)
    subprocess.run([compiler, "-w", "-pthread", "-o", program, SCRATCH / "leaving.cpp", "-ldl"], check=True)
    for mode in ("throws", "jumps", "ends its thread", "cancels its thread", "compiles"):
        for which in ("once", "again", "really again"):  # the first compile, one by the library itself, one that it calls the watcher of directly
            want = bare(program, NVRTC, "", mode, which, 20, status=None)
            if want.returncode != 0:  # a compiler that holds its lock longer
                continue
            for settings in ({}, {"KILN_WORKERS": "0"}):
                done = under(program, NVRTC, f"{mode} {which} {settings}", mode, which, 120, status=None, **settings)
                check((done.returncode, done.stdout) == (0, want.stdout), f"a watcher that {mode}", which, done, want)


@test
def no_thread_of_ours_stays():
    """A process of several threads may not unshare its user namespace, and much else."""
    made = opens_and_closes()
    if made is None:
        return
    for workers in ("1", "0"):
        for number in range(3):
            words = [f"o1:{NVRTC}", "m11", "1"]
            want, done = bare(made[0], *words), under(made[0], *words, KILN_WORKERS=workers, KILN_CACHE_DIR=SCRATCH / f"alone/{workers}/{number}")
            # A compiler may leave one of its own behind, where it has a driver beside it: then Kiln's worker has that.
            check(done.stdout in (want.stdout, want.stdout.replace("alone 0", "alone 1")) and "1 made" in done.stderr, "none is left", done, want)


@test
def threads_of_the_program():
    """No call of a stand-in is one where a thread is cancelled, libraries may keep much for each thread, and threads may be small."""
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("cancelled.c", r'''
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
static void* h; static int done;
static void* work(void* x) {
    void* p = 0; int (*c)(void**, char const*, char const*, int, void*, void*) = dlsym(h, "nvrtcCreateProgram"); int (*d)(void*, int, void*) = dlsym(h, "nvrtcCompileProgram");
    pthread_cancel(pthread_self()); int const made = c(&p, "__global__ void c() {}", "c.cu", 0, 0, 0);
    done = 1 + made + d(p, 0, 0); pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0); return x;
}
int main(int n, char** v) { pthread_t t; void* r; h = dlopen(v[1], RTLD_NOW); pthread_create(&t, 0, work, 0); pthread_join(t, &r); printf("%d %d\n", done, r == PTHREAD_CANCELED); return 0; }
''')
    subprocess.run([compiler, "-w", "-o", SCRATCH / "cancelled", SCRATCH / "cancelled.c", "-ldl", "-pthread"], check=True)
    for again in range(2):
        done = under(SCRATCH / "cancelled", NVRTC)
        check(done.stdout == "1 0\n", "a compile is no cancellation point", done)
    write("much.c", "__attribute__((tls_model(\"initial-exec\"))) __thread char much[3000]; int use(int i) { return much[i] = 1; }\n")
    write("threads.c", "#include <pthread.h>\n#include <stdio.h>\nint use(int);\nstatic void* f(void* x) { return use(5) ? 0 : x; }\n"
          "int main(void) { pthread_attr_t a; pthread_t t; void* r; pthread_attr_init(&a); pthread_attr_setstacksize(&a, 16384); int e = pthread_create(&t, &a, f, 0); if (!e) pthread_join(t, &r); printf(\"%d\\n\", e); return e != 0; }\n")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", SCRATCH / "libmuch.so", SCRATCH / "much.c"], check=True)
    subprocess.run([compiler, "-o", SCRATCH / "threads", SCRATCH / "threads.c", SCRATCH / "libmuch.so", f"-Wl,-rpath,{SCRATCH}", "-pthread"], check=True)
    bare(SCRATCH / "threads")
    under(SCRATCH / "threads")
    under("sh", "-c", SCRATCH / "threads")
    run("audit", "--", SCRATCH / "threads", status=None)
    check("0" in run("audit", "--", SCRATCH / "threads", status=None).stdout.split(), "and under kiln audit")
    mine = under("sh", "-c", "echo $GLIBC_TUNABLES", GLIBC_TUNABLES="glibc.malloc.check=0").stdout
    check(mine.startswith("glibc.malloc.check=0:"), "the user's own are kept", mine)
    mine = under("sh", "-c", "echo $GLIBC_TUNABLES", GLIBC_TUNABLES="glibc.rtld.optional_static_tls=600").stdout
    check(mine == "glibc.rtld.optional_static_tls=600\n", "and not changed", mine)
    built = subprocess.run([compiler, "-fsanitize=thread", "-o", SCRATCH / "watched", SCRATCH / "still.c"], capture_output=True) if write("still.c", "int main(void) { return 3; }\n") else None
    if built.returncode == 0 and subprocess.run([SCRATCH / "watched"], capture_output=True).returncode == 3:
        done = under(SCRATCH / "watched", options=("-v",), status=3)
        check("runs as without Kiln: libtsan" in done.stderr, "one that keeps too much runs without us", done.stderr)
        run("audit", "--", SCRATCH / "watched", status=3)


@test
def a_thousand_forks():
    """Children of a program with threads, each of which is answered: nobody is left a lock that nobody opens."""
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("forks.c", r'''
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static int (*create)(void**, char const*, char const*, int, void*, void*), (*compile)(void*, int, char const**), (*size)(void*, size_t*), (*destroy)(void**);
static volatile int stop;
static int one(void) {
    void* p = 0; char const* options[] = {"-arch=sm_90"}; size_t n = 0;
    int const bad = create(&p, "extern \"C\" __global__ void forked(int* a) { *a = 3; }", "f.cu", 0, 0, 0) || compile(p, 1, options) || size(p, &n) || n < 1000;
    return destroy(&p) || bad;
}
static void* busy(void* none) { while (!stop) if (one()) exit(9); return none; }
int main(int count, char** v) {
    void* h = dlopen(v[1], RTLD_NOW);
    create = dlsym(h, "nvrtcCreateProgram"); compile = dlsym(h, "nvrtcCompileProgram"); size = dlsym(h, "nvrtcGetCUBINSize"); destroy = dlsym(h, "nvrtcDestroyProgram");
    if (one()) return 2;
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) pthread_create(threads + i, 0, busy, 0);
    for (int i = 0; i < atoi(v[2]); ++i) {
        pid_t const child = fork();
        if (child == 0) { alarm(60); int const bad = one(); if (i % 2) exit(bad); _exit(bad); }
        int status = -1;
        if (waitpid(child, &status, 0) != child || status) { printf("fork %d: %x\n", i, status); return 3; }
    }
    stop = 1;
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], 0);
    return 0;
}
''')
    subprocess.run([compiler, "-w", "-O1", "-pthread", "-o", SCRATCH / "forks", SCRATCH / "forks.c", "-ldl"], check=True)
    under(SCRATCH / "forks", NVRTC, 0)
    done = under(SCRATCH / "forks", NVRTC, 2500)
    check(" 0 made" in done.stderr, "all were answered", done.stdout, done.stderr)


@test
def the_first_use_and_fork():
    """A child of fork() is answered although a thread of its parent was just using the library for the first time."""
    write("first.py", r'''
import ctypes as C, os, signal, sys, threading, time
n = C.CDLL(sys.argv[1]); begun = threading.Event(); a, b = C.c_int(), C.c_int()
def ask(): begun.set(); n.nvrtcVersion(C.byref(a), C.byref(b))
thread = threading.Thread(target=ask); thread.start(); begun.wait(); children = []
for i in range(6):
    child = os.fork()
    if child == 0:
        signal.alarm(60); x, y = C.c_int(), C.c_int(); bad = n.nvrtcVersion(C.byref(x), C.byref(y)); os._exit(bad or x.value < 12)
    children.append(child); time.sleep(float(sys.argv[2]))
thread.join(); print([os.waitpid(c, 0)[1] for c in children])
''')
    for pause in ("0.0005", "0.004"):
        done = under(PYTHON, SCRATCH / "first.py", NVRTC, pause, KILN_CACHE_DIR=SCRATCH / ("first" + pause))
        check(done.stdout == "[0, 0, 0, 0, 0, 0]\n", "every child is answered", done.stdout, done.stderr)


@test
def forks_while_others_compile():
    """A child whose parent's other threads are in the compiler at that moment: it is not left a lock that nobody opens."""
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("busy.c", r"""
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int (*create)(void**, char const*, char const*, int, void*, void*), (*compile)(void*, int, char const**), (*destroy)(void**), (*watch)(void*, int (*)(void*, void*), void*);
static char const* text;
static sem_t inside, forked;
static atomic_int calls;
static int called(void* none, void* nothing) { if (calls++ == 0) { sem_post(&inside); sem_wait(&forked); } return 0; }
static int one(int which, int (*callback)(void*, void*)) {
    char* source = malloc(strlen(text) + 64); void* p = 0; char const* options[] = {"-arch=sm_90"};
    sprintf(source, "#define NUMBER %d\n%s", which, text);
    int const bad = create(&p, source, 0, 0, 0, 0) || (callback && watch(p, callback, 0)) || compile(p, 1, options);
    free(source);
    return destroy(&p) || bad;
}
static void* busy(void* none) { void* bad = one(0, called) ? &calls : 0; sem_post(&inside); return bad; }
int main(int count, char** v) {
    void* h = dlopen(v[1], RTLD_NOW); int const many = atoi(v[3]);
    create = dlsym(h, "nvrtcCreateProgram"); compile = dlsym(h, "nvrtcCompileProgram"); destroy = dlsym(h, "nvrtcDestroyProgram"); text = v[2];
    if (!(watch = dlsym(h, "nvrtcSetFlowCallback"))) return 0;
    sem_init(&inside, 0, 0); sem_init(&forked, 0, 0);
    pthread_t thread; void* bad = 0; int children[8], status = 0;
    pthread_create(&thread, 0, busy, 0);
    sem_wait(&inside);
    for (int i = 0; i < many; ++i) if ((children[i] = fork()) == 0) { alarm(atoi(v[4])); _exit(one(1 + i, 0)); }
    sem_post(&forked);
    for (int i = 0; i < many; ++i) { waitpid(children[i], &status, 0); if (status) { printf("child %d: %x\n", i, status); bad = &calls; } }
    void* failed = 0; pthread_join(thread, &failed);
    printf("%d in the compiler\n", calls > 0);
    return bad || failed;
}
""")
    subprocess.run([compiler, "-w", "-O1", "-pthread", "-o", SCRATCH / "busy", SCRATCH / "busy.c", "-ldl"], check=True)
    text = LONG.replace("%d", "NUMBER")
    done = under(SCRATCH / "busy", NVRTC, text, 4, 200, KILN_WORKERS=1, KILN_CACHE_DIR=SCRATCH / "busy.cache", status=None)
    check(done.returncode == 0 and done.stdout in ("", "1 in the compiler\n"), "every child comes to an end", done.stdout, done.stderr)


# A plugin that compiles as it is loaded, while another thread compiles: the loader's lock is then the plugin's.
PLUGIN = r"""
#include <stdio.h>
#include <stdlib.h>
int nvrtcCreateProgram(void**, char const*, char const*, int, void*, void*); int nvrtcCompileProgram(void*, int, char const**); int nvrtcDestroyProgram(void**);
static void compile(char const* salt, int number) {
    char text[200]; void* p = 0; char const* options[] = {"-arch=sm_90"};
    sprintf(text, "extern \"C\" __global__ void p(int* a) { *a = %d; }\n// %s", number, salt);
    int const created = nvrtcCreateProgram(&p, text, "p.cu", 0, 0, 0), made = nvrtcCompileProgram(p, 1, options);
    if (created || made || nvrtcDestroyProgram(&p)) { printf("not compiled: %d %d\n", created, made); abort(); }
}
#ifdef PLUGIN
__attribute__((constructor)) static void loaded(void) { compile(getenv("SALT"), atoi(getenv("NUMBER"))); }
#else
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>
static char const* salt;
static atomic_int stop, done;
static void* busy(void* none) { for (int number = 1000; !stop; ++number, ++done) compile(salt, number); return 0; }
int main(int count, char** words) {
    salt = words[2]; setenv("SALT", salt, 1); alarm(atoi(words[3]));
    compile(salt, 0);
    pthread_t thread; pthread_create(&thread, 0, busy, 0);
    for (int number = 1; number <= 20; ++number) {
        char text[20]; sprintf(text, "%d", number); setenv("NUMBER", text, 1);
        int const before = done; while (done == before) sched_yield();  // it is at work
        void* const h = dlopen(words[1], RTLD_NOW); if (!h) return 3;
        dlclose(h);
    }
    stop = 1; pthread_join(thread, 0); puts("the end");
    return 0;
}
#endif
"""


@test
def plugins_that_compile_as_they_are_loaded():
    """They have the loader's lock meanwhile: nobody who is waited for may want that."""
    compiler = shutil.which("cc")
    if compiler is None:
        return
    source = write("plugin.c", PLUGIN)
    linked = [str(NVRTC), f"-Wl,-rpath,{NVRTC.parent}"]
    subprocess.run([compiler, "-w", "-pthread", "-o", SCRATCH / "loads", source, *linked, "-ldl"], check=True)
    subprocess.run([compiler, "-w", "-shared", "-fPIC", "-DPLUGIN", "-o", SCRATCH / "plugin.so", source, *linked], check=True)
    words = [SCRATCH / "loads", SCRATCH / "plugin.so"]
    if bare(*words, "alone", 30, status=None).stdout != "the end\n":
        print("not tried: this compiler needs the loader itself")
        return
    for settings in ({"KILN_WORKERS": "0"}, {}):
        done = under(*words, f"{settings}", 100, status=None, **settings)
        check((done.returncode, done.stdout) == (0, "the end\n"), "all are loaded", settings, done)


run_tests()
