# SPDX-License-Identifier: Apache-2.0
"""Every test gets a cache of its own; what needs a GPU skips itself where there is none."""

import ctypes.util
import os
import pathlib
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    import kiln


class Run(Protocol):
    """A program in an interpreter of its own."""

    def __call__(self, text: str, *arguments: str, check: bool = True, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["KILN_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def gpu() -> dict[str, Any]:
    import kiln

    try:
        return kiln.devices()[0]
    except kiln.NoDevice as why:
        pytest.skip(f"no GPU: {str(why)[:60]}")


@pytest.fixture
def python(tmp_path: pathlib.Path) -> Run:
    """Runs a program in a fresh interpreter: python("print(1)") -> CompletedProcess."""

    def run(text: str, *arguments: str, check: bool = True, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([sys.executable, "-c", text, *arguments], capture_output=True, text=True, timeout=timeout,
                              env={**os.environ, "KILN_CACHE_DIR": str(tmp_path / "cache"), **environment}, cwd=tmp_path)
        if check:
            assert done.returncode == 0, done.stderr
        return done

    return run


def not_under_a_sanitizer() -> None:
    """Before what memory and time mean something else there."""
    if "san.so" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("not under a sanitizer")


def made_library(source: str, to: pathlib.Path, *options: str) -> str:
    """Of a C file beside this one."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip(f"no C compiler for {source}")
    subprocess.run([compiler, "-shared", "-fPIC", "-w", *options, "-o", to, pathlib.Path(__file__).with_name(source)], check=True)
    return str(to)


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The first line of a program that has GPUs which do nothing."""
    library = made_library("fake_cuda.c", tmp_path_factory.mktemp("fake") / "libcuda.so.1", "-Wl,-soname,libcuda.so.1")
    # In this process alone: the compiler's processes would take it for a real one.
    return f"import ctypes; ctypes.CDLL({library!r}, mode=ctypes.RTLD_GLOBAL)\n"


@pytest.fixture(scope="session")
def no_gpu(fake_driver: str) -> str:
    """The first line of a program without a GPU, wherever it runs: where memory is short, NVIDIA's driver ends it by a signal."""
    return "" if ctypes.util.find_library("cuda") is None else "import os; os.environ['KILN_FAKE_CUDA_NONE'] = '1'; " + fake_driver


@pytest.fixture(scope="session")
def no_memory(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library to be preloaded, which lets memory run out. It brings the C++ library: threads then begin with what an exception needs."""
    not_under_a_sanitizer()
    return made_library("no_memory.c", tmp_path_factory.mktemp("no_memory") / "no_memory.so", "-O1", "-Wl,--no-as-needed", "-l:libstdc++.so.6")


SAXPY = r"""extern "C" __global__ void saxpy(int n, float a, const float* x, float* y)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] += a * x[i]; }"""


@pytest.fixture
def saxpy() -> "kiln.Unit":
    import kiln

    return kiln.Unit("saxpy", SAXPY)
