# SPDX-License-Identifier: Apache-2.0
"""Whole bundles to and from a registry: the same bytes, signed by whom they must be, or no file at all."""

import os
import shutil
import socket
import subprocess
import sys
import time

from _kiln import KERNEL, SCRATCH, check, data, run, write

registry = shutil.which("docker-registry")
if registry is None:
    print("skipped: docker-registry is not here")
    sys.exit(77)

with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
write("registry.yml", f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {SCRATCH}/kept}}}}\nhttp: {{addr: '127.0.0.1:{port}'}}\n")
server = subprocess.Popen([registry, "serve", str(SCRATCH / "registry.yml")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    end = time.monotonic() + 20
    while time.monotonic() < end and socket.socket().connect_ex(("127.0.0.1", port)) != 0:
        time.sleep(0.01)
    write("k.cu", KERNEL.replace("VALUE", "1"))
    run("key", "release.key")
    run("key", "others.key")
    run("build", "k.cu", "-a", "sm_90", "-o", "app.kiln", "--sign", "release.key")
    place = f"oci://127.0.0.1:{port}/team/app:1.0"
    pushed = data("remote", "push", "app.kiln", place)
    check(not pushed["there_already"] and pushed["bytes"] == os.path.getsize(SCRATCH / "app.kiln"), "pushed", pushed)
    check(data("remote", "push", "app.kiln", place)["there_already"], "its bytes are sent once")
    pulled = data("remote", "pull", place, "-o", "back.kiln", "--key", "release.key.pub")
    check(pulled["digest"] == pushed["digest"] and pulled["signature"] == "good", "pulled", pulled)
    check((SCRATCH / "back.kiln").read_bytes() == (SCRATCH / "app.kiln").read_bytes(), "the same bytes")
    check(pushed["for_ever"].startswith(place.rsplit(":", 1)[0] + "@sha256:"), "the name that no tag takes away", pushed)
    check(data("remote", "pull", pushed["for_ever"], "-o", "same.kiln")["digest"] == pushed["digest"], "and it is one to pull by")
    said = run("remote", "pull", place, "-o", "no.kiln", "--key", "others.key.pub", status=1).stderr
    check(not (SCRATCH / "no.kiln").exists(), "signed by another: no file", said)
    said = run("remote", "pull", place.replace("1.0", "2.0"), "-o", "no.kiln", status=1).stderr
    check("nothing of that name" in said and not (SCRATCH / "no.kiln").exists(), "nothing of that name", said)
    said = run("remote", "pull", place, status=2).stderr
    check("-o FILE" in said, "where to is to be said", said)
    run("remote", "push", "k.cu", place, status=1)
    said = run("remote", "push", "app.kiln", place.removeprefix("oci://"), status=1).stderr
    check("oci://host/repository:tag" in said, "what a place looks like", said)
finally:
    server.kill()
    server.wait()
