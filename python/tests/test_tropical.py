# SPDX-License-Identifier: Apache-2.0
"""Tropical products on the host, beside NumPy; test_torch.py has gradients."""

from typing import Any

import kiln
import numpy
import pytest
from conftest import Run

RULES = {"max_plus": (numpy.add, numpy.max), "min_plus": (numpy.add, numpy.min), "max_mul": (numpy.multiply, numpy.max)}


def reference(a: Any, b: Any, semiring: Any) -> Any:
    combine, choose = RULES[semiring]
    return choose(combine(a[..., :, :, None], b[..., None, :, :]), axis=-2)


@pytest.mark.parametrize("semiring", RULES)
@pytest.mark.parametrize("type", ["float32", "float64"])
def test_products(semiring: Any, type: Any) -> None:
    make = numpy.random.default_rng(1)
    a, b = make.random((5, 7, 9)).astype(type), make.random((5, 9, 4)).astype(type)
    assert numpy.array_equal(kiln.tropical.product(a, b, semiring), reference(a, b, semiring))
    assert numpy.array_equal(kiln.tropical.product(a[0].T.copy().T, b[0], semiring), reference(a[0], b[0], semiring))
    assert numpy.array_equal(kiln.tropical.product(a, b[0], semiring), reference(a, b[:1], semiring))


def test_winners() -> None:
    a, b = numpy.random.default_rng(2).random((6, 8)), numpy.random.default_rng(3).random((8, 3))
    c, won = kiln.tropical.product(a, b, "min_plus", winners="int64")
    assert numpy.array_equal(won, numpy.argmin(a[:, :, None] + b[None], axis=1))
    assert won.dtype == numpy.int64


@pytest.mark.parametrize("a, b, words", [((2, 3), (4, 5), "columns"), ((3,), (3, 2), "matrices"), ((2, 3, 4), (5, 4, 2), "batch")])
def test_shapes_that_cannot_be(a: Any, b: Any, words: Any) -> None:
    with pytest.raises(kiln.InvalidArgument, match=words):
        kiln.tropical.product(numpy.zeros(a, "f4"), numpy.zeros(b, "f4"))


class Says:
    """An array that says another shape than it has."""

    def __init__(self, real: Any, shape: Any) -> None:
        self.real, self.shape, self.dtype = real, shape, real.dtype

    def __dlpack__(self, **how: Any) -> Any:
        return self.real.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return 1, 0


@pytest.mark.parametrize("a, b, out", [
    (Says(numpy.ones((1, 3)), (3000, 3)), numpy.ones((3, 2)), numpy.empty((3000, 2))),
    (numpy.ones((3, 4)), Says(numpy.ones((1, 2)), (4, 2)), numpy.empty((3, 2))),
    (numpy.ones((3, 4)), Says(numpy.ones(8), (4, 2)), numpy.empty((3, 2))),
    (Says(numpy.ones((2, 3, 4)), (5, 3, 4)), numpy.ones((5, 4, 2)), numpy.empty((5, 3, 2))),
    (numpy.ones((5, 3, 4)), numpy.ones((4, 2)), Says(numpy.empty((1, 3, 2)), (5, 3, 2))),
    (numpy.ones((3000, 3)), numpy.ones((3, 2)), Says(numpy.empty((1, 2)), (3000, 2)))])
def test_shapes_are_those_of_the_memory(a: Any, b: Any, out: Any) -> None:
    with pytest.raises(kiln.InvalidArgument, match="product: a is float64"):
        kiln.tropical.product(a, b, out=out)


def test_what_runs_backwards() -> None:
    with pytest.raises(kiln.InvalidArgument, match="a runs backwards: pass a contiguous copy"):
        kiln.tropical.product(numpy.ones((3, 3))[::-1], numpy.ones((3, 3)))


def test_types_that_cannot_be() -> None:
    with pytest.raises(kiln.InvalidArgument, match="one type"):
        kiln.tropical.product(numpy.zeros((2, 2), "f4"), numpy.zeros((2, 2), "f8"))
    with pytest.raises(kiln.Unsupported, match="complex64"):
        kiln.tropical.product(numpy.zeros((2, 2), "c8"), numpy.zeros((2, 2), "c8"))
    with pytest.raises(TypeError, match="not an array"):
        kiln._kiln.tropical_product("max_plus", 1, 2, 3, None, None, None)


