# SPDX-License-Identifier: Apache-2.0
"""`kiln run`. What is told of a run, and kept of it: events, records, capsules, containers."""

import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import time

from _run import CACHE, CLI, CUDA, KERNEL, NVJITLINK, NVRTC, PYTHON, SCRATCH, check, data, mounted, mounts_are_possible, one, run, run_tests, test, under, write


@test
def foreign_work_is_among_the_events():
    events = SCRATCH / "events.jsonl"
    one(150, KILN_EVENTS=events)
    one(150, KILN_EVENTS=events)
    one(151, source="this is no program", KILN_EVENTS=events)
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    kinds = [line["kind"] for line in lines]
    check(kinds == ["note", "missed", "compiling", "compiled", "waited", "note", "found", "note", "missed", "compiling", "compile_failed", "waited"],
          "made, answered, failed", *lines)
    made, found = lines[3], lines[6]
    check(made["unit"] == found["unit"] == "k" and made["target"] == "sm_90" and made["key"] == found["key"], "what it was", made, found)
    name = pathlib.Path(PYTHON).name + " one.py"
    check(all(name in line.get("detail", "") for line in lines if line["kind"] != "missed"), "each says for whom", *lines)
    check(lines[4]["ns"] > found["ns"] > 0, "who made it stood still", lines[4], found)
    said = data("events", events, "--summary")
    check(said["blocked"] == 2 and said["unreadable"] == 0, "kiln events", said)
    check({c["what"] for c in said["compiles"]} == {"headers-read"}, "no compile of a stranger has precompiled headers", said["compiles"])
    check("k" in run("status", events).stdout, "kiln status")
    run("trace", events, "-o", SCRATCH / "trace.json")
    trace = (SCRATCH / "trace.json").read_text()
    check(f'"{name} {made["pid"]}"' in trace and '"compile"' in trace, "kiln trace names the program", trace)
    check(f"k ({name})" in run("cache", "list").stdout, "and so does kiln cache", run("cache", "list").stdout)
    # What was kept and is damaged is made again, and tells of itself.
    events.unlink()
    before = set(CACHE.glob("v1/*/*.kiln"))
    one(153)
    entry, = (f for f in CACHE.glob("v1/*/*.kiln") if f not in before)
    text = bytearray(entry.read_bytes())
    text[-9] ^= 1
    entry.write_bytes(text)
    _, said = one(153, options=("-v",), KILN_EVENTS=events)
    check("made 'k'" in said and "what was kept is damaged: bad-digest" in said, "why it is made again", said)
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    check([(line["kind"], line.get("reason")) for line in lines][:3] == [("note", "program"), ("rejected", "bad-digest"), ("missed", "unusable")], "a damaged entry", *lines)
    check(data("cache", "stats")["rejected"].get("bad-digest") == 1, "is counted", data("cache", "stats"))
    # A file that cannot be written is nobody's problem.
    done, _ = one(152, KILN_EVENTS="/proc/nowhere/events")
    check(done["status"] == 0, "no events, and no harm", done)


