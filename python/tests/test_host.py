# SPDX-License-Identifier: Apache-2.0
"""Primitives of NumPy's arrays on the CPU: what a GPU gives, where there is none or it is not wanted."""

from collections.abc import Callable, Iterator
from typing import Any

import kiln
import numpy
import pytest


@pytest.fixture(autouse=True)
def on_the_cpu() -> Iterator[Any]:
    with kiln.execution("cpu"):
        yield


HOST = numpy.random.default_rng(6).integers(-100, 100, 5001).astype("i4")


def test_all() -> None:
    x, values = HOST, numpy.arange(HOST.size, dtype="i4")
    ordered = numpy.sort(x)
    assert numpy.array_equal(kiln.inclusive_scan(x), numpy.cumsum(x, dtype="i4"))
    assert numpy.array_equal(kiln.exclusive_scan(x, init=5), 5 + numpy.concatenate([[0], numpy.cumsum(x)[:-1]]))
    assert numpy.array_equal(kiln.inclusive_scan(x, "max"), numpy.maximum.accumulate(x))
    assert (kiln.reduce_sync(x), kiln.reduce_sync(x, "min", init=-500)) == (x.sum(), -500)
    offsets = numpy.array([0, 10, 10, 5001])
    assert kiln.segmented_reduce(x, offsets).tolist() == [x[:10].sum(), 0, x[10:].sum()]
    assert numpy.array_equal(kiln.select_sync(x, x > 0), x[x > 0])
    assert numpy.array_equal(kiln.lower_bound(ordered, x), numpy.searchsorted(ordered, x))
    assert numpy.array_equal(kiln.upper_bound(ordered, x), numpy.searchsorted(ordered, x, "right"))
    keys, carried = kiln.radix_sort(x, values)
    assert numpy.array_equal(keys, ordered) and numpy.array_equal(carried, numpy.argsort(x, kind="stable"))
    keys, carried = kiln.merge_sort(x, values, "greater")
    assert numpy.array_equal(keys, ordered[::-1]) and numpy.array_equal(carried, numpy.argsort(-x, kind="stable"))
    assert numpy.array_equal(kiln.unique_by_key_sync(ordered), numpy.unique(x))
    assert numpy.array_equal(kiln.gather(x, values[::-1]), x[::-1])
    assert kiln.inclusive_scan(x).dtype == numpy.int32


def test_what_nobody_began_begins_at_what_changes_nothing() -> None:
    for type in ("i1", "u2", "i4", "u8", "f2", "f8"):
        x = numpy.array([7, 3, 5], type)
        assert [kiln.reduce_sync(x, op) for op in ("plus", "multiply", "min", "max")] == [15, 105, 3, 7]
        assert kiln.exclusive_scan(x, "min").tolist()[1:] == [7, 3] and kiln.segmented_reduce(x, numpy.array([0, 2, 3]), "multiply").tolist() == [21, 5]
    assert kiln.reduce_sync(numpy.array([6, 3], "u1"), "bit_and") == 2
    assert kiln.reduce_sync(numpy.array([], "i4"), "min") == 2**31 - 1


NO_INIT_AND_ONE: tuple[dict[str, Any], ...] = ({}, {"init": 3})


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "int64"])
def test_segments_are_reduced_as_each_would_be(dtype: Any) -> None:
    random = numpy.random.default_rng(1)
    x, offsets = random.integers(0, 9, 500).astype(dtype), numpy.sort(random.integers(0, 501, 80))  # some of them empty
    with kiln.execution("cpu"):
        for op in ("plus", "min", "max", "multiply"):
            for more in NO_INIT_AND_ONE:
                each = [kiln.reduce(x[a:b], op, **more)[0] for a, b in zip(offsets[:-1], offsets[1:])]
                got = kiln.segmented_reduce(x, offsets, op, **more)
                assert got.dtype == x.dtype and got.tolist() == each, (op, more)
        assert kiln.segmented_reduce(x[:0], numpy.array([0, 0, 0]), "min", init=4).tolist() == [4, 4]
        assert kiln.segmented_reduce(x, numpy.array([7])).tolist() == []


