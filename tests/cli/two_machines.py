# SPDX-License-Identifier: Apache-2.0
"""Two machines with different compilers at the same path and one Redis between them: each is given what its own compiler made, and
neither pushes the other's out. The machines are mount and network namespaces that this test makes."""

import os
import shutil
import subprocess
import sys

from _kiln import CLI, KERNEL, SCRATCH, check, data, run, write

for program in ("redis-server", "unshare", "nsenter", "ip", "mount"):
    if shutil.which(program) is None:
        print(f"skipped: {program} is not here")
        sys.exit(77)
toolkit = os.environ.get("KILN_TEST_CUDA_PATH", "")
libraries = next((f"{toolkit}/{d}" for d in ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
                  if os.path.exists(f"{toolkit}/{d}/libnvrtc.so")), None)
if libraries is None:
    print("skipped: no NVRTC in KILN_TEST_CUDA_PATH")
    sys.exit(77)

children = []


def start(*words, **how):
    children.append(subprocess.Popen([str(w) for w in words], text=True, **how))
    return children[-1]


def machine():
    """A process in namespaces of its own; None where this is not allowed."""
    one = start("unshare", "--mount", "--net", "sh", "-c", "ip link set lo up && echo here && exec cat", stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return one.pid if one.stdout.readline() == "here\n" else None


def inside(pid, *words):
    return ["nsenter", "-t", str(pid), "-m", "-n", *map(str, words)]


def must(*words):
    subprocess.run([str(w) for w in words], check=True)


def compiler(name, more):
    """The toolkit again; its built-in headers are part of who the compiler is, and `more` makes them another's."""
    root = SCRATCH / name
    (root / "lib64").mkdir(parents=True)
    os.symlink(f"{toolkit}/include", root / "include")
    for file in os.listdir(libraries):
        if not file.startswith("libnvrtc"):
            continue
        target = root / "lib64" / file
        if "builtins" in file:
            shutil.copyfile(f"{libraries}/{file}", target)
            with open(target, "ab") as end:
                end.write(more)
        else:
            os.symlink(os.path.realpath(f"{libraries}/{file}"), target)
    return root


def end_all():
    for child in reversed(children):
        child.kill()
        child.wait()


try:
    server, first, second = machine(), machine(), machine()
    if None in (server, first, second):
        print("skipped: no namespaces may be made here")
        end_all()
        sys.exit(77)
    (SCRATCH / "cuda").mkdir()
    for number, (pid, made) in enumerate(((first, compiler("one", b"")), (second, compiler("two", b"\0"))), 1):
        here, there = f"kiln{os.getpid() % 10000}a{number}", f"kiln{os.getpid() % 10000}b{number}"
        must(*inside(server, "ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", pid))
        for at, name, last in ((server, here, 1), (pid, there, 2)):
            must(*inside(at, "ip", "addr", "add", f"10.99.{number}.{last}/30", "dev", name))
            must(*inside(at, "ip", "link", "set", name, "up"))
        must(*inside(pid, "mount", "--bind", made, SCRATCH / "cuda"))
    redis = start(*inside(server, shutil.which("redis-server"), "--port", 6379, "--protected-mode", "no", "--save", "", "--dir", SCRATCH),
                  stdout=subprocess.PIPE)
    for line in redis.stdout:
        if "Ready to accept" in line:
            break
    write("k.cu", KERNEL.replace("VALUE", "1"))
    made = 0

    def warm(number, pid):
        """A fresh start of that machine: how many it compiled, and where the rest came from."""
        global made
        made += 1
        seen = data(*inside(pid, CLI, "warm", SCRATCH / "k.cu", "-a", "sm_90")[1:], program="nsenter", KILN_CACHE_DIR=SCRATCH / f"cache{made}",
                    KILN_CUDA_PATH=SCRATCH / "cuda", KILN_REMOTE=f"redis://10.99.{number}.1:6379 trust=server patience=10s connect-timeout=5s")
        return seen["compiled"], seen["things"][0]["from"], seen["things"][0].get("key")

    def objects():
        ask = "import socket; s = socket.create_connection(('127.0.0.1', 6379)); s.sendall(b'DBSIZE\\r\\n'); print(s.recv(100))"
        return subprocess.run(inside(server, sys.executable, "-c", ask), capture_output=True, text=True, check=True).stdout

    one, two = warm(1, first), warm(2, second)
    check(one[0] == 1, "the first machine compiles", one)
    check(two[0] == 1, "the second has another compiler: what the first made is not for it", two)
    there = objects()
    for _ in range(3):
        one, two = warm(1, first), warm(2, second)
        check(one[:2] == (0, "fleet"), "the first finds its own", one)
        check(two[:2] == (0, "fleet"), "the second finds its own", two)
    check(objects() == there, "nothing was replaced or added", there, objects())
finally:
    end_all()
