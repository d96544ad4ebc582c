# SPDX-License-Identifier: Apache-2.0
"""Arrays as they come: of types nobody computes with, of other libraries, in any order, for reading only, from many threads, without a GPU."""

import array
import weakref
from collections.abc import Callable
from typing import Any

import kiln
import numpy
import pytest

X = numpy.array([3, 1, 2], "i4")


# ---- Without a GPU ----


@pytest.fixture
def no_gpu() -> None:
    try:
        kiln.devices()
    except kiln.NoDevice:
        return
    pytest.skip("there is a GPU")


class Lent:
    """An array of the host of a library nobody knows."""

    dtype = numpy.dtype("i4")
    shape = (3,)

    def __dlpack__(self, **how: Any) -> Any:
        return X.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return (1, 0)


OWN = kiln.op("a + b + 1")
NEED_A_GPU: dict[str, Callable[..., Any]] = {
    "exclusive_scan": lambda x: kiln.exclusive_scan(x, OWN), "inclusive_scan": lambda x: kiln.inclusive_scan(x, OWN), "reduce": lambda x: kiln.reduce(x, OWN),
    "segmented_reduce": lambda x: kiln.segmented_reduce(x, X, OWN), "select": lambda x: kiln.select(x, kiln.op("a > 0")), "lower_bound": lambda x: kiln.lower_bound(x, X, OWN),
    "upper_bound": lambda x: kiln.upper_bound(x, X, OWN), "merge_sort": lambda x: kiln.merge_sort(x, op=OWN), "unique_by_key": lambda x: kiln.unique_by_key(x, op=OWN),
    "transform": lambda x: kiln.transform(x, "a * 2"),
}
BUILT_IN: dict[str, Callable[..., Any]] = {
    "exclusive_scan": kiln.exclusive_scan, "inclusive_scan": kiln.inclusive_scan, "reduce": kiln.reduce, "segmented_reduce": lambda x: kiln.segmented_reduce(x, X),
    "select": lambda x: kiln.select(x, X > 1), "lower_bound": lambda x: kiln.lower_bound(x, X), "upper_bound": lambda x: kiln.upper_bound(x, X), "radix_sort": kiln.radix_sort,
    "merge_sort": kiln.merge_sort, "unique_by_key": kiln.unique_by_key, "gather": lambda x: kiln.gather(x, X),
}


def tells(why: Any, name: Any) -> None:
    said = str(why.value)
    assert said.startswith(f"{name}: ") and "there is none here (" in said and "\n" not in said, said
    assert ("NumPy" in said) and ("driver" in said or "CUDA_VISIBLE_DEVICES" in said), said


@pytest.mark.parametrize("name", NEED_A_GPU)
def test_operators_of_ones_own_say_what_is_missing(name: Any, no_gpu: None) -> None:
    for x in (X, Lent()):
        with pytest.raises(kiln.NoDevice) as why:
            NEED_A_GPU[name](x)
        tells(why, name)


@pytest.mark.parametrize("name", BUILT_IN)
def test_arrays_that_are_not_numpys_say_what_is_missing(name: Any, no_gpu: None) -> None:
    with pytest.raises(kiln.NoDevice) as why:
        BUILT_IN[name](Lent())
    tells(why, name)
    with kiln.execution("gpu"), pytest.raises(kiln.NoDevice) as why:
        BUILT_IN[name](X)
    tells(why, name)
    assert "the execution mode is gpu" in str(why.value)


MADE = {"exclusive_scan": "", "inclusive_scan": "", "reduce": "", "segmented_reduce": "", "select": "", "lower_bound": "", "upper_bound": "", "radix_sort": "",
        "merge_sort": "", "unique_by_key": "", "transform": ", 'int32', 'a'", "gather": ""}


@pytest.mark.parametrize("name", MADE)
def test_handles_say_what_is_missing(name: Any, no_gpu: None) -> None:
    with pytest.raises(kiln.NoDevice) as why:
        eval(f"kiln.make_{name}('int32'{MADE[name]})")
    tells(why, name)


