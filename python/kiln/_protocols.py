# SPDX-License-Identifier: Apache-2.0
"""What arrays and streams of other libraries are like, for who writes types. Nothing needs to be derived from these."""

from __future__ import annotations

from typing import Any, Protocol, Union, runtime_checkable


@runtime_checkable
class DeviceArray(Protocol):
    """An array that others take without a copy, wherever it lies: of torch, CuPy, JAX, NumPy, and kiln.Array."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...


@runtime_checkable
class Stream(Protocol):
    """A stream that says which one it is: of cuda.core, and of newer CuPy and torch."""

    def __cuda_stream__(self) -> tuple[int, int]: ...


class _OfTorch(Protocol):
    @property
    def cuda_stream(self) -> int: ...


class _OfCuPy(Protocol):
    @property
    def ptr(self) -> int: ...


class _OfOthers(Protocol):
    @property
    def handle(self) -> int: ...


StreamLike = Union[int, Stream, _OfTorch, _OfCuPy, _OfOthers]
