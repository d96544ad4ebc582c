# SPDX-License-Identifier: Apache-2.0
"""Primitives. Each is a function that keeps its handles, `name(x, ..., out=None, stream=None)`, and a maker of handles for loops,
`make_name(type, ...)`. Arrays may be of any library; outputs are of the first input's. Nothing waits for the GPU but what ends
in _sync; what may wait for a compiler takes timeout=, in seconds."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType, NoneType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from . import _arrays, _kiln
from ._types import _SIZES, ItemType, Op, Operator, as_op, element, type_name, without_gpu, wrong

if TYPE_CHECKING:
    from ._protocols import StreamLike

_KEPT = 1024  # handles of a kind; the first that was made goes first
_Handle = TypeVar("_Handle")
A = TypeVar("A")  # an array: results are of the same library


def _errors() -> Any:
    """Read when something went wrong: what goes well does not wait for them."""
    from . import _errors as all

    return all


def _name_of(maker: str, arguments: tuple[Any, ...]) -> str:
    names = {"_scan": ("exclusive_scan", "inclusive_scan"), "_bounds": ("lower_bound", "upper_bound")}
    if maker in names:
        return names[maker][arguments[0]]
    return {"_segmented": "segmented_reduce", "_radix": "radix_sort", "_merge": "merge_sort", "_unique": "unique_by_key"}.get(maker, maker[1:])


def _keeping(make: Callable[..., _Handle]) -> Callable[..., _Handle]:
    """Handles are made once for the same arguments, and know them: a pickle of one is how it was made. How long somebody waits for one is no
    part of it."""
    handles: dict[tuple[Any, ...], _Handle] = {}

    @wraps(make)
    def kept(*arguments: Any, timeout: float | None = None) -> _Handle:
        found = handles.get(arguments)
        if found is not None:
            return found
        name = _name_of(make.__name__, arguments)
        if not isinstance(arguments[-1], int):
            raise TypeError(f"make_{name}: device is a {type(arguments[-1]).__name__}; it must be int")
        if not isinstance(timeout, (int, float, NoneType)):
            raise TypeError(f"{name}: timeout is a {type(timeout).__name__}; it must be float or None")
        try:
            handle: Any = make(*arguments, timeout)
        except _errors().NoDevice as why:
            if not _host()._why_no_gpu():  # there are some, and not this one
                raise
            raise _errors().NoDevice(without_gpu(name, why.message, "its handles, and arrays that are not NumPy's, need a GPU"), why.status) from None
        handle.recipe = (kept, arguments)
        if len(handles) >= _KEPT:
            handles.pop(list(handles)[0], None)  # a list at once: other threads make handles too
        made: _Handle = handles.setdefault(arguments, handle)
        return made

    return kept


@_keeping
def _scan(inclusive: bool, type: Any, by: Op, device: int, timeout: float | None) -> _kiln.Scan:
    return _kiln.make_scan(inclusive, element(type), by.made(type), device, timeout)


@_keeping
def _reduce(type: Any, by: Op, device: int, timeout: float | None) -> _kiln.Reduce:
    return _kiln.make_reduce(element(type), by.made(type), device, timeout)


@_keeping
def _segmented(type: Any, by: Op, device: int, timeout: float | None) -> _kiln.SegmentedReduce:
    return _kiln.make_segmented_reduce(element(type), by.made(type), device, timeout)


@_keeping
def _select(indices: bool, type: Any, by: Op | None, device: int, timeout: float | None) -> _kiln.Select:
    return _kiln.make_select(indices, element(type), by.made(type) if by else None, device, timeout)


@_keeping
def _bounds(upper: bool, type: Any, by: Op, device: int, timeout: float | None) -> _kiln.Bounds:
    return _kiln.make_bounds(upper, element(type), by.made(type), device, timeout)


@_keeping
def _radix(key: Any, value: Any, descending: bool, device: int, timeout: float | None) -> _kiln.RadixSort:
    return _kiln.make_radix_sort(element(key), element(value), descending, device, timeout)


@_keeping
def _merge(key: Any, value: Any, by: Op, device: int, timeout: float | None) -> _kiln.MergeSort:
    return _kiln.make_merge_sort(element(key), element(value), by.made(key), device, timeout)


@_keeping
def _unique(key: Any, value: Any, by: Op, device: int, timeout: float | None) -> _kiln.UniqueByKey:
    return _kiln.make_unique_by_key(element(key), element(value), by.made(key), device, timeout)


@_keeping
def _transform(source: Any, to: Any, by: Op, device: int, timeout: float | None) -> _kiln.Transform:
    return _kiln.make_transform(element(source), element(to), by.made(source), device, timeout)


@_keeping
def _gather(type: Any, index: Any, device: int, timeout: float | None) -> _kiln.Gather:
    return _kiln.make_gather(element(type), element(index), device, timeout)


def make_exclusive_scan(type: ItemType, op: Operator = "plus", *, device: int = 0, timeout: float | None = None) -> _kiln.Scan:
    """A handle of `exclusive_scan` for loops: compiled or found once, called with arrays on `device`.

    Types are names ("int32"), NumPy's, torch's or `kiln.struct`; the handle takes what `exclusive_scan` takes but for types and operator.

    On a GPU:

    >>> kiln.make_exclusive_scan("int32").device
    0
    """
    return _scan(False, type_name(type), as_op(op), device, timeout=timeout)


def make_inclusive_scan(type: ItemType, op: Operator = "plus", *, device: int = 0, timeout: float | None = None) -> _kiln.Scan:
    """A handle of `inclusive_scan` for loops: compiled or found once, called with arrays on `device`.

    Types are names ("int32"), NumPy's, torch's or `kiln.struct`; the handle takes what `inclusive_scan` takes but for types and operator.

    On a GPU:

    >>> kiln.make_inclusive_scan("int32", "max").device
    0
    """
    return _scan(True, type_name(type), as_op(op), device, timeout=timeout)


def make_reduce(type: ItemType, op: Operator = "plus", *, device: int = 0, timeout: float | None = None) -> _kiln.Reduce:
    """A handle of `reduce` for loops: compiled or found once, called with arrays on `device`.

    Types are names ("int32"), NumPy's, torch's or `kiln.struct`; the handle takes what `reduce` takes but for types and operator.

    On a GPU:

    >>> kiln.make_reduce("float32").device
    0
    """
    return _reduce(type_name(type), as_op(op), device, timeout=timeout)


def make_segmented_reduce(type: ItemType, op: Operator = "plus", *, device: int = 0, timeout: float | None = None) -> _kiln.SegmentedReduce:
    """A handle of `segmented_reduce` for loops: compiled or found once, called with arrays on `device`.

    Types are names ("int32"), NumPy's, torch's or `kiln.struct`; the handle takes what `segmented_reduce` takes but for types and operator.

    On a GPU:

    >>> kiln.make_segmented_reduce("int32").device
    0
    """
    return _segmented(type_name(type), as_op(op), device, timeout=timeout)


def make_select(type: ItemType, op: Operator | None = None, *, indices: bool = False, device: int = 0, timeout: float | None = None) -> _kiln.Select:
    """A handle of `select` for loops: compiled or found once, called with arrays on `device`.

    Types are names ("int32"), NumPy's, torch's or `kiln.struct`; the handle takes what `select` takes but for types and operator.

    On a GPU:

    >>> kiln.make_select("int32", indices=True).device
    0
    """
    return _select(indices, type_name(type), as_op(op) if op is not None else None, device, timeout=timeout)


def make_lower_bound(type: ItemType, op: Operator = "less", *, device: int = 0, timeout: float | None = None) -> _kiln.Bounds:
    """A handle of `lower_bound` for loops: compiled or found once, called with arrays on `device`.

    Types are names ("int32"), NumPy's, torch's or `kiln.struct`; the handle takes what `lower_bound` takes but for types and operator.

    On a GPU:

    >>> kiln.make_lower_bound("int32").device
    0
    """
    return _bounds(False, type_name(type), as_op(op), device, timeout=timeout)


def make_upper_bound(type: ItemType, op: Operator = "less", *, device: int = 0, timeout: float | None = None) -> _kiln.Bounds:
    """A handle of `upper_bound` for loops: compiled or found once, called with arrays on `device`.

    Types are names ("int32"), NumPy's, torch's or `kiln.struct`; the handle takes what `upper_bound` takes but for types and operator.

    On a GPU:

    >>> kiln.make_upper_bound("int32").device
    0
    """
    return _bounds(True, type_name(type), as_op(op), device, timeout=timeout)


def make_radix_sort(key: ItemType, value: ItemType | None = None, *, descending: bool = False, device: int = 0, timeout: float | None = None) -> _kiln.RadixSort:
    """A handle of `radix_sort` for loops: compiled or found once, called with arrays on `device`.

    Types are names ("int32"), NumPy's, torch's or `kiln.struct`; the handle takes what `radix_sort` takes but for types and operator.

    On a GPU:

    >>> kiln.make_radix_sort("uint32", "int32").device
    0
    """
    return _radix(type_name(key), type_name(value) if value is not None else None, descending, device, timeout=timeout)


def make_merge_sort(key: ItemType, value: ItemType | None = None, op: Operator = "less", *, device: int = 0, timeout: float | None = None) -> _kiln.MergeSort:
    """A handle of `merge_sort` for loops: compiled or found once, called with arrays on `device`.

    Types are names ("int32"), NumPy's, torch's or `kiln.struct`; the handle takes what `merge_sort` takes but for types and operator.

    On a GPU:

    >>> kiln.make_merge_sort("int32").device
    0
    """
    return _merge(type_name(key), type_name(value) if value is not None else None, as_op(op), device, timeout=timeout)


def make_unique_by_key(key: ItemType, value: ItemType | None = None, op: Operator = "equal", *, device: int = 0, timeout: float | None = None) -> _kiln.UniqueByKey:
    """A handle of `unique_by_key` for loops: compiled or found once, called with arrays on `device`.

    Types are names ("int32"), NumPy's, torch's or `kiln.struct`; the handle takes what `unique_by_key` takes but for types and operator.

    On a GPU:

    >>> kiln.make_unique_by_key("int32").device
    0
    """
    return _unique(type_name(key), type_name(value) if value is not None else None, as_op(op), device, timeout=timeout)


def make_transform(source: ItemType, to: ItemType, op: Operator, *, device: int = 0, timeout: float | None = None) -> _kiln.Transform:
    """A handle of `transform` for loops: compiled or found once, called with arrays on `device`.

    Types are names ("int32"), NumPy's, torch's or `kiln.struct`; the handle takes what `transform` takes but for types and operator.

    On a GPU:

    >>> kiln.make_transform("int32", "float32", "a * 0.5f").device
    0
    """
    return _transform(type_name(source), type_name(to), as_op(op), device, timeout=timeout)


def make_gather(type: ItemType, index: ItemType = "int32", *, device: int = 0, timeout: float | None = None) -> _kiln.Gather:
    """A handle of `gather` for loops: compiled or found once, called with arrays on `device`.

    Types are names ("int32"), NumPy's, torch's or `kiln.struct`; the handle takes what `gather` takes but for types and operator.

    On a GPU:

    >>> kiln.make_gather("float32").device
    0
    """
    return _gather(type_name(type), type_name(index), device, timeout=timeout)


def _host() -> Any:
    from . import _host as here

    return here


def _run(handle: Any, inputs: tuple[Any, ...], outputs: dict[str, Any], **more: Any) -> Any:
    return _arrays.through(handle, inputs, outputs, more)


def _begin(x: Any, op: Operator, init: Any) -> Any:
    """Where a fold begins: at what changes nothing where nobody says otherwise. None: at 0, with own operators too."""
    by = as_op(op)
    if init is not None or by.form != "builtin" or by.name not in ("multiply", "min", "max", "bit_and"):
        return init
    type = _arrays.type_of(x)
    if type not in _SIZES:  # a record, or what will be refused
        return None
    assert isinstance(type, str)
    if type == "bfloat16":
        return {"multiply": b"\x80\x3f", "min": b"\x80\x7f", "max": b"\x80\xff"}.get(by.name)
    if type == "bool":
        return by.name != "max"
    if by.name == "multiply":
        return 1
    if type.startswith("float"):
        return {"min": float("inf"), "max": float("-inf")}.get(by.name)
    bits, signed = int(type.lstrip("uint")), type.startswith("int")
    if by.name == "bit_and":
        return -1 if signed else (1 << bits) - 1
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return most if by.name == "min" else least


def exclusive_scan(x: A, op: Operator = "plus", *, init: Any = None, out: A | None = None, stream: StreamLike | None = None, timeout: float | None = None) -> A:
    """out[i] = init (+) x[0] (+) ... (+) x[i - 1].

    `x`: one dimension, of any library; `op`: a built-in operator, text of `a` and `b`, a lambda or `kiln.op`; `init`: where it begins. Unless it
    is given, built-in operators begin at what changes nothing (0; 1 of products; the largest number of minima), own ones and handles at 0; `out`: an array to write to; `stream`: an int or anything with `__cuda_stream__`;
    `timeout`: seconds, for kernels that must be compiled first; on the CPU it does not count.

    >>> kiln.exclusive_scan(numpy.array([3, 1, 2], "i4"), init=10).tolist()
    [10, 13, 14]
    """
    init = _begin(x, op, init)
    if _arrays.is_numpy(x) and _host().runs_here("exclusive_scan", as_op(op), stream, x=x, out=out):
        return _host().scan(False, x, as_op(op), init, out)
    handle = make_exclusive_scan(_arrays.type_of(x), op, device=_arrays.device_of(x), timeout=timeout)
    return _run(handle, (x,), {"out": out}, init=init, stream=stream)


def inclusive_scan(x: A, op: Operator = "plus", *, out: A | None = None, stream: StreamLike | None = None, timeout: float | None = None) -> A:
    """out[i] = x[0] (+) ... (+) x[i].

    The arguments are those of `exclusive_scan`.

    >>> kiln.inclusive_scan(numpy.array([3, 1, 2], "i4"), "max").tolist()
    [3, 3, 3]
    """
    if _arrays.is_numpy(x) and _host().runs_here("inclusive_scan", as_op(op), stream, x=x, out=out):
        return _host().scan(True, x, as_op(op), None, out)
    handle = make_inclusive_scan(_arrays.type_of(x), op, device=_arrays.device_of(x), timeout=timeout)
    return _run(handle, (x,), {"out": out}, stream=stream)


def reduce(x: A, op: Operator = "plus", *, init: Any = None, out: A | None = None, stream: StreamLike | None = None, timeout: float | None = None) -> A:
    """init (+) x[0] (+) ..., as an array of one item that stays where x is.

    The arguments are those of `exclusive_scan`.

    >>> kiln.reduce(numpy.array([3, 1, 2], "i4")).tolist()
    [6]
    """
    init = _begin(x, op, init)
    if _arrays.is_numpy(x) and _host().runs_here("reduce", as_op(op), stream, x=x, out=out):
        return _host().reduce(x, as_op(op), init, out)
    handle = make_reduce(_arrays.type_of(x), op, device=_arrays.device_of(x), timeout=timeout)
    return _run(handle, (x,), {"out": out}, init=init, stream=stream)


def reduce_sync(x: A, op: Operator = "plus", *, init: Any = None, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """The same as a Python number; waits for it.

    >>> kiln.reduce_sync(numpy.array([3, 1, 2], "i4"), "min")
    1
    """
    return _arrays.first_item_sync(reduce(x, op, init=init, stream=stream, timeout=timeout))


def segmented_reduce(x: A, offsets: Any, op: Operator = "plus", *, init: Any = None, out: A | None = None, stream: StreamLike | None = None, timeout: float | None = None) -> A:
    """One result for each x[offsets[i]:offsets[i + 1]].

    `offsets`: integers of 32 or 64 bits, one more than there are segments; the others as of `reduce`.

    >>> kiln.segmented_reduce(numpy.array([3, 1, 2], "i4"), numpy.array([0, 2, 3])).tolist()
    [4, 2]
    """
    init = _begin(x, op, init)
    if _arrays.is_numpy(x) and _host().runs_here("segmented_reduce", as_op(op), stream, x=x, offsets=offsets, out=out):
        return _host().segmented_reduce(x, offsets, as_op(op), init, out)
    _arrays.want_array(offsets, "offsets")
    handle = make_segmented_reduce(_arrays.type_of(x), op, device=_arrays.device_of(x), timeout=timeout)
    return _run(handle, (x, offsets), {"out": out}, init=init, stream=stream)


def select(x: A, by: Operator | Any, *, out: A | None = None, count: Any = None, stream: StreamLike | None = None, timeout: float | None = None) -> tuple[A, Any]:
    """What satisfies an operator (`kiln.op("a > 0")`) or a mask: (kept, count).

    `by`: an operator of `a`, or an array of bool or bytes. `kept` has room for all; the first `count` items count, and `count` stays on the
    device. `select_sync` trims. `out`, `count`: arrays to write to.

    >>> kept, count = kiln.select(numpy.array([3, 1, 2], "i4"), numpy.array([True, False, True]))
    >>> kept[: int(count[0])].tolist()
    [3, 2]
    """
    told = isinstance(by, (Op, str, FunctionType))
    if _arrays.is_numpy(x) and _host().runs_here("select", as_op(by) if told else None, stream, x=x, mask=None if told else by, out=out, count=count):
        here: tuple[A, Any] = _host().select(x, by, out, count)
        return here
    if not told:
        _arrays.want_array(by, "the mask")
    handle = make_select(_arrays.type_of(x), by if told else None, device=_arrays.device_of(x), timeout=timeout)
    kept: tuple[A, Any] = _run(handle, (x, None if told else by), {"out": out, "count": count}, stream=stream)
    return kept


def select_sync(x: A, by: Operator | Any, *, stream: StreamLike | None = None, timeout: float | None = None) -> A:
    """The same, trimmed; waits once.

    >>> kiln.select_sync(numpy.array([3, 1, 2], "i4"), numpy.array([True, False, True])).tolist()
    [3, 2]
    """
    kept, count = select(x, by, stream=stream, timeout=timeout)
    return _arrays.first_items(kept, int(_arrays.first_item_sync(count)))


def lower_bound(sorted: A, queries: A, op: Operator = "less", *, out: Any = None, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """The first place of each query in `sorted` that keeps it in order.

    `sorted`, `queries`: of one type; `op`: the order they are in; `out`: int64 or int32. NaN has no place among numbers: as a query it comes
    first here and last in `upper_bound`, and in `sorted` it leaves the places of others unsettled.

    >>> kiln.lower_bound(numpy.array([1, 3, 3], "i4"), numpy.array([3, 9], "i4")).tolist()
    [1, 3]
    """
    if _arrays.is_numpy(sorted) and _host().runs_here("lower_bound", as_op(op), stream, sorted=sorted, queries=queries, out=out):
        return _host().bounds(False, sorted, queries, as_op(op), out)
    _arrays.want_array(queries, "queries")
    handle = make_lower_bound(_arrays.type_of(sorted, "sorted"), op, device=_arrays.device_of(sorted), timeout=timeout)
    return _run(handle, (sorted, queries), {"out": out}, stream=stream)


def upper_bound(sorted: A, queries: A, op: Operator = "less", *, out: Any = None, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """The last place of each query in `sorted` that keeps it in order.

    The arguments are those of `lower_bound`.

    >>> kiln.upper_bound(numpy.array([1, 3, 3], "i4"), numpy.array([3, 0], "i4")).tolist()
    [3, 0]
    """
    if _arrays.is_numpy(sorted) and _host().runs_here("upper_bound", as_op(op), stream, sorted=sorted, queries=queries, out=out):
        return _host().bounds(True, sorted, queries, as_op(op), out)
    _arrays.want_array(queries, "queries")
    handle = make_upper_bound(_arrays.type_of(sorted, "sorted"), op, device=_arrays.device_of(sorted), timeout=timeout)
    return _run(handle, (sorted, queries), {"out": out}, stream=stream)


def _want_values(values: Any, values_out: Any) -> None:
    if values is None and values_out is not None:
        raise wrong("values_out is for values, and none came: pass values, or leave it out")


def _with_values(keys_out: Any, values: Any, values_out: Any) -> dict[str, Any]:
    return {"out": keys_out} if values is None else {"out": keys_out, "values_out": values_out}


def _type_if_any(values: Any) -> ItemType | None:
    return None if values is None else _arrays.type_of(values, "values")


def radix_sort(keys: A, values: Any = None, *, descending: bool = False, out: A | None = None, values_out: Any = None,
               stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """Keys in order, with their values where there are any: stable.

    `keys`: numbers; `values`: as many, of any type; `out`, `values_out`: arrays to write to. Returns keys, or (keys, values).

    >>> keys, values = kiln.radix_sort(numpy.array([3, 1, 2], "i4"), numpy.array([30, 10, 20], "i8"))
    >>> keys.tolist(), values.tolist()
    ([1, 2, 3], [10, 20, 30])
    """
    _want_values(values, values_out)
    if _arrays.is_numpy(keys) and _host().runs_here("radix_sort", None, stream, keys=keys, values=values, out=out, values_out=values_out):
        return _host().sort(keys, values, as_op("greater" if descending else "less"), out, values_out, by_bits=True)
    handle = make_radix_sort(_arrays.type_of(keys, "keys"), _type_if_any(values), descending=descending, device=_arrays.device_of(keys), timeout=timeout)
    return _run(handle, (keys, values), _with_values(out, values, values_out), stream=stream)


def merge_sort(keys: A, values: Any = None, op: Operator = "less", *, out: A | None = None, values_out: Any = None,
               stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """Keys in the order of an operator, with their values where there are any: stable.

    `op`: whether `a` comes before `b`; the others as of `radix_sort`.

    >>> kiln.merge_sort(numpy.array([3, 1, 2], "i4"), op="greater").tolist()
    [3, 2, 1]
    """
    _want_values(values, values_out)
    if _arrays.is_numpy(keys) and _host().runs_here("merge_sort", as_op(op), stream, keys=keys, values=values, out=out, values_out=values_out):
        return _host().sort(keys, values, as_op(op), out, values_out)
    handle = make_merge_sort(_arrays.type_of(keys, "keys"), _type_if_any(values), op, device=_arrays.device_of(keys), timeout=timeout)
    return _run(handle, (keys, values), _with_values(out, values, values_out), stream=stream)


def unique_by_key(keys: A, values: Any = None, op: Operator = "equal", *, out: A | None = None, values_out: Any = None,
                  count: Any = None, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """The first of each run of equal keys: (keys, count) or (keys, values, count).

    `op`: whether two keys are equal. As with `select` there is room for all, and the first `count` items count.

    >>> keys, count = kiln.unique_by_key(numpy.array([1, 1, 2], "i4"))
    >>> keys[: int(count[0])].tolist()
    [1, 2]
    """
    _want_values(values, values_out)
    if _arrays.is_numpy(keys) and _host().runs_here("unique_by_key", as_op(op), stream, keys=keys, values=values, out=out, values_out=values_out, count=count):
        return _host().unique_by_key(keys, values, as_op(op), out, values_out, count)
    handle = make_unique_by_key(_arrays.type_of(keys, "keys"), _type_if_any(values), op, device=_arrays.device_of(keys), timeout=timeout)
    return _run(handle, (keys, values), {**_with_values(out, values, values_out), "count": count}, stream=stream)


def unique_by_key_sync(keys: A, values: Any = None, op: Operator = "equal", *, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """The same, trimmed; waits once.

    >>> kiln.unique_by_key_sync(numpy.array([1, 1, 2], "i4")).tolist()
    [1, 2]
    """
    *kept, count = unique_by_key(keys, values, op, stream=stream, timeout=timeout)
    n = int(_arrays.first_item_sync(count))
    return _arrays.first_items(kept[0], n) if values is None else tuple(_arrays.first_items(k, n) for k in kept)


@overload
def transform(x: A, op: Operator, *, to: None = None, out: A | None = None, stream: StreamLike | None = None, timeout: float | None = None) -> A: ...
@overload
def transform(x: Any, op: Operator, *, to: ItemType, out: Any = None, stream: StreamLike | None = None, timeout: float | None = None) -> Any: ...


def transform(x: Any, op: Operator, *, to: ItemType | None = None, out: Any = None, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """An operator of `a` for each item.

    `to`: the type of the results, that of `x` unless given.

    On a GPU:

    >>> kiln.transform(numpy.array([3, 1, 2], "i4"), "a * 2").tolist()
    [6, 2, 4]
    """
    if _arrays.is_numpy(x):
        _host().runs_here("transform", as_op(op), stream, x=x, out=out)  # never: its operators are one's own
    source = _arrays.type_of(x)
    return _run(make_transform(source, to or source, op, device=_arrays.device_of(x), timeout=timeout), (x,), {"out": out}, stream=stream)


def gather(x: A, index: Any, *, out: A | None = None, stream: StreamLike | None = None, timeout: float | None = None) -> A:
    """out[i] = x[index[i]].

    `index`: integers of 32 or 64 bits.

    >>> kiln.gather(numpy.array([3, 1, 2], "i4"), numpy.array([2, 0], "i4")).tolist()
    [2, 3]
    """
    if _arrays.is_numpy(x) and _host().runs_here("gather", None, stream, x=x, index=index, out=out):
        return _host().gather(x, index, out)
    handle = make_gather(_arrays.type_of(x), _arrays.type_of(index, "index"), device=_arrays.device_of(x), timeout=timeout)
    return _run(handle, (x, index), {"out": out}, stream=stream)
