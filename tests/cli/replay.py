# SPDX-License-Identifier: Apache-2.0
"""Replaying recordings of another time: what cannot be made any more is counted and named, and the rest is made."""

import json

from _kiln import BIN, SCRATCH, check, data, run

PROGRAM = BIN / "kiln-test-warm_program"

# B6: stale recipes. Two of nine can be made: the first of them after two that cannot, the other at the very end.
run("forge", SCRATCH / "old.profile", program=PROGRAM)
done = run("replay", "old.profile", "--json", "-o", "old.kiln", status=3)
replayed = json.loads(done.stdout)
made = {t["name"]: t for t in replayed["things"] if "error" not in t}
stale = {t["name"]: t["error"] for t in replayed["things"] if "error" in t}
check(replayed["ready"] == 2 and replayed["stale"] == 7, "counted", replayed)
check(set(made) == {"first", "last"} and all(t["from"] == "compiled" for t in made.values()), "the rest is made", made)
for name, why in {
    "renamed": "as_it_was_called",
    "without_option": "--an-option-that-went-away",
    "without_header": "gone.h",
    "newer": "form 200",
    "damaged": "damaged",
    "a_specialisation_that_went_away": "no specialisation",
    "thing": "a_pack_that_went_away",
}.items():
    check(why in stale.get(name, ""), f"{name} says why", stale)
check("7 of 9 are stale and were skipped" in done.stderr, "and on stderr", done.stderr)
check(all(name in done.stderr for name in ("renamed", "without_option", "thing")), "by name", done.stderr)
check("without_option failed" in done.stderr and "damaged failed" in done.stderr, "they are steps of the bar", done.stderr)
entries = json.dumps(data("inspect", "old.kiln"))
check('"first"' in entries and '"last"' in entries and '"renamed"' not in entries, "a bundle of what there is", entries)
before = (SCRATCH / "old.kiln").read_bytes()
whole = json.loads(run("replay", "old.profile", "--json", "--complete", "-o", "old.kiln", "-a", "sm_80", status=3).stdout)
check(whole["bundle"] is None and whole["ready"] == 2, "a bundle of everything, or none", whole)
check((SCRATCH / "old.kiln").read_bytes() == before, "and the one that was there stays")
again = data("replay", "old.profile", KILN_JIT="forbid", status=3)
check(again["ready"] == 2 and all(t["from"] == "disk" for t in again["things"] if "error" not in t), "and found again", again)

# All of it stale is a failure; a program that starts with such a profile works all the same.
none = run("replay", "old.profile", "--json", KILN_JIT="forbid", KILN_CACHE_DIR=SCRATCH / "empty", status=1)
check(json.loads(none.stdout)["ready"] == 0, "nothing could be made", none.stdout)
codes = {t["name"]: t["code"] for t in json.loads(none.stdout)["things"]}
check(codes["first"] == "forbidden" and codes["a_specialisation_that_went_away"] == "not-found", "each for its own reason", codes)
ran = run("use", "first", "other", program=PROGRAM, KILN_PROFILE=SCRATCH / "old.profile")
check("first: disk" in ran.stdout and "other: compiled" in ran.stdout, "the program works", ran.stdout)

# An operator with a captured value is recorded and replayed; another value is no other recipe.
run("use", "captured:100", "captured:7", program=PROGRAM, KILN_PROFILE=SCRATCH / "captured.profile")
shown = data("profile", "show", "captured.profile")
check(len(shown["uses"]) == 1 and shown["uses"][0]["name"].startswith("exclusive_scan_i32_op"), "recorded once", shown)
fresh = SCRATCH / "fresh"
replayed = data("replay", "captured.profile", KILN_CACHE_DIR=fresh)
check(replayed["ready"] == 1 and replayed["stale"] == 0, "replayed", replayed)
served = run("use", "captured:5", program=PROGRAM, KILN_CACHE_DIR=fresh, KILN_JIT="forbid")
check("captured:5: disk" in served.stdout, "and serves any value", served.stdout)

# Architectures in the words of every command.
run("use", "first", program=PROGRAM, KILN_PROFILE=SCRATCH / "first.profile")
words = data("replay", "first.profile", "--arch", "compute_90,80-real,86-89,90-virtual,sm_80", "-o", "words.kiln")
check(sorted({t["target"] for t in words["things"]}) == ["compute_90", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89"], "the words of 'kiln compile'", words)
check(words["ready"] == len(words["things"]) == 6, "each once", words)
check("mistyped" in run("replay", "first.profile", "--arch", "mistyped", status=2).stderr, "a word that means nothing is misuse")

# What was there is not lost, and what is wrong is told before the work.
(SCRATCH / "notes.txt").write_text("not a profile")
run("record", "-o", "notes.txt", "--", "true", status=1)
check((SCRATCH / "notes.txt").read_text() == "not a profile", "a file that is no profile is left alone")
before = (SCRATCH / "captured.profile").read_bytes()
check("nothing was recorded" in run("record", "-o", "captured.profile", "--", "true").stderr, "nothing recorded is said")
check((SCRATCH / "captured.profile").read_bytes() == before, "and overwrites nothing")
run("record", "-o", "fresh.profile", "--", "./no-such-program", status=127)  # as a shell says it
run("record", "-o", "fresh.profile", "--", "/", status=126)
check("needs --output" in run("record", "--", "true", status=2).stderr, "what is missing is named, and not what is there")
check(not list(SCRATCH.glob("fresh.profile*")), "a program that does not start leaves nothing behind")
run("replay", "captured.profile", "--sign", "mine.pem", status=2)
missing = run("replay", "captured.profile", "-o", "nowhere/app.kiln", status=1).stderr
check("there is no directory nowhere" in missing, "a missing folder is named before anything is made", missing)

# A recording that cannot be read is left where it is, for who can tell what it was.
torn = "echo torn > $KILN_PROFILE.1-0123456789abcdef"
said = run("record", "-o", "torn.profile", "--", "sh", "-c", torn).stderr
left = SCRATCH / "torn.profile.recording"
check(str(left) in said and list(left.iterdir()), "nothing that was recorded is lost", said)
