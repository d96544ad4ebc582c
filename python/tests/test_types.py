# SPDX-License-Identifier: Apache-2.0
"""The stub of the module is that of this module; mypy accepts the package and what uses it."""

import pathlib
import subprocess
import sys

import kiln
import pytest

PACKAGE = pathlib.Path(kiln.__file__).parent
ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_stub_is_of_this_module(tmp_path):
    pytest.importorskip("nanobind")
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-m", "kiln._kiln", "-O", tmp_path], check=True, capture_output=True)
    made, kept = (tmp_path / "_kiln.pyi").read_text(), (PACKAGE / "_kiln.pyi").read_text()
    assert kept.partition("\n")[2] == made, "python -m nanobind.stubgen -m kiln._kiln makes it anew"


@pytest.mark.parametrize("what", ["package", "examples"])
def test_mypy(what, tmp_path):
    pytest.importorskip("mypy")
    if what == "package":
        files, folder = ["kiln"], ROOT / "python"
    else:
        files, folder = [*map(str, ROOT.glob("examples/python*/**/*.py"))], ROOT / "python"
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--cache-dir", tmp_path, *files],
                          cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
