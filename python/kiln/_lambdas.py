# SPDX-License-Identifier: Apache-2.0
"""Operators written in Python: the text of a lambda as device text, from its syntax tree. Nothing is run and nothing else is read: what
has no meaning for one item of an array is an error that names its line."""

from __future__ import annotations

import ast
import builtins
import linecache
import operator
from collections.abc import Callable
from types import CodeType
from typing import Any, Union

from ._errors import InvalidArgument

_Function = Union[ast.Lambda, ast.FunctionDef]

_PLAIN: dict[type[Any], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "!",
    ast.And: "&&", ast.Or: "||",
}
# C++ rounds quotients of integers towards zero; Python gives a float, or rounds down.
_HELPERS: dict[type[Any], tuple[str, str, str]] = {
    ast.Div: ("quotient", "return double(x) / double(y);", "return x / y;"),
    ast.FloorDiv: ("floored", "auto q = x / y; return x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;", "if (y == 0) return x / y; auto r = fmod(x, y); auto q = (x - r) / y; if (r != 0 && (r < 0) != (y < 0)) q -= 1; auto f = floor(q);"
                   " return q - f > 0.5f ? f + 1 : f;"),
    ast.Mod: ("modulo", "auto r = x % y; return r != 0 && (r < 0) != (y < 0) ? r + y : r;",
              "auto r = fmod(x, y); return r != 0 && (r < 0) != (y < 0) ? r + y : r;"),
}
_CHOICES = {"min": ("least", "return y < x ? y : x;"), "max": ("greatest", "return x < y ? y : x;")}  # the first stays, as Python has it
_SHORT = 24  # characters: what is longer is written once, in a function
_INTEGERS = ("bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned", "long", "unsigned long", "long long",
             "unsigned long long")
_NAME = "from_python"
_NUMBER = ("namespace python {\ninline __device__ float number(__half x) { return __half2float(x); }\ninline __device__ float number(__nv_bfloat16 x) { return __bfloat162float(x); }\n"
           "template <class T> __device__ T number(T x) { return x; }\n}\n")
_ONLY_NUMBERS = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
_ARITHMETIC: dict[type[Any], Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}
_SIGNS: dict[type[Any], Any] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_}
_WHOLE = ("template <class T> struct whole { static constexpr bool yes = false; };\n"
          + "".join(f"template <> struct whole<{t}> {{ static constexpr bool yes = true; }};\n" for t in _INTEGERS))


