# SPDX-License-Identifier: Apache-2.0
"""What `kiln audit` says where there is no answer, and what is asked of it in vain: nothing passes and nothing is blamed because of what was not recorded, and a
command line that makes no sense is told before the program runs."""

import json
import os
import shutil
import sys
import tarfile

from _audit import FAKE, told, waiting
from _kiln import SCRATCH, SOURCE, check, run, test, run_tests, write

PYTHON = os.path.realpath(sys.executable)
write("gpu.py", """
import ctypes, os, sys
if "CUDA_INJECTION64_PATH" in os.environ: assert ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection() == 1
""")


def play(*options, script=None, status=0):
    write("script", script or waiting(40))
    return run("audit", *options, "--json", "--", PYTHON, SCRATCH / "gpu.py", status=status, KILN_AUDIT_CUPTI_ALWAYS=FAKE, KILN_TEST_CUPTI=SCRATCH / "script")


def recorded(name):
    """One of the recordings that were made on an H200."""
    place = SCRATCH / "recordings" / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    with tarfile.open(SOURCE / f"tests/audit/recordings/{name}.tar.xz") as packed:
        packed.extractall(place)
    return place


def kept(name, *options):
    play("--keep", SCRATCH / name, *options)
    return SCRATCH / name


@test
def level_0_records_no_kernels_and_says_so():
    done = play("--level", "0", "--keep", SCRATCH / "nothing")
    report = told(done)
    check("it cannot be judged: it was not recorded (level 0 records no kernels" in report["verdict"], "the verdict", report["verdict"])
    check(not any(f["rule"] == "R01" for f in report["findings"]), "nobody says that none ran", report["findings"])
    check("audit with --level 1" in done.stderr, "what to do", done.stderr)
    check(report["cpu_shaped"] is None and report["can_be_judged"] is False, "nothing is known", report)
    for options in (("--expect-gpu",), ("--fail-on", "blocking")):
        play("--level", "0", *options, status=4)
    write("all.json", '{"of": "processes", "gpu_share": 1.0}')
    run("audit", "health", SCRATCH / "nothing", "--baseline", SCRATCH / "all.json", status=4)
    one, two = kept("one"), kept("two", "--level", "2")
    for options in ((), ("--force",)):
        run("audit", "diff", *options, one, SCRATCH / "nothing", status=4)
    check("another level: 1 and 2" in run("audit", "diff", one, two, status=2).stderr, "two levels are two things")
    run("audit", "diff", "--force", one, two, status=None)


@test
def what_was_not_recorded_is_not_called_cpu_code():
    done = run("audit", "--json", "--", "env", "-i", PYTHON, "-c", "print(1)")
    report = told(done)
    check("cannot be judged" in report["verdict"] and report["cpu_shaped"] is None, "nothing is known of it", report)
    check("CPU-shaped: not known" in done.stderr and "CPU code" not in done.stderr, "the sign-off", done.stderr)
    done = run("audit", "--json", "--", "true", CUDA_INJECTION64_PATH="/other.so")
    check(told(done)["cpu_shaped"] is None, "nor of this", done.stderr)
    check(told(run("audit", "--json", "--", "true"))["cpu_shaped"] is True, "of a program without a GPU it is known")
    done = play(script="refuse torch.profiler\n")
    report = told(done)
    check(report["verdict"] == "it cannot be judged: another profiler holds CUPTI (torch.profiler)", "who holds it", report["verdict"])
    check(report["cpu_shaped"] is None, "and nothing is known", report)
    check([f["rule"] for f in report["findings"]] == ["R93"] and "audit without it" in done.stderr, "nobody else is blamed", done.stderr)


@test
def a_baseline_of_nothing_passes_nothing():
    write("cpu.py", "")
    zero = SCRATCH / "zero.json"
    done = run("audit", "health", "--write-baseline", zero, "--", PYTHON, SCRATCH / "cpu.py", status=4)
    check("is not written" in done.stderr and not zero.exists(), "it is no baseline", done.stderr)
    run("audit", "health", "--write-baseline", zero, "--", PYTHON, "-c", "raise SystemExit(6)", status=6)
    zero.write_text('{"of": "processes", "gpu_share": 0.0}')
    done = run("audit", "health", "--baseline", zero, "--", PYTHON, SCRATCH / "cpu.py", status=4)
    check("nothing ran on a GPU" in done.stderr, "nor is one of old", done.stderr)
    done = run("audit", "health", "--baseline", zero, kept("run"))
    check("1 process: 1 on the GPU" in done.stderr and "of one process it is all or nothing" in done.stderr, "a share of one process", done.stderr)
    write("dispatches.json", '{"of": "dispatches", "all": 1000, "gpu": 950, "gpu_share": 0.95}')
    done = run("audit", "health", "--baseline", SCRATCH / "dispatches.json", SCRATCH / "run", status=4)
    check("the baseline is a share of dispatches, and this run has processes" in done.stderr, "of another thing", done.stderr)
    for name, text in (("broken.json", "{"), ("missing.json", None)):
        if text is not None:
            write(name, text)
        done = run("audit", "health", "--baseline", SCRATCH / name, "--", "sh", "-c", "echo ran", status=2)
        check(done.stdout == "" and "no baseline" in done.stderr, "told before the suite runs", done)


