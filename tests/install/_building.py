# SPDX-License-Identifier: Apache-2.0
"""What tests that build a project against this build of Kiln are told by CTest."""

import argparse
import pathlib


def parser():
    out = argparse.ArgumentParser()
    out.add_argument("--build", type=pathlib.Path, required=True)
    out.add_argument("--cmake", default="cmake")
    out.add_argument("--generator", default="Ninja")
    out.add_argument("--cxx", default="c++")
    return out
