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
