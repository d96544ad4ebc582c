# SPDX-License-Identifier: Apache-2.0
"""Geometries as other libraries have them: frames, arrays of shapely's, lists of WKB and WKT."""

from __future__ import annotations

from typing import Any

from . import _kiln
from ._errors import InvalidArgument, Unsupported
from ._types import several

_FAMILIES = {0: "point", 1: "linestring", 3: "polygon", 4: "multipoint", 5: "multilinestring", 6: "multipolygon"}  # shapely's numbers
_COLLECTION = 7


class CoordinatesDropped(UserWarning):
    """Rows have Z or M coordinates, and x and y are all that is taken of them. `warnings.simplefilter("ignore", kiln.spatial.CoordinatesDropped)`
    for who knows, `"error"` for who must not lose them."""


def geometry_column(frame: Any) -> Any:
    """Of a GeoDataFrame its active one; of any other frame nobody can say which it would be."""
    if hasattr(frame, "geometry") and hasattr(frame.geometry, "to_wkb"):
        return frame.geometry
    if "geometry" in frame.columns:  # of a frame that knows nothing of geometries
        return frame["geometry"]
    name = type(frame).__name__
    if hasattr(frame, "active_geometry_name"):
        found = [str(column) for column in frame.columns if hasattr(frame[column], "to_wkb")]
        which = f"set_geometry({found[0]!r})" if found else "set_geometry(geopandas.points_from_xy(x, y))"
        raise TypeError(f"this {name} has no active geometry column: choose one with {which}, or pass the GeoSeries itself")
    raise TypeError(f"a {name} has no geometry column (its columns are {', '.join(map(str, frame.columns))}): make a GeoDataFrame of it, "
                    "geopandas.GeoDataFrame(df, geometry=geopandas.points_from_xy(df.x, df.y)), or pass one column of geometries, WKB or WKT, or the pair "
                    "(df.x.to_numpy(), df.y.to_numpy())")


def as_list(rows: Any) -> list[Any] | None:
    """A column whose rows are read one by one, None of any other: objects, of which Arrow does not know what they are, texts and long bytes."""
    if hasattr(rows, "iloc") and any(one.__module__.partition(".")[0] == "pandas" for one in type(rows).__mro__):
        arrow = getattr(rows.dtype, "pyarrow_dtype", None)
        is_read = arrow is None or _is_text(arrow)
        return [None if gone else row for row, gone in zip(rows, rows.isna())] if is_read else None
    if hasattr(rows, "to_pylist") and hasattr(rows, "type") and _is_text(rows.type):
        out: list[Any] = rows.to_pylist()
        return out
    return None


def _is_text(type: Any) -> bool:
    return str(type) in ("string", "large_string", "string_view", "large_binary", "binary_view")


def coordinates(column: Any) -> Any:
    """Of a column, as pandas and Arrow have them, its array: the same memory where it is one of numbers without gaps."""
    if getattr(column, "ndim", 1) != 1:
        raise InvalidArgument(f"coordinates have {column.ndim} dimensions; pass x and y with one each, a[:, 0].copy() and a[:, 1].copy() of pairs")
    is_array = hasattr(column, "dtype") and (hasattr(column, "__dlpack__") or hasattr(column, "__cuda_array_interface__"))
    if is_array or not hasattr(column, "to_numpy"):
        return column
    if hasattr(column, "isna"):  # NaN of NumPy's own numbers is one of them
        missing = hasattr(column.dtype, "na_value") and column.isna().any()
    else:
        missing = column.null_count() if callable(column.null_count) else column.null_count
    if missing:
        raise InvalidArgument(f"a {type(column).__name__} of coordinates has missing values, and a point has both: drop those rows, or pass geometries")
    return column.to_numpy(zero_copy_only=False) if hasattr(column, "type") else column.to_numpy()


def refuse_table(rows: Any) -> None:
    """A table is a stream of records to Arrow: which of its columns has the geometries nobody can say, unless they are x and y."""
    names = [str(name) for name in getattr(rows, "column_names", rows.columns)]
    if sorted(names) != ["x", "y"]:
        raise TypeError(f"a {type(rows).__name__} has the columns {', '.join(names)}: pass the one that has geometries, table['geometry']")


