# SPDX-License-Identifier: Apache-2.0
"""Tropical products with gradients, as torch.matmul: the only module of the package that imports torch."""

from __future__ import annotations

from typing import Any

import torch

from . import _kiln
from .tropical import _shape

_GRADIENTS = ("max_plus", "min_plus", "max_mul")


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor, semiring: str) -> torch.Tensor:
        shape = _shape(a, b)
        out = torch.empty(shape, dtype=a.dtype, device=a.device)
        needed = any(ctx.needs_input_grad[:2])
        winners = torch.empty(shape, dtype=torch.int32, device=a.device) if needed else None
        with torch.no_grad():
            _kiln.tropical_product(semiring, a.detach(), b.detach(), out, winners, None, None)
        ctx.semiring = semiring
        ctx.shapes = a.shape, b.shape
        if needed:
            ctx.save_for_backward(winners, *((a, b) if semiring == "max_mul" else ()))
        return out

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None, None]:
        winners, *factors = ctx.saved_tensors
        batch = tuple(g.shape[:-2])
        g = g.contiguous()
        a_shape, b_shape = ctx.shapes
        da = torch.empty((*batch, *a_shape[-2:]), dtype=g.dtype, device=g.device)
        db = torch.empty((*batch, *b_shape[-2:]), dtype=g.dtype, device=g.device)
        a, b = (f.detach().expand(*batch, *f.shape[-2:]).contiguous() for f in factors) if factors else (None, None)
        _kiln.tropical_backward(ctx.semiring, g, winners, a, b, da, db, None, None)
        if len(a_shape) == 2 and batch:
            da = da.sum(dim=tuple(range(len(batch))))
        if len(b_shape) == 2 and batch:
            db = db.sum(dim=tuple(range(len(batch))))
        return da, db, None


def _product(a: torch.Tensor, b: torch.Tensor, semiring: str) -> torch.Tensor:
    return _Product.apply(a, b, semiring)


def max_plus(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """C[i, j] = max over k of A[i, k] + B[k, j]"""
    return _product(a, b, "max_plus")


def min_plus(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """C[i, j] = min over k of A[i, k] + B[k, j]"""
    return _product(a, b, "min_plus")


def max_mul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """C[i, j] = max over k of A[i, k] * B[k, j]"""
    return _product(a, b, "max_mul")
