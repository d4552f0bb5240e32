# SPDX-License-Identifier: MIT
"""What loss scalers would have made of the gradients of a run."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Iterable, Sequence

import numpy as np

from . import _core
from ._arrays import floats_of, format_of

#: Loss scalers with their defaults: name, and whose it is.
POLICIES: dict[str, str] = dict(_core.policies())


@dataclasses.dataclass(frozen=True)
class TraceStep:
    """The gradients of a step, without a scale."""

    largest: float  #: the largest finite magnitude
    infinite: bool = False  #: there was an infinity that no scale would have avoided
    nan: bool = False
    zeros: int = 0
    exponents: tuple[tuple[int, int], ...] = ()  #: (e, how many have 2^e <= |g| < 2^(e+1)), ascending; for underflow
    at_least: bool = False  #: the largest magnitude is only known to be at least that


def trace_step(gradients: Any) -> TraceStep:
    """What replay() wants to know of a step's gradients: an array, or a list of arrays of any shapes."""
    arrays = gradients if isinstance(gradients, (list, tuple)) else [gradients]
    largest, zeros, infinite, nan = 0.0, 0, False, False
    counts: dict[int, int] = {}
    for array in arrays:
        report = _core.range_report("half", floats_of(array, "gradients"), 1)
        largest = max(largest, report.largest_magnitude)
        zeros += report.zeros
        infinite = infinite or report.infinities != 0
        nan = nan or report.nans != 0
        for exponent, count in report.exponents:
            counts[exponent] = counts.get(exponent, 0) + count
    return TraceStep(largest, infinite, nan, zeros, tuple(sorted(counts.items())))


def replay(trace: Iterable[Any], policies: str | Sequence[str] | None = None, *,
           format: Any = "half") -> list[_core.ReplayResult]:
    """Runs loss scalers (by default all of POLICIES) over a run whose gradients are to be in a format.

    trace: of each step a TraceStep, its largest magnitude as a number, or its gradients as an array.
    """
    names = [policies] if isinstance(policies, str) else list(POLICIES) if policies is None else list(policies)
    for name in names:
        if name not in POLICIES:
            raise ValueError(f"policies has {name!r}; it must have some of {', '.join(POLICIES)}")
    steps = []
    for i, step in enumerate(trace):
        if not isinstance(step, TraceStep):
            number = not isinstance(step, (list, tuple)) and np.ndim(step) == 0
            step = TraceStep(float(step)) if number and math.isfinite(step) else trace_step(step)
        if not (step.largest >= 0 and math.isfinite(step.largest)):
            raise ValueError(f"trace[{i}].largest is {step.largest}; it must be finite and not negative")
        steps.append((step.largest, step.at_least, step.infinite, step.nan, step.zeros, list(step.exponents)))
    of = format_of(format).name
    return [_core.replay(steps, name, of) for name in names]


def replay_table(results: Sequence[_core.ReplayResult]) -> str:
    """The results as a table of text."""
    return _core.replay_table(list(results))
