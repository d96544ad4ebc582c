# SPDX-License-Identifier: Apache-2.0
"""Waves on a string, on the GPU: `waves.advance(before, now, next, 0.5)` with arrays of any library."""

from importlib.resources import files
from typing import Any

import kiln

kiln.add_bundle(files(__name__) / "waves.kiln")
kiln.configure(jit="forbid")

from .kernels import needs, step

needs.demand()


def advance(before: Any, now: Any, next: Any, c: float) -> None:
    """One step in time; queued on the arrays' stream."""
    n = len(now)
    step.kernel("step")((n + 255) // 256, 256, (n, c, before, now, next))
