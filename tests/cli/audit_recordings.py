# SPDX-License-Identifier: Apache-2.0
"""Recordings of the programs of tests/audit, made on an H200 by tests/audit/run_list.py: what must be found in them is found with its exact count, and nothing
else above LOW, on machines without a GPU too. A rule that changes its mind about a real program is seen here first."""

import html
import json
import re
import sys
import tarfile

from _kiln import SCRATCH, SOURCE, check, run

sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "tests/audit"))
import run_list  # noqa: E402

archives = sorted((SOURCE / "tests/audit/recordings").glob("*.tar.xz"))
check(len(archives) >= 26, "they are there", archives)
wrong, reports, pages = [], {}, {}
for archive in archives:
    name = archive.name.split(".")[0]
    place = SCRATCH / name
    place.mkdir()
    with tarfile.open(archive) as packed:
        packed.extractall(place)
    done = run("audit", "report", place, "--json", "-o", SCRATCH / "page.html")
    report = reports[name] = json.loads(done.stdout.strip().splitlines()[-1])
    pages[name] = html.unescape(re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", (SCRATCH / "page.html").read_text().split("</style>")[1])))
    check(all(len(line) <= 160 and not line.endswith("~") for line in done.stderr.splitlines() if line.startswith("until steady")), f"{name}: the ledger's line is whole", done.stderr)
    wrong += [f"{name}: {what}" for what in run_list.wrong_about(name, report)]
    for process in report["processes"]:
        times = [row["ms"] for row in process["ledger"]]
        check(all(t >= 0 for t in times), f"{name}: the ledger", process["ledger"])
check(not wrong, "each is told what it was", wrong)

# What is in every step is called structural.
for name, report in reports.items():
    for f in report["findings"]:
        if f["rule"] in ("R10", "R14", "R53", "R60", "R62") and f["per_step"] >= 2:
            check(f["structural"], f"{name}: {f['rule']} is in every step", f)
for name, rule in (("synchronous", "R53"), ("synchronous", "R62"), ("op-by-op", "R53"), ("few-blocks", "R62"), ("streams", "R62"), ("in-loop", "R10"), ("shapes", "R14"), ("scalar", "R60")):
    check(any(f["rule"] == rule and f["structural"] for f in reports[name]["findings"]), f"{name}: {rule} is structural", reports[name]["findings"])
bubble = next(f for f in reports["scalar"]["findings"] if f["rule"] == "R60" and "sync bubble" in f["what"])
check(bubble["count"] > 100 and 0.8 < bubble["per_step"] < 1.2, "gaps are counted", bubble)

# The sign-off speaks of what makes it CPU-shaped.
for name, forced in (("jax", "host compute for 56 % of the steady state, most of it before with_jax.py:14"), ("op-by-op", "host wait for 87 % of the steady state")):
    check(reports[name]["cpu_shaped"] and reports[name]["forced_by"] == forced and forced in pages[name], f"{name}: what forces it", reports[name]["forced_by"])
check("waiting for a few bytes" in reports["op-by-op"]["change"] and "compile cache" not in reports["jax"]["change"], "and what to change", reports["op-by-op"]["change"])
for name, report in reports.items():
    if report["cpu_shaped"] is False:
        check(report["forced_by"] == "" and "What makes it behave like CPU code: nothing does" in pages[name], f"{name}: nothing makes it CPU code", report["forced_by"])

# What was not looked at is not fine.
check({"R16", "R31", "R41", "R58"} <= {r["rule"] for r in reports["embedded"]["resting"]}, "rules rest without steps", reports["embedded"]["resting"])
fine = pages["embedded"][pages["embedded"].index("Checked and fine"):pages["embedded"].index("Not checked")]
check("R16" not in fine and "R20" not in fine and "R07" in fine, "and are not praised", fine)
check(not reports["scalar"]["resting"] and "Not checked" not in pages["scalar"], "where there are steps none rests", reports["scalar"]["resting"])

check("from its first work on" in pages["jax"] and re.search(r"first work steady [0-9.]+ m?s later, at the dashed line", pages["jax"]), "what the axis begins with", pages["jax"])
check(not any("time(s)" in page or " 1 processes" in page or " 1 launches" in page for page in pages.values()), "words")

# What the checklist says is in the report is there.
for what in ("Allocations, by line", "Streams, and who queued work on them", "each, early each, late", "The first three remedies, in order"):
    check(what in pages["synchronous"], "the page has it", what, pages["synchronous"])
check(re.search(r"spin 300 .*? 8 × 100 and 1 more ", pages["synchronous"]), "every launch shape of a kernel", pages["synchronous"])
check([f["rule"] for f in reports["scalar"]["first_three"]][:1] == ["R22"], "the first to mend", reports["scalar"]["first_three"])

# Where nothing was found nothing is broken, however little is let pass.
check(not reports["timing"]["findings"] and reports["pinned"]["worst"] == "LOW", "what was found", reports["timing"]["findings"], reports["pinned"]["worst"])
run("audit", "report", SCRATCH / "timing", "--fail-on", "info")
run("audit", "report", SCRATCH / "pinned", "--fail-on", "info", status=3)

# Slices of one track of a trace lie in one another or apart, or each would end with another's end. On JAX's stream kernels begin before the last one has ended.
def fields(data):
    at = 0
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size


run("audit", "report", SCRATCH / "jax", "--perfetto", SCRATCH / "trace")
open_at, slices = {}, {}
for _, packet in fields((SCRATCH / "trace").read_bytes()):
    packet = dict(fields(packet))
    if 11 not in packet:
        continue
    event = dict(fields(packet[11]))
    if event[9] == 1:
        open_at[event[11]] = packet[8]
    else:
        slices.setdefault(event[11], []).append((open_at.pop(event[11]), packet[8]))
check(sum(map(len, slices.values())) > 1000, "the trace is read", {track: len(all) for track, all in slices.items()})
for track, all in slices.items():
    ends = []
    for begin, end in sorted(all, key=lambda s: (s[0], -s[1])):
        while ends and ends[-1] <= begin:
            ends.pop()
        check(not ends or end <= ends[-1], "slices do not cross", track, begin, end, ends[-1:])
        ends.append(end)
print("ok")
