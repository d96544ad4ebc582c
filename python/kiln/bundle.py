# SPDX-License-Identifier: Apache-2.0
"""python -m kiln.bundle MODULE|FILE... -o OUT.kiln --arch sm_80,sm_90 [--sign KEY]: compiles all that these modules declare."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import pathlib
import sys
from types import ModuleType
from typing import Any

from ._bundles import build
from ._errors import Error
from ._units import Unit
from ._warmup import Requirement


def _module(name: str) -> ModuleType:
    """By its name, or by its file: a file is read alone, without the package it is in."""
    if not name.endswith(".py"):
        return importlib.import_module(name)
    path = pathlib.Path(name)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"kiln.bundle: cannot read {name}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def declared(module: ModuleType) -> list[Any]:
    """Units and requirements among a module's names, each thing once, in order."""
    found: dict[Any, None] = {}
    for value in vars(module).values():
        if isinstance(value, Unit):
            found[value] = None
        elif isinstance(value, Requirement):
            found.update(dict.fromkeys(value))
    return list(found)


def main(words: list[str] | None = None) -> None:
    asked = argparse.ArgumentParser(prog="python -m kiln.bundle", description="Compiles all that modules declare into one bundle; needs no GPU.")
    asked.add_argument("modules", nargs="+", metavar="MODULE|FILE.py")
    asked.add_argument("-o", "--output", required=True, metavar="OUT.kiln")
    asked.add_argument("--arch", required=True, help="sm_80,sm_90")
    asked.add_argument("--sign", metavar="KEY")
    given = asked.parse_args(words)
    sys.path.insert(0, "")
    what = [one for name in given.modules for one in declared(_module(name))]
    if not what:
        raise SystemExit(f"kiln.bundle: {', '.join(given.modules)} declares no kiln.Unit and no kiln.requires(...)")
    try:
        build(given.output, what, archs=given.arch.split(","), sign=given.sign)
    except Error as why:
        raise SystemExit(f"kiln.bundle: {why}\n{why.log}".rstrip()) from None
    print(f"{given.output}: {len(what)} for {given.arch}")


if __name__ == "__main__":
    main()
