# SPDX-License-Identifier: Apache-2.0
"""kiln spatial: one line per pair, whatever the files are; what is wrong is refused with file, line and reason."""

import base64
import contextlib
import json
import os
import re
import sqlite3
import struct
import subprocess

from _kiln import CACHE, CLI, SCRATCH, check, data, run, write

EMPTY_FLATGEOBUF = ("ZmdiA2ZnYgGsAAAAIAAAAAAAAAAYABAACAAAAAUAAAAAAAAAAAAMAAAABgAYAAAAAAEAABgAAAAEAAAAAwAAAGAAAAA4AAAADAAAAAEAAABlAAAA6P///wAAAAoIAAAAAAAAAAEA"
                    "AAB5AAAAEAAQAAgABwAAAAAAAAAMABAAAAAAAAAKCAAAAAAAAAABAAAAeAAOABAACAAHAAAAAAAMAA4AAAAAAAALCAAAAAAAAAACAAAAaWQAAA==")
ZONES = ["POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", "NULL", "POLYGON ((2 2, 6 2, 6 6, 2 6, 2 2))", "POLYGON EMPTY"]
write("zones.wkt", "\n".join(ZONES) + "\n")
write("points.wkt", "POINT (1 1)\nPOINT (4 4)\nPOINT (9 9)\nPOINT EMPTY\n")
write("points.csv", 'name,lon,lat\n"a, first",1,1\nb,4,4\n"the ""third""",9,9\n,,\n')


def out(*words, **more):
    return run("spatial", *words, **more).stdout


PLANE = ('PROJCS["somewhere",GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],'
         'PROJECTION["Lambert_Azimuthal_Equal_Area"],PARAMETER["latitude_of_center",10],PARAMETER["longitude_of_center",20],PARAMETER["false_easting",0],'
         'PARAMETER["false_northing",0],UNIT["metre",1]]')


def geopackage(name, truths):
    """A row for each truth value, in its field `open`, at a point of its own, with times in two zones; a second layer, `more`, of one row. Its CRS has no number."""
    (SCRATCH / name).unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(SCRATCH / name)) as file, file:
        file.executescript("""
            PRAGMA application_id = 1196444487; PRAGMA user_version = 10200;
            CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY, organization TEXT NOT NULL, organization_coordsys_id INTEGER NOT NULL,
                definition TEXT NOT NULL, description TEXT);
            INSERT INTO gpkg_spatial_ref_sys VALUES ('somewhere', 100000, 'NONE', 100000, '""" + PLANE + """', NULL);
            CREATE TABLE gpkg_contents (table_name TEXT PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT, description TEXT, last_change DATETIME,
                min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE, srs_id INTEGER);
            INSERT INTO gpkg_contents VALUES ('rows', 'features', 'rows', '', '2020-01-01T00:00:00Z', 0, 0, 1, 1, 100000), ('more', 'features', 'more', '', '2020-01-01T00:00:00Z', 0, 0, 1, 1, 100000);
            CREATE TABLE gpkg_geometry_columns (table_name TEXT NOT NULL, column_name TEXT NOT NULL, geometry_type_name TEXT NOT NULL, srs_id INTEGER NOT NULL, z TINYINT, m TINYINT);
            INSERT INTO gpkg_geometry_columns VALUES ('rows', 'geom', 'POINT', 100000, 0, 0), ('more', 'geom', 'POINT', 100000, 0, 0);
            CREATE TABLE rows (fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, geom POINT, open BOOLEAN, t DATETIME);
            CREATE TABLE more (fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, geom POINT, size INTEGER);""")
        shape = lambda row: b"GP\0\1" + struct.pack("<i", 100000) + struct.pack("<BIdd", 1, 1, row, 0)
        times = ("2020-01-01T10:00:00.000Z", "2020-01-01T10:00:00.250+05:30")
        file.executemany("INSERT INTO rows (geom, open, t) VALUES (?, ?, ?)", ((shape(row), truth, times[row % 2]) for row, truth in enumerate(truths)))
        file.execute("INSERT INTO more (geom, size) VALUES (?, 7)", (shape(5),))


# The line everybody begins with.
pairs = out("join", "--left", "zones.wkt", "--right", "points.wkt", "--predicate", "intersects")
check(pairs == "0,0\n0,1\n2,1\n", "one left,right line per pair", pairs)
both = ("--left", "zones.wkt", "--right", "points.wkt")
check(out("join", *both, "--mode", "cpu") == pairs, "intersects is the default, and the CPU gives the same")
check(out("join", *both, "-p", "contains") == "0,0\n2,1\n", "contains")
check(out("join", *both, "-p", "touches") == "0,1\n", "touches")
check(out("join", *both, "-p", "disjoint") == "0,2\n0,3\n2,0\n2,2\n2,3\n3,0\n3,1\n3,2\n3,3\n", "disjoint: null rows are in no pair, empty ones in all")
check(out("join", "--left", "points.wkt", "--right", "zones.wkt", "-p", "within") == "0,0\n1,2\n", "within")
check(out("join", *both, "-p", "equals") == "", "no pair is no line")
check(out("join", *both, "-p", "dwithin", "-d", "5") == "0,0\n0,1\n2,0\n2,1\n2,2\n", "dwithin")
check(out("join", *both, "-p", "dwithin", "-d", "1.4142135623730949") == "0,0\n0,1\n2,1\n", "just less than the root of 2")
check(out("join", *both, "-p", "dwithin", "-d", "1.4142135623730951") == "0,0\n0,1\n2,0\n2,1\n", "just more")

