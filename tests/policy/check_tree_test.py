#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows every rule of check_tree.py failing on a small bad tree, and a good tree passing."""

import pathlib
import tempfile
import unittest

from check_tree import ALLOWED, MOST_LINES, checker, owner_of

GOOD = {
    "include/kiln/language.hpp": "#pragma once\n",
    "include/kiln/result.hpp": "#pragma once\n#include <kiln/language.hpp>\n#include <string>\n",
    "docs/headers.md": "| `kiln/language.hpp` | base | C++20 |\n| `kiln/result.hpp` | base | a value or an error |\n",
    "src/CMakeLists.txt": "kiln_pack(prims ARCHS 90)\nkiln_pack(tropical ARCHS 90)\n"
                          "kiln_pack(tiles DEPENDS prims ARCHS 80 90)\n",
    "src/tiles/join.cpp": '#include "prims/scan.hpp"\n#include "warmup/plan.hpp"\n',
    "src/tiles/tool/trials.cpp": '#include "workshop/pack_tool.hpp"\n',
    "src/base/files.hpp": "#include <kiln/result.hpp>\n",
    "src/base/files.cpp": '#include "base/files.hpp"\n// never printf("x") here\nint n = snprintf(b, 2, "std::cout");\n',
    "src/cuda/driver.hpp": '#include "base/files.hpp"\n#include <cuda.h>\n',
    "src/store/tier.cpp": '#include "base/files.hpp"\n',
    "src/engine/engine.cpp": '#include "store/tier.hpp"\n#include "cuda/driver.hpp"\n// TODO(#7): later\n',
    "tools/kiln/main.cpp": '#include "engine/engine.hpp"\nint main() { std::cout << 1; }\n',
    "tests/unit/base/files_test.cpp": "TEST(files, exist) {}\n",
}
GOOD.update({f"src/{module}/README.md": "| `*` | all of it |\n"
             for module in (*ALLOWED, "prims", "tropical", "tiles")})


LANGUAGE = "#include <kiln/language.hpp>\n"


def row(name, owner=None):
    header = name.removeprefix("include/")
    return f"| `{header}` | {owner or owner_of(header)} | something |\n"


