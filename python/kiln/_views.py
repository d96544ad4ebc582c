# SPDX-License-Identifier: Apache-2.0
"""What happened and what there is: tables that print well, also in notebooks."""

from __future__ import annotations

import contextlib
import html
import sys
from collections.abc import Iterator
from typing import Any

from . import _kiln
from ._errors import InvalidArgument


no_sync = _kiln.no_sync
no_transfers = _kiln.no_transfers


def activity() -> dict[str, int]:
    """What was moved, waited for, allocated and run where, by Kiln, since the process began.

    >>> kiln.activity()["synchronisations"] >= 0
    True
    """
    return _kiln.activity()


class Table:
    """Rows as dictionaries. to_pandas(), to_dicts(); with pyarrow also a stream of Arrow's."""

    _fields: tuple[str, ...] = ("sequence", "time", "kind", "unit", "target", "reason", "detail", "duration", "value")  # also where there is no row

    def __init__(self, rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
        self._rows = rows
        self._columns = columns

    def __repr__(self) -> str:
        return f"<kiln table: {len(self)} rows of {', '.join(self._columns)}>"

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self._rows[index]

    def to_dicts(self) -> list[dict[str, Any]]:
        return list(self._rows)

    def to_pandas(self) -> Any:
        import pandas

        return pandas.DataFrame(self._rows, columns=list(self._rows[0]) if self._rows else self._fields)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """For libraries that take Arrow's streams, as `pandas.DataFrame.from_arrow(kiln.events())`; needs pyarrow."""
        import pyarrow

        table = pyarrow.Table.from_pylist(self._rows) if self._rows else pyarrow.table({name: pyarrow.nulls(0) for name in self._fields})
        return table.__arrow_c_stream__(requested_schema)

    def _cells(self) -> list[list[str]]:
        return [[_text(row.get(c)) for c in self._columns] for row in self._rows]

    def __str__(self) -> str:
        cells = [list(self._columns), *self._cells()]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self._columns))]
        return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in cells)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(c)}</th>" for c in self._columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in self._cells())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def report_html(report: _kiln.WarmReport) -> str:
    """Of a plan's report, for notebooks: what it says, and a row for each thing that is cold."""
    rows = [{"name": one.name, "target": one.target, "state": one.state, "why": one.why} for one in report.cold]
    table = Table(rows, ("name", "target", "state", "why"))._repr_html_() if rows else ""
    return f"<p>{report.total - len(rows)} of {report.total} warm, after {report.waited:.3g} s</p>{table}"


class Status(Table):
    """What became of everything that was asked for."""

    _fields = ("name", "target", "state", "origin", "miss", "consumers", "compile", "load", "waits", "blocked", "bytes", "error", "log")

    def __init__(self, now: dict[str, Any]) -> None:
        super().__init__(now.pop("units"), ("name", "target", "state", "origin", "compile", "blocked", "error"))
        self.totals = now

    def summary(self) -> str:
        parts = [f"{self.totals[k]} {k}" for k in ("ready", "loading", "compiling", "queued", "failed", "deferred") if self.totals[k]]
        waited = self.totals["blocked"]
        told = f"; callers waited {waited:.2f} s" if waited >= 0.1 else f"; callers waited {waited * 1e3:.0f} ms" if waited >= 0.0005 else ""
        return (", ".join(parts) or "nothing asked for") + told

    def __repr__(self) -> str:
        return f"<kiln.status: {self.summary()}>"

    def __str__(self) -> str:
        return self.summary() + ("\n" + super().__str__() if len(self) else "")


class Bundle(Table):
    """What a bundle holds, an artifact a row. `about` has what is true of the whole: file, format, bytes, artifacts, signature, key."""

    _fields = ("unit", "target", "kind", "bytes", "toolchain", "producer", "licence", "key", "readable", "kernels")

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(told.pop("items"), ("unit", "target", "kind", "bytes", "kernels"))
        self.about = told

    def __repr__(self) -> str:
        return f"<kiln.Bundle '{self.about['file']}': {len(self)} artifacts>"


def status() -> Status:
    """What became of everything that was asked for, and of what bundles were made of: a table, also in notebooks.

    >>> "ready" in kiln.status().totals
    True
    """
    now = _kiln.status()
    bundles = sys.modules.get(f"{__package__}._bundles")  # made by the program `kiln`, which this process has run
    for row in list(bundles.made.values()) if bundles is not None else ():
        now["units"].append(dict(row))
        now[row["state"]] += 1
        now["compiled"] += row["origin"] == "compiled"
    return Status(now)


def events(kind: str = "") -> Table:
    """The newest events, oldest first; of one kind where it is named.

    >>> all(event["kind"] == "compiled" for event in kiln.events("compiled"))
    True
    """
    if not isinstance(kind, str):
        raise TypeError(f"events: kind is a {type(kind).__name__}; it must be str")
    if kind and kind not in _kiln.event_kinds():
        raise InvalidArgument(f"there are no events of kind '{kind}'; kinds are {', '.join(_kiln.event_kinds())}")
    return Table(_kiln.events(kind), ("kind", "unit", "target", "reason", "duration", "detail"))


def devices() -> list[dict[str, Any]]:
    """The GPUs of this machine; kiln.NoDevice with the reason where there is none.

    On a GPU:

    >>> kiln.devices()[0]["ordinal"]
    0
    """
    return _kiln.devices()


@contextlib.contextmanager
def execution(mode: str) -> Iterator[None]:
    """Where operations run inside the block: "gpu" fails where there is none, "cpu" touches no driver, "auto" chooses.

    Of the whole process: in other threads and tasks too, so blocks of several must not overlap.

    >>> with kiln.execution("cpu"):
    ...     kiln.reduce_sync(numpy.array([3, 1, 2], "i4"))
    6
    """
    before = _kiln.execution_mode()
    _kiln.set_execution_mode(mode)
    try:
        yield
    finally:
        _kiln.set_execution_mode(before)
