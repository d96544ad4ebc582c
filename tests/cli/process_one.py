# SPDX-License-Identifier: Apache-2.0
"""Kiln as the first process of a container, or in place of one that took orphans upon itself: `kiln run` and `kiln audit` collect them while the
program runs, as a shell or an init would, and everything else is as it is elsewhere."""

import os
import shutil
import signal
import subprocess
import sys

from _kiln import CLI, SCRATCH, check, run_tests, test, write

IN_CONTAINER = ["unshare", "-pf", "--kill-child", "--mount-proc"]
if not shutil.which("unshare") or subprocess.run([*IN_CONTAINER, "true"], capture_output=True).returncode != 0:
    print("skipped: no namespace of processes is to be had")
    sys.exit(77)

WAYS = (("run", "--"), ("audit", "--"), ("audit", "health", "--"))


def inside(*words, **how):
    env = {**os.environ, "KILN_CACHE_DIR": str(SCRATCH / "cache")}
    return subprocess.run([*IN_CONTAINER, *map(str, words)], capture_output=True, text=True, cwd=SCRATCH, env=env, timeout=120, **how)


def everywhere(what, program, says, status=0):
    check((alone := inside(*program)).stdout == says and alone.returncode == status, f"{what}: alone", alone)
    for way in WAYS:
        done = inside(CLI, *way, *program)
        check(done.stdout == says and done.returncode == status, f"{what}: kiln {' '.join(way)}", done)


# A process whose parent has ended is collected by process 1 alone: until then it has its number.
STOPS = r'''
sh -c 'sleep 60 & echo $! > number'
number=$(cat number)
kill $number
i=0
while kill -0 $number 2>/dev/null; do
    sleep 0.05
    i=$((i + 1))
    [ $i -lt 200 ] || { echo "it is still there"; exit 1; }
done
echo "it is gone"
'''
MANY = r'''
i=0
while [ $i -lt 60 ]; do sh -c 'true & exit 0' || exit 1; i=$((i + 1)); done
n=0
while grep -ls '^State:.Z' /proc/[0-9]*/status >/dev/null; do
    sleep 0.05
    n=$((n + 1))
    [ $n -lt 200 ] || { echo "some are left"; exit 1; }
done
echo "none is left"
'''


@test
def a_daemon_that_was_stopped_is_gone():
    everywhere("kill -0", ("sh", write("stops.sh", STOPS)), "it is gone\n")


@test
def no_orphan_is_left_while_the_program_runs():
    everywhere("orphans", ("sh", write("many.sh", MANY)), "none is left\n")


@test
def who_took_orphans_upon_itself_and_became_kiln_collects_them():
    becomes = """import ctypes, os, sys
assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0  # PR_SET_CHILD_SUBREAPER
os.execv(sys.argv[1], sys.argv[1:])"""
    env = {**os.environ, "KILN_CACHE_DIR": str(SCRATCH / "cache")}
    for way in WAYS:
        done = subprocess.run([sys.executable, "-c", becomes, CLI, *way, "sh", write("stops.sh", STOPS)], capture_output=True, text=True, cwd=SCRATCH, env=env, timeout=120)
        check((done.stdout, done.returncode) == ("it is gone\n", 0), way, done)


@test
def what_had_ended_before_the_program_began_is_collected():
    # Who becomes Kiln has a child that is dead and not collected: no signal tells of it again.
    becomes = """import os, sys
child = os.fork() or os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
open('before', 'w').write(str(child))
os.execv(sys.argv[1], sys.argv[1:])"""
    waits = "i=0; while kill -0 $(cat before) 2>/dev/null; do sleep 0.05; i=$((i + 1)); [ $i -lt 200 ] || exit 1; done; echo gone"
    for way in WAYS:
        done = inside(sys.executable, "-c", becomes, CLI, *way, "sh", "-c", waits)
        check((done.stdout, done.returncode) == ("gone\n", 0), way, done)


@test
def its_status_is_the_programs_own():
    orphans = "for i in 1 2 3 4 5 6 7 8; do sh -c 'true & exit 9'; done; "
    for status, end in ((0, "exit 0"), (7, "exit 7"), (128 + signal.SIGTERM, "kill -TERM $$"), (128 + signal.SIGKILL, "kill -KILL $$")):
        for way in WAYS:
            for _ in range(3):  # an orphan ends beside the program
                done = inside(CLI, *way, "sh", "-c", f"{orphans} sh -c 'sleep 0.01; exit 3' & {end}")
                check(done.returncode == status, way, status, done)


@test
def signals_and_job_control_are_as_elsewhere():
    # It is stopped and goes on among orphans; what the container is told reaches the program.
    stops = write("job.sh", r'''
trap 'echo told; exit 5' TERM
for i in 1 2 3 4; do sh -c 'true & exit 0'; done
sh -c "sh -c 'sleep 0.2; kill -CONT $$; sleep 0.2; kill -TERM 1' & exit 0"
kill -STOP $$
echo continued
while :; do sleep 0.05; done
''')
    for way in WAYS:
        done = inside(CLI, *way, "sh", stops)
        check((done.stdout, done.returncode) == ("continued\ntold\n", 5), way, done)


run_tests()
