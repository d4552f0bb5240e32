# SPDX-License-Identifier: MIT
"""Block-scaled matrices: MXFP8, MXFP6, MXFP4, MXINT8, NVFP4."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from . import _core
from ._arrays import FORMATS, choice, codes_of, contiguous, floats_of, integer, matrix_of, threads_of
from ._rounding import projection_of


@dataclasses.dataclass(frozen=True)
class BlockFormat:
    """A format of blocks: elements, and the scale that a block of them shares."""

    name: str
    element: str  #: a format, or "int8", whose code n is n / 64
    scale: str
    block_size: int
    element_bits: int
    has_tensor_scale: bool


#: All block formats, by name.
BLOCK_FORMATS: dict[str, BlockFormat] = {row[0]: BlockFormat(*row) for row in _core.block_formats()}


def _block_format(name: Any) -> BlockFormat:
    if name in BLOCK_FORMATS:
        return BLOCK_FORMATS[name]
    raise ValueError(f"format is {name!r}; it must be one of {', '.join(BLOCK_FORMATS)}")


class BlockScaled:
    """A quantised matrix: its value is element * scale of the block * tensor_scale."""

    def __init__(self, format: BlockFormat, direction: str, core: _core.Quantized):
        self.format = format
        self.direction = direction
        self._core = core

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self._core.shape
        return rows, columns

    @property
    def tensor_scale(self) -> float:
        """Of NVFP4; 1 for the others."""
        return self._core.tensor_scale

    @property
    def elements(self) -> np.ndarray:
        """The elements, one to an object, in the shape of the matrix."""
        result = np.empty(self.shape, np.int8 if self.format.element == "int8" else FORMATS[self.format.element].dtype)
        self._core.codes(result.view(np.uint8))
        return result

    def _lines(self) -> int:
        return self.shape[0 if self.direction == "along_rows" else 1]

    @property
    def scales(self) -> np.ndarray:
        """The scales: a row for each row of the matrix (column, if the blocks lie along columns)."""
        count = self._core.byte_counts()[1]
        result = np.empty((self._lines(), count // max(self._lines(), 1)), FORMATS[self.format.scale].dtype)
        self._core.scales(result.view(np.uint8))
        return result

    @property
    def packed(self) -> np.ndarray:
        """The bytes of the elements as files and GPUs have them, the first one in the low bits, a row for each line."""
        count = self._core.byte_counts()[0]
        result = np.empty((self._lines(), count // max(self._lines(), 1)), np.uint8)
        self._core.packed(result)
        return result

    @property
    def nbytes(self) -> int:
        """Of elements and scales."""
        return sum(self._core.byte_counts())

    def dequantize(self, *, threads: int = 1) -> np.ndarray:
        """The matrix as float32, each number rounded once."""
        result = np.empty(self.shape, np.float32)
        self._core.dequantize(result, threads_of(threads))
        return result

    def report(self, x: Any, *, threads: int = 1) -> _core.QuantizationReport:
        """How far the quantised matrix is from x, which it was made from."""
        values = matrix_of(floats_of(x), "x")
        if values.shape != self.shape:
            raise ValueError(f"x has the shape {values.shape}; it must be {self.shape}")
        return self._core.report(values, threads_of(threads))

    def __repr__(self) -> str:
        return f"<BlockScaled {self.format.name} {self.shape[0]} x {self.shape[1]}, {self.nbytes} bytes>"


def quantize(x: Any, format: str, *, rule: str = "standard", direction: str = "along_rows",
             rounding: str = "nearest_even", saturation: str = "finite", nonfinite: str = "propagate",
             tensor_scale: float | None = None, seed: int | None = None, random_bits: int = 32,
             threads: int = 1, scale_floor: str = "smallest", square_tiles: bool = False) -> BlockScaled:
    """A matrix (or a vector, as a matrix of one row) in a block format.

    rule: how a block's scale follows from its largest magnitude: "standard" (floor for MX, nearest for NVFP4), "floor",
    "ceil", "even" or "nearest"; "torchao_rceil" or "torchao_ceil" for MX; "four_over_six_mse" or "four_over_six_mae" for
    NVFP4. rounding: of the elements, as in round_to; stochastic with a seed. nonfinite: "propagate", "by_element" or
    "nan_scale". tensor_scale: of NVFP4; by default it follows from the largest magnitude of all. scale_floor: smallest scale
    of an NVFP4 block, "smallest" (2^-9), "normal" (2^-6) or "none" (0). square_tiles: whether tiles of block x block elements
    share a scale.
    """
    of = _block_format(format)
    count = threads_of(threads)
    values = floats_of(x, threads=count)
    values = matrix_of(values.reshape(1, -1) if values.ndim == 1 else values, "x")
    projection, stochastic = projection_of(rounding, saturation, "keep", "largest", random_bits, seed)
    if tensor_scale is not None and not (tensor_scale > 0 and math.isfinite(tensor_scale) and of.has_tensor_scale):
        wanted = "a positive float" if of.has_tensor_scale else f"None for {of.name}"
        raise ValueError(f"tensor_scale is {tensor_scale}; it must be {wanted}")
    core = _core.quantize(of.name, values, projection, choice("rule", rule, _core.SCALE_RULES),
                          choice("direction", direction, _core.DIRECTIONS),
                          choice("nonfinite", nonfinite, _core.NONFINITE), tensor_scale or 0.0,
                          choice("scale_floor", scale_floor, _core.SCALE_FLOORS), bool(square_tiles),
                          integer("seed", seed, 0, 2**64 - 1) if stochastic else 0, count)
    return BlockScaled(of, direction, core)


def from_packed(packed: Any, scales: Any, format: str, shape: tuple[int, int], *, direction: str = "along_rows",
                tensor_scale: float = 1.0) -> BlockScaled:
    """A quantised matrix from the bytes of its elements and its scales, as BlockScaled.packed and .scales have them."""
    of = _block_format(format)
    rows, columns = (integer("shape", n, 0, 2**40) for n in shape)
    bytes = np.asarray(packed)
    if bytes.dtype.itemsize != 1:
        raise TypeError(f"packed is an array of {bytes.dtype}; it must be of bytes")
    scale = np.asarray(scales)
    if scale.dtype not in (FORMATS[of.scale].dtype, np.dtype(np.uint8)):
        raise TypeError(f"scales is an array of {scale.dtype}; it must be of {FORMATS[of.scale].dtype} or uint8")
    core = _core.from_parts(of.name, rows, columns, choice("direction", direction, _core.DIRECTIONS),
                            contiguous(bytes).view(np.uint8), codes_of(scale), tensor_scale)
    return BlockScaled(of, direction, core)