def test_integers_wrap_around_and_nans_lose() -> None:
    assert kiln.inclusive_scan(numpy.array([100, 100], "i1")).tolist() == [100, -56]
    assert kiln.reduce_sync(numpy.array([numpy.nan, 2, 1]), "max") == 2


@pytest.mark.parametrize("n", [0, 1])
def test_little(n: Any) -> None:
    x = numpy.arange(n, dtype="i4") + 3
    assert kiln.inclusive_scan(x).tolist() == x.tolist() and kiln.exclusive_scan(x, init=7).tolist() == [7] * n
    assert kiln.reduce_sync(x) == x.sum() and kiln.radix_sort(x).tolist() == x.tolist()
    assert kiln.unique_by_key_sync(x).tolist() == x.tolist()


def test_outputs_are_written_to() -> None:
    out = numpy.zeros(HOST.size, "i4")
    assert kiln.inclusive_scan(HOST, out=out) is out and out[-1] == HOST.sum()


def test_it_is_told() -> None:
    kiln.inclusive_scan(HOST)
    last = [e for e in kiln.events("dispatched") if e["unit"] == "inclusive_scan"][-1]
    assert (last["target"], last["reason"]) == ("cpu", "the execution mode is cpu")


def test_operators_of_ones_own_need_a_gpu() -> None:
    for call in (lambda: kiln.inclusive_scan(HOST, "a + b + 1"), lambda: kiln.select(HOST, "a > 0"), lambda: kiln.transform(HOST, "a * 2")):
        with pytest.raises(kiln.Unsupported, match="operators of one's own are compiled for a GPU"):
            call()


REFUSED = [
    (lambda x: kiln.radix_sort(x.reshape(1, -1)), "2 dimensions"),
    (lambda x: kiln.reduce_sync(x.reshape(-1, 1)), "2 dimensions"),
    (lambda x: kiln.inclusive_scan(numpy.ma.array(x, mask=x > 0)), "mask would be lost"),
    (lambda x: kiln.inclusive_scan(x, out=numpy.empty(x.size, "i8")), "int64"),
    (lambda x: kiln.inclusive_scan(x, out=numpy.empty(3, "i4")), "3 items"),
    (lambda x: kiln.inclusive_scan(x, "less"), "'less' gives no item of two"),
    (lambda x: kiln.merge_sort(x, op="plus"), "'plus' is no order"),
    (lambda x: kiln.merge_sort(x, x[:5]), "5 values"),
    (lambda x: kiln.unique_by_key_sync(x, op="less"), "which keys are equal"),
    (lambda x: kiln.select_sync(x, "less"), "pass a mask"),
    (lambda x: kiln.select_sync(x, [True] * x.size), "is a list"),
    (lambda x: kiln.select_sync(x, x[:4] > 0), "4 items"),
    (lambda x: kiln.segmented_reduce(x, numpy.array([0, x.size + 1])), "never back"),
    (lambda x: kiln.segmented_reduce(x, numpy.array([0, 9, 4])), "never back"),
    (lambda x: kiln.segmented_reduce(x, numpy.array([-1, 4])), "never back"),
    (lambda x: kiln.gather(x, numpy.array([-1])), "from 0 to 5000"),
    (lambda x: kiln.gather(x, numpy.array([x.size])), "from 0 to 5000"),
    (lambda x: kiln.gather(x, x > 0), "integers"),
    (lambda x: kiln.reduce(x, init=1.7), "1.7 is no int32"),
    (lambda x: kiln.reduce(x, init=2**40), "init"),
    (lambda x: kiln.lower_bound(x, x.astype("f4")), "float32"),
    *[(lambda x, type=type: kiln.lower_bound(x, x, out=numpy.empty(x.size, type)), words + "; places are int32 or int64")
      for type, words in (("i1", "int8"), ("u1", "uint8"), ("?", "bool"), ("f2", "float16"), ("f8", "float64"), ("u4", "uint32"))],
    (lambda x: kiln.upper_bound(x, x, out=[0]), "out is a list"),
    (lambda x: kiln.lower_bound(x, x, "plus"), "'plus' is no order"),
    (lambda x: kiln.inclusive_scan(x, out=numpy.zeros(2 * x.size, "i4")[::2]), "out is not contiguous"),
    (lambda x: kiln.select(x, x), "mask is of int32; it must be of bool or 8-bit integers"),
    (lambda x: kiln.select(x, x.astype("f8")), "mask is of float64"),
    (lambda x: kiln.select(x, x > 0, count=numpy.zeros(1, "f4")), "count has 1 items of float32"),
    (lambda x: kiln.gather(x, numpy.zeros(1, "u1")), "index: items of uint8; they must be integers of 32 or 64 bits"),
    (lambda x: kiln.radix_sort(x, values_out=x), "values_out is for values"),
    (lambda x: kiln.inclusive_scan(numpy.int32(3)), "x is a int32; pass an array of NumPy's$"),
    *[(lambda x, sort=sort: sort(x, x, out=(o := numpy.zeros(2 * x.size, "i4"))[: x.size], values_out=o[x.size - 1 : -1]), "out and values_out overlap")
      for sort in (kiln.radix_sort, kiln.merge_sort, kiln.unique_by_key)],
    (lambda x: kiln.select(x.astype("i8"), x > 0, out=(o := numpy.zeros(x.size, "i8")), count=o[:1]), "out and count overlap"),
    (lambda x: kiln.unique_by_key(x, x.astype("i8"), values_out=(o := numpy.zeros(x.size, "i8")), count=o[-1:]), "values_out and count overlap"),
    *[(lambda x, op=op: kiln.reduce(x.astype("f4"), op), f"'{op}' has no meaning for float32") for op in ("bit_and", "bit_or", "bit_xor")],
    *[(lambda x, type=type, init=init: kiln.reduce(x.astype(type), init=init), f"init: {words} is no number")
      for type, init, words in (("f4", "5", "'5'"), ("f8", b"5", "b'5'"), ("f8", 1j, "1j"), ("f8", numpy.complex64(1), ".*"), ("f8", numpy.datetime64("NaT"), ".*NaT.*"),
                                ("f8", [1], r"\[1\]"), ("f4", object(), ".*object.*"))],
    (lambda x: kiln.reduce(x > 0, init=2**63), "init: 9223372036854775808 is no bool"),
    (lambda x: kiln.reduce(x.astype("f8"), init=10**400), "init: .* is no float64"),
    (lambda x: kiln.reduce(x, init=10**400), "init: .* is no int32"),
]


