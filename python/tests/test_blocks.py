# SPDX-License-Identifier: MIT
from fractions import Fraction

import mixed_precision as mp
import ml_dtypes
import numpy as np
import pytest
from model import MODELS

FORMATS = list(mp.BLOCK_FORMATS)


def normal(rows, columns, seed=1):
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)


def floor_scale(amax, element):
    """OCP MX 1.0: 2^(floor(log2 amax) - the exponent of the largest element)."""
    largest = 1.984375 if element == "int8" else mp.FORMATS[element].largest
    return 2.0 ** (np.frexp(amax)[1] - np.frexp(largest)[1])


@pytest.mark.parametrize("name", [n for n in FORMATS if n.startswith("mx")])
def test_mx_is_that_of_the_specification(name):
    x = normal(5, 80)
    q = mp.quantize(x, name)
    element = q.format.element
    assert q.shape == (5, 80) and q.scales.shape == (5, 3) and q.scales.dtype == ml_dtypes.float8_e8m0fnu
    values = q.dequantize()
    for row in range(5):
        for block in range(3):
            part = x[row, 32 * block:32 * block + 32]
            scale = floor_scale(np.abs(part).max(), element)
            assert q.scales[row, block].astype(np.float32) == scale
            if element == "int8":
                wanted = np.clip(np.rint(part.astype(np.float64) / scale * 64), -127, 127) / 64
            else:
                wanted = [float(v) for v in mp.round_to(part.astype(np.float64) / scale, element, saturation="finite")]
            np.testing.assert_array_equal(values[row, 32 * block:32 * block + 32], np.float32(wanted) * np.float32(scale))


def test_nvfp4_is_that_of_two_scales():
    x = normal(4, 64)
    q = mp.quantize(x, "nvfp4")
    assert q.scales.shape == (4, 4) and q.scales.dtype == ml_dtypes.float8_e4m3fn
    tensor = np.float32(np.float64(np.abs(x).max()) / (448 * 6))
    assert q.tensor_scale == pytest.approx(float(tensor), rel=1e-7)
    for row in range(4):
        for block in range(4):
            part = x[row, 16 * block:16 * block + 16]
            exact = Fraction(float(np.abs(part).max())) / 6 / Fraction(q.tensor_scale)
            _, scale, _ = MODELS["float8_e4m3fn"].round(exact, "nearest_even", "finite")
            assert Fraction(float(q.scales[row, block])) == scale
            for i, value in enumerate(part):
                negative, wanted, _ = MODELS["float4_e2m1fn"].round(Fraction(float(value)) / (scale * Fraction(q.tensor_scale)),
                                                                    "nearest_even", "finite")
                assert Fraction(float(q.elements[row, 16 * block + i])) == (-wanted if negative else wanted)


