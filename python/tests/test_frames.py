# SPDX-License-Identifier: Apache-2.0
"""Frames, columns and keys as people of pandas and GeoPandas have them."""

import json
import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import kiln
import numpy
import pytest
from conftest import Run
from kiln import spatial

SQUARES = ["POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))", "POLYGON ((2 0, 4 0, 4 2, 2 2, 2 0))", "POLYGON ((4 0, 6 0, 6 2, 4 2, 4 0))", "POLYGON ((9 9, 10 9, 10 10, 9 10, 9 9))"]


# ---- Keys ----


@pytest.mark.parametrize("type", ["i1", "u1", "i2", "i4", "u4", "i8", "u8", ">i8"])
def test_keys_are_integers_of_any_kind(type: Any) -> None:
    key = numpy.array([0, 1, 1, 7], type)
    assert spatial.area(spatial.dissolve(SQUARES, key, 2)).tolist() == [4, 8]
    assert spatial.area(spatial.dissolve(SQUARES, numpy.repeat(key, 2)[::2], 2)).tolist() == [4, 8]
    assert spatial.bounds_by_key(SQUARES, key, 2).max_x.tolist() == [2, 6]
    assert spatial.gather(SQUARES, numpy.array([3, 0], type)).to_wkt_sync() == [SQUARES[3], SQUARES[0]]


def test_numbers_beyond_int32_are_no_keys() -> None:
    assert spatial.area(spatial.dissolve(SQUARES, numpy.array([1 << 32, 0, -(1 << 40), (1 << 32) + 1]), 2)).tolist() == [4, 0]
    assert spatial.area(spatial.dissolve(SQUARES, [0, 0, 1, 5], 2)).tolist() == [8, 4]
    assert len(spatial.dissolve([], [], 2)) == 2 and len(spatial.dissolve([], [])) == 0
    for which, words in ((numpy.array([1 << 32]), "which has 4294967296"), (numpy.array([-1]), "which has -1"), (numpy.array([0.5]), "which is of float64"), (["a"], "which is of <U1")):
        with pytest.raises(kiln.InvalidArgument, match=words):
            spatial.gather(SQUARES, which)


