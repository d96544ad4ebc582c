# SPDX-License-Identifier: Apache-2.0
"""`kiln run`. The compiler as a library: every way to open it, what the loader tells of it, and what is left when it was closed."""

import os
import pathlib
import shutil
import subprocess

from _opens_and_closes import as_without, opens_and_closes
from _run import BIN, KERNEL, NVRTC, PYTHON, SCRATCH, bare, check, run, run_tests, test, under, write


@test
def every_way_to_the_library():
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("linked.c", r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
typedef int (*any)();
#ifdef LINKED
int nvrtcCreateProgram(); int nvrtcCompileProgram(); int nvrtcGetCUBINSize();
#endif
static int use(any create, any compile, any size, int v) {
    void* p = 0; char source[99]; char const* options[] = {"-arch=sm_90"}; size_t n = 0;
    snprintf(source, sizeof source, "extern \"C\" __global__ void w(int* a) { *a = %d; }", v);
    int (*c)(void**, char const*, char const*, int, void*, void*) = (void*)create; int (*d)(void*, int, char const**) = (void*)compile; int (*s)(void*, size_t*) = (void*)size;
    int const r = c(&p, source, "w.cu", 0, 0, 0) || d(p, 1, options) || s(p, &n); printf("%zu ", n); return r || n < 1000;
}
int main(int count, char** v) {
#ifdef LINKED
    return use((any)nvrtcCreateProgram, (any)nvrtcCompileProgram, (any)nvrtcGetCUBINSize, 77);
#else
    int flags = RTLD_NOW | (strchr(v[1], 'g') ? RTLD_GLOBAL : RTLD_LOCAL) | (strchr(v[1], 'd') ? RTLD_DEEPBIND : 0);
    void* h = strchr(v[1], 'm') ? dlmopen(LM_ID_NEWLM, v[2], RTLD_NOW) : dlopen(v[2], flags);
    Lmid_t where = LM_ID_BASE;
    if (h && strchr(v[1], '2')) { dlinfo(h, RTLD_DI_LMID, &where); h = dlmopen(where, v[4], RTLD_NOW); }
    if (!h) { puts(dlerror()); return 9; }
    struct link_map* m = 0; dlinfo(h, RTLD_DI_LINKMAP, &m); printf("%s ", m->l_name);
    char const* node = v[3];
    return use((any)dlvsym(h, "nvrtcCreateProgram", node), (any)dlsym(h, "nvrtcCompileProgram"), (any)dlsym(h, "nvrtcGetCUBINSize"), 77);
#endif
}
''')
    node = NVRTC.name
    opener, linked, lazy = SCRATCH / "opener", SCRATCH / "linked", SCRATCH / "lazy"
    subprocess.run([compiler, "-w", "-o", opener, SCRATCH / "linked.c", "-ldl"], check=True)
    for program, binding in ((linked, "now"), (lazy, "lazy")):
        subprocess.run([compiler, "-w", "-DLINKED", "-o", program, SCRATCH / "linked.c", NVRTC, f"-Wl,-rpath,{NVRTC.parent}", f"-Wl,-z,{binding}", "-ldl"], check=True)
    under(linked)
    ways = {"linked": [linked], "linked, lazily": [lazy], "by path": [opener, "l", NVRTC, node], "by path, global": [opener, "g", NVRTC, node],
            "by path, bound deep": [opener, "d", NVRTC, node], "by name": ["env", f"LD_LIBRARY_PATH={NVRTC.parent}", opener, "l", node, node]}
    for way, words in ways.items():
        done = under(*words, options=("-v",))
        check(" answered 'w'" in done.stderr and "no version information" not in done.stderr, f"{way}: served", done.stdout, done.stderr)
    done = under(opener, "l", NVRTC, node)
    check(done.stdout.startswith(str(NVRTC) + " "), "the library has its own name", done.stdout)
    done = under(opener, "m", NVRTC, node, options=("-v",))
    check("answered" not in done.stderr.replace("0 compiles answered", ""), "a namespace of its own is left alone", done.stderr)
    # By a name that is searched for, too; the loader does not say for whom.
    want = bare(opener, "m", node, node)
    for state in ("cold", "warm"):
        done = under(opener, "m", node, node, options=("-v",))
        check(done.stdout == want.stdout and "in a namespace of its own" in done.stderr, f"a namespace of its own, by a bare name, {state}", done, want)
    # What is there already is not opened once more.
    (SCRATCH / "elsewhere").mkdir()
    (SCRATCH / "elsewhere/libnvrtc.so").symlink_to(os.path.realpath(NVRTC))
    again = [opener, "m2", NVRTC, node, "libnvrtc.so"]
    searched = dict(LD_LIBRARY_PATH=f"{SCRATCH / 'elsewhere'}:{NVRTC.parent}")  # where its builtins are, without a toolkit
    want, done = bare(*again, **searched), under(*again, **searched)
    check(done.stdout.split()[-1] == want.stdout.split()[-1], "twice in a namespace of its own, by a path and by a bare name", done, want)


@test
def a_library_nobody_knows_is_left_alone():
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("odd/odd.c", "int nvrtcVersion(int* a, int* b) { *a = 99; *b = 1; return 0; }\nint nvrtcUnheardOf(void) { return 5; }\n")
    odd = SCRATCH / "odd" / NVRTC.name
    subprocess.run([compiler, "-shared", "-fPIC", f"-Wl,-soname,{NVRTC.name}", "-o", odd, SCRATCH / "odd/odd.c"], check=True)
    ask = "import ctypes as C, sys; n = C.CDLL(sys.argv[1]); a = C.c_int(); n.nvrtcVersion(C.byref(a), C.byref(C.c_int())); print(a.value, n.nvrtcUnheardOf())"
    done = under(PYTHON, "-c", ask, odd)
    check(done.stdout == "99 5\n", "it is itself", done)
    (SCRATCH / "odd" / "rubbish").mkdir()
    rubbish = SCRATCH / "odd" / "rubbish" / NVRTC.name
    for data in (b"", b"rubbish" * 1000, b"\x7fELF" + b"\2" * 9000):
        rubbish.write_bytes(data)
        done = under(PYTHON, "-c", "import ctypes, sys\ntry: ctypes.CDLL(sys.argv[1])\nexcept OSError: print('refused')", rubbish)
        check(done.stdout == "refused\n", "rubbish is the loader's business", done)


@test
def libraries_by_any_path():
    """However a library is named, it is that very file, it is served, and the program sees the name it gave."""
    write("named_library.py", r'''
import ctypes as C, sys
n = C.CDLL(sys.argv[1]); a, b, p = C.c_int(), C.c_int(), C.c_void_p(); version = n.nvrtcVersion(C.byref(a), C.byref(b))
n.nvrtcCreateProgram(C.byref(p), b'extern "C" __global__ void n(int* a) { *a = 460; }', None, 0, None, None)
status = n.nvrtcCompileProgram(p, 1, (C.c_char_p * 1)(b"-arch=sm_90"))
class link_map(C.Structure): _fields_ = [("address", C.c_void_p), ("name", C.c_char_p)]
m = C.POINTER(link_map)(); C.CDLL(None).dlinfo(C.c_void_p(n._handle), 2, C.byref(m))
print(version, a.value, status, m.contents.name.decode())
''')
    soname, real, builtins = NVRTC.name, os.path.realpath(NVRTC), [f for f in NVRTC.parent.glob("libnvrtc-builtins*.so*")]

    def folder(name, **links):
        place = SCRATCH / "paths" / name
        place.mkdir(parents=True)
        for file, to in links.items():
            (place / file).symlink_to(to)
        for file in builtins:
            (place / file.name).symlink_to(os.path.realpath(file))
        return place

    plain, colon, dollar = (folder(n, **{soname: real}) for n in ("plain", "a:b", "a$b c"))
    developer = folder("developer", **{"libnvrtc.so": real})
    whole = folder("whole", **{soname + ".0.99": real})
    # What has the soname beside it is another library.
    other = folder("other", **{soname + ".0.99": real})
    compiler = shutil.which("cc")
    if compiler is not None:
        write("paths/other.c", "int nvrtcVersion(int* a, int* b) { *a = 99; *b = 1; return 0; }\n")
        subprocess.run([compiler, "-shared", "-fPIC", f"-Wl,-soname,{soname}", "-o", other / soname, SCRATCH / "paths/other.c"], check=True)
    ways = [(plain, f"{plain}//{soname}"), (plain, f"{plain}///{soname}"), (plain, f"/{plain}/{soname}"), (plain, f"{plain}/./{soname}"), (plain, f"./{soname}"),
            (SCRATCH, f"paths/plain/{soname}"), (SCRATCH, f"{colon}/{soname}"), (SCRATCH, f"{dollar}/{soname}"), (SCRATCH, f"{developer}/libnvrtc.so"),
            (SCRATCH, f"{whole}/{soname}.0.99"), (SCRATCH, f"{other}/{soname}.0.99"), (plain, soname)]
    words = [PYTHON, SCRATCH / "named_library.py"]
    under(*words, NVRTC)
    for directory, name in ways:
        search = {"LD_LIBRARY_PATH": "."} if name == soname else {}
        want = run(*words[1:], name, program=PYTHON, cwd=directory, **search).stdout
        done = run("run", "-v", "--", *words, name, cwd=directory, **search)
        check(done.stdout == want and want.split()[2] == "0", f"{name}: the same", done.stdout, want, done.stderr)
        check(" answered 'n'" in done.stderr or " made 'n'" in done.stderr, f"{name}: served", done.stderr)
        again = run("run", "--jit=forbid", "--", *words, name, cwd=directory, **search)
        check(again.stdout == want and "forbidden" not in again.stderr, f"{name}: answered", again.stdout, again.stderr)
    # Two names of one file are one library, whichever was first.
    mixed = "import ctypes as C, sys; a, b, p = C.CDLL(sys.argv[1]), C.CDLL(sys.argv[2]), C.c_void_p(); s = b'__global__ void m() {}'; print(a.nvrtcCreateProgram(C.byref(p), s, None, 0, None, None), b.nvrtcCompileProgram(p, 0, None))"
    for first, second in ((f"{plain}/{soname}", f"./{soname}"), (f"./{soname}", f"{plain}/{soname}"), (f"{plain}/./{soname}", f"{plain}//{soname}")):
        done = run("run", "--", PYTHON, "-c", mixed, first, second, cwd=plain)
        check(done.stdout == "0 0\n", "made by one name and compiled by another", first, second, done.stdout, done.stderr)
    # The stand-ins' own place may be called anything, too.
    for place in ("with $ORIGIN", "with $LIB:and blank"):
        done = under(*words, NVRTC, options=("-v",), KILN_CACHE_DIR=SCRATCH / "paths" / place)
        check("1 made" in done.stderr, "a cache with words of the loader in its name", done.stdout, done.stderr)


@test
def a_library_that_was_closed_is_gone():
    """As without us: what is opened next is looked for anew, by whatever name."""
    made = opens_and_closes()
    if made is None:
        return
    program, other = made
    user, turned = SCRATCH / "opens/libuser.so", SCRATCH / "opens/turned"

    def turn(to=NVRTC.parent):
        turned.unlink(missing_ok=True)
        turned.symlink_to(to)

    first = {"LD_LIBRARY_PATH": f"{other.parent}:{NVRTC.parent}"}
    # The compiler's own parts, without which it compiles nothing alone, and not the compiler.
    parts = SCRATCH / "opens/parts"
    parts.mkdir()
    for part in NVRTC.parent.glob("libnvrtc-builtins.so*"):
        (parts / part.name).symlink_to(part)
    for options in ((), ("--eager",)):
        for use in (["v1"], ["m11"], []):
            done = as_without(program, "by path, then by search", f"o1:{NVRTC}", *use, "x1", f"o1:{NVRTC.name}", "v1", options=options, **first)
            check("version 0 99.1" in done.stdout, "the other one", done)
            as_without(program, "by path, then what links to it", f"o1:{NVRTC}", *use, "x1", f"o2:{user}", "u2", options=options, LD_LIBRARY_PATH=parts)
            as_without(program, "globally, then what links to it", f"g1:{NVRTC}", *use, "x1", "q*:nvrtcVersion", f"o2:{user}", "u2", options=options, LD_LIBRARY_PATH=parts)
            as_without(program, "one relative name", f"d:{NVRTC.parent}", f"o1:./{NVRTC.name}", *use, "x1", f"d:{other.parent}", f"o1:./{NVRTC.name}", "v1", "q1:nvrtcGetPTX", options=options)
            as_without(program, "a link that was turned", f"o1:{turned}/{NVRTC.name}", *use, "x1", f"s:ln -sfn {other.parent} {turned}", f"o1:{turned}/{NVRTC.name}", "v1", "q1:nvrtcGetPTX",
                       options=options, before=turn)
            as_without(program, "the first by another name", f"o1:{turned}/{NVRTC.name}", *use, "x1", f"s:ln -sfn {other.parent} {turned}", f"o1:{NVRTC}", "v1", "m11", options=options, before=turn)
        as_without(program, "only what is loaded", f"o1:{NVRTC}", "v1", "x1", f"n2:{NVRTC.name}", f"n3:{NVRTC}", options=options)
    # The same name, and other parts by now.
    compiler, turn_parts = shutil.which("cc"), f"s:rm {parts}/*; cp {SCRATCH}/opens/nothing.so {parts}/{next(NVRTC.parent.glob('libnvrtc-builtins.so.*.*')).name}"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", SCRATCH / "opens/nothing.so", "-x", "c", "/dev/null"], check=True)

    def whole():
        for part in (*parts.iterdir(),):
            part.unlink()
        for part in NVRTC.parent.glob("libnvrtc-builtins.so*"):
            (parts / part.name).symlink_to(part)

    for settings in ({"options": ()}, {"options": ("--eager",)}, {"KILN_WORKERS": "0"}):
        as_without(program, "other built-ins", f"o1:{NVRTC}", "m11", "x1", turn_parts, f"o1:{NVRTC}", "m11", before=whole, LD_LIBRARY_PATH=parts, **settings)
    again = [w for k in range(40) for w in (f"o1:{NVRTC}", "v1", "x1", f"o2:{other}", "v2", "x2")]
    done = as_without(program, "many times", *again, f"o1:{NVRTC}", "m11", f"o2:{NVRTC}", f"o3:{NVRTC.name}", "m12", "m23", "x1", "x2", "m33")
    check(" answered 'm'" in done.stderr and "without Kiln" not in done.stderr, "and is served", done.stderr)


@test
def every_function_has_a_jump():
    """What a stand-in has and the bridge has not would be left to the library."""
    nm, folder = shutil.which("nm"), BIN.parent / "lib/kiln/intercept"
    if nm is None:
        return

    def functions(*files):
        lines = subprocess.run([nm, "-D", "--defined-only", *files], check=True, capture_output=True, text=True).stdout.splitlines()
        return {line.split()[2].split("@")[0] for line in lines if len(line.split()) == 3 and line.split()[1] == "T"}

    jumps, all = functions(folder / "bridge.so"), functions(*folder.glob("libnv*.so.*"))
    check(all - jumps == {"kiln_opened", "kiln_closed", "kiln_at_exit", "kiln_finalize"} and jumps < all, "one list of all", all ^ jumps)


@test
def what_the_loader_tells():
    """Of a library that was closed and opened again, by whatever call: as without us."""
    made = opens_and_closes()
    if made is None:
        return
    program, other = made
    A, B = f"{NVRTC}", f"{other}"
    for options in ((), ("--eager",)):
        said = {"options": options, "LD_LIBRARY_PATH": str(NVRTC.parent)}
        for use in (["v1"], ["m11"], []):
            opened = [f"o1:{A}", *use, "x1", f"o1:{A}"]
            as_without(program, "its name and folder", *opened, "a1", "r1", f"d:{NVRTC.parent}", f"o2:./{NVRTC.name}", "a2", "r2", "x1", "x2", f"o1:./{NVRTC.name}", "a1", "r1", **said)
            as_without(program, "pinned by its name", *opened, "p12", "=12", "x1", "v2", f"n3:{A}", "x2", "x3", f"n3:{A}", **said)
            # One that was global once is not for ever, and the order is that of opening.
            globally = [f"g1:{A}", *use, "x1", "e", f"g2:{B}", "v2", "e"]
            as_without(program, "global once", *globally, f"o1:{A}", "v1", "e", "x2", "e", "x1", "e", **said)
            as_without(program, "global twice", *globally, f"g1:{A}", "e", "x2", "e", "x1", "e", **said)
            as_without(program, "what was found keeps it", f"g1:{A}", "e", "x1", f"n2:{A}", "e", **said)
            # Past the hook, which is not asked: one file is one library all the same.
            link = f"{NVRTC.parent}/.//{NVRTC.name}"
            as_without(program, "dlmopen, then dlopen", f"b1:{link}", f"o2:{A}", "=12", "m12", "m21", **said)
            done = as_without(program, "dlopen, then dlmopen", f"o1:{A}", *use, f"b2:{link}", "=12", "m12", "m21", "x1", "v2", "x2", f"n1:{A}", **said)
            check("without Kiln" not in done.stderr, "and is served", done.stderr)
    for before in ([], [f"n1:{A}"], [f"o1:{A}", f"o2:{A}", "x1", "x2"]):
        done = under(program, *before, f"b1:{A}", "v1")
        check(f"loaded without Kiln: {NVRTC.name} (it was opened by dlmopen())" in done.stderr, "the reason", done.stderr)
    as_without(program, "a small stack", f"l1:{A}", "v1", "x1", f"l1:{A}", "v1", f"l2:{NVRTC.parent}/libnvrtc.alt.so.13")
    as_without(program, "a callback that cancels", f"o1:{A}", "c1", LD_LIBRARY_PATH=NVRTC.parent)


@test
def a_compiler_that_was_closed_is_not_touched():
    """Its file may be written over, and its room is free."""
    made = opens_and_closes()
    if made is None:
        return
    program, _ = made
    place = SCRATCH / "opens/own"

    def fresh():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        shutil.copy(os.path.realpath(NVRTC), place / NVRTC.name)

    for settings in ({"options": ()}, {"options": ("--eager",)}, {"KILN_WORKERS": "0"}):
        for use in (["v1"], ["m11"]):
            opened = [f"o1:{place}/{NVRTC.name}", *use, "x1"]
            for what, then in {"cut off": f"s:truncate -s 0 {place}/{NVRTC.name}", "written over": f"s:cat /dev/zero | head -c 50000000 > {place}/{NVRTC.name}"}.items():
                as_without(program, what, *opened, then, f"o2:{place}/{NVRTC.name}", f"o3:{NVRTC}", "v3", before=fresh, LD_LIBRARY_PATH=NVRTC.parent, **settings)
            as_without(program, "removed", *opened, f"s:rm {place}/{NVRTC.name}", "z", before=fresh, LD_LIBRARY_PATH=NVRTC.parent, **settings)


@test
def a_compiler_that_cannot_be_opened_leaves_nothing():
    """What was opened for it, each time in vain, goes with it."""
    made = opens_and_closes()
    if made is None:
        return
    place = SCRATCH / "opens/vain"
    place.mkdir()
    for file in (NVRTC, *NVRTC.parent.glob("libnvrtc-builtins.so.*")):
        shutil.copy(os.path.realpath(file), place / file.name)
    done = under(made[0], f"o1:{place}/{NVRTC.name}", f"s:rm {place}/{NVRTC.name}", "v1", "v1", f"s:rm {place}/*", "x1", "z", LD_LIBRARY_PATH=place)
    check(done.stdout.splitlines()[-2:] == ["closed 0", "held 0"] and "version 0" not in done.stdout, "nothing is held", done)


@test
def one_file_is_one_library():
    """Served or left alone, by whatever names it is opened: what one makes the other could not read."""
    made = opens_and_closes()
    if made is None:
        return
    program, other = made
    odd = SCRATCH / "opens/odd.so"
    odd.symlink_to(os.path.realpath(NVRTC))
    deep = "." + "/." * 300
    places = {"a name that is not a compiler's": odd, "a long name": f"{NVRTC.parent}/{deep}/{NVRTC.name}", "words of the loader": f"$ORIGIN/{os.path.relpath(NVRTC, program.parent)}",
              "another spelling": f"{NVRTC.parent}//{NVRTC.name}", "a descriptor": "/proc/self/fd/100", "by search": NVRTC.name}
    for what, name in places.items():
        for first, second in ((NVRTC, name), (name, NVRTC)):
            as_without(program, what, f"f:{NVRTC}", f"o1:{first}", f"o2:{second}", "m12", "m21", f"n3:{name}", f"n4:{NVRTC}")
    done = as_without(program, "many spellings of another", f"o1:{NVRTC}", *(f"o9:{other.parent}/{'./' * k}{other.name}" for k in range(70)), f"o2:{NVRTC.parent}//{NVRTC.name}", "m12", "m21")
    check("without Kiln" not in done.stderr, "are one file", done.stderr)
    cache = SCRATCH / "opens/cache"
    as_without(program, "after the cache was removed", f"o1:{NVRTC}", f"s:rm -rf {cache}", f"o2:{NVRTC.parent}//{NVRTC.name}", "m12", "m21", "x1", "m22", KILN_CACHE_DIR=cache)
    # By search, and then by all its names.
    as_without(program, "only what is loaded", f"o1:{NVRTC.name}", f"n2:{NVRTC.parent}//{NVRTC.name}", f"n3:{odd}", "m12", "m31")
    # What it made while it was left alone is kept over the last dlclose(); and the other way round.
    done = as_without(program, "left alone before", f"b1:{NVRTC}", "+1", "x1", f"o1:{NVRTC}", "-1", "m11")
    check(" answered 'm'" in done.stderr, "and is served then", done.stderr)
    as_without(program, "left alone meanwhile", f"o1:{NVRTC}", "+1", "x1", f"b1:{NVRTC}", "x1", f"o1:{NVRTC}", "-1", "m11")
    # A name whose meaning changes before the first use.
    as_without(program, "through /proc/self/cwd", f"d:{NVRTC.parent}", f"o1:/proc/self/cwd/{NVRTC.name}", f"d:{other.parent}", "v1")
    as_without(program, "through a descriptor", f"f:{NVRTC.parent}", f"o1:/proc/self/fd/100/{NVRTC.name}", f"f:{other.parent}", "v1")


@test
def what_is_left_alone_is_said():
    opened = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print('opened')"
    place = SCRATCH / "left"
    place.mkdir()
    (place / "libnvrtc.alt.so.13").symlink_to(os.path.realpath(NVRTC))
    done = under(PYTHON, "-c", opened, place / "libnvrtc.alt.so.13")
    check("loaded without Kiln: libnvrtc.alt.so.13" in done.stderr, "one line says so", done.stderr)
    done = under(PYTHON, "-c", opened, place / "libnvrtc.alt.so.13", options=("-q", "--jit=forbid"))
    check("libnvrtc.alt.so.13' was loaded without Kiln" in done.stderr and "not forbidden" in done.stderr, "who forbids is told in any case", done.stderr)
    space = "import ctypes as C, sys; d = C.CDLL(None).dlmopen; d.restype = C.c_void_p; print(bool(d(C.c_long(-1), sys.argv[1].encode(), 2)))"
    done = under(PYTHON, "-c", space, NVRTC)
    check(done.stdout == "False\n" or "in a namespace of its own" in done.stderr, "dlmopen", done.stdout, done.stderr)
    done = under(PYTHON, "-c", opened, NVRTC)
    check("without Kiln" not in done.stderr, "what is served is not named", done.stderr)
    # Whatever the reason is, and however long the name.
    (place / "odd.so").symlink_to(os.path.realpath(NVRTC))
    reasons = {place / "odd.so": "odd.so (its file is not called as a compiler is)", f"{place}{'/.' * 300}/libnvrtc.alt.so.13": "libnvrtc.alt.so.13 (there is no stand-in for it)",
               f"{NVRTC.parent}{'/.' * 300}/{NVRTC.name}": f"{NVRTC.name} (its path is too long, or leads nowhere)"}
    for name, said in reasons.items():
        done = under(PYTHON, "-c", opened, name)
        check(f"loaded without Kiln: {said}" in done.stderr, "the library and the reason", name, done.stderr)
    # Kiln where the loader cannot name it, and without its parts.
    for name, parts in (("kiln of mine", True), ("a:b", True), ("alone", False)):
        folder = SCRATCH / "left" / name
        (folder / "bin").mkdir(parents=True)
        for file in ("kiln", "kiln-foreign-worker"):
            if (BIN / file).exists():
                shutil.copy2(BIN / file, folder / "bin" / file)
        if parts:
            shutil.copytree(BIN.parent / "lib/kiln/intercept", folder / "lib/kiln/intercept")
        words = ["run", "--jit=forbid", "--", PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 470, "-arch=sm_90"]
        done = run(*words, program=folder / "bin/kiln")
        said = "1 forbidden" in done.stderr if parts else "nothing is answered; what it compiles is not forbidden" in done.stderr
        check(said, f"{name}: served or said", done.stdout, done.stderr)


@test
def what_was_opened_and_is_gone():
    """--eager: the real library is there as early as without us."""
    whole = SCRATCH / "gone"
    whole.mkdir()
    for file in pathlib.Path(NVRTC).parent.glob("libnvrtc*"):
        (whole / file.name).symlink_to(file) if file.name.startswith("libnvrtc-") else shutil.copy(file, whole / file.name)
    write("gone.py", "import ctypes as C, os, sys\nn = C.CDLL(sys.argv[1])\nos.rename(sys.argv[1], sys.argv[1] + '.away')\nmajor, minor = C.c_int(), C.c_int()\n"
                     "print(n.nvrtcVersion(C.byref(major), C.byref(minor)))\nos.rename(sys.argv[1] + '.away', sys.argv[1])\nprint(n.nvrtcVersion(C.byref(major), C.byref(minor)))\n")
    words = [PYTHON, SCRATCH / "gone.py", whole / pathlib.Path(NVRTC).name]
    check(bare(*words).stdout == "0\n0\n", "without us")
    check(under(*words, options=["--eager"]).stdout == "0\n0\n", "opened at once")
    check(under(*words, KILN_DISABLE="1").stdout.endswith("\n0\n"), "a failure of the moment is not for ever")


run_tests()
