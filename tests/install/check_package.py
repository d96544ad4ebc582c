#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the .deb, unpacks it into an empty root, and uses what is there as somebody would who installed it: kiln doctor, the
man pages, a consumer by CMake and by pkg-config."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import _building
import check_consumer
from check_consumer import HERE, run


def main():
    parser = _building.parser()
    parser.add_argument("--cpack", default="cpack")
    args = parser.parse_args()
    for tool in ("dpkg-deb", "dpkg-shlibdeps", "file"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is not installed")
            sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="kiln-package-") as scratch:
        scratch = pathlib.Path(scratch)
        package = make(args, scratch)
        check_control(package)
        run("dpkg-deb", "-x", package, scratch / "root")
        prefix = scratch / "root/usr"
        check_files(prefix)
        check_doctor(prefix, scratch)
        source = scratch / "source"
        shutil.copytree(HERE / "consumer", source)
        check_consumer.check_shared_needs_nothing(args, source, prefix, scratch)
        check_consumer.check_installed_files(prefix)
        check_consumer.check_pkg_config(args.cxx, prefix, source, scratch)


def make(args, scratch):
    run(args.cpack, "-G", "DEB", "--config", args.build / "CPackConfig.cmake", "-B", scratch / "made", stdout=subprocess.DEVNULL)
    made = list((scratch / "made").glob("kiln_*.deb"))
    if len(made) != 1:
        sys.exit(f"expected one package, found {made}")
    return made[0]


def check_control(package):
    fields = {name: run("dpkg-deb", "-f", package, name, stdout=subprocess.PIPE).stdout for name in ("Package", "Depends")}
    if fields["Package"].strip() != "kiln" or "libc6" not in fields["Depends"] or "libssl" not in fields["Depends"]:
        sys.exit(f"the package does not say what it needs: {fields}")


def check_files(prefix):
    pages = {p.stem for p in (HERE.parent.parent / "docs/cli").glob("*.md")}
    wanted = [f"share/man/man1/kiln-{page}.1" for page in pages]
    wanted += ["share/man/man1/kiln.1", "share/bash-completion/completions/kiln", "share/zsh/site-functions/_kiln", "bin/kiln",
               "libexec/kiln/kiln-worker", "share/doc/kiln/copyright"]
    if (prefix / "bin/kiln").stat().st_size < 10 << 20:  # the small one for `kiln run`, where it could be built
        wanted.append("libexec/kiln/kiln-cli")
    missing = [file for file in wanted if not (prefix / file).exists()]
    if missing:
        sys.exit(f"not in the package: {missing}")
    if "not stripped" in run("file", prefix / "bin/kiln", stdout=subprocess.PIPE).stdout:
        sys.exit("the program still has its debug information")


def check_doctor(prefix, scratch):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    environment |= {"KILN_CACHE_DIR": str(scratch / "cache"), "KILN_CUDA_PATH": os.environ["KILN_TEST_CUDA_PATH"]}
    report = json.loads(run(prefix / "bin/kiln", "doctor", "--json", env=environment, stdout=subprocess.PIPE).stdout)
    workers = next(f for f in report["findings"] if f["what"] == "workers")
    if not report["healthy"] or workers["state"] != "ok" or str(prefix) not in workers["value"]:
        sys.exit(f"kiln doctor is not content with the package: {json.dumps(report['findings'], indent=1)}")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failure:
        sys.exit(str(failure))
