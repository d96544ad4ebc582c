# SPDX-License-Identifier: Apache-2.0
"""kiln config: every setting, its value, where it comes from; and the guide's table of them."""

import os

from _kiln import SCRATCH, SOURCE, check, data, run, write

file = write("kiln.conf", "max-size = 20G\n")
seen = {s["name"]: s for s in data("config", KILN_CONFIG=file, KILN_JIT="warn")["settings"]}
check(seen["KILN_MAX_SIZE"] | {"help": ""} == {"name": "KILN_MAX_SIZE", "key": "max-size", "value": "20G", "default": "5G",
                                               "from": "file", "file": str(file), "help": ""}, "of the file", seen["KILN_MAX_SIZE"])
check((seen["KILN_JIT"]["value"], seen["KILN_JIT"]["from"]) == ("warn", "environment"), "of the environment", seen["KILN_JIT"])
check(seen["KILN_REWRITES"]["from"] == "default" and seen["KILN_REWRITES"]["value"] == "1", "of neither", seen["KILN_REWRITES"])
check(all(s["help"] for s in seen.values()), "each says what it is")

text = run("config", KILN_CONFIG=file).stdout
check(all(name in text for name in seen) and str(file) in text, "as text", text)
for name in ("KILN_MAX_SIZE", "max-size", "max_size"):
    chosen = data("config", name, KILN_CONFIG=file)["settings"]
    check([s["name"] for s in chosen] == ["KILN_MAX_SIZE"], "one by name", name, chosen)
check("did you mean 'max-size'?" in run("config", "max-sise", status=2).stderr, "one that is nearly one")

wrong = write("wrong.conf", "bogus = 3\n")
said = run("config", status=1, KILN_CONFIG=wrong)
check("wrong.conf:1: 'bogus = 3' is not a known setting" in said.stderr, "what is none is told", said.stderr)

said = run("config", status=1, KILN_CONFIG=write("row.conf", "workers 3\n")).stderr
check("row.conf:1: 'workers 3' has no '='" in said, "a line that is none says what it lacks", said)

said = run("config", status=1, KILN_CONFIG=write("size.conf", "max-size = 20G # mine\n")).stderr
check("size.conf: KILN_MAX_SIZE: '20G # mine' is not a size" in said, "a value of a file is told with the file", said)

# Whoever can write the settings says which programs are run.
home = write("home/.config/kiln/kiln.conf", "workers = 3\n").parents[2]
of_file = lambda **env: {s["name"]: s["from"] for s in data("config", status=None, HOME=home, XDG_CONFIG_HOME="", **env)["settings"]}["KILN_WORKERS"]
check(of_file() == "file", "one's own counts")
conf = home / ".config/kiln/kiln.conf"
for mode in (0o646, 0o666):
    conf.chmod(mode)
    said = run("doctor", status=1, HOME=home, XDG_CONFIG_HOME="").stdout
    check(of_file() == "default" and f"{conf}: others can write it" in said, "one that others can write does not, and doctor tells", oct(mode), said)
    check(of_file(KILN_CONFIG=conf) == "default", "nor where it was named", oct(mode))
conf.chmod(0o600)
if os.getuid() == 0:
    os.chown(conf, 65534, 65534)
    check(of_file() == "default" and "belongs to user 65534" in run("config", status=1, HOME=home, XDG_CONFIG_HOME="").stderr, "nor does another user's")
    check(of_file(KILN_CONFIG=conf) == "file", "unless it was named")

# A misspelt name in the environment would have no effect, and nobody would know.
said = run("config", status=1, KILN_CACHEDIR="/x", KILN_RUN_LOG="", KILN_REMOTE_TOKEN="t")
check("KILN_CACHEDIR is set and is not a setting; did you mean 'KILN_CACHE_DIR'?" in said.stderr and "TOKEN" not in said.stderr, "misspelt in the environment", said.stderr)
check(data("config", status=1, KILN_MAXSIZE="1G")["problems"] == ["KILN_MAXSIZE is set and is not a setting; did you mean 'KILN_MAX_SIZE'?"], "in JSON, too")
seen = run("doctor", status=1, KILN_WORKRS="1").stdout
check("KILN_WORKRS is set and is not a setting; did you mean 'KILN_WORKERS'?" in seen, "doctor tells it", seen)

# A word that means nothing forbids, to be safe: whoever is refused hears of it.
write("jit.cu", 'extern "C" __global__ void k() {}\n')
said = run("compile", "jit.cu", "--arch", "sm_90", status=1, KILN_JIT="alow").stderr
check("'alow' is not one of allow, warn, forbid" in said, "the error says what was written", said)
(jit,) = data("config", "jit", status=1, KILN_JIT="alow")["settings"]
check((jit["value"], jit["from"]) == ("forbid", "environment"), "and whose word it was is told", jit)

table = run("config", "--markdown").stdout
page = (SOURCE / "docs/guide/settings.md").read_text()
check(table in page, "docs/guide/settings.md has another table than the program: put the output of 'kiln config --markdown' there", table)
mentioned = "".join(p.read_text() for p in [SOURCE / "README.md", *(SOURCE / "docs").rglob("*.md")])
check(all(name in mentioned for name in seen), "every setting is on some page")