# The same from every format; rows by name.
named = out("join", "--left", "zones.wkt", "--right", "points.csv", "--right-id", "name")
check(named == '0,"a, first"\n0,b\n2,b\n', "names, quoted where they must be", named)
out("join", "--left", "zones.wkt", "--right", "points.wkt", "-o", "matched.geojson")
matched = json.loads((SCRATCH / "matched.geojson").read_text())
check([f["properties"] for f in matched["features"]] == [{"row": 0, "matches": 2}, {"row": 2, "matches": 1}], "matched rows as GeoJSON", matched)
check(out("join", "--left", "matched.geojson", "--left-id", "row", "--right", "points.wkt") == pairs, "which is read again")
out("bounds", "zones.wkt", "-o", "boxes.wkb")
check(out("join", "--left", "boxes.wkb", "--right", "points.wkt") == pairs, "boxes as WKB are boxes")
out("join", *both, "-o", "pairs.csv")
check((SCRATCH / "pairs.csv").read_text() == pairs, "pairs in a file")
write("feature.json", '{"type":"Feature","properties":{},"geometry":{"type":"Point","coordinates":[1,1]}}\n')
check(out("join", "--left", "zones.wkt", "--right", "feature.json") == "0,0\n", "one Feature")
environment = dict(os.environ, KILN_CACHE_DIR=str(CACHE))
piped = subprocess.run([CLI, "spatial", "info", "-", "--format", "gdal"], input="x;y\n1;1\n", capture_output=True, text=True, cwd=SCRATCH)
check(piped.returncode == 2 and "name a file" in piped.stderr, "standard input is not read by GDAL", piped.stderr)
piped = subprocess.run([CLI, "spatial", "join", "--left", "zones.wkt", "--right", "-"], input="x;y\n1;1\n", capture_output=True, text=True,
                       cwd=SCRATCH, env=environment)
check(piped.returncode == 0 and piped.stdout == "0,0\n", "standard input, of the format it begins like", piped)
write("odd.csv", "e,n\n1,1\n")
check(out("join", "--left", "zones.wkt", "--right", "odd.csv", "--x", "e", "--y", "n") == "0,0\n", "columns by name")

# JSON.
found = data("spatial", "join", *both)
check(found["pairs"] == [[0, 0], [0, 1], [2, 1]] and found["where"] == "cpu" and found["left_rows"] == 4, "join as JSON", found)
check(data("spatial", "relate", *both, "--pattern", "T*****FF*")["pairs"] == [[0, 0, "0F2FF1FF2"], [2, 1, "0F2FF1FF2"]], "a pattern")
about = data("spatial", "info", "zones.wkt", "points.csv")
check(about[0]["rows"] == 4 and about[0]["null"] == 1 and about[0]["empty"] == 1 and about[0]["families"] == {"polygon": 3} and
      about[0]["bounds"] == [0, 0, 6, 6] and about[1]["families"] == {"point": 3}, "info", about)
write("few.wkt", "POINT (1 1)\n\nPOINT EMPTY\n\n")
write("fewer.wkt", "POINT (1 1)\n\nPOINT EMPTY\nLINESTRING (0 0, 1 1)\n")
check([f["vertices"] for f in data("spatial", "info", "few.wkt", "fewer.wkt", "points.csv")] == [1, 3, 3],
      "null and empty points have no vertex", data("spatial", "info", "few.wkt", "fewer.wkt", "points.csv"))
check(run("spatial", "info", "few.wkt").stdout.splitlines()[1].split()[1:5] == ["4", "2", "1", "1"], "nor in the table")
boxes = data("spatial", "bounds", "zones.wkt")
check(boxes["file"] == "zones.wkt" and boxes["where"] == "cpu" and boxes["reason"] == "below-crossover", "where bounds ran, and why", boxes)
check([r["bounds"] for r in boxes["rows"]] == [[0, 0, 4, 4], None, [2, 2, 6, 6], None] and boxes["total"] == [0, 0, 6, 6], "bounds", boxes)

# The other verbs.
check(out("bounds", "zones.wkt") == "0,0,0,4,4\n1,,,,\n2,2,2,6,6\n3,,,,\n", "bounds")
near = ("nearest", "--left", "points.wkt", "--right", "zones.wkt")
check(out(*near) == "0,0,0\n1,0,0\n1,2,0\n2,2,4.242640687119285\n", "nearest, ties kept")
check(out(*near, "--ties", "by-row") == "0,0,0\n1,0,0\n2,2,4.242640687119285\n", "ties by row")
check(out(*near, "-k", "2", "--most", "2") == "0,0,0\n0,2,1.4142135623730951\n1,0,0\n1,2,0\n", "two, no farther than 2")
check(out("relate", *both) == "0,0,0F2FF1FF2\n0,1,FF20F1FF2\n2,1,0F2FF1FF2\n", "relate")
check(out("relate", *both, "--rows") == "0,0,0F2FF1FF2\n1,1,\n2,2,FF2FF10F2\n3,3,FFFFFFFF2\n", "row by row, null ones too")
check(data("spatial", "relate", *both, "--rows")["pairs"][1] == [1, 1, None], "a null row in JSON")
check(out("relate", *both, "--rows", "--pattern", "*********").count("\n") == 3, "no matrix matches no pattern")

# Areas over each other.
write("left.csv", 'name,wkt\nw,"POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))"\ne,"POLYGON ((2 0, 4 0, 4 2, 2 2, 2 0))"\nw,"POLYGON ((0 2, 4 2, 4 3, 0 3, 0 2))"\n')
write("right.wkt", "POLYGON ((1 1, 3 1, 3 5, 1 5, 1 1))\n")
over = ("overlay", "--left", "left.csv", "--left-id", "name", "--right", "right.wkt")
check(out(*over) == "w,0,1\ne,0,1\nw,0,2\n", "overlay: parts with their areas", out(*over))
check(out(*over, "--how", "difference") == "w,,3\ne,,3\nw,,2\n", "difference")
check(out(*over, "--how", "union") == "w,0,1\nw,,3\ne,0,1\ne,,3\nw,0,2\nw,,2\n,0,4\n", "union")
out(*over, "-o", "parts.geojson")
parts = json.loads((SCRATCH / "parts.geojson").read_text())
check(parts["features"][0]["geometry"]["type"] == "MultiPolygon" and parts["features"][0]["properties"] == {"left": "w", "right": 0, "area": 1.0}, "parts as GeoJSON", parts)
check(data("spatial", *over)["rows"][2] == {"left": "w", "right": 0, "area": 2.0}, "overlay as JSON")
check(out("dissolve", "left.csv", "--key", "name") == "w,2,8\ne,1,4\n", "dissolve by key")
check(out("dissolve", "left.csv") == "all,3,12\n", "all rows as one")

