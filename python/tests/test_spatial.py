# SPDX-License-Identifier: Apache-2.0
"""Spatial operations beside NumPy and shapely, on the CPU and, where there is one, on the GPU with the same result."""

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import kiln
import numpy
import pytest
from kiln import _kiln, spatial

SQUARES = ["POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))", "POLYGON ((2 0, 4 0, 4 2, 2 2, 2 0))", None, "POLYGON EMPTY"]
LINES = ["LINESTRING (0 0, 4 4)", "LINESTRING (0 4, 4 0)", None, "LINESTRING (10 10, 11 11)"]


@pytest.fixture(params=["cpu", "gpu"])
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a test once on each side."""
    if request.param == "gpu":
        request.getfixturevalue("gpu")
    with kiln.execution(request.param):
        yield request.param


def there(rows: Any, place: str) -> Any:
    rows = spatial.geometries(rows)
    return rows.to_device() if place == "gpu" else rows


def host(x: Any) -> Any:
    return x.numpy_sync() if isinstance(x, kiln.Array) else numpy.asarray(x)


def random_points(n: int, seed: int = 1, top: float = 4.0) -> tuple[Any, Any]:
    rng = numpy.random.default_rng(seed)
    return rng.random(n) * top, rng.random(n) * top


# ---- What comes in ----


def test_coordinates_are_taken_as_they_are() -> None:
    x, y = random_points(1000)
    rows = spatial.points(x, y)
    assert (len(rows), rows.family, rows.ordinal) == (1000, "point", -1)
    assert rows.parts()["x"].__array_interface__["data"][0] == x.ctypes.data  # the same memory
    del x
    assert host(rows.parts()["x"]).sum() > 0  # kept alive


def test_missing_and_empty_are_two_things() -> None:
    rows = spatial.geometries(SQUARES)
    assert rows.is_missing_sync() == [False, False, True, False]
    assert numpy.array_equal(numpy.isnan(host(spatial.area(rows))), [False, False, True, False])
    assert rows.to_wkb_sync()[2] is None
    assert spatial.geometries(rows.to_wkb_sync()).is_missing_sync() == rows.is_missing_sync()


def test_wkb_and_wkt() -> None:
    rows = spatial.geometries([*SQUARES, "POINT (1 1)"])  # of two families
    assert rows.family == "mixed"
    again = spatial.geometries(rows.to_wkb_sync())
    assert again.to_wkt_sync() == rows.to_wkt_sync()


@pytest.mark.parametrize("rows, error, words", [
    (5, TypeError, "a int holds no geometries"),
    ([object()], TypeError, "row 0 is a object"),
    ([b"nonsense"], kiln.Error, "row 0"),
    (["POLYGON ((0 0"], kiln.InvalidArgument, "row 0"),
    ((numpy.zeros(3), numpy.zeros(4)), kiln.InvalidArgument, "4"),
    ((numpy.zeros(3, "f4"), numpy.zeros(3, "f4")), kiln.InvalidArgument, "float64"),
    ((numpy.zeros(6)[::2], numpy.zeros(3)), kiln.InvalidArgument, "not contiguous"),
])
def test_what_is_no_geometry(rows: Any, error: Any, words: Any) -> None:
    with pytest.raises(error, match=words):
        spatial.geometries(rows)


def test_unknown_relations_are_told() -> None:
    with pytest.raises(kiln.InvalidArgument, match="there is no relation 'near'; there are intersects, "):
        spatial.join(SQUARES, SQUARES, "near")


def test_what_is_wrong_with_rows() -> None:
    assert spatial.geometries(SQUARES).validate() == []
    (row, what, message), = spatial.geometries(["POLYGON ((0 0, 1 0, 1 1, 0 1))"]).validate()
    assert (row, what) == (0, "open-ring") or "open" in message


# ---- Operations ----


def test_joins(place: str) -> None:
    x, y = random_points(2000)
    inside = numpy.minimum((x // 2).astype(int), 1) * (y < 2) - (y >= 2)  # 0, 1 or -1
    dots, areas = there((x, y), place), there(SQUARES, place)
    pairs = spatial.join(dots, areas, "within")
    assert numpy.array_equal(pairs.left_sync(), numpy.flatnonzero(inside >= 0))
    assert numpy.array_equal(pairs.right_sync(), inside[inside >= 0])
    index = spatial.AreaIndex(areas)
    for right in (areas, index):
        assert numpy.array_equal(host(spatial.join_first(dots, right, "within")), inside)
        assert numpy.array_equal(host(spatial.join_any(dots, right, "within")), inside >= 0)
        assert numpy.array_equal(host(spatial.join_count(dots, right, "within")), inside >= 0)
        assert host(spatial.join_histogram(dots, right, "within")).tolist() == [(inside == 0).sum(), (inside == 1).sum(), 0, 0]
        assert len(spatial.join(dots, right, "within")) == len(pairs)
    assert isinstance(pairs.left, kiln.Array if place == "gpu" else numpy.ndarray)


def test_parts_of_a_join() -> None:
    x, y = random_points(5000)
    seen: list[Any] = []
    spatial.join_in_chunks(SQUARES, (x, y), seen.append, "contains", most_bytes=1 << 20)
    assert sum(map(len, seen)) == (y < 2).sum()

    def enough(_: Any) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError):
        spatial.join_in_chunks(SQUARES, (x, y), enough, "contains")


def test_nearest_and_distance(place: str) -> None:
    ax, ay = random_points(300, 2)
    bx, by = random_points(200, 3)
    a, b = there((ax, ay), place), there((bx, by), place)
    near = spatial.nearest(a, b)
    apart = numpy.hypot(ax[:, None] - bx, ay[:, None] - by)
    assert numpy.array_equal(near.left_sync(), numpy.arange(300))
    assert numpy.array_equal(near.right_sync(), apart.argmin(1))
    assert numpy.allclose(near.distance_sync(), apart.min(1))
    assert numpy.allclose(host(spatial.distance(a, a)), 0)
    assert len(spatial.nearest(a, b, 3, ties=False)) == 900
    assert len(spatial.join_within(a, b, 0.1)) == (apart <= 0.1).sum()
    with pytest.raises(kiln.InvalidArgument, match="at least 1"):
        spatial.nearest(a, b, 0)


def test_row_by_row_has_as_many_of_both() -> None:
    three, two = ["POINT (0 0)", "POINT (1 1)", "POINT (2 2)"], ["POINT (0 0)", "POINT (3 3)"]
    for call in (spatial.distance, spatial.relate):
        with pytest.raises(kiln.InvalidArgument, match="3 rows and 2"):
            call(three, two)


def test_measures(place: str) -> None:
    areas, lines = there(SQUARES, place), there(LINES, place)
    assert numpy.array_equal(host(spatial.area(areas)), [4, 4, numpy.nan, 0], equal_nan=True)
    assert numpy.allclose(host(spatial.length(lines)), [32**0.5, 32**0.5, numpy.nan, 2**0.5], equal_nan=True)
    assert numpy.array_equal(host(spatial.centroid(areas).x), [1, 3, numpy.nan, numpy.nan], equal_nan=True)
    assert numpy.array_equal(host(spatial.bounds(areas).max_x), [2, 4, numpy.nan, numpy.nan], equal_nan=True)
    assert spatial.total_bounds_sync(areas) == (0, 0, 4, 2)
    assert host(spatial.counts(areas).vertices).tolist() == [5, 5, 0, 0]


def test_relations_and_crossings(place: str) -> None:
    areas, lines = there(SQUARES, place), there(LINES, place)
    found = spatial.relate_join(lines, areas)
    assert list(zip(found.left_sync().tolist(), found.right_sync().tolist())) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert host(spatial.relate(areas, areas))[2] == 0
    met = spatial.segment_intersections(lines, lines)
    at = host(met.how) == 1
    assert set(zip(host(met.x)[at].tolist(), host(met.y)[at].tolist())) == {(2.0, 2.0)}
    assert len(spatial.query(areas, areas)) == 4


def test_other_rows(place: str) -> None:
    x, y = random_points(100)
    dots = there((x, y), place)
    which: Any = numpy.array([5, 5, 7], dtype="i4")
    keep: Any = (x < 2).astype("u1")
    if place == "gpu":
        which, keep = kiln.Array.from_host_sync(which), kiln.Array.from_host_sync(keep)
    chosen = spatial.gather(dots, which)
    assert len(chosen) == 3 and host(chosen.to_host_sync().parts()["x"]).tolist() == [x[5], x[5], x[7]]
    assert len(spatial.filter_sync(dots, keep)) == (x < 2).sum()
    around = spatial.point_buffer(dots, 0.5, quarter=16)
    assert around.family == "polygon" and numpy.allclose(host(spatial.area(around)), 0.25 * numpy.pi, rtol=0.01)
    assert len(spatial.clip_by_rect(there(LINES, place), (0, 0, 1, 1))) == 4


def test_shapes_of_rows(place: str) -> None:
    areas, lines = there(SQUARES, place), there(LINES, place)
    wide = spatial.buffer(lines, 1.0, caps="flat")
    assert wide.family == "multipolygon" and numpy.allclose(host(spatial.area(wide)), [8 * 2**0.5, 8 * 2**0.5, numpy.nan, 2 * 2**0.5], equal_nan=True)
    assert numpy.allclose(host(spatial.area(spatial.buffer(areas, 1.0, joins="mitre"))), [16, 16, numpy.nan, 0], equal_nan=True)
    assert numpy.allclose(host(spatial.area(spatial.buffer(areas, -0.5)))[:2], [1, 1])
    inside = spatial.clip(lines, areas)
    assert inside.family == "multilinestring" and len(inside) == 4
    assert numpy.allclose(host(spatial.length(inside)), [8**0.5, 8**0.5, numpy.nan, 0], equal_nan=True)
    bent = there(["LINESTRING (0 0, 1 0.1, 2 0)", None, "LINESTRING (0 0, 1 1, 1 0, 0 0)"], place)
    assert spatial.simplify(bent, 5.0).to_wkt_sync() == ["MULTILINESTRING ((0 0, 2 0))", "NULL", "MULTILINESTRING EMPTY"]
    shared = there(["POLYGON ((0 0, 2 0, 2.1 1, 2 2, 0 2, 0 0))", None, "POLYGON ((2 0, 4 0, 4 2, 2 2, 2.1 1, 2 0))",
                    "POLYGON ((6 0, 6.25 0, 6 0.25, 6 0))"], place)
    sizes = host(spatial.area(spatial.simplify_coverage(shared, 0.5)))
    assert numpy.array_equal(sizes, [4, numpy.nan, 4, 0.03125], equal_nan=True)  # and none vanishes
    assert spatial.simplify_coverage(shared, 0.05).to_wkt_sync()[1] == "NULL"
    assert len(spatial.simplify_coverage([], 0.5)) == 0
    with pytest.raises(kiln.Unsupported, match="simplify_coverage: polygons and multipolygons are needed"):
        spatial.simplify_coverage(lines, 0.5)
    with pytest.raises(kiln.InvalidArgument, match="a tolerance of -1"):
        spatial.simplify_coverage(shared, -1)
    assert numpy.allclose(host(spatial.area(spatial.convex_hull(bent))), [0.1, numpy.nan, 0.5], equal_nan=True)
    assert numpy.allclose(host(spatial.area(spatial.envelope(bent))), [0.2, numpy.nan, 1], equal_nan=True)
    assert numpy.allclose(host(spatial.length(spatial.boundary(areas))), [8, 8, numpy.nan, 0], equal_nan=True)
    assert host(spatial.join_any(spatial.point_on_surface(areas), areas, "within")).tolist() == [1, 1, 0, 0]
    bow_tie = there(["POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))", *SQUARES], place)
    assert host(spatial.is_valid(bow_tie)).tolist() == [0, 1, 1, 1, 1]
    on_grid = spatial.overlay_row_by_row(areas, there(["POLYGON ((0.3 0.3, 9 0.3, 9 9, 0.3 9, 0.3 0.3))"] * 4, place), grid=0.25)
    assert host(spatial.area(on_grid)).tolist()[:2] == [1.75**2, 2 * 1.75]


def test_rows_at_one_place_know_nothing_of_each_other(place: str) -> None:
    """Thousands of them: what is held against each other is what belongs together."""
    one, two = there([SQUARES[0]] * 4000, place), there(["POLYGON ((1 1, 3 1, 3 3, 1 3, 1 1))"] * 4000, place)
    assert set(host(spatial.area(spatial.overlay_row_by_row(one, two))).tolist()) == {1.0}
    assert host(spatial.is_valid(one)).sum() == 4000


def test_overlaps_are_from_0_to_1(place: str) -> None:
    """Of a sliver areas are noise, and so is their quotient."""
    corners = ["-2.220446049250313e-16 5", "-1.2000000000000002 3.4", "-0.6000000000000003 4.2"]
    one, other = (f"POLYGON (({', '.join([*c, c[0]])}))" for c in (corners, corners[1:] + corners[:1]))
    found = host(spatial.iou(there([one] * 2, place), there([one, other], place)))
    assert (found >= 0).all() and (found <= 1).all()


def random_areas(n: Any, seed: Any) -> Any:
    """Stars around random points: valid, and many of them over each other."""
    rng = numpy.random.default_rng(seed)
    x, y = rng.random((2, n, 1)) * 20
    turn = numpy.linspace(0, 2 * numpy.pi, 9, endpoint=False)
    far = rng.random((n, 9)) * 2 + 1
    corners = numpy.stack([x + far * numpy.cos(turn), y + far * numpy.sin(turn)], axis=-1)
    return corners, [f"POLYGON (({', '.join(f'{a!r} {b!r}' for a, b in numpy.vstack([c, c[:1]]).tolist())}))" for c in corners]


def test_areas_over_each_other(place: str) -> None:
    one, two = there(["POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))", None, "POLYGON EMPTY"], place), there(["POLYGON ((1 1, 3 1, 3 3, 1 3, 1 1))", *SQUARES[:2]], place)
    sizes = {"intersection": [1, 4], "union": [1, 4, 3, 4], "difference": [], "symmetric_difference": [3, 4], "identity": [1, 4], "update": [4, 4, 4]}
    for how, expected in sizes.items():
        found = spatial.overlay(one, two, how)
        assert len(found) == len(found.rows) == len(expected), how
        assert sorted(host(spatial.area(found.rows)).tolist()) == sorted(expected), how
        assert (found.left_sync() >= -1).all() and found.rows.family == "multipolygon"
    table = spatial.area_table(one, two)
    assert (table.left_sync().tolist(), table.right_sync().tolist(), table.area_sync().tolist()) == ([0, 0], [0, 1], [1, 4])
    assert numpy.array_equal(host(spatial.intersection_area(one, two)), [1, numpy.nan, 0], equal_nan=True)
    assert numpy.array_equal(host(spatial.iou(one, two)), [1 / 7, numpy.nan, 0], equal_nan=True)
    assert host(spatial.area(spatial.overlay_row_by_row(one, two, "union"))).tolist()[0] == 7
    assert host(spatial.area(spatial.union_all(two))).tolist() == [10]
    key = numpy.array([0, 1, 1], "i4")
    states = spatial.dissolve(two, kiln.Array.from_host_sync(key) if place == "gpu" else key, 3)
    assert host(spatial.area(states)).tolist() == [4, 8, 0]
    bow = spatial.make_valid(there(["POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))", None], place))
    assert bow.to_host_sync().validate() == [] and numpy.array_equal(host(spatial.area(bow)), [2, numpy.nan], equal_nan=True)
    on_grid = spatial.overlay(one, two, "intersection", grid=0.5)
    assert host(spatial.area(on_grid.rows)).tolist() == [1, 4]


def test_overlays_that_cannot_be() -> None:
    with pytest.raises(kiln.InvalidArgument, match="there is no overlay 'minus'; there are intersection, union, "):
        spatial.overlay(SQUARES, SQUARES, "minus")
    with pytest.raises(kiln.Unsupported):
        spatial.overlay(LINES, SQUARES)
    with pytest.raises(kiln.InvalidArgument):
        spatial.iou(SQUARES, SQUARES[:2])
    with pytest.raises(kiln.InvalidArgument, match="it must be of int32 or other integers: leave keys= out"):
        spatial.dissolve(SQUARES, numpy.zeros(4), 2)


def test_the_gpus_overlay_is_the_cpus(gpu: dict[str, Any]) -> None:
    left, right = (spatial.geometries(random_areas(300, seed)[1]) for seed in (11, 12))
    with kiln.execution("cpu"):
        here = {how: spatial.overlay(left, right, how) for how in spatial.OVERLAYS}
    with kiln.execution("gpu"):
        for how, expected in here.items():
            found = spatial.overlay(left.to_device(), right.to_device(), how)
            assert numpy.array_equal(found.left_sync(), expected.left) and numpy.array_equal(found.right_sync(), expected.right)
            assert found.rows.to_wkb_sync() == expected.rows.to_wkb_sync(), how  # the same bits


def test_the_gpus_pairs_are_the_cpus(gpu: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    x, y = random_points(100_000)
    tx, ty = torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda()
    with kiln.execution("cpu"):
        expected = spatial.join((x, y), SQUARES, "intersects")
    with kiln.execution("gpu"):
        areas = spatial.geometries(SQUARES).to_device()
        found = spatial.join((tx, ty), areas, "intersects")
        assert found.left.ordinal == 0
        left = torch.from_dlpack(found.left)
        assert torch.equal(left.cpu(), torch.from_numpy(expected.left.copy()))
        side = torch.cuda.Stream()
        assert numpy.array_equal(spatial.join((tx, ty), areas, "intersects", stream=side).right_sync(), expected.right)


def test_geoarrow_on_the_device(gpu: dict[str, Any]) -> None:
    class Other:
        """An object of another library, with the protocol alone."""

        def __arrow_c_device_array__(self, requested_schema: Any = None) -> Any:
            return spatial.geometries(SQUARES).to_device().__arrow_c_device_array__()

    again = spatial.geometries(Other())
    assert again.ordinal == 0
    assert again.to_wkt_sync() == spatial.geometries(SQUARES).to_wkt_sync()


# ---- Beside other libraries ----


def test_geoseries_and_shapely() -> None:
    shapely = pytest.importorskip("shapely")
    shapes = shapely.from_wkt(["POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0), (0.5 0.5, 1 0.5, 1 1, 0.5 0.5))", None, "POLYGON EMPTY", "MULTIPOLYGON (((2 0, 4 0, 4 2, 2 2, 2 0)))"])
    rows = spatial.geometries(shapes)
    assert rows.is_missing_sync() == [False, True, False, False]
    assert numpy.array_equal(spatial.area(rows), shapely.area(shapes), equal_nan=True)
    assert [None if s is None else s.equals(t) for s, t in zip(spatial.to_shapely_sync(rows), shapes)] == [True, None, True, True]
    mixed = spatial.geometries([shapely.Point(1, 1), shapes[0], None])
    assert mixed.family == "mixed" and mixed.is_missing_sync() == [False, False, True]
    assert len(spatial.geometries(shapely.Point(1, 2))) == 1
    with pytest.raises(kiln.Error, match="row 1"):
        spatial.geometries([shapely.Point(1, 1), shapely.GeometryCollection([shapely.Point(0, 0)])])
    geopandas = pytest.importorskip("geopandas")
    series = geopandas.GeoSeries(shapes, crs="EPSG:4326")
    frame = geopandas.GeoDataFrame({"name": list("abcd")}, geometry=series)
    for given in (series, series.iloc[1:], frame, series.values):
        assert numpy.array_equal(spatial.area(given), shapely.area(numpy.asarray(getattr(given, "geometry", given))), equal_nan=True)


@pytest.fixture
def pyarrow_with_types() -> Iterator[Any]:
    """pyarrow that keeps the names of these types, as geoarrow-pyarrow makes it."""
    pyarrow = pytest.importorskip("pyarrow")

    def type_named(name: Any) -> Any:
        class Named(pyarrow.ExtensionType):  # type: ignore[misc, name-defined]
            def __init__(self, storage: Any) -> None:
                super().__init__(storage, name)

            def __arrow_ext_serialize__(self) -> Any:
                return b"{}"

            @classmethod
            def __arrow_ext_deserialize__(cls, storage: Any, serialized: Any) -> Any:
                return cls(storage)

        return Named(pyarrow.null())

    names = ("geoarrow.polygon", "geoarrow.wkb")
    for name in names:
        pyarrow.register_extension_type(type_named(name))
    yield pyarrow
    for name in names:
        pyarrow.unregister_extension_type(name)


@pytest.mark.parametrize("encoding, interleaved", [("geoarrow", True), ("geoarrow", False), ("WKB", None)])
def test_geoarrow(encoding: Any, interleaved: Any, pyarrow_with_types: Any) -> None:
    pyarrow, geopandas, shapely = pyarrow_with_types, pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    shapes = shapely.from_wkt(["POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))", None, "POLYGON EMPTY", "POLYGON ((2 0, 4 0, 4 2, 2 2, 2 0))"])
    array = geopandas.GeoSeries(shapes).to_arrow(geometry_encoding=encoding, **({"interleaved": interleaved} if encoding == "geoarrow" else {}))
    rows = spatial.geometries(array)
    assert numpy.array_equal(spatial.area(rows), [4, numpy.nan, 0, 4], equal_nan=True)
    part = spatial.geometries(pyarrow.array(array)[1:])
    assert numpy.array_equal(spatial.area(part), [numpy.nan, 0, 4], equal_nan=True)
    chunks = pyarrow.chunked_array([pyarrow.array(array), pyarrow.array(array)[2:]])
    assert numpy.array_equal(spatial.area(chunks), [4, numpy.nan, 0, 4, 0, 4], equal_nan=True)
    back = geopandas.GeoSeries.from_arrow(rows)
    assert back.isna().tolist() == [False, True, False, False] and back.iloc[3].equals(shapes[3])


def test_a_stream_without_an_array_says_of_what_it_has_none(pyarrow_with_types: Any) -> None:
    pyarrow, geopandas = pyarrow_with_types, pytest.importorskip("geopandas")
    squares = pytest.importorskip("shapely").from_wkt(SQUARES[:1])
    for interleaved in (True, False):
        kind = pyarrow.array(geopandas.GeoSeries(squares).to_arrow(geometry_encoding="geoarrow", interleaved=interleaved)).type
        rows = spatial.geometries(pyarrow.chunked_array([], type=kind))
        assert (rows.family, len(rows)) == ("polygon", 0)
        assert len(spatial.join(rows, SQUARES)) == 0 and len(spatial.area(rows)) == 0
    assert len(spatial.geometries(pyarrow.chunked_array([], type=pyarrow.binary()))) == 0
    with pytest.raises(kiln.InvalidArgument, match="coordinates are doubles, not 'f'"):
        spatial.geometries(pyarrow.chunked_array([], type=pyarrow.struct([("x", "f4"), ("y", "f4")])))


def test_interleaved_coordinates_of_another_size_are_refused() -> None:
    """They were read as if they were doubles, twice as far as there was something."""
    pyarrow = pytest.importorskip("pyarrow")
    for given in ("f4", "i8"):
        values = pyarrow.array(range(8), given)
        with pytest.raises(kiln.InvalidArgument, match="coordinates are doubles, not"):
            spatial.geometries(pyarrow.FixedSizeListArray.from_arrays(values, 2))


@pytest.mark.parametrize("relation", spatial.RELATIONS)
def test_every_relation_beside_shapely(relation: Any) -> None:
    shapely = pytest.importorskip("shapely")
    rng = numpy.random.default_rng(7)
    boxes = shapely.box(*(c := rng.integers(0, 20, (2, 60))), *(c + rng.integers(1, 6, (2, 60))))
    lines = shapely.linestrings(rng.integers(0, 20, (60, 3, 2)).astype(float))
    for left, right in ((boxes, boxes), (lines, boxes), (boxes, lines)):
        found = spatial.join(left, right, relation)
        truth = getattr(shapely, relation)(left[:, None], right[None])
        assert set(zip(found.left.tolist(), found.right.tolist())) == set(zip(*(i.tolist() for i in numpy.nonzero(truth))))


def test_every_overlay_beside_shapely() -> None:
    shapely = pytest.importorskip("shapely")
    left, right = (shapely.polygons(random_areas(60, seed)[0]) for seed in (8, 9))
    pieces = {"intersection": shapely.intersection(left[:, None], right[None])}
    all_left, all_right = shapely.union_all(left), shapely.union_all(right)
    pieces["difference"] = shapely.difference(left, all_right)
    only_right = shapely.difference(right, all_left)
    wanted = {
        "intersection": [pieces["intersection"]], "difference": [pieces["difference"]], "identity": [pieces["intersection"], pieces["difference"]],
        "symmetric_difference": [pieces["difference"], only_right], "union": [pieces["intersection"], pieces["difference"], only_right],
        "update": [right, pieces["difference"]],
    }
    assert set(wanted) == set(spatial.OVERLAYS)
    for how, expected in wanted.items():
        found = spatial.overlay(left, right, how)
        sizes = numpy.concatenate([shapely.area(e).ravel() for e in expected])
        assert len(found) == (sizes > 0).sum(), how
        assert numpy.allclose(numpy.sort(spatial.area(found.rows)), numpy.sort(sizes[sizes > 0]), rtol=1e-9, atol=1e-12), how
        assert shapely.is_valid(spatial.to_shapely_sync(found.rows)).all(), how
    both = spatial.overlay(left, right)
    apart = shapely.symmetric_difference(spatial.to_shapely_sync(both.rows), pieces["intersection"][both.left, both.right])
    assert shapely.area(apart).max() < 1e-9
    table = spatial.area_table(left, right)
    assert numpy.allclose(table.area, shapely.area(pieces["intersection"][table.left, table.right])) and len(table) == len(both)
    for how in ("intersection", "union", "difference", "symmetric_difference"):
        assert numpy.allclose(spatial.area(spatial.overlay_row_by_row(left, right, how)), shapely.area(getattr(shapely, how)(left, right)), atol=1e-12), how
    common = shapely.area(shapely.intersection(left, right))
    assert numpy.allclose(spatial.intersection_area(left, right), common, atol=1e-12)
    assert numpy.allclose(spatial.iou(left, right), common / shapely.area(shapely.union(left, right)), atol=1e-12)
    key = (numpy.arange(60) % 7).astype("i4")
    assert numpy.allclose(spatial.area(spatial.dissolve(left, key, 7)), [shapely.area(shapely.union_all(left[key == k])) for k in range(7)])
    assert numpy.allclose(spatial.area(spatial.union_all(left)), shapely.area(all_left))


def test_keys_that_are_no_numbering_are_refused() -> None:
    """A row for each key there might be would not fit into any memory."""
    for keys in (2**31 - 1, 2**31, 2**40):
        with pytest.raises(kiln.InvalidArgument, match="number those that occur from 0"):
            spatial.dissolve(SQUARES, numpy.array([0, 1, 2, 2**31 - 1 if keys > 2**31 else 3], "i4"), keys)
        with pytest.raises(kiln.InvalidArgument, match="number those that occur from 0"):
            spatial.bounds_by_key(SQUARES, numpy.zeros(4, "i4"), keys)
    assert len(spatial.dissolve(SQUARES, numpy.array([0, 1, 99999, 7], "i4"), 100000)) == 100000


def test_an_index_takes_what_every_operation_takes() -> None:
    shapely = pytest.importorskip("shapely")
    x, y = numpy.array([1.0, 3.0, 9.0]), numpy.array([1.0, 1.0, 9.0])
    rows = spatial.geometries(SQUARES)
    shapes = spatial.to_shapely_sync(rows)
    for areas in (SQUARES, rows.to_wkb_sync(), shapes, list(shapes), rows):
        assert spatial.join_first((x, y), spatial.AreaIndex(areas), "within").tolist() == [0, 1, -1]
    geopandas = pytest.importorskip("geopandas")
    assert len(spatial.AreaIndex(geopandas.GeoSeries(shapes))) == 4
    assert len(spatial.AreaIndex(areas=shapely.box(0, 0, 1, 1))) == 1
    with pytest.raises(TypeError, match="a int holds no geometries"):
        spatial.AreaIndex(3)


@pytest.mark.parametrize("rows", [SQUARES, LINES, [*SQUARES, *LINES], ["POINT (1 2)", None, "POINT EMPTY"], []], ids=["areas", "lines", "mixed", "points", "none"])
def test_geometries_are_pickled(rows: Any) -> None:
    import copy
    import pickle

    made = spatial.geometries(rows)
    again = pickle.loads(pickle.dumps(made))
    assert again.to_wkt_sync() == made.to_wkt_sync() and again.family == made.family
    assert copy.deepcopy(made).to_wkt_sync() == made.to_wkt_sync()


@pytest.mark.parametrize("family, levels", [("point", 0), ("linestring", 1), ("polygon", 2), ("multipoint", 1), ("multilinestring", 2), ("multipolygon", 3)])
@pytest.mark.parametrize("rows", [0, 9])
def test_pickles_without_a_row_that_tells_keep_their_family(family: Any, levels: Any, rows: Any) -> None:
    import pickle

    nothing = numpy.zeros(rows if levels == 0 else 0)
    offsets = [numpy.zeros(rows + 1 if level == 0 else 1, "i4") for level in range(levels)]
    made = _kiln.geometries_from_parts(family, nothing, nothing, offsets, numpy.zeros(2, "u1") if rows else None)
    again = pickle.loads(pickle.dumps(made))
    assert (again.family, len(again), again.is_missing_sync()) == (family, rows, [True] * rows)


@pytest.mark.parametrize("chosen", [[], [2], [0], [1, 2]], ids=str)
def test_rows_of_a_mixed_array_stay_mixed(chosen: Any) -> None:
    import pickle

    mixed = spatial.geometries(["POINT (1 2)", SQUARES[0], None])
    some = spatial.gather(mixed, numpy.array(chosen, "i4"))
    for again in (pickle.loads(pickle.dumps(some)), some.to_host_sync()):
        assert (again.family, again.to_wkt_sync(), again.is_missing_sync()) == ("mixed", some.to_wkt_sync(), some.is_missing_sync())
        assert len(spatial.join(again, SQUARES)) == len(spatial.join(some, SQUARES))
        assert numpy.array_equal(spatial.area(again), spatial.area(some), equal_nan=True)


WRONG = [
    (lambda: spatial.dissolve(SQUARES, numpy.zeros(4, "i4"), "2"), "dissolve: keys is a str; it must be int"),  # type: ignore[call-overload]
    (lambda: spatial.join(SQUARES, SQUARES, 5), "join: relation is a int; it must be str"),  # type: ignore[arg-type]
    (lambda: spatial.join_within(SQUARES, SQUARES, "near"), "join_within: distance is a str; it must be float"),  # type: ignore[arg-type]
    (lambda: spatial.overlay(SQUARES, SQUARES, None), "overlay: how is a NoneType; it must be str"),  # type: ignore[arg-type]
    (lambda: spatial.area(SQUARES, timeout="soon"), "area: timeout is a str; it must be float or None"),  # type: ignore[arg-type]
    (lambda: spatial.dissolve(SQUARES, numpy.zeros(4, "i4"), -1), "dissolve: a number is out of its range"),
]


@pytest.mark.parametrize("call, words", WRONG, ids=[words for _, words in WRONG])
def test_wrong_types_are_told_in_words(call: Any, words: Any) -> None:
    with pytest.raises(TypeError, match=words) as caught:
        call()
    assert "incompatible" not in str(caught.value)


@pytest.mark.parametrize("given, kind, words", [
    ("POINT (1 2)", kiln.InvalidArgument, "geometries: a list belongs here"),
    (["POINT (1 2)", b"x"], TypeError, "row 1 is a bytes and row 0 a str: rows are all WKB or all WKT"),
    ([None, 5], TypeError, "row 1 is a int: rows are shapely geometries, WKB or WKT"),
])
def test_lists_that_hold_no_rows(given: Any, kind: Any, words: Any) -> None:
    with pytest.raises(kind, match=words):
        spatial.geometries(given)


@pytest.mark.parametrize("family, offsets", [
    ("polygon", [[0, 5], [0, 9]]), ("polygon", [[0, 1], [0, 9]]), ("linestring", [[0, 4, 2]]), ("linestring", [[-3, 2]]), ("linestring", [[0, 2000000000]]),
    ("multipolygon", [[0, 1], [0, 7], [0, 4]]),
], ids=str)
def test_offsets_that_leave_the_memory_are_found_by_whoever_reads(family: Any, offsets: Any) -> None:
    """As GeoArrow may bring them."""
    import pickle

    x = numpy.arange(5.0)
    rows = _kiln.geometries_from_parts(family, x, x, [numpy.array(o, "i4") for o in offsets], None)
    for read in (rows.to_wkt_sync, rows.to_wkb_sync, lambda: pickle.dumps(rows), lambda: spatial.area(rows), lambda: spatial.join(rows, SQUARES),
                 lambda: spatial.gather(rows, numpy.array([len(rows) - 1], "i4")).to_host_sync().to_wkt_sync()):
        with pytest.raises(kiln.InvalidArgument, match="row [01]: "):
            read()


# ---- What others gave is left as it is ----


def test_parts_are_given_out_to_be_read() -> None:
    held = bytes(32)
    x = numpy.frombuffer(held)
    rows = spatial.points(x, x)
    with pytest.raises(ValueError, match="read-only"):
        rows.parts()["x"].numpy_sync()[0] = 1.5
    assert held == bytes(32)
    lines = spatial.geometries(["LINESTRING (0 0, 1 1)", None]).parts()
    for part in (lines["y"], lines["offsets"][0], lines["validity"]):
        assert not part.numpy_sync().flags.writeable
        assert not numpy.from_dlpack(part).flags.writeable
        with pytest.raises(BufferError, match="read-only"):
            part.__dlpack__()
    with pytest.raises(kiln.InvalidArgument, match="out cannot be written to"):
        kiln.tropical.product(numpy.zeros((4, 1)), numpy.zeros((1, 1)), out=_matrix(rows.parts()["x"]))


def _matrix(part: Any) -> Any:
    return part.numpy_sync().reshape(-1, 1)


class DeviceStream:
    """Arrays as a stream of Arrow's device interface: each is what __arrow_c_device_array__ gives."""

    def __init__(self, kind: Any, *parts: Any) -> None:
        self.kind, self.parts, self.schemas, self.released = kind, list(parts), [part[0] for part in parts], 0

    def __arrow_c_device_stream__(self, requested_schema: Any = None, **_: Any) -> Any:
        import ctypes

        word = ctypes.c_void_p
        gives, tells, ends = ctypes.CFUNCTYPE(ctypes.c_int, word, word), ctypes.CFUNCTYPE(ctypes.c_char_p, word), ctypes.CFUNCTYPE(None, word)
        api = ctypes.pythonapi
        api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = word, (ctypes.py_object, ctypes.c_char_p)
        api.PyCapsule_New.restype, api.PyCapsule_New.argtypes = ctypes.py_object, (word, ctypes.c_char_p, word)

        class Stream(ctypes.Structure):
            _fields_ = [("kind", ctypes.c_int32), ("schema", gives), ("next", gives), ("error", tells), ("release", ends), ("data", word)]

        def moved(to: Any, capsule: Any, name: Any, size: Any, release: Any) -> None:  # as whoever takes a capsule does
            at = api.PyCapsule_GetPointer(capsule, name)
            ctypes.memmove(to, at, size)
            ctypes.c_uint64.from_address(at + release).value = 0

        def schema(_: Any, to: Any) -> Any:
            moved(to, self.schemas.pop(0), b"arrow_schema", 72, 56)
            return 0

        def following(_: Any, to: Any) -> Any:
            ctypes.memset(to, 0, 128)
            if self.parts:
                part = self.parts.pop(0)
                self.kept = part
                moved(to, part[1], b"arrow_device_array", 128, 64)
            return 0

        def release(of: Any) -> None:
            self.released += 1
            ctypes.c_uint64.from_address(of + Stream.release.offset).value = 0

        self.stream = Stream(self.kind, gives(schema), gives(following), tells(lambda _: b"no"), ends(release))
        return api.PyCapsule_New(ctypes.addressof(self.stream), b"arrow_device_array_stream", None)