@test
def containers_share_what_they_have():
    if not mounts_are_possible():
        return
    for name, value in (("first", 1), ("second", 1)):
        write(f"{name}/app/include/v.h", f"#define V {value}\n")
        for folder in ("cuda", "store", "app"):
            (SCRATCH / name / folder).mkdir(exist_ok=True)
    shared, fresh = SCRATCH / "shared", SCRATCH / "fresh"
    shared.mkdir(), fresh.mkdir()
    source = "#include <v.h>\nextern \"C\" __global__ void k(int* a) { *a = V; }"

    def container(name, *options, store=shared, status=0):
        home = SCRATCH / name
        script = f"mount --bind {CUDA.resolve()} {home}/cuda && mount --bind {store} {home}/store"
        program = [PYTHON, SCRATCH / "one.py", home / "cuda" / NVRTC.relative_to(CUDA), source, "-arch=sm_90", f"-I{home}/app/include", f"-I{home}/app"]
        done = run(*mounted(script, CLI, "run", *options, "--", *program)[1:], program="unshare", status=status, cwd=home, KILN_CACHE_DIR=home / "store")
        return json.loads(done.stdout), done.stderr

    first, said = container("first", "--record", SCRATCH / "first/record.json")
    check(first["status"] == 0 and " 1 made" in said, "the first container makes it", said)
    second, said = container("second")
    check(second == first and " 0 made" in said, "the second, where everything has another path, finds it", second, said)
    run("key", SCRATCH / "ship.pem")
    run("capsule", "build", "-o", SCRATCH / "ship.capsule", "--sign", SCRATCH / "ship.pem", SCRATCH / "first/record.json", KILN_CACHE_DIR=shared)
    second, said = container("second", "--capsule", SCRATCH / "ship.capsule", "--key", SCRATCH / "ship.pem.pub", "--jit=forbid", store=fresh)
    check(second == {**first, "loaded": False} and "1 compiles answered" in said, "a capsule of the one starts the other warm", second, said)
    # A container that the program itself starts: kiln run, and its workers, see other files than it does.
    write("inner/v.h", "#define V 9\n")
    inside = mounted(f"mount --bind {SCRATCH}/inner {SCRATCH}/first/app/include", PYTHON, SCRATCH / "one.py", NVRTC, source, "-arch=sm_90", f"-I{SCRATCH}/first/app/include")
    want = json.loads(run(*inside[1:], program="unshare").stdout)
    got = json.loads(under(*inside, KILN_CACHE_DIR=SCRATCH / "inner.cache").stdout)
    check(got["cubin"] == want["cubin"] != first["cubin"], "what counts is what the program sees", got, want)
    write("second/app/include/v.h", "#define V 2\n")
    second, said = container("second")
    check(second["cubin"] != first["cubin"] and " 1 made" in said, "unless its files are others", second, said)


