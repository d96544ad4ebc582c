# SPDX-License-Identifier: Apache-2.0
"""Say at import what will be needed, and ask before it counts whether it is there."""

import asyncio

import kiln

scale = kiln.Unit("scale", 'template <class T> __global__ void scale(T* x, T by) { x[threadIdx.x] *= by; }', kernels=["scale<float>", "scale<double>"])
needs = kiln.requires("mylib.frame", [scale, "exclusive_scan_i32", kiln.spec("reduce", "float32", "max")])

needs.demand()  # never blocks; without a GPU it does nothing

# A plan is exact, and here for an architecture that need not be at hand.
report = kiln.Plan("frame", needs, archs=["sm_90"]).ensure_warm(120)  # seconds, for all of it
print(report)
assert report, [one.why for one in report.cold]


async def main() -> None:
    try:
        ready = await scale.get_async()
    except kiln.NoDevice:
        return
    print("loaded, while others worked:", ready.kernels)


asyncio.run(main())
