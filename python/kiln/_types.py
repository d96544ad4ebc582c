# SPDX-License-Identifier: Apache-2.0
"""What primitives are specialised with: types of items and operators. Plain values: immutable, hashable, picklable."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING, Any, Union

from . import _kiln

if TYPE_CHECKING:
    from ._errors import InvalidArgument

_SIZES = {
    "int8": 1, "uint8": 1, "bool": 1, "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "uint32": 4, "float32": 4,
    "int64": 8, "uint64": 8, "float64": 8,
}
_SMALL_FLOATS = ("float16", "bfloat16")  # classes in device text
_C_TYPES = {
    "char": ("int8", 1), "signed char": ("int8", 1), "unsigned char": ("uint8", 1), "bool": ("bool", 1), "short": ("int16", 2),
    "unsigned short": ("uint16", 2), "int": ("int32", 4), "unsigned": ("uint32", 4), "unsigned int": ("uint32", 4),
    "float": ("float32", 4), "double": ("float64", 8), "long long": ("int64", 8), "unsigned long long": ("uint64", 8),
}

_TAKEN = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl concept const consteval constexpr constinit const_cast continue "
    "co_await co_return co_yield decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace new "
    "noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct "
    "switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq".split())  # by C++


def wrong(why: str) -> InvalidArgument:
    """An argument that cannot be; to be raised. The exceptions are read here, when one is needed: what goes well does not wait for them."""
    from ._errors import InvalidArgument

    return InvalidArgument(why)


def without_gpu(primitive: str, why: str, need: str) -> str:
    """What to say, and to do, where something can be done on a GPU alone and there is none."""
    by = {"select": " and a mask", "gather": "", "radix_sort": ""}.get(primitive, " and a built-in operator")
    instead = "compute it with NumPy" if primitive == "transform" else f"kiln.{primitive} with NumPy's arrays{by} runs on the CPU (execution mode auto or cpu)"
    return f"{primitive}: {need}, and there is none here ({why}); {instead}"


class _Value:
    """Made of its fields, and equal, hashed, shown and pickled by them. dataclasses would do the same, and take as long to read as all
    else that a first call reads."""

    __slots__: tuple[str, ...] = ()
    _fields: tuple[str, ...] = ()

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed; make another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed; make another one")

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Value) and type(other) is type(self) and self._values() == other._values())

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._fields)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._values()


class Struct(_Value):
    """A struct of at most 32 bytes, as device text: `kiln.struct("point", "float x, y;")`."""

    __slots__ = _fields = ("name", "fields", "size", "align")
    name: str
    fields: str
    size: int
    align: int

    def __init__(self, name: str, fields: str, size: int = 0, align: int = 0) -> None:
        self._set(name=name, fields=fields, size=size, align=align)

    @property
    def definition(self) -> str:
        return f"struct {self.name} {{ {self.fields} }};"


def _is_word(name: str) -> bool:
    return name.isidentifier() and name not in _TAKEN


def struct(name: str, fields: str) -> Struct:
    """A struct type for primitives, laid out as C does it.

    `fields`: declarations of plain numbers, and arrays of them; 32 bytes at most.

    >>> kiln.struct("point", "float x, y;").size
    8
    """
    if not isinstance(name, str) or not isinstance(fields, str):
        raise TypeError(f"struct: name is a {typed(name)} and fields are a {typed(fields)}; both must be str")
    if not _is_word(name):
        raise wrong(f"struct '{name}': its name is no word that C++ would take")
    offset, align = 0, 1
    seen: set[str] = set()
    for declaration in filter(None, (part.strip() for part in fields.split(";"))):
        found = re.fullmatch(r"((?:unsigned |signed |long )*\w+)\s+([\w\s,\[\]]+)", declaration)
        if not found or found[1].strip() not in _C_TYPES:
            known = ", ".join(sorted(_C_TYPES))
            raise wrong(f"struct '{name}': cannot read '{declaration}'; fields are declared as 'float x, y' with one of: {known}")
        size = _C_TYPES[found[1].strip()][1]
        for member in found[2].split(","):
            count = re.fullmatch(r"\s*\w+\s*(?:\[\s*(\d+)\s*\])?\s*", member)
            if not count:
                raise wrong(f"struct '{name}': cannot read '{member.strip()}'")
            word = member.partition("[")[0].strip()
            if not _is_word(word):
                raise wrong(f"struct '{name}': its field's name '{word}' is no word that C++ would take")
            if word in seen:
                raise wrong(f"struct '{name}': it has two fields '{word}'")
            seen.add(word)
            align = max(align, size)
            offset = -(-offset // size) * size + size * int(count[1] or 1)
    size = -(-offset // align) * align
    if not 0 < size <= 32:
        raise wrong(f"struct '{name}' has {size} bytes; an item has between 1 and 32")
    return Struct(name, fields, size, align)


def several(what: str, given: Any) -> list[Any]:
    """A text where a list belongs is a slip: it would be taken letter by letter."""
    if isinstance(given, (str, bytes)):
        raise wrong(f"{what}: a list belongs here; write [{given!r}]")
    return list(given)


def texts(what: str, given: Any) -> list[str]:
    for i, one in enumerate(out := several(what, given)):
        if not isinstance(one, str):
            raise TypeError(f"{what}[{i}] is a {type(one).__name__}; it must be a str")
    return out


ItemType = Union[str, Struct, Any]


def type_name(given: ItemType) -> str | Struct:
    """'int32' of "int32", numpy.int32, numpy.dtype('int32') or torch.int32."""
    if isinstance(given, Struct) or (isinstance(given, str) and given in _SIZES):
        return given
    fields = getattr(given, "fields", None)
    if fields and getattr(given, "itemsize", None):
        return _struct_of(given)
    if getattr(given, "isnative", True) is False:
        from ._errors import Unsupported

        raise Unsupported(f"items of {given!r} are in the other byte order: convert them with astype()")
    text = given if isinstance(given, str) else getattr(given, "name", None) or getattr(given, "__name__", None) or str(given)
    text = text.rpartition(".")[2]
    return {"float": "float64", "int": "int64", "half": "float16", "bool_": "bool"}.get(text, text)


def _struct_of(dtype: Any) -> Struct:
    """A structured type of NumPy's, laid out as C does it: numpy.dtype([("x", "f4"), ("y", "f4")], align=True)."""
    letters = {name: letter for letter, (name, _) in reversed(_C_TYPES.items())}
    members: list[str] = []
    end = 0
    for name in dtype.names:
        what, at = dtype.fields[name][:2]
        if not what.isnative:
            raise wrong(f"field '{name}' of {dtype} is in the other byte order: convert it with astype()")
        field = type_name(what)
        if isinstance(field, Struct) or field not in letters:
            raise wrong(f"field '{name}' of {dtype} is a {field}; fields are plain numbers")
        size = _SIZES[field]
        end = -(-end // size) * size
        if at != end:
            raise wrong(f"field '{name}' of {dtype} lies at byte {at}, in a C struct at {end}: make it with align=True, in the order of its fields")
        end += size
        members.append(f"{letters[field]} {name};")
    # Two records of a call may have the same fields of other types.
    kinds = "".join(dtype.fields[name][0].str[1:] for name in dtype.names)
    out = struct(f"record_{kinds}_" + "_".join(f"{len(name)}{name}" for name in dtype.names), " ".join(members))
    if out.size != dtype.itemsize:
        raise wrong(f"{dtype} has {dtype.itemsize} bytes, as a C struct it has {out.size}: make it with align=True")
    return out


def element(given: ItemType | None) -> _kiln.ElementType:
    if given is None:
        return _kiln.ElementType.none()
    name = type_name(given)
    if isinstance(name, Struct):
        return _kiln.ElementType.record(name.name, name.definition, name.size, name.align)
    return _kiln.ElementType.scalar(name)


_MEANT = ("add", "sum", "minimum", "maximum", "times", "mul", "prod", "product", "and", "or", "xor", "bitwise_and", "bitwise_or", "bitwise_xor")  # NumPy's, and others'
BUILTIN = ("plus", "multiply", "min", "max", "bit_and", "bit_or", "bit_xor", "less", "greater", "equal")


class Op(_Value):
    """An operator: text that is compiled when a handle is made, or a built-in one."""

    _fields = ("form", "text", "name", "image", "state", "state_type")
    __slots__ = (*_fields, "parameters", "_made", "_hash")
    form: str
    text: str
    name: str
    image: bytes
    state: bytes
    state_type: str | Struct | None
    parameters: str  # of one written in Python, a letter each; the same text means the same from elsewhere
    _made: dict[bool, _kiln.Operator]
    _hash: int

    def __init__(self, form: str, text: str, name: str = "", image: bytes = b"", state: bytes = b"", state_type: str | Struct | None = None, parameters: str = "") -> None:
        self._set(form=form, text=text, name=name, image=image, state=state, state_type=state_type, parameters=parameters, _made={},
                  _hash=hash((form, text, name, image, state, state_type)))

    def __hash__(self) -> int:
        return self._hash  # every call asks for it

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self._values(), self.parameters)

    def made(self, *types: str | Struct | None) -> _kiln.Operator:
        """For items of these types."""
        by_float = bool(self.parameters) and any(type in _SMALL_FLOATS for type in (*types, self.state_type))
        if by_float not in self._made:
            if by_float:
                from ._lambdas import of_small_floats

                out = _kiln.Operator.function(*of_small_floats(self.name, self.text, self.parameters))
            elif self.form == "builtin":
                out = _kiln.Operator.builtin(self.name)
            elif self.form == "expression":
                out = _kiln.Operator.expression(self.text)
            elif self.form == "function":
                out = _kiln.Operator.function(self.name, self.text)
            else:
                out = _kiln.Operator.ltoir(self.name, self.image)
            if self.state_type is not None:
                out = out.with_bytes(element(self.state_type), self.state)
            self._made[by_float] = out
        return self._made[by_float]