# Within a limit: the same, in chunks, which an event tells.
tiles = "".join(f"POLYGON (({x} {y}, {x + 1} {y}, {x + 1} {y + 1}, {x} {y + 1}, {x} {y}))\n" for x in range(12) for y in range(12))
shifted = "".join(f"POLYGON (({x}.5 {y}.5, {x + 1}.5 {y}.5, {x + 1}.5 {y + 1}.5, {x}.5 {y + 1}.5, {x}.5 {y}.5))\n" for x in range(12) for y in range(12))
write("tiles.wkt", tiles)
write("shifted.wkt", shifted)
tiled = ("overlay", "--left", "tiles.wkt", "--right", "shifted.wkt", "--how", "union", "--mode", "cpu")
told = SCRATCH / "chunks.jsonl"
limited = run("spatial", *tiled, "--memory-limit", "128K", KILN_EVENTS=told).stdout
check(limited == out(*tiled) and limited.count("\n") > 500, "overlay within a limit")
check('"in-chunks"' in told.read_text(), "chunks are told")
check(out("dissolve", "tiles.wkt", "--memory-limit", "1G") == "all,144,144\n", "a limit that is kept anyway")
check("may need" in run("spatial", *tiled, "--memory-limit", "1K", status=1).stderr, "a limit that no row keeps")
for wrong in ("much", "0", "-1"):
    check("--memory-limit" in run("spatial", *tiled, "--memory-limit", wrong, status=2).stderr, f"no size: {wrong}")
check("--rows" in run("spatial", "overlay", "--rows", "--left", "tiles.wkt", "--right", "shifted.wkt", "--memory-limit", "1G", status=2).stderr, "of layers")
run("spatial", *over, "--how", "xor", status=2)
write("ones.wkt", "POLYGON ((0 0, 3 0, 3 3, 0 3, 0 0))\nPOLYGON ((0 0, 1 0, 1 1, 0 0))\n")
write("twos.wkt", "POLYGON ((1 1, 4 1, 4 4, 1 4, 1 1))\nPOLYGON ((5 5, 6 5, 6 6, 5 5))\n")
by_row = ("overlay", "--rows", "--left", "ones.wkt", "--right", "twos.wkt")
check(out(*by_row) == "0,0,4\n1,1,0\n", "overlay row by row", out(*by_row))
check(out(*by_row, "--how", "union", "--grid", "2") == "0,0,16\n1,1,0\n", "on a grid", out(*by_row, "--how", "union", "--grid", "2"))
write("shrunk.wkt", "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))\nPOLYGON ((9 9, 9 9, 9 9, 9 9), (5 5, 6 5, 6 6, 5 5))\n")
valid = [line.rsplit(",", 1)[1] for line in out("measure", "shrunk.wkt").split()]
check(valid == ["valid", "invalid"], "a hole whose shell is a point says nothing of the row before", valid)
write("nulls.wkt", "POLYGON ((0 0, 1 0, 1 1, 0 0))\nNULL\n")
check(out("overlay", "--rows", "--left", "ones.wkt", "--right", "nulls.wkt") == "0,0,0.5\n1,1,\n", "a row with a null one has no area")
check("row by row" in run("spatial", "overlay", "--rows", "--left", "ones.wkt", "--right", "right.wkt", status=1).stderr, "as many rows")
check("not of --rows" in run("spatial", *by_row, "--how", "update", status=2).stderr, "what is of layers only")
run("spatial", *by_row, "--grid", "inf", status=2)
run("spatial", *by_row, "--grid", "-1", status=2)

# Rows made of rows.
write("some.wkt", "LINESTRING (0 0, 4 0)\nNULL\nPOLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))\n")
check(out("measure", "some.wkt").startswith("0,0,4,2,0,valid\n1,,,,,valid\n2,"), "measures", out("measure", "some.wkt"))
check(data("spatial", "measure", "some.wkt")["rows"][2]["valid"] is False, "what is not valid")
check(out("distance", "--left", "ones.wkt", "--right", "twos.wkt") == "0,0,0\n1,1,5.656854249492381\n", "distances")
check(out("buffer", "some.wkt", "-d", "1", "--caps", "flat", "--joins", "mitre").startswith("0,8\n1,\n2,"), "buffers")
out("buffer", "some.wkt", "-d", "1", "--caps", "square", "-o", "near.wkt")
check((SCRATCH / "near.wkt").read_text().startswith("MULTIPOLYGON (((-1 -1, 5 -1, 5 1, -1 1, -1 -1)))\nNULL\n"), "as geometry")
out("shape", "some.wkt", "--what", "convex_hull", "-o", "hulls.wkt")
check((SCRATCH / "hulls.wkt").read_text() == "LINESTRING (0 0, 4 0)\nNULL\nPOLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))\n", "hulls", (SCRATCH / "hulls.wkt").read_text())
for words in (["buffer", "some.wkt"], ["buffer", "some.wkt", "-d", "1", "--caps", "pointed"], ["shape", "some.wkt"], ["shape", "some.wkt", "--what", "star"],
              ["convert", "some.wkt", "--json"], ["convert", "some.wkt", "-o", "some.shp"], ["convert", "some.wkt", "-o", "some.csv"]):
    run("spatial", *words, status=2)
for words in (["-d", "1", "--quarter", "0"], ["-d", "1", "--quarter", "33"], ["-d", "1", "--mitre-limit", "0.5"], ["-d", "1", "--mitre-limit", "nan"],
              ["-d", "nan"], ["-d", "inf"]):
    told = run("spatial", "buffer", "some.wkt", *words, status=2).stderr
    check("buffer_of" not in told and "--" in told, "by the option's name", told)
