# SPDX-License-Identifier: Apache-2.0
"""GEOS's own XML tests, where its sources are: KILN_GEOS_SOURCES names their folder. No case differs that is not argued in geos_cases.txt."""

import os
import pathlib
import subprocess
import sys

from _kiln import CLI, SOURCE, check

sources = os.environ.get("KILN_GEOS_SOURCES", "")
if not sources or not pathlib.Path(sources).exists():
    print("skipped: KILN_GEOS_SOURCES names no folder of GEOS's sources")
    sys.exit(77)
done = subprocess.run([sys.executable, str(SOURCE / "scripts/geos-cases"), "--kiln", CLI, sources], capture_output=True, text=True)
print(done.stdout)
check(done.returncode == 0, "every case passes, or is argued", done.stderr)
check("overlayareatest" in done.stdout, "the cases were found")
