#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Doxygen reads instead of a public header: the comments above declarations and behind members become ones it looks at.
The comment a header begins with is the page of the file. Of the Markdown page, only links to other files are taken off."""

import pathlib
import re
import sys

COMMENT = re.compile(r"^(\s*)//(?!/)(.*)$")
BEHIND = re.compile(r"^(.*[;,{)\w]\s+)// (?!NOLINT)(.*)$")


def plain(text):
    """Words, not commands: what stands between backquotes, and examples, are left alone."""
    if text.startswith("     "):
        return text
    parts = text.split("`")
    return "`".join(p if i % 2 else re.sub(r"([\\@#<>&])", r"\\\1", p) for i, p in enumerate(parts))


def header(lines):
    for line in lines:
        if line.startswith("// SPDX"):
            yield "/// \\file"
        elif found := COMMENT.match(line):
            yield f"{found[1]}///{plain(found[2])}"
        elif (found := BEHIND.match(line)) and '"' not in line:
            yield f"{found[1]}///< {plain(found[2])}"
        else:
            yield line


def main():
    path = pathlib.Path(sys.argv[1])
    text = path.read_text()
    if path.suffix == ".md":
        print(re.sub(r"\[([^\]]*)\]\((?!http)[^)]*\)", r"\1", text), end="")
    else:
        print("\n".join(header(text.splitlines())))


if __name__ == "__main__":
    main()