def typed(x: object) -> str:
    return type(x).__name__


class _OpMaker:
    """`kiln.op("a + b > s ? s : a + b", s=numpy.int32(100))`: of `a` and `b`, and of `s` where a value is captured. Or as a lambda,
    `kiln.op(lambda a, b, s: min(a + b, s), s=numpy.int32(100))`: arithmetic, comparisons, `x if c else y`, min, max, abs."""

    def __call__(self, text: str | Callable[..., Any], *, s: Any = None, type: ItemType | None = None) -> Op:
        state, state_type = captured(s, type)
        if callable(text):
            return _of_python(text, state, state_type)
        if not isinstance(text, str):
            raise TypeError(f"op: a {typed(text)} is no operator; it must be text of a and b, or a lambda")
        if not text.strip():
            raise wrong("op: there is no operator in an empty text: write kiln.op('a + b')")
        return Op("expression", text, state=state, state_type=state_type)

    @staticmethod
    def function(name: str, text: str, *, s: Any = None, type: ItemType | None = None) -> Op:
        """Device text that defines the function `name`, called with (a, b) or (a, b, s)."""
        state, state_type = captured(s, type)
        return Op("function", text, name, state=state, state_type=state_type)

    @staticmethod
    def ltoir(symbol: str, image: bytes, *, s: Any = None, type: ItemType | None = None) -> Op:
        """LTO-IR with an extern "C" __device__ function `symbol`."""
        state, state_type = captured(s, type)
        return Op("ltoir", "", symbol, bytes(image), state, state_type)


