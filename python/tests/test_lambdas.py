# SPDX-License-Identifier: Apache-2.0
"""Operators written as lambdas: the text they become has Python's results, and what cannot become one is told with its line."""

import itertools
import pathlib
import pickle
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import kiln
import numpy
import pytest
from conftest import Run

NUMBERS = [-7, -3, -1, 1, 2, 5, 100]
OPERATORS: list[Callable[..., Any]] = [
    lambda a, b: a + b * 2 - 3,
    lambda a, b: (a + b) * (a - b),
    lambda a, b: a / b,
    lambda a, b: a // b,
    lambda a, b: a % b,
    lambda a, b: -(-a) // -b + a % -b,
    lambda a, b: min(a, b),
    lambda a, b: max(a, b, 3),
    lambda a, b: abs(a) + abs(-b),
    lambda a, b: max(min(a + b, a - b, a * 2, b * 3 - 1), abs(a * b - b * 2 + a * 3 - 100)) + 5 * 3 - (1 - 4),
    lambda a, b: a if a > b else b - 1,
    lambda a, b: (1 if a < b < 50 else 0) + (2 if not a == b or b != 2 else 0),
    lambda a, b: 1 if 0 <= a and a <= b else (2 if a >= 5 else 3),
    lambda a, b: a**2 + (a - b) ** 3,
    lambda x, y: x * 4294967296 + y,
    lambda a, b: a * 0.5 + b,
    lambda a, b:
        a -
        b,
]
OF_INTEGERS: list[Callable[..., Any]] = [
    lambda a, b: (a & b) | (a ^ 3),
    lambda a, b: ~a + (abs(b) << 2) - (abs(b) >> 1),
]


