#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds examples/in_cuda as its users would, against the build tree, with nvcc and no word about C++20 of its own, and runs
it: the right answer on a GPU, plain words where there is none."""

import os
import pathlib
import subprocess
import sys
import tempfile

import _building


def run(*command, **kwargs):
    command = [str(c) for c in command]
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, check=True, text=True, **kwargs)


def main():
    parser = _building.parser()
    parser.add_argument("example", type=pathlib.Path)
    parser.add_argument("--nvcc", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kiln-in-cuda-") as scratch:
        scratch = pathlib.Path(scratch)
        run(args.cmake, "-G", args.generator, "-S", args.example, "-B", scratch, f"-DCMAKE_CUDA_COMPILER={args.nvcc}",
            f"-DCMAKE_CXX_COMPILER={args.cxx}", f"-DCMAKE_CUDA_HOST_COMPILER={args.cxx}",
            f"-DCMAKE_PREFIX_PATH={args.build}", "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF",
            "-DCMAKE_CUDA_FLAGS=-Werror=all-warnings")
        run(args.cmake, "--build", scratch, "--verbose")
        said = run(scratch / "in_cuda", stdout=subprocess.PIPE,
                   env=os.environ | {"KILN_CACHE_DIR": str(scratch / "cache")}).stdout
    print(said, end="")
    if "expected 3500): right" not in said and "no GPU here" not in said:
        sys.exit("neither a right answer nor a word about the missing GPU")


if __name__ == "__main__":
    main()