WRONG: dict[str, Callable[..., Any]] = {
    "x is of complex128": lambda: kiln.reduce(X.astype("c16"), OWN), "x is of datetime64": lambda: kiln.inclusive_scan(X.astype("M8[s]"), OWN),
    "x is of object": lambda: kiln.transform(X.astype(object), "a"), "x has 2 dimensions": lambda: kiln.transform(X.reshape(1, -1), "a"),
    "out is a list": lambda: kiln.transform(X, "a", out=[1]), "queries is a list": lambda: kiln.lower_bound(X, [1], OWN),
    "the mask is a list, not an array": lambda: kiln.select(Lent(), [True]), "offsets is a str, not an array": lambda: kiln.segmented_reduce(Lent(), "x"),
    "queries is a list, not an array: pass numpy.asarray": lambda: kiln.lower_bound(Lent(), [1]), "x is a list, not an array: pass numpy.asarray": lambda: kiln.transform([1], "a"),
    "index is a list, not an array": lambda: kiln.gather(Lent(), [1]), "values is a tuple, not an array": lambda: kiln.radix_sort(Lent(), (1,)),
    "items of type 'complex64' are not known": lambda: kiln.make_reduce("complex64"), "there is no operator 'sum'": lambda: kiln.make_reduce("int32", "sum"),
    "device is a str": lambda: kiln.make_reduce("int32", device="cuda:0"), "stream must be an int": lambda: kiln.transform(X, "a", stream="s"), "types: 'flaot' is no pointer": lambda: kiln.Unit("k", "").kernel("k", types="flaot"),  # type: ignore[arg-type, call-overload]
    "timeout is a str": lambda: kiln.make_reduce("int32", timeout="1"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_told_before_the_driver_is_asked(words: Any, no_gpu: None) -> None:
    for mode in ("auto", "gpu"):
        with kiln.execution(mode), pytest.raises((TypeError, kiln.InvalidArgument, kiln.Unsupported)) as why:
            WRONG[words]()
        assert words in str(why.value) and "driver" not in str(why.value)


def test_names_of_other_libraries_lead_to_ours() -> None:
    for name, words in (("sum", r"that is kiln.reduce\(x\)"), ("cumsum", "that is kiln.inclusive_scan"), ("nosuch", "has no attribute 'nosuch'$")):
        with pytest.raises(AttributeError, match=words):
            getattr(kiln, name)


# ---- Types, orders, owners ----


@pytest.mark.parametrize("op", ["plus", "min", "max", "multiply", "bit_and"])
@pytest.mark.parametrize("type", ["c8", "c16", "M8[s]", "m8[s]", "O", "S3", "U3", "V4", "g", ">i4", ">f8"])
def test_types_that_nothing_computes_with(type: Any, op: Any) -> None:
    if numpy.dtype(type) == numpy.dtype("f8"):
        pytest.skip("a long double is a double here")
    with kiln.execution("cpu"):
        of_one: tuple[Callable[..., Any], ...] = (kiln.radix_sort, kiln.unique_by_key, lambda x: kiln.gather(x, X), lambda x: kiln.lower_bound(x, x), lambda x: kiln.select(x, numpy.ones(2, "?")))
        call: Callable[..., Any]
        for call in (kiln.reduce, kiln.inclusive_scan, kiln.exclusive_scan, lambda x, op: kiln.segmented_reduce(x, numpy.array([0, 2]), op)):
            with pytest.raises(kiln.Unsupported, match="x is of|in the other byte order"):
                call(numpy.zeros(2, type), op)
        for call in of_one:
            with pytest.raises(kiln.Unsupported, match="is of|in the other byte order"):
                call(numpy.zeros(2, type))


class Loud(numpy.ndarray):
    """A class with other ideas of sums."""

    def __array_ufunc__(self, *arguments: Any, **named: Any) -> None:
        raise AssertionError("it was asked")


def orders(x: Any) -> Any:
    """The same items, however they lie."""
    wide = numpy.zeros((len(x), 3), x.dtype)
    wide[:, 1] = x
    record = numpy.zeros(len(x), [("a", "i1"), ("x", x.dtype)])
    record["x"] = x
    shifted = numpy.frombuffer(b"." + x.tobytes(), x.dtype, offset=1)
    kept = x.copy()
    kept.flags.writeable = False
    return {"reversed": x[::-1].copy()[::-1], "column": wide[:, 1], "field": record["x"], "not aligned": shifted, "read-only": kept, "own class": x.copy().view(Loud)}


@pytest.mark.parametrize("how", orders(X))
def test_items_may_lie_anyhow(how: Any) -> None:
    x = orders(X)[how]
    with kiln.execution("cpu"):
        assert kiln.inclusive_scan(x).tolist() == [3, 4, 6] and kiln.exclusive_scan(x).tolist() == [0, 3, 4] and kiln.reduce_sync(x) == 6
        assert kiln.radix_sort(x, x)[1].tolist() == [1, 2, 3] and kiln.select_sync(x, numpy.array([1, 0, 1], "u1")).tolist() == [3, 2]
        assert kiln.lower_bound(numpy.sort(X), x).tolist() == [2, 0, 1] and kiln.gather(x, numpy.array([1, 1])).tolist() == [1, 1]
        assert kiln.segmented_reduce(x, numpy.array([0, 1, 3])).tolist() == [3, 3] and kiln.unique_by_key_sync(x).tolist() == [3, 1, 2]
        assert type(kiln.inclusive_scan(x)) is numpy.ndarray


@pytest.mark.parametrize("how, words", [("column", "not contiguous"), ("field", "not contiguous"), ("read-only", "cannot be written to")])
def test_results_go_where_they_can(how: Any, words: Any) -> None:
    with kiln.execution("cpu"), pytest.raises(kiln.InvalidArgument, match=words):
        kiln.inclusive_scan(X, out=orders(X)[how])


def test_doubles_that_are_not_aligned_are_told() -> None:
    from kiln import spatial

    shifted = numpy.frombuffer(bytes(33), "f8", offset=1)
    with pytest.raises(kiln.InvalidArgument, match="x has items of 8 bytes that do not begin at a multiple of that: pass a copy"):
        spatial.points(shifted, shifted)
    with pytest.raises(kiln.InvalidArgument, match="pass a copy"):
        kiln.tropical.product(shifted.reshape(2, 2), shifted.reshape(2, 2), "min_plus")


@pytest.mark.parametrize("make", ["pandas.Series([1, 2])", "pandas.array([1, None], dtype='Int64')", "pandas.Index([1, 2])", "pyarrow.array([1, 2])", "pyarrow.chunked_array([[1], [2]])",
                                  "pandas.Categorical(['a'])"])
def test_columns_are_no_arrays(make: Any) -> None:
    names = {name: pytest.importorskip(name) for name in ("pandas", "pyarrow") if name in make}
    calls: tuple[Callable[..., Any], ...] = (lambda x: kiln.reduce(x), lambda x: kiln.radix_sort(x), lambda x: kiln.reduce(x, "min"), lambda x: kiln.transform(x, "a"))
    for call in calls:
        with pytest.raises(TypeError, match=r"(x|keys) is a \w+ of (pandas|pyarrow), not an array: pass \w+.to_numpy\(\)"):
            call(eval(make, names))


def test_many_threads_at_once() -> None:
    import concurrent.futures

    from kiln import spatial

    def work(seed: Any) -> Any:
        x = numpy.random.default_rng(seed).integers(0, 100, 2000).astype("i4")
        ok = kiln.reduce_sync(x) == x.sum() and numpy.array_equal(kiln.radix_sort(x), numpy.sort(x))
        points = (x[:50].astype("f8"), x[50:100].astype("f8"))
        inside = spatial.join_count(points, ["POLYGON ((0 0, 50 0, 50 50, 0 50, 0 0))"], "intersects")
        return ok and inside.sum() == ((points[0] <= 50) & (points[1] <= 50)).sum() and len(kiln.events()) > 0

    with kiln.execution("cpu"), concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(200)))