# Files of a format that is not written are not written over.
for name in ("there.gpkg", "there.SHP", "there.fgb", "there.kml"):
    write(name, "what was there")
    for words in (["buffer", "some.wkt", "-d", "1"], ["shape", "some.wkt", "--what", "envelope"], ["bounds", "some.wkt"], ["measure", "some.wkt"]):
        check("geometry is written as" in run("spatial", *words, "-o", name, status=2).stderr, "refused", name, words)
    check((SCRATCH / name).read_text() == "what was there", "and kept", name)
for name in ("OUT.GEOJSON", "out.Json", "out.WKT", "out.WKB"):
    for words in (["buffer", "some.wkt", "-d", "1"], ["convert", "some.wkt"]):
        run("spatial", *words, "-o", name)
        run("spatial", *words, "-o", name.lower() + "." + name.lower().rsplit(".")[-1])
        check((SCRATCH / name).read_bytes() == (SCRATCH / (name.lower() + "." + name.lower().rsplit(".")[-1])).read_bytes(), "a name in capitals is no other", name, words)
write("roads.wkt", "LINESTRING (-1 1, 5 1)\nLINESTRING (9 9, 10 10)\n")
out("clip", "--left", "roads.wkt", "--right", "ones.wkt", "-o", "inside.wkt")
check((SCRATCH / "inside.wkt").read_text() == "MULTILINESTRING ((0 1, 3 1))\nMULTILINESTRING EMPTY\n", "clip", (SCRATCH / "inside.wkt").read_text())
about = data("spatial", "clip", "--left", "roads.wkt", "--right", "ones.wkt")
check([about[k] for k in ("left", "right", "left_rows", "right_rows")] == ["roads.wkt", "ones.wkt", 2, 2], "both files of clip", about)
write("bent.wkt", "LINESTRING (0 0, 1 0.1, 2 0)\n")
out("shape", "bent.wkt", "--what", "simplify", "-d", "0.5", "-o", "straight.wkt")
check((SCRATCH / "straight.wkt").read_text() == "MULTILINESTRING ((0 0, 2 0))\n", "simplify")
run("spatial", "shape", "bent.wkt", "--what", "simplify", status=2)
write("shared.wkt", "POLYGON ((0 0, 2 0, 2.1 1, 2 2, 0 2, 0 0))\n\nPOLYGON ((2 0, 4 0, 4 2, 2 2, 2.1 1, 2 0))\nPOLYGON ((6 0, 6.25 0, 6 0.25, 6 0))\n")
for what in ("simplify_coverage", "simplify-coverage"):
    check(out("shape", "shared.wkt", "--what", what, "-d", "0.5") == "0,4\n1,\n2,4\n3,0.03125\n", f"{what}: borders stay the same in both, and nothing vanishes")
run("spatial", "shape", "shared.wkt", "--what", "simplify_coverage", status=2)
write("both.wkt", "POLYGON ((0 0, 2 0, 2 2, 0 0))\nMULTIPOLYGON (((1 0, 3 0, 3 3, 1 0)))\n")
check(out("clip", "--left", "both.wkt", "--right", "ones.wkt") == "0,2\n1,3\n", "one part and several in one file", out("clip", "--left", "both.wkt", "--right", "ones.wkt"))
check(out("shape", "both.wkt", "--what", "simplify", "-d", "0.1") == "0,2\n1,3\n" and out("shape", "both.wkt", "--what", "boundary") == "0,0\n1,0\n", "fewer vertices, boundaries")
write("gaps.wkt", "POINT (1 1)\n\nPOINT EMPTY\n\n")
check(data("spatial", "info", "gaps.wkt")[0]["vertices"] == 1, "points that are not there are no vertices")
check("reason" in data("spatial", "bounds", "zones.wkt"), "why it ran there")
run("spatial", "shape", "bent.wkt", "--what", "envelope", "-d", "1", status=2)
out("convert", "some.wkt", "-o", "some.geojson")
check(out("convert", "some.geojson") == (SCRATCH / "some.wkt").read_text(), "there and back", out("convert", "some.geojson"))
# Layers as they come: single and multi together, and rows of all kinds.
write("town.wkt", "POLYGON ((0 0, 2 0.01, 4 0, 4 4, 0 4, 0 0))\n\nMULTIPOLYGON (((2 2, 6 2, 6 6, 2 6, 2 2)), ((7 7, 8 7, 8 8, 7 7)))\n")
made = {}
for words in (["clip", "--left", "town.wkt", "--right", "ones.wkt"], ["shape", "town.wkt", "--what", "simplify", "-d", "0.1"],
              ["shape", "town.wkt", "--what", "boundary"]):
    out(*words, "-o", "made.wkt")
    made[words[-1]] = (SCRATCH / "made.wkt").read_text().splitlines()
check(made["ones.wkt"][1:] == ["NULL", "MULTIPOLYGON (((2 2, 3 2, 3 3, 2 3, 2 2)))"], "clip of polygons and multipolygons", made)
check(made["0.1"] == ["MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)))", "NULL",
                      "MULTIPOLYGON (((2 2, 6 2, 6 6, 2 6, 2 2)), ((7 7, 8 7, 8 8, 7 7)))"], "simplified", made)
check(made["boundary"][2] == "MULTILINESTRING ((2 2, 6 2, 6 6, 2 6, 2 2), (7 7, 8 7, 8 8, 7 7))", "boundaries", made)
write("all.wkt", "LINESTRING (-1 1, 5 1)\nPOLYGON ((2 2, 6 2, 6 6, 2 6, 2 2))\nPOINT (1 1)\n")
out("clip", "--left", "all.wkt", "--right", "ones.wkt", "-o", "made.wkt")
check((SCRATCH / "made.wkt").read_text() == "MULTILINESTRING ((0 1, 3 1))\nMULTIPOLYGON (((2 2, 3 2, 3 3, 2 3, 2 2)))\nMULTIPOINT ((1 1))\n",
      "clip of a layer of all kinds", (SCRATCH / "made.wkt").read_text())
