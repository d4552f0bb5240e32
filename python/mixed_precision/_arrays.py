# SPDX-License-Identifier: MIT
"""Formats and their dtypes; arguments as arrays that the module takes."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any, Sequence

import ml_dtypes
import numpy as np

from . import _core

_NUMPY = {"half": np.float16, "float": np.float32, "double": np.float64, "tfloat32": np.float32}


@dataclasses.dataclass(frozen=True)
class Format:
    """A number format. Arrays of it have the dtype; tfloat32 are the float32 whose last 13 bits are zero."""

    name: str
    bits: int
    dtype: np.dtype
    signed: bool
    has_infinity: bool
    has_nan: bool
    largest: float
    smallest_normal: float
    smallest_subnormal: float
    epsilon: float


def _formats() -> dict[str, Format]:
    result = {}
    for name, bits, size, *rest in _core.formats():
        dtype = np.dtype(_NUMPY.get(name) or getattr(ml_dtypes, name))
        assert dtype.itemsize == size, name
        result[name] = Format(name, bits, dtype, *rest)
    return result


#: All formats, by name.
FORMATS: dict[str, Format] = _formats()
_BY_DTYPE = {f.dtype: f for f in FORMATS.values() if f.name != "tfloat32"}


def format_of(value: Any, argument: str = "format") -> Format:
    """The format that a name or a dtype means."""
    if isinstance(value, Format):
        return value
    if isinstance(value, str) and value in FORMATS:
        return FORMATS[value]
    try:
        return _BY_DTYPE[np.dtype(value)]
    except (TypeError, KeyError):
        shown = repr(value) if isinstance(value, str) else value
        raise ValueError(f"{argument} is {shown}; it must be one of {', '.join(FORMATS)}, or a dtype of them") from None


def choice(argument: str, value: Any, names: Sequence[str]) -> int:
    """The place of a name among those that there are."""
    if value in names:
        return names.index(value)
    raise ValueError(f"{argument} is {value!r}; it must be one of {', '.join(names)}")


def integer(argument: str, value: Any, least: int, most: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{argument} is {value!r}; it must be an integer") from None
    if not least <= number <= most:
        raise ValueError(f"{argument} is {number}; it must be from {least} to {most}")
    return number


def threads_of(value: Any) -> int:
    return integer("threads", value, 1, 1024)


def contiguous(x: np.ndarray) -> np.ndarray:
    """As np.ascontiguousarray, which makes one dimension of none."""
    return x if x.flags.c_contiguous else x.copy(order="C")


def codes_of(x: np.ndarray) -> np.ndarray:
    """The same memory as unsigned integers, for types that the module does not know."""
    return contiguous(x).view(np.dtype(f"u{x.dtype.itemsize}"))


def widened(x: np.ndarray, format: Format, threads: int = 1) -> np.ndarray:
    """The values as float32."""
    result = np.empty(x.shape, np.float32)
    _core.to_float(format.name, codes_of(x), result, threads)
    return result


def floats_of(x: Any, argument: str = "x", threads: int = 1) -> np.ndarray:
    """Any real numbers as a contiguous array of float32 or float64, exactly."""
    array = np.asarray(x)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype in (np.float32, np.float64):
        return contiguous(array)
    if array.dtype in _BY_DTYPE:
        return widened(array, _BY_DTYPE[array.dtype], threads)
    if array.dtype.kind in "biu":
        if array.size and array.dtype.itemsize == 8:
            if int(array.max()) > 2**53 or int(array.min()) < -(2**53):
                raise ValueError(f"{argument} has integers beyond 2**53, which float64 does not hold")
        return contiguous(array.astype(np.float64))
    raise TypeError(f"{argument} is an array of {array.dtype}; it must be of real numbers of up to 64 bits")


def matrix_of(x: np.ndarray, argument: str) -> np.ndarray:
    if x.ndim != 2:
        raise ValueError(f"{argument} has {x.ndim} dimensions; it must have 2")
    return x
