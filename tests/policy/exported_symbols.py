#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What libkiln.so shows to the programs that load it: names of Kiln's own that its public headers declare, and nothing of
what it is made with. exported_symbols.py LIBRARY compares with exported_symbols.txt; --renew writes that file anew."""

import pathlib
import re
import subprocess
import sys

LIST = pathlib.Path(__file__).with_name("exported_symbols.txt")
OWN = re.compile(r"(vtable for |VTT for |typeinfo for |typeinfo name for |guard variable for )?kiln(::|_[a-z_]+$)")


def exported(library):
    """[(type as nm says it, demangled name)] of what the dynamic linker sees."""
    lines = subprocess.run(["nm", "-DC", "--defined-only", library], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    return [line.split(maxsplit=2)[1:] for line in lines]


def without(text, opening, closing):
    out, depth = [], 0
    for character in text:
        depth += character == opening
        if depth == 0:
            out.append(character)
        depth -= character == closing and depth > 0
    return "".join(out)


def plain(name):
    """kiln::result<int>::value() const -> kiln::result::value: what a reader of the headers calls it."""
    for sign, word in (("operator()", "operator call"), ("operator<=>", "operator order"), ("operator<<", "operator left"),
                       ("operator->", "operator arrow"), ("operator<", "operator less"), ("operator>", "operator greater")):
        name = name.replace(sign, word)
    name = re.sub(r"\[abi:\w+\]", "", name)
    name = without(name, "<", ">").split("(")[0]
    special = OWN.match(name)
    head = special.group(1) or "" if special else ""
    rest = name[len(head):]
    if "operator" not in rest:
        rest = rest.split(" ")[-1]  # templates say what they return
    return head + rest


def main():
    arguments = [a for a in sys.argv[1:] if a != "--renew"]
    symbols = exported(arguments[0])
    strangers = sorted({name for _, name in symbols if not OWN.match(plain(name))})
    if strangers:
        sys.exit("libkiln.so exports what is not Kiln's:\n  " + "\n  ".join(strangers))
    # Weak ones are inline functions and templates: which of them there are is the compiler's choice.
    names = sorted({plain(name) for kind, name in symbols if kind in "TDBR"})
    if "--renew" in sys.argv:
        LIST.write_text("\n".join(names) + "\n")
        print(f"{len(names)} names of {len(symbols)} symbols")
        return
    listed = LIST.read_text().split("\n")[:-1]
    new, gone = sorted(set(names) - set(listed)), sorted(set(listed) - set(names))
    for title, those in (("not in the list", new), ("in the list alone", gone)):
        if those:
            print(f"{title}:\n  " + "\n  ".join(those))
    if new or gone:
        sys.exit(f"the exported symbols have changed; if that is meant: {sys.argv[0]} {arguments[0]} --renew")


if __name__ == "__main__":
    main()
