# SPDX-License-Identifier: Apache-2.0
"""Dissolves and circles on a GPU by Kiln's Python package, beside Shapely on many processes with the same rows.

    python bench/spatial/beside_shapely.py [--counties county2016.xz] [--processes 16] [--small]

Times are the least of five (Kiln, rows on the device, until the result is there) and of two (Shapely; rows are in its processes before
the clock starts, and results stay there: only their areas come back).
"""

from __future__ import annotations

import argparse
import multiprocessing
import pathlib
import sys
import time
from typing import Any

import numpy
import shapely
import torch

from kiln import spatial

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "examples/python_counties"))
import packed

ROWS: Any = None
KEYS: Any = None


def tiling(columns: int, lines: int, halvings: int) -> Any:
    """Quarrelsome squares: neighbours share borders that were bent again and again at random."""
    random = numpy.random.default_rng(3)
    pieces = 1 << halvings
    nodes = numpy.stack(numpy.meshgrid(numpy.arange(columns + 1.0), numpy.arange(lines + 1.0), indexing="ij"), -1)
    nodes[1:-1, 1:-1] += random.uniform(-0.15, 0.15, nodes[1:-1, 1:-1].shape)

    def bent(begin: Any, end: Any) -> Any:
        path = numpy.empty((*begin.shape[:2], pieces + 1, 2))
        path[:, :, 0], path[:, :, -1], height, step = begin, end, 0.1, pieces
        while step > 1:
            a, b = path[:, :, 0:pieces:step], path[:, :, step::step]
            aside = random.uniform(-height, height, a.shape[:3])[..., None] * numpy.stack([a[..., 1] - b[..., 1], b[..., 0] - a[..., 0]], -1)
            path[:, :, step // 2 :: step] = (a + b) / 2 + aside
            step, height = step // 2, height * 0.6
        return path

    level, upright = bent(nodes[:-1], nodes[1:]), bent(nodes[:, :-1], nodes[:, 1:])
    rings = numpy.concatenate([level[:, :-1, :-1], upright[1:, :, :-1], level[:, 1:, :0:-1], upright[:-1, :, ::-1]], 2)
    rings = rings.transpose(1, 0, 2, 3).reshape(columns * lines, -1, 2)
    return shapely.polygons(shapely.linearrings(rings))


def united(key: int) -> float:
    return float(shapely.area(shapely.union_all(ROWS[KEYS == key])))


def rounded(part: int) -> float:
    return float(shapely.area(shapely.buffer(ROWS[KEYS == part], 0.1, quad_segs=8)).sum())


def least(times: int, call: Any) -> tuple[float, Any]:
    seconds, out = [], None
    for _ in range(times):
        begun = time.perf_counter()
        out = call()
        seconds.append(time.perf_counter() - begun)
    return min(seconds), out


def compare(what: str, rows: Any, keys: int, processes: int, by_shapely: Any, by_kiln: Any) -> None:
    global ROWS, KEYS
    ROWS, KEYS = rows, (numpy.arange(len(rows)) * keys // len(rows)).astype("i4")
    # First, and by fork(): no driver is in the processes.
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        pool.map(len, ["warm"] * processes)
        theirs, parts = least(2, lambda: pool.map(by_shapely, range(keys), chunksize=1))
    there, key = spatial.geometries(rows).to_device(), torch.from_numpy(KEYS).cuda()

    def once() -> Any:
        out = by_kiln(there, key, keys)
        torch.cuda.synchronize()
        return out

    once()
    mine, out = least(5, once)
    area = float(shapely.area(spatial.to_shapely_sync(out)).sum())
    print(f"{what:44s} Kiln {mine * 1e3:9.2f} ms   Shapely, {processes} processes {theirs * 1e3:10.1f} ms   {theirs / mine:8.0f} times   areas differ by {abs(sum(parts) / area - 1):.1e}", flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--counties", type=pathlib.Path)
    asked.add_argument("--processes", type=int, default=16)
    asked.add_argument("--small", action="store_true", help="a hundredth of the work, to see that it runs")
    how = asked.parse_args()
    if how.counties:
        compare("counties by 56 keys", packed.shapes(how.counties), 56, how.processes, united, spatial.dissolve)
    side, halvings = (20, 5) if how.small else (100, 8)
    compare(f"tiling of {side * side * 4 << halvings:,} edges by 100 keys", tiling(side, side, halvings), 100, how.processes, united, spatial.dissolve)
    random = numpy.random.default_rng(1)
    many = 10_000 if how.small else 1_000_000
    compare(f"circles around {many:,} points", shapely.points(random.uniform(-180, 180, many), random.uniform(-90, 90, many)), 16 * how.processes,
            how.processes, rounded, lambda rows, key, keys: spatial.point_buffer(rows, 0.1))


if __name__ == "__main__":
    main()
