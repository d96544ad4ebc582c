# SPDX-License-Identifier: Apache-2.0
"""Finding a command: kiln alone, kiln help, a word that is nearly one; text from standard input."""

import json
import os
import subprocess

from _kiln import CACHE, CLI, KERNEL, SCRATCH, check, run

alone = run(status=2)
check("compile" in alone.stderr and "doctor" in alone.stderr and alone.stdout == "", "kiln alone lists the commands", alone.stderr)
listed = run("help").stdout
check("compile" in listed and "Compile CUDA C++ files" in listed, "kiln help lists them", listed)
check(run("help", "verify").stdout == run("verify", "--help").stdout != "", "kiln help COMMAND is its page")
for words in (["cmpile", "x.cu"], ["help", "cmpile"]):
    check("did you mean 'compile'?" in run(*words, status=2).stderr, "a word that is nearly a command", words)
for words, meant in ((["compile", "x.cu", "--archs", "90"], "--arch"), (["compile", "x.cu", "--jsno"], "--json"),
                     (["cache", "stats", "--zeor"], "--zero"), (["cache", "stast"], "stats"), (["run", "--recrd=x"], "--record")):
    said = run(*words, status=2).stderr
    check(f"did you mean '{meant}'?" in said, "a word that is nearly an option, or a command of a command", words, said)
check("did you mean" not in run("doctor", "-z", status=2).stderr, "one letter is near to anything")
far = run("frobnicate", status=2).stderr
check("did you mean" not in far and "frobnicate" in far, "and one that is not", far)

# The parser's complaints are ours: by whom, and what to do.
for words, told in ((["cache"], "kiln: 'kiln cache' needs a command: stats, list, path, prune, clear, verify"),
                    (["cache", "frob"], "kiln: 'frob' is not a command of 'kiln cache'; there are: stats, list, path"),
                    (["build", "--pack"], "kiln: --pack needs a value; 'kiln build --help'"),
                    (["compile"], "kiln: 'kiln compile' needs FILE; 'kiln compile --help'"),
                    (["run"], "kiln: 'kiln run' needs PROGRAM; 'kiln run --help'"),
                    (["compile", "x.cu", "-j", "many"], "kiln: --jobs: value many not in range ")):  # each version of the parser writes a range in its own way
    said = run(*words, status=2).stderr
    check(said.startswith(told) and said.count("\n") == 1 and (words[0] == "cache" or f"; 'kiln {words[0]} --help'" in said), "one line that names the remedy", words, said)

environment = dict(os.environ, KILN_CACHE_DIR=str(CACHE), KILN_CUDA_PATH=os.environ.get("KILN_TEST_CUDA_PATH", ""))
done = subprocess.run([CLI, "compile", "-", "-a", "sm_90", "--json"], input=KERNEL.replace("VALUE", "1"), capture_output=True,
                      text=True, env=environment, cwd=SCRATCH)
made = json.loads(done.stdout)
check(done.returncode == 0 and made[0]["unit"] == "stdin" and made[0]["kernels"][0]["name"] == "k", "from standard input", done)
