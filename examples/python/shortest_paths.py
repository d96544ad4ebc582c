# SPDX-License-Identifier: Apache-2.0
"""Shortest paths as products over (min, +), the places they go through, and, with torch, how they change with each step's length."""

import numpy

import kiln

n = 60
step = numpy.random.default_rng(3).random((n, n), dtype="f4") + 0.1
numpy.fill_diagonal(step, 0)

shortest = step
for _ in range(6):  # of up to 2, 4, 8, ... steps
    shortest, by_way_of = kiln.tropical.product(shortest, shortest, "min_plus", winners="int32")
assert (shortest <= step).all() and numpy.allclose(shortest, kiln.tropical.product(shortest, shortest, "min_plus"))
print(f"from 0 to {n - 1}: {shortest[0, -1]:.3f}, by way of {by_way_of[0, -1]}")

try:
    import torch

    from kiln.torch import min_plus
except ImportError:
    print("no torch here, so no gradients")
else:
    length = torch.from_numpy(step).requires_grad_()
    min_plus(length, length)[0, -1].backward()
    print("of two steps, these make the way from 0 to the last:", length.grad.nonzero().tolist())