def results(operators: Any, type: Any, values: Any, folder: Any) -> Any:
    """Of every operator for every pair, by the text it became, compiled for the host."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    program = "#include <cmath>\n#include <cstdio>\n#define __device__\nusing std::floor, std::fmod;\n"
    for i, by in enumerate(operators):
        made = kiln.op(by)
        program += f"namespace of{i} {{\n" + (made.text if made.form == "function" else "") + f"auto call({type} a, {type} b) {{ return "
        program += (made.text if made.form == "expression" else f"{made.name}(a, b)") + "; }\n}\n"
    program += f"int main() {{ {type} const all[] = {{{', '.join(map(str, values))}}};\nfor (auto a : all) for (auto b : all) {{\n"
    program += "".join(f'    std::printf("%.17g\\n", double(of{i}::call(a, b)));\n' for i in range(len(operators))) + "}}\n"
    (folder / "all.cpp").write_text(program)
    subprocess.run([compiler, "-std=c++17", "-o", folder / "all", folder / "all.cpp"], check=True)
    return [float(line) for line in subprocess.run([folder / "all"], capture_output=True, text=True, check=True).stdout.split()]


@pytest.mark.parametrize("type, operators", [("long long", OPERATORS + OF_INTEGERS), ("double", OPERATORS)])
def test_they_compute_what_python_does(type: Any, operators: Any, tmp_path: pathlib.Path) -> None:
    values = NUMBERS if type == "long long" else [n + 0.25 for n in NUMBERS]
    seen = results(operators, type, values, tmp_path)
    assert seen == [float(by(a, b)) for a, b in itertools.product(values, values) for by in operators]


def test_decimals_are_divided_as_python_does(tmp_path: pathlib.Path) -> None:
    values = [0.1, 1.0, 6.0, 0.3, -0.1, -7.5, 2.0]
    operators: list[Callable[..., Any]] = [lambda a, b: a // b, lambda a, b: a % b]
    assert results(operators, "double", values, tmp_path) == [by(a, b) for a, b in itertools.product(values, values) for by in operators]


def test_negative_numbers_stay_negative_beside_unsigned_ones(tmp_path: pathlib.Path) -> None:
    values = [5, 200]
    operators: list[Callable[..., Any]] = [lambda a, b: a // -2, lambda a, b: a % -3]
    assert results(operators, "unsigned", values, tmp_path) == [by(a, b) for a, b in itertools.product(values, values) for by in operators]


def test_they_are_values() -> None:
    s = numpy.int32(100)
    cap = kiln.op(lambda total, more, most: min(total + more, most), s=s)
    assert (cap.form, cap.text, cap.state) == ("expression", "(s < (a + b) ? s : (a + b))", s.tobytes())
    assert pickle.loads(pickle.dumps(cap)) == cap == kiln.op(lambda a, b, c: min(a + b, c), s=s)
    positive = kiln.op(lambda a: a > 0)
    assert positive.text == "(a > 0)"
    assert kiln.op(lambda p, q: p.x + q.x).text == "(a.x + b.x)"


def later(a: Any, b: Any) -> Any:
    """A function that does nothing but return."""
    return b if b > a else a


def test_functions_and_specs() -> None:
    assert kiln.op(later).text == "((b > a) ? b : a)"
    assert kiln.spec("reduce", "int32", later) == kiln.spec("reduce", "int32", kiln.op("((b > a) ? b : a)"))


def test_two_on_a_line() -> None:
    one, two = kiln.op(lambda a, b: a + b), kiln.op(lambda a, b: a * b)
    assert (one.text, two.text) == ("(a + b)", "(a * b)")


def test_the_real_compiler_takes_them() -> None:
    needs = [kiln.spec("inclusive_scan", "int32", kiln.op(lambda a, b: (a + b) % 7)), kiln.spec("transform", "float32", kiln.op(lambda a, s: a / s, s=2.0))]
    report = kiln.Plan("lambdas", needs, archs=["sm_90"]).ensure_warm(300)
    assert report, str(report) + "".join(c.log for c in report.cold)


# Each of what a constant, a helper or a choice becomes; few, for each is compiled.
OF_SMALL_FLOATS = [
    kiln.spec("inclusive_scan", "float16", lambda a, b: a % b + a // 3 + abs(a * b - b * 2 + 1) / 7),
    kiln.spec("inclusive_scan", "float16", lambda a, b: max(a, 0) + (a if a > 0 else b) * 0.5 + abs(b)),
    kiln.spec("inclusive_scan", "bfloat16", kiln.op(lambda a, b, s: min(a * 2 + b, s), s=2.5)),
    kiln.spec("select", "bfloat16", lambda a: a > 0),
    kiln.spec("transform", "bfloat16", "float32", pickle.loads(pickle.dumps(kiln.op(lambda a: a % 3)))),
    kiln.spec("merge_sort", "float16", lambda a, b: a * 2 < b * 2),
]


def test_the_real_compiler_takes_them_of_small_floats() -> None:
    report = kiln.Plan("small floats", OF_SMALL_FLOATS, archs=["sm_90"]).ensure_warm(600)
    assert report, str(report) + "".join(c.log for c in report.cold)


def test_records_with_equal_words_are_different_types() -> None:
    small, large = numpy.dtype([("x", "f4"), ("y", "f4")]), numpy.dtype([("x", "f8"), ("y", "f8")])
    needs = [kiln.spec("transform", small, large, kiln.op("{a.x, a.y}")), kiln.spec("merge_sort", small, large, kiln.op(lambda a, b: a.x < b.x)), kiln.spec("transform", small, small, kiln.op("{a.y, a.x}"))]
    report = kiln.Plan("records", needs, archs=["sm_90"]).ensure_warm(300)
    assert report, str(report) + "".join(c.log for c in report.cold)


LIMIT = 3


def around(limit: Any) -> Any:
    return lambda a, b: a + limit


def says_nothing(a: Any, b: Any) -> None:
    """Nothing."""


def two_steps(a: Any, b: Any) -> Any:
    c = a + b
    return c


@pytest.mark.parametrize("by, words", [
    (lambda a, b: a + LIMIT, "'LIMIT' is no parameter: capture a value"),
    (lambda a, b: sum(a, b), r"'sum\(a, b\)': of functions there are min and max"),
    (lambda a, b: [a, b], r"'\[a, b\]' has no meaning in an operator"),
    (lambda a, b: a and b, "'a': 'and' and 'or' join comparisons"),
    (lambda a, b: a is b, "'a is b': numbers are compared with"),
    (lambda a, b: a**b, r"'a \*\* b': powers are to 2 or 3"),
    (lambda a, b: a + 1j, "1j is no number of a GPU's"),
    (lambda a, b, c: a, "an operator has one or two parameters"),
    (lambda a, b=1: a, "an operator has one or two parameters"),
    (lambda *a: 1, "an operator has one or two parameters"),
    (two_steps, "does nothing but return"),
    (says_nothing, "does nothing but return"),
    (around(3), "'limit' is no parameter: capture a value"),
    (min, "has no Python text"),
])
def test_what_cannot_be_one(by: Any, words: Any) -> None:
    with pytest.raises(kiln.InvalidArgument, match=words) as told:
        kiln.op(by)
    if by is not min:
        assert f"test_lambdas.py:{by.__code__.co_firstlineno}" in str(told.value)


def test_text_that_is_nowhere() -> None:
    with pytest.raises(kiln.InvalidArgument, match="nowhere to be read; pass the operator as text"):
        kiln.op(eval("lambda a, b: a + b"))


def test_text_that_is_another_by_now(tmp_path: pathlib.Path, python: Run) -> None:
    """A file edited after it was imported is not believed; nor is a name that means something else."""
    (tmp_path / "mine.py").write_text("f = lambda a, b: a + b\nmin = lambda *_: 7\ng = lambda a, b: min(a, b)\n")
    python("""import kiln, mine, pathlib
