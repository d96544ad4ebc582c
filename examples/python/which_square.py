# SPDX-License-Identifier: Apache-2.0
"""Points and areas: which area is each point in, how many are in each, and which are near. examples/python_counties has real ones."""

import numpy

from kiln import spatial

areas = spatial.geometries(["POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))", "POLYGON ((2 0, 4 0, 4 2, 2 2, 2 0))", None])
x, y = numpy.random.default_rng(2).random((2, 10_000)) * 5
dots = spatial.points(x, y)  # not copied

pairs = spatial.join(dots, areas, "within")
left, right = pairs.left_sync(), pairs.right_sync()  # of NumPy, as frame.iloc takes them
assert (right == (x[left] > 2)).all()

inside = numpy.bincount(right, minlength=len(areas))
near = spatial.nearest(dots, areas, most=0.5)
print("points in each:", inside.tolist(), "- and within 0.5 of one of them:", len(set(near.left_sync().tolist())))
print("their areas:", numpy.asarray(spatial.area(areas)).tolist(), "- a missing row has none")
