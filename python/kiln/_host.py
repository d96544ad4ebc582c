# SPDX-License-Identifier: Apache-2.0
"""Primitives of NumPy's arrays on the CPU, for runs without a GPU: built-in operators, with the results a GPU has, but for the order in
which sums of floats are rounded. Which of the two runs is decided once per call, and told by an event."""

from __future__ import annotations

import functools
from typing import Any

from . import _kiln
from ._errors import InvalidArgument, NoDevice, Unsupported
from ._arrays import want_apart
from ._types import _SIZES, Op


@functools.lru_cache(1)
def _why_no_gpu() -> str:
    try:
        _kiln.devices()
    except NoDevice as why:
        return str(why)
    return ""


def runs_here(primitive: str, by: Op | None, stream: Any = None) -> bool:
    """Whether a call with arrays of the host runs on the CPU. Unsupported where it would have to and cannot."""
    mode = _kiln.execution_mode()
    if mode == "gpu" or (mode == "auto" and not _why_no_gpu()):
        return False
    if by is not None and by.form != "builtin":
        if mode == "auto":
            raise NoDevice(f"{primitive}: operators of one's own are compiled for a GPU, and there is none: {_why_no_gpu()}")
        raise Unsupported(f"{primitive}: operators of one's own are compiled for a GPU, and the execution mode is cpu; built-in ones run on the CPU")
    _kiln.want_stream(stream)
    _kiln.tell_cpu(primitive, "the execution mode is cpu" if mode == "cpu" else "no GPU")
    return True


def items(what: str, x: Any) -> Any:
    """As a GPU would take them: one after the other, of a type it has, all of them there."""
    import numpy

    if not isinstance(x, numpy.ndarray):
        raise InvalidArgument(f"{what} is a {type(x).__name__}; pass an array of NumPy's")
    if isinstance(x, numpy.ma.MaskedArray):
        raise InvalidArgument(f"{what} is a masked array, and its mask would be lost: pass x.filled(value) or x.compressed()")
    if x.ndim != 1:
        raise InvalidArgument(f"{what} has {x.ndim} dimensions; pass x.ravel()")
    if not x.dtype.isnative or (x.dtype.fields is None and x.dtype.name not in _SIZES):
        raise Unsupported(f"{what} is of {x.dtype}: there are {', '.join(_SIZES)} and records of them, in this machine's byte order")
    return x


def _integers(what: str, x: Any) -> Any:
    """Of 32 or 64 bits, as a GPU takes them."""
    if items(what, x).dtype.kind not in "iu" or x.dtype.itemsize < 4:
        raise InvalidArgument(f"{what}: items of {x.dtype}; they must be integers of 32 or 64 bits")
    return x


def _start(x: Any, init: Any) -> Any:
    import numpy

    if isinstance(init, numpy.ndarray) and init.ndim == 0:
        init = init[()]
    if x.dtype.name == "bfloat16" and isinstance(init, bytes):  # NumPy itself has no such numbers
        return numpy.frombuffer(init, x.dtype)[0]
    if not isinstance(init, (bool, int, float, numpy.bool_, numpy.integer, numpy.floating, x.dtype.type)):
        raise InvalidArgument(f"init: {init!r} is no number")
    with numpy.errstate(all="ignore"):
        try:
            out = numpy.asarray(init).astype(x.dtype)[()]
        except (OverflowError, ValueError):
            out = None
    # A bool and a number beyond NumPy's cannot be compared there.
    if out is None or (x.dtype.kind in "iub" and out.item() != (init if isinstance(init, (int, float)) else init.item())):
        raise InvalidArgument(f"init: {init!r} is no {x.dtype}")
    return out


def _ufunc(by: Op, x: Any) -> Any:
    import numpy

    if x.dtype.fields is not None:
        raise Unsupported(f"x has records, which '{by.name}' has no meaning for: pass an operator of one's own, kiln.op('...'), where there is a GPU, or one field")
    # Of floats a NaN loses against a number.
    known = {"plus": numpy.add, "multiply": numpy.multiply, "min": numpy.fmin, "max": numpy.fmax, "bit_and": numpy.bitwise_and,
             "bit_or": numpy.bitwise_or, "bit_xor": numpy.bitwise_xor}
    if by.name not in known:
        raise InvalidArgument(f"'{by.name}' gives no item of two: there are {', '.join(known)}")
    if x.dtype.kind == "f" and by.name.startswith("bit_"):
        raise InvalidArgument(f"'{by.name}' has no meaning for {x.dtype}: pass integers")
    return known[by.name]


def _given(result: Any, out: Any, what: str = "out") -> Any:
    if out is None:
        return result
    items(what, out)
    if out.dtype != result.dtype or len(out) < len(result):
        raise InvalidArgument(f"{what} has {len(out)} items of {out.dtype}, and {len(result)} of {result.dtype} are written")
    if not out.flags.writeable:
        raise InvalidArgument(f"{what} cannot be written to")
    if not out.flags.c_contiguous:
        raise InvalidArgument(f"{what} is not contiguous: strides {out.strides} of {out.itemsize} bytes an item; pass one in order")
    out[: len(result)] = result
    return out


def scan(inclusive: bool, x: Any, by: Op, init: Any, out: Any) -> Any:
    import numpy

    running = _ufunc(by, items("x", x)).accumulate(x, dtype=x.dtype)
    if inclusive:
        return _given(running, out)
    first = numpy.zeros(1, x.dtype) if init is None else numpy.array([_start(x, init)], x.dtype)
    before = _ufunc(by, x)(first, running[:-1], dtype=x.dtype) if init is not None else running[:-1]
    return _given(numpy.concatenate([first, before])[: len(x)].astype(x.dtype, copy=False), out)