@test
def recordings_are_replayed_for_others():
    record, mine = SCRATCH / "replay.json", {"KILN_CACHE_DIR": SCRATCH / "replay.cache"}
    write("replay/v.h", "#define V 7\n")
    write("three.py", r'''
import ctypes as C, sys
n = C.CDLL(sys.argv[1])
for text, options in ((b"#include <v.h>\n__global__ void plain(int* a) { *a = V; }", sys.argv[3:5]), (b"__global__ void told(int* a) { *a = ARCH; }", [sys.argv[3], "-DARCH=90"]),
                      (b"__global__ void nowhere() {}", ["-DX"])):
    p = C.c_void_p(); words = (C.c_char_p * len(options))(*(o.encode() for o in options))
    assert n.nvrtcCreateProgram(C.byref(p), text, None, 0, None, None) == 0
    print(n.nvrtcCompileProgram(p, len(options), words))
''')
    words = [PYTHON, SCRATCH / "three.py", NVRTC, "-"]
    include = f"-I{SCRATCH}/replay"
    done = under(*words, "-arch=sm_90", include, options=("--record", record), **mine)
    check(done.stdout.split() == ["0"] * 3, "recorded", done.stdout, done.stderr)
    made = data("replay", record, "--arch", "sm_80,sm_100", "-o", SCRATCH / "others.json", status=3, **mine)
    states = {(r["name"], r["target"]): (r["state"], r["why"]) for r in made["requests"]}
    check(all(states["plain", t][0] == "made" for t in ("sm_80", "sm_100")), "made for others", states)
    check(all(states["told", t][0] == "not allowed" and "repeats" in states["told", t][1] for t in ("sm_80", "sm_100")), "or said why not", states)
    check(all(states["nowhere", t][0] == "not allowed" and "no architecture" in states["nowhere", t][1] for t in ("sm_80", "sm_100")), "or said why not", states)
    again = data("replay", record, "--arch", "sm_80", status=3, **mine)
    check({r["state"] for r in again["requests"]} == {"was there", "not allowed"}, "the second time it is there", again)
    # The compiler that KILN_NVRTC names, also by the name of its file.
    (SCRATCH / "no-toolkit").mkdir()
    run("replay", record, "--arch", "sm_87", status=1, KILN_CUDA_PATH=SCRATCH / "no-toolkit", **mine)
    for named, arch in ((NVRTC, "sm_87"), (NVRTC.resolve(), "sm_89")):
        made = data("replay", record, "--arch", arch, status=3, KILN_CUDA_PATH=SCRATCH / "no-toolkit", KILN_NVRTC=named, **mine)
        check({r["state"] for r in made["requests"]} == {"made", "not allowed"}, f"KILN_NVRTC={named}", made)
    # What is recorded is not written over.
    done = run("replay", record, "--arch", "sm_80", "-o", record, status=1, **mine)
    check("one of the inputs" in done.stderr and json.loads(record.read_text())["requests"], "a record is no place for its replay", done.stderr)
    # On the other GPU the program finds it, also in a capsule of what was made.
    run("capsule", "build", "-o", SCRATCH / "others.capsule", SCRATCH / "others.json", **mine)
    done = under(*words, "-arch=sm_80", include, options=("-v", "--capsule", SCRATCH / "others.capsule", "--unsigned"), KILN_CACHE_DIR=SCRATCH / "replay.other")
    check("answered 'plain' for sm_80" in done.stderr, "answered on another GPU", done.stderr)
    check(run("replay", record, SCRATCH / "no-such-profile", status=1).returncode == 1, "one or the other")
    # The record travels with what belongs to it, and says what is missing.
    (SCRATCH / "carried").mkdir()
    for name in ("replay.json", "replay.json.requests", "replay.json.caches"):
        shutil.move(SCRATCH / name, SCRATCH / "carried" / name)
    moved = data("replay", SCRATCH / "carried/replay.json", "--arch", "sm_80", status=3, **mine)
    check(len(moved["requests"]) == 3, "a record that was moved", moved)
    # Nobody has the folder here that the program was in: it is in the answer where that tells it, and otherwise decides nothing.
    (SCRATCH / "left").mkdir()
    for number, options in ((771, ()), (772, ("-lineinfo",))):
        run("run", "--record", SCRATCH / "left.json", "--", PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % number, "-arch=sm_90", *options, cwd=SCRATCH / "left", **mine)
    (SCRATCH / "left").rmdir()
    made = data("replay", SCRATCH / "left.json", "--arch", "sm_80", status=3, **mine)
    check(sorted((r["state"], "working directory" in r["why"]) for r in made["requests"]) == [("failed", True), ("made", False)], "a working directory that is gone", made)
    # Nor does it do what no answer can be kept of: files would be written.
    written, harmless = f"-time={SCRATCH}/written", "-D" + "X" * (len(f"-time={SCRATCH}/written") - 2)
    run("run", "--record", SCRATCH / "theirs.json", "--", PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 773, "-arch=sm_90", harmless, **mine)
    for file in (SCRATCH / "theirs.json.requests").iterdir():
        file.write_bytes(file.read_bytes().replace(harmless.encode(), written.encode()))
    made = data("replay", SCRATCH / "theirs.json", "--arch", "sm_80", status=1, **mine)
    check([r["state"] for r in made["requests"]] == ["not allowed"] and not (SCRATCH / "written").exists(), "an option that writes a file", made)
    run("capsule", "build", "-o", SCRATCH / "carried.capsule", SCRATCH / "carried/replay.json", **mine)
    # A library that a record names is somebody's code: only compilers that are found here are run.
    compiler = shutil.which("cc")
    notes = subprocess.run(["readelf", "-n", NVRTC], capture_output=True, text=True).stdout if shutil.which("readelf") else ""
    found = re.search(r"Build ID: ([0-9a-f]+)", notes)
    if compiler and found:
        evil = SCRATCH / "evil" / NVRTC.name
        write("evil/e.c", f'#include <stdio.h>\n__attribute__((constructor)) static void run(void) {{ fclose(fopen("{SCRATCH}/evil/ran", "w")); }}\n')
        subprocess.run([compiler, "-shared", "-fPIC", "-o", evil, SCRATCH / "evil/e.c", f"-Wl,-soname,{NVRTC.name}", f"-Wl,--build-id=0x{found.group(1)}"], check=True)
        for file in NVRTC.parent.glob("libnvrtc-builtins.so*"):
            (SCRATCH / "evil" / file.name).symlink_to(file)
        own, theirs = str(NVRTC).encode(), str(evil).encode()
        for file in (SCRATCH / "carried/replay.json.requests").iterdir():
            text = file.read_bytes()
            check(own in text, "a request names its library", file)
            file.write_bytes(text.replace(len(own).to_bytes(4, "little") + own, len(theirs).to_bytes(4, "little") + theirs))
        made = data("replay", SCRATCH / "carried/replay.json", "--arch", "sm_86", status=3, **mine)
        check(not (SCRATCH / "evil/ran").exists(), "the record's library is not opened", made)
        check({r["state"] for r in made["requests"]} == {"made", "not allowed"}, "what is here makes it", made)
    shutil.rmtree(SCRATCH / "carried/replay.json.requests")
    run("replay", SCRATCH / "carried/replay.json", status=1, **mine)
    shutil.rmtree(SCRATCH / "carried/replay.json.caches")
    done = run("capsule", "build", "-o", SCRATCH / "carried.capsule", SCRATCH / "carried/replay.json", status=1, **mine)
    check("are not there" in done.stderr, "what is missing is said", done.stderr)


