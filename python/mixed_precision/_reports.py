# SPDX-License-Identifier: MIT
"""What becomes of numbers in a format, and how far results are from what they should be."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from . import _core
from ._arrays import floats_of, format_of, threads_of


def range_report(x: Any, format: Any, *, threads: int = 1) -> _core.RangeReport:
    """How many of the numbers overflow, are flushed to zero or become subnormal in a format, and their exponents."""
    return _core.range_report(format_of(format).name, floats_of(x), threads_of(threads))


@dataclasses.dataclass(frozen=True)
class ErrorReport:
    """How far numbers are from a reference."""

    count: int
    nonfinite: int  #: infinite or NaN in either; not in what follows
    flushed: int  #: zero where the reference is not
    max_error: float  #: the largest |x - reference|
    max_relative_error: float  #: over |reference|, where that is not zero
    max_ulp: float  #: in units in the last place of the format at the reference
    relative_error: float  #: root of the mean squared error over that of the reference: 0.01 is 1% noise


def error_report(x: Any, reference: Any, format: Any = None) -> ErrorReport:
    """How far x, which is of a format (by default that of its dtype), is from a reference; in arithmetic of float64."""
    array = np.asarray(x)
    of = format_of(array.dtype, "the dtype of x") if format is None else format_of(format)
    got = floats_of(array).astype(np.float64)
    wanted = floats_of(reference, "reference").astype(np.float64)
    if got.shape != wanted.shape:
        raise ValueError(f"reference has the shape {wanted.shape}; it must be {got.shape}, as x has")
    finite = np.isfinite(got) & np.isfinite(wanted)
    y, r = got[finite], wanted[finite]
    error = np.abs(y - r)
    exponent = np.frexp(np.clip(np.abs(r), of.smallest_normal, of.largest))[1] - 1
    ulp = np.ldexp(np.float64(of.epsilon), exponent)
    nonzero = r != 0
    squares = float(np.sum(r * r))
    return ErrorReport(
        count=int(got.size),
        nonfinite=int(got.size - np.count_nonzero(finite)),
        flushed=int(np.count_nonzero((y == 0) & nonzero)),
        max_error=float(np.max(error, initial=0)),
        max_relative_error=float(np.max(error[nonzero] / np.abs(r[nonzero]), initial=0)),
        max_ulp=float(np.max(error / ulp, initial=0)),
        relative_error=float(np.sqrt(np.sum(error * error) / squares)) if squares > 0 else 0.0,
    )
