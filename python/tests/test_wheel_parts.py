# SPDX-License-Identifier: Apache-2.0
"""A small wheel taken apart: what goes where, under which tag, and that the lists of files are right."""

import base64
import hashlib
import pathlib
import subprocess
import sys
import zipfile
from typing import Any

import pytest

PARTS = pathlib.Path(__file__).resolve().parents[1] / "wheel_parts.py"
INFO = "kiln_gpu-1.2.3.dist-info"
FILES = {
    "kiln/__init__.py": b"",
    "kiln/lib/kiln/prims-sm_90.kiln": b"templates",
    "kiln/lib/kiln/prims-sm_90-cuda12.kiln": b"older ones",
    "kiln/lib/kiln/spatial.kiln": b"shipped",
    f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: cp312-abi3-linux_x86_64\n",
    f"{INFO}/RECORD": b"of before\n",
}


@pytest.fixture
def take_apart(tmp_path: pathlib.Path) -> Any:
    if not PARTS.exists():
        pytest.skip("wheel_parts.py is not here")
    wheel = tmp_path / "kiln_gpu-1.2.3-cp312-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as z:
        for name, data in FILES.items():
            z.writestr(name, data)

    def run(*platform: Any) -> Any:
        done = subprocess.run([sys.executable, PARTS, wheel, tmp_path / "dist", *platform], capture_output=True, text=True, check=True)
        return [pathlib.Path(line) for line in done.stdout.splitlines()]

    return run


def content(wheel: Any) -> Any:
    with zipfile.ZipFile(wheel) as z:
        return {name: z.read(name) for name in z.namelist()}


def test_templates_go_into_a_wheel_of_their_own(take_apart: Any) -> None:
    main, more = take_apart()
    assert main.name == "kiln_gpu-1.2.3-cp312-abi3-linux_x86_64.whl" and more.name == "kiln_gpu_sm90-1.2.3-py3-none-any.whl"
    assert {n for n in content(main) if n.endswith(".kiln")} == {"kiln/lib/kiln/spatial.kiln"}
    assert {n for n in content(more) if n.endswith(".kiln")} == {"kiln/lib/kiln/prims-sm_90.kiln", "kiln/lib/kiln/prims-sm_90-cuda12.kiln"}


def test_the_platform_that_was_found_out_is_in_the_name_and_inside(take_apart: Any) -> None:
    main, more = take_apart("manylinux_2_28_x86_64")
    assert main.name == "kiln_gpu-1.2.3-cp312-abi3-manylinux_2_28_x86_64.whl"
    assert content(main)[f"{INFO}/WHEEL"].splitlines()[-1] == b"Tag: cp312-abi3-manylinux_2_28_x86_64"
    assert more.name.endswith("-py3-none-any.whl")


def test_lists_of_files_are_right(take_apart: Any) -> None:
    for wheel in take_apart("manylinux_2_28_x86_64"):
        held = content(wheel)
        record = next(name for name in held if name.endswith("/RECORD"))
        rows = {row.split(",")[0]: row.split(",")[1:] for row in held.pop(record).decode().splitlines()}
        assert rows.pop(record) == ["", ""]
        digest = {name: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode() for name, data in held.items()}
        assert rows == {name: [f"sha256={digest[name]}", str(len(data))] for name, data in held.items()}
