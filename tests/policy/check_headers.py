#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every public header alone, twice in a row, with nothing but include/ to look in, and then every template of
them; a word from the compiler is a failure.

    check_headers.py COMPILER INCLUDE [--host CXX] [--templates FILE]   g++, clang++ or nvcc; --host: nvcc's host compiler
    check_headers.py COMPILER INCLUDE --too-old                         under C++17 each must say in short what is needed
    check_headers.py COMPILER INCLUDE --for-c STANDARD                  the headers for C (*.h) under c99, c17, c++17, ...
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import time

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
NEEDED = "Kiln needs C++20: compile with -std=c++20"


# Each struct can begin as its macro says, without a word from the compiler.
BEGINNINGS = """
int main(void) {
    kiln_engine_status a = KILN_ENGINE_STATUS_INIT; kiln_wait b = KILN_WAIT_INIT; kiln_unit c = KILN_UNIT_INIT;
    kiln_kernel_info d = KILN_KERNEL_INFO_INIT; kiln_link e = KILN_LINK_INIT; kiln_device_info f = KILN_DEVICE_INFO_INIT;
    kiln_kernel_resources g = KILN_KERNEL_RESOURCES_INIT; kiln_launch h = KILN_LAUNCH_INIT;
    kiln_demand_options i = KILN_DEMAND_OPTIONS_INIT;
    return (a.size && b.size && c.size && d.size && e.size && f.size && g.size && h.size && i.size) ? 0 : 1;
}
"""


def command(args, source, output):
    if args.for_c and not pathlib.Path(args.compiler).name.startswith("nvcc"):
        language = "c++" if "++" in args.for_c else "c"
        return [args.compiler, f"-std={args.for_c}", *WARNINGS, "-fsyntax-only", f"-I{args.include}", "-x", language, source]
    if pathlib.Path(args.compiler).name.startswith("nvcc"):
        host = ["-ccbin", args.host] if args.host else []
        # For one architecture, without optimising: it is the front ends that are asked.
        return [args.compiler, "-std=c++20", *host, "-arch=sm_80", "-Xcompiler", "-O0,-Wall,-Wextra", "-Werror",
                "all-warnings", f"-I{args.include}", "-c", source, "-o", output]
    standard = "-std=c++17" if args.too_old else "-std=c++20"
    return [args.compiler, standard, *WARNINGS, "-fsyntax-only", f"-I{args.include}", "-x", "c++", source]


def complaint(args, source, folder):
    """What is wrong; empty: nothing."""
    done = subprocess.run(command(args, str(source), str(folder / (source.name + ".o"))), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if not args.too_old:
        return done.stdout if done.returncode != 0 or done.stdout.strip() else ""
    lines = done.stdout.splitlines()
    first = next((line for line in lines if "error" in line), "")
    if done.returncode != 0 and NEEDED in first and len(lines) < 40:
        return ""
    return f"status {done.returncode}, {len(lines)} lines, and the first error is not '{NEEDED}':\n" + done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("compiler")
    parser.add_argument("include", type=pathlib.Path)
    parser.add_argument("--host")
    parser.add_argument("--templates", type=pathlib.Path)
    parser.add_argument("--too-old", action="store_true")
    parser.add_argument("--for-c")
    args = parser.parse_args()
    headers = sorted(p.relative_to(args.include).as_posix() for p in args.include.rglob("*.h" if args.for_c else "*.hpp"))
    if not headers:
        sys.exit(f"{args.include}: no headers")

    began = time.monotonic()
    bad = 0
    with tempfile.TemporaryDirectory(prefix="kiln-headers-") as folder:
        folder = pathlib.Path(folder)
        sources = [args.templates] if args.templates else []
        for header in headers:
            source = folder / (header.replace("/", "_") + ".cu")
            source.write_text(f"#include <{header}>\n" * 2 + (BEGINNINGS if args.for_c else ""))
            sources.append(source)
        with concurrent.futures.ThreadPoolExecutor(min(8, len(os.sched_getaffinity(0)))) as pool:
            for source, said in zip(sources, pool.map(lambda s: complaint(args, s, folder), sources)):
                if said:
                    bad += 1
                    print(f"{source.name}:\n{said}", flush=True)
    print(f"{len(sources)} texts, {bad} bad, {time.monotonic() - began:.1f} s with {args.compiler}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
