#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kiln_add_kernels ships is what was built: a header is edited, the program built again and moved to an empty root; it has the
new kernel, whatever lies at the paths where it was built."""

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
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)
    print(done.stdout, flush=True)
    return done


def check(fact, what):
    if not fact:
        sys.exit(f"FAILED: {what}")


class project:
    def __init__(self, args, scratch):
        self.args, self.scratch = args, scratch
        self.source = scratch / "source"
        shutil.copytree(HERE / "kernels", self.source)
        self.clock = 0
        key = run(os.environ["KILN_TEST_CLI"], "key", self.source / "key.pem")
        check(key.returncode == 0, "a key to sign with")
        done = run(args.cmake, "-G", args.generator, "-S", self.source, "-B", scratch / "b", f"-DCMAKE_CXX_COMPILER={args.cxx}",
                   f"-DCMAKE_PREFIX_PATH={args.build}", "-DCMAKE_BUILD_TYPE=Release")
        check(done.returncode == 0, "configure")

    def build(self):
        done = run(self.args.cmake, "--build", self.scratch / "b")
        check(done.returncode == 0, "build")
        return done.stdout

    def edit(self, name, text):
        path = self.source / name
        path.write_text(text)
        self.clock += 5  # newer by any clock of a file system
        subprocess.run(["touch", "-d", f"+{self.clock} seconds", path], check=True)

    def moved(self, name):
        """The program, alone in a folder; sources and headers are not where they were."""
        root = pathlib.Path(tempfile.mkdtemp(prefix="root-", dir=self.scratch))
        return shutil.copy(self.scratch / "b" / name, root)

    def ask(self, program, *arguments, jit="forbid"):
        cache = tempfile.mkdtemp(prefix="cache-", dir=self.scratch)
        environment = {n: v for n, v in os.environ.items() if not n.startswith("KILN_") or n == "KILN_CUDA_PATH"}
        environment |= {"KILN_CACHE_DIR": cache, "KILN_JIT": jit}
        if jit == "forbid":
            (self.scratch / "no-cuda").mkdir(exist_ok=True)
            environment["KILN_CUDA_PATH"] = str(self.scratch / "no-cuda")
        return run(program, *arguments, env=environment, cwd=pathlib.Path(program).parent).stdout.split("\n")


def main():
    args = _building.parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="kiln-kernels-") as scratch:
        p = project(args, pathlib.Path(scratch))
        p.build()
        check("Compiling" not in p.build(), "nothing was edited, nothing is made")

        away = p.scratch / "away"

        def without_sources(program, *arguments, **kwargs):
            p.source.rename(away)
            try:
                return p.ask(program, *arguments, **kwargs)
            finally:
                away.rename(p.source)

        first = p.moved("carries")
        answer = without_sources(first, "sm_80")
        check(answer[:4] == ["bundle 1", "bundle k", "bundle other", "bundle twice<float>"], f"all of it from the bundle: {answer}")
        check(without_sources(first, "compute_90", "ptx")[0] == "bundle 0", "cubins and PTX in one bundle")

        # Edited, built, moved: the new kernel.
        p.edit("include/lib/deeper.cuh", "#define STEP 2\n")
        check("Compiling" in p.build(), "an edited header is seen")
        second = p.moved("carries")
        check(without_sources(second, "sm_80")[0] == "bundle 2", "the new kernel is shipped")

        # Whatever lies where it was built is nobody's business: the shipped artifact serves, and what is compiled is compiled
        # with the headers that came along.
        p.edit("include/lib/deeper.cuh", "#define STEP 3\n")
        p.edit("include/deeper.cuh", "#define STEP 4\n")
        p.edit("beside.cuh", "#define BESIDE 5\n")
        check(p.ask(second, "sm_80")[0] == "bundle 2", "planted headers do not make a miss")
        check(p.ask(second, "sm_75", jit="allow")[0] == "compiled 2", "nor are they compiled into the kernel")
        whole = pathlib.Path(second).read_bytes()
        check(str(p.source).encode() not in whole, "no directory of the build is in the program")
        check(b"quite unmistakable" in whole, "the text of the kernel is")

        # Without the text.
        sealed = p.moved("images_only")
        check(without_sources(sealed, "sm_80")[0] == "bundle 2", "images are enough")
        signed = run(os.environ["KILN_TEST_CLI"], "verify", p.scratch / "b/images_only.kernels/sealed.kiln", "--key", p.source / "key.pem.pub")
        check(signed.returncode == 0, "signed by the key")
        check(b"quite unmistakable" not in pathlib.Path(sealed).read_bytes(), "the text of the kernel is not in the program")
        answer = p.ask(sealed, "sm_75", jit="allow")[0]
        check(answer.startswith("not-found") and "IMAGES_ONLY" in answer, f"what was not shipped cannot be made: {answer}")
        check("sm_80" in answer and "ARCHS" in answer and "NVRTC" not in answer, f"what there is and what to do: {answer}")

        # Names that CMake, the assembler, macros and link-time optimisation have opinions about.
        answer = without_sources(p.moved("odd-names"))
        check(answer[:5] == [f"bundle {kernel}" for kernel in ("cxx<int>", "first", "second", "penguin", "number")],
              f"names are names: {answer}")


if __name__ == "__main__":
    main()
