# SPDX-License-Identifier: Apache-2.0
"""wheel_parts.py WHEEL FOLDER [PLATFORM]: what new operators are linked with is as large as all the rest, and of use on one architecture. It
goes into a wheel of its own for each, kiln_gpu_sm90, which puts its file beside the others; the rest is written again without, for PLATFORM
(manylinux_2_28_x86_64) where that was found out, else as it is. Prints what was written."""

from __future__ import annotations

import base64
import hashlib
import pathlib
import re
import sys
import zipfile

TEMPLATES = re.compile(r"kiln/lib/kiln/prims-sm_(\d+)(?:-cuda12)?\.kiln")

METADATA = """Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: What kiln-gpu links new operators with on sm_{arch}: their first call takes a fraction of a second instead of two
License: Apache-2.0
Requires-Dist: kiln-gpu == {version}
"""


def write(path: pathlib.Path, info: str, files: dict[str, tuple[zipfile.ZipInfo | None, bytes]]) -> None:
    """A wheel of these files, with their list."""
    path.unlink(missing_ok=True)
    rows = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, (about, data) in files.items():
            entry = about or zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = entry.external_attr or 0o644 << 16
            out.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}")
        out.writestr(f"{info}/RECORD", "\n".join([*rows, f"{info}/RECORD,,", ""]))


def retagged(about: bytes, platform: str) -> bytes:
    """A wheel's own words about itself, with another platform in each tag."""
    return re.sub(rb"(?m)^(Tag: \S+-)[^-\s]+$", rb"\g<1>" + platform.encode(), about)


def main() -> None:
    wheel, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    *front, platform = wheel.stem.split("-")
    platform = sys.argv[3] if len(sys.argv) > 3 else platform
    version = front[1]
    with zipfile.ZipFile(wheel) as z:
        files = {about.filename: (about, z.read(about)) for about in z.infolist() if not about.is_dir()}
    apart: dict[str, dict[str, tuple[zipfile.ZipInfo | None, bytes]]] = {}
    for name in list(files):
        if found := TEMPLATES.fullmatch(name):
            apart.setdefault(found[1], {})[name] = (None, files.pop(name)[1])
    info = f"kiln_gpu-{version}.dist-info"
    about, words = files[f"{info}/WHEEL"]
    files[f"{info}/WHEEL"] = (about, retagged(words, platform))
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / ("-".join([*front, platform]) + ".whl")]
    write(written[0], info, {name: file for name, file in files.items() if not name.endswith(".dist-info/RECORD")})
    for arch, held in apart.items():
        info = f"kiln_gpu_sm{arch}-{version}.dist-info"
        held[f"{info}/METADATA"] = (None, METADATA.format(name=f"kiln-gpu-sm{arch}", version=version, arch=arch).encode())
        held[f"{info}/WHEEL"] = (None, b"Wheel-Version: 1.0\nGenerator: kiln\nRoot-Is-Purelib: false\nTag: py3-none-any\n")
        written.append(folder / f"kiln_gpu_sm{arch}-{version}-py3-none-any.whl")
        write(written[-1], info, held)
    print(*written, sep="\n")


main()
