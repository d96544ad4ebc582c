#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What lives in other people's programs has no static of a function that is made at its first use. A child of fork() would wait, for ever, for
the thread of its parent that was just making it. A constant, or base::made_once, does what such a static would.
statics_of_functions.py FOLDER looks at every object file below it."""

import pathlib
import subprocess
import sys

MADE_AT_FIRST_USE = "guard variable for "


def main(folder):
    objects = sorted(pathlib.Path(folder).rglob("*.o"))
    if not objects:
        print(f"{folder}: no object files")
        return 1
    names = subprocess.run(["nm", "-C", *objects], check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
    found = sorted({line.split(MADE_AT_FIRST_USE)[1] for line in names if MADE_AT_FIRST_USE in line})
    for name in found:
        print(f"{name}: a child of fork() may wait for it; make it a constant, or base::made_once")
    print(f"{len(objects)} object files, {len(found)} findings")
    return 1 if found else 0


sys.exit(main(sys.argv[1]))
