# SPDX-License-Identifier: Apache-2.0
"""Shipping: bundles made and used, settings, the command line of the same package."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _kiln
from ._errors import Corrupt, InternalError, InvalidArgument, IoError, NotFound, Timeout, make

if TYPE_CHECKING:
    from ._views import Bundle

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


_MISUSED = 2  # the program's exit status for words it does not understand


def run_replay(words: Sequence[str], who: str, timeout: float | None) -> None:
    """`kiln replay WORDS`. What could not be made is raised as it would be where it is asked for; what was decided is seen in kiln.events() and
    kiln.status(), as if it had been decided here."""
    import json

    with tempfile.TemporaryDirectory(prefix="kiln-") as scratch:
        events = os.path.join(scratch, "events")
        try:
            done = subprocess.run([command(), "replay", *words, "--json"], capture_output=True, text=True, env={**os.environ, "KILN_EVENTS": events}, timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Timeout(f"{who}: not ready within {timeout:g} s; what was compiled is kept, and nothing was written") from None
        finally:
            _take_in(events)
    try:
        things: list[dict[str, Any]] = json.loads(done.stdout)["things"]
    except (ValueError, KeyError):  # a record of 'kiln run' lists requests instead
        things = []
    for thing in things:
        made[(who, thing["name"], thing["target"], thing.get("key", ""))] = _row(thing, who)
    if done.returncode == 0:
        return
    said = done.stderr.strip().removeprefix("kiln: ")
    if done.returncode == _MISUSED:
        raise InvalidArgument(said, done.returncode)
    failed = [thing for thing in things if "error" in thing]
    if not failed:
        if any("native" in word.split(",") for word in words):
            _kiln.devices()  # NoDevice, where that is why
        raise InternalError(said or done.stdout.strip(), done.returncode)
    first = failed[0]
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    raise make(first["code"], f"{first['name']} for {first['target']}: {first['error']}{more}", 0, first.get("log", ""))


made: dict[tuple[str, ...], dict[str, Any]] = {}  # rows of kiln.status(): what became of all that bundles were made of


def _row(thing: dict[str, Any], who: str) -> dict[str, Any]:
    return {"name": thing["name"], "target": thing["target"], "state": "failed" if "error" in thing else "ready", "origin": thing.get("from"), "miss": "",
            "consumers": who, "compile": thing.get("compile_ms", 0) * 1e-3, "load": 0.0, "waits": 0, "blocked": 0.0, "bytes": thing.get("bytes", 0),
            "error": thing.get("error", ""), "log": thing.get("log", "")}


def _take_in(file: str) -> None:
    """Events of the program that was run, among those of this process, with the times they had: the clock is the machine's."""
    import json

    if not os.path.exists(file):
        return
    # Of settings both of us warn.
    told = {(e["reason"], e["detail"]) for e in _kiln.events("warned")}
    with open(file, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                e = json.loads(line)
            except ValueError:  # cut off, where it was killed
                continue
            if e["kind"] == "warned" and (e.get("reason", ""), e.get("detail", "")) in told:
                continue
            _kiln.tell(e["kind"], e.get("unit", ""), e.get("target", ""), e.get("reason", ""), e.get("detail", ""), int(e.get("key", "0"), 16),
                       int(e.get("request", "0"), 16), e.get("ns", 0), e.get("value", 0), e["t"])


def want_file(who: str, file: str | os.PathLike[str]) -> None:
    """kiln.IoError where no file can be written there."""
    path = os.fspath(file)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise IoError(f"{who}: there is no folder '{folder}' for '{path}'")
    if os.path.isdir(path):
        raise IoError(f"{who}: '{path}' is a directory; name the file that is to be written")


def build(file: str | os.PathLike[str], what: Sequence[Any], *, archs: Sequence[str], sign: str | None = None, timeout: float | None = None) -> None:
    """Compiles units and specs for these architectures into one bundle; needs no GPU.

    `file`: where it goes, left as it was where not everything can be made; `what`: units, specs, requirements' parts and names of what ships; `sign`: a private key of `kiln key`; `timeout`: seconds, for all of it. What was compiled, found and
    failed is in `kiln.events()` and, by unit, in `kiln.status()`, also where it raises.

    >>> kiln.build("two.kiln", [kiln.Unit("k", 'extern "C" __global__ void k() {}')], archs=["sm_80", "sm_90"])
    """
    from ._types import texts
    from ._warmup import _asked

    if not archs:
        raise InvalidArgument("build: name the architectures, archs=['sm_90']")
    asked = _asked("build", what)
    want_file("build", file)
    if sign is not None and not os.path.isfile(sign):
        raise IoError(f"build: there is no key '{sign}'; 'kiln key' makes one")
    with tempfile.TemporaryDirectory(prefix="kiln-") as scratch:
        profile = os.path.join(scratch, "units.profile")
        _kiln.write_profile(profile, asked)
        words = [profile, "--arch", ",".join(texts("archs", archs)), "--complete", "-o", os.fspath(file)]
        if sign is not None:
            words += ["--sign", sign]
        run_replay(words, "kiln.build", timeout)


def contents(file: str | os.PathLike[str]) -> Bundle:
    """What a bundle holds: a table, also in notebooks.

    `file`: of `kiln.build`, `kiln.replay` or the command line.

    >>> kiln.build("seen.kiln", [kiln.Unit("k", 'extern "C" __global__ void k() {}')], archs=["sm_80"])
    >>> [(one["unit"], one["target"], one["kernels"]) for one in kiln.contents("seen.kiln")]
    [('k', 'sm_80', ['k'])]
    """
    import json

    from ._views import Bundle

    path = os.fspath(file)
    if not os.path.exists(path):
        raise NotFound(f"contents: there is no bundle '{path}'")
    done = subprocess.run([command(), "inspect", path, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Corrupt(done.stderr.strip().removeprefix("kiln: "), done.returncode)
    told = json.loads(done.stdout)
    told["items"].sort(key=lambda one: (one["unit"], one["target"], one["kind"]))
    return Bundle(told)


# As in docs/guide/settings.md, without KILN_.
SETTINGS = ("cache_dir", "cache_path_ro", "cache_mode", "max_size", "readonly", "disable", "recache", "bundles", "bundle_key", "remote", "jit", "workers",
            "worker", "worker_memory", "compile_timeout", "pch", "cuda_path", "events", "execution_mode", "determinism", "strict", "rewrites",
            "gpu_pool_limit", "gpu_oom_safety", "gpu_managed_memory", "nvrtc", "nvtx", "trace_launches", "profile", "toolkit_trust")

# What a setting can be, where it cannot be anything. The library takes its default for what it does not understand, and says so in an event: too late
# for whoever wrote it here.
_SWITCH = ("0", "1", "true", "false", "yes", "no", "on", "off")
_CAN_BE: dict[str, tuple[str, ...]] = {
    "jit": ("allow", "warn", "forbid"), "execution_mode": ("auto", "cpu", "gpu"), "cache_mode": ("private", "shared"),
    **dict.fromkeys(("readonly", "disable", "recache", "determinism", "strict", "rewrites", "gpu_oom_safety", "gpu_managed_memory", "trace_launches", "nvtx", "pch"), _SWITCH)}
_LEAST = {"workers": 0, "compile_timeout": 1, "toolkit_trust": 0}  # whole numbers
_SIZES = ("max_size", "worker_memory", "gpu_pool_limit")


def configure(**settings: object) -> None:
    """Settings, before the first use. The names are those of the environment variables, without KILN_; None takes one away.

    Before Kiln is used:

    >>> kiln.configure(jit="forbid", workers=4)
    """
    unknown = [name for name in settings if name not in SETTINGS]
    if unknown:
        raise InvalidArgument(f"configure: there is no setting '{unknown[0]}'; there are {', '.join(SETTINGS)}")
    for name, value in settings.items():
        wanted = None if value is None else _wanted(name, value)
        if wanted is not None:
            raise InvalidArgument(f"configure: {name} is {value!r}; it can be {wanted}")
    if _kiln.in_use():
        raise InvalidArgument("configure: Kiln is in use already, and its settings are read; call this before the first unit, primitive or demand")
    for name, value in settings.items():
        if value is None:  # as if it had never been set
            os.environ.pop("KILN_" + name.upper(), None)
            continue
        os.environ["KILN_" + name.upper()] = _words(value)


def _words(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else os.fsdecode(value) if isinstance(value, os.PathLike) else str(value)


def _wanted(name: str, value: object) -> str | None:
    """What the setting can be, if it cannot be this."""
    import re

    words = _words(value)
    if name in _CAN_BE:
        return None if words in _CAN_BE[name] else ", ".join(_CAN_BE[name])
    if name in _LEAST:
        fits = not isinstance(value, bool) and re.fullmatch("[0-9]{1,9}", words) and int(words) >= _LEAST[name]
        return None if fits else f"a whole number from {_LEAST[name]}"
    if name in _SIZES:
        return None if not isinstance(value, bool) and re.fullmatch("[0-9]{1,19}([KMGTkmgt](iB|B)?|B)?", words) else "a size such as 5G or 512M"
    return None if isinstance(value, (str, os.PathLike)) else "a text or a path"


def add_bundle(file: Any) -> None:
    """Looks for artifacts in this bundle too. Reads nothing yet; call it before the first use.

    `file`: a path, or what `importlib.resources.files` gives.

    Before Kiln is used:

    >>> kiln.add_bundle("mylib.kiln")
    """
    if file is None or isinstance(file, (int, bytes)):
        raise TypeError(f"add_bundle: a {type(file).__name__} is no path")
    path = os.fspath(file) if hasattr(file, "__fspath__") else str(file)
    if _kiln.in_use():
        import warnings

        warnings.warn(f"kiln.add_bundle('{path}'): Kiln is in use already, and does not look there", RuntimeWarning, stacklevel=2)
    elif not os.path.exists(path):  # a warning: a package that is just making its bundle is imported without it
        import warnings

        warnings.warn(f"kiln.add_bundle('{path}'): there is no such file, so nothing will be found there", RuntimeWarning, stacklevel=2)
    known = os.environ.get("KILN_BUNDLES", "")
    os.environ["KILN_BUNDLES"] = path if not known else known + os.pathsep + path
