# SPDX-License-Identifier: Apache-2.0
"""What operations on geometries give back: arrays of one length, under names. They stay where they are; what ends in _sync brings them to the
host."""

from __future__ import annotations

from typing import Any

from . import _kiln

Geometries = _kiln.Geometries


def host(x: Any) -> Any:
    """Arrays on the host are NumPy's."""
    return x.numpy_sync() if isinstance(x, _kiln.Array) and x.ordinal < 0 else x


def _sync(x: Any) -> Any:
    return x.numpy_sync() if isinstance(x, _kiln.Array) else x


class _Columns:
    """Arrays of one length, under names. They stay where they are; `<name>_sync()` and to_pandas_sync() bring them to the host."""

    _names: tuple[str, ...] = ()

    def __init__(self, *arrays: Any) -> None:
        for name, array in zip(self._names, arrays):
            setattr(self, name, host(array))

    def __len__(self) -> int:
        return len(getattr(self, self._names[0]))

    def __iter__(self) -> Any:
        return (getattr(self, name) for name in self._names)

    def to_pandas_sync(self) -> Any:
        import pandas

        return pandas.DataFrame({name: _sync(getattr(self, name)) for name in self._names})

    def __repr__(self) -> str:
        return f"<kiln.spatial.{type(self).__name__}: {len(self)} of {', '.join(self._names)}>"


class Pairs(_Columns):
    """Rows that stand in a relation, by left, then right."""

    _names: tuple[str, ...] = ("left", "right")
    left: Any
    right: Any

    def left_sync(self) -> Any:
        return _sync(self.left)

    def right_sync(self) -> Any:
        return _sync(self.right)


class NearPairs(Pairs):
    """The same with their distance; by left, then distance, then right."""

    _names = ("left", "right", "distance")
    distance: Any

    def distance_sync(self) -> Any:
        return _sync(self.distance)


class Areas(Pairs):
    """Pairs with some area in common, and how much."""

    _names = ("left", "right", "area")
    area: Any

    def area_sync(self) -> Any:
        return _sync(self.area)


class Overlay(Pairs):
    """Geometries, `rows`, and of which left and right row each is: -1 where there is none."""

    rows: Geometries

    def __init__(self, rows: Geometries, left: Any, right: Any) -> None:
        super().__init__(left, right)
        self.rows = rows


class Dissolved:
    """One row, of `rows`, for each value, of `key`, that occurred; in the order of the values."""

    rows: Geometries
    key: Any

    def __init__(self, key: Any, rows: Geometries) -> None:
        self.key = key
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<kiln.spatial.Dissolved: {len(self)} of key, rows>"


class Matrices(Pairs):
    """Pairs that are not disjoint, with nine entries of three bits each; as kiln's C++ interface has them."""

    _names = ("left", "right", "bits")
    bits: Any


class Crossings(Pairs):
    """Where segments meet: `how` is 1 for a crossing, 2 for a touch, 3 for an overlap, whose x and y are NaN."""

    _names = ("left", "right", "how", "x", "y")
    how: Any
    x: Any
    y: Any


class Boxes(_Columns):
    _names = ("min_x", "min_y", "max_x", "max_y")
    min_x: Any
    min_y: Any
    max_x: Any
    max_y: Any


class Locations(_Columns):
    _names = ("x", "y")
    x: Any
    y: Any


class Counts(_Columns):
    _names = ("vertices", "paths")
    vertices: Any
    paths: Any