@test
def a_line_on_the_steady_state_needs_steps():
    place = recorded("embedded")
    for line in ("steady.gpu_busy >= 0%", "steady.ms <= 1e9", "step.ms <= 1e9", "R22.per_step <= 1"):
        done = run("audit", "report", place, "--budget", write("steady.budget", line + "\n"), status=4)
        check("no answer" in done.stderr, line, done.stderr)
    scalar = recorded("scalar")
    run("audit", "report", scalar, "--budget", write("steady.budget", "steady.gpu_busy >= 0%\nR22.per_step <= 1\n"))
    done = run("audit", "report", scalar, "--step", "nosuch", "--budget", SCRATCH / "steady.budget", status=4)
    check("no step begins with 'nosuch'" in done.stderr, "a step that is not there", done.stderr)
    check("a severity is held down" in run("audit", "report", scalar, "--budget", write("odd.budget", "severity >= low\n"), status=2).stderr, "the wrong way round")


@test
def one_file_of_a_recording_is_not_judged():
    place = recorded("scalar")
    file = next(place.glob("p*.kilnrec"))
    for what in (file, place):
        done = run("audit", "report", what, "--fail-on", "blocking", status=4 if what == file else 0)
    (place / "run.json").unlink()
    for what in (file, place):
        done = run("audit", "report", what, "--fail-on", "blocking", status=4)
        check("there is no run.json" in done.stderr and "0 records lost" not in done.stderr, "what is missing", done.stderr)
        check("name the whole folder" in done.stderr and "shorter" not in done.stderr, "what to do", done.stderr)


@test
def diff_and_rules_as_json_are_a_line():
    place = recorded("scalar")
    done = run("audit", "diff", "--json", place, place)
    check(done.stdout.count("\n") == 1, "one line", done.stdout)
    data = json.loads(done.stdout)
    wall = next(m for m in data["measures"] if m["what"] == "wall")
    check(not data["broken"] and wall["before"] == wall["after"] > 0 and wall["unit"] == "s", "numbers are numbers", data)
    again = recorded("device-wait")
    other = json.loads(run("audit", "diff", "--force", "--json", place, again, status=None).stdout)
    check(any(f["rule"] == "R22" for f in other["findings"]["gone"]) and other["device"]["after"] == "NVIDIA H200", "and findings are findings", other)
    came = run("audit", "diff", "--force", recorded("cpu"), place, status=None).stdout
    check("now it runs on NVIDIA H200" in came, "a run that came to the GPU", came)
    for options in ((), ("--checklist",)):
        check(run("audit", "rules", "--json", *options).stdout.count("\n") == 1, "one line", options)
    check(run("audit", "rules", "r22").stdout == run("audit", "rules", "R22").stdout, "a rule by its name in small letters")


@test
def an_option_of_another_command_is_told_so():
    for command in ("health", "report", "diff"):
        for option in ("--keep", "--label", "--level") + (() if command == "report" else ("-o",)):
            said = run("audit", command, option, status=2).stderr
            check(f"'{option}' is an option of 'kiln audit' and not of 'kiln audit {command}'" in said, "whose it is", said)
    page = run("audit", "health", "--help").stdout
    alone = page[page.index("Of a run alone:"):page.index("Of the commands:")]
    check(all(option in alone for option in ("--keep", "--label", "--scale", "--level", "--hook")), "the page says which has what", page)


@test
def outputs_are_looked_at_first():
    place = recorded("scalar")
    for words in (("report", place), ("--", "sh", "-c", "echo ran")):
        before, after = (words[:2], ()) if words[0] == "report" else ((), words)
        done = run("audit", *before, "-o", "/no/dir/page.html", *after, status=1)
        check("there is no directory /no/dir" in done.stderr and "tmp-" not in done.stderr, "no such folder", done.stderr)
        done = run("audit", *before, "-o", SCRATCH / "same", "--perfetto", SCRATCH / "same", *after, status=1)
        check("two things would be written there" in done.stderr and "ran" not in done.stdout, "one file for two", done)
    done = run("audit", "--perfetto", SCRATCH / "trace", "--", "true")
    check("the trace is empty" in done.stderr and "ui.perfetto.dev" not in done.stderr, "a trace of nothing", done.stderr)
    done = run("audit", "--", "true", TMPDIR="/no/such/tmp")
    check("no temporary folder can be made in /no/such/tmp (TMPDIR)" in done.stderr, "which folder", done.stderr)


@test
def a_page_that_cannot_be_written_is_told_as_json():
    done = run("audit", "--json", "-o", "/dev/full", "--", "true", status=1)
    check("No space left" in told(done)["why_not"], "who reads JSON is told, too", done.stdout, done.stderr)


@test
def words_of_others_are_no_controls_of_the_terminal():
    done = run("audit", "--", "no\u009b31m\x1b[31m", status=127)
    check("no?31m?[31m" in done.stderr, "neither in one byte nor in two", done.stderr)


run_tests()
