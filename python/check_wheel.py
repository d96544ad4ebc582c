# SPDX-License-Identifier: Apache-2.0
"""check_wheel.py WHEEL: prints what is large in it and what it needs of the system, and ends with 1 where something is wrong: its size, its tag, a
library that not every machine has, a file twice, a file that is missing.
check_wheel.py --as-used WHEEL FOLDER: writes it for auditwheel, with what `kiln run` fills in filled in."""

from __future__ import annotations

import collections
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

MOST_BYTES = 25 * 1000 * 1000
# What every manylinux machine has, and the one that is inside.
ALLOWED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2",
           "ld-linux-aarch64.so.1", "libkiln.so.0"}
PARTS = ["kiln/py.typed", "kiln/__init__.pyi", "kiln/_kiln.pyi", "kiln/lib/libkiln.so.0", "kiln/libexec/kiln/kiln-worker", "kiln/bin/kiln"]
# The bridge of `kiln run` is a form: room for the name of a library, which is one of ours, and for the folder of another.
ROOM = re.compile(rb"KILN_(?:NEEDED_N+|RUNPATH_R+)\0")


def as_used(data: bytes) -> bytes:
    """A file as the loader gets to see it."""
    if data[:4] != b"\x7fELF":
        return data
    return ROOM.sub(lambda room: (b"libc.so.6" if b"NEEDED" in room[0] else b"$ORIGIN").ljust(len(room[0]), b"\0"), data)


def write_as_used(wheel: pathlib.Path, folder: pathlib.Path) -> None:
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(folder / wheel.name, "w") as out:
        for info in whole.infolist():
            out.writestr(info, as_used(whole.read(info)))


def needed_by(path: pathlib.Path) -> set[str]:
    text = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return {line.split("[")[1].rstrip("]") for line in text.splitlines() if "(NEEDED)" in line}


def wrong_with_its_files(z: zipfile.ZipFile) -> list[str]:
    by_content = collections.defaultdict(list)
    needed = set()
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / "file"
        for info in z.infolist():
            if info.file_size == 0:
                continue
            data = z.read(info)
            by_content[hashlib.sha256(data).digest()].append(info.filename)
            if data[:4] == b"\x7fELF":
                file.write_bytes(as_used(data))
                needed |= needed_by(file)
            if info.file_size > 500_000:
                print(f"  {info.compress_size / 1e6:6.2f} MB  {info.filename}")
    print("  needs:", ", ".join(sorted(needed)))
    return [f"needs {name}" for name in sorted(needed - ALLOWED)] + [
        "twice: " + ", ".join(names) for names in by_content.values() if len(names) > 1 and not names[0].endswith(".py")]


def wrong_with_its_tag(wheel: pathlib.Path, names: list[str]) -> list[str]:
    out = []
    *_, interface, abi, platform = wheel.stem.split("-")
    if shutil.which("auditwheel") and not platform.startswith(("manylinux", "musllinux")):
        out.append(f"auditwheel finds it fit for {platform} alone")
    if sys.version_info >= (3, 12) and (interface, abi) != ("cp312", "abi3"):
        out.append(f"its tag is {interface}-{abi}, not cp312-abi3")
    if not any(n.startswith("kiln/_kiln.") and n.endswith(".abi3.so" if abi == "abi3" else ".so") for n in names):
        out.append("no extension module of that tag is in it")
    return out


def wrong_by_abi3audit(wheel: pathlib.Path) -> list[str]:
    if not shutil.which("abi3audit"):
        return []
    done = subprocess.run(["abi3audit", "--strict", wheel], capture_output=True, text=True)
    said = (done.stdout + done.stderr).strip().splitlines()
    print("  abi3audit:", said[-1] if said else "nothing to say")
    return [] if done.returncode == 0 else ["abi3audit refuses it"]


def check(wheel: pathlib.Path) -> list[str]:
    size = wheel.stat().st_size
    print(f"{wheel}: {size / 1e6:.1f} MB")
    wrong = [f"larger than {MOST_BYTES / 1e6:.0f} MB"] if size > MOST_BYTES else []
    with zipfile.ZipFile(wheel) as z:
        wrong += wrong_with_its_files(z) + wrong_with_its_tag(wheel, z.namelist())
        wrong += [f"{part} is not in it" for part in PARTS if part not in z.namelist()]
    return wrong + wrong_by_abi3audit(wheel)


def main() -> None:
    if sys.argv[1] == "--as-used":
        return write_as_used(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    wrong = check(pathlib.Path(sys.argv[1]))
    for what in wrong:
        print("  wrong:", what)
    sys.exit(bool(wrong))


main()
