# SPDX-License-Identifier: MIT
"""Matrix products as the tensor cores of GPUs return them, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._arrays import codes_of, contiguous, format_of, integer, matrix_of, threads_of
from ._blocks import BlockScaled

#: GPUs, and the architectures whose arithmetic they have. "sm_90" and the like are names, too.
GPUS: dict[str, int] = {
    "V100": 70, "T4": 75, "A100": 80, "A30": 80, "A2": 86, "A10": 86, "A40": 86, "L4": 89, "L40S": 89, "H100": 90,
    "H200": 90, "B200": 100, "RTX 5090": 120,
}
_BY_NAME = {**GPUS, **{f"sm_{n}": n for n in GPUS.values()}}


def _operand(x: Any, argument: str, tf32: bool) -> tuple[str, np.ndarray]:
    array = matrix_of(np.asarray(x), argument)
    if array.dtype == np.float32 and tf32:
        return "tfloat32", array
    name = format_of(array.dtype, f"the dtype of {argument}").name
    if name in ("float", "double"):
        raise TypeError(f"{argument} is an array of {array.dtype}, which tensor cores do not multiply; round it to float16, "
                        "bfloat16 or float8, or say tf32=True for an array of float32, of which they ignore the last 13 bits")
    return name, array


def _matmul_blocks(a: Any, b: Any, gpu: str, accumulate: np.dtype, threads: int) -> np.ndarray:
    if not isinstance(a, BlockScaled) or not isinstance(b, BlockScaled):
        raise TypeError("a and b must both be BlockScaled, or both arrays")
    if accumulate != np.float32:
        raise ValueError("accumulate must be float32 for block formats")
    result = np.empty((a.shape[0], b.shape[1]), np.float32)
    a._core.multiply(b._core, _BY_NAME[gpu], result.view(np.uint32), threads_of(threads))
    return result


def matmul(a: Any, b: Any, gpu: str, *, accumulate: str = "float32", tf32: bool = False, promotion_interval: int = 128,
           float8_unit: str = "native", threads: int = 1) -> np.ndarray:
    """a @ b as the tensor cores of a GPU return it, for a kernel that adds blocks of ascending k to one accumulator.

    gpu: a name of GPUS, or "sm_90". a, b: float16, bfloat16, float8_e4m3fn or float8_e5m2, or float32 with tf32=True.
    accumulate: "float32" or "float16", also the dtype of the result. For 8 bits on L40S and H100 promotion_interval is after
    how many products the sum goes to a float (0 for never: fast accumulation), and float8_unit "native" (wgmma) or
    "through_half" (mma.sync on H100 and B200).

    Two BlockScaled matrices (MXFP8, MXFP6 and MXFP4, each or mixed, or two of NVFP4) are multiplied as on B200 and RTX 5090, by
    published models that no result of such hardware has confirmed. The blocks of a lie along rows, those of b along columns.
    """
    if gpu not in _BY_NAME:
        raise ValueError(f"gpu is {gpu!r}; it must be one of {', '.join(_BY_NAME)}")
    if np.dtype(accumulate) not in (np.float16, np.float32):
        raise ValueError(f"accumulate is {accumulate!r}; it must be float32 or float16")
    if float8_unit not in ("native", "through_half"):
        raise ValueError(f"float8_unit is {float8_unit!r}; it must be native or through_half")
    if isinstance(a, BlockScaled) or isinstance(b, BlockScaled):
        return _matmul_blocks(a, b, gpu, np.dtype(accumulate), threads)
    a_format, left = _operand(a, "a", tf32)
    b_format, right = _operand(b, "b", tf32)
    if left.shape[1] != right.shape[0]:
        raise ValueError(f"b has {right.shape[0]} rows; it must have {left.shape[1]}, as a has columns")
    half = np.dtype(accumulate) == np.float16
    result = np.empty((left.shape[0], right.shape[1]), np.float16 if half else np.float32)
    _core.multiply(_BY_NAME[gpu], a_format, b_format, codes_of(contiguous(left)), codes_of(contiguous(right)),
                   result.view(np.uint16 if half else np.uint32), half, float8_unit == "through_half",
                   integer("promotion_interval", promotion_interval, 0, 2**31 - 1), threads_of(threads))
    return result