OVERLAPPING: dict[str, tuple[Callable[..., Any], str]] = {
    "inclusive_scan": (lambda x, o: kiln.inclusive_scan(x[:10], out=o), "out and x overlap"),
    "exclusive_scan": (lambda x, o: kiln.exclusive_scan(x[:10], init=3, out=o), "out and x overlap"),
    "reduce": (lambda x, o: kiln.reduce(x[:10], out=o), "out and x overlap"),
    "segmented_reduce": (lambda x, o: kiln.segmented_reduce(x[:10], numpy.array([0, 3, 9]), out=o), "out and x overlap"),
    "segmented_reduce, offsets": (lambda x, o: kiln.segmented_reduce(x[20:40], x[:10], out=o), "out and offsets overlap"),
    "select": (lambda x, o: kiln.select(x[:10], x[:10] > 0, out=o), "out and x overlap"),
    "lower_bound": (lambda x, o: kiln.lower_bound(x[:10], x[40:50], out=o), "out and sorted overlap"),
    "upper_bound": (lambda x, o: kiln.upper_bound(x[40:50], x[:10], out=o), "out and queries overlap"),
    "radix_sort": (lambda x, o: kiln.radix_sort(x[:10], out=o), "out and keys overlap"),
    "radix_sort, values": (lambda x, o: kiln.radix_sort(x[40:50], x[:10], values_out=o), "values_out and values overlap"),
    "merge_sort": (lambda x, o: kiln.merge_sort(x[40:50], x[:10], out=o), "out and values overlap"),
    "unique_by_key": (lambda x, o: kiln.unique_by_key(x[:10], out=o), "out and keys overlap"),
    "gather": (lambda x, o: kiln.gather(x[:10], numpy.arange(10), out=o), "out and x overlap"),
    "gather, index": (lambda x, o: kiln.gather(x[40:60], x[:10], out=o), "out and index overlap"),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_results_do_not_lie_over_what_is_read(name: Any) -> None:
    call, words = OVERLAPPING[name]
    x = numpy.arange(100, dtype="i4")
    before = x.copy()
    with pytest.raises(kiln.InvalidArgument, match=words):
        call(x, x[5:15])
    assert numpy.array_equal(x, before)
    call(x, x[60:80])  # beside it


def test_scans_may_be_in_place() -> None:
    for scan, expected in ((kiln.inclusive_scan, [1, 3, 6]), (kiln.exclusive_scan, [0, 1, 3])):
        x = numpy.array([1, 2, 3, 9], "i4")
        assert scan(x[:3], out=x[:3]) is not None and x.tolist() == [*expected, 9]
        x = numpy.array([1, 2, 3, 9], "i4")
        scan(x[:3], out=x)  # from the first item on
        assert x.tolist() == [*expected, 9]
    with pytest.raises(kiln.InvalidArgument, match="write to the same array or to another one"):
        kiln.inclusive_scan(x[::2], out=x[:2])
    pairs = numpy.arange(10, dtype="i4")
    assert kiln.inclusive_scan(pairs[:0], out=pairs[:0]).size == 0
    mask = numpy.ones(8, "u1")
    with pytest.raises(kiln.InvalidArgument, match="out and the mask overlap"):
        kiln.select(numpy.ones(8, "u1"), mask, out=mask)
    with pytest.raises(kiln.InvalidArgument, match="count and x overlap"):
        kiln.select(x := numpy.ones(8, "i8"), mask, count=x[2:3])


def test_nothing_is_written_where_anything_is_wrong() -> None:
    x, out = numpy.arange(5, dtype="i4"), numpy.full(5, 7, "i4")
    for call in (lambda: kiln.select(x, x > 1, out=out, count=numpy.zeros(1, "i4")), lambda: kiln.radix_sort(x, x, out=out, values_out=numpy.zeros(4, "i4")),
                 lambda: kiln.unique_by_key(x, x, out=out, values_out=numpy.zeros(5, "i8"))):
        with pytest.raises(kiln.InvalidArgument):
            call()
        assert out.tolist() == [7] * 5
    with pytest.raises(kiln.InvalidArgument, match="out has 3 items of int32, and 5 of int32 are written"):
        kiln.select(x, x > 3, out=out[:3])  # a GPU writes as it goes
    with pytest.raises(kiln.InvalidArgument, match="5 keys and 3 values"):
        kiln.unique_by_key(x, x[:3])


@pytest.mark.parametrize("call, words", REFUSED, ids=[words for _, words in REFUSED])
def test_what_a_gpu_would_not_take(call: Any, words: Any) -> None:
    with pytest.raises(kiln.InvalidArgument, match=words):
        call(HOST)


@pytest.mark.parametrize("convert, words", [(lambda x: x.astype("c16"), "complex128"), (lambda x: x.astype(">i4"), "byte order"),
                                            (lambda x: numpy.zeros(2, [("x", "f4"), ("y", "f4")]), "x has records, which 'plus' has no meaning for")])
def test_types_that_nothing_takes(convert: Any, words: Any) -> None:
    for call in (kiln.inclusive_scan, kiln.reduce_sync):
        with pytest.raises(kiln.Unsupported, match=words):
            call(convert(HOST))


@pytest.mark.parametrize("call", [lambda r: kiln.merge_sort(r), lambda r: kiln.radix_sort(r), lambda r: kiln.lower_bound(r, r), lambda r: kiln.upper_bound(r, r)])
def test_records_have_no_order_of_their_own(call: Any) -> None:
    with pytest.raises(kiln.Error, match="records"):
        call(numpy.zeros(2, [("x", "f4"), ("y", "f4")]))


def test_nothing_is_written_where_results_overlap() -> None:
    keys, out = numpy.array([3, 1, 2], "i4"), numpy.full(3, 7, "i4")
    with pytest.raises(kiln.InvalidArgument):
        kiln.radix_sort(keys, keys, out=out, values_out=out)
    assert out.tolist() == [7, 7, 7]


@pytest.mark.parametrize("init", [2, 2.0, True, numpy.int64(2), numpy.float64(2), numpy.array(2, "u1"), numpy.float16(2)])
def test_numbers_that_a_fold_begins_with(init: Any) -> None:
    for type in ("i4", "f4", "f8"):
        assert kiln.reduce(numpy.ones(3, type), init=init).tolist() == [3 + int(init)]


def test_the_first_item_has_the_type_of_the_others() -> None:
    from kiln._arrays import item_bytes

    for given in (3, numpy.float64(3), numpy.int8(3), numpy.float32(3)):
        assert item_bytes(given, "float32") == numpy.float32(3).tobytes()
    assert item_bytes(numpy.int64(-3), "int32") == numpy.int32(-3).tobytes()
    with pytest.raises(kiln.InvalidArgument, match="does not fit"):
        item_bytes(numpy.int64(1 << 40), "int32")


def test_streams_are_looked_at_here_too() -> None:
    x = numpy.arange(3)
    calls = (lambda s: kiln.reduce(x, stream=s), lambda s: kiln.inclusive_scan(x, stream=s), lambda s: kiln.exclusive_scan(x, stream=s), lambda s: kiln.radix_sort(x, stream=s),
             lambda s: kiln.merge_sort(x, stream=s), lambda s: kiln.gather(x, x, stream=s), lambda s: kiln.select(x, x > 0, stream=s), lambda s: kiln.unique_by_key(x, stream=s),
             lambda s: kiln.lower_bound(x, x, stream=s), lambda s: kiln.upper_bound(x, x, stream=s), lambda s: kiln.segmented_reduce(x, x, stream=s),
             lambda s: kiln.tropical.product(numpy.ones((2, 2)), numpy.ones((2, 2)), stream=s), lambda s: kiln.spatial.area(["POINT (0 0)"], stream=s))
    for call in calls:
        with pytest.raises(TypeError, match="stream must be an int or an object with __cuda_stream__"):
            call("x")
        call(7)


def test_a_nan_has_a_place_of_every_order() -> None:
    """As of `a < b`, which is never true of it."""
    items = numpy.array([1.0, 2.0, 3.0])
    for op, sorted in (("less", items), ("greater", items[::-1].copy())):
        assert kiln.lower_bound(sorted, numpy.array([numpy.nan, 2.0]), op).tolist() == [0, 1]
        assert kiln.upper_bound(sorted, numpy.array([numpy.nan, 2.0]), op).tolist() == [3, 2]


@pytest.mark.parametrize("type", ["f2", "f4", "f8"])
def test_a_radix_sort_goes_by_bits(type: Any) -> None:
    """As on a GPU: 0 / 0 is a NaN with a sign on most processors, and comes first."""
    keys = numpy.copysign(numpy.array([numpy.nan, 1, numpy.nan, 0, 0, numpy.inf, numpy.inf], type), numpy.array([1, 1, -1, 1, -1, -1, 1], type))
    with kiln.execution("cpu"):
        for descending, order in ((False, [2, 5, 3, 4, 1, 6, 0]), (True, [0, 6, 1, 3, 4, 5, 2])):
            found, came = kiln.radix_sort(keys, numpy.arange(7), descending=descending)
            assert came.tolist() == order and found.tobytes() == keys[order].tobytes()


@pytest.mark.parametrize("type", ["i4", "f8", "u1"])
def test_places_in_what_goes_down(type: Any) -> None:
    down = numpy.sort(HOST.astype(type))[::-1].copy()
    asked = numpy.unique(HOST).astype(type)
    for i, q in zip(kiln.lower_bound(down, asked, "greater"), asked):
        assert (down[:i] > q).all() and (i == len(down) or not down[i] > q)
    for i, q in zip(kiln.upper_bound(down, asked, "greater", out=numpy.empty(len(asked), "i4")), asked):
        assert not (q > down[:i]).any() and (i == len(down) or q > down[i])


def test_what_is_no_array_is_named() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match="x is a list, not an array"):
        kiln.inclusive_scan([1])
    with pytest.raises(TypeError, match=r"x is a Series of pandas, not an array: pass x.to_numpy\(\)"):
        kiln.inclusive_scan(pandas.Series([1, 2]))
    with pytest.raises(TypeError, match="keys is a list, not an array"):
        kiln.radix_sort([1])


def test_classes_of_ones_own_are_arrays() -> None:
    class Own(numpy.ndarray):
        pass

    assert kiln.inclusive_scan(numpy.array([1, 2], "i4").view(Own)).tolist() == [1, 3]