# What takes areas says which row is none.
check("overlay takes polygons" in run("spatial", "overlay", "--left", "left.csv", "--right", "points.wkt", status=1).stderr, "areas alone")
for words in (["dissolve", "all.wkt"], ["overlay", "--left", "all.wkt", "--right", "ones.wkt"], ["clip", "--left", "ones.wkt", "--right", "all.wkt"]):
    told = run("spatial", *words, status=1).stderr
    check("all.wkt, line 1: row 0 is a linestring: " in told and "takes polygons and multipolygons" in told, "the row that is no area", told)

# What is wrong is said, with file, line and reason; nothing is written.
for name, text, said in [
        ("a.wkt", "POINT (1 1)\nPOLYGON ((0 0, 1 0, 1 1, 0 1))\n", "a.wkt, line 2: row 1: ring 0 is open"),
        ("b.wkt", "POINT (1 1)\nPOINT (nan 1)\n", "b.wkt, line 2: row 1"),
        ("c.wkt", "POINT (1e308 1)\n", "c.wkt, line 1: row 0"),
        ("d.wkt", "POINT (1e-300 1)\n", "d.wkt, line 1: row 0"),
        ("e.csv", "x,y\n1,2\n1,inf\n", "e.csv, line 3: row 1"),
        ("f.geojson", '{"type":"FeatureCollection",\n"features":[{"type":"Feature","geometry":{"type":"Point"}}]}', "f.geojson, line 2: row 0: a Point without"),
        ("g.wkb", "0102\n", "g.wkb, line 1: WKB, row 0"),
        ("h", "what is this\n", "h: neither its name nor its first line"),
        ("i.wkt", "\0\0\0", "i.wkt, line 1"),
        ("j.wkt", "POINT (1 2)\nLINESTRING (0 0, 1 1, 2 2)\nLINESTRING (0 0, inf 1)\n", "j.wkt, line 3: row 2: vertex 1 of line 0 is"),
        ("k.geojson", '{"type":"FeatureCollection","features":[\n{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]},'
         '"geometry":{"type":"Point","coordinates":[3,4]}}]}', "k.geojson, line 2: row 0: two geometries in one Feature"),
]:
    write(name, text)
    refused = run("spatial", "join", "--left", name, "--right", "points.wkt", "-o", "never.csv", status=1)
    check(said in refused.stderr and refused.stdout == "", "refused", name, refused.stderr)
check(not (SCRATCH / "never.csv").exists(), "and nothing written")
# Self-intersecting is not refused: it counts by the even-odd rule.
write("bow.wkt", "POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))\n")
check(out("join", "--left", "bow.wkt", "--right", "points.wkt") == "0,0\n0,1\n", "a bow tie")
check("no such file" in run("spatial", "info", "none.wkt", status=1).stderr.lower(), "no file")
check("none.shp" in run("spatial", "info", "none.shp", status=1).stderr, "no file of another kind")

check("zones.wkt" not in run("spatial", "info", ".", status=1).stderr and "kiln: .: read" in run("spatial", "info", ".", status=1).stderr, "a directory by its name")

# Rings that are no borders have no matrix; which points are in them is told.
write("no_borders.wkt", "POLYGON ((0 0, 1 0, 1 1, 0 0))\nPOLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))\nPOLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (6 1, 7 1, 7 2, 6 1))\n")
for words in (["relate"], ["relate", "--rows"], ["join", "-p", "touches"], ["join", "-p", "covered_by"]):
    told = run("spatial", *words, "--left", "no_borders.wkt", "--right", "no_borders.wkt", status=1).stderr
    check("no_borders.wkt, line 2: row 1: rings cross: (0 0, 2 2) and (2 0, 0 2) (2 such rows)" in told and "make_valid" in told,
          "row and remedy", words, told)
run("spatial", "shape", "no_borders.wkt", "--what", "make_valid", "-o", "borders.wkt")
check(len(out("relate", "--left", "borders.wkt", "--right", "borders.wkt").splitlines()) == 9, "mended rows have one")
# The remedy as it is told, of a layer of all kinds too: what is no area stays.
write("bows.wkt", "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))\nLINESTRING (0 0, 1 1)\n\nPOINT (9 9)\n")
told = run("spatial", "join", "--left", "bows.wkt", "--right", "bows.wkt", "-p", "touches", status=1).stderr
remedy = re.search("'kiln (spatial shape .*)' mends them", told)
run(*remedy[1].replace("MENDED", "mended").split())
check(out("convert", "mended.geojson").splitlines()[1:] == ["LINESTRING (0 0, 1 1)", "NULL", "POINT (9 9)"], "rows that are no areas stay")
check(out("join", "--left", "mended.geojson", "--right", "mended.geojson", "-p", "touches") == "0,1\n1,0\n", "and it is mended")
check(out("join", "--left", "no_borders.wkt", "--right", "no_borders.wkt").count("\n") == 9, "intersects is told of all")
check(out("relate", "--left", "no_borders.wkt", "--right", "points.wkt"), "and points in them")

# A name that no row has, names that are none, rows that are null.
write("st.geojson", '{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"state":"TX","more":{"a":1}},"geometry":'
      '{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}},null]}')
