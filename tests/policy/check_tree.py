#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a checkout's sources and fails on what the compiler cannot see: an include against the direction of the
architecture, a library that prints, a to-do nobody owns, a file that has grown too long, a page that forgot a header, a
module's README that forgot a file.

    check_tree.py ROOT     prints "file:line: rule: what and why" per finding; exit status 1 if there are any
"""

import fnmatch
import pathlib
import re
import sys

# What each module may include besides itself. The same arrows as src/CMakeLists.txt, which alone lists the packs.
ALLOWED = {
    "base": set(),
    "cuda": {"base"},
    "compile": {"base", "cuda"},
    "store": {"base"},
    "remote": {"base", "store"},
    "engine": {"base", "cuda", "compile", "store", "remote"},
    "warmup": {"base", "cuda", "compile", "store", "engine"},
    "runtime": {"base", "cuda", "compile", "store", "engine"},
    "workshop": {"base", "cuda", "compile", "store", "engine", "runtime"},
    "capi": {"base", "cuda", "compile", "store", "engine", "warmup"},
    "intercept": {"base", "cuda", "compile", "store"},
    "report": {"base"},
    "audit": {"base", "report"},
}
# Every pack may include these, and the packs that its line names after DEPENDS; src/<pack>/tool/, which is for Kiln's own
# programs, workshop as well.
BELOW_PACKS = {"base", "cuda", "compile", "store", "engine", "runtime", "warmup"}
PACK_LINE = re.compile(r"^kiln_pack\((\w+)([^)]*)\)", re.MULTILINE)
# Who declares what in include/kiln/: a header in a folder belongs to the module of that name, those at the root to one of
# these. Their definitions, and what a private header may see of them, follow the same arrows.
ROOT_HEADERS = {
    "language": "base", "result": "base", "scalar": "base", "event": "base", "pending": "base", "version": "base",
    "activity": "cuda", "device": "cuda", "kernel": "cuda",
    "target": "compile", "unit": "compile", "artifact": "compile", "instance": "compile",
    "engine": "engine", "embedded": "engine", "status": "engine",
    "kiln": "capi",
    "catalogue": "engine", "demand": "warmup", "plan": "warmup", "profile": "warmup",
}
# What every public header includes first, so that an older C++ is named before anything fails.
LANGUAGE = "kiln/language.hpp"
C_HEADERS = {"stddef.h", "stdint.h"}
WITHOUT_CUDA = {"base", "store", "remote", "report", "audit"}
MOST_LINES = 800
# Files of src/ that may print and exit, with the reason.
MAY_PRINT = {
    "compile/worker_server.cpp": "the body of kiln-worker: never runs in a user's process",
    "compile/worker_life.cpp": "the same",
}

CUDA_HEADER = re.compile(r"^(cuda\.h|cuda[_A-Z].*|nvrtc\.h|nvJitLink\.h|nvPTXCompiler\.h|cupti.*|driver_types\.h|"
                         r"vector_types\.h|cub/.*|thrust/.*|cuda/std/.*|crt/.*)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
PRINTS = re.compile(r"(?<![\w:.>])(?:std::)?(?:printf|puts|putchar|perror|vprintf)\s*\(|"
                    r"\bf(?:printf|puts|putc|write)\s*\([^;]*\bstd(?:out|err)\b|"
                    r"\bstd::(?:cout|cerr|clog)\b|"
                    r"\bfmt::print(?:ln)?\s*\(|"
                    r"(?<![\w:.>])(?:std::|::)?(?:_?exit|quick_exit)\s*\(")
ADAPTED = re.compile(r"\|\s*(?:std::)?(?:ranges::)?views::")
DUMPS = re.compile(r"\.dump\s*\(")
TODO = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\s*\(#\d+\)|\s*#\d+)")
TEST_MACRO = re.compile(r"^\s*(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|INSTANTIATE_TEST_SUITE_P|"
                        r"INSTANTIATE_TYPED_TEST_SUITE_P)\s*\(", re.MULTILINE)

CODE_WORD = re.compile(r"`([\w*]+)(?:\.\w+)?`")
PAGE_ROW = re.compile(r"^\| `(kiln/[^`]*)` \| (\w+) \|")

SOURCE_SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh"}
TEXT_SUFFIXES = SOURCE_SUFFIXES | {".py", ".sh", ".cmake", ".txt"}


def blank_comments_and_strings(text):
    """The same text with the insides of comments and string literals as spaces: lines and columns stay."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^\s()\\]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
                         re.DOTALL)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def arrows_of(root):
    """ALLOWED, with the packs of src/CMakeLists.txt."""
    lines = root / "src/CMakeLists.txt"
    out = dict(ALLOWED)
    for name, more in PACK_LINE.findall(lines.read_text(encoding="utf-8") if lines.exists() else ""):
        words = more.split()
        start = words.index("DEPENDS") + 1 if "DEPENDS" in words else len(words)
        depends = set()
        for word in words[start:]:
            if word.isupper():
                break
            depends.add(word)
        out[name] = BELOW_PACKS | depends
    return out


