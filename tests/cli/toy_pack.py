# SPDX-License-Identifier: Apache-2.0
"""A pack that is a folder and a line (tests/toy_pack) is known to every command, ships, and is linked from an archive."""

import json

from _kiln import BIN, CLI, SCRATCH, check, data, run

TOY = BIN / "kiln-test-toy"
NAMES = ["toy_double_f32", "toy_double_i32"]


def toy(*arguments, **more):
    return json.loads(run(*arguments, "--json", program=TOY, **more).stdout)


rows = toy("list", "--pack", "toy")
check([r["name"] for r in rows] == NAMES and all(r["pack"] == "toy" for r in rows), "listed", rows)
packs = [r["pack"] for r in toy("list")]
check(sorted(set(packs)) == ["prims", "spatial", "toy", "tropical"] and packs == sorted(packs), "beside the others, in order", packs)
check("there are: prims, spatial, toy, tropical" in run("list", "--pack", "nosuch", status=2, program=TOY).stderr, "in errors")
check("toy" not in {r["pack"] for r in data("list")}, "and only where it is linked")

built = toy("build", "--pack", "toy", "--arch", "sm_80,sm_90", "-o", "toy.kiln")
check(built["artifacts"] == 4 and built["failed"] == 0, "built", built)
check({i["unit"] for i in built["items"]} == set(NAMES), "by unit", built)
check("Apache-2.0" in json.dumps(data("inspect", "toy.kiln")), "with its licence")

operations = {o["operation"]: o for o in toy("warm", "--operations")}
check(sorted(operations["toy_double"]["specs"]) == NAMES, "an operation's variants say what it needs", operations)
check(operations["toy_doubles"]["when"] == ["float"], "and requirements by what is present", operations)
check(operations["tropical_product"]["count"] == 12, "of every pack", operations)
warmed = toy("warm", "--operation", "toy_double", "--arch", "sm_80", KILN_JIT="forbid", KILN_BUNDLES=SCRATCH / "toy.kiln")
check(warmed["ready"] == 2, "warmed by operation", warmed)
warmed = toy("warm", "--pack", "toy", "--arch", "sm_80", KILN_JIT="forbid", KILN_BUNDLES=SCRATCH / "toy.kiln")
check(warmed["ready"] == 2, "and by pack", warmed)

known = run("calibrate", "nosuch", status=2, program=TOY).stderr
check("toy_double" in known and "tropical_product" in known and "radix_sort" in known, "calibrated", known)

# What ships of it is part of the program: no compiler, no cache, no bundle.
nowhere = {"KILN_JIT": "forbid", "KILN_CACHE_DIR": SCRATCH / "nothing", "KILN_CUDA_PATH": SCRATCH / "no-cuda"}
(SCRATCH / "no-cuda").mkdir()
SHIPS = run("warm", "--pack", "tropical", "--arch", "sm_90", status=None, **nowhere).returncode == 0
if not SHIPS:
    print("skipped: this build makes nothing to ship (KILN_PRODUCTS)")
    raise SystemExit(77)
shipped = toy("warm", "--pack", "toy", "--arch", "sm_90", **nowhere)
check([t["from"] for t in shipped["things"]] == ["bundle", "bundle"], "found in what ships", shipped)
named = run(program=BIN / "kiln-test-toy_static", **nowhere).stdout
check(named.count(": bundle") == 3, "linked from archives, by name alone", named)
demo = toy("demo")
check([t["from"] for t in demo["cold"]["things"] if t["name"] in NAMES] == ["bundle", "bundle"], "in the demo", demo)