op = _OpMaker()


def _of_python(function: Callable[..., Any], state: bytes, state_type: str | Struct | None) -> Op:
    from ._lambdas import device_text

    name, text, parameters = device_text(function, captured=state_type is not None)
    return Op("function" if name else "expression", text, name, state=state, state_type=state_type, parameters=parameters)


def captured(value: Any, type: ItemType | None) -> tuple[bytes, str | Struct | None]:
    if value is None:
        return b"", None
    if isinstance(value, (bool, int, float)):
        import struct as packing

        name = type_name(type) if type is not None else ("float64" if isinstance(value, float) else "int64")
        letters = {"int8": "b", "uint8": "B", "bool": "?", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q",
                   "uint64": "Q", "float16": "e", "float32": "f", "float64": "d"}
        if isinstance(name, Struct) or name not in letters:
            raise wrong(f"a captured {value!r} cannot be a {name}")
        try:
            return packing.pack("<" + letters[name], value), name
        except (packing.error, OverflowError) as why:
            raise wrong(f"a captured {value!r} does not fit into {name}: {why}") from None
    dtype = getattr(value, "dtype", None)
    try:
        data = bytes(memoryview(value))
    except TypeError:
        raise wrong(f"a captured {value!r} is no number and no bytes; pass a number or a NumPy scalar") from None
    if dtype is not None and not getattr(dtype, "isnative", True):
        raise wrong(f"a captured {value!r} is in the other byte order: convert it with astype()")
    found = type_name(type) if type is not None else type_name(dtype)
    if not isinstance(found, Struct) and found not in _SIZES:
        raise wrong(f"a captured value of type {found} is not known; pass type=, or a NumPy scalar")
    size = found.size if isinstance(found, Struct) else _SIZES[found]
    if len(data) != size:
        raise wrong(f"a captured value of {len(data)} bytes, and a {found.name if isinstance(found, Struct) else found} has {size}: it is one item")
    return data, found


Operator = Union[Op, str, Callable[..., Any]]
_BUILTIN_OPS: dict[str, Op] = {}  # those that were named
_FROM_CODE: dict[CodeType, Op] = {}  # functions that were given as operators: their text is read once


def as_op(given: Operator) -> Op:
    if isinstance(given, Op):
        return given
    if isinstance(given, str):
        if given not in BUILTIN:
            if given.strip().lower() in _MEANT or given.strip().lower() in BUILTIN:
                raise wrong(f"there is no operator '{given}'; there are {', '.join(BUILTIN)}, or text of a and b")
            return Op("expression", given)
        return _BUILTIN_OPS.get(given) or _BUILTIN_OPS.setdefault(given, Op("builtin", "", given))
    code: Any = getattr(given, "__code__", None)
    known = _FROM_CODE.get(code) if code is not None else None
    # Equal code means something else beside another min, max or abs.
    if known is None or any(name in code.co_names and name in given.__globals__ for name in ("min", "max", "abs")):
        known = _of_python(given, b"", None)
        _FROM_CODE[given.__code__] = known
    return known
