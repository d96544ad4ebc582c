# SPDX-License-Identifier: Apache-2.0
"""What each array library is asked for: a new array like another, its type, its device."""

from __future__ import annotations

from typing import Any, Callable

from ._errors import InvalidArgument
from ._types import Struct, type_name


def _library(x: Any) -> str:
    return type(x).__module__.partition(".")[0]


def type_of(x: Any) -> str | Struct:
    found = getattr(x, "dtype", None)
    if found is None:
        raise TypeError(f"{type(x).__name__} is not an array: it has no dtype")
    return type_name(found)


def device_of(x: Any) -> int:
    device = getattr(x, "device", None)
    if device is None or isinstance(device, str):
        return 0
    for name in ("index", "id"):
        number = getattr(device, name, None)
        if isinstance(number, int):
            return number
    return 0


def length(x: Any) -> int:
    return int(x.shape[0]) if hasattr(x, "shape") else len(x)


def empty(shape: tuple[int, ...], like: Any, *, type: str | Struct) -> Any:
    """An array of the same library, on the same device, from its allocator."""
    library = _library(like)
    if isinstance(type, Struct):
        type = str(like.dtype)
    if library == "torch":
        import torch

        return torch.empty(shape, dtype=getattr(torch, type), device=like.device)
    if library == "cupy":
        import cupy

        with cupy.cuda.Device(like.device.id):
            return cupy.empty(shape, dtype=type)
    if library == "numpy":
        import numpy

        return numpy.empty(shape, dtype=type)
    raise InvalidArgument(f"an array of {library}: pass out=, an array to write to")


def empty_like(x: Any, n: int | None = None, *, type: str | Struct) -> Any:
    """As many items as `x` has, or `n` of them."""
    return empty(tuple(x.shape) if n is None else (n,), x, type=type)


def on_device(x: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Arrays of the host are refused where nobody said that they may be moved."""
    return x, lambda out: out


def item_bytes(value: Any, type: str | Struct) -> bytes | None:
    if value is None:
        return None
    from ._types import _captured

    return _captured(value, None if hasattr(value, "dtype") else type)[0]


def first_item_sync(x: Any) -> Any:
    return x[0].item()