VALUES = {
    "strings": (["ut", "co", "co", None], ["co", "ut"], [8, 4]),
    "numbers": (numpy.array([1 << 40, 7, 7, -3]), [-3, 7, 1 << 40], [1, 8, 4]),
    "floats": (numpy.array([2.5, 1.0, 1.0, numpy.nan]), [1.0, 2.5], [8, 4]),
    "texts": (numpy.array(["ut", "co", "co", "zz"]), ["co", "ut", "zz"], [8, 4, 1]),
    "truth": (numpy.array([True, False, False, False]), [False, True], [9, 4]),
    "days": (numpy.array(["2020-01-02", "2020-01-01", "2020-01-01", "NaT"], "M8[D]"), [numpy.datetime64("2020-01-01"), numpy.datetime64("2020-01-02")], [8, 4]),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_numbered(name: Any) -> None:
    key, values, areas = VALUES[name]
    found = spatial.dissolve(SQUARES, key)
    assert list(found.key) == values and len(found) == len(found.rows) == len(values)
    assert spatial.area(found.rows).tolist() == areas


def test_columns_are_keys() -> None:
    pandas, geopandas = pytest.importorskip("pandas"), pytest.importorskip("geopandas")
    frame = geopandas.GeoDataFrame({"state": ["ut", "co", "co", None], "n": pandas.array([5, 1 << 40, None, 5], dtype="Int64"),
                                    "c": pandas.Categorical(["b", "a", "a", None], categories=["z", "a", "b"]), "s": pandas.array(["x", "y", None, "y"], dtype="string"),
                                    "when": pandas.to_datetime(["2020", "2021", "2021", None])}, geometry=geopandas.GeoSeries.from_wkt(SQUARES))
    for by in frame.columns.drop("geometry"):
        theirs = frame.dissolve(by)
        for key in (frame[by], frame[by].array, pandas.Index(frame[by]), frame[by].iloc[::-1][::-1]):
            ours = spatial.dissolve(frame, key)
            assert list(ours.key) == list(theirs.index), by
            assert numpy.allclose(spatial.area(ours.rows), theirs.area), by
    assert spatial.area(spatial.dissolve(frame, pandas.array([1, None, 0, 1], dtype="Int64"), 2)).tolist() == [4, 5]
    assert spatial.area(spatial.dissolve(frame, pandas.Series([1, 5, 0, 1], dtype="UInt8"), 2)).tolist() == [4, 5]
    assert spatial.area(spatial.dissolve(frame, frame.groupby("state").ngroup()).rows).tolist() == [8, 4]
    for key in (frame["state"], frame["c"], frame["when"]):
        with pytest.raises(kiln.InvalidArgument, match="leave keys= out, and the values that occur are numbered"):
            spatial.dissolve(frame, key, 2)
    with pytest.raises(TypeError, match=r"pass the column, frame\['state'\]"):
        spatial.dissolve(frame, "state")
    with pytest.raises(TypeError, match="it is one value per row: pass one column"):
        spatial.dissolve(frame, frame[["state", "n"]])
    with pytest.raises(kiln.InvalidArgument, match=r"key has shape \[3\] and there are 4 rows"):
        spatial.dissolve(frame, frame["state"].iloc[:3])
    with pytest.raises(TypeError, match="cannot be sorted together"):
        spatial.dissolve(frame, ["a", 1, "b", 2])
    with pytest.raises(kiln.InvalidArgument, match="which has missing values"):
        spatial.gather(frame, pandas.array([0, None], dtype="Int64"))
    with pytest.raises(TypeError, match="keys is a str; it must be int"):
        spatial.dissolve(frame, frame["n"], "2")  # type: ignore[call-overload]


def test_columns_of_arrow_are_keys() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    numbers = pyarrow.array([1, None, 0, 1])
    for key in (numbers, pyarrow.chunked_array([numbers[:3], numbers[3:]])):
        assert spatial.area(spatial.dissolve(SQUARES, key, 2)).tolist() == [4, 5]
        assert spatial.area(spatial.dissolve(SQUARES, key).rows).tolist() == [4, 5]
    words = pyarrow.array(["ut", "co", "co", None])
    for key in (words, words.dictionary_encode(), pyarrow.chunked_array([words[:1], words[1:]])):
        found = spatial.dissolve(SQUARES, key)
        assert dict(zip(found.key, spatial.area(found.rows).tolist())) == {"co": 8, "ut": 4}


class Lent:
    """Values of a library nobody knows, which raises what it is told to where somebody asks for them."""

    dtype = numpy.dtype("i8")
    shape = (4,)
    ndim = 1

    def __init__(self, kind: int = 1, **raising: Any) -> None:
        self.kind, self.raising = kind, raising

    def __len__(self) -> Any:
        return 4

    def __iter__(self) -> Any:
        return iter([7, 3, 7, 7])

    def __array__(self, *_: Any, **__: Any) -> Any:
        return numpy.array([7, 3, 7, 7])

    def __getattribute__(self, name: Any) -> Any:
        if name == "__cuda_array_interface__":
            raise object.__getattribute__(self, "raising").get("interface", AttributeError)(name)
        return object.__getattribute__(self, name)

    def __dlpack_device__(self) -> Any:
        if "device" in self.raising:
            raise self.raising["device"]("no arrays with nulls")
        return (self.kind, 0)

    def __dlpack__(self, **how: Any) -> Any:
        return numpy.array([7, 3, 7, 7]).__dlpack__(**how)


def test_values_of_the_host_are_keys_whatever_library_has_them() -> None:
    for key in (Lent(), Lent(3), Lent(device=TypeError), Lent(device=RuntimeError)):
        found = spatial.dissolve(SQUARES, key)
        assert (list(found.key), spatial.area(found.rows).tolist()) == ([3, 7], [4, 9])


def test_values_on_a_device_are_not_numbered() -> None:
    for key in (Lent(2), Lent(13), Lent(device=TypeError, interface=NotImplementedError)):
        with pytest.raises(kiln.InvalidArgument, match="key is on a device"):
            spatial.dissolve(SQUARES, key)


# ---- Frames ----


def test_frames_without_geometries_say_what_to_do() -> None:
    pandas, geopandas, shapely = pytest.importorskip("pandas"), pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    for frame, words in ((pandas.DataFrame({"lon": [1.0], "lat": [2.0]}), r"a DataFrame has no geometry column \(its columns are lon, lat\): make a GeoDataFrame of it, geopandas.GeoDataFrame\(df"),
                         (geopandas.GeoDataFrame({"a": [1]}), "no active geometry column: choose one with set_geometry"),
                         (geopandas.GeoDataFrame({"a": [1], "shape": geopandas.GeoSeries.from_wkt(["POINT (1 2)"])}), r"set_geometry\('shape'\)")):
        for call in (spatial.geometries, spatial.area, lambda rows: spatial.join(rows, rows)):
            with pytest.raises(TypeError, match=words):
                call(frame)
    plain = pandas.DataFrame({"geometry": shapely.points([1, 2], [3, 4])})
    assert len(spatial.geometries(plain)) == 2


def test_columns_of_rows() -> None:
    pandas, shapely = pytest.importorskip("pandas"), pytest.importorskip("shapely")
    shapes = shapely.from_wkt(SQUARES)
    for column in (pandas.Series(SQUARES), pandas.Series(SQUARES, dtype=object), pandas.Series(shapes), pandas.Series(shapely.to_wkb(shapes)),
                   pandas.Series([*SQUARES, None], dtype="string").iloc[:4], pandas.Series(SQUARES, index=[4, 4, 1, 0])):
        assert spatial.area(column).tolist() == [4, 4, 4, 1]
    assert spatial.geometries(pandas.Series([SQUARES[0], None, float("nan"), pandas.NA], dtype=object)).is_missing_sync() == [False, True, True, True]
    with pytest.raises(TypeError, match="row 0 is a int"):
        spatial.geometries(pandas.Series([1, 2]))


def test_tables_are_told_from_columns() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"name": ["a"], "geometry": [b"x"]})
    for given in (table, table.to_batches()[0]):
        with pytest.raises(TypeError, match=r"has the columns name, geometry: pass the one that has geometries, table\['geometry'\]"):
            spatial.geometries(given)
    assert len(spatial.geometries(pyarrow.table({"x": [1.0, 2.0], "y": [3.0, 4.0]}))) == 2


