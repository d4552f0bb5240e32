# SPDX-License-Identifier: MIT
"""Reduced-precision numbers for NumPy, by the C++ library mp.

Arrays come and go as NumPy's float16, float32 and float64 and the types of ml_dtypes. A format is a name, such as "half",
"bfloat16" or "float8_e4m3fn" (FORMATS has all of them), or a dtype. Every number is rounded once, from its exact value.
"""

from ._arrays import FORMATS, Format
from ._blocks import BLOCK_FORMATS, BlockFormat, BlockScaled, from_packed, quantize
from ._core import QuantizationReport, RangeReport, ReplayResult
from ._products import GPUS, matmul
from ._replay import POLICIES, TraceStep, replay, replay_table, trace_step
from ._reports import ErrorReport, error_report, range_report
from ._rounding import Flags, round_stochastic, round_to, round_with_flags, to_float
from ._core import VERSION as __version__

__all__ = [
    "BLOCK_FORMATS", "FORMATS", "GPUS", "POLICIES", "BlockFormat", "BlockScaled", "ErrorReport", "Flags", "Format",
    "QuantizationReport", "RangeReport", "ReplayResult", "TraceStep", "error_report", "from_packed", "matmul", "quantize",
    "range_report", "replay", "replay_table", "round_stochastic", "round_to", "round_with_flags", "to_float", "trace_step",
    "__version__",
]
