# SPDX-License-Identifier: Apache-2.0
"""Primitives of NumPy's arrays on the CPU, for runs without a GPU: built-in operators, with the results a GPU has, but for the order in
which sums of floats are rounded. Which of the two runs is decided once per call, and told by an event."""

from __future__ import annotations

import functools
from typing import Any

from . import _kiln
from ._errors import NoDevice, Unsupported
from ._types import Op


@functools.lru_cache(1)
def _why_no_gpu() -> str:
    try:
        _kiln.devices()
    except NoDevice as why:
        return str(why)
    return ""


def runs_here(primitive: str, by: Op | None) -> bool:
    """Whether a call with arrays of the host runs on the CPU. Unsupported where it would have to and cannot."""
    mode = _kiln.execution_mode()
    if mode == "gpu" or (mode == "auto" and not _why_no_gpu()):
        return False
    if by is not None and by.form != "builtin":
        if mode == "auto":
            raise NoDevice(f"{primitive}: operators of one's own are compiled for a GPU, and there is none: {_why_no_gpu()}")
        raise Unsupported(f"{primitive}: operators of one's own are compiled for a GPU, and the execution mode is cpu; built-in ones run on the CPU")
    _kiln.tell_cpu(primitive, "the execution mode is cpu" if mode == "cpu" else "no GPU")
    return True


def _ufunc(by: Op) -> Any:
    import numpy

    # Of floats a NaN loses against a number.
    return {"plus": numpy.add, "multiply": numpy.multiply, "min": numpy.fmin, "max": numpy.fmax, "bit_and": numpy.bitwise_and,
            "bit_or": numpy.bitwise_or, "bit_xor": numpy.bitwise_xor}[by.name]


def _given(result: Any, out: Any) -> Any:
    if out is None:
        return result
    out[: len(result)] = result
    return out


def scan(inclusive: bool, x: Any, by: Op, init: Any, out: Any) -> Any:
    import numpy

    running = _ufunc(by).accumulate(x, dtype=x.dtype)
    if inclusive:
        return _given(running, out)
    first = numpy.zeros(1, x.dtype) if init is None else numpy.array([init], x.dtype)
    before = _ufunc(by)(first, running[:-1], dtype=x.dtype) if init is not None else running[:-1]
    return _given(numpy.concatenate([first, before])[: len(x)].astype(x.dtype, copy=False), out)


def reduce(x: Any, by: Op, init: Any, out: Any) -> Any:
    import numpy

    start = numpy.zeros((), x.dtype)[()] if init is None else x.dtype.type(init)
    items = numpy.concatenate([[start], x]) if init is not None or len(x) == 0 else x
    return _given(numpy.array([_ufunc(by).reduce(items, dtype=x.dtype)], x.dtype), out)


def segmented_reduce(x: Any, offsets: Any, by: Op, init: Any, out: Any) -> Any:
    import numpy

    start = None if init is None else init
    parts = [reduce(x[a:b], by, start, None)[0] for a, b in zip(offsets[:-1], offsets[1:])]
    return _given(numpy.array(parts, x.dtype), out)


def select(x: Any, mask: Any, out: Any, count: Any) -> tuple[Any, Any]:
    import numpy

    kept = x[mask.astype(bool)]
    room = numpy.empty_like(x) if out is None else out
    room[: len(kept)] = kept
    return room, _given(numpy.array([len(kept)], "i8"), count)


def bounds(upper: bool, sorted: Any, queries: Any, out: Any) -> Any:
    import numpy

    return _given(numpy.searchsorted(sorted, queries, "right" if upper else "left").astype("i8"), out)


def sort(keys: Any, values: Any, descending: bool, out: Any, values_out: Any) -> Any:
    import numpy

    if descending:  # stable: equal keys stay as they came
        order = len(keys) - 1 - numpy.argsort(keys[::-1], kind="stable")[::-1]
    else:
        order = numpy.argsort(keys, kind="stable")
    if values is None:
        return _given(keys[order], out)
    return _given(keys[order], out), _given(values[order], values_out)


def unique_by_key(keys: Any, values: Any, out: Any, values_out: Any, count: Any) -> Any:
    import numpy

    first = numpy.ones(len(keys), bool)
    first[1:] = keys[1:] != keys[:-1]
    room, n = select(keys, first, out, count)
    if values is None:
        return room, n
    return room, select(values, first, values_out, None)[0], n


def gather(x: Any, index: Any, out: Any) -> Any:
    return _given(x[index], out)
