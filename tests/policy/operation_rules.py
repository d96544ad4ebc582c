#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An operation that breaks the rules of <kiln/runtime/operation.hpp> must not compile, and the compiler must say why.

    operation_rules.py COMPILER INCLUDE_DIR
"""

import subprocess
import sys

GOOD = """
#include <kiln/runtime/operation.hpp>
constexpr std::array variants{
    kiln::variant{.name = "gpu", .where = kiln::place::gpu, .needs = "some_unit"},
    kiln::variant{.name = "cpu", .where = kiln::place::cpu}};
constinit kiln::operation const good{"good", "tests", {.pairwise = 1}, variants};
"""
CASES = {
    "as it should be": (GOOD, None),
    "a GPU variant without units": (GOOD.replace(', .needs = "some_unit"', ""), "must declare the units it needs"),
    "no variant": (GOOD.replace(" variants", " some").replace(", variants", ", some") +
                   "constexpr std::array<kiln::variant, 0> variants{};\n"
                   'constinit kiln::operation const bad{"bad", "tests", {.pairwise = 1}, variants};\n',
                   "needs a variant"),
    "a variant without a name": (GOOD.replace('.name = "cpu", ', ""), "a variant needs a name"),
    "no pack": (GOOD.replace('"tests"', '""'), "a name and a pack are needed"),
}


def main():
    compiler, include = sys.argv[1:3]
    failures = 0
    for name, (text, complaint) in CASES.items():
        run = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-I", include, "-x", "c++", "-"],
                             input=text, text=True, capture_output=True)
        right = run.returncode == 0 if complaint is None else run.returncode != 0 and complaint in run.stderr
        print(f"{'ok  ' if right else 'FAIL'} {name}")
        if not right:
            failures += 1
            print(run.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