def parts_for_a_stream(rows: Any, n: Any) -> Any:
    """And one schema more, for the question after the last."""
    given = [rows.__arrow_c_device_array__() for _ in range(n + 1)]
    stream = DeviceStream(1, *given[:n])
    stream.schemas.append(given[n][0])
    return stream


def test_streams_of_a_device_are_taken() -> None:
    rows = spatial.geometries(SQUARES)
    for n in (1, 2):
        stream = parts_for_a_stream(rows, n)
        taken = spatial.geometries(stream)
        assert taken.to_wkb_sync() == rows.to_wkb_sync() * n and stream.released == 1
    none = parts_for_a_stream(rows, 0)
    assert len(spatial.geometries(none)) == 0 and spatial.geometries(parts_for_a_stream(rows, 0)).family == rows.family


def test_streams_stay_where_they_are(gpu: dict[str, Any]) -> None:
    rows = spatial.geometries(SQUARES)
    taken = spatial.geometries(parts_for_a_stream(rows.to_device(), 1))
    assert taken.ordinal == 0 and taken.to_wkb_sync() == rows.to_wkb_sync()
    with pytest.raises(kiln.Unsupported, match="2 arrays on a device"):
        spatial.geometries(parts_for_a_stream(rows.to_device(), 2))


def test_a_stream_that_somebody_has_taken() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    rows = pyarrow.array(spatial.geometries(["POINT (0 1)", "POINT (2 3)"]))
    capsule = pyarrow.chunked_array([rows, rows]).__arrow_c_stream__()

    class Stream:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return capsule

    pyarrow.ChunkedArray._import_from_c_capsule(capsule)
    with pytest.raises(kiln.InvalidArgument, match="taken by somebody else"):
        spatial.geometries(Stream())


