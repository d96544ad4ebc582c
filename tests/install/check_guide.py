#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What README and guide show is true: programs compile and, where they have a main, run; the project of the CMake page builds;
every code of an error is explained; every page is listed and every link leads somewhere.

A block of C++ is a program if it begins with an #include and defines a function; others are fragments for people."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import _building

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GUIDE = ROOT / "docs/guide"
PAGES = [ROOT / "README.md", *sorted(GUIDE.glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
FUNCTION = re.compile(r"^[\w:<>&]+(?: [\w:<>&]+)* [\w:]+\(.*\) \{$", re.M)


def run(*command, **kwargs):
    command = [str(c) for c in command]
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, check=True, text=True, **kwargs)


def blocks(page, language):
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind == language]


def programs(page):
    return [text for text in blocks(page, "cpp") if text.startswith("#include") and FUNCTION.search(text)]


def check_programs(args, scratch):
    library = args.build / "lib"
    environment = os.environ | {"LD_LIBRARY_PATH": str(library), "KILN_CACHE_DIR": str(scratch / "cache")}
    seen = 0
    for page in [*PAGES, ROOT / "docs/spatial.md"]:
        for number, text in enumerate(programs(page)):
            if "_kernels.hpp" in text:
                continue  # of the CMake page: below
            source = scratch / f"{page.stem}_{number}.cpp"
            source.write_text(text)
            flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", source]
            if "int main(" in text:
                run(args.cxx, *flags, "-o", source.with_suffix(""), f"-L{library}", "-lkiln")
                run(source.with_suffix(""), env=environment)
            else:
                run(args.cxx, *flags, "-fsyntax-only")
            seen += 1
        for number, text in enumerate(blocks(page, "c")):
            source = scratch / f"{page.stem}_{number}.c"
            source.write_text(text)
            run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", source, "-o", source.with_suffix(""),
                f"-L{library}", "-lkiln")
            run(source.with_suffix(""), env=environment)
            seen += 1
    if seen < 5:
        sys.exit(f"only {seen} programs in README and guide: are they still found?")


def check_cmake(args, scratch):
    page = GUIDE / "cmake.md"
    project = scratch / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(next(text for text in blocks(page, "cmake") if "project(" in text))
    (project / "main.cpp").write_text(next(text for text in programs(page) if "_kernels.hpp" in text))
    for file in ("wave.cu", "wave.cuh"):
        shutil.copy(ROOT / "examples/embedded" / file, project)
    environment = os.environ | {"KILN_CACHE_DIR": str(scratch / "cache")}
    run(args.cmake, "-G", args.generator, "-S", project, "-B", scratch / "b", f"-DCMAKE_CXX_COMPILER={args.cxx}",
        f"-DCMAKE_PREFIX_PATH={args.build}", "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF", stdout=subprocess.DEVNULL)
    run(args.cmake, "--build", scratch / "b", env=environment, stdout=subprocess.DEVNULL)
    # What was built carries its kernels: no compiler and no cache.
    (scratch / "no-cuda").mkdir()
    run(scratch / "b/app", env=environment | {"KILN_JIT": "forbid", "KILN_CACHE_DIR": str(scratch / "empty"),
                                               "KILN_CUDA_PATH": str(scratch / "no-cuda")})


def check_words():
    wrong = []
    listed = re.search(r"enum class errc \{(.*?)\};", (ROOT / "include/kiln/result.hpp").read_text(), re.S)[1]
    codes = re.findall(r"^\s+(\w+),", listed, re.M)
    errors = (GUIDE / "errors.md").read_text()
    wrong += [f"docs/guide/errors.md: nothing about errc::{code}" for code in codes
              if f"| `{code}` | `{code.replace('_', '-')}` |" not in errors]
    index = (GUIDE / "README.md").read_text()
    wrong += [f"docs/guide/README.md: {page.name} is not listed" for page in GUIDE.glob("*.md")
              if page.name != "README.md" and f"({page.name})" not in index]
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in link and not (page.parent / link).exists():
                wrong.append(f"{page.relative_to(ROOT)}: {link} is not there")
    if wrong:
        sys.exit("\n".join(wrong))


def main():
    args = _building.parser().parse_args()
    check_words()
    with tempfile.TemporaryDirectory(prefix="kiln-guide-") as scratch:
        check_programs(args, pathlib.Path(scratch))
        check_cmake(args, pathlib.Path(scratch))


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failure:
        sys.exit(str(failure))
