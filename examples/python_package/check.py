# SPDX-License-Identifier: Apache-2.0
"""What the installed package needs is in its bundle; the compiler is forbidden."""

import kiln
import waves
from waves.kernels import step

image = step.artifact("sm_90").image
assert len(image) > 1000
assert [row["origin"] for row in kiln.status() if row["state"] == "ready"] == ["bundle"], str(kiln.status())
try:
    kiln.Unit("other", "__global__ void k() {}").artifact("sm_90")
    raise SystemExit("something was compiled")
except kiln.Forbidden as why:
    print("found in", waves.__name__ + ".kiln;", why)
