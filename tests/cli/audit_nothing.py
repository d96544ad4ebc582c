# SPDX-License-Identifier: Apache-2.0
"""`kiln audit` on a machine without a GPU, as in CI: what there is to say is said in every form that was asked for, nothing is claimed that is not known, and
nothing is run or left behind that nobody asked for."""

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

from _audit import COMPILER, build, told
from _kiln import CLI, SCRATCH, check, run, run_tests, test, write

PYTHON = os.path.realpath(sys.executable)
IS_ROOT = os.geteuid() == 0
temporary = SCRATCH / "temporary"
temporary.mkdir()


def nothing_is_left(what):
    check(not list(temporary.iterdir()), what, list(temporary.iterdir()))


@test
def what_cannot_be_recorded_is_an_object_and_a_page():
    page, trace = SCRATCH / "page.html", SCRATCH / "trace"
    ways = {"no folder": ("/no/such/folder", "echo ran"), "no folder of ours": ("/proc", "echo ran"), "taken away": (temporary, 'rm -rf "$KILN_AUDIT_DIR"; echo ran')}
    for what, (place, does) in ways.items():
        page.write_text("of another run")
        done = run("audit", "--json", "-o", page, "--perfetto", trace, "--label", "x<y", "--", "sh", "-c", does, TMPDIR=place)
        report = told(done)
        check(done.stdout.startswith("ran\n") and report["format"] == "kiln-audit" and report["label"] == "x<y", what, done)
        check(report["can_be_judged"] is False and report["cpu_shaped"] is None and "it was not recorded" in report["why_not"], what, report)
        check("It cannot be judged" in page.read_text() and "x&lt;y" in page.read_text() and trace.stat().st_size > 0, what, page.read_text()[:300])
        check(told(run("audit", "--json", "--fail-on", "low", "--", "sh", "-c", does, TMPDIR=place, status=4))["why_not"], what, "judged")
        health = told(run("audit", "health", "--json", "--", "sh", "-c", does, TMPDIR=place))
        check("nothing was recorded" in health["why_not"], what, health)
    said = run("audit", "--", "true", TMPDIR="/no/such/folder").stderr
    check("(TMPDIR): No such file or directory; name one that can be written" in said, "with a remedy", said)


@test
def an_empty_tmpdir_is_none():
    done = subprocess.run([CLI, "audit", "--", "sh", "-c", 'echo "$KILN_AUDIT_DIR"'], capture_output=True, text=True, env={**os.environ, "TMPDIR": ""})
    check(done.stdout.startswith("/tmp/kiln-audit-") and "nothing is recorded" not in done.stderr, "as others have it", done)


@test
def the_object_of_health_is_a_line_of_its_own():
    for said in ("abc", "abc\n", ""):
        lines = run("audit", "health", "--json", "--", "printf", "%s", said).stdout.splitlines()
        check(json.loads(lines[-1])["of"] == "processes" and lines[0] == said.strip(), "after the program's", lines)
        with open(SCRATCH / "out", "w") as out:
            subprocess.run([CLI, "audit", "health", "--json", "--", "printf", "%s", said], stdout=out, stderr=subprocess.DEVNULL, check=True)
        lines = (SCRATCH / "out").read_text().splitlines()
        check(len(lines) == (2 if said else 1) and json.loads(lines[-1])["all"] == 1, "in a file without an empty one before it", lines)


@test
def health_runs_nothing_that_does_not_follow_dashes():
    for words in (("touch", SCRATCH / "made"), ("--json", "touch", SCRATCH / "made")):
        done = run("audit", "health", *words, status=1)
        check("no recording touch; to run a program: kiln audit health -- touch" in done.stderr, "a remedy", done)
        check(not (SCRATCH / "made").exists(), "nothing was run", words)
    run("audit", "health", "--", "touch", SCRATCH / "made")
    check((SCRATCH / "made").exists(), "after -- it is")
    check("is a directory" in run("audit", "health", "--", SCRATCH, status=2).stderr, "a folder is no command")


@test
def what_was_cut_short_is_not_called_cpu_code():
    run("audit", "--keep", SCRATCH / "cut", "--", "true")
    (SCRATCH / "cut" / "run.json").unlink()
    report = told(run("audit", "report", SCRATCH / "cut", "--json", "--expect-gpu", status=4))
    check([f["rule"] for f in report["findings"]] == ["R91"] and report["cpu_shaped"] is None, "R91 alone", report)


