# SPDX-License-Identifier: Apache-2.0
"""One's own kernels: text, compiled when it is asked for, or found where it was compiled before."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _kiln
from ._errors import InvalidArgument
from ._parameters import Types, read
from ._told import plainly
from ._types import several, texts

if TYPE_CHECKING:
    from ._protocols import StreamLike

Artifact = _kiln.Artifact
Kernel = _kiln.Kernel


class Future:
    """An answer that will come. Can be awaited."""

    def __init__(self, answer: _kiln.PendingUnit) -> None:
        self._answer = answer

    def done(self) -> bool:
        return self._answer.done()

    @plainly
    def result(self, timeout: float | None = None) -> _kiln.ReadyUnit:
        return self._answer.result(timeout)

    def __await__(self) -> Any:
        import asyncio  # as large as all of this package: who awaits has it

        async def wait() -> _kiln.ReadyUnit:
            pause = 0.0005
            while not self.done():
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, 0.02)
            return self.result(0)

        return wait().__await__()


class Unit:
    """A piece of CUDA C++ with its kernels. Making one costs nothing and reads nothing but the file it is given."""

    __slots__ = ("_made", "_recipe", "__weakref__")

    def __init__(self, name: str, source: str | None = None, *, path: str | os.PathLike[str] | None = None,
                 kernels: Sequence[str] = (), options: Sequence[str] = (), headers: Mapping[str, str] | None = None,
                 include_dirs: Sequence[str | os.PathLike[str]] = (), exports: Sequence[str] = ()) -> None:
        if not isinstance(name, str) or not isinstance(source, (str, type(None))):
            raise TypeError(f"unit: its name is a {type(name).__name__}, its source a {type(source).__name__}; both must be a str")
        if (source is None) == (path is None):
            raise InvalidArgument(f"unit '{name}': give its source or the path of a file, one of the two")
        directory = ""
        if path is not None:
            with open(path, encoding="utf-8") as file:
                source = file.read()
            directory = os.path.dirname(os.path.abspath(os.fspath(path)))
        assert source is not None
        self._recipe = (name, source, tuple(texts("kernels", kernels)), tuple(texts("options", options)), tuple(sorted((headers or {}).items())),
                        tuple(os.path.abspath(os.fspath(d)) for d in several("include_dirs", include_dirs)), directory, tuple(texts("exports", exports)))
        self._made: _kiln.UnitText | None = None

    @property
    def name(self) -> str:
        return self._recipe[0]

    @property
    def source(self) -> str:
        return self._recipe[1]

    def _text(self) -> _kiln.UnitText:
        if self._made is None:
            name, source, kernels, options, headers, include_dirs, directory, exports = self._recipe
            self._made = _kiln.UnitText(name, source, list(kernels), list(options), list(headers), list(include_dirs), directory,
                                        list(exports))
        return self._made

    @plainly
    def artifact(self, arch: str, kind: str = "cubin", *, timeout: float | None = None) -> Artifact:
        """For any architecture, on a machine without a GPU too: `unit.artifact("sm_90").image`."""
        return _kiln.artifact(self._text(), arch, kind, timeout)[0]

    @plainly
    def get(self, device: int = 0, *, timeout: float | None = None) -> _kiln.ReadyUnit:
        """Found or compiled, and loaded."""
        return _kiln.get(self._text(), device, timeout)

    @plainly
    def get_async(self, device: int = 0) -> Future:
        """Returns at once."""
        return Future(_kiln.get_async(self._text(), device))

    @plainly
    def kernel(self, name: str, device: int = 0, *, types: Types | None = None, timeout: float | None = None) -> Kernel:
        """One of its kernels, ready to launch: `k(grid, block, (n, 2.0, x, y))`.

        `types`: what its parameters are, "int, float, const float*, float*" or as they stand in the kernel. Then a number becomes what the parameter is, or is
        refused: without it, an int for a `float` goes as its bits, and before CUDA 12.4 nobody knows how large a parameter is.
        """
        said = None if types is None else read(types)
        made = self.get(device, timeout=timeout).kernel(name, said)
        made.recipe = (_kernel_again, (self, name, device, types if types is None or isinstance(types, str) else tuple(types)))
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unit) and self._recipe == other._recipe

    def __hash__(self) -> int:
        return hash(self._recipe)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unit_again, self._recipe

    def __repr__(self) -> str:
        return f"<kiln.Unit '{self.name}', {len(self.source)} characters>"


def _unit_again(*recipe: Any) -> Unit:
    out = Unit.__new__(Unit)
    out._recipe = recipe
    out._made = None
    return out


def _kernel_again(unit: Unit, name: str, device: int, types: Types | None) -> Kernel:
    return unit.kernel(name, device, types=types)


def _artifact_again(data: bytes) -> Artifact:
    return Artifact.from_bytes(data)


class RawModule:
    """CuPy's RawModule, answered by Kiln: the same signature for what both can do."""

    def __init__(self, *, code: str | None = None, path: str | None = None, options: Sequence[str] = (), backend: str = "nvrtc",
                 translate_cucomplex: bool = False, enable_cooperative_groups: bool = False,
                 name_expressions: Sequence[str] | None = None, jitify: bool = False) -> None:
        if backend != "nvrtc" or translate_cucomplex or jitify:
            raise InvalidArgument("kiln.RawModule compiles with NVRTC; backend, translate_cucomplex and jitify cannot be chosen")
        self._cooperative = enable_cooperative_groups
        self._unit = Unit("RawModule", code, path=path, options=options, kernels=name_expressions or ())

    def get_function(self, name: str) -> Any:
        kernel = self._unit.kernel(name)
        cooperative = self._cooperative

        def launch(grid: Any, block: Any, args: tuple[Any, ...], *, shared_mem: int = 0, stream: StreamLike | None = None) -> None:
            kernel(grid, block, args, shared=shared_mem, stream=stream, cooperative=cooperative)

        return launch