MASKED = {
    "x": lambda: spatial.points(numpy.ma.masked_array([1.0, 3.0], mask=[True, False]), numpy.ones(2)),
    "key": lambda: spatial.dissolve(SQUARES[:2], numpy.ma.masked_array(numpy.zeros(2, "i4"), mask=[True, False]), 1),
    "which": lambda: spatial.gather(SQUARES, numpy.ma.masked_array(numpy.zeros(2, "i4"), mask=[True, False])),
    "keep": lambda: spatial.filter_sync(SQUARES[:2], numpy.ma.masked_array([True, True], mask=[True, True])),
}


@pytest.mark.parametrize("argument", MASKED)
def test_masks_are_not_lost(argument: Any) -> None:
    with pytest.raises(kiln.InvalidArgument, match=f"{argument} is a masked array, and its mask would be lost"):
        MASKED[argument]()


def test_everything_is_within_an_infinite_distance(place: str) -> None:
    left, right = there(["POINT (0 0)", "POINT (3 1)", None], place), there(["POINT (5 5)", "POINT (100 100)", "POINT EMPTY"], place)
    for distance in (200.0, 1.7e308, float("inf")):
        assert len(spatial.query(left, right, distance)) == 4
    assert len(spatial.query(left, left, float("inf"))) == 4