def reduce(x: Any, by: Op, init: Any, out: Any) -> Any:
    import numpy

    start = numpy.zeros((), items("x", x).dtype)[()] if init is None else _start(x, init)
    all = numpy.concatenate([numpy.array([start], x.dtype), x]) if init is not None or len(x) == 0 else x
    return _given(numpy.array([_ufunc(by, x).reduce(all, dtype=x.dtype)], x.dtype), out)


def segmented_reduce(x: Any, offsets: Any, by: Op, init: Any, out: Any) -> Any:
    import numpy

    items("x", x)
    if len(_integers("offsets", offsets)) == 0:
        raise InvalidArgument("offsets are integers, one more than there are segments")
    if offsets[0] < 0 or offsets[-1] > len(x) or (offsets[1:] < offsets[:-1]).any():
        raise InvalidArgument(f"offsets go from 0 to {len(x)} and never back")
    start = numpy.zeros((), x.dtype)[()] if init is None else _start(x, init)
    parts = numpy.full(len(offsets) - 1, start, x.dtype)
    some = offsets[1:] > offsets[:-1]  # reduceat takes an item where a segment has none
    if some.any():
        sums = _ufunc(by, x).reduceat(x[: offsets[-1]], offsets[:-1][some].astype("i8"), dtype=x.dtype)
        parts[some] = sums if init is None else _ufunc(by, x)(start, sums, dtype=x.dtype)
    return _given(parts, out)


def select(x: Any, mask: Any, out: Any, count: Any) -> tuple[Any, Any]:
    import numpy

    if isinstance(mask, (str, Op)):
        raise InvalidArgument("select: a built-in operator takes two items; pass a mask, or kiln.op('a > 0') where there is a GPU")
    if len(items("the mask", mask)) != len(items("x", x)):
        raise InvalidArgument(f"the mask has {len(mask)} items and x has {len(x)}")
    if mask.dtype.itemsize != 1 or mask.dtype.kind not in "biu":
        raise InvalidArgument(f"the mask is of {mask.dtype}; it must be of bool or 8-bit integers")
    want_apart({"out": out, "count": count})
    kept = x[mask.astype(bool)]
    room = numpy.empty_like(x) if out is None else out
    _given(kept, room)
    return room, _given(numpy.array([len(kept)], "i8"), count, "count")


def bounds(upper: bool, sorted: Any, queries: Any, by: Op, out: Any) -> Any:
    import numpy

    _want_order(by, "sorted", sorted)
    if items("queries", queries).dtype != sorted.dtype:
        raise InvalidArgument(f"queries are of {queries.dtype} and the sorted items of {sorted.dtype}")
    if out is not None and items("out", out).dtype not in ("i4", "i8"):
        raise InvalidArgument(f"out is of {out.dtype}; places are int32 or int64")
    if by.name == "greater":
        found = len(sorted) - numpy.searchsorted(sorted[::-1], queries, "left" if upper else "right")
    else:
        found = numpy.searchsorted(sorted, queries, "right" if upper else "left")
    if queries.dtype.kind == "f":  # NumPy has NaN after all numbers; of `a < b` it is neither before nor after any
        found[numpy.isnan(queries)] = len(sorted) if upper else 0
    return _given(found.astype("i8" if out is None else out.dtype), out)


def _want_order(by: Op, what: str, x: Any) -> None:
    if by.name not in ("less", "greater"):
        raise InvalidArgument(f"'{by.name}' is no order: there are less and greater")
    if items(what, x).dtype.fields is not None:
        raise Unsupported(f"{what} has records, which '{by.name}' has no meaning for: pass an operator of one's own, kiln.op('...'), where there is a GPU, or one field")


def sort(keys: Any, values: Any, by: Op, out: Any, values_out: Any) -> Any:
    import numpy

    _want_order(by, "keys", keys)
    if values is not None and len(items("values", values)) != len(keys):
        raise InvalidArgument(f"there are {len(keys)} keys and {len(values)} values")
    want_apart({"out": out, "values_out": values_out})
    if by.name == "greater":  # stable: equal keys stay as they came
        order = len(keys) - 1 - numpy.argsort(keys[::-1], kind="stable")[::-1]
    else:
        order = numpy.argsort(keys, kind="stable")
    if values is None:
        return _given(keys[order], out)
    return _given(keys[order], out), _given(values[order], values_out, "values_out")


def unique_by_key(keys: Any, values: Any, by: Op, out: Any, values_out: Any, count: Any) -> Any:
    import numpy

    if by.name != "equal":
        raise InvalidArgument(f"unique_by_key: '{by.name}' does not say which keys are equal")
    first = numpy.ones(len(items("keys", keys)), bool)
    first[1:] = keys[1:] != keys[:-1]
    want_apart({"out": out, "values_out": values_out, "count": count})
    room, n = select(keys, first, out, count)
    if values is None:
        return room, n
    return room, select(values, first, values_out, None)[0], n


def gather(x: Any, index: Any, out: Any) -> Any:
    if len(_integers("index", index)) and (index.min() < 0 or index.max() >= len(items("x", x))):
        raise InvalidArgument(f"index: {len(x)} items are numbered from 0 to {len(x) - 1}")
    return _given(x[index], out)
