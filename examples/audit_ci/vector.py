# SPDX-License-Identifier: Apache-2.0
"""A small library with a GPU path and a CPU path. Somebody will break the first one day, and all its tests will still pass."""

import os

try:
    import cupy
except ImportError:
    cupy = None


def uses_gpu():
    return cupy is not None and os.environ.get("VECTOR_GPU", "1") != "0"


def total(values):
    return float(cupy.asarray(values).sum()) if uses_gpu() else float(sum(values))


def scaled(values, by):
    return [float(v) for v in cupy.asarray(values) * by] if uses_gpu() else [float(v * by) for v in values]
