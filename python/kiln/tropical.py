# SPDX-License-Identifier: Apache-2.0
"""Matrix products over other semirings, of arrays of any library, on the host or on a device; no autograd (kiln.torch has it)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _arrays, _kiln
from ._errors import InvalidArgument
from ._told import plainly

if TYPE_CHECKING:
    from ._protocols import StreamLike

SEMIRINGS = ("max_plus", "min_plus", "max_mul", "and_or", "plus_times")


def _shape(a: Any, b: Any) -> tuple[int, ...]:
    _arrays.want_array(a, "a")
    _arrays.want_array(b, "b")
    left, right = tuple(a.shape), tuple(b.shape)
    if len(left) < 2 or len(right) < 2 or left[-1] != right[-2]:
        raise InvalidArgument(f"product: a is {left}, b is {right}; they must be matrices, and a's columns as many as b's rows")
    if len(left) > 2 and len(right) > 2 and left[:-2] != right[:-2]:
        raise InvalidArgument(f"product: a is a batch of {left[:-2]}, b one of {right[:-2]}: they must be the same, or one of them a matrix")
    batch = left[:-2] if len(left) > 2 else right[:-2]
    return (*batch, left[-2], right[-1])


@plainly
def product(a: Any, b: Any, semiring: str = "max_plus", *, out: Any = None, winners: str | None = None, stream: StreamLike | None = None,
            timeout: float | None = None) -> Any:
    """C = A (x) B, as matmul: batched, transposed views uncopied. With winners="int32" or "int64", also the first k that won.

    `a`, `b`: matrices or batches of them, of one type, on the host or a device; `semiring`: one of SEMIRINGS. Arrays of the host are multiplied where Kiln
    decides (`kiln.execution`), and an event says where.

    >>> kiln.tropical.product(numpy.array([[0.0, 5.0]]), numpy.array([[7.0], [1.0]]), "min_plus").tolist()
    [[6.0]]
    """
    shape = _shape(a, b)
    if winners not in (None, "int32", "int64"):
        raise InvalidArgument(f"winners is {winners!r}; it can be 'int32' or 'int64', and None for none")
    is_given = out is not None
    if out is None:
        out = _arrays.empty(shape, a, type=str(_arrays.type_of(a)))
    _arrays.want_array(out, "out")
    if tuple(out.shape) != shape:
        raise InvalidArgument(f"out is {tuple(out.shape)}, the product is {shape}")
    won = _arrays.empty(shape, a, type=winners) if winners is not None else None
    _kiln.tropical_product(semiring, a, b, out, won, stream, timeout)
    if _arrays.is_jax(a):
        out, won = out if is_given and _arrays.is_numpy(out) else _arrays.to_jax(out), _arrays.to_jax(won)
    return out if won is None else (out, won)