def test_collections_say_what_to_do() -> None:
    shapely, geopandas = pytest.importorskip("shapely"), pytest.importorskip("geopandas")
    for rows, words in ((["POINT (1 1)", "GEOMETRYCOLLECTION (POINT (0 0))"], r"row 1 is a GeometryCollection, and rows are .* series.explode\(\)"),
                        (["GEOMETRYCOLLECTION EMPTY", "GEOMETRYCOLLECTION (POINT (0 0), LINESTRING (0 0, 1 1))"], "row 0 is a GeometryCollection, as are 1 others")):
        series = geopandas.GeoSeries.from_wkt(rows)
        for given in (series, series.values, shapely.from_wkt(rows), series.to_frame("geometry")):
            with pytest.raises(kiln.Unsupported, match=words):
                spatial.geometries(given)
    assert len(spatial.geometries(series.explode())) >= 2  # as the message says
    assert len(spatial.geometries([shapely.LinearRing([(0, 0), (1, 0), (1, 1)])])) == 1


# ---- Coordinates that are dropped ----


def told(call: Any) -> Any:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        call()
    return [(one.category, str(one.message), one.filename) for one in heard]


def test_heights_are_dropped_with_a_warning() -> None:
    shapely = pytest.importorskip("shapely")
    flat, high = shapely.from_wkt(["POINT (1 2)", "POINT Z (1 2 3)"])
    for call in (lambda: spatial.geometries([flat, high]), lambda: spatial.geometries(high), lambda: spatial.join([high], [flat]), lambda: spatial.area([flat, high, None])):
        (category, message, where), = told(call)
        assert category is spatial.CoordinatesDropped and message.startswith("rows have Z coordinates, and x and y are all that is taken") and where == __file__
    assert told(lambda: spatial.geometries([flat, None])) == [] == told(lambda: spatial.geometries(shapely.force_2d([high])))
    assert issubclass(spatial.CoordinatesDropped, UserWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("error", spatial.CoordinatesDropped)
        with pytest.raises(spatial.CoordinatesDropped):
            spatial.area([high])


def test_measures_are_dropped_with_a_warning() -> None:
    shapely = pytest.importorskip("shapely")
    if not hasattr(shapely, "has_m") or shapely.geos_version < (3, 12, 0):
        pytest.skip("this shapely does not tell")
    assert "rows have M coordinates" in told(lambda: spatial.geometries(shapely.from_wkt(["POINT M (1 2 3)"])))[0][1]
    assert "rows have Z and M coordinates" in told(lambda: spatial.geometries(shapely.from_wkt(["POINT ZM (1 2 3 4)", "LINESTRING (0 0, 1 1)"])))[0][1]


def test_a_place_says_it_once(python: Run) -> None:
    pytest.importorskip("shapely")
    done = python("import shapely\nfrom kiln import spatial\nfor _ in range(3):\n    spatial.area([shapely.Point(1, 2, 3)])\n")
    assert done.stderr.count("CoordinatesDropped") == 1 and done.stderr.startswith("<string>:4: ")


def test_heights_of_a_file_are_dropped_with_a_warning(tmp_path: pathlib.Path) -> None:
    for height in ([], [7.0]):
        file = tmp_path / f"{len(height)}.geojson"
        file.write_text(json.dumps({"type": "Point", "coordinates": [1.0, 2.0, *height]}))
        assert [category for category, _, _ in told(lambda: spatial.read_file(file))] == [spatial.CoordinatesDropped] * len(height)


def test_heights_of_arrow_are_refused() -> None:
    pytest.importorskip("pyarrow")
    geopandas = pytest.importorskip("geopandas")
    for rows in (["POINT Z (1 2 3)"], ["LINESTRING Z (0 0 0, 1 1 1)"]):
        series = geopandas.GeoSeries.from_wkt(rows)
        for interleaved in (True, False):
            with pytest.raises(kiln.Unsupported, match="Z or M coordinates; only x and y are taken"):
                spatial.geometries(series.to_arrow(geometry_encoding="geoarrow", interleaved=interleaved))


def test_coordinates_are_columns() -> None:
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"x": [1.0, 3.0], "y": [1.0, 1.0]})
    xs = [frame["x"], frame["x"].astype("Float64"), pyarrow.array(frame["x"]), pyarrow.chunked_array([[1.0], [3.0]]), pandas.Series(pyarrow.array([1.0, 3.0]), dtype=pandas.ArrowDtype(pyarrow.float64()))]
    for x in xs:
        assert spatial.join_first((x, frame["y"]), SQUARES, "within").tolist() == [0, 1]
        assert len(spatial.points(x, x)) == 2
    for x in (pandas.array([1.0, None], dtype="Float64"), pyarrow.array([1.0, None])):
        with pytest.raises(kiln.InvalidArgument, match="of coordinates has missing values, and a point has both"):
            spatial.geometries((x, x))
    with pytest.raises(kiln.InvalidArgument, match="it must be of float64"):
        spatial.points(frame["x"].astype("i8"), frame["y"])