@test
def failures_are_objects_too():
    run("audit", "--keep", SCRATCH / "one", "--", "true")
    for words, status in ((("report", "nothere"), 1), (("--keep", SCRATCH / "one", "--", "true"), 1), (("--", "nosuch"), 127), (("-o", "/no/such/page", "--", "true"), 1)):
        said = told(run("audit", "--json", *words, status=status) if words[0] != "report" else run("audit", *words, "--json", status=status))
        check(said["format"] == "kiln-audit" and said["can_be_judged"] is False and said["why_not"], words, said)
    said = told(run("audit", "diff", SCRATCH / "one", "nothere", "--json", status=1))
    check(said["broken"] is None and "nothere" in said["why_not"], "diff", said)
    for words, status in ((("nothere",), 1), (("--", "nosuch"), 127)):
        said = told(run("audit", "health", "--json", *words, status=status))
        check(said["gpu_share"] is None and said["why_not"], words, said)


@test
def a_folder_for_a_program_that_does_not_start_goes_again():
    run("audit", "--keep", SCRATCH / "vain", "--", "nosuch", status=127)
    check(not (SCRATCH / "vain").exists(), "it was made for it")
    (SCRATCH / "own").mkdir()
    run("audit", "--keep", SCRATCH / "own", "--", "nosuch", status=127)
    check((SCRATCH / "own").exists(), "it was there before")


@test
def what_the_machine_lacks_is_the_first_remedy():
    try:
        has_driver = bool(ctypes.CDLL("libcuda.so.1"))
    except OSError:
        has_driver = False
    report = told(run("audit", "--json", "--expect-gpu", "--", "true", status=3))
    found = next(f for f in report["findings"] if f["rule"] == "R01")
    for said in (found["remedy"], report["change"], report["first_three"][0]["remedy"]):
        check(said.startswith("install the NVIDIA driver (libcuda.so.1 was not found)") != has_driver, "the driver", has_driver, report)
    check(("libcuda.so.1" in run("audit", "--", "true").stderr) != has_driver, "also in a line")


@test
def what_nobody_looked_at_is_not_certain():
    report = told(run("audit", "--json", "--hook", "none", "--expect-gpu", "--", "env", "-i", "sh", "-c", ":", status=3))
    found = next(f for f in report["findings"] if f["rule"] == "R01")
    check(found["confidence"] == "likely" and report["cpu_shaped"] is None and "was seen" in report["verdict"] and "--hook none" in found["what"], "without the companion", report)
    report = told(run("audit", "--json", "--", "true"))
    check(report["cpu_shaped"] is True and report["verdict"] == "nothing ran on a GPU", "with it", report)


@test
def who_outlives_the_program_is_named():
    write("lives.py", "import os, sys, time\nif os.fork(): os._exit(0)\nos.execv(sys.executable, [sys.executable, '-c', 'import sys, time; open(sys.argv[1], \"w\").close(); time.sleep(60)', sys.argv[1]])\n")
    # The program ends when the other has become one: what it is called is known then.
    script = f'"{PYTHON}" "{SCRATCH}/lives.py" "{SCRATCH}/alive" >/dev/null 2>&1; while [ ! -e "{SCRATCH}/alive" ]; do sleep 0.05; done'
    done = run("audit", "--json", "--", "sh", "-c", script)
    report = told(done)
    left = [o for o in report["others"] if o["outlived"]]
    try:
        check(len(left) == 1 and left[0]["program"].startswith("python"), "it is told", report["others"])
        check(f"(process {left[0]['pid']}) outlived the program" in report["findings"][0]["what"] and report["cpu_shaped"] is None, "and nothing is certain", report)
        check("outlived the program" in done.stderr, "nor on a terminal", done.stderr)
    finally:
        for other in left:
            os.kill(other["pid"], signal.SIGKILL)


@test
def compiles_without_a_gpu_are_shown():
    if not COMPILER:
        return
    build("libnvrtc.so.99", r"""
static int made;
int nvrtcCreateProgram(void** program, char const* text, char const* name, int headers, char const** sources, char const** names) { return *program = &made, 0; }
int nvrtcCompileProgram(void* program, int count, char const** options) { return made++ == 1 ? 6 : 0; }
""", "-shared", "-fPIC")
    program = build("compiles", r"""
int nvrtcCreateProgram(void**, char const*, char const*, int, char const**, char const**);
int nvrtcCompileProgram(void*, int, char const**);
int main(void) {
    for (int i = 0; i < 3; ++i) {
        void* program;
        nvrtcCreateProgram(&program, "", "a<b.cu", 0, 0, 0);
        nvrtcCompileProgram(program, 0, 0);
    }
}
""", str(SCRATCH / "libnvrtc.so.99"))
    page, trace = SCRATCH / "page.html", SCRATCH / "trace"
    done = run("audit", "--json", "-o", page, "--perfetto", trace, "--", program)
    compiles = told(done)["compiles"]
    check([(c["compiler"], c["name"], c["failed"]) for c in compiles] == [("NVRTC", "a<b.cu", False), ("NVRTC", "a<b.cu", True), ("NVRTC", "a<b.cu", False)], "the object", compiles)
    check(compiles[0]["program"].endswith("compiles"), "whose", compiles)
    check("compiled     3 NVRTC in" in done.stderr and "(1 failed)" in done.stderr, "the summary", done.stderr)
    check("Compiled without a GPU" in page.read_text() and b"NVRTC a<b.cu" in trace.read_bytes(), "the page and the trace")


