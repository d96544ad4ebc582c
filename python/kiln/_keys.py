# SPDX-License-Identifier: Apache-2.0
"""Numbers of rows and of groups, from columns as pandas, NumPy and Arrow have them."""

from __future__ import annotations

import re
import sys
from typing import Any

from ._arrays import on_device
from ._errors import InvalidArgument


def _column(given: Any) -> Any:
    """Of Arrow's arrays a column of pandas', in which what is missing stays so."""
    if not hasattr(given, "to_pandas") or hasattr(given, "iloc"):
        return given
    if hasattr(given, "type") and not hasattr(given.type, "index_type"):  # of pyarrow, and no categories
        import pandas

        return given.to_pandas(types_mapper=pandas.ArrowDtype)
    return given.to_pandas()


def numbers(who: str, what: str, given: Any, keys: int | None) -> Any:
    """As int32, where they are integers on the host. What is no key, of `keys` of them, is -1, which counts as none."""
    import numpy

    if keys is not None and not hasattr(keys, "__index__"):
        raise TypeError(f"{who}: keys is a {type(keys).__name__}; it must be int")
    given = _column(given)
    if isinstance(given, (list, tuple, range)):
        given = numpy.asarray(given) if len(given) else numpy.zeros(0, numpy.int32)
    if hasattr(given, "to_numpy") and not hasattr(given, "__dlpack__"):  # of pandas, and others like it
        if re.match(r"u?int\d+", str(given.dtype).lower()) is None:
            raise InvalidArgument(f"{who}: {what} is a {type(given).__name__} of {given.dtype}; it must be of int32 or other integers{_REMEDIES.get(who, '')}")
        there = ~numpy.asarray(given.isna())
        if keys is None and not there.all():
            raise InvalidArgument(f"{who}: {what} has missing values: fill or drop them first, {what}.dropna()")
        out = numpy.full(len(given), -1, numpy.int32)
        out[there] = numbers(who, what, numpy.asarray(given[there].to_numpy()), keys)
        return out
    if not isinstance(given, numpy.ndarray) or isinstance(given, numpy.ma.MaskedArray):
        return given
    if given.ndim != 1:
        raise InvalidArgument(f"{who}: {what} has {given.ndim} dimensions; pass one, {what}.ravel()")
    if given.dtype.kind not in "iu":
        raise InvalidArgument(f"{who}: {what} is of {given.dtype}; it must be of int32 or other integers{_REMEDIES.get(who, '')}")
    if given.dtype == numpy.int32 and given.dtype.isnative:
        return numpy.ascontiguousarray(given)
    other = (given < 0) | (given > numpy.iinfo(numpy.int32).max)
    if keys is None and other.any():
        raise InvalidArgument(f"{who}: {what} has {given[other][0]}, which is no row's number")
    out = given.astype(numpy.int32)
    out[other] = -1
    return out


_REMEDIES = {"dissolve": ": leave keys= out, and the values that occur are numbered", "bounds_by_key": ": number them, as numpy.unique(key, return_inverse=True)[1] does"}


def numbered(key: Any, rows: int) -> tuple[Any, Any]:
    """A number for each row, -1 for those without a value, and the values, in order."""
    import numpy

    if isinstance(key, (str, bytes)):
        raise TypeError(f"dissolve: key is {key!r}; it is a value per row: pass the column, frame[{key!r}]")
    if on_device(key):
        raise InvalidArgument("dissolve: key is on a device, where values are not numbered: pass int32 and keys=, or bring it to the host")
    if isinstance(key, numpy.ma.MaskedArray):
        raise InvalidArgument("dissolve: key is a masked array, and its mask would be lost: pass key.filled(value) or key.compressed()")
    key = _column(key)
    if hasattr(key, "columns") and hasattr(key, "iloc"):
        raise TypeError(f"dissolve: key is a {type(key).__name__}; it is one value per row: pass one column, or several as one, frame.groupby([...]).ngroup()")
    key = getattr(key, "array", key) if hasattr(key, "iloc") or hasattr(key, "to_series") else key  # a Series, an Index
    if isinstance(key, dict) or callable(key) or not hasattr(key, "__iter__"):
        raise TypeError(f"dissolve: key is a {type(key).__name__}; it is a value per row: a list, an array or a column")
    if hasattr(key, "__dlpack__") and not isinstance(key, numpy.ndarray) and not hasattr(key, "isna"):  # of another library, on the host
        key = numpy.asarray(key) if hasattr(key, "__array__") else numpy.from_dlpack(key)
    key = key if hasattr(key, "dtype") else _objects(key)
    if type(key).__name__ in ("NumpyExtensionArray", "PandasArray"):  # of which pandas would not sort the values
        key = key.to_numpy()
    if getattr(key, "ndim", 1) != 1 or len(key) != rows:
        raise InvalidArgument(f"dissolve: key has shape {list(key.shape if hasattr(key, 'shape') else [len(key)])} and there are {rows} rows: it is one value per row")
    if hasattr(key, "categories") and hasattr(key, "codes"):
        return numpy.ascontiguousarray(key.codes, dtype=numpy.int32), key.categories
    is_missing = numpy.asarray(key.isna()) if hasattr(key, "isna") else _not_there(key)
    there = key[~is_missing]
    number = numpy.full(rows, -1, numpy.int32)
    try:
        if hasattr(there, "factorize"):
            import pandas

            codes, values = pandas.factorize(there, sort=True)
        else:
            values, codes = numpy.unique(there, return_inverse=True)
    except TypeError as why:
        raise TypeError(f"dissolve: key has values that cannot be sorted together: {why}") from None
    number[~is_missing] = codes
    return number, values


def flags(who: str, what: str, given: Any) -> Any:
    """As bools, where they are those of a list or a column."""
    import numpy

    given = _column(given)
    if isinstance(given, (list, tuple)):
        given = numpy.asarray(given) if len(given) else numpy.zeros(0, bool)
    elif hasattr(given, "to_numpy") and not hasattr(given, "__dlpack__"):
        if given.isna().any():
            raise InvalidArgument(f"{who}: {what} has missing values: {what}.fillna(False) leaves those rows out")
        given = given.to_numpy(dtype=bool) if str(given.dtype).startswith("bool") else given.to_numpy()
    if isinstance(given, numpy.ndarray) and (given.dtype.kind not in "biu" or given.dtype.itemsize != 1):
        raise InvalidArgument(f"{who}: {what} is of {given.dtype}; it must be of bool or uint8: pass {what} != 0, or numbers of rows to spatial.gather")
    return given


def _objects(given: Any) -> Any:
    """A list as an array of what it holds, whatever that is."""
    import numpy

    held = list(given)
    out = numpy.empty(len(held), dtype=object)
    out[:] = held
    return out


def _not_there(key: Any) -> Any:
    import numpy

    if key.dtype.kind in "fc":
        return numpy.isnan(key)
    if key.dtype.kind in "mM":
        return numpy.isnat(key)
    if key.dtype.kind != "O":
        return numpy.zeros(len(key), bool)
    pandas = sys.modules.get("pandas")  # which has a value of its own for what is not there
    return pandas.isna(key) if pandas is not None else numpy.array([one is None or one != one for one in key], dtype=bool)