class rules(unittest.TestCase):
    def findings(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for name, text in {**GOOD, **changes}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return checker(root).run()

    def expect(self, rule, name, text, line=1):
        changes = {name: text}
        if name.startswith("include/"):  # on the page, so that one thing is wrong
            changes["docs/headers.md"] = GOOD["docs/headers.md"] + row(name)
        found = self.findings(changes)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(f"{name}:{line}: {rule}:"), found[0])

    def test_good_tree_passes(self):
        self.assertEqual(self.findings({}), [])

    def test_readme_names_every_file(self):
        found = self.findings({"src/base/README.md": "only `clock` is here\n"})
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith("src/base/files.cpp:1: readme:") or
                        found[0].startswith("src/base/files.hpp:1: readme:"), found)
        self.assertEqual(self.findings({"src/base/README.md": "`files.hpp`: reading\n"}), [])
        self.assertEqual(self.findings({"src/base/README.md": "`fi*`\n"}), [])

    def test_json_that_throws(self):
        self.expect("json", "src/engine/bad.cpp", "\nauto text = data.dump(2);\n", line=2)
        self.expect("json", "tools/kiln/bad.cpp", "print(rows.dump());\n")

    def test_adaptors_clang_does_not_know(self):
        self.expect("clang", "src/engine/bad.cpp", "\nreturn std::ranges::max(all | std::views::values);\n", line=2)

    def test_arrow_upward(self):
        self.expect("arrow", "src/base/bad.cpp", '#include "cuda/driver.hpp"\n')
        self.expect("arrow", "src/store/bad.cpp", '\n#include "compile/keys.hpp"\n', line=2)
        self.expect("arrow", "src/compile/bad.cpp", '#include "store/tier.hpp"\n')
        self.expect("arrow", "src/cuda/bad.hpp", '#include "engine/engine.hpp"\n')
        self.expect("arrow", "src/engine/bad.hpp", '#include "warmup/plan.hpp"\n')
        self.expect("arrow", "src/engine/bad.hpp", '#include "tools/kiln/main.hpp"\n')

    def test_packs_are_those_of_the_build(self):
        self.expect("arrow", "src/tropical/bad.cpp", '#include "prims/scan.hpp"\n')
        self.expect("arrow", "src/prims/bad.cpp", '#include "tiles/join.hpp"\n')
        self.expect("arrow", "src/tiles/bad.cpp", '#include "workshop/pack_tool.hpp"\n')
        self.expect("layout", "src/geometry/bad.cpp", "\n")

    def test_cuda_header_below_cuda(self):
        for header in ("cuda.h", "nvrtc.h", "nvJitLink.h", "cuda_runtime.h", "cudaTypedefs.h", "cub/cub.cuh"):
            self.expect("cuda", "src/store/bad.cpp", f"#include <{header}>\n")
            self.expect("cuda", "src/base/bad.hpp", f"#  include <{header}>\n")

    def test_public_header_reaches_inside(self):
        for include in ('"base/files.hpp"', "<base/files.hpp>", '"result.hpp"', "<kiln/absent.hpp>", "<cuda.h>"):
            self.expect("public", "include/kiln/base/bad.hpp", f"{LANGUAGE}#include {include}\n", line=2)

    def test_public_header_for_any_language(self):
        self.expect("language", "include/kiln/base/bad.hpp", "#pragma once\n")
        self.expect("language", "include/kiln/base/bad.hpp", f"#include <string>\n{LANGUAGE}")

    def test_page_of_headers(self):
        page = GOOD["docs/headers.md"]
        for changes, at in (({"include/kiln/base/new.hpp": LANGUAGE}, "include/kiln/base/new.hpp:1"),
                            ({"docs/headers.md": page + row("kiln/base/gone.hpp")}, "docs/headers.md:3"),
                            ({"docs/headers.md": page.replace("| base | a", "| cuda | a")}, "docs/headers.md:2")):
            found = self.findings(changes)
            self.assertEqual(len(found), 1, found)
            self.assertTrue(found[0].startswith(f"{at}: page:"), found[0])

    def test_arrow_through_public_headers(self):
        header = {"include/kiln/prims/run.hpp": LANGUAGE, "include/kiln/engine.hpp": LANGUAGE}
        for name, include in (("src/tropical/bad.cpp", "kiln/prims/run.hpp"), ("src/base/bad.cpp", "kiln/engine.hpp"),
                              ("include/kiln/runtime/bad.hpp", "kiln/prims/run.hpp")):
            page = GOOD["docs/headers.md"] + "".join(row(h) for h in {*header, name} if h.startswith("include/"))
            found = self.findings({**header, name: f"#include <{include}>\n", "docs/headers.md": page})
            self.assertEqual(len(found), 1, found)
            self.assertTrue(found[0].startswith(f"{name}:1: arrow:"), found[0])

    def test_public_header_without_owner(self):
        self.expect("owner", "include/kiln/bad.hpp", LANGUAGE)
        self.expect("owner", "include/kiln/nobody/bad.hpp", LANGUAGE)

    def test_library_prints_or_exits(self):
        for statement in ('printf("x");', 'std::printf("x");', "std::cout << 1;", "std::cerr << 1;", 'puts("x");',
                          'fprintf(stderr, "x");', 'std::fputs("x", stdout);', 'fmt::print("x");', "std::exit(1);",
                          "exit(1);", "::_exit(1);"):
            with self.subTest(statement):
                self.expect("prints", "src/engine/bad.cpp", f"void f() {{ {statement} }}\n")

    def test_exceptions_are_by_file(self):
        exit_now = "void f() { ::_exit(1); }\n"
        self.assertEqual(self.findings({"src/compile/worker_server.cpp": exit_now}), [])
        self.expect("prints", "src/engine/worker_server.cpp", exit_now)

    def test_todo_without_issue(self):
        self.expect("todo", "src/base/bad.cpp", "// TODO: nicer\n")
        self.expect("todo", "tests/support/bad.hpp", "// FIXME(me) nicer\n")

    def test_long_file(self):
        for name in ("src/base/bad.cpp", "kernels/prims/bad.cu", "kernels/prims/bad.cuh"):
            self.expect("length", name, "int x;\n" * (MOST_LINES + 1), line=MOST_LINES)

    def test_layout(self):
        self.expect("layout", "src/misc/bad.cpp", "int x;\n")
        self.expect("layout", "src/bad.cpp", "int x;\n")
        self.expect("include", "src/base/bad.cpp", '#include "../base/files.hpp"\n')
        self.expect("include", "src/base/bad.cpp", '#include "filez.hpp"\n')

    def test_file_without_tests(self):
        self.expect("no-tests", "tests/unit/base/bad_test.cpp", "int x;\n")


if __name__ == "__main__":
    unittest.main()
