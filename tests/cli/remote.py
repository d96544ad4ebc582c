# SPDX-License-Identifier: Apache-2.0
"""Two machines, each a cache directory, and one Redis: what one compiled the other finds, signed; kiln remote and doctor; and a
server that is not there costs next to nothing."""

import http.server
import json
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
import time

from _kiln import BIN, KERNEL, SCRATCH, SOURCE, check, data, run, write

server = shutil.which("redis-server")
if server is None:
    print("redis-server is not here")
    sys.exit(77)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


port = free_port()
redis = subprocess.Popen([server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(SCRATCH)],
                         stdout=subprocess.PIPE, text=True)
for line in redis.stdout:
    if "Ready to accept" in line:
        break
try:
    run("key", "nodes.key")
    url = f"redis://127.0.0.1:{port}"
    writer = f"{url} keys={SCRATCH}/nodes.key.pub sign={SCRATCH}/nodes.key patience=10s"
    reader = f"{url} keys={SCRATCH}/nodes.key.pub read-only patience=10s"
    write("k.cu", KERNEL.replace("VALUE", "1") + "#include \"h.h\"\n")
    write("h.h", "// one\n")
    warm = ("warm", "k.cu", "-a", "sm_90")

    first = data(*warm, KILN_CACHE_DIR=SCRATCH / "a", KILN_REMOTE=writer)
    check(first["compiled"] == 1, "the first machine compiles", first)
    stats = data("cache", "stats", KILN_CACHE_DIR=SCRATCH / "a")
    check(stats["fleet"].get("uploads") == 1 and stats["fleet"].get("leases") == 1, "and sends it, under a lease", stats)
    second = data(*warm, KILN_CACHE_DIR=SCRATCH / "b", KILN_REMOTE=reader, KILN_EVENTS=SCRATCH / "second.jsonl")
    check(second["compiled"] == 0 and second["things"][0]["from"] == "fleet", "the second does not", second)
    stats = data("cache", "stats", KILN_CACHE_DIR=SCRATCH / "b")
    check(stats["hits"].get("fleet") == 1 and stats["entries"] == 1, "its disk has it now", stats)
    counted = stats["fleet"]
    check(counted["asked"] == 1 and counted["hits"] == 1 and counted["bytes_in"] > 0, "what it asked for is counted", counted)
    check(all(counted[name] == 0 for name in ("misses", "late", "hedged", "bytes_out", "uploads", "dropped", "leases", "lease_waits", "breaker_opened")),
          "also what did not happen", counted)
    check(0 < counted["answer_p50_ms"] <= counted["answer_p95_ms"] < 20_000 and counted["errors"] == {}, "and how long it took", counted)
    told = data("remote", "status", KILN_CACHE_DIR=SCRATCH / "b", KILN_REMOTE=reader)[0]
    check(told["fleet"] == counted, "status tells the same", told)
    said = run("remote", "status", KILN_CACHE_DIR=SCRATCH / "b", KILN_REMOTE=reader).stdout
    check("answers p50, p95" in said and "asked" in said and "answered_us" not in said, "also to people", said)
    waits = [e for e in data("events", SCRATCH / "second.jsonl") if e["kind"] == "waited" and e.get("reason") == "fleet"]
    check(waits and all(e["unit"] == "k" for e in waits), "waits for a server have a name", waits)
    again = data(*warm, KILN_CACHE_DIR=SCRATCH / "b")
    check(again["compiled"] == 0 and again["things"][0]["from"] == "disk", "and needs no server any more", again)
    forbidden = data(*warm, KILN_CACHE_DIR=SCRATCH / "c", KILN_REMOTE=reader, KILN_JIT="forbid")
    check(forbidden["compiled"] == 0, "also where nothing may be compiled", forbidden)

    # Why is it compiled here? Because no server has it, or it is not.
    why = ("explain", "k.cu", "-a", "sm_90")
    told = data(*why, KILN_CACHE_DIR=SCRATCH / "w", KILN_REMOTE=reader)[0]
    check(told["verdict"] == "hit" and told["from"] == "fleet" and told["fleet"] is None, "explain asks the servers, too", told)
    check(data("cache", "stats", KILN_CACHE_DIR=SCRATCH / "w")["entries"] == 0, "and copies nothing")
    told = data(*why, KILN_CACHE_DIR=SCRATCH / "w", KILN_REMOTE=reader + " namespace=empty")[0]
    check(told["verdict"] == "miss" and told["fleet"] == url + ": absent", "and says of each that it has it not", told)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        told = data(*why, KILN_CACHE_DIR=SCRATCH / "w", KILN_REMOTE=f"redis://127.0.0.1:{silent.getsockname()[1]} trust=server timeout=500ms")[0]
        check(told["verdict"] == "miss" and told["fleet"], "and says that one does not answer", told)
        check(time.monotonic() - begun < 20, "in its time, and the program's own", time.monotonic() - begun)

        # Nobody else has it: the error says of each server what came of it.
        here = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        closed = f"http://127.0.0.1:{free_port()}"
        said = run(*warm, status=1, KILN_JIT="forbid", KILN_CACHE_DIR=SCRATCH / "w",
                   KILN_REMOTE=f"{here} trust=server timeout=500ms {closed} trust=server {reader} namespace=empty").stderr
        check(f"{here}: disabled: " in said and f"{closed}: disabled: " in said and f"{url}: absent" in said, "forbidden: each remote is named, with what it said", said)

        # What cannot be sent is not waited for where the server is known to be silent, and is said.
        begun = time.monotonic()
        said = run("compile", "k.cu", "-a", "sm_90", KILN_CACHE_DIR=SCRATCH / "s", KILN_REMOTE=f"{here} trust=server").stderr
        check(time.monotonic() - begun < 8, "a server that says nothing is not waited for at the end", time.monotonic() - begun)
        check(f"{here}: 1 artifact not sent: it does not answer" in said, "and what was not sent is said", said)

    # Another header: another entry beside it, and neither pushes the other out.
    write("h.h", "// two\n")
    check(data(*warm, KILN_CACHE_DIR=SCRATCH / "d", KILN_REMOTE=writer)["compiled"] == 1, "R18: other headers are another entry")
    check(data(*warm, KILN_CACHE_DIR=SCRATCH / "e", KILN_REMOTE=reader)["compiled"] == 0, "R18: found by who has the same")
    check(data(*why, KILN_CACHE_DIR=SCRATCH / "w", KILN_REMOTE=reader)[0]["verdict"] == "hit", "R18: explain finds the second, too")
    write("h.h", "// three\n")
    told = data(*why, KILN_CACHE_DIR=SCRATCH / "w", KILN_REMOTE=reader)[0]
    check(told["verdict"] == "miss" and told["reason"] == "header-changed", "R18: and says why neither fits", told)
    write("h.h", "// one\n")
    check(data(*warm, KILN_CACHE_DIR=SCRATCH / "f", KILN_REMOTE=reader)["compiled"] == 0, "R18: and the first is still there")

    # Who signed it with another key is not believed, and nothing of his reaches the disk.
    run("key", "others.key")
    stranger = f"{url} keys={SCRATCH}/others.key.pub read-only patience=10s"
    seen = data(*warm, KILN_CACHE_DIR=SCRATCH / "g", KILN_REMOTE=stranger)
    check(seen["compiled"] == 1, "R4: an unknown key is not believed", seen)
    check(data("cache", "stats", KILN_CACHE_DIR=SCRATCH / "g")["rejected"].get("unknown-key", 0) >= 1, "and counted")

    status = data("remote", "status", KILN_REMOTE=writer)[0]
    check(status["reachable"] and status["trust"] == "signed" and status["leases"] == "by the server", "status", status)
    signer = status["signs"]
    check(signer and status["keys"] == [signer] and status["epoch"] == 0 and status["min_epoch"] == 0, "who counts there", status)
    check(signer in run("remote", "status", KILN_REMOTE=writer).stdout, "and for people")
    mere_reader = data("remote", "status", KILN_REMOTE=reader)[0]
    check(mere_reader["signs"] is None and mere_reader["leases"] == "none, read-only", "who only reads signs and leases nothing", mere_reader)
    check(f"ok       remote         {url}" in run("doctor", status=None, KILN_REMOTE=writer).stdout, "doctor tries it")
    checked = data("remote", "verify", KILN_REMOTE=writer)
    check(checked["checked"] >= 2 and not checked["bad"], "verify", checked)
    check(checked["signed_by"] == {signer: {"packets": checked["checked"], "bad": 0}}, "verify says who signed", checked)
    run("remote", "verify", status=1, KILN_REMOTE=stranger)
    unknown = json.loads(run("remote", "verify", "--json", status=1, KILN_REMOTE=stranger).stdout)
    check(unknown["bad"][0]["signed_by"] == [signer], "also of what is not believed", unknown)
    for few in ("0", "-1"):
        run("remote", "verify", "--sample", few, status=2, KILN_REMOTE=writer)
    run("remote", "prune", "--older-than", "200000000000000d", status=2, KILN_REMOTE=writer)
    (SCRATCH / "believed").mkdir()
    shutil.copy(SCRATCH / "nodes.key.pub", SCRATCH / "believed")
    folder = f"{url} keys={SCRATCH}/believed read-only"
    check(not data("remote", "verify", KILN_REMOTE=folder)["bad"], "verify with a folder of keys")
    pushed = data("remote", "push", "--cache", KILN_CACHE_DIR=SCRATCH / "a", KILN_REMOTE=writer)
    check(pushed["there_already"] == 1 and pushed["failed"] == 0, "push sends only what is missing", pushed)
    run("build", "k.cu", "-a", "sm_90", "-o", "x.kiln", KILN_CACHE_DIR=SCRATCH / "a")
    elsewhere = writer + " namespace=shipped"
    check(data("remote", "push", "x.kiln", KILN_REMOTE=elsewhere)["uploaded"] == 1, "push of a bundle")
    both = data("remote", "verify", KILN_REMOTE=f"http://127.0.0.1:{free_port()} trust=server {writer} {elsewhere}")
    check(both["checked"] >= 4 and not both["bad"], "verify of two namespaces on one server", both)

    # What a profile names is fetched before a program runs, and nothing is compiled for it.
    profile = ("--profile", "app.profile", "--arch", "sm_90")
    run("record", "-o", "app.profile", "--", BIN / "kiln-test-warm_program", "use", "a", "b", KILN_CACHE_DIR=SCRATCH / "p")
    run("replay", "app.profile", "-a", "sm_90", KILN_CACHE_DIR=SCRATCH / "s", KILN_REMOTE=writer)
    pulled = data("remote", "pull", *profile, "-o", "pulled.kiln", KILN_CACHE_DIR=SCRATCH / "q", KILN_REMOTE=reader)
    check(pulled["ready"] == 2 and pulled["from_fleet"] == 2 and pulled["absent"] == 0, "pull of a profile", pulled)
    check(data("cache", "stats", KILN_CACHE_DIR=SCRATCH / "q")["entries"] == 2, "it is in the cache")
    run("verify", "pulled.kiln")
    none = run("remote", "pull", *profile, "--json", status=1, KILN_CACHE_DIR=SCRATCH / "r", KILN_REMOTE=reader + " namespace=empty")
    check(json.loads(none.stdout)["absent"] == 2, "what is absent is said and not compiled", none.stdout)
    said = run("remote", "pull", *profile, status=1, KILN_CACHE_DIR=SCRATCH / "r", KILN_REMOTE=reader + " namespace=empty").stderr
    check("nor on a server" in said and "KILN_JIT" not in said, "and no setting is blamed that nobody made", said)
    chosen = writer + " namespace=chosen"
    named = data("remote", "push", *profile, KILN_CACHE_DIR=SCRATCH / "q", KILN_REMOTE=chosen)
    check(named["uploaded"] == 2 and named["absent"] == 0, "push of what a profile names", named)
    few = run("remote", "push", *profile, "--json", status=1, KILN_CACHE_DIR=SCRATCH / "r", KILN_REMOTE=chosen)
    check(json.loads(few.stdout)["absent"] == 2, "what is not in the cache is said and not compiled", few.stdout)
    run("remote", "push", "x.kiln", *profile, status=2, KILN_REMOTE=chosen)
    for idle in (("push", "--cache", "--arch", "sm_90"), ("push", "x.kiln", "--token-file", "t"), ("pull", *profile, "--key", "nodes.key.pub"),
                 ("pull", "oci://127.0.0.1:1/app:1", "-o", "y.kiln", "--arch", "sm_90"), ("push", "x.kiln", "oci://127.0.0.1:1/app:1", "--to", url)):
        said = run("remote", *idle, status=2, KILN_REMOTE=chosen).stderr
        check("has no effect here" in said, f"an option without an effect: {idle}", said)
    check(data("remote", "prune", "--older-than", "1d", KILN_REMOTE=writer)["removed"] == 0, "prune of old things")
    check(data("remote", "prune", "--older-than", "0s", "--dry-run", KILN_REMOTE=writer)["removed"] >= 2, "prune, dry")
    said = run("remote", "prune", "--older-than", "0s", status=1, KILN_REMOTE=reader).stderr
    check("read-only" in said, "who only reads removes nothing", said)
    check(data("remote", "verify", KILN_REMOTE=f"{writer} {elsewhere} {chosen}")["checked"] >= 4, "it is all there")
    check(data("remote", "prune", "--older-than", "0s", KILN_REMOTE=writer)["left"] == 0, "prune of all")
    if shutil.which("redis-cli"):
        # Two who are on one server, each with a token of his own: who may write removes, whoever is named first.
        for who, rights in (("ann", "+get +mget +ping +scan +object"), ("bob", "+@all")):
            subprocess.run(["redis-cli", "-p", str(port), "acl", "setuser", who, "on", ">pw", "~kiln:1:*", *rights.split()], check=True, stdout=subprocess.DEVNULL)
            write(f"{who}.token", f"{who}:pw")
        run("remote", "push", "x.kiln", KILN_REMOTE=writer)
        # Who looks after it has no private key, and nobody shares anything by his line.
        keeper = f"{url} keys={SCRATCH}/nodes.key.pub token-file={SCRATCH}/bob.token"
        check(data("remote", "verify", KILN_REMOTE=keeper)["checked"] >= 1, "a keeper verifies")
        check(data("remote", "prune", "--older-than", "0s", "-n", KILN_REMOTE=keeper)["removed"] >= 1, "and prunes")
        said = run("remote", "push", "x.kiln", status=1, KILN_REMOTE=keeper).stderr
        check("nothing signs" in said and "set KILN_REMOTE" not in said, "but sends nothing", said)
        both = f"{reader} token-file={SCRATCH}/ann.token {writer} token-file={SCRATCH}/bob.token"
        pruned = data("remote", "prune", "--older-than", "0s", KILN_REMOTE=both)
        check(pruned["removed"] >= 1 and pruned["left"] == 0, "prune with the token of who may write", pruned)
        run("remote", "push", "x.kiln", KILN_REMOTE=writer)
        subprocess.run(["redis-cli", "-p", str(port), "config", "set", "maxmemory-policy", "allkeys-lfu"], check=True, stdout=subprocess.DEVNULL)
        said = run("remote", "prune", "--older-than", "1d", status=1, KILN_REMOTE=writer).stderr
        check("does not say when" in said, "a server that counts uses instead of ages", said)
        check(data("remote", "verify", KILN_REMOTE=writer)["checked"] >= 1, "is still verified")
        check(data("remote", "prune", "--older-than", "0s", KILN_REMOTE=writer)["left"] == 0, "and emptied: that needs no ages")

    # What works, and could be better.
    if shutil.which("redis-cli"):
        subprocess.run(["redis-cli", "-p", str(port), "config", "set", "maxmemory-policy", "noeviction"], check=True, stdout=subprocess.DEVNULL)
        told = {(f["state"], "noeviction" in f["value"]) for f in data("doctor", KILN_REMOTE=writer)["findings"] if f["what"] == "remote"}
        check(("advice", True) in told and any(state == "ok" for state, _ in told), "advice is no problem, and is not hidden in what is ok", told)

    # What is not understood takes a remote out of use, and doctor says what to write.
    said = run("doctor", status=1, KILN_REMOTE=f"{url} trust=server readonly").stdout
    check("did you mean 'read-only'" in said, "a misspelt attribute", said)
    unbelieved = f"{url} keys={SCRATCH}/others.key.pub sign={SCRATCH}/nodes.key"
    said = run("doctor", status=1, KILN_REMOTE=unbelieved).stdout
    check("not among keys=" in said and f"ok       remote         {url}" not in said, "who signs what nobody believes", said)
    run("remote", "pull", status=2, KILN_REMOTE=writer)
    said = run("doctor", status=1, KILN_REMOTE=f"{writer} min-epoch=4").stdout
    check("add epoch=4" in said, "who signs what he himself does not believe any more", said)
    write("token", "hunter2")
    for mode, told in ((0o644, True), (0o600, False)):
        os.chmod(SCRATCH / "token", mode)
        said = run("doctor", status=1, KILN_REMOTE=f"{writer} token-file={SCRATCH}/token").stdout
        check(("token can be read by others" in said) == told, "a token that others can read", said)
    if os.geteuid() == 0:  # as Kubernetes gives a secret to who is not root: by his group
        shutil.copy(SCRATCH / "nodes.key", SCRATCH / "secret.key")
        os.chown(SCRATCH / "secret.key", 1, 0)
        os.chmod(SCRATCH / "secret.key", 0o440)
        said = run("doctor", status=None, KILN_REMOTE=writer.replace("sign=" + str(SCRATCH / "nodes.key"), f"sign={SCRATCH}/secret.key")).stdout
        check("secret.key" in said and "can be read by others" not in said, "a secret that reaches us by our group", said)
    for command in (("doctor",), ("remote", "status"), ("remote", "push", "--cache")):
        said = run(*command, status=1, KILN_REMOTE="ann:hunter2@cache:6379 trust=server")
        check("hunter2" not in said.stdout + said.stderr, f"{command}: a URL that forgot what it speaks shows no password", said)
    said = run("doctor", status=1, KILN_REMOTE="redis://ann:hunter2@cache trust=server").stdout
    check("hunter2" not in said and "token-file" in said, "a secret in a URL", said)
    for command in (("doctor", "--json"), ("config",), ("config", "--json")):
        said = run(*command, status=None, KILN_REMOTE="redis://ann:hun/ter2@cache trust=server").stdout
        check("ter2" not in said and "redis://...@cache" in said, f"{command} show the setting without its secret", said)
