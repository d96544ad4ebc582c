# SPDX-License-Identifier: Apache-2.0
"""Joins, distances and measures of geometries: GeoSeries, shapely's arrays, GeoArrow on the host or a device, WKB, coordinates.

Each operation runs where Kiln decides (kiln.execution says where) with the same result, and its arrays stay where it ran: NumPy's
on the host, kiln.Array on a device. What ends in _sync brings them to the host. Rows that are missing are in no relation and have
no measure; empty ones are disjoint from everything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Union, overload

from . import _keys, _kiln, _rows
from ._errors import InvalidArgument
from ._found import Areas as Areas, Boxes as Boxes, Counts as Counts, Crossings as Crossings, Dissolved as Dissolved, Locations as Locations
from ._found import Matrices as Matrices, NearPairs as NearPairs, Overlay as Overlay, Pairs as Pairs, host as _host
from ._rows import CoordinatesDropped as CoordinatesDropped
from ._told import plainly

if TYPE_CHECKING:
    from ._protocols import StreamLike

Geometries = _kiln.Geometries
AreaIndex = _kiln.AreaIndex
Rows = Union[Geometries, Any]  # or what geometries() takes
RELATIONS: tuple[str, ...] = tuple(_kiln.spatial_relations())
OVERLAYS: tuple[str, ...] = tuple(_kiln.spatial_overlays())


# ---- In -------------------------------------------------------------------------------------------------------------------


def geometries(rows: Any) -> Geometries:
    """Geometries of any of these, without a copy where the layout allows it: a GeoSeries or GeoDataFrame, shapely geometries, one
    or an array of them, anything with Arrow's protocols (GeoArrow, on the host or a device), a list or a Series of WKB or WKT, a pair (x, y)
    of coordinates. What is not copied must not change while an operation reads it, by another thread, say: the process may crash.
    Of Z and M coordinates nothing is taken, and a warning says so (CoordinatesDropped).

    >>> spatial.geometries(["POINT (1 2)", None])
    <kiln.spatial.Geometries: 2 of family point on the host>
    """
    if isinstance(rows, Geometries):
        return rows
    if hasattr(rows, "columns") and hasattr(rows, "iloc"):  # a frame
        rows = _rows.geometry_column(rows)
    if hasattr(rows, "geom_type") and hasattr(rows, "wkb") and not hasattr(rows, "__len__"):  # one of shapely's
        return _rows.from_shapely([rows])
    if hasattr(rows, "to_wkb") and hasattr(rows, "geom_type"):  # a GeoSeries or its array
        return _rows.from_shapely(getattr(rows, "values", rows))
    column = _rows.as_list(rows)
    if column is not None:
        return _rows.from_list(column)
    if hasattr(rows, "columns") and hasattr(rows, "__arrow_c_stream__"):
        _rows.refuse_table(rows)
    if hasattr(rows, "__arrow_c_device_array__"):
        return _kiln.geometries_from_arrow_device(*rows.__arrow_c_device_array__())
    if hasattr(rows, "__arrow_c_array__"):
        return _kiln.geometries_from_arrow(*rows.__arrow_c_array__())
    if hasattr(rows, "__arrow_c_device_stream__"):
        return _kiln.geometries_from_arrow_device_stream(rows.__arrow_c_device_stream__())
    if hasattr(rows, "__arrow_c_stream__"):
        return _kiln.geometries_from_arrow_stream(rows.__arrow_c_stream__())
    if isinstance(rows, tuple) and len(rows) == 2 and all(hasattr(r, "dtype") or hasattr(r, "__dlpack__") or hasattr(r, "to_numpy") for r in rows):
        return points(*rows)
    return _rows.from_list(rows)


def _again(rows: list[Any], family: str = "point") -> Geometries:
    return _kiln.geometries_from_wkb(rows, family)


@plainly
def points(x: Any, y: Any) -> Geometries:
    """Points by their coordinates: arrays of float64 of any library, where they are, or columns.

    >>> len(spatial.points(numpy.zeros(3), numpy.ones(3)))
    3
    """
    return _kiln.geometries_from_parts("point", _rows.coordinates(x), _rows.coordinates(y), [], None)


def read_file(path: str | os.PathLike[str]) -> Geometries:
    """GeoJSON, WKT, hexadecimal WKB or CSV; checked. Of a GeoJSON's heights nothing is taken, and a warning says so (CoordinatesDropped).

    >>> _ = open("two.wkt", "w").write("POINT (1 2)\\nPOINT (3 4)\\n")
    >>> len(spatial.read_file("two.wkt"))
    2
    """
    rows, _, has_heights = _kiln.spatial_read_file(os.fspath(path), "")
    _rows.tell_dropped(has_heights, False)
    read: Geometries = rows
    return read


# ---- Out ------------------------------------------------------------------------------------------------------------------


def to_shapely_sync(rows: Geometries) -> Any:
    """A NumPy array of shapely geometries, None for missing ones.

    With shapely:

    >>> spatial.to_shapely_sync(spatial.geometries(["POINT (1 2)"]))[0].wkt
    'POINT (1 2)'
    """
    import shapely

    return shapely.from_wkb(rows.to_wkb_sync())


# ---- Which rows ---------------------------------------------------------------------------------------------------------


def _right(rows: Rows | AreaIndex) -> Geometries | AreaIndex:
    return rows if isinstance(rows, AreaIndex) else geometries(rows)


@plainly
def join(left: Rows, right: Rows | AreaIndex, relation: str = "intersects", *, stream: StreamLike | None = None, timeout: float | None = None) -> Pairs:
    """Rows of which `left relation right` is true; exact. `gdf.iloc[pairs.left_sync()]` are the rows themselves.

    `left`, `right`: whatever `geometries` takes, `right` also an AreaIndex; `relation`: one of RELATIONS; `timeout`: seconds, for kernels that must be
    compiled first; without a GPU, and in mode cpu, it does not count.

    >>> pairs = spatial.join(AREAS, (numpy.array([1.0, 3.0]), numpy.array([1.0, 1.0])), "contains")
    >>> pairs.left_sync().tolist(), pairs.right_sync().tolist()
    ([0, 1], [0, 1])
    """
    return Pairs(*_kiln.spatial_join(geometries(left), _right(right), relation, stream, timeout))


@plainly
def join_within(left: Rows, right: Rows, distance: float, *, stream: StreamLike | None = None, timeout: float | None = None) -> Pairs:
    """Rows no more than a distance apart.

    >>> len(spatial.join_within(["POINT (0 0)"], ["POINT (3 4)"], 5.0))
    1
    """
    return Pairs(*_kiln.spatial_join_within(geometries(left), geometries(right), distance, stream, timeout))


@plainly
def join_in_chunks(left: Rows, right: Rows, take: Callable[[Pairs], object], relation: str = "intersects", *,
                   distance: float | None = None, most_bytes: int = 0) -> None:
    """The same list a part at a time, for lists that outgrow memory: `take` is called with each.

    `most_bytes`: of a part; 0: as many as there is room for.

    >>> sizes = []
    >>> spatial.join_in_chunks(AREAS, AREAS, lambda pairs: sizes.append(len(pairs)), "equals")
    >>> sum(sizes)
    2
    """
    if not callable(take):
        raise TypeError(f"join_in_chunks: take is a {type(take).__name__}; it is a function that is called with each part")
    _kiln.spatial_join_in_chunks(geometries(left), geometries(right), relation, distance, lambda a, b: take(Pairs(a, b)), most_bytes)


@plainly
def join_first(left: Rows, right: Rows | AreaIndex, relation: str = "intersects", *, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """For each left row the lowest right row, or -1: int32.

    >>> spatial.join_first(["POINT (3 1)", "POINT (9 9)"], AREAS, "within").tolist()
    [1, -1]
    """
    return _host(_kiln.spatial_join_first(geometries(left), _right(right), relation, stream, timeout))


@plainly
def join_count(left: Rows, right: Rows | AreaIndex, relation: str = "intersects", *, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """For each left row how many: int64.

    >>> spatial.join_count(["POINT (3 1)", "POINT (9 9)"], AREAS).tolist()
    [1, 0]
    """
    return _host(_kiln.spatial_join_count(geometries(left), _right(right), relation, stream, timeout))


@plainly
def join_any(left: Rows, right: Rows | AreaIndex, relation: str = "intersects", *, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """For each left row whether there is any: uint8, 0 or 1.

    >>> spatial.join_any(["POINT (3 1)", "POINT (9 9)"], AREAS).tolist()
    [1, 0]
    """
    return _host(_kiln.spatial_join_any(geometries(left), _right(right), relation, stream, timeout))


@plainly
def join_histogram(left: Rows, right: Rows | AreaIndex, relation: str = "intersects", *, stream: StreamLike | None = None,
                   timeout: float | None = None) -> Any:
    """For each right row how many left ones: int64.

    >>> spatial.join_histogram(["POINT (3 1)", "POINT (3.5 1)"], AREAS).tolist()
    [0, 2]
    """
    return _host(_kiln.spatial_join_histogram(geometries(left), _right(right), relation, stream, timeout))


@plainly
def query(left: Rows, right: Rows, distance: float = 0.0, *, stream: StreamLike | None = None, timeout: float | None = None) -> Pairs:
    """Rows whose boxes meet, or are no more than a distance apart; all that have a box where it is infinite.

    >>> len(spatial.query(AREAS, ["POINT (5 1)"], 1.0))
    1
    """
    return Pairs(*_kiln.spatial_query(geometries(left), geometries(right), distance, stream, timeout))


@plainly
def nearest(left: Rows, right: Rows, count: int = 1, *, most: float | None = None, ties: bool = True, stream: StreamLike | None = None,
            timeout: float | None = None) -> NearPairs:
    """For each left row the nearest right ones, at most `most` away; with ties, all that are as near as the last one.

    `count`: how many of them.

    >>> spatial.nearest(["POINT (5 1)"], AREAS).distance_sync().tolist()
    [1.0]
    """
    if not hasattr(count, "__index__"):
        raise TypeError(f"nearest: count is a {type(count).__name__}; it must be int")
    if count < 1:
        raise InvalidArgument(f"nearest: count is {count}; at least 1 is looked for")
    return NearPairs(*_kiln.spatial_nearest(geometries(left), geometries(right), count, most, ties, stream, timeout))


@plainly
def relate_join(left: Rows, right: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Matrices:
    """All pairs that are not disjoint, with how they lie to each other.

    >>> len(spatial.relate_join(AREAS, AREAS))
    4
    """
    return Matrices(*_kiln.spatial_relate_join(geometries(left), geometries(right), stream, timeout))


@plainly
def segment_intersections(left: Rows, right: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Crossings:
    """Where the segments of two arrays meet.

    >>> found = spatial.segment_intersections(["LINESTRING (0 0, 2 2)"], ["LINESTRING (0 2, 2 0)"])
    >>> float(found.x[0]), float(found.y[0])
    (1.0, 1.0)
    """
    return Crossings(*_kiln.spatial_segment_intersections(geometries(left), geometries(right), stream, timeout))


# ---- Row by row ---------------------------------------------------------------------------------------------------------


def _row_by_row(what: str, left: Rows, right: Rows) -> tuple[Geometries, Geometries]:
    one, other = geometries(left), geometries(right)
    if len(one) != len(other):
        raise InvalidArgument(f"spatial.{what}: {len(one)} rows and {len(other)}: it goes row by row, so there are as many of both")
    return one, other


@plainly
def relate(left: Rows, right: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """How row i of one lies to row i of the other: nine entries of three bits; 0 where one of them is missing.

    >>> len(spatial.relate(AREAS, AREAS))
    2
    """
    return _host(_kiln.spatial_relate(*_row_by_row("relate", left, right), stream, timeout))


@plainly
def distance(left: Rows, right: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """Between row i of one and row i of the other; NaN where there is none.

    >>> spatial.distance(["POINT (0 0)"], ["POINT (3 4)"]).tolist()
    [5.0]
    """
    return _host(_kiln.spatial_distance(*_row_by_row("distance", left, right), stream, timeout))


@plainly
def area(rows: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """Of each row: 0 of points and lines, NaN of missing rows.

    >>> spatial.area(AREAS).tolist()
    [4.0, 4.0]
    """
    return _host(_kiln.spatial_area(geometries(rows), stream, timeout))


@plainly
def length(rows: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """Of each row: of a line its length, of an area that of its boundary, NaN of missing rows.

    >>> spatial.length(["LINESTRING (0 0, 3 4)"]).tolist()
    [5.0]
    """
    return _host(_kiln.spatial_length(geometries(rows), stream, timeout))


@plainly
def centroid(rows: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Locations:
    """Of each row, as columns x and y; NaN where it has none.

    >>> [float(c[0]) for c in spatial.centroid(AREAS)]
    [1.0, 1.0]
    """
    return Locations(*_kiln.spatial_centroid(geometries(rows), stream, timeout))


@plainly
def bounds(rows: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Boxes:
    """Of each row, as columns min_x, min_y, max_x and max_y; NaN where it has none.

    >>> [float(c[1]) for c in spatial.bounds(AREAS)]
    [2.0, 0.0, 4.0, 2.0]
    """
    return Boxes(*_kiln.spatial_bounds(geometries(rows), stream, timeout))


@plainly
def bounds_by_key(rows: Rows, key: Any, keys: int, *, stream: StreamLike | None = None, timeout: float | None = None) -> Boxes:
    """Around the rows of each key from 0 to before `keys`; `key` is integers, one per row. Rows of other keys, and of none, are left out.

    >>> [float(c[0]) for c in spatial.bounds_by_key(AREAS, numpy.zeros(2, "i4"), 1)]
    [0.0, 0.0, 4.0, 2.0]
    """
    return Boxes(*_kiln.spatial_bounds_by_key(geometries(rows), _keys.numbers("bounds_by_key", "key", key, keys), keys, stream, timeout))


@plainly
def total_bounds_sync(rows: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> tuple[float, float, float, float] | None:
    """Of all rows; None where there is no vertex.

    >>> spatial.total_bounds_sync(AREAS)
    (0.0, 0.0, 4.0, 2.0)
    """
    return _kiln.spatial_total_bounds(geometries(rows), stream, timeout)


@plainly
def counts(rows: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Counts:
    """Vertices, and points, lines and rings, of each row.

    >>> [c.tolist() for c in spatial.counts(AREAS)]
    [[5, 5], [1, 1]]
    """
    return Counts(*_kiln.spatial_counts(geometries(rows), stream, timeout))


# ---- Other rows ---------------------------------------------------------------------------------------------------------


@plainly
def gather(rows: Rows, which: Any, *, stream: StreamLike | None = None, timeout: float | None = None) -> Geometries:
    """Row i is row which[i]; `which` is integers. No vertex is copied.

    >>> spatial.gather(AREAS, numpy.array([1], "i4")).to_wkt_sync()
    ['POLYGON ((2 0, 4 0, 4 2, 2 2, 2 0))']
    """
    return _kiln.spatial_gather(geometries(rows), _keys.numbers("gather", "which", which, None), stream, timeout)


@plainly
def filter_sync(rows: Rows, keep: Any, *, stream: StreamLike | None = None, timeout: float | None = None) -> Geometries:
    """The rows whose flag is not 0.

    `keep`: bool or uint8, one per row; an array, a column or a list.

    >>> len(spatial.filter_sync(AREAS, numpy.array([True, False])))
    1
    """
    return _kiln.spatial_filter(geometries(rows), _keys.flags("filter_sync", "keep", keep), stream, timeout)


@plainly
def point_buffer(rows: Rows, distance: float, *, quarter: int = 8, stream: StreamLike | None = None, timeout: float | None = None) -> Geometries:
    """Circles around points, as polygons with `quarter` sides in a quarter.

    >>> spatial.area(spatial.point_buffer(["POINT (0 0)"], 1.0, quarter=1)).tolist()
    [2.0]
    """
    return _kiln.spatial_point_buffer(geometries(rows), distance, quarter, stream, timeout)


@plainly
def buffer(rows: Rows, distance: float, *, quarter: int = 8, caps: str = "round", joins: str = "round", mitre_limit: float = 5.0,
           stream: StreamLike | None = None, timeout: float | None = None) -> Geometries:
    """What lies within a distance of each row, of any family, as valid multipolygons; a negative one leaves of areas what is farther than that from their edges.

    `quarter`: sides of a quarter of a circle, 1 to 32; `caps`: ends of lines, round, flat or square; `joins`: outside of corners, round, mitre or bevel;
    `mitre_limit`: in distances, at least 1.

    >>> spatial.area(spatial.buffer(["LINESTRING (0 0, 4 0)"], 1.0, caps="flat")).tolist()
    [8.0]
    """
    return _kiln.spatial_buffer(geometries(rows), distance, quarter, caps, joins, mitre_limit, stream, timeout)


@plainly
def simplify(rows: Rows, tolerance: float, *, stream: StreamLike | None = None, timeout: float | None = None) -> Geometries:
    """Lines and areas with fewer vertices: none that is left out is farther than the tolerance from what takes its place. Areas are valid; points stay.

    >>> spatial.simplify(["LINESTRING (0 0, 1 0.1, 2 0)"], 0.5).to_wkt_sync()
    ['MULTILINESTRING ((0 0, 2 0))']
    """
    return _kiln.spatial_simplify(geometries(rows), tolerance, stream, timeout)


@plainly
def simplify_coverage(areas: Rows, tolerance: float, *, stream: StreamLike | None = None, timeout: float | None = None) -> Geometries:
    """Areas that share borders, with fewer vertices: borders are simplified once for all rows that have them, and stay the same in both.

    None that is left out is farther than the tolerance from what takes its place. Where borders would cross or touch, or leave something on another side,
    more vertices stay; no row, part or hole vanishes. A valid multipolygon for every row. Points and lines are refused.

    >>> west = "POLYGON ((0 0, 2 0, 2.1 1, 2 2, 0 2, 0 0))"
    >>> east = "POLYGON ((2 0, 4 0, 4 2, 2 2, 2.1 1, 2 0))"
    >>> spatial.simplify_coverage([west, east], 0.5).to_wkt_sync()
    ['MULTIPOLYGON (((0 0, 2 0, 2 2, 0 2, 0 0)))', 'MULTIPOLYGON (((2 0, 4 0, 4 2, 2 2, 2 0)))']
    """
    return _kiln.spatial_simplify_coverage(geometries(areas), tolerance, stream, timeout)


@plainly
def convex_hull(rows: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Geometries:
    """The convex hull of each row.

    >>> spatial.area(spatial.convex_hull(["MULTIPOINT ((0 0), (2 0), (0 2), (0.5 0.5))"])).tolist()
    [2.0]
    """
    return _kiln.spatial_convex_hull(geometries(rows), stream, timeout)


@plainly
def envelope(rows: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Geometries:
    """The upright rectangle around each row; a line or a point where it has no area.

    >>> spatial.area(spatial.envelope(["LINESTRING (0 0, 2 3)"])).tolist()
    [6.0]
    """
    return _kiln.spatial_envelope(geometries(rows), stream, timeout)


@plainly
def boundary(rows: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Geometries:
    """Of areas their rings, of lines their ends by the mod-2 rule; of points nothing.

    >>> spatial.boundary(["LINESTRING (0 0, 2 3)"]).to_wkt_sync()
    ['MULTIPOINT ((0 0), (2 3))']
    """
    return _kiln.spatial_boundary(geometries(rows), stream, timeout)


@plainly
def point_on_surface(rows: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Geometries:
    """A point of each row, inside of it where it is an area.

    >>> inside = spatial.point_on_surface(AREAS)
    >>> spatial.join_any(inside, AREAS, "within").tolist()
    [1, 1]
    """
    return _kiln.spatial_point_on_surface(geometries(rows), stream, timeout)


@plainly
def clip(rows: Rows, areas: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Geometries:
    """What of each row, of any family, lies in any of the areas, or along their edges; a row for every row, empty where nothing is left.

    >>> spatial.length(spatial.clip(["LINESTRING (-1 1, 9 1)", "LINESTRING (0 9, 9 9)"], AREAS)).tolist()
    [4.0, 0.0]
    """
    return _kiln.spatial_clip_by_areas(geometries(rows), geometries(areas), stream, timeout)


@plainly
def clip_by_rect(rows: Rows, box: Sequence[float], *, stream: StreamLike | None = None, timeout: float | None = None) -> Geometries:
    """The parts of points and lines in (min_x, min_y, max_x, max_y).

    >>> spatial.length(spatial.clip_by_rect(["LINESTRING (0 0, 10 0)"], (2, -1, 5, 1))).tolist()
    [3.0]
    """
    if not hasattr(box, "__len__"):
        raise TypeError(f"clip_by_rect: box is a {type(box).__name__}; it is (min_x, min_y, max_x, max_y)")
    if len(box) != 4:
        raise InvalidArgument(f"clip_by_rect: box has {len(box)} numbers; it is (min_x, min_y, max_x, max_y)")
    left, bottom, right, top = box
    return _kiln.spatial_clip(geometries(rows), (left, bottom, right, top), stream, timeout)


# ---- Areas put over each other ------------------------------------------------------------------------------------------


@plainly
def overlay(left: Rows, right: Rows, how: str = "intersection", *, grid: float = 0.0, stream: StreamLike | None = None, timeout: float | None = None) -> Overlay:
    """What rows of two arrays have in common or alone, one of OVERLAYS, as valid multipolygons.

    `grid` above 0: coordinates are multiples of it. Of polygons; rings may cross and count by the even-odd rule.

    >>> parts = spatial.overlay(AREAS, FLOODS)
    >>> spatial.area(parts.rows).tolist(), parts.left_sync().tolist()
    ([1.0, 1.0], [0, 1])
    """
    return Overlay(*_kiln.spatial_overlay(geometries(left), geometries(right), how, grid, stream, timeout))


@plainly
def overlay_row_by_row(left: Rows, right: Rows, how: str = "intersection", *, grid: float = 0.0, stream: StreamLike | None = None,
                       timeout: float | None = None) -> Geometries:
    """Row i of one with row i of the other, as one row: intersection, union, difference or symmetric_difference. `grid`: as of `overlay`.

    >>> spatial.area(spatial.overlay_row_by_row(AREAS[:1], FLOODS, "union")).tolist()
    [7.0]
    """
    return _kiln.spatial_overlay_row_by_row(geometries(left), geometries(right), how, grid, stream, timeout)


@plainly
def area_table(left: Rows, right: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Areas:
    """The pairs of rows with some area in common, and how much; nothing is overlaid that need not be. Rows must be valid: see `make_valid`.

    >>> spatial.area_table(AREAS, FLOODS).area_sync().tolist()
    [1.0, 1.0]
    """
    return Areas(*_kiln.spatial_area_table(geometries(left), geometries(right), stream, timeout))


@plainly
def intersection_area(left: Rows, right: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """Row by row what both have in common; NaN where a row is missing. Rows must be valid: see `make_valid`.

    >>> spatial.intersection_area(AREAS[:1], FLOODS).tolist()
    [1.0]
    """
    return _host(_kiln.spatial_intersection_area(geometries(left), geometries(right), stream, timeout))


@plainly
def iou(left: Rows, right: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """Row by row the area of the intersection over that of the union, from 0 to 1; NaN where a row is missing. Rows must be valid: see `make_valid`.

    >>> spatial.iou(AREAS[:1], AREAS[:1]).tolist()
    [1.0]
    """
    return _host(_kiln.spatial_iou(geometries(left), geometries(right), stream, timeout))


@overload
def dissolve(rows: Rows, key: Any, keys: int, *, stream: StreamLike | None = None, timeout: float | None = None) -> Geometries: ...
@overload
def dissolve(rows: Rows, key: Any, keys: None = None, *, stream: StreamLike | None = None, timeout: float | None = None) -> Dissolved: ...


@plainly
def dissolve(rows: Rows, key: Any, keys: int | None = None, *, stream: StreamLike | None = None, timeout: float | None = None) -> Geometries | Dissolved:
    """All rows with one key as one row.

    Without `keys`, as GeoPandas does it: `key` has a value per row, of any type that can be sorted (a column, a list), and there is a row for each
    value that occurs, or for each category; rows without one are left out. With `keys`, `key` is integers that number the results: a row for each from 0
    to before `keys`, and rows of other numbers are left out.

    >>> states = spatial.dissolve(AREAS, ["ut", "co"])
    >>> list(states.key), spatial.area(states.rows).tolist()
    (['co', 'ut'], [4.0, 4.0])
    >>> spatial.area(spatial.dissolve(AREAS, numpy.zeros(2, "i4"), 1)).tolist()
    [8.0]
    """
    of = geometries(rows)
    if keys is not None:
        return _kiln.spatial_dissolve(of, _keys.numbers("dissolve", "key", key, keys), keys, stream, timeout)
    number, values = _keys.numbered(key, len(of))
    return Dissolved(values, _kiln.spatial_dissolve(of, number, len(values), stream, timeout))


@plainly
def union_all(rows: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Geometries:
    """All rows as one.

    >>> spatial.area(spatial.union_all([*AREAS, *FLOODS])).tolist()
    [10.0]
    """
    return _kiln.spatial_union_all(geometries(rows), stream, timeout)


@plainly
def make_valid(rows: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Geometries:
    """Row by row the same points by the even-odd rule, as valid multipolygons; points and lines stay as they are, missing rows missing.

    >>> spatial.area(spatial.make_valid(["POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))"])).tolist()
    [2.0]
    """
    return _kiln.spatial_make_valid(geometries(rows), stream, timeout)


@plainly
def is_valid(rows: Rows, *, stream: StreamLike | None = None, timeout: float | None = None) -> Any:
    """Of each row whether it is valid as OGC means it: uint8, 0 or 1. Missing and empty rows are.

    >>> spatial.is_valid(["POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))", *AREAS]).tolist()
    [0, 1, 1]
    """
    return _host(_kiln.spatial_is_valid(geometries(rows), stream, timeout))