def owner_of(name):
    """The module a public header belongs to; name as it is included: kiln/prims/run.hpp."""
    parts = name.split("/")
    if parts[0] != "kiln":
        return None
    if len(parts) == 2:
        return ROOT_HEADERS.get(parts[1].rpartition(".")[0])
    return parts[1]


class checker:
    def __init__(self, root):
        self.root = root
        self.allowed = arrows_of(root)
        self.packs = self.allowed.keys() - ALLOWED.keys()
        self.findings = []

    def report(self, path, line, rule, message):
        self.findings.append(f"{path.relative_to(self.root)}:{line}: {rule}: {message}")

    def files(self, folder, suffixes):
        base = self.root / folder
        return sorted(p for p in base.rglob("*") if p.suffix in suffixes and p.is_file()) if base.is_dir() else []

    def run(self):
        for path in self.files("src", SOURCE_SUFFIXES):
            self.check_module_file(path)
        for path in self.files("include", SOURCE_SUFFIXES | {".h"}):
            self.check_public_header(path)
        self.check_page_of_headers(self.root / "docs/headers.md")
        for folder in sorted((self.root / "src").iterdir()):
            if folder.name in self.allowed:
                self.check_readme(folder)
        for folder in ("src", "include", "tools", "kernels", "bench", "examples", "tests", "scripts", "cmake"):
            for path in self.files(folder, TEXT_SUFFIXES):
                if "policy" not in path.relative_to(self.root).parts:
                    self.check_any_file(path)
        for kind in ("unit", "compile", "device", "format", "process"):
            for path in self.files(f"tests/{kind}", {".cpp"}):
                if path.name.endswith("_test.cpp") and not TEST_MACRO.search(path.read_text(encoding="utf-8")):
                    self.report(path, 1, "no-tests", "a test file without a test")
        return self.findings

    def includes(self, text):
        for number, line in enumerate(text.splitlines(), 1):
            if match := INCLUDE.match(line):
                yield number, match.group(1), match.group(2)

    def check_module_file(self, path):
        parts = path.relative_to(self.root / "src").parts
        module = parts[0]
        if len(parts) < 2:
            self.report(path, 1, "layout", "sources live in a module's folder")
            return
        if module not in self.allowed:
            self.report(path, 1, "layout", f"'{module}' is no module: add it to {pathlib.Path(__file__).name} and "
                                           "src/CMakeLists.txt")
            return
        allowed = self.allowed[module]
        if module in self.packs and parts[1] == "tool":
            allowed = allowed | {"workshop"}
        text = path.read_text(encoding="utf-8")
        for line, quote, name in self.includes(text):
            first = name.split("/")[0]
            if quote == '"' and "/" not in name and not (path.parent / name).exists():
                self.report(path, line, "include", f'"{name}": write the module too, "{module}/{name}"')
            elif quote == '"' and ".." in name.split("/"):
                self.report(path, line, "include", f'"{name}": no "..": write "module/file.hpp"')
            elif quote == '"' and first in self.allowed and first != module and first not in allowed:
                self.report(path, line, "arrow", f"{module} may not include {first} ({name})")
            elif quote == '"' and first in ("tools", "tests", "bench", "examples"):
                self.report(path, line, "arrow", f"nothing in src/ includes {first}/ ({name})")
            elif (owner := owner_of(name)) in self.allowed and owner != module and owner not in allowed:
                self.report(path, line, "arrow", f"{module} may not include what {owner} declares (<{name}>)")
            elif module in WITHOUT_CUDA and CUDA_HEADER.match(name):
                self.report(path, line, "cuda", f"{module} knows nothing of CUDA ({name})")
        if path.relative_to(self.root / "src").as_posix() in MAY_PRINT:
            return
        code = blank_comments_and_strings(text)
        for number, line in enumerate(code.splitlines(), 1):
            if match := PRINTS.search(line):
                self.report(path, number, "prints",
                            f"'{match.group().strip()}': the library never prints and never exits; emit an event")

    def check_public_header(self, path):
        own_name = path.relative_to(self.root / "include").as_posix()
        module = owner_of(own_name)
        if module not in self.allowed:
            self.report(path, 1, "owner", "no module owns this header: put it into include/kiln/<module>/, or name its "
                                          f"owner in {pathlib.Path(__file__).name}")
            return
        allowed = self.allowed[module]
        includes = list(self.includes(path.read_text(encoding="utf-8")))
        # The one for C knows no C++, nor any other header of ours.
        if path.suffix == ".h":
            for line, _, name in includes:
                if name not in C_HEADERS:
                    self.report(path, line, "public", f"a header for C includes C99's own alone, not <{name}>")
            return
        if own_name != LANGUAGE and (not includes or not includes[0][2].startswith("kiln/")):
            self.report(path, 1, "language", f"a public header begins with <{LANGUAGE}>, or another one that does")
        for line, quote, name in includes:
            first = name.split("/")[0]
            owner = owner_of(name)
            if first in self.allowed and (self.root / "src" / name).exists():
                self.report(path, line, "public", f"a public header includes a private one ({name})")
            elif quote == '"':
                self.report(path, line, "public", f'public headers are included as <kiln/...>, not "{name}"')
            elif first == "kiln" and not (self.root / "include" / name).exists():
                self.report(path, line, "public", f"<{name}> is not in include/")
            elif owner in self.allowed and owner != module and owner not in allowed:
                self.report(path, line, "arrow", f"a header of {module} may not include what {owner} declares (<{name}>)")
            elif CUDA_HEADER.match(name):
                self.report(path, line, "public", f"users need no CUDA headers ({name})")

    def check_page_of_headers(self, page):
        rows = {}
        if page.exists():
            for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
                if match := PAGE_ROW.match(line):
                    rows[match.group(1)] = (number, match.group(2))
        headers = {p.relative_to(self.root / "include").as_posix(): p for p in self.files("include", {".hpp", ".h"})}
        for name in headers.keys() - rows.keys():
            self.report(headers[name], 1, "page", f"not in the table of {page.relative_to(self.root)}")
        for name, (line, owner) in rows.items():
            if name not in headers:
                self.report(page, line, "page", f"there is no <{name}>")
            elif owner_of(name) and owner != owner_of(name):
                self.report(page, line, "page", f"<{name}> belongs to {owner_of(name)}, not to {owner}")

    def check_readme(self, folder):
        """A stranger finds every file of a module in its README: `stem`, or `cpu_*` for several."""
        readme = folder / "README.md"
        named = CODE_WORD.findall(readme.read_text(encoding="utf-8")) if readme.exists() else []
        stems = {p.stem: p for p in sorted(folder.iterdir()) if p.suffix in SOURCE_SUFFIXES}
        for stem, path in stems.items():
            if not any(fnmatch.fnmatchcase(stem, word) for word in named):
                self.report(path, 1, "readme", f"`{stem}` is not in {readme.relative_to(self.root)}: say what it is for")

    def check_any_file(self, path):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for number, line in enumerate(lines, 1):
            if match := TODO.search(line):
                self.report(path, number, "todo", f"{match.group()} without an issue: write {match.group()}(#12)")
        if path.parts[len(self.root.parts)] in ("src", "tools") and path.name != "text.hpp":
            for number, line in enumerate(blank_comments_and_strings(text).splitlines(), 1):
                if DUMPS.search(line):
                    self.report(path, number, "json", "dump() throws at a name that is not UTF-8: base::json_text() does not")
                if ADAPTED.search(line):
                    self.report(path, number, "clang", "clang 14 does not compile libstdc++'s range adaptors: a projection, or a loop")
        if path.suffix in {".cpp", ".cu", ".cuh"} and len(lines) > MOST_LINES:
            self.report(path, MOST_LINES, "length",
                        f"{len(lines)} lines, {MOST_LINES} at most: find the second concept in it and name it")


def main():
    if len(sys.argv) != 2 or not (pathlib.Path(sys.argv[1]) / "src").is_dir():
        sys.exit("usage: check_tree.py ROOT, where ROOT holds src/")
    findings = checker(pathlib.Path(sys.argv[1]).resolve()).run()
    for finding in findings:
        print(finding)
    print(f"{len(findings)} finding(s)")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
