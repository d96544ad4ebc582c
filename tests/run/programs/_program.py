# SPDX-License-Identifier: Apache-2.0
"""What the programs share: three times, checks against NumPy, and one line of JSON at the end.

A program imports, makes its context and checks its first result, in this order. What the machine lacks ends it with exit
status 77 and the reason, a wrong result with 1. No program knows of Kiln.
"""

import contextlib
import ctypes
import json
import re
import sys
import time

_said = {}
_mark = _after_imports = time.perf_counter()


def _milliseconds(since):
    return round((time.perf_counter() - since) * 1e3, 1)


def _say(**more):
    print(json.dumps({**_said, **more}), flush=True)


def skip(why):
    _say(skipped=why)
    sys.exit(77)


def has_gpu():
    try:
        driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    except OSError:
        return False
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


@contextlib.contextmanager
def imports():
    """Around what the program imports: what is missing is named."""
    global _after_imports
    try:
        yield
    except ImportError as e:
        skip(str(e).splitlines()[0])
    _said["imports_ms"] = _milliseconds(_mark)
    _after_imports = time.perf_counter()


@contextlib.contextmanager
def context():
    """Around what makes the framework's context on the GPU."""
    began = time.perf_counter()
    try:
        yield
    except Exception:
        if has_gpu():
            raise
        skip("no GPU here")
    _said["context_ms"] = _milliseconds(began)


def check(right, what):
    if not right:
        _say(ok=False, wrong=what)
        sys.exit(1)


def mapped():
    """The real compilers that are loaded: a stand-in lies in a folder of that name."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps if "r-xp" in line and "/" in line}
    found = (re.search(r"/lib(nvrtc|nvJitLink)\.so[.\d]*$", p) for p in paths if "/standins/" not in p)
    return sorted({f.group(1) for f in found if f})


def done():
    """After the first result was checked; its time counts from the end of the imports."""
    _say(first_ms=_milliseconds(_after_imports), ok=True, mapped=mapped())
