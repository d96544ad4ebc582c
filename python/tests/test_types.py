# SPDX-License-Identifier: Apache-2.0
"""The stubs are of what there is; mypy accepts the package and what uses it."""

import importlib.util
import os
import pathlib
import subprocess
import sys
from typing import Any

import kiln
import pytest

PACKAGE = pathlib.Path(kiln.__file__).parent
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Any:
    """A folder with the package alone: mypy refuses to search all of site-packages, where it lies when it is installed."""
    (tmp_path / "place").mkdir()
    (tmp_path / "place/kiln").symlink_to(PACKAGE)
    return tmp_path / "place"


@pytest.fixture
def settings() -> Any:
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("pyproject.toml is not here")
    return ROOT / "pyproject.toml"


def test_the_stubs_are_of_what_they_describe(tmp_path: pathlib.Path, place: pathlib.Path, settings: pathlib.Path) -> None:
    """What type checkers are told is what there is."""
    pytest.importorskip("mypy")
    # The module's stub is made from it, by those who know its functions; what functools keeps has another signature than it says; the names of the
    # package are compared by test_import.py.
    known = tmp_path / "known"
    known.write_text("kiln\\.torch.*\nkiln\\._kiln.*\nkiln\\._host\\._why_no_gpu\nkiln\\.__all__\n")
    if importlib.util.find_spec("torch") is None:
        (tmp_path / "fake").mkdir()
        (tmp_path / "fake/torch.py").write_text("import sys, unittest.mock\nsys.modules[__name__] = it = unittest.mock.MagicMock()\nit.autograd.Function = object\n")
    done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "kiln", "--ignore-unused-allowlist", "--allowlist", known, "--mypy-config-file", settings],
                          cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "MYPYPATH": str(place), "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(tmp_path / "fake")])})
    assert done.returncode == 0, done.stdout + done.stderr


USE = """import kiln
class Tensor: ...
def f(x: Tensor) -> Tensor:
    scan = kiln.make_inclusive_scan("int32", lambda a, b: a + b)
    scan(x, out=kiln.exclusive_scan(x))
    kept, count = kiln.select(x, "a > 0", stream=7)
    places: int = kiln.lower_bound(x, x)  # of another type than x: whoever knows it says so
    halves: int = kiln.transform(x, "a", to="int32")
    own: kiln.DeviceArray = kiln.Array.empty([3], "int32")
    class Queue:
        def __cuda_stream__(self) -> tuple[int, int]: return 0, 7
    kiln.make_reduce("int32", timeout=0.5)(x, stream=Queue())
    kiln.reduce(x, stream=Queue(), timeout=1)
    return kiln.gather(kiln.transform(kept, "a + 1"), count)
"""


def test_arrays_of_a_library_come_out_of_what_they_go_into(tmp_path: pathlib.Path, place: pathlib.Path) -> None:
    pytest.importorskip("mypy")
    installed = "site-packages" in PACKAGE.parts  # then py.typed is what it is found by
    search = {} if installed else {"MYPYPATH": str(place)}
    # Of what is installed mypy says nothing, however strict; of what lies elsewhere newer ones do.
    (tmp_path / "settings").write_text("[mypy]\n" if installed else "[mypy-kiln.*]\nignore_errors = True\n")
    for text, status in ((USE, 0), (USE.replace("-> Tensor", "-> int"), 1), (USE.replace("stream=7", "strem=7"), 1), (USE.replace("stream=7", "stream='7'"), 1)):
        (tmp_path / "use.py").write_text(text)
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file", tmp_path / "settings", "--cache-dir", tmp_path / "c", "use.py"], cwd=tmp_path,
                              env={**os.environ, **search}, capture_output=True, text=True)
        assert done.returncode == status, done.stdout + done.stderr


@pytest.mark.parametrize("what", ["package", "examples", "tests"])
def test_mypy(what: Any, tmp_path: pathlib.Path, place: pathlib.Path, settings: pathlib.Path) -> None:
    pytest.importorskip("mypy")
    files = {"package": ["kiln"], "examples": [*map(str, ROOT.glob("examples/python*/**/*.py"))], "tests": [*map(str, pathlib.Path(__file__).parent.glob("*.py"))]}[what]
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", settings, "--cache-dir", tmp_path, *files],
                          cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