check("no Feature has a property 'sate'; there are: state, more" in run("spatial", "dissolve", "st.geojson", "--key", "sate", status=1).stderr, "a slip")
check("is an object" in run("spatial", "join", "--left", "st.geojson", "--right", "points.wkt", "--left-id", "more", status=1).stderr, "an object is no name")
check(data("spatial", "info", "st.geojson")[0]["null"] == 1, "null among the features")
write("bom.wkt", "\ufeffPOINT (1 1)\n")
check(out("bounds", "bom.wkt") == "0,1,1,1,1\n", "a byte order mark")
write("zero.wkt", "LINESTRING (-1 -1, 0 0)\n")
check(out("bounds", "zero.wkt") == "0,-1,-1,0,0\n", "0 is not -0", out("bounds", "zero.wkt"))
# Words of a file are shown, not all of them, and none to the terminal.
write("long.wkt", "A" * 1_000_000 + " (1 1)\n")
check(len(run("spatial", "info", "long.wkt", status=1).stderr) < 300, "a word of a megabyte")
write("raw.wkt", "\x1b]0;title\x07 (1 1)\n")
check("\x1b" not in run("spatial", "info", "raw.wkt", status=1).stderr, "no escapes")
write("what.xyz", "1 1\n")
if not any(f["what"] == "GDAL" and f["state"] == "ok" for f in data("doctor", status=None)["findings"]):
    check(".geojson" in run("spatial", "info", "what.xyz", status=1).stderr, "which formats there are")

# What makes no sense is status 2.
for words, said in ((["nearest", *both, "-k", "-1"], "at least 1"), (["nearest", *both, "-o", "near.geojson"], "no geometry"),
                    (["relate", *both, "-o", "near.wkb"], "no geometry"), (["relate", *both, "--pattern", ""], "the value is empty"),
                    (["join", *both, "-p", "dwithin", "-d", "-1"], "at least 0"), (["join", *both, "-p", "dwithin", "-d", "nan"], "at least 0"),
                    (["shape", "bent.wkt", "--what", "simplify", "-d", "-1"], "--distance is at least 0"),
                    (["shape", "bent.wkt", "--what", "simplify", "-d", "nan"], "--distance is at least 0"),
                    (["shape", "shared.wkt", "--what", "simplify-coverage", "-d", "-1"], "--distance is at least 0"),
                    (["shape", "shared.wkt", "--what", "convex_hull", "-d", "1"], "--what simplify and --what simplify_coverage"),
                    (["nearest", *both, "--most", "-1"], "at least 0"), (["join", *both, "--left", "points.wkt"], "--left takes one value"),
                    (["join", "--left", "odd.csv", "--right", "odd.csv", "--x", "e"], "--x and --y"), (["join", *both, "--left-id"], "needs a value")):
    told = run("spatial", *words, status=2).stderr
    check(said in told, "with the reason", words, told)
check(not (SCRATCH / "near.geojson").exists(), "and nothing is written")
out("nearest", *both, "--json", "-o", "near.json")
check(json.loads((SCRATCH / "near.json").read_text())["pairs"], "JSON may be in such a file")
for words in (["join"], ["join", "--left", "zones.wkt"], ["join", *both, "-p", "near"], ["join", *both, "-p", "dwithin"], ["join", *both, "-d", "1"],
              ["join", *both, "--mode", "fast"], ["nearest", *both, "-k", "0"], ["nearest", *both, "--ties", "some"],
              ["relate", *both, "--pattern", "T"], ["frob"], [], ["join", "--left", "-", "--right", "-"]):
    run("spatial", *words, status=2)
check("dwithin needs --distance" in run("spatial", "join", *both, "-p", "dwithin", status=2).stderr, "with the reason")
check("at least 1" in run("spatial", "nearest", *both, "-k", "0", status=2).stderr, "with the reason")

told = run("spatial", "buffer", "bent.wkt", "-d", "1e300", status=1).stderr
check("a distance of 1e+300: 0 and magnitudes from" in told and "quarter" not in told, "which distances there are", told)

# A mode that is none in the environment is told, once; what the command line says is taken instead.
told = run("spatial", "bounds", "zones.wkt", KILN_EXECUTION_MODE="gqu").stderr
check(told.count("KILN_EXECUTION_MODE: 'gqu' is not one of auto, cpu, gpu") == 1, "a slip in the environment", told)
check(run("spatial", "bounds", "zones.wkt", "--mode", "cpu", KILN_EXECUTION_MODE="gqu").stderr == "", "which nobody asked")
check(run("spatial", "bounds", "zones.wkt", KILN_EXECUTION_MODE="cpu").stderr == "", "no slip, no word")

# --mode gpu is an error with its remedy where there is none; progress is for work one waits for.
has_gpu = any(f["what"].startswith("GPU ") and f["state"] == "ok" for f in data("doctor", status=None)["findings"])
if not has_gpu:
    for words in (["join", *both], ["nearest", *both], ["relate", *both], ["bounds", "zones.wkt"], ["join", "--left", "no.wkt", "--right", "no.wkt"]):
        said = run("spatial", *words, "--mode", "gpu", status=2).stderr
        check("--mode gpu: " in said and "mode auto would run it on the CPU" in said, "no GPU: what is missing, before a file is read", said)
    check("mode auto would" in run("spatial", "join", *both, status=1, KILN_EXECUTION_MODE="gpu").stderr, "by the environment too")
else:
    for words in (["join", *both], ["join", *both, "-p", "disjoint"], ["join", *both, "-p", "touches"], ["join", *both, "-p", "dwithin", "-d", "5"],
                  ["nearest", *both], ["nearest", *both, "-k", "3"], ["relate", *both], ["relate", *both, "--rows"], ["bounds", "zones.wkt"]):
        there = data("spatial", *words, "--mode", "gpu")
        check(there["where"] == "gpu", "it ran where it was asked to", there)
        check(out(*words, "--mode", "gpu") == out(*words, "--mode", "cpu"), f"the GPU and the CPU give the same: {words}")
    for words in (["clip", "--left", "all.wkt", "--right", "ones.wkt"], ["shape", "all.wkt", "--what", "simplify", "-d", "0.1"],
                  ["shape", "all.wkt", "--what", "boundary"], ["shape", "bows.wkt", "--what", "make_valid"]):
        for mode in ("cpu", "gpu"):
            out(*words, "--mode", mode, "-o", f"on_{mode}.wkt")
        check((SCRATCH / "on_gpu.wkt").read_text() == (SCRATCH / "on_cpu.wkt").read_text(), f"the same of rows of several families: {words}")
