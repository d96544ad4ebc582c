# SPDX-License-Identifier: Apache-2.0
"""Counties as Kiln's tests and benchmarks have them: arrays of numbers in an .xz."""

from __future__ import annotations

import io
import lzma
import pathlib
from typing import Any

import numpy
import shapely


def shapes(path: pathlib.Path) -> Any:
    """A multipolygon of shapely's for each county."""
    with numpy.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as arrays:
        xy = numpy.column_stack([numpy.cumsum(arrays[d].astype("i8")) for d in ("dx", "dy")]) / arrays["scale"][0]
        vertices, rings = arrays["ring_off"].astype("i8"), arrays["poly_ring"].astype("i8")
        shells = numpy.append(numpy.flatnonzero(arrays["shell"]), len(vertices) - 1)  # a shell begins a polygon
    return shapely.from_ragged_array(shapely.GeometryType.MULTIPOLYGON, xy, (vertices, shells, numpy.searchsorted(shells, rings)))
