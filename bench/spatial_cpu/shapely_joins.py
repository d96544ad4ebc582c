# SPDX-License-Identifier: Apache-2.0
"""shapely_joins.py FOLDER_OF_LAYERS: the joins of bench_spatial_cpu by Shapely, each in its best form on one thread: the index over whichever
side is faster, prepared geometries. Seconds of processor time; trees are part of it."""

import struct
import sys
import time

import numpy as np
import shapely

FOLDER = sys.argv[1]
ONLY = sys.argv[2] if len(sys.argv) > 2 else ""


def layer(name):
    raw = open(f"{FOLDER}/{name}.layer", "rb").read()
    rows, rings, vertices = struct.unpack_from("<3q", raw)
    at = 24
    row_first = np.frombuffer(raw, "<i4", rows + 1, at)
    at += 4 * (rows + 1)
    ring_first = np.frombuffer(raw, "<i4", rings + 1, at)
    at += 4 * (rings + 1)
    shell = np.frombuffer(raw, "u1", rings, at)
    at += rings
    xy = np.stack([np.frombuffer(raw, "<f8", vertices, at), np.frombuffer(raw, "<f8", vertices, at + 8 * vertices)], 1)
    all_rings = shapely.linearrings(xy, indices=np.repeat(np.arange(rings), np.diff(ring_first)))
    polygons = shapely.polygons(all_rings, indices=np.cumsum(shell) - 1)
    owner = np.repeat(np.arange(rows), np.diff(row_first))[shell == 1]
    return shapely.multipolygons(polygons, indices=owner)


def numbers(seed, n):
    """n numbers of a congruential generator, by doubling: x[i] is a^i seed + c (a^i - 1) / (a - 1)."""
    mask = (1 << 64) - 1
    a, c = 6364136223846793005, 1442695040888963407
    out = np.empty(n, np.uint64)
    out[0] = (seed * a + c) & mask
    step_a, step_c, have = a, c, 1
    with np.errstate(over="ignore"):
        while have < n:
            m = min(have, n - have)
            out[have:have + m] = out[:m] * np.uint64(step_a) + np.uint64(step_c)
            step_c = (step_c * step_a + step_c) & mask
            step_a = step_a * step_a & mask
            have += m
    return (out >> np.uint64(11)).astype(float) * 2.0**-53


def spread(v, a, b):
    return a + (b - a) * v


def points(n, e, seed):
    v = numbers(seed, 2 * n).reshape(n, 2)
    return shapely.points(spread(v[:, 0], e[0], e[2]), spread(v[:, 1], e[1], e[3]))


def lines(n, e, length, seed):
    v = numbers(seed, 4 * n).reshape(n, 4)
    x, y = spread(v[:, 0], e[0], e[2]), spread(v[:, 1], e[1], e[3])
    dx, dy = spread(v[:, 2], -length, length), spread(v[:, 3], -length, length)
    return shapely.linestrings(np.stack([np.stack([x, y], 1), np.stack([x + dx, y + dy], 1)], 1))


def squares(n, side, seed):
    v = numbers(seed, 2 * n).reshape(n, 2)
    return shapely.box(v[:, 0], v[:, 1], v[:, 0] + side, v[:, 1] + side)


def run(name, *forms):
    """The fastest of the forms."""
    if ONLY and name != ONLY:
        return
    best = None
    for form in forms:
        begin = time.process_time()
        pairs = form()
        took = time.process_time() - begin
        best = (took, pairs) if best is None or took < best[0] else best
    print(f"{name:28} {best[0]:9.3f} s {best[1]:10} pairs", flush=True)


def query(tree_of, asked, predicate):
    return lambda: shapely.STRtree(tree_of).query(asked(), predicate=predicate).shape[1]


def prepared(g):
    def fresh():
        g2 = g.copy()
        shapely.prepare(g2)
        return g2
    return fresh


WORLD, STATES, UNIT = (-180, -90, 180, 84), (-125, 25, -67, 49), (0, 0, 1, 1)
earth, old, now = layer("ne110"), layer("county2010"), layer("county2016")
on_earth, on_states = points(1 << 20, WORLD, 1), points(1 << 20, STATES, 2)
run("points_earth", query(on_earth, prepared(earth), "contains"))
run("points_counties", query(on_states, prepared(now), "contains"))
run("earth_earth", query(earth, prepared(earth), "intersects"))
run("counties_intersects", query(now, prepared(old), "intersects"), query(old, prepared(now), "intersects"))
run("counties_overlaps", query(now, prepared(old), "overlaps"))


def relate_all():
    left, right = shapely.STRtree(now).query(old, predicate="intersects")
    return len(shapely.relate(old[left], now[right]))


run("counties_relate", relate_all)
short = lines(100_000, STATES, 0.2, 3)
run("lines_counties", query(short, prepared(now), "intersects"), query(now, lambda: short, "intersects"))
some = squares(100_000, 0.005, 4)
run("squares_squares", query(some, lambda: some, "intersects"), query(some, prepared(some), "intersects"))
places, roads = points(100_000, UNIT, 5), lines(100_000, UNIT, 0.004, 6)
run("nearest_lines", lambda: shapely.STRtree(roads).query_nearest(places).shape[1])
run("nearest_points", lambda: shapely.STRtree(points(100_000, UNIT, 7)).query_nearest(places).shape[1])
run("dwithin_lines", lambda: shapely.STRtree(roads).query(places, predicate="dwithin", distance=0.003).shape[1],
    lambda: shapely.STRtree(places).query(roads, predicate="dwithin", distance=0.003).shape[1])