class Fresh:
    """Makes what it lends anew each time, and has none of it itself."""

    dtype = numpy.dtype("f8")
    shape = (3,)

    def __dlpack__(self, **how: Any) -> Any:
        made = numpy.array([1.0, 2.0, 3.0])
        self.lent = weakref.ref(made)
        return made.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return (1, 0)


def test_what_is_lent_stays_where_it_is() -> None:
    """For as long as rows lie in it, whoever else has it; and no longer."""
    from kiln import spatial

    x, y = Fresh(), array.array("d", [4.0, 5.0, 6.0])
    rows = spatial.points(x, y)
    assert x.lent() is not None
    with pytest.raises(BufferError):
        y.append(7.0)
    assert rows.to_wkt_sync() == ["POINT (1 4)", "POINT (2 5)", "POINT (3 6)"]
    del rows
    for _ in range(1000):  # the interpreter lets go when it next can
        if x.lent() is None:
            break
    assert x.lent() is None
    y.append(7.0)


def test_arrays_of_jax_on_the_host() -> None:
    jax = pytest.importorskip("jax")
    here = jax.devices("cpu")[0]
    a, b = (jax.device_put(numpy.random.default_rng(seed).random((2, 5, 5), dtype="f4"), here) for seed in (1, 2))
    expected = (numpy.asarray(a)[:, :, :, None] + numpy.asarray(b)[:, None]).max(2)
    with kiln.execution("cpu"):
        c, won = kiln.tropical.product(a, b, winners="int32")
        assert [type(one) for one in (c, won)] == [type(a), type(a)] and numpy.array_equal(c, expected)
        assert numpy.array_equal(won, (numpy.asarray(a)[:, :, :, None] + numpy.asarray(b)[:, None]).argmax(2))
        out = numpy.zeros((2, 5, 5), "f4")
        assert kiln.tropical.product(a, b, out=out) is out and numpy.array_equal(out, expected)
        with pytest.raises(kiln.InvalidArgument, match="out cannot be written to"):
            kiln.tropical.product(a, b, out=a)


