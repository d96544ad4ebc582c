# SPDX-License-Identifier: Apache-2.0
"""The example of the countries: as many points in each as its area says, a picture of all of them, and the same answer from the command line."""

import json
import re
import sys

from _kiln import BIN, SCRATCH, SOURCE, check, data, run

EXAMPLE = BIN / "example_countries"
if not EXAMPLE.exists():
    print("the examples are not built")
    sys.exit(77)
COUNTRIES = SOURCE / "examples/data/countries.geojson"

done = run(200_000, "earth.svg", program=EXAMPLE, KILN_EXECUTION_MODE="cpu")
print(done.stdout, done.stderr)
check("200,000 points, 177 countries: 57," in done.stdout, "29 % of the Earth is land", done.stdout)
largest = re.findall(r"([\d,]+)  +([\d.]+) % of the Earth  (.+)", done.stdout)
check([name for _, _, name in largest[:3]] == ["Russia", "Antarctica", "Canada"], "the largest first", largest)
check(abs(float(largest[0][1]) - 3.31) < 0.02, "Russia is 3.3 % of the Earth", largest[0])
picture = (SCRATCH / "earth.svg").read_text()
check(picture.startswith("<svg") and picture.endswith("</svg>\n"), "a whole picture")
check(picture.count("h0") > 8000 and ">Kazakhstan<" in picture, "dots and names", picture.count("h0"))
check(run(200_000, "again.svg", program=EXAMPLE).stdout == done.stdout and (SCRATCH / "again.svg").read_text() == picture, "the same again")

# The same countries on the command line: neighbours touch, nothing overlaps.
touching = {tuple(p) for p in data("spatial", "join", "--left", COUNTRIES, "--right", COUNTRIES, "--left-id", "name", "--right-id", "name",
                                   "-p", "touches")["pairs"]}
check(("France", "Spain") in touching and ("Spain", "France") in touching and ("France", "Poland") not in touching, "neighbours")
check(all((b, a) in touching for a, b in touching), "both ways")
names = [f["properties"]["name"] for f in json.loads(COUNTRIES.read_text())["features"]]
check(len(names) == 177 == len(set(names)), "177 names")
capital = SCRATCH / "capitals.csv"
capital.write_text("city,lon,lat\nParis,2.35,48.86\nNairobi,36.82,-1.29\nMidway,-177.4,28.2\n")
at = run("spatial", "join", "--left", capital, "--right", COUNTRIES, "--left-id", "city", "--right-id", "name", "-p", "within").stdout
check(at == "Paris,France\nNairobi,Kenya\n", "where cities are", at)