finally:
    redis.kill()
    redis.wait()

# Without a remote nothing of it is loaded, and over Redis nothing that is for HTTP.
def loaded(remote):
    cache = SCRATCH / "i"
    shutil.rmtree(cache, ignore_errors=True)
    return "libcurl" in run(*warm, KILN_CACHE_DIR=cache, KILN_REMOTE=remote, LD_DEBUG="files").stderr


check(not loaded("") and not loaded(f"redis://127.0.0.1:{free_port()} trust=server"), "libcurl is not opened where nobody needs it")
check(loaded(f"http://127.0.0.1:{free_port()} trust=server"), "but where somebody does")

# A folder: packets go, whatever time they have; what is only named like one stays.
name = "b" * 62
for folder, text in (("ab", b"KILNPKT\n"), ("cd", b"precious")):
    (SCRATCH / "disk" / folder).mkdir(parents=True)
    (SCRATCH / "disk" / folder / name).write_bytes(text)
    os.utime(SCRATCH / "disk" / folder / name, (4e9, 4e9))
pruned = run("remote", "prune", "--older-than", "0s", "--dir", SCRATCH / "disk", "--json", KILN_REMOTE="off")
told = json.loads(pruned.stdout)
check(told["removed"] == 1 and told["foreign"] == 1 and "not Kiln's" in pruned.stderr, "prune of a folder", pruned)
check((SCRATCH / "disk" / "cd" / name).exists() and not (SCRATCH / "disk" / "ab" / name).exists(), "what is not Kiln's is left")