@pytest.mark.parametrize("direction", ["along_rows", "along_columns"])
@pytest.mark.parametrize("name", FORMATS)
def test_parts_make_the_matrix_again(name, direction):
    x = normal(7, 50, seed=2)
    q = mp.quantize(x, name, direction=direction)
    again = mp.from_packed(q.packed, q.scales, name, x.shape, direction=direction, tensor_scale=q.tensor_scale)
    np.testing.assert_array_equal(again.dequantize(), q.dequantize())
    np.testing.assert_array_equal(again.elements, q.elements)
    scales = q.scales.astype(np.float64)
    lines = x if direction == "along_rows" else x.T
    spread = np.repeat(scales, q.format.block_size, axis=1)[:, :lines.shape[1]]
    spread = spread if direction == "along_rows" else spread.T
    elements = q.elements / 64 if q.format.element == "int8" else q.elements.astype(np.float64)
    np.testing.assert_array_equal(q.dequantize(threads=2), (elements * spread * q.tensor_scale).astype(np.float32))
    bits = 8 if q.format.element == "int8" else mp.FORMATS[q.format.element].bits
    assert q.nbytes == lines.shape[0] * ((lines.shape[1] * bits + 7) // 8) + q.scales.size


def test_four_bits_are_packed_from_the_low_ones():
    q = mp.quantize([1.0, 6.0, -0.5, 3.0], "mxfp4")
    np.testing.assert_array_equal(q.elements.astype(float), [[1, 6, -0.5, 3]])
    np.testing.assert_array_equal(q.packed, [[0x72, 0x59]])


@pytest.mark.parametrize("name", FORMATS)
def test_report(name):
    x = normal(16, 64, seed=3)
    q = mp.quantize(x, name)
    report = q.report(x)
    error = q.dequantize().astype(np.float64) - x
    assert report.count == x.size and report.nonfinite == 0
    assert report.max_error == pytest.approx(np.abs(error).max(), rel=1e-6)
    assert report.relative_error == pytest.approx(np.sqrt((error**2).sum() / (x.astype(np.float64)**2).sum()), rel=1e-6)
    assert report.flushed == np.count_nonzero((q.dequantize() == 0) & (x != 0))
    double = mp.quantize(x.astype(np.float64), name)
    np.testing.assert_array_equal(double.dequantize(), q.dequantize())


def test_options():
    x = normal(8, 64, seed=4)
    assert mp.quantize(x, "mxfp4", rule="ceil").report(x).clamped == 0
    assert mp.quantize(x, "mxfp4").report(x).clamped > 0
    a = mp.quantize(x, "mxfp4", rounding="stochastic_a", seed=1)
    b = mp.quantize(x, "mxfp4", rounding="stochastic_a", seed=1, threads=2)
    c = mp.quantize(x, "mxfp4", rounding="stochastic_a", seed=2)
    np.testing.assert_array_equal(a.dequantize(), b.dequantize())
    assert (a.dequantize() != c.dequantize()).any()
    assert mp.quantize(x, "nvfp4", tensor_scale=0.25).tensor_scale == 0.25
    mse, standard = (mp.quantize(x, "nvfp4", rule=r).report(x).relative_error for r in ("four_over_six_mse", "standard"))
    assert mse < standard
    tiles = mp.quantize(x, "nvfp4", square_tiles=True)
    np.testing.assert_array_equal(tiles.dequantize(),
                                  mp.quantize(x, "nvfp4", square_tiles=True, direction="along_columns").dequantize())
    x[1] = 0
    for floor, smallest in (("smallest", 1), ("normal", 8), ("none", 0)):
        assert mp.quantize(x, "nvfp4", scale_floor=floor).scales.view(np.uint8).min() == smallest
    x[0, 0] = np.inf
    assert np.isnan(mp.quantize(x, "mxfp4", nonfinite="nan_scale").dequantize()[0, :32]).all()
    assert not np.isfinite(mp.quantize(x, "mxfp8_e5m2", nonfinite="by_element", saturation="propagate").dequantize()[0, 0])
    assert mp.quantize(np.zeros((0, 5)), "mxfp4").dequantize().shape == (0, 5)
    assert mp.quantize(np.zeros((5, 0)), "nvfp4").packed.shape == (5, 0)


@pytest.mark.parametrize("call, error, words", [
    (lambda: mp.quantize(np.ones((2, 2)), "mxfp5"), ValueError, "format is 'mxfp5'; it must be one of mxfp8_e4m3"),
    (lambda: mp.quantize(np.ones((2, 2, 2)), "mxfp4"), ValueError, "x has 3 dimensions; it must have 2"),
    (lambda: mp.quantize(np.ones((2, 2)), "mxfp4", rule="max"), ValueError, "rule is 'max'"),
    (lambda: mp.quantize(np.ones((2, 2)), "mxfp4", rule="four_over_six_mae"), ValueError, "rule is 'four_over_six_mae'"),
    (lambda: mp.quantize(np.ones((2, 2)), "mxfp4", scale_floor="zero"), ValueError, "scale_floor is 'zero'"),
    (lambda: mp.quantize(np.ones((2, 2)), "mxfp4", direction=1), ValueError, "direction is 1"),
    (lambda: mp.quantize(np.ones((2, 2)), "mxfp4", tensor_scale=2.0), ValueError, "tensor_scale is 2.0; it must be None for mxfp4"),
    (lambda: mp.quantize(np.ones((2, 2)), "nvfp4", tensor_scale=-2.0), ValueError, "tensor_scale is -2.0; it must be a positive"),
    (lambda: mp.quantize(np.ones((2, 2)), "mxfp4").report(np.ones((2, 3))), ValueError, "x has the shape"),
    (lambda: mp.from_packed(np.zeros(3, np.uint8), np.zeros(1, np.uint8), "mxfp4", (1, 4)), ValueError, "packed has 3 bytes; it must have 2"),
    (lambda: mp.from_packed(np.zeros(2), np.zeros(1, np.uint8), "mxfp4", (1, 4)), TypeError, "packed is an array of float64"),
    (lambda: mp.from_packed(np.zeros(2, np.uint8), np.zeros(1), "mxfp4", (1, 4)), TypeError, "scales is an array of float64"),
])
def test_errors_name_the_argument(call, error, words):
    with pytest.raises(error, match=words):
        call()
