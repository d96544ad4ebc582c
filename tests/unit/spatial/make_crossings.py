#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes crossings.txt: pairs of segments that cross, with the point where they do, rounded once from exact rationals."""

import random
from fractions import Fraction

random.seed(20)


def cross(ux, uy, vx, vy):
    return ux * vy - uy * vx


def crossing(s):
    ax, ay, bx, by, cx, cy, dx, dy = map(Fraction, s)
    below = cross(bx - ax, by - ay, dx - cx, dy - cy)
    if below == 0:
        return None
    t = cross(cx - ax, cy - ay, dx - cx, dy - cy) / below
    u = cross(cx - ax, cy - ay, bx - ax, by - ay) / below
    if not (0 < t < 1 and 0 < u < 1):
        return None
    return float(ax + (bx - ax) * t), float(ay + (by - ay) * t)  # a fraction becomes the nearest double, ties to even


def generic():
    return [random.uniform(-180, 180) for _ in range(8)]


def lattice():
    return [float(random.randint(0, 12)) for _ in range(8)]


def ties():
    # Halves between neighbouring doubles: large odd sums.
    base = float(2 ** 52)
    return [base + random.randint(0, 9) for _ in range(8)]


def nearly_parallel():
    a = [random.uniform(0, 1) for _ in range(4)]
    return [a[0], a[1], a[2], a[3], a[0], a[1] + 1e-14 * random.random(), a[2], a[3] - 1e-14 * random.random()]


def scaled():
    e = random.choice([-250, -100, 100, 300])
    return [x * 2.0 ** e for x in generic()]


def metres():
    x, y = random.uniform(4e5, 6e5), random.uniform(5.2e6, 5.4e6)
    return [v for _ in range(4) for v in (x + random.uniform(-20, 20), y + random.uniform(-20, 20))]


with open("crossings.txt", "w", encoding="ascii") as out:
    print("# ax ay bx by cx cy dx dy x y; made by make_crossings.py", file=out)
    for make in (generic, lattice, ties, nearly_parallel, scaled, metres):
        n = 0
        while n < 250:
            s = make()
            if p := crossing(s):
                print(*[float(v).hex() for v in [*s, *p]], file=out)
                n += 1
