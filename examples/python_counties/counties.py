# SPDX-License-Identifier: Apache-2.0
"""Counties and ten million points: which county is each point in, with Kiln and with GeoPandas, and a map of the counts.

    python counties.py counties.zip [--points 10000000] [--map counties.png] [--beside]

The file is anything GeoPandas reads, such as the Census Bureau's cb_2016_us_county_500k.zip, or an .xz of arrays as Kiln's tests
use it. --beside times GeoPandas' own join as well.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from typing import Any

import geopandas
import numpy
import packed

import kiln
from kiln import spatial

CONTIGUOUS = (-125.0, 24.0, -66.0, 50.0)


def read_counties(path: pathlib.Path) -> Any:
    if path.suffix != ".xz":
        return geopandas.read_file(path)
    return geopandas.GeoDataFrame(geometry=packed.shapes(path), crs="EPSG:4269")


def random_points(n: int) -> Any:
    rng = numpy.random.default_rng(2016)
    west, south, east, north = CONTIGUOUS
    return geopandas.GeoSeries.from_xy(rng.uniform(west, east, n), rng.uniform(south, north, n), crs="EPSG:4269")


def timed(what: str, call: Any) -> Any:
    begun, of_processor = time.perf_counter(), time.process_time()
    out = call()
    print(f"{what:44s} {time.perf_counter() - begun:7.2f} s, of a processor {time.process_time() - of_processor:7.2f} s")
    return out


def draw(counties: Any, counts: Any, total: int, to: pathlib.Path) -> None:
    import matplotlib
    from matplotlib.colors import LogNorm

    matplotlib.use("Agg")
    west, south, east, north = CONTIGUOUS
    some = counties.assign(points=counts)[counts > 0]
    low, high = (float(numpy.quantile(counts[counts > 0], q)) for q in (0.01, 0.99))
    axes = some.plot("points", figsize=(10, 5.6), cmap="viridis", norm=LogNorm(low, high), legend=True, legend_kwds={"shrink": 0.6})
    axes.set_xlim(west, east), axes.set_ylim(south, north)
    axes.set_axis_off()
    axes.set_title(f"Points in each county, of {total:,}")
    axes.figure.savefig(to, dpi=80, bbox_inches="tight")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("counties", type=pathlib.Path)
    arguments.add_argument("--points", type=int, default=10_000_000)
    arguments.add_argument("--map", type=pathlib.Path)
    arguments.add_argument("--beside", action="store_true")
    asked = arguments.parse_args()

    counties = read_counties(asked.counties)
    points = timed(f"{asked.points:,} points of GeoPandas", lambda: random_points(asked.points))
    dots = timed("their coordinates, taken over", lambda: spatial.geometries(points))
    areas = timed(f"{len(counties):,} counties, taken over", lambda: spatial.geometries(counties.geometry))
    first = timed("Kiln: the county of each point", lambda: spatial.join_first(dots, areas, "intersects"))
    first = first.numpy_sync() if isinstance(first, kiln.Array) else first
    counts = numpy.bincount(first[first >= 0], minlength=len(counties))
    print(f"{(first >= 0).sum():,} points are in a county; the most, {counts.max():,}, in county {counts.argmax()}")
    if asked.beside:
        frame = geopandas.GeoDataFrame(geometry=points)
        theirs = timed("GeoPandas: the same by sjoin", lambda: frame.sjoin(counties, predicate="intersects"))
        lowest = numpy.full(len(points), len(counties))
        numpy.minimum.at(lowest, theirs.index.to_numpy(), theirs["index_right"].to_numpy())
        assert numpy.array_equal(numpy.where(lowest == len(counties), -1, lowest), first), "the two do not agree"
        print("GeoPandas has the same county for every point")
    if asked.map:
        draw(counties, counts, asked.points, asked.map)


if __name__ == "__main__":
    main()