def told() -> Any:
    return [(e["target"], e["reason"]) for e in kiln.events("dispatched") if e["unit"] == "tropical_product"][-1]


def test_where_it_runs_is_told() -> None:
    a = numpy.ones((4, 4), "f4")
    kiln.tropical.product(a, a)
    assert told() == ("cpu", "below-crossover")
    with kiln.execution("cpu"):
        kiln.tropical.product(a, a)
    assert told() == ("cpu", "asked")


def test_what_is_to_run_on_a_gpu_does() -> None:
    a = numpy.random.default_rng(4).random((3, 5, 6)).astype("f4")
    with kiln.execution("gpu"):
        try:
            c, won = kiln.tropical.product(a.transpose(0, 2, 1), a[0], "min_plus", winners="int32")
        except kiln.NoDevice as why:
            assert "mode gpu" in str(why)
            return
    assert numpy.array_equal(c, reference(a.transpose(0, 2, 1), a[:1], "min_plus"))
    assert numpy.array_equal(won, numpy.argmin(a.transpose(0, 2, 1)[..., None] + a[0][None, None], axis=-2))
    assert told() == ("gpu", "asked")


def test_arrays_of_the_host_go_to_the_gpu_that_is_asked_for_and_come_back(fake_driver: str, python: Run) -> None:
    """Of a driver that computes nothing: what was in `out` is there again, its gaps and what is beside it too."""
    seen = python(fake_driver + """import kiln, numpy
whole = numpy.arange(40, dtype='f4').reshape(4, 10)
before = whole.copy()
a = numpy.ones((4, 6), 'f4')
with kiln.execution('gpu'): kiln.tropical.product(a.T, numpy.ones((4, 3), 'f4')[:, ::1], out=numpy.lib.stride_tricks.as_strided(whole, (6, 3), (24, 4)))
assert (whole == before).all()
moved = kiln.activity()
print([(e['target'], e['reason']) for e in kiln.events('dispatched') if e['unit'] == 'tropical_product'], moved['transfers_to_device'], moved['transfers_to_host'])
""").stdout
    assert seen == "[('gpu', 'asked')] 3 1\n"


def test_what_a_gpu_has_no_room_for_runs_here_or_is_refused_before(fake_driver: str, python: Run) -> None:
    seen = python(fake_driver + """import kiln, numpy
a = numpy.ones((512, 512), 'f4')
c, won = kiln.tropical.product(a, a, winners='int32')
assert (c == 2).all() and (won == 0).all()
print([(e['kind'], e['target'], e['reason'], e['detail'][:23]) for e in kiln.events() if e['unit'] == 'tropical_product'])
with kiln.execution('gpu'):
    try: kiln.tropical.product(a, a, winners='int32')
    except kiln.OutOfMemory as why: print(why)
print(kiln.activity()['transfers_to_device'])
""", KILN_FAKE_CUDA_FREE="3000000").stdout.splitlines()
    assert seen[0] == ("[('fell_back', 'cpu', 'no-room', 'the device has room for'), "
                       "('dispatched', 'cpu', 'no-room', 'auto -> cpu; f32 on hos')]")
    assert "mode gpu, but the device has room for" in seen[1] and "mode auto would run it on the CPU" in seen[1]
    assert seen[2] == "0"


def test_batches_of_any_strides() -> None:
    make = numpy.random.default_rng(5)
    a, b = make.random((3, 4)).astype("f4"), make.random((4, 2)).astype("f4")
    for shape in ((5,), (2, 3), (1, 5), (2, 1, 3)):
        many = make.random((*shape, 4, 2)).astype("f4")
        shared = numpy.broadcast_to(a, (*shape, 3, 4))
        assert numpy.array_equal(kiln.tropical.product(shared, many), reference(shared, many, "max_plus"))
        assert numpy.array_equal(kiln.tropical.product(shared, b), reference(shared, numpy.broadcast_to(b, many.shape), "max_plus"))
        c, won = kiln.tropical.product(shared, many[..., ::-1].copy()[..., ::-1][..., :1].copy(), winners="int64")
        assert c.shape == won.shape == (*shape, 3, 1)
    rows = make.random((4, 1, 3, 4)).astype("f4")
    for view in (rows[::2], rows[::-1], rows.transpose(1, 0, 2, 3)):
        assert numpy.array_equal(kiln.tropical.product(view, b), reference(view, numpy.broadcast_to(b, (*view.shape[:2], 4, 2)), "max_plus"))


