# SPDX-License-Identifier: Apache-2.0
"""What each array library is asked for: a new array like another, its type, its device."""

from __future__ import annotations

import sys
from typing import Any

from . import _kiln
from ._types import Struct, type_name, wrong

Array = _kiln.Array

_JAX = ("jax", "jaxlib")
_HOST = (1, 3)  # DLPack's kinds of devices whose memory the host reads: its own, and what is pinned for CUDA


def is_jax(x: Any) -> bool:
    return _library(x) in _JAX


def is_numpy(x: Any) -> bool:
    if _library(x) == "numpy":
        return True
    numpy = sys.modules.get("numpy")  # a class of the caller's own
    return numpy is not None and isinstance(x, numpy.ndarray)


def _library(x: Any) -> str:
    return type(x).__module__.partition(".")[0]


_TYPES: dict[Any, str | Struct] = {}  # of the types that were seen
_ARRAYS: set[type[Any]] = set()  # likewise


def want_array(x: Any, what: str = "x") -> None:
    """TypeError that names the argument and what was looked for."""
    if type(x) in _ARRAYS:
        return
    # Of pandas, of Arrow, and others like them.
    if hasattr(x, "to_numpy") and not (hasattr(x, "dtype") and (hasattr(x, "__dlpack__") or hasattr(x, "__cuda_array_interface__"))):
        raise TypeError(f"{what} is a {type(x).__name__} of {_library(x)}, not an array: pass {what}.to_numpy()")
    if isinstance(x, (list, tuple, range)):
        raise TypeError(f"{what} is a {type(x).__name__}, not an array: pass numpy.asarray({what})")
    if not hasattr(x, "dtype"):
        raise TypeError(f"{what} is a {type(x).__name__}, not an array: it has neither __dlpack__ nor __cuda_array_interface__ nor the buffer protocol with a dtype")
    _ARRAYS.add(type(x))


def type_of(x: Any, what: str = "x") -> str | Struct:
    want_array(x, what)
    found = x.dtype
    known = _TYPES.get(found)
    if known is None:
        known = _TYPES[found] = type_name(found)
    return known


def on_device(x: Any) -> bool:
    """Whether the host cannot read it. The one place that asks: libraries raise whatever they like for what they do not hand out, as Arrow's arrays
    with nulls and torch's tensors that require a gradient."""
    if is_numpy(x):
        return False
    for name in ("is_cuda", "is_cpu"):  # torch's, Arrow's: of what DLPack has no word for, too
        told = getattr(x, name, None)
        if isinstance(told, bool):
            return told == (name == "is_cuda")
    try:
        return x.__dlpack_device__()[0] not in _HOST
    except Exception:  # none, or none that it tells
        pass
    try:
        return hasattr(x, "__cuda_array_interface__")
    except Exception:  # one that it does not hand out, as cuDF's of columns with nulls
        return True


def device_of(x: Any) -> int:
    if isinstance(x, _kiln.Array):
        return x.ordinal
    device = getattr(x, "device", None)
    if device is None or isinstance(device, str):
        return 0
    for name in ("index", "local_hardware_id", "id"):  # torch's, JAX's, CuPy's
        number = getattr(device, name, None)
        if isinstance(number, int):
            return number
    return 0


def empty(shape: tuple[int, ...], like: Any, *, type: str | None) -> Any:
    """An array of the same library, on the same device, from its allocator; of the same type where none is named."""
    library = _library(like)
    if type is None:
        type = str(type_of(like))
    if library == "torch":
        import torch

        return torch.empty(shape, dtype=getattr(torch, type), device=like.device)
    if library == "cupy":
        import cupy

        with cupy.cuda.Device(like.device.id):
            return cupy.empty(shape, dtype=type)
    if isinstance(like, _kiln.Array):
        return _kiln.Array.empty(list(shape), type, like.ordinal)
    if library in _JAX and on_device(like):
        return _kiln.Array.empty(list(shape), type, device_of(like))
    if library in _JAX or is_numpy(like):
        import numpy

        return numpy.empty(shape, dtype=type)
    raise wrong(f"an array of {library}: pass out=, an array to write to")


def empty_like(x: Any, n: int | None = None, *, type: str | None) -> Any:
    """As many items as `x` has, or `n` of them."""
    return empty(tuple(x.shape) if n is None else (n,), x, type=type)