@test
def links_are_named_by_replay():
    if NVJITLINK is None:
        return
    write("link.py", r'''
import ctypes as C, sys
n, j = C.CDLL(sys.argv[1]), C.CDLL(sys.argv[2]); p, h, z = C.c_void_p(), C.c_void_p(), C.c_size_t()
n.nvrtcCreateProgram(C.byref(p), b'extern "C" __global__ void k(int* a) { *a = 7; }', b"k.cu", 0, None, None)
assert n.nvrtcCompileProgram(p, 2, (C.c_char_p * 2)(b"-arch=sm_90", b"-dlto")) == 0
n.nvrtcGetLTOIRSize(p, C.byref(z)); d = C.create_string_buffer(z.value); n.nvrtcGetLTOIR(p, d)
assert j.nvJitLinkCreate(C.byref(h), 2, (C.c_char_p * 2)(b"-arch=sm_90", b"-lto")) == 0 and j.nvJitLinkAddData(h, 3, d, z, b"k") == 0
print(j.nvJitLinkComplete(h))
''')
    record, mine = SCRATCH / "links.json", {"KILN_CACHE_DIR": SCRATCH / "links.cache"}
    done = under(PYTHON, SCRATCH / "link.py", NVRTC, NVJITLINK, options=("--record", record), **mine)
    check(done.stdout == "0\n", "linked", done.stdout, done.stderr)
    here = data("replay", record, **mine)
    check([r["state"] for r in here["requests"]] == ["was there"] * 2, "for its own architecture it is there", here)
    others = data("replay", record, "--arch", "sm_80,sm_90", status=3, **mine)
    link = {(r["target"], r["state"], "nvJitLink" in r["why"]) for r in others["requests"] if r["name"] == "k"}
    check(link == {("sm_80", "made", False), ("sm_80", "not allowed", True), ("sm_90", "was there", False)}, "for others it is named", others)
    run("cache", "clear", **mine)
    gone = data("replay", record, status=3, **mine)
    check({r["state"] for r in gone["requests"]} == {"made", "not allowed"}, "and where it is gone", gone)


