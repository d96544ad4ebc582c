# SPDX-License-Identifier: Apache-2.0
"""Man pages, completion and --help say the same: every command and every option of the program, and no other."""

import re
import shlex
import shutil
import subprocess

from _kiln import CLI, SCRATCH, SOURCE, check, run

PAGES = {p.stem: p.read_text() for p in (SOURCE / "docs/cli").glob("*.md")}
OPTION = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")


def complete(*words):
    """What bash offers for the last word."""
    script = (f"source {SCRATCH}/kiln.bash; COMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}; "
              "_kiln; printf '%s\\n' \"${COMPREPLY[@]}\"")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    check(done.stderr == "", "a script bash can read", done.stderr)
    return set(done.stdout.split())


def options_in(text):
    """The options of the entries after 'Options:'."""
    lines = [line.strip() for line in text[text.index("\nOptions:"):].splitlines() if re.match(r" {2,6}-", line)]
    return {o for line in lines for o in OPTION.findall(line.split("  ")[0])}


(SCRATCH / "kiln.bash").write_text(run("completion", "bash").stdout)
commands = complete("kiln", "")
check(commands == set(PAGES), "completion has every command", commands ^ set(PAGES))
listed = run("help").stdout
check(all(re.search(rf"^  {c}\b", listed, re.M) for c in commands), "kiln help has every command", listed)

folder = SCRATCH / "man1"
run("manual", "-o", folder)
check({p.name for p in folder.iterdir()} == {"kiln.1"} | {f"kiln-{c}.1" for c in commands}, "a man page for each", *folder.iterdir())

for page in folder.glob("kiln-*.1"):  # also where they are in groups with a line above each
    options = page.read_text().partition("\n.SH OPTIONS")[2].partition("\n.SH ")[0]
    told = options_in(PAGES[page.stem.removeprefix("kiln-")])
    missing = [o for o in told if o.replace("-", "\\-") not in options]
    check(not missing, f"{page.name}: its options are in their section", missing, options)

SHARED = options_in(PAGES["compile"])  # "all options of kiln compile" on other pages
for command in sorted(commands):
    subcommands = complete("kiln", command, "") - {"bash", "zsh"} if command not in ("help", "manual") else set()
    offered = complete("kiln", command, "-")
    for sub in subcommands:
        offered |= complete("kiln", command, sub, "-")
        check(re.search(rf"\b{sub}\b", PAGES[command]), f"the page of {command} names {sub}")
    told = options_in(PAGES[command])
    takes_all = re.search(r"options of .?kiln compile", PAGES[command])
    check(offered - told <= (SHARED if takes_all else set()), f"docs/cli/{command}.md names every option",
          offered - told)
    check(told <= offered, f"kiln {command} has every option of its page", told - offered)
    page = (folder / f"kiln-{command}.1").read_text()
    check(page == run("manual", command).stdout, "the same page by name")
    plain = page.replace("\\-", "-")
    check(all(re.search(rf"(?<![\w-]){o}\b", plain) for o in told), f"the man page of {command} has every option", told, page)
    check(all(f"\n.SH {s}\n" in page for s in ("NAME", "SYNOPSIS", "OPTIONS", "SEE ALSO")), "its sections", page)

check(complete("kiln", "comp") == {"compile", "completion"}, "the beginning of a command")
check(complete("kiln", "compile", "--ar") == {"--arch"}, "the beginning of an option")
check(complete("kiln", "cache", "") == {"stats", "list", "path", "prune", "clear", "verify"}, "commands of a command")
check(complete("kiln", "run", "--", "ls", "-") == set(), "the words of another program are not ours")
check(complete("kiln", "help", "com") == {"compile", "completion"}, "kiln help COMMAND")

whole = (folder / "kiln.1").read_text().replace("\\-", "-")
for setting in run("config").stdout.splitlines()[1:]:
    check(setting.split()[0] in whole, "kiln.1 names every setting", setting)
check("there is no command 'cmpile'" in run("manual", "cmpile", status=2).stderr, "no page of what is no command")
run("completion", "fish", status=2)

if shutil.which("groff"):
    for page in folder.iterdir():
        done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-K", "utf8", page], capture_output=True, text=True, check=True)
        check(done.stderr == "", "groff has nothing to say", page, done.stderr)
if shutil.which("lexgrog"):
    for page in folder.iterdir():
        check(f"{page.stem} - " in subprocess.run(["lexgrog", page], capture_output=True, text=True).stdout, "apropos finds it", page)
if shutil.which("zsh"):
    (SCRATCH / "_kiln").write_text(run("completion", "zsh").stdout)
    # No terminal: the helpers of its completion are stood in for by ones that print what they are given.
    script = """
        _describe() { print -rl -- "${(P@)argv[-1]}"; }
        _files() { print FILES; }
        compdef() { }
        source $1
        shift
        words=("$@") CURRENT=$#
        _kiln
    """

    def complete_zsh(*words):
        done = subprocess.run(["zsh", "-f", "-c", script, "zsh", SCRATCH / "_kiln", *words], capture_output=True, text=True)
        check(done.returncode == 0 and done.stderr == "", "a script zsh can read", done.stderr)
        return dict(line.split(":", 1) if ":" in line else (line, "") for line in done.stdout.splitlines())

    check(set(complete_zsh("kiln", "")) == commands, "zsh has every command")
    for words in (["compile", "-"], ["cache", "stats", "-"], ["run", "-"]):
        check(set(complete_zsh("kiln", *words)) == complete("kiln", *words), "zsh has the options bash has", words)
    check("define a macro" in complete_zsh("kiln", "compile", "-")["--define"], "and what they mean")
    check("FILES" in complete_zsh("kiln", "compile", ""), "and files")
