# SPDX-License-Identifier: Apache-2.0
"""Saying what will be needed before it is; learning it from a run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any, Union

from . import _kiln
from ._units import Unit

Need = Union[Unit, str]


def _asked(what: Sequence[Need]) -> list[Any]:
    return [w._text() if isinstance(w, Unit) else w for w in what]


class Requirement(Sequence[Need]):
    """What a piece of code uses, declared beside it."""

    def __init__(self, consumer: str, what: Sequence[Need]) -> None:
        self.consumer = consumer
        self._what = tuple(what)

    def demand(self, *, archs: Sequence[str] = (), device: int = 0) -> None:
        """Brings it in, in the background. Never blocks; without a GPU it does nothing unless architectures are named."""
        _kiln.demand(_asked(self._what), list(archs), device, self.consumer)

    def __getitem__(self, index: Any) -> Any:
        return self._what[index]

    def __len__(self) -> int:
        return len(self._what)

    def __repr__(self) -> str:
        return f"<kiln.Requirement of '{self.consumer}': {len(self)}>"


def requires(consumer: str, what: Sequence[Need]) -> Requirement:
    return Requirement(consumer, what)


class Plan:
    """The exact requirements of a pipeline: `if not (r := plan.ensure_warm(0.2)): print(r)`."""

    def __init__(self, name: str, what: Sequence[Need], *, archs: Sequence[str] = (), device: int = 0) -> None:
        self.name = name
        self._plan = _kiln.PlanOf(name, _asked(what), list(archs), device)

    def prepare(self) -> None:
        """Starts bringing it in; returns at once."""
        self._plan.prepare()

    def ensure_warm(self, timeout: float | None = None) -> _kiln.WarmReport:
        """Waits until all is warm or failed for good, `timeout` seconds for all of it."""
        return self._plan.ensure_warm(timeout)

    def cold(self) -> _kiln.WarmReport:
        return self._plan.cold()


@contextlib.contextmanager
def record(file: str | os.PathLike[str]) -> Iterator[None]:
    """Writes down what the program asks for, from here to the end of the process."""
    _kiln.record(os.fspath(file))
    yield


class Replayed:
    def __init__(self, demanded: int, stale: int) -> None:
        self.demanded = demanded
        self.stale = stale

    def __repr__(self) -> str:
        return f"<kiln.Replayed: {self.demanded} demanded, {self.stale} stale>"


def replay(file: str | os.PathLike[str], *, archs: Sequence[str] = (), bundle: str | os.PathLike[str] | None = None) -> Replayed:
    """Demands what a recording lists; returns at once. With `bundle`, makes it for `archs` and writes a bundle instead."""
    if bundle is not None:
        from ._bundles import run_command

        words = ["replay", os.fspath(file), "-o", os.fspath(bundle)]
        if archs:
            words += ["--arch", ",".join(archs)]
        run_command(words)
        return Replayed(0, 0)
    return Replayed(*_kiln.replay(os.fspath(file), list(archs)))


def catalogue() -> list[dict[str, Any]]:
    """What ships with Kiln, by name."""
    return _kiln.catalogue()
