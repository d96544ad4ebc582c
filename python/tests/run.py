# SPDX-License-Identifier: Apache-2.0
"""run.py FILE...: these tests with this interpreter, or, where it has not what they need, exit status 77 and the reason."""

import importlib.util
import sys

missing = [name for name in ("pytest", "numpy") if importlib.util.find_spec(name) is None]
if missing:
    print(f"skipped: {sys.executable} has no {' and no '.join(missing)}")
    sys.exit(77)

import pytest

status = pytest.main(["-q", "-p", "no:cacheprovider", "-rs", *sys.argv[1:]])
sys.exit(77 if status == pytest.ExitCode.NO_TESTS_COLLECTED else status)  # a file that skips itself whole