def test_what_is_written_lies_over_nothing_else() -> None:
    a = numpy.random.default_rng(6).random((8, 8))
    before = a.copy()
    for out in (a, a.T, a[::-1]):
        with pytest.raises(kiln.InvalidArgument, match="overlap|rows in order"):
            kiln.tropical.product(a, a, "min_plus", out=out)
    wide = numpy.zeros((8, 20))
    wide[:, 10:18] = before
    for begin in (3, 10, 12):
        with pytest.raises(kiln.InvalidArgument, match="out and a overlap"):
            kiln.tropical.product(wide[:, 10:18], before, "min_plus", out=wide[:, begin : begin + 8])
    with pytest.raises(kiln.InvalidArgument, match="out and b overlap"):
        kiln.tropical.product(before, wide[:, 10:18], "min_plus", out=wide[:, 5:13])
    assert (a == before).all()
    left = kiln.tropical.product(wide[:, 10:18], before, "min_plus", out=wide[:, 2:10])  # beside each other in every row
    assert numpy.array_equal(left, reference(before, before, "min_plus"))


def test_an_output_is_no_place_twice() -> None:
    room = numpy.zeros((50, 2), "f4")
    out = numpy.lib.stride_tricks.as_strided(room, (300, 50, 2), (0, 8, 4))
    with pytest.raises(kiln.InvalidArgument, match="out overlaps itself"):
        kiln.tropical.product(numpy.ones((300, 50, 4), "f4"), numpy.ones((300, 4, 2), "f4"), out=out)
    between = numpy.zeros((5, 300, 2), "f4").transpose(1, 0, 2)  # one member between the rows of the other
    a, b = numpy.random.default_rng(7).random((2, 300, 5, 4)).astype("f4"), numpy.random.default_rng(8).random((300, 4, 2)).astype("f4")
    assert numpy.array_equal(kiln.tropical.product(a[0], b, out=between), reference(a[0], b, "max_plus"))


def test_masks_are_not_lost() -> None:
    masked = numpy.ma.masked_array([[1.0, -9999.0]], mask=[[False, True]])
    with pytest.raises(kiln.InvalidArgument, match="a is a masked array, and its mask would be lost"):
        kiln.tropical.product(masked, numpy.zeros((2, 1)), "min_plus")


def test_large_ones_come_in_pieces_and_are_the_same() -> None:
    make = numpy.random.default_rng(9)
    a, b = make.integers(0, 50, (3, 300, 520)).astype("i4"), make.integers(0, 50, (3, 520, 530)).astype("i4")
    for first, second in ((a, b), (a.transpose(0, 2, 1).copy().transpose(0, 2, 1), b), (a, b[0])):
        c, won = kiln.tropical.product(first, second, "min_plus", winners="int64")
        for i in range(3):
            right = second if second.ndim == 2 else second[i]
            for row in (0, 63, 64, 191, 192, 256, 299):
                sums = a[i, row][:, None] + right
                assert numpy.array_equal(c[i, row], sums.min(axis=0)) and numpy.array_equal(won[i, row], sums.argmin(axis=0))


def test_an_interrupt_does_not_wait_for_all_of_it(python: Run) -> None:
    python("""import os
os.environ['KILN_EXECUTION_MODE'] = 'cpu'
import kiln, numpy, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it begins in the background ignore it
a = numpy.random.rand(1600, 1600)
one = numpy.random.rand(100, 1600)
began = time.monotonic(); kiln.tropical.product(one, a); rows = time.monotonic() - began
sent = []
def interrupt():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.05, interrupt).start()
try:
    while True: kiln.tropical.product(a, a)  # on a machine that others use it may come in the second
except KeyboardInterrupt: late = time.monotonic() - sent[0]
assert late < 10 * rows, (late, rows)  # all of it: 16 times
""")


@pytest.mark.parametrize("a, words", [([[1.0]], "a is a list, not an array"), (None, "a is a NoneType, not an array")])
def test_what_is_no_array_is_named(a: Any, words: Any) -> None:
    with pytest.raises(TypeError, match=words):
        kiln.tropical.product(a, numpy.zeros((1, 1)))
    with pytest.raises(kiln.InvalidArgument, match="winners is True; it can be 'int32' or 'int64'"):
        kiln.tropical.product(numpy.zeros((1, 1)), numpy.zeros((1, 1)), winners=True)  # type: ignore[arg-type]