@test
def what_is_recorded_into_one_file_is_one_record():
    record, mine = SCRATCH / "both.json", {"KILN_CACHE_DIR": SCRATCH / "both.cache"}
    words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 610]
    env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")} | {k: str(v) for k, v in mine.items()}
    ranks = [subprocess.Popen([CLI, "run", "--record", record, "--", *words, f"-arch=sm_{arch}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env) for arch in (75, 80, 86, 89, 90)]
    check([r.wait(timeout=200) for r in ranks] == [0] * 5, "ranks end well", *(r.stderr.read() for r in ranks))
    check(sorted(h["target"] for h in json.loads(record.read_text())["happenings"]) == [f"sm_{a}" for a in (75, 80, 86, 89, 90)], "what each asked for", record.read_text())
    # And one run after the other.
    done = under(*words, "-arch=sm_100", options=("--record", record), **mine)
    check("added to" in done.stderr and f"{record}.requests" in done.stderr, "it is said", done.stderr)
    check(len(list(SCRATCH.glob("both.json.requests/*"))) == 6 and not (SCRATCH / "both.json.requests/.lock").exists(), "all requests", *SCRATCH.glob("both.json.requests/*"))
    check(run("capsule", "build", "-o", SCRATCH / "both.capsule", record, **mine).stderr.count(": 6 answers") == 1, "and all answers")
    check("6 of 6 ready" in run("replay", record, **mine).stdout, "are one record")
    under("true", options=("--no-frameworks", "--record", record), **mine)
    both = json.loads(record.read_text())
    check(both["caches"] == "both.json.caches" and len(both["happenings"]) == 6, "and stay so", both)
    # One that is damaged is not made, which is said and counts.
    (SCRATCH / "both.json.requests/damaged").write_bytes(b"nothing")
    said = run("replay", record, status=3, **mine).stdout
    check("6 of 7 ready" in said and "no job of another program" in said, "a damaged request", said)
    # A record may come from anybody: what it names elsewhere is not packed.
    write("secrets/key", "mine")
    for place in (SCRATCH / "secrets", "../secrets", "both.json.caches/../secrets", ".."):
        write("records/theirs.json", json.dumps(both | {"caches": str(place)}))
        done = run("capsule", "build", "-o", SCRATCH / "theirs.capsule", SCRATCH / "records/theirs.json", status=1, **mine)
        check("lies beside it" in done.stderr and not (SCRATCH / "theirs.capsule").exists(), f"caches in {place}", done)
        done = run("replay", SCRATCH / "records/theirs.json", status=1, **mine)
        check("lies beside it" in done.stderr, f"it is no profile that is bad, with caches in {place}", done)
    # Nor is it where a link leads to it.
    write("records/theirs.json", json.dumps(both | {"caches": "theirs.json.caches", "requests": "theirs.json.requests"}))
    for name, place in (("caches", "secrets"), ("requests", "both.json.requests")):
        link = SCRATCH / f"records/theirs.json.{name}"
        link.symlink_to(SCRATCH / place)
        for command in (("capsule", "build", "-o", SCRATCH / "theirs.capsule", SCRATCH / "records/theirs.json"), ("replay", SCRATCH / "records/theirs.json")):
            done = run(*command, status=1, **mine)
            check("is a link to elsewhere" in done.stderr and not (SCRATCH / "theirs.capsule").exists(), f"a link in place of {name}", done)
        link.unlink()
    # Something else is not written over, and nothing is started.
    write("letter.txt", "Dear Sir\n")
    done = under("echo", "started", options=("--record", SCRATCH / "letter.txt"), status=1, **mine)
    check(done.stdout == "" and "no record of 'kiln run'" in done.stderr and (SCRATCH / "letter.txt").read_text() == "Dear Sir\n", "another's file", done)
    # A record that cannot be written is told of; how the program ended stays.
    (SCRATCH / "vanishing").mkdir()
    for status, want in ((0, 1), (7, 7)):
        (SCRATCH / "vanishing").mkdir(exist_ok=True)
        done = under("sh", "-c", f"rm -rf {SCRATCH}/vanishing; exit {status}", options=("--record", SCRATCH / "vanishing/a.json"), status=want, **mine)
        check("vanishing/a.json" in done.stderr, "what could not be written", done.stderr)
    # A record of nothing makes no capsule.
    under("true", options=("--no-frameworks", "--record", SCRATCH / "nothing.json"), **mine)
    done = run("capsule", "build", "-o", SCRATCH / "nothing.capsule", SCRATCH / "nothing.json", status=1, **mine)
    check("nothing to pack" in done.stderr and not (SCRATCH / "nothing.capsule").exists(), "nothing", done)


@test
def variables_of_caches_that_are_not_ours():
    record, show = SCRATCH / "vars.json", ["sh", "-c", "env | grep -E '^(JAX_|CUDA_CACHE_)' | sort"]
    script = ["sh", "-c", 'mkdir -p "$TRITON_CACHE_DIR"; echo x > "$TRITON_CACHE_DIR/x"']
    under(*script, options=("--record", record))
    run("capsule", "build", "-o", SCRATCH / "vars.capsule", record)
    own = {"JAX_COMPILATION_CACHE_DIR": "/mine", "CUDA_CACHE_PATH": "/mine"}
    for options in (("--record", SCRATCH / "vars2.json"), ("--capsule", SCRATCH / "vars.capsule", "--unsigned")):
        done = under(*show, options=options, **own)
        check(done.stdout.split() == ["CUDA_CACHE_PATH=/mine", "JAX_COMPILATION_CACHE_DIR=/mine"], "the user's own are left alone", options, done.stdout)
    done = under(*show, options=("-v", "--capsule", SCRATCH / "vars.capsule", "--unsigned"))
    check(done.stdout == "", "nothing of JAX in it", done.stdout)
    check("vars.capsule: 0 answers, caches of triton\n" in done.stderr, "what it brings is told to who asks", done.stderr)
    done = under(*show, options=("--record", SCRATCH / "vars3.json"))
    check("JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES=none\n" in done.stdout and "CUDA_CACHE_MAXSIZE=" in done.stdout, "ours has what it needs", done.stdout)


@test
def capsules():
    record, capsule = SCRATCH / "rec.json", SCRATCH / "app.capsule"
    words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 600, "-arch=sm_90"]
    script = 'mkdir -p "$TRITON_CACHE_DIR/x"; echo "{\\"child_paths\\": {\\"k\\": \\"$TRITON_CACHE_DIR/x/k.cubin\\"}}" > "$TRITON_CACHE_DIR/x/__grp__k.json"; exec "$0" "$@"'
    under("sh", "-c", script, *words, options=("--record", record))
    data = json.loads(record.read_text())
    check(data["format"] == "kiln-run" and data["happenings"][0]["what"] == "made", "the record", data)
    run("key", SCRATCH / "k.pem")
    run("key", SCRATCH / "other.pem")
    run("capsule", "build", "-o", capsule, "--sign", SCRATCH / "k.pem", record)
    said = run("capsule", "inspect", capsule).stdout
    check("nvrtc" in said and "caches/triton" in said, "what is inside", said)
    check("0 bad" in run("capsule", "verify", capsule).stdout, "all good")
    elsewhere = {"KILN_CACHE_DIR": SCRATCH / "container"}
    done = under(*words, options=("--capsule", capsule), status=1, **elsewhere)
    check("nobody vouches" in done.stderr, "not without a key", done.stderr)
    done = under("true", options=("--capsule", SCRATCH / "nowhere.capsule"), status=1, **elsewhere)
    check("no such capsule" in done.stderr, "not one that is not there, whoever vouches", done.stderr)
    run("run", "--capsule", capsule, "--key", SCRATCH / "other.pem.pub", "--", "true", status=1, **elsewhere)
    done = under("sh", "-c", 'cat "$TRITON_CACHE_DIR/x/__grp__k.json" >&2; exec "$0" "$@"', *words,
                 options=("--capsule", capsule, "--key", SCRATCH / "k.pem.pub", "--jit=forbid"), **elsewhere)
    check(not json.loads(done.stdout)["loaded"] and "1 compiles answered" in done.stderr, "answered from the capsule", done.stdout, done.stderr)
    place = re.search(r'"k": ?"([^"]*)/x/k.cubin"', done.stderr).group(1)
    check(place.startswith(str(SCRATCH / "container")) and place.endswith("caches/triton"), "Triton's list names the new place", place)
    # However the record is named, and wherever it was carried since it was written.
    (SCRATCH / "brought").mkdir()
    for name in ("rec.json", "rec.json.requests", "rec.json.caches"):
        (shutil.copy if name == "rec.json" else shutil.copytree)(SCRATCH / name, SCRATCH / "brought" / name)
    for named in ("rec.json", "../" + SCRATCH.name + "/rec.json", "brought/rec.json", SCRATCH / "brought/rec.json"):
        run("capsule", "build", "-o", SCRATCH / "named.capsule", named)
        run("capsule", "unpack", SCRATCH / "named.capsule", SCRATCH / "named")
        listed = json.loads((SCRATCH / "named/caches/triton/x/__grp__k.json").read_text())
        check(listed == {"child_paths": {"k": f"{SCRATCH}/named/caches/triton/x/k.cubin"}}, f"Triton's list of a record that is named '{named}'", listed)
        shutil.rmtree(SCRATCH / "named")
    done = under("sh", "-c", 'echo "$TRITON_CACHE_DIR"', options=("--capsule", capsule, "--key", SCRATCH / "k.pem.pub"), TRITON_CACHE_DIR="/mine", **elsewhere)
    check(done.stdout == "/mine\n", "what the user set stays", done.stdout)
    bad = bytearray(capsule.read_bytes())
    bad[len(bad) // 3] ^= 1
    (SCRATCH / "bad.capsule").write_bytes(bad)
    run("capsule", "verify", SCRATCH / "bad.capsule", status=1)
    run("run", "--capsule", SCRATCH / "bad.capsule", "--key", SCRATCH / "k.pem.pub", "--", "true", status=1, KILN_CACHE_DIR=SCRATCH / "container2")
    # One that is cut off anywhere is refused; one there is no room for is done without.
    whole = capsule.read_bytes()
    for part in (0, 1, 7, 16, 64, len(whole) // 4, len(whole) // 2, len(whole) - 200, len(whole) - 1):
        (SCRATCH / "cut.capsule").write_bytes(whole[:part])
        for trust in (("--key", SCRATCH / "k.pem.pub"), ("--unsigned",)):
            done = run("run", "--capsule", SCRATCH / "cut.capsule", *trust, "--", "echo", "started", status=1, KILN_CACHE_DIR=SCRATCH / "container3")
            check(done.stdout == "" and "cut.capsule" in done.stderr, f"{part} bytes of a capsule", done.stdout, done.stderr)
    # The same of one with a byte changed or cut off wherever chance has it: refused, or what it holds is what was put in.
    chance = random.Random(20)
    for number in range(40):
        at = chance.randrange(len(whole))
        changed = whole[:at] if number % 2 else whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1:]
        (SCRATCH / "chance.capsule").write_bytes(changed)
        for trust in (("--key", SCRATCH / "k.pem.pub"), ("--unsigned",)):
            done = run("run", "--capsule", SCRATCH / "chance.capsule", *trust, "--", "echo", "started", status=None, KILN_CACHE_DIR=SCRATCH / "container4")
            check((done.returncode, done.stdout) in ((1, ""), (0, "started\n")), f"byte {at} of {len(whole)}", done)
            check(done.returncode == 1 or trust[0] == "--unsigned" or "starts without" not in done.stderr, f"byte {at} of {len(whole)}", done)
        shutil.rmtree(SCRATCH / "container4", ignore_errors=True)
    # Of a version to come: refused, and said why.
    head = whole[:8] + (2).to_bytes(4, "little") + whole[12:16]
    (SCRATCH / "newer.capsule").write_bytes(head + hashlib.sha256(head).digest() + whole[48:])
    for command in (("capsule", "inspect", SCRATCH / "newer.capsule"), ("run", "--capsule", SCRATCH / "newer.capsule", "--unsigned", "--", "echo", "started")):
        done = run(*command, status=1)
        check(done.stdout == "" and "version" in done.stderr, "a version nobody here knows", done)
    if os.geteuid() == 0:
        # Somebody else's file is a capsule like any other; somebody else's folder is not ours to unpack in, and what lies there not to be used.
        shutil.copy(capsule, SCRATCH / "theirs.capsule")
        os.chown(SCRATCH / "theirs.capsule", 65534, 65534)
        theirs = {"KILN_CACHE_DIR": SCRATCH / "theirs", "TMPDIR": SCRATCH}
        done = under(*words, options=("--capsule", SCRATCH / "theirs.capsule", "--key", SCRATCH / "k.pem.pub"), **theirs)
        check("1 compiles answered" in done.stderr, "by its signature", done.stderr)
        for folder in (SCRATCH / "theirs/run", *(SCRATCH / "theirs/run").rglob("*")):
            os.chown(folder, 65534, 65534)
        done = under(*words, "-DX", options=("-v", "--capsule", SCRATCH / "theirs.capsule", "--key", SCRATCH / "k.pem.pub"), **theirs)
        check(json.loads(done.stdout)["status"] == 0 and not any(f.stat().st_uid == 0 for f in (SCRATCH / "theirs/run").rglob("*")), "nothing of ours in another's folder", done.stderr)
    if mounts_are_possible():
        (SCRATCH / "narrow").mkdir()
        script = f"mount -t tmpfs -o size=24k,mode=700 none {SCRATCH}/narrow"
        done = run(*mounted(script, CLI, "run", "--capsule", capsule, "--key", SCRATCH / "k.pem.pub", "--", *words)[1:], program="unshare", KILN_CACHE_DIR=SCRATCH / "narrow")
        check(json.loads(done.stdout)["status"] == 0 and "starts without it" in done.stderr, "no room for a capsule", done.stdout, done.stderr)
    # Unpacked once for each content, found where the path has a colon, and gone when it is not used any longer.
    colon = {"KILN_CACHE_DIR": SCRATCH / "with:colon"}
    for copy in ("one.capsule", "two.capsule"):
        shutil.copy(capsule, SCRATCH / copy)
        done = under(*words, options=("--capsule", SCRATCH / copy, "--key", SCRATCH / "k.pem.pub", "--jit=forbid"), **colon)
        check(json.loads(done.stdout)["status"] == 0 and "1 compiles answered" in done.stderr, "a colon in the path", done.stdout, done.stderr)
    unpacked = SCRATCH / "with:colon/run/capsules"
    check(len(list(unpacked.iterdir())) == 1, "one folder for one content", *unpacked.iterdir())
    (unpacked / "part-1234").mkdir()
    for folder in unpacked.iterdir():
        os.utime(folder, (time.time() - 40 * 86400,) * 2)
    os.utime(SCRATCH / "with:colon/run/swept", (time.time() - 2 * 86400,) * 2)
    under("true", **colon)
    check(not list(unpacked.iterdir()), "what nobody uses goes", *unpacked.iterdir())
    under(*words, options=("--capsule", capsule, "--key", SCRATCH / "k.pem.pub"), **colon)
    for options in (("--dry-run",), ()):
        said = run("cache", "clear", *options, **colon).stdout
        check("and 1 unpacked capsule (" in said, "what goes is counted", said)
    check(not unpacked.exists(), "cache clear takes it along")
    done = run("capsule", "unpack", capsule, SCRATCH / "out")
    check((SCRATCH / "out/caches/triton/x/__grp__k.json").exists() and "signature unchecked" in done.stderr, "unpacked", done.stderr)
    done = run("capsule", "unpack", capsule, SCRATCH / "out2", "--key", SCRATCH / "k.pem")
    check("k.pem: this is the private key" in done.stderr and "signature good" in done.stderr, "a private key is for signing", done.stderr)


run_tests()