# ---- What becomes of results ----


def test_results_are_kept_copied_and_sent() -> None:
    import copy
    import pickle
    import weakref

    rows, pairs, parts = spatial.geometries(SQUARES), spatial.join(SQUARES, SQUARES), spatial.overlay(SQUARES, SQUARES)
    index, unit = spatial.AreaIndex(SQUARES), kiln.Unit("k", "")
    array = rows.parts()["x"]
    for one in (rows, index, unit, array, pairs):
        assert weakref.ref(one)() is one
    ways: tuple[Callable[[Any], Any], ...] = (copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)))
    for again in ways:
        assert again(rows).to_wkt_sync() == rows.to_wkt_sync()
        assert again(pairs).left.tolist() == pairs.left.tolist()
        assert again(parts).rows.to_wkt_sync() == parts.rows.to_wkt_sync()
        assert again(spatial.dissolve(SQUARES, list("abab"))).key.tolist() == ["a", "b"]
        assert again(spatial.CoordinatesDropped("x")).args == ("x",)
        with pytest.raises(TypeError, match=r"numpy_sync\(\) gives an array that can be"):
            again(array)
        with pytest.raises(TypeError, match="build it again of the areas"):
            again(index)
    assert array.first(2).numpy_sync().tolist() == [0, 2] and len(array.first(0)) == 0
    for n in (-1, 100):
        with pytest.raises(kiln.InvalidArgument, match="first: there are 20 items"):
            array.first(n)