# Servers that hang are asked at the same time.
with socket.socket() as deaf:
    deaf.bind(("127.0.0.1", 0))
    deaf.listen(16)
    silent = " ".join(f"redis://127.0.0.1:{deaf.getsockname()[1]} trust=server timeout=1500ms namespace=n{i}" for i in range(4))
    began = time.monotonic()
    told = json.loads(run("remote", "status", "--json", status=1, KILN_REMOTE=silent).stdout)
    check(len(told) == 4 and not any(t["reachable"] for t in told), "four servers that hang", told)
    check(time.monotonic() - began < 5, "cost what one does", time.monotonic() - began)
    check(told[0]["fleet"]["asked"] == 0 and told[0]["fleet"]["answer_p50_ms"] is None, "nothing was counted of them", told[0])

# Servers that say what is wrong with them: the remedy is theirs.
class takes_nothing(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(404)

    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_error(400)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


class has_no_room(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"-ERR max number of clients reached\r\n")


for speaks, handler, remedy in (("http", takes_nothing, "add layout=bazel"), ("redis", has_no_room, "maxclients")):
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        said = run("doctor", status=1, KILN_REMOTE=f"{speaks}://127.0.0.1:{one.server_address[1]} trust=server").stdout
        check(remedy in said, f"what to do about {handler.__name__}", said)
        one.shutdown()

# A server that takes what it is sent when nobody waits for it any more.
class takes_its_time(takes_nothing):
    known = set()

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self):
        self.known.add(self.path)
        time.sleep(0.8)
        self.answer(200)

    def do_GET(self):
        if self.path not in self.known:
            return self.answer(404)
        time.sleep(0.8)
        self.answer(200, b"no packet")

    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(0.8)
        self.answer(201)