@test
def a_trace_of_nothing_is_one():
    trace = SCRATCH / "trace"
    done = run("audit", "--perfetto", trace, "--", "true")
    check(b"nothing of a GPU was recorded" in trace.read_bytes() and "the trace is empty" in done.stderr, "it says so", done)


@test
def severities_and_counts_are_all_taken_or_all_told():
    check("info, low, medium, high or blocking" in run("audit", "--fail-on", "odd", "--", "true", status=2).stderr, "which there are")
    said = run("audit", "--budget", write("below.budget", "R22.count <= -1\n"), "--", "true", status=2).stderr
    check("is never below 0" in said, "no count is", said)


@test
def health_counts_no_small_tools():
    script = "echo a >/dev/null; /bin/echo b >/dev/null; touch x; mkfifo y; /bin/true; make --version >/dev/null 2>&1; " + f"'{PYTHON}' -c 'import sys; sys.exit(3)'; exit 5"
    done = run("audit", "health", "--", "sh", "-c", script, status=5)
    check("1 process: 0 on the GPU, 1 on the CPU\n" in done.stderr, "one program did something", done.stderr)


def ended_in_its_report(number, **how):
    pipe = SCRATCH / "pipe"
    if not pipe.exists():
        os.mkfifo(pipe)
    # Who opens the pipe to write waits for somebody who reads; the recording has its end by then.
    audited = subprocess.Popen([CLI, "audit", "-o", pipe, "--", "true"], env={**os.environ, "TMPDIR": str(temporary)}, stderr=subprocess.DEVNULL, **how)
    until = time.monotonic() + 60
    while not list(temporary.glob("*/run.json")) and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.3)
    audited.send_signal(number)
    return audited.wait(timeout=60)


@test
def a_signal_while_the_report_is_made_leaves_nothing_behind():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGVTALRM):
        check(ended_in_its_report(number) == -number, "it ends by it", number)
        nothing_is_left(number)


@test
def what_can_be_removed_is_and_the_rest_is_told():
    cannot = 'mkdir "$KILN_AUDIT_DIR/a"; touch "$KILN_AUDIT_DIR/a/b"; chmod 0 "$KILN_AUDIT_DIR/a"; chmod 0 "$KILN_AUDIT_DIR"; exit 5'
    how = {"user": 65534, "group": 65534, "extra_groups": ()} if IS_ROOT else {}
    if IS_ROOT:
        os.chmod(SCRATCH, 0o755)
        os.chown(temporary, 65534, 65534)
    done = subprocess.run([CLI, "audit", "--", "sh", "-c", cannot], env={**os.environ, "TMPDIR": str(temporary)}, capture_output=True, text=True, **how)
    if done.returncode == 126 or "denied" in done.stderr and "kiln" not in done.stderr:
        return  # the other user cannot reach the program
    check(done.returncode == 5, "the program's own", done)
    nothing_is_left("a folder without rights")
    if not IS_ROOT or not shutil.which("chattr"):
        return
    done = subprocess.run([CLI, "audit", "--", "sh", "-c", 'touch "$KILN_AUDIT_DIR/x" && chattr +i "$KILN_AUDIT_DIR/x" || exit 6; exit 5'], env={**os.environ, "TMPDIR": str(temporary)}, capture_output=True, text=True)
    for left in temporary.glob("*/x"):
        subprocess.run(["chattr", "-i", left], check=True)
    if done.returncode == 5:  # where files can be so
        check("the temporary recording stays in " + str(temporary) in done.stderr and "not empty" in done.stderr, "it is told", done.stderr)
    for left in temporary.iterdir():
        shutil.rmtree(left)


@test
def a_recording_without_room_has_a_remedy_for_who_ran_it():
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))
    done = subprocess.run([CLI, "audit", "--fail-on", "low", "--", "true"], preexec_fn=few, capture_output=True, text=True)
    check(done.returncode == 4 and "ulimit -n" in done.stderr and "name the whole folder" not in done.stderr, "what to do", done)


run_tests()
