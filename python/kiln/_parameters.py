# SPDX-License-Identifier: Apache-2.0
"""What a kernel's parameters are, where its author says so: `unit.kernel("saxpy", types="int, float, const float*, float*")`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Union

from ._types import _C_TYPES, _SIZES, Struct, typed, wrong

Types = Union[str, Sequence[Union[str, Struct]]]

_OTHERS = {"long": "int64", "long int": "int64", "unsigned long": "uint64", "size_t": "uint64", "half": "float16", "__half": "float16", "__nv_bfloat16": "bfloat16"}
_NAMES = {name: name for name in _SIZES} | {name + "_t": name for name in _SIZES if "int" in name} | {c: name for c, (name, _) in _C_TYPES.items()} | _OTHERS
_POINTER = 8  # bytes
_SAYS_NOTHING = re.compile(r"\b(?:const|volatile|restrict|__restrict__|__restrict|struct|std::)\b")


def _meaning(name: str) -> str:
    if name.startswith("float"):
        return "float"
    return "bfloat" if name == "bfloat16" else "uint" if name.startswith("uint") or name == "bool" else "int"


def _read(one: str | Struct) -> tuple[str, int]:
    if isinstance(one, Struct):
        return "record", one.size
    if not isinstance(one, str):
        raise TypeError(f"types: a {typed(one)} is no type; it must be a str or a kiln.struct")
    if "*" in one or one.rstrip().endswith("]"):
        return "pointer", _POINTER
    words = " ".join(_SAYS_NOTHING.sub(" ", one.replace("std::", "")).split())
    name = _NAMES.get(words) or _NAMES.get(words.rpartition(" ")[0])  # with the parameter's name
    if name is None:
        raise wrong(f"types: '{one.strip()}' is no pointer and none of {', '.join(sorted(_NAMES))}; for a record pass a list with kiln.struct in its place")
    return _meaning(name), _SIZES[name]


def read(types: Any) -> list[tuple[str, int]]:
    """(what it is, bytes) of each, of a list or of text as it stands in the kernel: "int n, float a, const float* x"."""
    if isinstance(types, str):
        types = types.split(",") if types.strip() else []
    return [_read(one) for one in types]
