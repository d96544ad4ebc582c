# SPDX-License-Identifier: Apache-2.0
"""Tropical products with gradients, as torch.matmul: the only module of the package that imports torch.

Inside torch.compile they are operators of torch's own kind (torch.ops.kiln), with fake kernels and gradients, so that whole graphs
are captured; outside it, nothing of that is paid for.
"""

from __future__ import annotations

from typing import Any, Optional

import torch

from . import _kiln
from .tropical import _shape


def _run(a: torch.Tensor, b: torch.Tensor, semiring: str, winners: bool) -> tuple[torch.Tensor, torch.Tensor | None]:
    shape = _shape(a, b)
    out = torch.empty(shape, dtype=a.dtype, device=a.device)
    won = torch.empty(shape, dtype=torch.int32, device=a.device) if winners else None
    with torch.no_grad():
        _kiln.tropical_product(semiring, a.detach(), b.detach(), out, won, None, None)
    return out, won


def _run_backward(g: torch.Tensor, won: torch.Tensor, a: torch.Tensor, b: torch.Tensor, semiring: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Of every member of a batch, also where `a` or `b` is one matrix for all of them."""
    batch = tuple(g.shape[:-2])
    da = torch.empty((*batch, *a.shape[-2:]), dtype=g.dtype, device=g.device)
    db = torch.empty((*batch, *b.shape[-2:]), dtype=g.dtype, device=g.device)
    left, right = (f.detach().expand(*batch, *f.shape[-2:]).contiguous() for f in (a, b)) if semiring == "max_mul" else (None, None)
    with torch.no_grad():
        _kiln.tropical_backward(semiring, g.contiguous(), won, left, right, da, db, None, None)
    return da, db


def _as_shaped(gradient: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Of a matrix that all members share, their sum."""
    extra = gradient.dim() - like.dim()
    return gradient.sum(dim=tuple(range(extra))) if extra > 0 else gradient


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor, semiring: str) -> torch.Tensor:
        needed = any(ctx.needs_input_grad[:2])
        out, won = _run(a, b, semiring, needed)
        ctx.semiring = semiring
        if needed:
            ctx.save_for_backward(won, a, b)
        return out

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None, None]:
        won, a, b = ctx.saved_tensors
        da, db = _run_backward(g, won, a, b, ctx.semiring)
        return _as_shaped(da, a), _as_shaped(db, b), None


# ---- For torch.compile ---------------------------------------------------------------------------------------------------


def _traced_product(a: torch.Tensor, b: torch.Tensor, semiring: str) -> tuple[torch.Tensor, torch.Tensor]:
    out, won = _run(a, b, semiring, winners=True)
    assert won is not None
    return out, won


def _fake_product(a: torch.Tensor, b: torch.Tensor, semiring: str) -> tuple[torch.Tensor, torch.Tensor]:
    batch = a.shape[:-2] if a.dim() > 2 else b.shape[:-2]
    shape = (*batch, a.shape[-2], b.shape[-1])
    return a.new_empty(shape), a.new_empty(shape, dtype=torch.int32)


def _fake_backward(g: torch.Tensor, won: torch.Tensor, a: torch.Tensor, b: torch.Tensor, semiring: str) -> tuple[torch.Tensor, torch.Tensor]:
    return g.new_empty((*g.shape[:-2], *a.shape[-2:])), g.new_empty((*g.shape[:-2], *b.shape[-2:]))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    a, b, ctx.semiring = inputs
    ctx.save_for_backward(output[1], a, b)
    ctx.mark_non_differentiable(output[1])


def _traced_gradients(ctx: Any, g: torch.Tensor, _: Optional[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor, None]:
    won, a, b = ctx.saved_tensors
    da, db = torch.ops.kiln.tropical_backward(g, won, a, b, ctx.semiring)
    return _as_shaped(da, a), _as_shaped(db, b), None


def _register() -> None:
    product = torch.library.custom_op("kiln::tropical_product", _traced_product, mutates_args=(),
                                      schema="(Tensor a, Tensor b, str semiring) -> (Tensor, Tensor)")
    product.register_fake(_fake_product)
    product.register_autograd(_traced_gradients, setup_context=_keep)
    backward = torch.library.custom_op("kiln::tropical_backward", _run_backward, mutates_args=(),
                                       schema="(Tensor g, Tensor won, Tensor a, Tensor b, str semiring) -> (Tensor, Tensor)")
    backward.register_fake(_fake_backward)


_register()


def _product(a: torch.Tensor, b: torch.Tensor, semiring: str) -> torch.Tensor:
    if torch.compiler.is_compiling():
        out: torch.Tensor = torch.ops.kiln.tropical_product(a, b, semiring)[0]
        return out
    result: torch.Tensor = _Product.apply(a, b, semiring)
    return result


def max_plus(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """C[i, j] = max over k of A[i, k] + B[k, j]"""
    return _product(a, b, "max_plus")


def min_plus(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """C[i, j] = min over k of A[i, k] + B[k, j]"""
    return _product(a, b, "min_plus")


def max_mul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """C[i, j] = max over k of A[i, k] * B[k, j]"""
    return _product(a, b, "max_mul")
