# SPDX-License-Identifier: Apache-2.0
"""Primitives of NumPy's arrays on the CPU, for runs without a GPU: built-in operators, with the results a GPU has, but for the order in
which sums of floats are rounded. Which of the two runs is decided once per call, and told by an event."""

from __future__ import annotations

import functools
from typing import Any

from . import _kiln
from ._errors import InvalidArgument, NoDevice, Unsupported
from ._arrays import want_apart
from ._types import _SIZES, Op, without_gpu


@functools.lru_cache(1)
def _why_no_gpu() -> str:
    try:
        _kiln.devices()
    except NoDevice as why:
        return str(why)
    return ""


def runs_here(primitive: str, by: Op | None, stream: Any, /, **given: Any) -> bool:
    """Whether a call with arrays of the host runs on the CPU. Where it would have to and cannot, NoDevice or Unsupported; but what is wrong with what
    was given comes first."""
    mode = _kiln.execution_mode()
    if mode != "cpu" and not _why_no_gpu():
        return False
    is_own = by is not None and by.form != "builtin"
    if is_own or mode == "gpu":
        for what, x in given.items():
            if x is not None:
                items(what, x)
        _kiln.want_stream(stream)
    if is_own and mode == "cpu":
        raise Unsupported(f"{primitive}: operators of one's own are compiled for a GPU, and the execution mode is cpu; built-in ones run on the CPU")
    if is_own or mode == "gpu":
        raise NoDevice(without_gpu(primitive, _why_no_gpu(), "operators of one's own are compiled for a GPU" if is_own else "the execution mode is gpu"))
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
    return numpy.asarray(x)  # a class of the caller's own may add otherwise


def _integers(what: str, x: Any) -> Any:
    """Of 32 or 64 bits, as a GPU takes them."""
    x = items(what, x)
    if x.dtype.kind not in "iu" or x.dtype.itemsize < 4:
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


def _want_room(what: str, out: Any, n: int, dtype: Any) -> None:
    """For n items, where somebody gave an array to write to."""
    if out is None:
        return
    items(what, out)
    if out.dtype != dtype or len(out) < n:
        raise InvalidArgument(f"{what} has {len(out)} items of {out.dtype}, and {n} of {dtype} are written")
    if not out.flags.writeable:
        raise InvalidArgument(f"{what} cannot be written to")
    if not out.flags.c_contiguous:
        raise InvalidArgument(f"{what} is not contiguous: strides {out.strides} of {out.itemsize} bytes an item; pass one in order")


def _given(result: Any, out: Any) -> Any:
    if out is None:
        return result
    out[: len(result)] = result
    return out


def scan(inclusive: bool, x: Any, by: Op, init: Any, out: Any) -> Any:
    import numpy

    x = items("x", x)
    fold = _ufunc(by, x)
    _want_room("out", out, len(x), x.dtype)
    want_apart({"out": out}, {"x": x}, in_place="x")
    running = fold.accumulate(x, dtype=x.dtype)
    if inclusive:
        return _given(running, out)
    first = numpy.zeros(1, x.dtype) if init is None else numpy.array([_start(x, init)], x.dtype)
    before = fold(first, running[:-1], dtype=x.dtype) if init is not None else running[:-1]
    return _given(numpy.concatenate([first, before])[: len(x)].astype(x.dtype, copy=False), out)


def reduce(x: Any, by: Op, init: Any, out: Any) -> Any:
    import numpy

    x = items("x", x)
    start = numpy.zeros((), x.dtype)[()] if init is None else _start(x, init)
    fold = _ufunc(by, x)
    _want_room("out", out, 1, x.dtype)
    want_apart({"out": out}, {"x": x})
    all = numpy.concatenate([numpy.array([start], x.dtype), x]) if init is not None or len(x) == 0 else x
    return _given(numpy.array([fold.reduce(all, dtype=x.dtype)], x.dtype), out)


def segmented_reduce(x: Any, offsets: Any, by: Op, init: Any, out: Any) -> Any:
    import numpy

    x, offsets = items("x", x), _integers("offsets", offsets)
    if len(offsets) == 0:
        raise InvalidArgument("offsets are integers, one more than there are segments")
    if offsets[0] < 0 or offsets[-1] > len(x) or (offsets[1:] < offsets[:-1]).any():
        raise InvalidArgument(f"offsets go from 0 to {len(x)} and never back")
    _want_room("out", out, len(offsets) - 1, x.dtype)
    want_apart({"out": out}, {"x": x, "offsets": offsets})
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
    x, mask = items("x", x), items("the mask", mask)
    if len(mask) != len(x):
        raise InvalidArgument(f"the mask has {len(mask)} items and x has {len(x)}")
    if mask.dtype.itemsize != 1 or mask.dtype.kind not in "biu":
        raise InvalidArgument(f"the mask is of {mask.dtype}; it must be of bool or 8-bit integers")
    _want_room("out", out, len(x), x.dtype)
    _want_room("count", count, 1, numpy.dtype("i8"))
    want_apart({"out": out, "count": count}, {"x": x, "the mask": mask})
    kept = x[mask.astype(bool)]
    room = numpy.empty_like(x) if out is None else out
    return _given(kept, room), _given(numpy.array([len(kept)], "i8"), count)


