# SPDX-License-Identifier: Apache-2.0
"""Tropical products on the host, beside NumPy; test_torch.py has gradients."""

import kiln
import numpy
import pytest

RULES = {"max_plus": (numpy.add, numpy.max), "min_plus": (numpy.add, numpy.min), "max_mul": (numpy.multiply, numpy.max)}


def reference(a, b, semiring):
    combine, choose = RULES[semiring]
    return choose(combine(a[..., :, :, None], b[..., None, :, :]), axis=-2)


@pytest.mark.parametrize("semiring", RULES)
@pytest.mark.parametrize("type", ["float32", "float64"])
def test_products(semiring, type):
    make = numpy.random.default_rng(1)
    a, b = make.random((5, 7, 9)).astype(type), make.random((5, 9, 4)).astype(type)
    assert numpy.array_equal(kiln.tropical.product(a, b, semiring), reference(a, b, semiring))
    assert numpy.array_equal(kiln.tropical.product(a[0].T.copy().T, b[0], semiring), reference(a[0], b[0], semiring))
    assert numpy.array_equal(kiln.tropical.product(a, b[0], semiring), reference(a, b[:1], semiring))


def test_winners():
    a, b = numpy.random.default_rng(2).random((6, 8)), numpy.random.default_rng(3).random((8, 3))
    c, won = kiln.tropical.product(a, b, "min_plus", winners="int64")
    assert numpy.array_equal(won, numpy.argmin(a[:, :, None] + b[None], axis=1))
    assert won.dtype == numpy.int64


@pytest.mark.parametrize("a, b, words", [((2, 3), (4, 5), "columns"), ((3,), (3, 2), "matrices"), ((2, 3, 4), (5, 4, 2), "batch")])
def test_shapes_that_cannot_be(a, b, words):
    with pytest.raises(kiln.InvalidArgument, match=words):
        kiln.tropical.product(numpy.zeros(a, "f4"), numpy.zeros(b, "f4"))


def test_types_that_cannot_be():
    with pytest.raises(kiln.InvalidArgument, match="one type"):
        kiln.tropical.product(numpy.zeros((2, 2), "f4"), numpy.zeros((2, 2), "f8"))
    with pytest.raises(kiln.Unsupported, match="complex64"):
        kiln.tropical.product(numpy.zeros((2, 2), "c8"), numpy.zeros((2, 2), "c8"))
    with pytest.raises(TypeError, match="not an array"):
        kiln._kiln.tropical_product("max_plus", 1, 2, 3, None, None, None)


def told():
    return [(e["target"], e["reason"]) for e in kiln.events("dispatched") if e["unit"] == "tropical_product"][-1]


def test_where_it_runs_is_told():
    a = numpy.ones((4, 4), "f4")
    kiln.tropical.product(a, a)
    assert told() == ("cpu", "below-crossover")
    with kiln.execution("cpu"):
        kiln.tropical.product(a, a)
    assert told() == ("cpu", "asked")


def test_what_is_to_run_on_a_gpu_does():
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


def test_arrays_of_the_host_go_to_the_gpu_that_is_asked_for_and_come_back(fake_driver, python):
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


def test_what_a_gpu_has_no_room_for_runs_here_or_is_refused_before(fake_driver, python):
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