def device_text(function: Callable[..., Any], *, captured: bool) -> tuple[str, str, str]:
    """(name, text) of a device function, or ("", expression): of `a`, of `a` and `b`, and of `s` as the last where a value is captured. And
    the parameters' letters."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        raise InvalidArgument(f"op: {function!r} has no Python text: pass a lambda, or the operator as text, kiln.op('a + b')")
    if getattr(function, "__self__", None) is not None:
        raise InvalidArgument(f"op: {function!r} is bound to an object, and an operator knows none: pass a function of the items alone")
    for name in {"min", "max", "abs"} & set(code.co_names):
        if getattr(function, "__globals__", {}).get(name, getattr(builtins, name)) is not getattr(builtins, name):
            raise InvalidArgument(f"{_place(code, code.co_firstlineno)}: '{name}' is another function here than Python's own")
    return _Translation(code, _find(code), captured).text()


def _function(expression: str, letters: str) -> str:
    types = ", ".join(f"class {p.upper()}" for p in letters)
    parameters = ", ".join(f"{p.upper()} {p}" for p in letters)
    return f"template <{types}> __device__ auto {_NAME}({parameters}) {{ return {expression}; }}\n"


def of_small_floats(name: str, text: str, letters: str) -> tuple[str, str]:
    """(name, text) of the same for float16 and bfloat16. To C++ these are classes that become any number, so that beside a constant it cannot
    choose: they are computed with as float, and the result is rounded once."""
    return "of_small_floats", _NUMBER + (text if name else _function(text, letters)) + (
        f"template <class... T> __device__ auto of_small_floats(T... x) {{ return {_NAME}(python::number(x)...); }}\n")


def _place(code: CodeType, line: int) -> str:
    return f"{code.co_filename}:{line}"


def _find(code: CodeType) -> _Function:
    """The one whose code this is: of a file that was edited since, and of several on a line, the others are not."""
    place = _place(code, code.co_firstlineno)
    if code.co_freevars:
        raise InvalidArgument(f"{place}: {_no_parameter(code.co_freevars[0])}")
    lines = linecache.getlines(code.co_filename)
    if not lines:
        raise InvalidArgument(f"{place}: the text of this function is nowhere to be read; pass the operator as text, kiln.op('a + b')")
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError as why:
        raise InvalidArgument(f"{_place(code, why.lineno or 0)}: the text of this function cannot be read: {why.msg}") from None
    for node in ast.walk(tree):
        if isinstance(node, (ast.Lambda, ast.FunctionDef)) and node.lineno == code.co_firstlineno and _program(_compiled(node)) == _program(code):
            return node
    raise InvalidArgument(f"{place}: the text on this line is not this function's: it was edited since, or has a decorator; pass the operator as text, kiln.op('a + b')")


def _compiled(node: _Function) -> CodeType:
    around = compile(ast.Expression(node), "operator", "eval") if isinstance(node, ast.Lambda) else compile(ast.Module([node], []), "operator", "exec")
    return next(part for part in around.co_consts if isinstance(part, CodeType))


def _program(code: CodeType) -> tuple[Any, ...]:
    return code.co_code, tuple(map(_exactly, code.co_consts)), code.co_names, code.co_varnames


def _exactly(constant: Any) -> Any:
    """2, 2.0 and True are equal, as are 0.0 and -0.0, and mean something else."""
    if isinstance(constant, CodeType):
        return _program(constant)
    return (type(constant), [_exactly(c) for c in constant]) if isinstance(constant, tuple) else (type(constant), repr(constant))


def _no_parameter(name: str) -> str:
    return f"'{name}' is no parameter: capture a value with kiln.op(lambda a, b, s: ..., s=value)"


class _Translation:
    def __init__(self, code: CodeType, function: _Function, captured: bool) -> None:
        self._code = code
        self._function = function
        self._helpers: dict[str, str] = {}
        given = function.args
        names = [a.arg for a in given.args]
        last = [names.pop()] if captured and names else []
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults or not 1 <= len(names) <= 2:
            raise self._no(function, "an operator has one or two parameters" + (" and, as the last, the captured one" if captured else ""))
        self._names = {**dict(zip(names, "ab")), **dict.fromkeys(last, "s")}
        self._parameters = "ab"[: len(names)] + ("s" if captured else "")

    def text(self) -> tuple[str, str, str]:
        expression = self._of(self._body())
        if not self._helpers:
            return "", expression, self._parameters
        helpers = "namespace python {\n" + _WHOLE + "".join(self._helpers.values()) + "}\n"
        return _NAME, helpers + _function(expression, self._parameters), self._parameters

    def _body(self) -> ast.expr:
        if isinstance(self._function, ast.Lambda):
            return self._function.body
        steps = [step for step in self._function.body if not (isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant))]  # its docstring
        last = steps[-1] if steps else None
        if len(steps) != 1 or not isinstance(last, ast.Return) or last.value is None:
            raise self._no(self._function, "an operator is a lambda, or a function that does nothing but return an expression")
        return last.value

    def _no(self, node: Any, why: str) -> InvalidArgument:
        return InvalidArgument(f"{_place(self._code, node.lineno)}: {why}")

    def _of(self, node: ast.expr) -> str:
        if isinstance(node, (ast.BinOp, ast.UnaryOp)) and all(isinstance(part, _ONLY_NUMBERS) for part in ast.walk(node)):
            return self._of_number(node, self._worked_out(node))
        method = getattr(self, "_of_" + type(node).__name__, None)
        if method is None:
            raise self._no(node, f"'{ast.unparse(node)}' has no meaning in an operator; there are arithmetic, comparisons, 'x if c else y', min, max and abs")
        return str(method(node))

    def _of_Name(self, node: ast.Name) -> str:
        if node.id not in self._names:
            raise self._no(node, _no_parameter(node.id))
        return self._names[node.id]

    def _of_Attribute(self, node: ast.Attribute) -> str:
        return f"{self._of(node.value)}.{node.attr}"  # a field of a struct

    def _worked_out(self, node: ast.expr) -> Any:
        """What has no parameter is what Python says: a GPU's integers would overflow on the way."""
        if isinstance(node, ast.Constant):
            return node.value
        try:
            if isinstance(node, ast.UnaryOp):
                return _SIGNS[type(node.op)](self._worked_out(node.operand))
            assert isinstance(node, ast.BinOp)
            left, right = self._worked_out(node.left), self._worked_out(node.right)
            if isinstance(node.op, (ast.LShift, ast.Pow)) and not 0 <= right < 64:
                raise self._no(node, f"'{ast.unparse(node)}' is no number of a GPU's")
            return _ARITHMETIC[type(node.op)](left, right)
        except (ArithmeticError, TypeError, ValueError, KeyError) as why:
            raise self._no(node, f"'{ast.unparse(node)}': {why}") from None

    def _of_Constant(self, node: ast.Constant) -> str:
        return self._of_number(node, node.value)

    def _of_number(self, node: ast.expr, value: Any) -> str:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0:
            if isinstance(value, int) and value <= -(1 << 63):  # its magnitude is a number without a sign
                if value < -(1 << 63):
                    raise self._no(node, f"'{ast.unparse(node)}' is no number of a GPU's")
                return f"(-{(1 << 63) - 1}ll - 1)"
            return f"(-{self._of_number(node, -value)})"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int) and value < 1 << 64:
            return str(value) + ("" if value < 1 << 31 else "ll" if value < 1 << 63 else "ull")
        if isinstance(value, float) and value < float("inf"):
            return repr(value)
        raise self._no(node, f"{value!r} is no number of a GPU's")

    def _of_UnaryOp(self, node: ast.UnaryOp) -> str:
        return f"({_PLAIN[type(node.op)]}{self._of(node.operand)})"

    def _of_BinOp(self, node: ast.BinOp) -> str:
        left, right = self._of(node.left), self._of(node.right)
        if type(node.op) in _PLAIN:
            return f"({left} {_PLAIN[type(node.op)]} {right})"
        if type(node.op) in _HELPERS:
            name, of_integers, of_others = _HELPERS[type(node.op)]
            # An int that meets an unsigned would become one.
            self._helpers[name] = (f"template <class A, class B> __device__ auto {name}(A x, B y) {{\n"
                                   f"    if constexpr (!whole<A>::yes || !whole<B>::yes) {{ {of_others} }}\n"
                                   f"    else if constexpr ((A(-1) < A(0)) != (B(-1) < B(0)) && sizeof(A) < 8 && sizeof(B) < 8) return {name}((long long)(x), (long long)(y));\n"
                                   f"    else {{ {of_integers} }}\n}}\n")
            return f"python::{name}({left}, {right})"
        if isinstance(node.op, ast.Pow) and right in ("2", "3"):
            return "(" + " * ".join([left] * int(right)) + ")"
        raise self._no(node, f"'{ast.unparse(node)}': powers are to 2 or 3, and of operators there are + - * / // % & | ^ << >>")

    def _of_Compare(self, node: ast.Compare) -> str:
        terms = [self._of(term) for term in (node.left, *node.comparators)]
        if any(type(how) not in _PLAIN for how in node.ops):
            raise self._no(node, f"'{ast.unparse(node)}': numbers are compared with < <= > >= == !=")
        pairs = [f"({x} {_PLAIN[type(how)]} {y})" for how, x, y in zip(node.ops, terms, terms[1:])]
        return pairs[0] if len(pairs) == 1 else "(" + " && ".join(pairs) + ")"

    def _of_BoolOp(self, node: ast.BoolOp) -> str:
        for value in node.values:
            if not isinstance(value, (ast.Compare, ast.BoolOp)) and not (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)):
                raise self._no(value, f"'{ast.unparse(value)}': 'and' and 'or' join comparisons; write 'x if c else y' to choose a number")
        return "(" + f" {_PLAIN[type(node.op)]} ".join(map(self._of, node.values)) + ")"

    def _of_IfExp(self, node: ast.IfExp) -> str:
        return f"({self._of(node.test)} ? {self._of(node.body)} : {self._of(node.orelse)})"

    def _of_Call(self, node: ast.Call) -> str:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        given = [self._of(argument) for argument in node.args]
        if node.keywords or name not in ("min", "max", "abs") or (len(given) != 1 if name == "abs" else len(given) < 2):
            raise self._no(node, f"'{ast.unparse(node)}': of functions there are min and max of two or more, and abs")
        if name == "abs":
            if len(given[0]) <= _SHORT:
                return f"({given[0]} < 0 ? -{given[0]} : {given[0]})"
            self._helpers["magnitude"] = "template <class A> __device__ auto magnitude(A x) { return x < 0 ? -x : x; }\n"
            return f"python::magnitude({given[0]})"
        out = given[0]
        for next in given[1:]:  # as Python does it: the first stays unless a later one is less
            if len(out) + len(next) <= _SHORT:
                out = f"({next} {'<' if name == 'min' else '>'} {out} ? {next} : {out})"
                continue
            called, does = _CHOICES[name]
            self._helpers[called] = f"template <class A, class B> __device__ auto {called}(A x, B y) {{ {does} }}\n"
            out = f"python::{called}({out}, {next})"
        return out
