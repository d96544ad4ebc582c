# SPDX-License-Identifier: Apache-2.0
"""Recordings of the programs of tests/audit, made on an H200 by tests/audit/run_list.py: what must be found in them is found with its exact count, and nothing
else above LOW, on machines without a GPU too. A rule that changes its mind about a real program is seen here first."""

import json
import sys
import tarfile

from _kiln import SCRATCH, SOURCE, check, run

sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "tests/audit"))
import run_list  # noqa: E402

archives = sorted((SOURCE / "tests/audit/recordings").glob("*.tar.xz"))
check(len(archives) >= 26, "they are there", archives)
wrong = []
for archive in archives:
    name = archive.name.split(".")[0]
    place = SCRATCH / name
    place.mkdir()
    with tarfile.open(archive) as packed:
        packed.extractall(place)
    report = json.loads(run("audit", "report", place, "--json").stdout.strip().splitlines()[-1])
    wrong += [f"{name}: {what}" for what in run_list.wrong_about(name, report)]
    for process in report["processes"]:
        times = [row["ms"] for row in process["ledger"]]
        check(all(t >= 0 for t in times), f"{name}: the ledger", process["ledger"])
check(not wrong, "each is told what it was", wrong)
print("ok")