ODD: dict[str, Callable[[], Any]] = {
    "a dict holds no rows: pass shapely.geometry.shape": lambda: spatial.geometries({"type": "Point", "coordinates": [1, 2]}),
    "row 0 is a dict: .* shapely.geometry.shape": lambda: spatial.geometries([{"type": "Point", "coordinates": [1, 2]}]),
    "an array of 2 dimensions holds no rows": lambda: spatial.geometries(numpy.zeros((3, 2))),
    "coordinates have 2 dimensions": lambda: spatial.points(numpy.zeros((3, 2)), numpy.zeros((3, 2))),
    "which has 2 dimensions": lambda: spatial.gather(SQUARES, numpy.array([[0, 1]])),
    "x has items that no buffer can describe, such as dates": lambda: spatial.points(numpy.zeros(2, "M8[s]"), numpy.zeros(2, "M8[s]")),
    "key is a int; it is a value per row": lambda: spatial.dissolve(SQUARES, 0),
    "key is a dict; it is a value per row": lambda: spatial.dissolve(SQUARES, {"a": 1}),
    "key is a function; it is a value per row": lambda: spatial.dissolve(SQUARES, lambda row: row),
    "keep is of int64; it must be of bool or uint8: pass keep != 0": lambda: spatial.filter_sync(SQUARES, numpy.array([1, 0, 0, 1])),
    "box is a int": lambda: spatial.clip_by_rect(SQUARES, 5),  # type: ignore[arg-type]
    "take is a int; it is a function": lambda: spatial.join_in_chunks(SQUARES, SQUARES, 5),  # type: ignore[arg-type]
    "events: kind is a NoneType": lambda: kiln.events(None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("words", ODD)
def test_odd_arguments_are_told_in_words(words: Any) -> None:
    with pytest.raises((TypeError, kiln.InvalidArgument, kiln.Unsupported), match=words):
        ODD[words]()


def test_flags_are_columns() -> None:
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    keep = [True, False, False, True]
    for given in (keep, tuple(keep), numpy.array(keep), pandas.Series(keep), pandas.array(keep, dtype="boolean"), pyarrow.array(keep), pandas.Series(keep, dtype=pandas.ArrowDtype(pyarrow.bool_()))):
        assert spatial.filter_sync(SQUARES, given).to_wkt_sync() == [SQUARES[0], SQUARES[3]]
    assert len(spatial.filter_sync([], [])) == 0
    with pytest.raises(kiln.InvalidArgument, match=r"keep has missing values: keep.fillna\(False\)"):
        spatial.filter_sync(SQUARES, pandas.array([True, None, True, True], dtype="boolean"))


def test_columns_of_arrow_are_rows() -> None:
    pandas, pyarrow, shapely = pytest.importorskip("pandas"), pytest.importorskip("pyarrow"), pytest.importorskip("shapely")
    bytes_ = list(shapely.to_wkb(shapely.from_wkt(SQUARES)))
    for rows, type in ((SQUARES, pyarrow.string()), (SQUARES, pyarrow.large_string()), (bytes_, pyarrow.binary()), (bytes_, pyarrow.large_binary())):
        column = pyarrow.array([*rows, None], type)
        for given in (column, pyarrow.chunked_array([column[:2], column[2:]]), pandas.Series(column, dtype=pandas.ArrowDtype(type))):
            assert spatial.area(given).tolist()[:4] == [4, 4, 4, 1] and spatial.geometries(given).is_missing_sync() == [False] * 4 + [True], type


def test_missing_rows_of_shapely_are_pandas_too() -> None:
    shapely = pytest.importorskip("shapely")
    assert spatial.geometries([shapely.Point(1, 2), float("nan"), None]).is_missing_sync() == [False, True, True]
    with pytest.raises(TypeError, match="row 1 is a str among shapely geometries"):
        spatial.geometries([shapely.Point(1, 2), "POINT (1 2)"])


def test_tables_without_rows_have_columns() -> None:
    pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    kiln.Unit("seen", 'extern "C" __global__ void seen() {}').artifact("sm_90")
    none = kiln.events("evicted")
    assert len(none) == 0 and list(none.to_pandas().columns) == list(kiln.events()[0]) == pyarrow.table(none).column_names
    assert type(kiln.status())._fields == tuple(kiln.status()[0])
    assert repr(none) == "<kiln table: 0 rows of kind, unit, target, reason, duration, detail>"
