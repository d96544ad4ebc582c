# SPDX-License-Identifier: Apache-2.0
"""What a command is told to write to: files are replaced, pipes and devices written into or refused, never destroyed."""

import json
import os
import resource
import select
import signal
import stat
import subprocess

from _kiln import KERNEL, SCRATCH, check, run, write

write("k.cu", KERNEL.replace("VALUE", "1"))
run("compile", "k.cu", "-a", "sm_90", KILN_EVENTS=SCRATCH / "ev.jsonl")
events = SCRATCH / "ev.jsonl"


def is_fifo(path):
    return stat.S_ISFIFO(os.lstat(path).st_mode)


def through_fifo(*words):
    """Runs a command that writes to SCRATCH/fifo, and returns what came out of it."""
    fifo = SCRATCH / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    run(*words)
    check(is_fifo(fifo), "the pipe is still one", words)
    got = os.read(reader, 1 << 16)  # as much as a pipe holds
    os.close(reader)
    os.remove(fifo)
    return got


# Text goes into a pipe.
check(json.loads(through_fifo("trace", events, "-o", "fifo"))["traceEvents"], "a trace through a pipe")
check(through_fifo("trace", events, "--svg", "fifo").startswith(b"<svg"), "a picture through a pipe")
check(json.loads(run("trace", events, "-o", "-").stdout)["traceEvents"], "and to standard output, with nothing else")
check(run("trace", events, "--svg", "-").stdout.startswith("<svg"), "a picture too")
check("standard output" in run("trace", events, "-o", "-", "--svg", "-", status=2).stderr, "not both")

# A bundle does not.
os.mkfifo(SCRATCH / "fifo")
os.symlink("fifo", SCRATCH / "link")
for target in ("fifo", "link"):
    refused = run("build", "k.cu", "-a", "sm_90", "-o", target, status=1).stderr
    check("not a regular file and is left as it is" in refused, "a bundle needs a file", refused)
check(is_fifo(SCRATCH / "fifo") and os.path.islink(SCRATCH / "link"), "and nothing was harmed")
check("name a file" in run("build", "k.cu", "-a", "sm_90", "-o", "-", status=1).stderr, "not standard output either")
check(not (SCRATCH / "-").exists(), "and no file of that name")
os.symlink("/dev/null", SCRATCH / "null")
run("trace", events, "-o", "null")
check(os.path.islink(SCRATCH / "null"), "a link to a device stays")
os.symlink("real.json", SCRATCH / "to_file")
write("real.json", "old")
run("trace", events, "-o", "to_file")
check(os.path.islink(SCRATCH / "to_file") and "traceEvents" in (SCRATCH / "real.json").read_text(), "a link to a file is followed")

# A descriptor by its name is written into: what the file behind it had before, and what comes after, stays.
for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1", "to_stdout"):
    if name == "to_stdout":
        os.symlink("/dev/stdout", SCRATCH / name)
    script = f'(echo before; "$KILN_TEST_CLI" trace ev.jsonl -o {name}; echo after) > both.txt'
    subprocess.run(["sh", "-c", script], cwd=SCRATCH, check=True)
    lines = (SCRATCH / "both.txt").read_text().splitlines()
    check(lines[0] == "before" and lines[-1] == "after" and any("traceEvents" in line for line in lines), "between what others write", name, lines[:1], lines[-1:])
kept = write("kept.txt", "kept\n")
with open(kept) as readable:
    done = subprocess.run([os.environ["KILN_TEST_CLI"], "trace", "ev.jsonl", "-o", "/dev/stdin"], cwd=SCRATCH, stdin=readable, capture_output=True, text=True)
check(done.returncode == 1 and kept.read_text() == "kept\n", "one that is read is not written", done)
with open(SCRATCH / "out.txt", "w") as to:
    done = subprocess.run([os.environ["KILN_TEST_CLI"], "build", "k.cu", "-a", "sm_90", "-o", "/dev/stdout"], cwd=SCRATCH, stdout=to, stderr=subprocess.PIPE, text=True)
check(done.returncode == 1 and "name a file" in done.stderr and (SCRATCH / "out.txt").read_text() == "", "a bundle goes nowhere near it", done.stderr)