# Decisions, with their reasons, are in the events.
run("spatial", "join", *both, KILN_EVENTS=str(SCRATCH / "events.jsonl"))
told = [json.loads(line) for line in (SCRATCH / "events.jsonl").read_text().splitlines()]
check([e["reason"] for e in told if e.get("kind") == "dispatched"] == ["below-crossover"], "one decision, told", told)
check(data("spatial", "join", *both)["reason"] == "below-crossover", "and its reason in JSON")
check(run("spatial", "join", *both).stderr == "", "short work is silent")
write("many.csv", "x,y\n" + "".join(f"{i % 1000 / 100},{i // 1000 / 100}00\n" for i in range(800_000)))
told = run("spatial", "join", "--left", "zones.wkt", "--right", "many.csv", "-o", os.devnull)
check("join 2/4 many.csv: 800000 rows" in told.stderr and "written" in told.stderr, "long work tells its steps", told.stderr)

# GDAL, where this build found it.
# What a file has beside its geometry comes along.
def properties_of(name):
    return [f["properties"] for f in json.loads((SCRATCH / name).read_text())["features"]]


LAEA = '"crs":{"type":"name","properties":{"name":"urn:ogc:def:crs:EPSG::3035"}},'
feature = '{"type":"Feature","properties":%s,"geometry":{"type":"LineString","coordinates":[[0,0],[9,0]]}}'
texts = ['{"name":"a, \\"b\\"","size":1.50,"deep":{"x":[1,{"y":null}]}}', "null", '{"area":"own","row":7}']
write("attributes.geojson", '{"type":"FeatureCollection",%s"features":[%s]}' % (LAEA, ",\n".join(feature % t for t in texts)))
write("other.geojson", '{"type":"FeatureCollection","crs":{"type":"name","properties":{"name":"EPSG:25832"}},"features":[%s]}' % (
    '{"geometry":{"type":"Polygon","coordinates":[[[2,-1],[5,-1],[5,1],[2,1],[2,-1]]]},"properties":{"zone":1},"type":"Feature"}'))
own = [json.loads(t) or {} for t in texts]
out("convert", "attributes.geojson", "-o", "again.geojson")
check(properties_of("again.geojson") == own, "properties are converted with their rows", properties_of("again.geojson"))
again = (SCRATCH / "again.geojson").read_text()
check(texts[0] in again and LAEA in again, "as they are written, and so is the CRS", again)
for verb in (("buffer", "attributes.geojson", "-d", "1", "--caps", "flat"), ("shape", "attributes.geojson", "--what", "simplify", "-d", "1"),
             ("clip", "--left", "attributes.geojson", "--right", "zones.wkt")):
    out(*verb, "-o", "again.geojson")
    found = properties_of("again.geojson")
    sizes = [p.pop("area", None) for p in found[:2]]
    check([p.pop("row", None) for p in found[:2]] == [0, 1] and found == own, "properties stay with rows that are made", (verb, found))
    check(sizes == ([18, 18] if verb[0] == "buffer" else [0, 0]), "beside what was found out", (verb, sizes))
both_named = run("spatial", "clip", "--left", "attributes.geojson", "--right", "other.geojson", "-o", "again.geojson")
check("attributes.geojson is in EPSG:3035 and other.geojson in EPSG:25832" in both_named.stderr and LAEA in (SCRATCH / "again.geojson").read_text(),
      "different CRSs are told", both_named.stderr)
for right in ("zones.wkt", "attributes.geojson"):
    told = run("spatial", "join", "--left", "attributes.geojson", "--right", right)
    check(told.stderr == "", "one CRS, or none, is not", told.stderr)
out("overlay", "--left", "other.geojson", "--right", "other.geojson", "-o", "again.geojson")
check("EPSG::25832" in (SCRATCH / "again.geojson").read_text(), "parts are in the CRS of the left file")
out("convert", "zones.wkt", "-o", "again.geojson")
check(properties_of("again.geojson")[1] == {"row": 1}, "rows without properties have their number")

