# SPDX-License-Identifier: Apache-2.0
"""The client's side of a remote: nothing at all without one, a disk without room, a server that stops in the middle, a name whose first
address is dead, an end with uploads under way. A machine is kiln-test-herd, whose compiler is none and takes as long as it is told."""

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from _kiln import BIN, SCRATCH, check

HERD = BIN / "kiln-test-herd"
SLOW_MACHINE_MS = 700
made = 0


class machine:
    """Begins at once; `report` is what it said at its end, `ended_ms` what came after that."""

    def __init__(self, remote, keys, ms, *more, cache=None, before=(), **variables):
        global made
        made += 1
        env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        env.update(variables, **({} if remote is None else {"KILN_REMOTE": remote}))
        command = [*before, HERD, cache or SCRATCH / f"machine-{made}", keys, ms, *more]
        self.process = subprocess.Popen([str(w) for w in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def report(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                began = time.monotonic()
                self.process.wait()
                return json.loads(line) | {"ended_ms": (time.monotonic() - began) * 1000}
        sys.exit(f"a machine said nothing: {self.process.stderr.read()}")


def report(*arguments, **variables):
    with machine(*arguments, **variables) as one:
        return one.report()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class redis:
    def __init__(self):
        self.port = free_port()
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(SCRATCH)],
                                        stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if "Ready to accept" in line:
                break
        self.url = f"redis://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


# Without KILN_REMOTE: every call of the C library that makes a socket, looks up a name or starts a thread is counted (its libraries: remote.py).
counter = BIN / "kiln-test-fail_one_call.so"
if counter.exists():
    PLACES = 96

    def calls(remote):
        board = SCRATCH / "board"
        board.write_bytes(bytes(8 + 32 * PLACES))
        opened = SCRATCH / "opened"
        opened.write_bytes(b"")
        cache = SCRATCH / f"counted-{made}"
        seen = report(remote, 3, 1, cache=cache, LD_PRELOAD=str(counter), FAULT_PROGRAM=HERD.name, FAULT_BOARD=str(board), FAULT_FILES=str(opened))
        check(seen["compiled"] == 3, "it compiles", seen)
        raw = board.read_bytes()
        out = {}
        for i in range(PLACES):
            name = raw[8 + 32 * i:32 + 32 * i].rstrip(b"\0").decode()
            if name:
                out[name] = struct.unpack_from("<Q", raw, 32 + 32 * i)[0]
        return out, files_of(opened.read_text().splitlines(), str(cache))

    def files_of(names, cache):
        """Which, and not how often: what is written now and then is opened twice where it took long. In the cache: what is no entry."""
        other = {name for name in names if not name.startswith(cache)}
        inside = {name[len(cache):].lstrip("/") for name in names if name.startswith(cache)}
        return other | {re.sub(r"[0-9a-f]{16,}", "HEX", name) for name in inside if not re.match(r"v\d+/[0-9a-f]{2}(/|$)", name)}

    of_remotes = ("socket", "connect", "getaddrinfo")
    dead, dead_files = calls(f"redis://127.0.0.1:{free_port()} trust=server")
    check(dead.get("socket", 0) > 0 and dead.get("connect", 0) > 0 and dead.get("eventfd", 0) > 0, "the counter sees a remote", dead)
    for remote in (None, "", "off"):
        none, files = calls(remote)
        check(not any(none.get(c, 0) for c in of_remotes), f"KILN_REMOTE={remote}: no socket, no connection, no name looked up", none)
        check(all(none.get(c, 0) < dead[c] for c in ("pthread_create", "eventfd")), "no thread", none, dead)
        check(files and files <= dead_files, "no file", files - dead_files)

if shutil.which("redis-server") is None:
    print("redis-server is not here")
    sys.exit(77)

with redis() as server:
    trusted = server.url + " trust=server"

    # A disk without room keeps nothing, and everything is found all the same.
    large = ("grow=100000", "salt=large")
    first = report(trusted + " patience=10s", 20, 5, *large)
    check(first["compiled"] == 20 and first["wrong"] == 0, "the first compiles", first)
    small = SCRATCH / "small"
    small.mkdir()
    if os.getuid() == 0 and subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode == 0:
        script = f"mount --make-rprivate / && mount -t tmpfs -o size=256k,mode=0700 t {small} && exec \"$@\""
        inside = ("unshare", "-m", "sh", "-c", script, "sh")
        seen = report(trusted + " patience=10s", 20, 5, *large, cache=small / "cache", before=inside)
        check(seen["compiled"] == 0 and seen["fleet"] == 20 and seen["wrong"] == 0, "a full disk: all from the fleet, and right", seen)
        check(seen["errors"].get("enospc", 0) >= 1, "and the disk is told to be full", seen)
        # What it makes itself is sent all the same.
        made_there = report(trusted + " patience=10s", 20, 5, "grow=100000", "salt=full", cache=small / "cache", before=inside)
        check(made_there["compiled"] == 20 and made_there["of_fleet"]["uploads"] == 20, "what a full disk does not keep is sent", made_there)
    readable = report(trusted + " patience=10s", 20, 5, *large, KILN_READONLY="1")
    check(readable["fleet"] == 20 and "uploads" not in readable["of_fleet"], "read-only: found, and nothing written", readable)

    # Stopped while five machines share the work: each goes on by itself, after the patience that it would have had with a holder.
    alone = report(None, 20, 50)["wall_ms"]
    herd = [machine(trusted, 20, 50, "salt=stopped") for _ in range(5)]
    try:
        time.sleep(0.3)
        server.process.send_signal(signal.SIGSTOP)
        slowest = max(m.report()["wall_ms"] for m in herd)
    finally:
        server.process.send_signal(signal.SIGCONT)
        for m in herd:
            m.__exit__()
    print(f"a server that stops: {slowest:.0f} ms, alone {alone:.0f} ms")
    # Twice a compile that is taken to last a second: what a holder would have been waited for. A request is given up after ten.
    check(slowest <= 1.25 * alone + 2000 + 2 * SLOW_MACHINE_MS, "nobody waits for a server that has stopped", slowest, alone)

    # A name with two addresses, of which the first answers nothing at all.
    resolver = BIN / "kiln-test-two_addresses.so"
    if resolver.exists():
        with socket.socket() as hole:
            hole.bind(("127.0.0.2", server.port))
            hole.listen(0)
            full = []
            for _ in range(8):
                s = socket.socket()
                s.setblocking(False)
                s.connect_ex(("127.0.0.2", server.port))
                full.append(s)
            seen = report(f"redis://two.test:{server.port} trust=server patience=5s", 20, 5, *large, LD_PRELOAD=str(resolver))
            for s in full:
                s.close()
        check(seen["fleet"] == 20, "the second address is tried while the first is silent", seen)

# An end with uploads under way: everything is answered but what is sent.
silent = socket.create_server(("127.0.0.1", 0), backlog=64)


def serve(connection):
    words = connection.makefile("rb")
    try:
        while line := words.readline():
            command = []
            for _ in range(int(line[1:])):
                command.append(words.read(int(words.readline()[1:])))
                words.read(2)
            lease = command[1].startswith(b"kiln:1:l:") if len(command) > 1 else False
            if command[0] == b"SET" and not lease:
                continue
            names = len(command) - 1
            connection.sendall({b"SET": b"+OK\r\n", b"EVAL": b":1\r\n", b"MGET": b"*%d\r\n" % names + b"$-1\r\n" * names}.get(command[0], b"$-1\r\n"))
    except (OSError, ValueError):
        pass


def accept():
    while True:
        try:
            connection, _ = silent.accept()
        except OSError:
            return
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


threading.Thread(target=accept, daemon=True).start()
ends = [report(f"redis://127.0.0.1:{silent.getsockname()[1]} trust=server lease=none", 4, 20, "leave")["ended_ms"] for _ in range(3)]
print("ends with an upload under way:", [f"{e:.0f} ms" for e in ends])
check(min(ends) <= 330, "200 ms, and what a process needs to end", ends)
