# SPDX-License-Identifier: Apache-2.0
"""Every test and file that docs/measurements/adoption.md names for one of its points is there: named_tests.py CTEST BUILD SOURCE."""

import fnmatch
import pathlib
import re
import subprocess
import sys

ctest, build, source = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
listed = subprocess.run([ctest, "--test-dir", build, "-N"], check=True, capture_output=True, text=True).stdout
tests = re.findall(r"^ *Test +#\d+: (\S+)", listed, re.M)
if any(test.endswith("NOT_BUILT") for test in tests):
    print("some tests are not built")
    sys.exit(77)
rows = re.findall(r"^\| (\d+) [ABC] \|(.*)\|$", (source / "docs/measurements/adoption.md").read_text(), re.M)
wrong = [] if [int(number) for number, _ in rows] == list(range(1, 36)) else [f"the points are {[n for n, _ in rows]}"]
for number, row in rows:
    for name in re.findall(r"`([^`]+)`", row.split(" | ")[-1]):
        # Device tests are known to CTest only where the driver is.
        is_test = re.match(r"(unit|cli|process|policy|install|compile)\.", name)
        if "/" in name and not (source / name).exists():
            wrong.append(f"point {number}: no file {name}")
        if is_test and not any(fnmatch.fnmatch(test, name) for test in tests):
            wrong.append(f"point {number}: no test {name}")
if wrong:
    sys.exit("docs/measurements/adoption.md: " + "; ".join(wrong))
print(f"{len(rows)} points, {len(tests)} tests")