def test_one_number_is_no_column_of_keys() -> None:
    from kiln import spatial

    with pytest.raises(kiln.InvalidArgument, match=r"dissolve: key has shape \[\] and there are 1 rows"):
        spatial.dissolve(["POLYGON ((0 0, 1 0, 1 1, 0 0))"], numpy.array(5))


def test_strides_that_no_memory_has() -> None:
    import ctypes

    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

    class Wide:
        dtype, shape = numpy.dtype("f8"), (3, 3)

        def __init__(self, stride: int) -> None:
            self.items = numpy.zeros(9)
            self.words = (ctypes.c_int64 * 4)(3, 3, stride, 1)
            at = ctypes.addressof(self.words)
            self.tensor = (ctypes.c_uint64 * 8)(self.items.ctypes.data, 1, 2 | (2 | 64 << 8 | 1 << 16) << 32, at, at + 16, 0, 0, 0)

        def __dlpack__(self, **how: Any) -> Any:
            return new(ctypes.addressof(self.tensor), b"dltensor", None)

        def __dlpack_device__(self) -> Any:
            return (1, 0)

    for stride in (1 << 60, -(1 << 60), -(1 << 63)):
        with pytest.raises(kiln.InvalidArgument, match=f"a says that its items are {stride} apart in dimension 0"):
            kiln.tropical.product(Wide(stride), numpy.zeros((3, 3)), out=numpy.zeros((3, 3)))
    kiln.tropical.product(Wide(3), numpy.zeros((3, 3)), out=numpy.zeros((3, 3)))


def test_nothing_and_much() -> None:
    from kiln import spatial

    none = numpy.zeros(0, "i4")
    with kiln.execution("cpu"):
        assert [len(one) for one in (kiln.inclusive_scan(none), kiln.exclusive_scan(none), kiln.radix_sort(none), kiln.gather(none, none), kiln.lower_bound(none, none))] == [0] * 5
        assert kiln.lower_bound(none, X).tolist() == [0, 0, 0] and kiln.select_sync(none, numpy.zeros(0, "?")).size == 0 and kiln.unique_by_key_sync(none).size == 0
        assert kiln.segmented_reduce(none, numpy.zeros(3, "i8")).tolist() == [0, 0]
        with pytest.raises(kiln.InvalidArgument, match="index: there are no items to take"):
            kiln.gather(none, numpy.zeros(1, "i4"))
        same = numpy.broadcast_to(numpy.int8(1), 1 << 33)  # of one byte
        with pytest.raises(kiln.InvalidArgument, match="out has 3 items of int8, and 8589934592 of int8 are written"):
            kiln.inclusive_scan(same, out=numpy.zeros(3, "i1"))
    for call in (spatial.area, spatial.bounds, spatial.union_all, spatial.convex_hull, lambda rows: spatial.join(rows, rows), lambda rows: spatial.nearest(rows, ["POINT (0 0)"])):
        call([])
        call((numpy.zeros(0), numpy.zeros(0)))