with socketserver.ThreadingTCPServer(("127.0.0.1", 0), takes_its_time) as slow:
    slow.handle_error = lambda *_: None  # nobody listens at the end
    data("warm", "k.cu", "-a", "sm_80,sm_90", KILN_CACHE_DIR=SCRATCH / "two", KILN_REMOTE="off")
    threading.Thread(target=slow.serve_forever, daemon=True).start()
    told = json.loads(run("remote", "push", "--cache", "--json", status=1, KILN_CACHE_DIR=SCRATCH / "two",
                          KILN_REMOTE=f"http://127.0.0.1:{slow.server_address[1]} trust=server timeout=1s connect-timeout=50ms").stdout)
    check(told["there_already"] == 0 and told["failed"] > 0, "what was not sent in time was not there", told)
    slow.shutdown()

# A server that asks for a pause in the middle of a push.
class is_busy_once(takes_its_time):
    puts = 0

    def do_HEAD(self):
        self.answer(404)

    def do_GET(self):
        self.answer(404)

    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        is_busy_once.puts += 1
        self.answer(503 if is_busy_once.puts == 1 else 201)


with socketserver.ThreadingTCPServer(("127.0.0.1", 0), is_busy_once) as busy:
    threading.Thread(target=busy.serve_forever, daemon=True).start()
    told = data("remote", "push", "--cache", KILN_CACHE_DIR=SCRATCH / "two",
                KILN_REMOTE=f"http://127.0.0.1:{busy.server_address[1]} trust=server timeout=5s")
    check(told["uploaded"] == 2 and told["failed"] == 0, "what it had no time for is sent once more", told)
    busy.shutdown()

