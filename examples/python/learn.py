# SPDX-License-Identifier: Apache-2.0
"""Write down what a program asks for, and have it made elsewhere: for another architecture, as a bundle."""

import pathlib
import tempfile

import kiln


def work() -> None:
    for name in ("first", "second"):
        kiln.Unit(name, f'extern "C" __global__ void {name}(int* x) {{ *x = 1; }}').artifact("sm_90")


with tempfile.TemporaryDirectory() as folder:
    profile, bundle = pathlib.Path(folder) / "app.profile", pathlib.Path(folder) / "app.kiln"
    with kiln.record(profile):
        work()
    print("asked for again:", kiln.replay(profile, archs=["sm_90"]))  # returns at once
    kiln.replay(profile, archs=["sm_100"], bundle=bundle)
    print(bundle.stat().st_size, "bytes for an architecture that need not be here")