def from_list(rows: Any) -> _kiln.Geometries:
    if not hasattr(rows, "__iter__"):
        raise TypeError(f"a {type(rows).__name__} holds no geometries: pass a GeoSeries, shapely geometries, an object with "
                        "__arrow_c_array__, a list of WKB or WKT, or a pair of coordinate arrays")
    if isinstance(rows, dict):
        raise TypeError("a dict holds no rows: pass shapely.geometry.shape(geojson) for one of GeoJSON's, or a list of geometries")
    if getattr(rows, "ndim", 1) != 1:
        raise TypeError(f"an array of {rows.ndim} dimensions holds no rows: of coordinates pass the pair (x, y), a[:, 0].copy() and a[:, 1].copy(); of geometries a.ravel()")
    rows = several("geometries", rows)
    at = next((i for i, r in enumerate(rows) if r is not None), 0)
    first = rows[at] if rows else None
    if hasattr(first, "geom_type"):
        return from_shapely([_geometry(i, row) for i, row in enumerate(rows)])
    kind = bytes if first is None else next((k for k in (bytes, str) if isinstance(first, k)), None)
    if kind is None:
        remedy = "; shapely.geometry.shape(row) makes one of GeoJSON's" if isinstance(first, dict) else ""
        raise TypeError(f"row {at} is a {type(first).__name__}: rows are shapely geometries, WKB or WKT{remedy}")
    for i, row in enumerate(rows):
        if row is not None and not isinstance(row, kind):
            raise TypeError(f"row {i} is a {type(row).__name__} and row {at} a {kind.__name__}: rows are all WKB or all WKT")
    return _kiln.geometries_from_wkb(rows) if kind is bytes else _kiln.geometries_from_wkt(["NULL" if r is None else r for r in rows])


def _geometry(at: int, row: Any) -> Any:
    """A missing one may be whatever pandas has for it."""
    if row is None or hasattr(row, "geom_type"):
        return row
    if type(row).__name__ == "NAType" or (isinstance(row, float) and row != row):
        return None
    raise TypeError(f"row {at} is a {type(row).__name__} among shapely geometries: rows are all of one kind")


def from_shapely(rows: Any) -> _kiln.Geometries:
    import numpy
    import shapely

    rows = numpy.asarray(rows, dtype=object)
    missing = shapely.is_missing(rows)
    tell_dropped(shapely.has_z(rows).any(), hasattr(shapely, "has_m") and shapely.geos_version >= (3, 12, 0) and shapely.has_m(rows).any())
    try:
        family, coordinates, offsets = shapely.to_ragged_array(rows, include_z=False)
    except ValueError:  # of several families
        collections = numpy.flatnonzero(shapely.get_type_id(rows) == _COLLECTION)
        if len(collections):
            raise Unsupported(f"row {collections[0]} is a GeometryCollection{f', as are {len(collections) - 1} others' if len(collections) > 1 else ''}, and rows are points, lines "
                              "or polygons, or several of one of these: series.explode() gives their parts a row each, series[series.geom_type != "
                              "'GeometryCollection'] the rows that are none") from None
        return _kiln.geometries_from_wkb(list(shapely.to_wkb(rows, output_dimension=2)))
    # Missing rows come out of it as empty ones.
    validity = numpy.packbits(~missing, bitorder="little") if missing.any() else None
    x, y = (numpy.ascontiguousarray(coordinates[:, i], dtype=numpy.float64) for i in (0, 1))
    inward = [numpy.ascontiguousarray(o, dtype=numpy.int32) for o in reversed(offsets)]
    return _kiln.geometries_from_parts(_FAMILIES[int(family)], x, y, inward, validity)


def tell_dropped(z: bool, m: bool) -> None:
    """Where the caller's own code is, so that a place says it once."""
    if not z and not m:
        return
    import sys
    import warnings

    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    which = "Z and M" if z and m else "Z" if z else "M"
    warnings.warn(f"rows have {which} coordinates, and x and y are all that is taken of them; shapely.force_2d(rows) leaves them out without a word",
                  CoordinatesDropped, stacklevel=level)
