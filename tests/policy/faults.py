#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every id of docs/faults.md has a row, once, and every test it names exists.

    faults.py ROOT     prints what is missing; exit status 1 if anything is
"""

import pathlib
import re
import sys

IDS = {"W": 12, "C": 12, "P": 10, "V": 12, "T": 4, "N": 8, "G": 10, "R": 20, "B": 6}
TEST = re.compile(r"\b(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(\s*(\w+),\s*(\w+)\)")


def tests_of(root):
    out = set()
    for path in (root / "tests").rglob("*.[ch]pp"):
        for suite, name in TEST.findall(path.read_text(encoding="utf-8")):
            out.add(f"{suite}.{name}")
    return out


def named_in(page):
    """Names of tests: suite.name, or the beginning of one that ends with an ellipsis."""
    return [m for m in re.findall(r"`([a-z]\w*\.\w+…?|\w+_…)`", page)
            if not re.search(r"\.(py|cpp|hpp|md|sh)$", m)]


def main():
    root = pathlib.Path(sys.argv[1])
    page = (root / "docs/faults.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-Z]\d+)(?:–[A-Z]\d+)? \|", page.split("## Ids without a test")[0], re.MULTILINE)
    problems = [f"{i}: {rows.count(i)} rows" for letter, most in IDS.items() for i in
                (f"{letter}{n}" for n in range(1, most + 1)) if rows.count(i) != 1]
    known = tests_of(root)
    for name in named_in(page):
        start = name.rstrip("…")
        if not any(test.startswith(start) or test.split(".")[1].startswith(start) for test in known):
            problems.append(f"no test is called {name}")
    for problem in problems:
        print(f"docs/faults.md: {problem}")
    sys.exit(1 if problems else 0)


main()
