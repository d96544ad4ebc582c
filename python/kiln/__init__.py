# SPDX-License-Identifier: Apache-2.0
"""Kiln: GPU kernels that are compiled before they are needed and found again ever after.

Importing this starts nothing: no CUDA library is opened, no thread, no process, until something is asked for.
"""

from __future__ import annotations

import atexit as _atexit
import os as _os
import sys as _sys


def _refuse_subinterpreters() -> None:
    """Kiln's threads and devices belong to a process: of two interpreters, the second would take them from the first."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # of Python 3.13 and later; of those before
        try:
            interpreters = __import__(name)
        except ImportError:
            continue
        if interpreters.get_current() != interpreters.get_main():
            raise ImportError("kiln can be used in a process's main interpreter only, and this is a subinterpreter: use threads, or processes (spawn)", name=__name__)
        return


_refuse_subinterpreters()

from . import _kiln

# NVIDIA's compiler may be in this environment's own packages. One whose python is run by its path does not say so.
if _sys.prefix != _sys.base_prefix:
    _os.environ.setdefault("VIRTUAL_ENV", _sys.prefix)
elif _os.path.isdir(_os.path.join(_sys.prefix, "conda-meta")):
    _os.environ.setdefault("CONDA_PREFIX", _sys.prefix)

__version__: str = _kiln.version

# Where each name is: read when it is first asked for, so that importing the package costs a few milliseconds. __init__.pyi says the
# same to type checkers.
_PLACES = {
    "_arrays": ("Array",),
    "_bundles": ("add_bundle", "build", "configure", "contents"),
    "_errors": ("Cancelled", "CompileFailed", "Corrupt", "DriverError", "Error", "Forbidden", "InternalError",
        "InvalidArgument", "IoError", "LinkFailed", "NoDevice", "NotFound", "OutOfMemory", "Timeout", "Unsupported",
        "WorkerFailed"),
    "_prims": ("exclusive_scan", "gather", "inclusive_scan", "lower_bound", "make_exclusive_scan", "make_gather",
        "make_inclusive_scan", "make_lower_bound", "make_merge_sort", "make_radix_sort", "make_reduce",
        "make_segmented_reduce", "make_select", "make_transform", "make_unique_by_key", "make_upper_bound", "merge_sort",
        "radix_sort", "reduce", "reduce_sync", "segmented_reduce", "select", "select_sync", "transform", "unique_by_key",
        "unique_by_key_sync", "upper_bound"),
    "_protocols": ("DeviceArray", "Stream"),
    "_types": ("Op", "Struct", "op", "struct"),
    "_units": ("Artifact", "Future", "Kernel", "RawModule", "Unit"),
    "_views": ("activity", "devices", "events", "execution", "no_sync", "no_transfers", "status"),
    "_warmup": ("Plan", "Requirement", "Spec", "catalogue", "record", "replay", "requires", "spec"),
}
_WHERE = {name: module for module, names in _PLACES.items() for name in names}
# What others call it.
_MEANT = {"sum": "reduce(x)", "prod": "reduce(x, 'multiply')", "min": "reduce(x, 'min')", "max": "reduce(x, 'max')", "cumsum": "inclusive_scan(x)", "scan": "inclusive_scan(x)",
          "sort": "radix_sort(x)", "unique": "unique_by_key_sync(x)", "take": "gather(x, index)", "searchsorted": "lower_bound(sorted, queries)",
          "compress": "select_sync(x, mask)", "map": "transform(x, op)"}
_MODULES = ("spatial", "torch", "tropical")
__all__ = [*sorted(_WHERE), "spatial", "tropical"]  # and torch, where that is installed: whoever wants it names it


def __getattr__(name: str) -> object:
    import importlib

    if name in _MODULES:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as why:
            raise AttributeError(f"kiln.{name}: {why}") from why
    if name not in _WHERE:
        meant = f": that is kiln.{_MEANT[name]}" if name in _MEANT else ""
        raise AttributeError(f"module 'kiln' has no attribute '{name}'{meant}", name=name, obj=_sys.modules[__name__])
    value = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "torch", "__version__"]


_atexit.register(_kiln.end)
