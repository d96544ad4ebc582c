# SPDX-License-Identifier: Apache-2.0
"""The example of seven steps from a file to bytes: the same bytes as the command line makes, and events that tell where each step ran."""

import json
import sys

from _kiln import BIN, SCRATCH, SOURCE, check, run

EXAMPLE = BIN / "example_land_by_zone"
if not EXAMPLE.exists():
    print("the examples are not built")
    sys.exit(77)

done = run(15, program=EXAMPLE, KILN_EXECUTION_MODE="cpu", KILN_EVENTS=str(SCRATCH / "events.jsonl"))
check("177 countries, 24 zones: 342 parts, 338 of at least 0.01 square degrees; 24 rows, 99035 bytes" in done.stdout, "seven steps", done.stdout)
check("    " + done.stdout.strip() in (SOURCE / "examples/land_by_zone/README.md").read_text().splitlines(), "with the checksum of its README", done.stdout)
check(run(15, program=EXAMPLE).stdout == done.stdout, "the same wherever it runs")
summary = run("events", "--summary", SCRATCH / "events.jsonl").stdout
for step in ("spatial_overlay on cpu", "spatial_dissolve on cpu", "spatial_measures on cpu"):
    check(step in summary, f"{step} is told", summary)
check(run(0, program=EXAMPLE, status=2).stderr.startswith("example_land_by_zone"), "what it takes")

# The command line, step by step: the same parts.
zones = SCRATCH / "zones.csv"
zones.write_text("zone,wkt\n" + "".join(
    f'{i},"POLYGON (({x} -90, {x + 15} -90, {x + 15} 90, {x} 90, {x} -90))"\n' for i, x in enumerate(range(-180, 180, 15))))
run("spatial", "overlay", "--left", SOURCE / "examples/data/countries.geojson", "--right", zones, "--left-id", "name", "--right-id", "zone", "-o", SCRATCH / "parts.geojson")
parts = json.loads((SCRATCH / "parts.geojson").read_text())["features"]
check(len(parts) == 342 and sum(p["properties"]["area"] >= 0.01 for p in parts) == 338, "parts on the command line", len(parts))