def want_apart(outputs: dict[str, Any], inputs: dict[str, Any], *, in_place: str = "") -> None:
    """InvalidArgument where two results would be written to the same memory of the host, or a result to what is read. An input that `in_place`
    names may be the result itself, from its first item on."""
    import numpy

    given = [(name, x) for name, x in outputs.items() if isinstance(x, numpy.ndarray)]
    read = [(name, x) for name, x in inputs.items() if isinstance(x, numpy.ndarray)]
    for i, (name, x) in enumerate(given):
        for other, y in [*given[i + 1 :], *read]:
            if not numpy.shares_memory(x, y) or (other == in_place and x.ctypes.data == y.ctypes.data and x.strides == y.strides):
                continue
            remedy = "write to the same array or to another one" if other == in_place else "write to another array"
            raise wrong(f"{name} and {other} overlap: {x.dtype}{list(x.shape)}; {remedy}")


def through(handle: Any, inputs: tuple[Any, ...], outputs: dict[str, Any], more: dict[str, Any]) -> Any:
    """handle(*inputs, **outputs, **more), with results of the first input's library. Arrays of the host go to the GPU and their
    results come back, where the execution mode allows it; arrays on a device are as they are."""
    library = _library(inputs[0])
    if is_numpy(inputs[0]):
        return _by_way_of_the_gpu(handle, inputs, outputs, more)
    found = handle(*inputs, **outputs, **more)
    return found if library not in _JAX else tuple(map(to_jax, found)) if isinstance(found, tuple) else to_jax(found)


# Of each handle the names of what it reads, and which of it may be written to.
_INPUTS: dict[str, tuple[tuple[str, ...], str]] = {
    "Scan": (("x",), "x"), "Reduce": (("x",), ""), "SegmentedReduce": (("x", "offsets"), ""), "Select": (("x", "the mask"), ""), "Bounds": (("sorted", "queries"), ""),
    "RadixSort": (("keys", "values"), ""), "MergeSort": (("keys", "values"), ""), "UniqueByKey": (("keys", "values"), ""), "Transform": (("x",), "x"),
    "Gather": (("x", "index"), ""),
}


def _by_way_of_the_gpu(handle: Any, inputs: tuple[Any, ...], outputs: dict[str, Any], more: dict[str, Any]) -> Any:
    import numpy

    names, in_place = _INPUTS[type(handle).__name__]
    want_apart(outputs, dict(zip(names, inputs)), in_place=in_place)

    def plain(x: Any) -> Any:  # records as rows of bytes
        if isinstance(x, numpy.ma.MaskedArray):
            raise wrong("a masked array, and its mask would be lost: pass x.filled(value) or x.compressed()")
        x = numpy.ascontiguousarray(x)
        return x.view("u1").reshape(len(x), -1) if x.dtype.fields else x

    there = [None if x is None else _kiln.Array.from_host_sync(plain(x), 0) for x in inputs]
    found = handle(*there, **more)
    records = inputs[0].dtype if inputs[0].dtype.fields else None

    def back(result: Any, out: Any) -> Any:
        if records is not None and out is None and result.dtype == "uint8":
            out = numpy.empty(result.nbytes // records.itemsize, dtype=records)
        to = numpy.empty(tuple(result.shape), dtype=result.dtype) if out is None else out
        if to.dtype.fields and not to.flags.c_contiguous:
            raise wrong("out has gaps between its records; pass one without")
        result.to_host_sync(plain(to) if to.dtype.fields else to)
        return to

    if isinstance(found, tuple):
        return tuple(back(result, out) for result, out in zip(found, outputs.values()))
    return back(found, outputs["out"])


def to_jax(x: Any) -> Any:
    """JAX's arrays cannot be written to: results are in memory of Kiln's own, or of NumPy's on the host, which JAX takes over."""
    if not isinstance(x, _kiln.Array) and not is_numpy(x):
        return x
    import jax.dlpack

    return jax.dlpack.from_dlpack(x)


def item_bytes(value: Any, type: str | None) -> bytes:
    """One item as it lies in memory. Of a struct, or where it has a type of its own, as it is."""
    from ._types import captured

    if type is not None and is_numpy(value) and value.ndim == 0 and value.dtype.kind in "biuf" and value.dtype.name != type:
        value = value.item()  # a number of another type
    return captured(value, None if hasattr(value, "dtype") else type)[0]


def first_items(x: Any, n: int) -> Any:
    return x.first(n) if isinstance(x, _kiln.Array) else x[:n]


def first_item_sync(x: Any) -> Any:
    if isinstance(x, _kiln.Array):
        import numpy

        host = numpy.empty(tuple(x.shape), dtype=x.dtype)
        x.to_host_sync(host)
        return host[0].item()
    return x[0].item()
