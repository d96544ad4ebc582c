#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Configures, builds and runs tests/install/consumer against a tree of Kiln: the build tree or an installed one."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def run(*command, **kwargs):
    command = [str(c) for c in command]
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, check=True, text=True, **kwargs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", choices=["build", "installed"])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--generator", default="Ninja")
    parser.add_argument("--cxx", default="c++")
    args = parser.parse_args()

    # Away from the checkout, so that nothing is found there by accident.
    with tempfile.TemporaryDirectory(prefix="kiln-consumer-") as scratch:
        scratch = pathlib.Path(scratch)
        source = scratch / "source"
        shutil.copytree(HERE / "consumer", source)
        prefix = args.build
        if args.tree == "installed":
            # Installed once, then moved: a package must not remember where it was made.
            run(args.cmake, "--install", args.build, "--prefix", scratch / "first", stdout=subprocess.DEVNULL)
            prefix = scratch / "moved"
            (scratch / "first").rename(prefix)

        run(args.cmake, "-G", args.generator, "-S", source, "-B", scratch / "b",
            f"-DCMAKE_CXX_COMPILER={args.cxx}", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release",
            "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF")
        found = [line for line in (scratch / "b/CMakeCache.txt").read_text().splitlines()
                 if line.startswith("kiln_DIR:")]
        if not found or str(prefix) not in found[0]:
            sys.exit(f"find_package took another kiln: {found}, wanted one below {prefix}")
        run(args.cmake, "--build", scratch / "b")
        for program in ("consumer_shared", "consumer_static"):
            run(scratch / "b" / program)

        if args.tree == "installed":
            check_installed_files(prefix)
            check_pkg_config(args.cxx, prefix, source, scratch)


def check_installed_files(prefix):
    public = {p.name for p in (HERE.parent.parent / "include/kiln").rglob("*.hpp")}
    installed = {p.name for p in (prefix / "include/kiln").rglob("*.hpp")}
    if public != installed:
        sys.exit(f"installed headers differ from include/kiln: {sorted(public ^ installed)}")
    built = pathlib.Path(os.environ["KILN_TEST_CLI"])
    if built.exists():
        run(prefix / "bin/kiln", "--version")
    if pathlib.Path(os.environ["KILN_TEST_WORKER"]).exists() and not (prefix / "libexec/kiln/kiln-worker").exists():
        sys.exit("kiln-worker is not in libexec/kiln of the installed tree")


def check_pkg_config(cxx, prefix, source, scratch):
    if not shutil.which("pkg-config"):
        print("pkg-config is not installed: its file is not tried")
        return
    pc = next(prefix.rglob("kiln.pc"))
    environment = {**os.environ, "PKG_CONFIG_PATH": str(pc.parent)}
    for arguments in (["--cflags", "--libs"],):
        flags = run("pkg-config", *arguments, "kiln", env=environment, stdout=subprocess.PIPE).stdout.split()
        run(cxx, "-std=c++20", source / "main.cpp", "-o", scratch / "by-pkg-config", *flags)
        library_path = str(next(prefix.rglob("libkiln.so")).parent)
        run(scratch / "by-pkg-config", env={**os.environ, "LD_LIBRARY_PATH": library_path})


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failure:
        sys.exit(str(failure))