def bounds(upper: bool, sorted: Any, queries: Any, by: Op, out: Any) -> Any:
    import numpy

    sorted, queries = _want_order(by, "sorted", sorted), items("queries", queries)
    if queries.dtype != sorted.dtype:
        raise InvalidArgument(f"queries are of {queries.dtype} and the sorted items of {sorted.dtype}")
    if out is not None and items("out", out).dtype not in ("i4", "i8"):
        raise InvalidArgument(f"out is of {out.dtype}; places are int32 or int64")
    _want_room("out", out, len(queries), numpy.dtype("i8") if out is None else out.dtype)
    want_apart({"out": out}, {"sorted": sorted, "queries": queries})
    if by.name == "greater":
        found = len(sorted) - numpy.searchsorted(sorted[::-1], queries, "left" if upper else "right")
    else:
        found = numpy.searchsorted(sorted, queries, "right" if upper else "left")
    if queries.dtype.kind == "f":  # NumPy has NaN after all numbers; of `a < b` it is neither before nor after any
        found[numpy.isnan(queries)] = len(sorted) if upper else 0
    return _given(found.astype("i8" if out is None else out.dtype), out)


def _want_order(by: Op, what: str, x: Any) -> Any:
    if by.name not in ("less", "greater"):
        raise InvalidArgument(f"'{by.name}' is no order: there are less and greater")
    x = items(what, x)
    if x.dtype.fields is not None:
        raise Unsupported(f"{what} has records, which '{by.name}' has no meaning for: pass an operator of one's own, kiln.op('...'), where there is a GPU, or one field")
    return x


def _want_pairs(keys: Any, values: Any, out: Any, values_out: Any, count: Any = None) -> Any:
    import numpy

    values = None if values is None else items("values", values)
    if values is not None and len(values) != len(keys):
        raise InvalidArgument(f"there are {len(keys)} keys and {len(values)} values")
    _want_room("out", out, len(keys), keys.dtype)
    if values is not None:
        _want_room("values_out", values_out, len(keys), values.dtype)
    _want_room("count", count, 1, numpy.dtype("i8"))
    want_apart({"out": out, "values_out": values_out, "count": count}, {"keys": keys, "values": values})
    return values


def _bits(keys: Any) -> Any:
    """Of floats, in the order a radix sort puts them: a NaN with a sign comes first, one without last, and -0 is +0."""
    import numpy

    if keys.dtype.kind in "biu":
        return keys
    bits = numpy.ascontiguousarray(keys).view(f"u{keys.itemsize}")
    top = bits.dtype.type(1 << (8 * keys.itemsize - 1))
    return numpy.where(bits == top, top, numpy.where(bits & top, ~bits, bits | top))


def sort(keys: Any, values: Any, by: Op, out: Any, values_out: Any, *, by_bits: bool = False) -> Any:
    import numpy

    keys = _want_order(by, "keys", keys)
    values = _want_pairs(keys, values, out, values_out)
    order_of = _bits(keys) if by_bits else keys
    if by.name == "greater":  # stable: equal keys stay as they came
        order = len(keys) - 1 - numpy.argsort(order_of[::-1], kind="stable")[::-1]
    else:
        order = numpy.argsort(order_of, kind="stable")
    if values is None:
        return _given(keys[order], out)
    return _given(keys[order], out), _given(values[order], values_out)


def unique_by_key(keys: Any, values: Any, by: Op, out: Any, values_out: Any, count: Any) -> Any:
    import numpy

    if by.name != "equal":
        raise InvalidArgument(f"unique_by_key: '{by.name}' does not say which keys are equal")
    keys = items("keys", keys)
    values = _want_pairs(keys, values, out, values_out, count)
    first = numpy.ones(len(keys), bool)
    first[1:] = keys[1:] != keys[:-1]
    room, n = select(keys, first, out, count)
    if values is None:
        return room, n
    return room, select(values, first, values_out, None)[0], n


def gather(x: Any, index: Any, out: Any) -> Any:
    x, index = items("x", x), _integers("index", index)
    if len(index) and (index.min() < 0 or index.max() >= len(x)):
        raise InvalidArgument(f"index: {len(x)} items are numbered from 0 to {len(x) - 1}" if len(x) else "index: there are no items to take")
    _want_room("out", out, len(index), x.dtype)
    want_apart({"out": out}, {"x": x, "index": index})
    return _given(x[index], out)
