# SPDX-License-Identifier: Apache-2.0
"""The wheel, built, looked at, installed in a fresh environment and tested there: minutes, so `make test-wheel` asks for it."""

import importlib.util
import os
import pathlib
import subprocess
import sys

missing = [name for name in ("nanobind", "scikit_build_core", "pip") if importlib.util.find_spec(name) is None]
if not os.environ.get("KILN_TEST_WHEEL") or missing:
    print("skipped: " + (f"{sys.executable} has no {' and no '.join(missing)}" if missing else "'make test-wheel' runs it"))
    sys.exit(77)

root = pathlib.Path(__file__).resolve().parents[2]
sys.exit(subprocess.run([root / "scripts/wheel", "--test"], env={**os.environ, "PYTHON": sys.executable}).returncode)
