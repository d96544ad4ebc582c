# SPDX-License-Identifier: Apache-2.0
"""A running sum that stops at a limit: a scan by an operator nobody has compiled, and the same limit as a number that may change."""

import numpy

import kiln

steps = numpy.random.default_rng(1).integers(0, 10, 1000).astype("i4")
limit = numpy.int32(100)
capped = kiln.op(lambda a, b, s: min(a + b, s), s=limit)  # another limit is no other program

try:
    level = kiln.inclusive_scan(steps, capped)
except kiln.NoDevice as why:
    print(why)
    level = numpy.minimum(kiln.inclusive_scan(steps), limit)  # a built-in operator runs on the CPU as well
assert (level == numpy.minimum(numpy.cumsum(steps), limit)).all()
print("full after", int((level < limit).sum()), "steps; the largest step was", kiln.reduce_sync(steps, "max"))