assert kiln.op(mine.f).text == "(a + b)"
for edit, f, words in ((True, mine.f, "not this function's: it was edited"), (False, mine.g, "'min' is another function here")):
    if edit: pathlib.Path("mine.py").write_text("f = lambda a, b: a * b\\n"); import linecache; linecache.clearcache()
    try: kiln.op(f)
    except kiln.InvalidArgument as why: assert words in str(why), why
    else: raise AssertionError(words)
""")


class Around:
    def method(self, a: Any) -> Any:
        return a + 1


def test_what_has_no_parameter_is_pythons() -> None:
    assert kiln.op(lambda a: a & (1 << 40)).text == "(a & 1099511627776ll)"
    assert kiln.op(lambda a: a + 100000 * 100000).text == "(a + 10000000000ll)"
    assert kiln.op(lambda a: a * (2 - 5)).text == "(a * (-3))"
    assert kiln.op(lambda a: a + 7 // 2).text == "(a + 3)"
    for by, words in ((lambda a: a + 1 // 0, "division"), (lambda a: a + (1 << 100), "no number of a GPU's"), (lambda a: a - 2**64, "powers|no number")):
        with pytest.raises(kiln.InvalidArgument, match=words):
            kiln.op(by)
    with pytest.raises(kiln.InvalidArgument, match="bound to an object"):
        kiln.op(Around().method)


def test_many_choices_are_no_long_text() -> None:
    many = kiln.op(lambda a, b: min(a, b, a + 1, b + 1, a + 2, b + 2, a + 3, b + 3, a + 4, b + 4, a + 5, b + 5, a + 6, b + 6, a + 7, b + 7, a + 8, b + 8))
    deep = kiln.op(lambda a: abs(abs(abs(abs(abs(abs(abs(abs(a - 1) - 2) - 3) - 4) - 5) - 6) - 7) - 8))
    assert len(many.text) < 3000 and len(deep.text) < 3000


@pytest.mark.parametrize("s, type, words", [
    (numpy.arange(3, dtype="i4"), None, "12 bytes"), (numpy.int32(1), kiln.struct("p", "float x, y;"), "4 bytes"), (numpy.array(1, ">i4"), None, "byte order"),
    (1e50, "float32", "does not fit"), ([1], None, "no number"), ("x", None, "no number")])
def test_captured_values_are_one_item(s: Any, type: Any, words: Any) -> None:
    with pytest.raises(kiln.InvalidArgument, match=words):
        kiln.op("a + b", s=s, type=type)


@pytest.mark.parametrize("dtype, words", [
    ({"names": ["x", "y"], "formats": ["f4", "f4"], "offsets": [4, 0]}, "lies at byte"), ([("x", ">f4"), ("y", "f4")], "byte order"),
    ({"names": ["x", "y"], "formats": ["f4", "f4"], "offsets": [0, 0], "itemsize": 8}, "lies at byte")])
def test_records_are_laid_out_as_c_has_them(dtype: Any, words: Any) -> None:
    with pytest.raises(kiln.InvalidArgument, match=words):
        kiln.spec("reduce", numpy.dtype(dtype), "plus")


def test_equal_numbers_are_not_the_same_number() -> None:
    whole, broken = [kiln.op(by) for by in (lambda a: a * 2, lambda a: a * 2.0)]
    assert (whole.text, broken.text) == ("(a * 2)", "(a * 2.0)")
    zero, below = [kiln.op(by) for by in (lambda a, b: a if a > b else 0.0, lambda a, b: a if a > b else -0.0)]
    assert zero.text != below.text
    one, yes = [kiln.op(by) for by in (lambda a: a + 1, lambda a: a + True)]
    assert one.text != yes.text


def test_the_least_number_has_a_sign() -> None:
    least = kiln.op(lambda a: a > -(2**63))
    assert least.text == "(a > (-9223372036854775807ll - 1))"
    with pytest.raises(kiln.InvalidArgument, match="is no number of a GPU's"):
        kiln.op(lambda a: a > -(2**63) - 1)


def test_another_min_is_seen_each_time() -> None:
    from kiln._types import as_op

    text = "by = lambda a, b: min(a, b)\n"
    import linecache

    linecache.cache["<with min>"] = (len(text), None, text.splitlines(True), "<with min>")
    plain: dict[str, Any] = {}
    own: dict[str, Any] = {"min": max}
    for where in (plain, own):
        exec(compile(text, "<with min>", "exec"), where)
    assert plain["by"].__code__ == own["by"].__code__
    as_op(plain["by"])
    with pytest.raises(kiln.InvalidArgument, match="'min' is another function here"):
        as_op(own["by"])


@pytest.mark.parametrize("given", [None, 5, b"a + b"])
def test_what_is_no_operator_is_told(given: Any) -> None:
    with pytest.raises(TypeError, match="is no operator"):
        kiln.op(given)
