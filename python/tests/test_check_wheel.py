# SPDX-License-Identifier: Apache-2.0
"""Small wheels with one thing wrong: the check of the real one says so."""

import pathlib
import shutil
import subprocess
import sys
import zipfile
from typing import Any

import pytest

CHECK = pathlib.Path(__file__).resolve().parents[1] / "check_wheel.py"
FORM = "KILN_NEEDED_" + "N" * 88


@pytest.fixture
def library(tmp_path: pathlib.Path) -> Any:
    """A library that needs those of these names."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not shutil.which("readelf"):
        pytest.skip("no C compiler here")
    (tmp_path / "empty.c").write_text("")

    def make(*needed: Any) -> Any:
        parts = []
        for number, name in enumerate(needed):
            parts.append(tmp_path / f"part{number}.so")
            subprocess.run([compiler, "-shared", "-nostdlib", "-o", parts[-1], tmp_path / "empty.c", f"-Wl,-soname,{name}"], check=True)
        subprocess.run([compiler, "-shared", "-nostdlib", "-Wl,--no-as-needed", "-o", tmp_path / "made.so", tmp_path / "empty.c", *parts], check=True)
        return (tmp_path / "made.so").read_bytes()

    return make


@pytest.fixture
def said(tmp_path: pathlib.Path) -> Any:
    if not CHECK.exists():
        pytest.skip("check_wheel.py is not here")

    def run(files: Any) -> Any:
        wheel = tmp_path / "kiln_gpu-1.2.3-cp312-abi3-manylinux_2_28_x86_64.whl"
        whole = {name: name.encode() for name in ("kiln/py.typed", "kiln/__init__.pyi", "kiln/_kiln.pyi", "kiln/_kiln.abi3.so", "kiln/lib/libkiln.so.0",
                                                  "kiln/libexec/kiln/kiln-worker", "kiln/bin/kiln")}
        with zipfile.ZipFile(wheel, "w") as z:
            for name, data in {**whole, **files}.items():
                if data is not None:
                    z.writestr(name, data)
        # Without the tools that would look into what is no library.
        done = subprocess.run([sys.executable, CHECK, wheel], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
        wrong = [line.split("wrong: ")[1] for line in done.stdout.splitlines() if "wrong:" in line]
        assert done.returncode == bool(wrong), done.stderr
        return wrong

    return run


def test_a_wheel_with_all_its_parts_is_right(said: Any) -> None:
    assert said({}) == [] or sys.version_info < (3, 12)


def test_a_part_that_is_missing(said: Any) -> None:
    assert "kiln/bin/kiln is not in it" in said({"kiln/bin/kiln": None})


def test_a_file_twice(said: Any) -> None:
    assert "twice: kiln/a, kiln/b" in said({"kiln/a": b"same", "kiln/b": b"same"})


def test_a_library_that_not_every_machine_has(said: Any, library: Any) -> None:
    assert "needs libfoo.so.1" in said({"kiln/lib/more.so": library("libc.so.6", "libfoo.so.1")})


def test_a_form_needs_what_is_written_into_it(said: Any, library: Any) -> None:
    """It is looked at as all others are, whatever its name."""
    form = library(FORM)
    assert not any(FORM in what for what in said({"kiln/lib/kiln/intercept/bridge.so": form}))
    assert "needs libfoo.so.1" in said({"kiln/lib/kiln/intercept/bridge.so": library(FORM, "libfoo.so.1")})