# What standard output did not take is not lost in silence: status 1, and why.
write("points.wkt", "".join(f"POINT ({i} 0)\n" for i in range(4000)))
small = (["list"], ["config"], ["doctor", "--json"], ["--version"], ["help"], ["spatial", "--help"], ["spatial", "bounds", "points.wkt"],
         ["spatial", "info", "points.wkt"], ["spatial", "bounds", "points.wkt", "-o", "/dev/stdout"], ["trace", events, "-o", "-"])


def lost(words, why, **how):
    done = subprocess.run([os.environ["KILN_TEST_CLI"], *map(str, words)], cwd=SCRATCH, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, KILN_CACHE_DIR=str(SCRATCH / "cache")), timeout=240, **how)
    check(done.returncode == 1 and done.stderr.count(why) == 1, f"lost: {why}", words, done)


def limit_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


for words in small:
    with open("/dev/full", "w") as full:
        lost(words, "No space left on device", stdout=full)
    lost(words, "Bad file descriptor", preexec_fn=lambda: os.close(1))
with open(SCRATCH / "limited", "w") as limited:
    lost(["spatial", "bounds", "points.wkt"], "cannot write to standard output: File too large", stdout=limited, preexec_fn=limit_files)
reader, writer = os.pipe()
os.close(reader)
lost(["spatial", "bounds", "points.wkt"], "cannot write to standard output: Broken pipe", stdout=writer, restore_signals=False)
ended = subprocess.run([os.environ["KILN_TEST_CLI"], "list"], stdout=writer, stderr=subprocess.PIPE)
check(ended.returncode == -signal.SIGPIPE and ended.stderr == b"", "a pipe whose reader ended ends the writer, as ever", ended)
os.close(writer)
# No file takes the number of a descriptor that is closed: what is printed would go into it.
subprocess.run([os.environ["KILN_TEST_CLI"], "spatial", "bounds", "points.wkt"], cwd=SCRATCH, stderr=subprocess.DEVNULL, preexec_fn=lambda: os.close(1),
               env=dict(os.environ, KILN_CACHE_DIR=str(SCRATCH / "cache"), KILN_EVENTS=str(SCRATCH / "only_events.jsonl")))
check(all(line.startswith("{") for line in (SCRATCH / "only_events.jsonl").read_text().splitlines()), "events, and nothing else")

# As root, with devices of our own: none may be destroyed.
if os.getuid() == 0:
    kiln = os.environ["KILN_TEST_CLI"]
    script = f"""set -e
mount --make-rprivate / && mount -t tmpfs t /mnt && cp -a /dev/null /mnt/null && cd {SCRATCH}
{kiln} build k.cu -a sm_90 -o /mnt/null && exit 3
{kiln} trace ev.jsonl -o /mnt/null --svg /mnt/null
test -c /mnt/null"""
    environment = dict(os.environ, KILN_CACHE_DIR=str(SCRATCH / "cache"))
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, env=environment)
    if "unshare" not in done.stderr and "mount:" not in done.stderr:
        check(done.returncode == 0, "a device stays a device", done.stdout, done.stderr)

# What is in the way is said in words, and without the name of a C++ function.
for words in (["record", "-o", "", "--", "true"], ["key", "x" * 300], ["key", "none/x"], ["build", "k.cu", "-a", "sm_90", "-o", "none/x"],
              ["build", "k.cu", "-a", "sm_90", "-o", ""], ["trace", events, "-o", "none/x"], ["profile", "merge", events, "-o", "none/x"]):
    said = run(*words, status=2 if "" in words else 1).stderr
    check("filesystem error" not in said and said.startswith("kiln: ") and len(said) > 20, "in words", words, said)

# An option without its value takes nothing else for it, and no output is written over what is read.
source = KERNEL.replace("VALUE", "7")
for words in (["--option=", "own.cu"], ["--depfile=", "own.cu"], ["--embed=", "own.cu"], ["--sign=", "own.cu"], ["--sign", ""], ["--option", ""],
              ["--title", ""], ["--include", ""], ["--depfile", ""]):
    write("own.cu", source)
    said = run("build", "own.cu", "-a", "sm_90", "-o", "own.kiln", *words, status=2).stderr
    check("value" in said and words[0].rstrip("=") in said, "an empty value is told", words, said)
    check((SCRATCH / "own.cu").read_text() == source and not (SCRATCH / "own.kiln").exists(), "and nothing is written", words)
