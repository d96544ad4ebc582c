# SPDX-License-Identifier: Apache-2.0
"""Products with gradients: as functions, and inside torch.compile."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from kiln.torch import max_mul, max_plus, min_plus

PRODUCTS = {"max_plus": max_plus, "min_plus": min_plus, "max_mul": max_mul}
PLACES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
everywhere = pytest.mark.parametrize("place", PLACES)


def factors(place: Any, *shapes: Any, type: Any = torch.float64, needed: bool = True) -> Any:
    torch.manual_seed(4)
    return [torch.rand(*s, dtype=type, device=place, requires_grad=needed) for s in shapes]


@everywhere
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("shapes", [((4, 5), (5, 2)), ((3, 4, 5), (3, 5, 2)), ((3, 4, 5), (5, 2)), ((4, 5), (3, 5, 2))])
def test_gradients(name: Any, shapes: Any, place: Any) -> None:
    assert torch.autograd.gradcheck(PRODUCTS[name], factors(place, *shapes))


@everywhere
def test_transposed_and_strided(place: Any) -> None:
    a, b = factors(place, (5, 4), (2, 5), needed=False)
    assert torch.equal(max_plus(a.T, b.T), (a.T[:, :, None] + b.T[None]).amax(1))
    wide = torch.rand(4, 10, device=place, dtype=torch.float64)[:, :5]
    assert torch.equal(min_plus(wide, b.T), (wide[:, :, None] + b.T[None]).amin(1))


@everywhere
def test_gradients_are_not_lost(place: Any) -> None:
    import kiln

    a, b = factors(place, (4, 5), (5, 2))
    with pytest.raises(kiln.InvalidArgument, match="a requires a gradient, .* pass it detached, or use kiln.torch"):
        kiln.tropical.product(a, b, "min_plus")
    with torch.no_grad():
        assert torch.equal(kiln.tropical.product(a.detach(), b.detach(), "min_plus"), min_plus(a, b))


@everywhere
@pytest.mark.parametrize("name", PRODUCTS)
def test_the_operator_is_one_of_torchs_kind(name: Any, place: Any) -> None:
    for shapes in (((4, 5), (5, 2)), ((3, 4, 5), (5, 2))):
        a, b = factors(place, *shapes)
        torch.library.opcheck(torch.ops.kiln.tropical_product.default, (a, b, name))


@everywhere
@pytest.mark.parametrize("name", PRODUCTS)
def test_compiled(name: Any, place: Any) -> None:
    product = PRODUCTS[name]

    def step(a: Any, b: Any) -> Any:
        return (product(a * 2, b) + 1).relu().sum()

    a, b = factors(place, (3, 4, 5), (3, 5, 2))
    expected = step(a, b)
    wanted = torch.autograd.grad(expected, (a, b))
    found = torch.compile(step, fullgraph=True, backend="aot_eager")(a, b)
    assert torch.allclose(found, expected)
    for x, y in zip(torch.autograd.grad(found, (a, b)), wanted):
        assert torch.allclose(x, y)
