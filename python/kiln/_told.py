# SPDX-License-Identifier: Apache-2.0
"""An argument of the wrong type, in the caller's words: the module itself lists all that its functions take in C++'s."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_FITS = {"int": ("int", "bool"), "float": ("float", "int", "bool"), "str": ("str",), "bool": ("bool",), "bytes": ("bytes",), "Geometries": ("Geometries",)}


def plainly(function: Callable[P, R]) -> Callable[P, R]:
    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return function(*arguments, **named)
        except TypeError as why:
            told = in_words(function.__qualname__.removesuffix(".__init__"), str(why))
            if told is None:
                raise
        raise TypeError(told)

    return call


def in_words(function: str, said: str) -> str | None:
    """None of what the module has not said."""
    found = re.search(r"incompatible function arguments.*?\n    1\. \w+\((.*?)\)(?: -> [^\n]*)?\n.*Invoked with types: (.*)", said, re.S)
    if found is None:
        return None
    wanted = [part.partition(": ") for part in re.split(r", (?![^\[]*\])", found[1]) if ": " in part]
    came = re.split(r", (?![^\[]*\])", found[2].strip())
    if len(came) == len(wanted) + 1:  # with an object before them
        came = came[1:]
    for (name, _, type), given in zip(wanted, came):
        given = given.rpartition(".")[2]
        kinds = [one.rpartition(".")[2] for one in type.partition(" = ")[0].split(" | ")]
        known = [fits for kind in kinds for fits in _FITS.get(kind, ())] + ["NoneType"] * ("None" in kinds)
        if given not in known and all(kind in _FITS or kind == "None" for kind in kinds):
            return f"{function}: {name} is a {given}; it must be {' or '.join(kinds)}"
    return f"{function}: a number is out of its range, or a list holds something else than it should; it takes {', '.join(f'{name}: {type}' for name, _, type in wanted)}"