gdal = next(f for f in data("doctor", status=None)["findings"] if f["what"] == "GDAL")
if gdal["state"] == "ok":
    check(out("join", "--left", "matched.geojson", "--right", "matched.geojson", "--format", "gdal", "--left-id", "row") ==
          "0,0\n0,1\n2,0\n2,1\n", "through GDAL")
    write("place.gml", '<?xml version="1.0"?><ogr:FeatureCollection xmlns:ogr="http://ogr.maptools.org/" xmlns:gml="http://www.opengis.net/gml">'
          '<gml:featureMember><ogr:p fid="p.0"><ogr:geometryProperty><gml:Point><gml:coordinates>1,1</gml:coordinates></gml:Point>'
          '</ogr:geometryProperty><ogr:name>here</ogr:name></ogr:p></gml:featureMember></ogr:FeatureCollection>')
    check(out("join", "--left", "zones.wkt", "--right", "place.gml", "--right-id", "name") == "0,here\n", "GML")
    check("GDAL: no format it knows" in run("spatial", "info", write("x.shp", "no"), status=1).stderr, "what GDAL says")

    # What GDAL goes on without is told: points of a shapefile of which half is there, and features of which none is.
    def shapefile(name, points):
        record = lambda i: struct.pack(">ii", i + 1, 10) + struct.pack("<idd", 1, i, i)
        header = lambda size: struct.pack(">i20xi", 9994, size // 2) + struct.pack("<ii8d", 1000, 1, 0, 0, points, points, 0, 0, 0, 0)
        (SCRATCH / f"{name}.shp").write_bytes(header(100 + 28 * points) + b"".join(map(record, range(points))))
        (SCRATCH / f"{name}.shx").write_bytes(header(100 + 8 * points) + b"".join(struct.pack(">ii", 50 + 14 * i, 10) for i in range(points)))
        dbf = struct.pack("<4BIHH20x", 3, 126, 1, 1, points, 65, 5) + b"id".ljust(11, b"\0") + b"N" + bytes(4) + bytes([4, 0]) + bytes(14) + b"\r"
        (SCRATCH / f"{name}.dbf").write_bytes(dbf + b"".join(b" %4d" % i for i in range(points)) + b"\x1a")
        return SCRATCH / f"{name}.shp"
    whole = shapefile("whole", 100)
    check(data("spatial", "info", "whole.shp")[0]["families"] == {"point": 100}, "a shapefile")
    check(out("bounds", "whole.shp", "--id", "id").startswith("0,0,0,0,0\n1,1,1,1,1\n"), "its fields")
    os.truncate(whole, 1500)
    check("is the file whole?" in run("spatial", "info", "whole.shp", status=1).stderr, "half of a shapefile")
    (SCRATCH / "empty.fgb").write_bytes(base64.b64decode(EMPTY_FLATGEOBUF))
    check(data("spatial", "info", "empty.fgb")[0]["rows"] == 0, "a FlatGeobuf without features")
    write("kinds.geojson", json.dumps({"type": "FeatureCollection", "features": [
        {"type": "Feature", "properties": {"yes": True, "day": "2020/01/01", "list": [1, 2]}, "geometry": {"type": "Point", "coordinates": [1, 2]}}]}))
    check(out("bounds", "kinds.geojson", "--format", "gdal", "--id", "yes") == "true,1,2,1,2\n", "truth values are names")
    geopackage("truths.gpkg", [row % 2 == 0 for row in range(20)])
    check(out("bounds", "truths.gpkg", "--id", "open").split() == [f"{'true' if row % 2 == 0 else 'false'},{row},0,{row},0" for row in range(20)],
          "truth values of a GeoPackage, which GDAL's own stream had wrong before 3.8.3")
    told = run("spatial", "convert", "truths.gpkg", "-o", "again.geojson").stderr
    check("its first layer, rows, is read; --layer names another: more" in told, "that there are others is told", told)
    check([row["t"] for row in properties_of("again.geojson")[:2]] == ["2020-01-01T10:00:00Z", "2020-01-01T10:00:00.250+05:30"], "times keep their zones")
    named = json.loads((SCRATCH / "again.geojson").read_text())["crs"]["properties"]["name"]
    check(named.startswith('PROJCS["somewhere"'), "a CRS without a number goes by its WKT", named)
    check(out("bounds", "truths.gpkg", "--layer", "more", "--id", "size") == "7,5,0,5,0\n", "a layer by its name")
    check("there is no layer 'less'; there are: rows, more" in run("spatial", "info", "truths.gpkg", "--layer", "less", status=1).stderr, "or there is none")
    check("has no layers" in run("spatial", "bounds", "zones.wkt", "--layer", "more", status=2).stderr, "a text has none")
    check("no field 'opn'; there are: " in run("spatial", "bounds", "truths.gpkg", "--id", "opn", status=1).stderr, "fields that there are")
    check(data("spatial", "bounds", "truths.gpkg", "--layer", "more", "--id", "size")["rows"][0]["row"] == 7, "a number is one in JSON")
    told = run("spatial", "join", "--left", "truths.gpkg", "--right", "attributes.geojson").stderr
    check('truths.gpkg is in "somewhere" and attributes.geojson in EPSG:3035' in told, "two CRS, one without a number", told)
    latin = shapefile("latin", 2)
    fields = struct.pack("<4BIHH20x", 3, 126, 1, 1, 2, 65, 5) + b"ort".ljust(11, b"\0") + b"C" + bytes(4) + bytes([4, 0]) + bytes(14) + b"\r"
    latin.with_suffix(".dbf").write_bytes(fields + b" K\xf6ln K\xe5ln\x1a")
    check(out("bounds", "latin.shp", "--id", "ort").startswith("Köln,"), "Latin-1 of a shapefile that says nothing")
    towns = "# @VGMT1.0 @GPOLYGON\n# @Nname\n# @Tstring\n# FEATURE_DATA\n" + "".join(f">\n# @D{name}\n# @P\n0 0\n1 0\n1 1\n0 0\n" for name in ("Zürich", "K|ln"))
    (SCRATCH / "towns.gmt").write_bytes(towns.encode().replace(b"|", b"\xf6"))
    told = [line.split(",")[0] for line in out("bounds", "towns.gmt", "--id", "name").splitlines()]
    check(told == ["Zürich", "Köln"], "UTF-8 of a format that promises nothing, Latin-1 where it is none", told)
    collections = {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry": {"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": [1, 2]}]}}]}
    (SCRATCH / "collections.geojson").write_text(json.dumps(collections))
    refused = run("spatial", "info", "collections.geojson", "--format", "gdal", status=1).stderr
    check("type 7" in refused and "'ogr2ogr -dim XY -explodecollections'" in refused and "LINEAR" not in refused, "a remedy for collections", refused)
    out("convert", "attributes.geojson", "--format", "gdal", "-o", "again.geojson")
    check(LAEA in (SCRATCH / "again.geojson").read_text(), "GDAL tells the CRS")
    first = properties_of("again.geojson")[0]
    check((first["name"], first["size"]) == ('a, "b"', 1.5), "and fields", first)
    out("convert", "kinds.geojson", "--format", "gdal", "-o", "again.geojson")
    check(properties_of("again.geojson") == [{"yes": True, "day": "2020-01-01"}], "truth values and dates; lists are left out", properties_of("again.geojson"))
    for field in ("day", "list"):
        check(f"the field '{field}' has neither text" in run("spatial", "bounds", "kinds.geojson", "--format", "gdal", "--id", field, status=1).stderr,
              "what is no name is not an empty one")
else:
    write("x.shp", "no")
    check("without GDAL" in run("spatial", "info", "x.shp", status=1).stderr, "no GDAL is said")
