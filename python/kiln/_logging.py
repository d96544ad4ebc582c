# SPDX-License-Identifier: Apache-2.0
"""logging.getLogger("kiln"): what a person should read once (WARNING), and second choices that were taken (INFO). Told by the thread that
asks Kiln for something next; without a handler nothing is printed."""

from __future__ import annotations

import logging

_LEVELS = {"warned": logging.WARNING, "fell_back": logging.INFO}
_logger = logging.getLogger("kiln")
_logger.addHandler(logging.NullHandler())
_warned: set[tuple[str, str, str]] = set()  # a program that this one ran may say the same


def tell(kind: str, unit: str, reason: str, detail: str) -> None:
    if kind == "warned":
        if (unit, reason, detail) in _warned:
            return
        _warned.add((unit, reason, detail))
    _logger.log(_LEVELS[kind], "%s%s: %s", f"'{unit}': " if unit else "", reason, detail, extra={"unit": unit, "reason": reason})