check("--record= has no value" in run("run", "--record=", "true", status=2).stderr, "of any command")
check("--record has no value" in run("run", "--record", "--", "true", status=2).stderr, "nor is what ends the options one")
run("record", "-o", "x.profile", "--", "true", "--empty=")
run("record", "-o", "x.profile", "true", "--empty=")
os.symlink("own.cu", SCRATCH / "linked.cu")
os.link(SCRATCH / "own.cu", SCRATCH / "again.cu")
for words in (["-o", "own.cu"], ["-o", "linked.cu"], ["-o", "again.cu"], ["--embed", "own.cu"], ["-o", "x.kiln", "--depfile", "./own.cu"],
              ["-o", "x.kiln", "--depfile", "x.kiln"], ["-o", "x.cpp", "--embed", "x.cpp"], ["--embed", "x.cpp", "--depfile", "x.hpp"]):
    said = run("build", "own.cu", "-a", "sm_90", *words, status=1).stderr
    check("name another" in said, "an output that is an input, or another output", words, said)
    check((SCRATCH / "own.cu").read_text() == source and not list(SCRATCH.glob("x.[ckh]*")), "nothing is written", words)
# What does not compile is not written, and what is not written is not said to be.
write("broken.cu", '__device__ void b(int* x) { *x = 1; }\n')
said = run("build", "own.cu", "broken.cu", "-a", "sm_90", "--embed", "half.cpp", status=1).stdout
check(said.startswith("nothing written: 1 of 2") and not (SCRATCH / "half.cpp").exists(), "half a program is none", said)
for words in (["--as", "for"], ["--as", "a-b"], ["--embed-name", "9bad"], ["--embed-name", "class"]):
    said = run("build", "own.cu", "-a", "sm_90", "--embed", "named.cpp", *words, status=2).stderr
    check(words[1] in said and not (SCRATCH / "named.cpp").exists(), "names that C++ has none of", words, said)
check("--embed-name" in run("build", "own.cu", "-a", "sm_90", "--embed", "my-x.cpp", status=2).stderr, "nor the name of the file")
run("key", "signer")
for words in (["--sign", "signer"], ["--title", "T"], ["--compress"]):
    check("there is none: add -o" in run("build", "own.cu", "-a", "sm_90", "--embed", "x.cpp", *words, status=2).stderr, "of a bundle that is not asked for", words)
for words in (["--as", "f"], ["--embed-name", "q"]):
    check("there is none: add --embed" in run("build", "own.cu", "-a", "sm_90", "-o", "x.kiln", *words, status=2).stderr, "of source that is not asked for", words)
said = run("build", "own.cu", "-a", "sm_90", "--embed", "x.cpp", "--embed-name", "mine", status=0)
written = write("theirs.hpp", "// by hand\n")
said = run("build", "own.cu", "-a", "sm_90", "--embed", "x.cpp", "--embed-name", "theirs", status=1).stderr
check("theirs.hpp" in said and written.read_text() == "// by hand\n", "a header of somebody's own stays", said)
before = events.read_bytes()
check("name another" in run("trace", events, "-o", "ev.jsonl", status=1).stderr and events.read_bytes() == before, "events are not replaced by their trace")

# KILN_EVENTS on a pipe: a program neither waits for a reader nor ends with it.
fifo = SCRATCH / "events.fifo"
os.mkfifo(fifo)
environment = dict(os.environ, KILN_CACHE_DIR=str(SCRATCH / "piped"), KILN_EVENTS=str(fifo),
                   KILN_CUDA_PATH=os.environ.get("KILN_TEST_CUDA_PATH", ""))
command = [os.environ["KILN_TEST_CLI"], "compile", "k.cu", "-a", "sm_80,sm_90"]


def start():
    return subprocess.Popen(command, cwd=SCRATCH, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
program = start()
select.select([reader], [], [], 60)
check(os.read(reader, 1 << 16).startswith(b"{"), "events arrive")
os.close(reader)
check(program.wait(120) == 0, "the reader ended, the program did not", program.returncode)
program = start()
try:
    check(program.wait(120) == 0, "nobody reads at all", program.returncode)
except subprocess.TimeoutExpired:
    program.kill()
    check(False, "nobody reads, and the program waits")
