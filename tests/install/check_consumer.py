#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Configures, builds and runs tests/install/consumer against a tree of Kiln: the build tree or an installed one. With
'shipped', the program of it that looks for what a pack ships, against an installed one."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import _building

HERE = pathlib.Path(__file__).resolve().parent


def run(*command, **kwargs):
    command = [str(c) for c in command]
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, check=True, text=True, **kwargs)


def main():
    parser = _building.parser()
    parser.add_argument("what", choices=["build", "installed", "shipped"])
    parser.add_argument("--pack", help="with 'shipped': whose products")
    parser.add_argument("--archs", nargs="*", help="for which architectures they were made; none: they were not")
    args = parser.parse_args()
    if args.what == "shipped" and not args.archs:
        print(f"skipped: this build makes nothing of {args.pack} to ship (KILN_{args.pack.upper()}_PRODUCTS)")
        sys.exit(77)

    # Away from the checkout, so that nothing is found there by accident.
    with tempfile.TemporaryDirectory(prefix="kiln-consumer-") as scratch:
        scratch = pathlib.Path(scratch)
        source = scratch / "source"
        shutil.copytree(HERE / "consumer", source)
        prefix = args.build if args.what == "build" else install(args, scratch)
        configure(args, source, prefix, scratch)
        if args.what == "shipped":
            check_shipped(args, scratch)
        else:
            run(args.cmake, "--build", scratch / "b")
            for program in ("consumer_shared", "consumer_static", "consumer_c", "consumer_cxx17"):
                run(scratch / "b" / program)
            run(scratch / "b/host", scratch / "b/libplugin.so")
        if args.what == "installed":
            check_shared_needs_nothing(args, source, prefix, scratch)
            check_installed_files(prefix)
            check_pkg_config(args.cxx, prefix, source, scratch)


def install(args, scratch):
    """Installed once, then moved: a package must not remember where it was made."""
    run(args.cmake, "--install", args.build, "--prefix", scratch / "first", stdout=subprocess.DEVNULL)
    return (scratch / "first").rename(scratch / "moved")


def configure(args, source, prefix, scratch):
    run(args.cmake, "-G", args.generator, "-S", source, "-B", scratch / "b",
        f"-DCMAKE_CXX_COMPILER={args.cxx}", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF")
    found = [line for line in (scratch / "b/CMakeCache.txt").read_text().splitlines() if line.startswith("kiln_DIR:")]
    if not found or str(prefix) not in found[0]:
        sys.exit(f"find_package took another kiln: {found}, wanted one below {prefix}")


def check_shared_needs_nothing(args, source, prefix, scratch):
    """Neither package files nor headers of what Kiln is made with: CMake is told that there are none."""
    absent = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=TRUE"
              for name in ("fmt", "OpenSSL", "zstd", "KilnZstd", "PkgConfig", "nlohmann_json")]
    run(args.cmake, "-G", args.generator, "-S", source, "-B", scratch / "alone", f"-DCMAKE_CXX_COMPILER={args.cxx}",
        f"-DCMAKE_PREFIX_PATH={prefix}", "-DCONSUMER_STATIC=OFF", *absent)
    run(args.cmake, "--build", scratch / "alone")
    run(scratch / "alone/consumer_shared")


def check_shipped(args, scratch):
    """No compiler, no cache and no other bundle: what is found was in the library."""
    (scratch / "no-cuda").mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    environment |= {"KILN_JIT": "forbid", "KILN_CACHE_DIR": str(scratch / "cache"),
                    "KILN_CUDA_PATH": str(scratch / "no-cuda")}
    kinds = ["static", "shared"]
    if shutil.which("ld.lld"):
        kinds.append("static_lld")
    else:
        print("lld is not installed: what it takes from the archive is not tried")
    for program in [f"{name}_{kind}" for name in ("shipped", "named") for kind in kinds]:
        run(args.cmake, "--build", scratch / "b", "--target", program)
        run(scratch / "b" / program, args.pack, *args.archs, env=environment)


def check_installed_files(prefix):
    public = {p.name for p in (HERE.parent.parent / "include/kiln").rglob("*.h*")}
    installed = {p.name for p in (prefix / "include/kiln").rglob("*.h*")}
    if public != installed:
        sys.exit(f"installed headers differ from include/kiln: {sorted(public ^ installed)}")
    built = pathlib.Path(os.environ["KILN_TEST_CLI"])
    if built.exists():
        run(prefix / "bin/kiln", "--version")
        pages = {"kiln.1"} | {f"kiln-{p.stem}.1" for p in (HERE.parent.parent / "docs/cli").glob("*.md")}
        missing = pages - {p.name for p in (prefix / "share/man/man1").glob("*.1")}
        if missing:
            sys.exit(f"man pages that are not installed: {sorted(missing)}")
    if pathlib.Path(os.environ["KILN_TEST_WORKER"]).exists() and not (prefix / "libexec/kiln/kiln-worker").exists():
        sys.exit("kiln-worker is not in libexec/kiln of the installed tree")


def check_pkg_config(cxx, prefix, source, scratch):
    if not shutil.which("pkg-config"):
        print("pkg-config is not installed: its file is not tried")
        return
    pc = next(prefix.rglob("kiln.pc"))
    environment = {**os.environ, "PKG_CONFIG_PATH": str(pc.parent)}
    library_path = str(next(prefix.rglob("libkiln.so")).parent)
    for package in ("kiln", "kiln-static"):
        flags = run("pkg-config", "--cflags", "--libs", package, env=environment, stdout=subprocess.PIPE).stdout.split()
        program = scratch / f"by-pkg-config-{package}"
        run(cxx, "-std=c++20", source / "main.cpp", "-o", program, *flags)
        run(program, env={**os.environ, "LD_LIBRARY_PATH": library_path})
    flags = run("pkg-config", "--cflags", "--libs", "kiln", env=environment, stdout=subprocess.PIPE).stdout.split()
    run("cc", "-std=c99", source / "plain.c", "-o", scratch / "in-c", *flags)
    run(scratch / "in-c", env={**os.environ, "LD_LIBRARY_PATH": library_path})
    # Where the archive is alone, --static says what else it takes.
    alone = scratch / "archive"
    alone.mkdir()
    (alone / "libkiln.a").symlink_to(next(prefix.rglob("libkiln.a")))
    flags = run("pkg-config", "--static", "--cflags", "--libs", "kiln", env=environment, stdout=subprocess.PIPE).stdout.split()
    program = scratch / "by-pkg-config-static"
    run(cxx, "-std=c++20", source / "main.cpp", "-o", program, f"-L{alone}", *flags)
    run(program)
    check_linked_whole(program, "pkg-config --static kiln")
    check_linked_whole(scratch / "by-pkg-config-kiln-static", "kiln-static")


def check_linked_whole(program, how):
    needed = run("readelf", "-d", program, stdout=subprocess.PIPE).stdout
    if "libkiln" in needed:
        sys.exit(f"{how} linked the shared library")
    missing = [name for name in ("kiln_profile_is_on", "kiln_has_packs")
               if name not in run("nm", program, stdout=subprocess.PIPE).stdout]
    if missing:
        sys.exit(f"{how} leaves out {missing}: packs are found by nobody")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failure:
        sys.exit(str(failure))
