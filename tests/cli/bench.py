# SPDX-License-Identifier: Apache-2.0
"""kiln bench: finds programs beside itself, hands arguments and status through, and says what to build."""

import shutil

from _kiln import CLI, FULL, SCRATCH, check, data, run

# A folder of its own, so that it does not matter what this build has in bin/.
folder = SCRATCH / "tree" / "bin"
folder.mkdir(parents=True)
kiln = folder / "kiln"
shutil.copy2(CLI, kiln)
if FULL != CLI:
    shutil.copy2(FULL, folder / "kiln-cli")


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


none = run("bench", program=kiln)
check("make bench" in none.stdout, "no benchmark: the make target is named", none.stdout)
check(data("bench", program=kiln) == [], "no benchmark: an empty array")

program(folder / "bench_echo", 'printf "%s|" "$@"; exit 3\n')
program(folder.parent / "libexec" / "kiln" / "bench_far", "exit 77\n")
program(folder.parent / "libexec" / "kiln" / "bench_echo", "exit 4\n")
(folder / "bench_note").write_text("not a program")

check(run("bench", program=kiln).stdout.split() == ["echo", "far"], "both places are listed, each name once")
check([r["name"] for r in data("bench", program=kiln)] == ["echo", "far"], "and as JSON")
echoed = run("bench", "echo", "--json", "a b", "--help", "-x", "7", program=kiln, status=3)
check(echoed.stdout == "--json|a b|--help|-x|7|", "what follows the name is the benchmark's", echoed.stdout)
run("bench", "far", program=kiln, status=77)
missing = run("bench", "nosuch", program=kiln, status=1)
check("nosuch" in missing.stderr and "before it was installed" in missing.stderr and "make bench" in missing.stderr and "echo, far" in missing.stderr, "a missing one", missing.stderr)
check("kiln bench NAME" in run("bench", "--help", program=kiln).stdout, "help is the page")