# A server that is not there.
said = run("remote", "pull", *profile, status=1, KILN_CACHE_DIR=SCRATCH / "r", KILN_REMOTE=f"redis://127.0.0.1:{free_port()} trust=server").stderr
check("connect: " in said and "a server that answers" in said, "pull: of a server that is down nobody says that it has nothing", said)
pushed = run("remote", "push", "--cache", status=1, KILN_CACHE_DIR=SCRATCH / "a", KILN_REMOTE=f"redis://127.0.0.1:{free_port()} trust=server").stderr
check("not sent: connect" in pushed and "start the server" in pushed and "push 1/" not in pushed, "what cannot be sent is said once, with the remedy", pushed)
began = time.monotonic()
seen = data(*warm, KILN_CACHE_DIR=SCRATCH / "h", KILN_REMOTE=f"redis://127.0.0.1:{free_port()} trust=server")
check(seen["compiled"] == 1, "R1: no server, a compile", seen)
errors = data("cache", "stats", KILN_CACHE_DIR=SCRATCH / "h")["errors"]
check(errors.get("fleet-connect") == 1, "R1: told once, and not asked again", errors)

# A bucket is looked through, checked and emptied as a Redis is.
if shutil.which("moto_server"):
    port = free_port()
    s3 = subprocess.Popen(["python3", SOURCE / "tests/support/s3_checked.py", str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        name, secret = s3.stdout.readline().split()
        write("aws", f"aws_access_key_id = {name}\naws_secret_access_key = {secret}\n")
        place = f"s3://bucket/kiln endpoint=http://127.0.0.1:{port} credentials-file={SCRATCH}/aws keys={SCRATCH}/nodes.key.pub"
        writer = f"{place} sign={SCRATCH}/nodes.key"
        check(data("remote", "push", "x.kiln", KILN_REMOTE=writer)["uploaded"] == 1, "push into a bucket")
        checked = data("remote", "verify", KILN_REMOTE=f"{place} read-only")
        check(checked["checked"] >= 1 and not checked["bad"] and signer in checked["signed_by"], "verify of a bucket", checked)
        run("remote", "verify", status=1, KILN_REMOTE=f"{writer} namespace=another")
        check(data("remote", "prune", "--older-than", "1d", KILN_REMOTE=writer)["removed"] == 0, "nothing of a bucket is old")
        check(data("remote", "prune", "--older-than", "0s", "-n", KILN_REMOTE=place)["removed"] == checked["checked"], "prune of a bucket, dry")
        check(data("remote", "prune", "--older-than", "0s", KILN_REMOTE=place)["left"] == 0, "prune of a bucket")
        check(data("remote", "verify", KILN_REMOTE=place)["checked"] == 0, "it is empty")
    finally:
        s3.kill()
        s3.wait()
