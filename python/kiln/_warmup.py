# SPDX-License-Identifier: Apache-2.0
"""Saying what will be needed before it is; learning it from a run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Union

from . import _kiln
from ._errors import InvalidArgument
from ._told import plainly
from ._types import _SIZES, BUILTIN, Op, as_op, element, several, texts, type_name
from ._units import Unit


@dataclass(frozen=True)
class Spec:
    """A primitive with its types and operator, to be demanded before it is called. Plain values: hashable, picklable."""

    primitive: str
    types: tuple[Any, ...]
    op: Op | None = None
    descending: bool = False
    indices: bool = False

    def _want(self) -> _kiln.Want:
        types = [element(t) for t in self.types]
        by = self.op.made(self.types[0]) if self.op is not None else None
        if self.primitive in ("exclusive_scan", "inclusive_scan"):
            return _kiln.want_scan(self.primitive == "inclusive_scan", types[0], _there(by))
        if self.primitive in ("lower_bound", "upper_bound"):
            return _kiln.want_bounds(self.primitive == "upper_bound", types[0], _there(by))
        if self.primitive == "select":
            return _kiln.want_select(self.indices, types[0], by)
        if self.primitive == "radix_sort":
            return _kiln.want_radix_sort(types[0], types[1], self.descending)
        if self.primitive == "gather":
            return _kiln.want_gather(types[0], types[1])
        made: _kiln.Want = getattr(_kiln, "want_" + self.primitive)(*types, _there(by))
        return made

    @property
    def name(self) -> str:
        return self._want().name


def _there(by: _kiln.Operator | None) -> _kiln.Operator:
    assert by is not None
    return by


# How many types each has, and its operator where none is named.
_PRIMITIVES: dict[str, tuple[int, str | None]] = {
    "exclusive_scan": (1, "plus"), "inclusive_scan": (1, "plus"), "reduce": (1, "plus"), "segmented_reduce": (1, "plus"), "select": (1, None),
    "lower_bound": (1, "less"), "upper_bound": (1, "less"), "radix_sort": (2, None), "merge_sort": (2, "less"), "unique_by_key": (2, "equal"),
    "transform": (2, None), "gather": (2, None),
}


def _is_operator(what: Any) -> bool:
    return isinstance(what, (Op, FunctionType)) or what in BUILTIN


def spec(primitive: str, *what: Any, descending: bool = False, indices: bool = False) -> Spec:
    """What `make_<primitive>` takes, to be demanded, planned or shipped.

    `what`: types, and an operator where it is not the usual one.

    >>> kiln.spec("radix_sort", "uint64", "int32").name
    'radix_sort_u64_i32'
    """
    if primitive not in _PRIMITIVES:
        raise InvalidArgument(f"there is no primitive '{primitive}'; there are {', '.join(_PRIMITIVES)}")
    count, usual = _PRIMITIVES[primitive]
    operators = [as_op(w) for w in what if _is_operator(w)]
    types = [type_name(w) for w in what if not _is_operator(w)]
    if not 1 <= len(types) <= count or len(operators) > 1:
        raise InvalidArgument(f"spec: '{primitive}' takes {count} type{'s' if count > 1 else ''} and an operator; {len(types)} and {len(operators)} came")
    for one in types:
        if isinstance(one, str) and one not in _SIZES:
            raise InvalidArgument(f"spec: items of type '{one}' are not known; there are {', '.join(_SIZES)} and kiln.struct")
    if (descending and primitive != "radix_sort") or (indices and primitive != "select"):
        raise InvalidArgument(f"spec: {'descending' if descending else 'indices'} has no meaning for '{primitive}'")
    if primitive in ("transform", "gather") and len(types) == 1:
        types.append(types[0] if primitive == "transform" else "int32")
    by = operators[0] if operators else as_op(usual) if usual else None
    if primitive == "transform" and by is None:
        raise InvalidArgument("spec: a transform needs an operator")
    return Spec(primitive, (*types, *[None] * (count - len(types))), by, descending, indices)


Need = Union[Unit, Spec, str]


def _asked(who: str, what: Sequence[Need]) -> list[Any]:
    needed = several(who, what)
    for w in needed:
        if not isinstance(w, (Unit, Spec, str)):
            raise InvalidArgument(f"{who}: a {type(w).__name__} is no unit, spec or name of what ships")
    return [w._text() if isinstance(w, Unit) else w._want() if isinstance(w, Spec) else w for w in needed]


class Requirement(Sequence[Need]):
    """What a piece of code uses, declared beside it."""

    def __init__(self, consumer: str, what: Sequence[Need]) -> None:
        self.consumer = consumer
        self._what = tuple(several(f"requires '{consumer}'", what))

    @plainly
    def demand(self, *, archs: Sequence[str] = (), device: int = 0) -> None:
        """Brings it in, in the background. Never blocks; without a GPU it does nothing unless architectures are named."""
        _kiln.demand(_asked(f"requires '{self.consumer}'", self._what), several("archs", archs), device, self.consumer)

    def __getitem__(self, index: Any) -> Any:
        return self._what[index]

    def __len__(self) -> int:
        return len(self._what)

    def __repr__(self) -> str:
        return f"<kiln.Requirement of '{self.consumer}': {len(self)}>"


def requires(consumer: str, what: Sequence[Need]) -> Requirement:
    """What a piece of code uses, declared beside it; costs nothing.

    `consumer`: whose it is, for status and events; `what`: units, specs and names of what ships.

    >>> kiln.requires("mylib.join", ["exclusive_scan_i32", kiln.spec("reduce", "float32", "max")])
    <kiln.Requirement of 'mylib.join': 2>
    """
    return Requirement(consumer, what)


class Plan:
    """The exact requirements of a pipeline: `if not (r := plan.ensure_warm(0.2)): print(r)`."""

    @plainly
    def __init__(self, name: str, what: Sequence[Need], *, archs: Sequence[str] = (), device: int = 0) -> None:
        self.name = name
        self._plan = _kiln.PlanOf(name, _asked(f"plan '{name}'", what), several("archs", archs), device)

    def prepare(self) -> None:
        """Starts bringing it in; returns at once."""
        self._plan.prepare()

    @plainly
    def ensure_warm(self, timeout: float | None = None) -> _kiln.WarmReport:
        """Waits until all is warm or failed for good, `timeout` seconds for all of it."""
        return self._plan.ensure_warm(timeout)

    def cold(self) -> _kiln.WarmReport:
        return self._plan.cold()


@contextlib.contextmanager
def record(file: str | os.PathLike[str]) -> Iterator[None]:
    """Writes down what the program asks for, to the end of the block; kiln.IoError then, where it cannot be written.

    >>> with kiln.record("app.profile"):
    ...     kiln.requires("app", ["exclusive_scan_i32"]).demand(archs=["sm_90"])
    """
    recording = _kiln.record(os.fspath(file))
    try:
        yield
    finally:
        recording.stop()
    recording.check()


class Replayed:
    def __init__(self, demanded: int, stale: int) -> None:
        self.demanded = demanded
        self.stale = stale

    def __repr__(self) -> str:
        return f"<kiln.Replayed: {self.demanded} demanded, {self.stale} stale>"


@plainly
def replay(file: str | os.PathLike[str], *, archs: Sequence[str] = (), bundle: str | os.PathLike[str] | None = None,
           timeout: float | None = None) -> Replayed:
    """Demands what a recording lists; returns at once. With `bundle`, makes it for `archs`, within `timeout` seconds, and writes a bundle instead.

    >>> with kiln.record("again.profile"):
    ...     _ = kiln.Unit("k", 'extern "C" __global__ void k() {}').artifact("sm_90")
    >>> kiln.replay("again.profile", archs=["sm_90"]).stale
    0
    """
    if bundle is not None:
        import glob

        from ._bundles import run_replay, want_file
        from ._errors import NotFound

        path = os.fspath(file)
        if not os.path.exists(path) and not glob.glob(glob.escape(path) + ".*-*"):  # recordings beside it are read with it
            raise NotFound(f"{path}: no such profile")
        want_file("replay", bundle)
        words = [os.fspath(file), "-o", os.fspath(bundle)]
        if archs:
            words += ["--arch", ",".join(texts("archs", archs))]
        run_replay(words, "kiln.replay", timeout)
        return Replayed(0, 0)
    return Replayed(*_kiln.replay(os.fspath(file), list(archs)))


def catalogue() -> list[dict[str, Any]]:
    """What ships with Kiln, by name: a list of name, pack, kind, types and operator.

    >>> "exclusive_scan_i32" in [one["name"] for one in kiln.catalogue()]
    True
    """
    return _kiln.catalogue()