def test_a_time_for_compilers_does_not_count_where_there_is_none() -> None:
    with kiln.execution("cpu"):
        for timeout in (0, 1e-9, -1, 0.001):
            for _ in range(5):
                assert host(spatial.area(SQUARES[:1], timeout=timeout)).tolist() == [4.0]


def test_names_of_files_need_be_no_text(tmp_path: pathlib.Path) -> None:
    import os

    name = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.wkt")
    with open(name, "w") as out:
        out.write("POINT (1 2)\n")
    assert len(spatial.read_file(name)) == 1


REFUSED: dict[str, Callable[..., Any]] = {
    "box has 3 numbers": lambda: spatial.clip_by_rect(SQUARES, (0, 0, 1)),
    "count is a str": lambda: spatial.nearest(SQUARES, SQUARES, "x"),  # type: ignore[arg-type]
    "caps is 'butt'; it is one of round, flat, square": lambda: spatial.buffer(LINES, 1.0, caps="butt"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_wrong_arguments_are_named(words: Any) -> None:
    with pytest.raises((TypeError, kiln.InvalidArgument), match=words):
        REFUSED[words]()


def test_offsets_are_copied_where_somebody_else_could_change_them() -> None:
    """They are checked when the rows are made, and lead to memory ever after."""
    offsets = numpy.array([0, 2, 4], "i4")
    rows = kiln._kiln.geometries_from_parts("linestring", numpy.arange(4.0), numpy.arange(4.0), [offsets], None)
    offsets[1] = 1 << 30
    assert rows.to_wkt_sync() == ["LINESTRING (0 0, 1 1)", "LINESTRING (2 2, 3 3)"]


def test_an_arrow_stream_is_read_once() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    rows = pyarrow.array(spatial.geometries(["POINT (0 1)", "POINT (2 3)"]))

    class Stream:
        def __init__(self) -> None:
            self.capsule = pyarrow.chunked_array([rows, rows]).__arrow_c_stream__()

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return self.capsule

    mine, theirs = Stream(), Stream()
    assert len(spatial.geometries(mine)) == 4
    pyarrow.ChunkedArray._import_from_c_capsule(theirs.capsule)
    for read in (mine, theirs):
        with pytest.raises(kiln.InvalidArgument, match="the stream was read or released before, or taken by somebody else"):
            spatial.geometries(read)
