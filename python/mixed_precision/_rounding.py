# SPDX-License-Identifier: MIT
"""Rounding of arrays."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from . import _core
from ._arrays import FORMATS, Format, choice, floats_of, format_of, integer, threads_of, widened


class Flags(enum.Flag):
    """The exceptions of IEEE 754 that an operation raised."""

    NONE = 0
    INEXACT = 1
    UNDERFLOW = 2
    OVERFLOW = 4
    DIVIDE_BY_ZERO = 8
    INVALID = 16


def projection_of(rounding: str, saturation: str, nan: str, without_nan: str, random_bits: int, seed: int | None):
    """The module's projection, and whether it is stochastic."""
    round = choice("rounding", rounding, _core.ROUNDINGS)
    stochastic = rounding.startswith("stochastic")
    if stochastic != (seed is not None):
        raise ValueError(f"seed is {seed}; it must be {'given' if stochastic else 'None'} with rounding {rounding!r}")
    projection = _core.projection(
        round,
        choice("saturation", saturation, _core.SATURATIONS),
        choice("nan", nan, _core.NANS),
        choice("without_nan", without_nan, _core.NAN_SUBSTITUTES),
        integer("random_bits", random_bits, 1, 32) if stochastic else 0,
        0,
    )
    return projection, stochastic


def _round(x, format, flags, *, rounding, saturation, nan, without_nan, subnormals, tininess, seed, first_index,
           random_bits, threads):
    to = format_of(format)
    projection, stochastic = projection_of(rounding, saturation, nan, without_nan, random_bits, seed)
    handling = choice("subnormals", subnormals, _core.SUBNORMALS)
    tiny = choice("tininess", tininess, _core.TININESS)
    count = threads_of(threads)
    values = floats_of(x, threads=count)
    first = integer("first_index", first_index, 0, 2**64 - 1 - values.size)
    result = np.empty(values.shape, to.dtype)
    raised = _core.round_to(to.name, values, result.view(f"u{to.dtype.itemsize}"), projection, handling, tiny, flags,
                            stochastic, integer("seed", seed, 0, 2**64 - 1) if stochastic else 0, first, count)
    return result, Flags(raised)


def round_to(x: Any, format: Any, *, rounding: str = "nearest_even", saturation: str = "none", nan: str = "keep",
             without_nan: str = "largest", subnormals: str = "gradual", seed: int | None = None, first_index: int = 0,
             random_bits: int = 32, threads: int = 1) -> np.ndarray:
    """x in a format, each number rounded once.

    rounding: nearest_even, nearest_away, toward_zero, upward, downward, to_odd, or with a seed stochastic_a, _b, _c (P3109).
    saturation: "none" overflows to infinity, to NaN in a format without it; "finite" gives the largest number, also for
    infinities; "propagate" the same, but infinities stay. nan: "keep" sign and payload or "canonical". without_nan: what
    becomes of NaN in a format that has none, "largest" or "zero". subnormals: "gradual", "flush_results" or "flush_all".
    """
    return _round(x, format, False, rounding=rounding, saturation=saturation, nan=nan, without_nan=without_nan,
                  subnormals=subnormals, tininess="after_rounding", seed=seed, first_index=first_index,
                  random_bits=random_bits, threads=threads)[0]


def round_with_flags(x: Any, format: Any, *, rounding: str = "nearest_even", saturation: str = "none",
                     nan: str = "keep", without_nan: str = "largest", subnormals: str = "gradual",
                     tininess: str = "after_rounding", seed: int | None = None, first_index: int = 0,
                     random_bits: int = 32) -> tuple[np.ndarray, Flags]:
    """As round_to, with the flags that any of the numbers raised. tininess: "after_rounding" or "before_rounding"."""
    return _round(x, format, True, rounding=rounding, saturation=saturation, nan=nan, without_nan=without_nan,
                  subnormals=subnormals, tininess=tininess, seed=seed, first_index=first_index,
                  random_bits=random_bits, threads=1)


def round_stochastic(x: Any, format: Any, seed: int, *, first_index: int = 0, random_bits: int = 32,
                     saturation: str = "none", threads: int = 1) -> np.ndarray:
    """x in a format, rounded up with the probability that makes it right on average.

    The random bits are those of the seed and the index of a number (Philox), which begins at first_index: the same on any
    number of threads, and on GPUs. In formats of 8 bits and fewer saturation="finite" is what training wants.
    """
    return round_to(x, format, rounding="stochastic_a", saturation=saturation, seed=seed, first_index=first_index,
                    random_bits=random_bits, threads=threads)


def to_float(x: Any, format: Any = None, *, threads: int = 1) -> np.ndarray:
    """The values of an array as float32, exactly. With a format x has its codes, as unsigned integers of its size."""
    array = np.asarray(x)
    if format is None:
        of: Format = format_of(array.dtype, "the dtype of x")
    else:
        of = format_of(format)
        if array.dtype != of.dtype and array.dtype != np.dtype(f"u{of.dtype.itemsize}"):
            raise TypeError(f"x is an array of {array.dtype}; it must be of {of.dtype} or uint{8 * of.dtype.itemsize}")
    if of is FORMATS["double"]:
        raise ValueError("format is 'double'; float32 does not hold its numbers")
    return widened(array, of, threads_of(threads))
