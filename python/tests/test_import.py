# SPDX-License-Identifier: Apache-2.0
"""Importing costs little and touches nothing."""

import os
import pathlib
import re

import pytest
from conftest import Run, not_under_a_sanitizer


def test_nothing_of_cuda_is_mapped(python: Run) -> None:
    seen = python("import kiln, sys; print(open('/proc/self/maps').read()); print('numpy' in sys.modules, 'torch' in sys.modules)").stdout
    assert "libkiln" in seen
    assert not re.search(r"libcuda|libnvrtc|nvJitLink|libnvjitlink", seen)
    assert seen.endswith("False False\n")


def test_no_thread_and_no_file(python: Run, tmp_path: pathlib.Path) -> None:
    demand = "" if os.path.exists("/dev/nvidiactl") else ".demand()"  # with a GPU it would begin
    done = python(f"import kiln, os; u = kiln.Unit('k', 'x'); kiln.requires('me', [u]){demand}; print(len(os.listdir('/proc/self/task')))")
    assert done.stdout == "1\n"
    assert not (tmp_path / "cache").exists()


def test_importing_takes_milliseconds(python: Run) -> None:
    not_under_a_sanitizer()
    text = "import time; t = time.process_time(); import kiln; print(time.process_time() - t)"
    python(text)  # bytecode
    assert min(float(python(text).stdout) for _ in range(5)) < 0.04  # of the processor; 20 ms is the goal, and machines differ


def test_the_module_exports_nothing_but_its_beginning() -> None:
    """What it exported of the C++ library was taken by torch's, where torch came second."""
    import shutil
    import subprocess

    import kiln._kiln
    import pytest

    if not shutil.which("nm"):
        pytest.skip("nm is not here")
    told = subprocess.run(["nm", "-D", "--defined-only", kiln._kiln.__file__], capture_output=True, text=True, check=True).stdout
    assert {line.split()[-1] for line in told.splitlines()} == {"PyInit__kiln"}


def test_torch_may_come_second(python: Run) -> None:
    python("import importlib.util, kiln\nif importlib.util.find_spec('torch'): import torch")


def test_every_name_that_is_listed_is_there(python: Run) -> None:
    python("import kiln\nfor n in kiln.__all__:\n    if n != 'torch': getattr(kiln, n)\nassert set(kiln.__all__) <= set(dir(kiln))")


def test_type_checkers_are_told_the_same_names() -> None:
    import kiln

    told = (pathlib.Path(kiln.__file__).parent / "__init__.pyi").read_text()
    assert {n for n, again in re.findall(r"(\w+) as (\w+)", told) if n == again} == {*kiln.__all__, "torch"}


def test_a_compiler_beside_the_package_is_found(tmp_path: pathlib.Path) -> None:
    """NVRTC from pip, in a venv that was not activated: its folder is one of those that are searched."""
    import subprocess
    import sys
    import venv

    import kiln

    venv.create(tmp_path / "env", with_pip=False)
    site = next((tmp_path / "env").glob("lib/python3*/site-packages"))
    (site / "nvidia/cuda_nvrtc/lib").mkdir(parents=True)
    (site / "nvidia/cuda_nvrtc/lib/libnvrtc.so.99").write_bytes(b"no library")
    environment = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"}
    environment["PYTHONPATH"] = str(pathlib.Path(kiln.__file__).parent.parent)
    seen = subprocess.run([tmp_path / "env/bin/python", "-c", "import kiln, os; print(os.environ['VIRTUAL_ENV'])"], env=environment, capture_output=True, text=True)
    assert seen.stdout.strip() == str(tmp_path / "env"), seen.stderr


def test_an_environment_of_conda_is_one_too(python: Run, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    (tmp_path / "conda-meta").mkdir()
    ask = f"import sys\nsys.prefix = sys.base_prefix = {str(tmp_path)!r}\nimport kiln, os\nprint(os.environ.get('CONDA_PREFIX'))"
    assert python(ask).stdout == f"{tmp_path}\n"
    assert python(ask, CONDA_PREFIX="/another").stdout == "/another\n"
    (tmp_path / "conda-meta").rmdir()
    assert python(ask, CONDA_PREFIX="").stdout == "\n"


def test_everything_can_be_looked_at(python: Run) -> None:
    """With torch installed or not."""
    python("import inspect, sys\nsys.modules['torch'] = None\nfrom kiln import *\nimport kiln\nassert not hasattr(kiln, 'torch')\ninspect.getmembers(kiln)\nassert callable(inclusive_scan)")


def test_none_takes_a_setting_away(python: Run) -> None:
    python("import kiln, os\nos.environ['KILN_CACHE_DIR'] = '/x'\nkiln.configure(cache_dir=None)\nassert 'KILN_CACHE_DIR' not in os.environ")


FIRST = """import ctypes, functools, importlib, re, sys, typing, kiln  # as in every process that has arrays
class Array:
    dtype, shape, device = "int32", (100,), None
    def __init__(self):
        self.memory = ctypes.create_string_buffer(400)
        self.__cuda_array_interface__ = {"shape": (100,), "typestr": "<i4", "data": (ctypes.addressof(self.memory), False), "version": 3, "stream": 1}
x, y, before = Array(), Array(), set(sys.modules)
kiln.inclusive_scan(x, out=y)
print(sorted(set(sys.modules) - before))
"""


def test_a_first_call_reads_its_own_modules_and_no_others(fake_driver: str, python: Run) -> None:
    """In the next process, when all is compiled, what Python reads is most of what a first call waits for. The driver without a GPU has no
    memory pools, so that there is something to log: nobody has asked for it."""
    assert python(fake_driver + FIRST).stdout == "['kiln._arrays', 'kiln._prims', 'kiln._types']\n"


def test_what_was_not_heard_is_logged_when_somebody_listens(fake_driver: str, python: Run) -> None:
    late = "import logging; logging.basicConfig(level=logging.INFO)\nkiln.make_reduce('int32')\n"
    assert "memory-pool: this driver has no memory pools" in python(fake_driver + FIRST + late).stderr


SUB = """import sys, kiln
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
if hasattr(interpreters, "new_config"): made = interpreters.create("legacy")
else: made = interpreters.create(isolated=False)
run = getattr(interpreters, "run_string")
run(made, "try: import kiln\\nexcept ImportError as why: print('refused:', why, flush=True)\\nelse: print('imported', flush=True)")
interpreters.destroy(made)
print(kiln.Unit('k', 'extern "C" __global__ void k() {}').artifact('sm_90').kernels)
"""


def test_a_subinterpreter_is_refused_and_leaves_the_main_one_alone(python: Run) -> None:
    done = python(SUB, check=False)
    assert done.returncode == 0, done.stderr
    assert "refused: kiln can be used in a process's main interpreter only" in done.stdout and done.stdout.endswith("['k']\n")
