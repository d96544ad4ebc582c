# SPDX-License-Identifier: Apache-2.0
"""Shipping: bundles made and used, settings, the command line of the same package."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from . import _kiln
from ._errors import Error, InvalidArgument, NotFound

_PLACES = ("bin/kiln", "../../bin/kiln")  # in a wheel; in a build tree


def command() -> str:
    """The path of the `kiln` program of this package."""
    here = pathlib.Path(__file__).parent
    at = next((here / place for place in _PLACES if (here / place).is_file()), None)
    if at is None:
        import shutil

        found = shutil.which("kiln")
        if found is None or os.path.realpath(found) == os.path.realpath(sys.argv[0]):
            raise NotFound("the kiln program is not in this package and not on PATH")
        return found
    return os.path.normpath(at)


def main() -> None:
    """The console script: becomes the program, so that signals and exit status are its own."""
    program = command()
    os.execv(program, [program, *sys.argv[1:]])


def run_command(words: Sequence[str]) -> None:
    done = subprocess.run([command(), *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise Error(f"kiln {words[0]}: {done.stderr.strip() or done.stdout.strip()}", done.returncode)


def build(file: str | os.PathLike[str], what: Sequence[Any], *, archs: Sequence[str], sign: str | None = None) -> None:
    """Compiles units and specs for these architectures into one bundle; needs no GPU."""
    from ._types import several
    from ._warmup import _asked

    if not archs:
        raise InvalidArgument("build: name the architectures, archs=['sm_90']")
    asked = _asked("build", what)
    with tempfile.TemporaryDirectory(prefix="kiln-") as scratch:
        profile = os.path.join(scratch, "units.profile")
        _kiln.write_profile(profile, asked)
        words = ["replay", profile, "--arch", ",".join(several("archs", archs)), "-o", os.fspath(file)]
        if sign is not None:
            words += ["--sign", sign]
        run_command(words)


# As in docs/guide/settings.md, without KILN_.
SETTINGS = ("cache_dir", "cache_path_ro", "cache_mode", "max_size", "readonly", "disable", "recache", "bundles", "bundle_key", "remote", "jit", "workers",
            "worker", "worker_memory", "compile_timeout", "pch", "cuda_path", "events", "execution_mode", "determinism", "strict", "rewrites",
            "gpu_pool_limit", "gpu_oom_safety", "gpu_managed_memory", "nvrtc", "nvtx", "trace_launches", "profile")


def configure(**settings: object) -> None:
    """Before the first use: configure(jit="forbid"). The names are those of the environment variables, without KILN_; None takes one away."""
    unknown = [name for name in settings if name not in SETTINGS]
    if unknown:
        raise InvalidArgument(f"configure: there is no setting '{unknown[0]}'; there are {', '.join(SETTINGS)}")
    if _kiln.in_use():
        raise InvalidArgument("configure: Kiln is in use already, and its settings are read; call this before the first unit, primitive or demand")
    for name, value in settings.items():
        if value is None:  # as if it had never been set
            os.environ.pop("KILN_" + name.upper(), None)
            continue
        os.environ["KILN_" + name.upper()] = str(int(value)) if isinstance(value, bool) else str(value)


def add_bundle(file: Any) -> None:
    """Looks for artifacts in this bundle too. Reads nothing yet; call it before the first use."""
    path = os.fspath(file) if hasattr(file, "__fspath__") else str(file)
    if _kiln.in_use():
        import warnings

        warnings.warn(f"kiln.add_bundle('{path}'): Kiln is in use already, and does not look there", RuntimeWarning, stacklevel=2)
    known = os.environ.get("KILN_BUNDLES", "")
    os.environ["KILN_BUNDLES"] = path if not known else known + os.pathsep + path
