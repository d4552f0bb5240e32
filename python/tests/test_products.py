# SPDX-License-Identifier: MIT
"""Against the block fused multiply-add in fractions: exact products are cut off below the largest term's last bit that is kept,
added, and the sum is rounded (arXiv 2512.07004, 2511.10909)."""

from fractions import Fraction

import mixed_precision as mp
import ml_dtypes
import numpy as np
import pytest

# Products at a time and bits behind the point of the largest term.
RULES = {
    ("V100", "half"): (4, 23), ("T4", "half"): (8, 24), ("A100", "half"): (8, 24), ("L40S", "half"): (8, 24),
    ("H100", "half"): (16, 25), ("B200", "half"): (16, 25), ("A100", "bfloat16"): (8, 24), ("H100", "bfloat16"): (16, 25),
    ("A100", "tfloat32"): (4, 24), ("H100", "tfloat32"): (8, 25), ("B200", "float8_e4m3fn"): (32, 25),
    ("L40S", "float8_e4m3fn"): (16, 13), ("H100", "float8_e5m2"): (32, 13),
}


def exponent(x):
    """floor(log2 |x|) of a Fraction."""
    e = abs(x.numerator).bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= abs(x) else e - 1


def cut(x, unit):
    """Toward zero."""
    return (abs(x) // unit) * unit * (1 if x >= 0 else -1)


def block_sum(a, b, acc, kept, fraction_bits):
    """One block. The exponent of a product is the sum of its factors'."""
    terms = [(x * y, exponent(x) + exponent(y)) for x, y in zip(a, b) if x and y]
    if acc:
        terms.append((acc, exponent(acc)))
    if not terms:
        return Fraction(0)
    unit = Fraction(2) ** (max(e for _, e in terms) - kept)
    total = sum(cut(t, unit) for t, _ in terms)
    return cut(total, Fraction(2) ** (exponent(total) - fraction_bits)) if total else total


def model(a, b, products, kept, promotes):
    """Of a row and a column."""
    promoted, acc = np.float32(0), Fraction(0)
    for k in range(0, len(a), products):
        acc = block_sum(a[k:k + products], b[k:k + products], acc, kept, 13 if promotes else 23)
        if promotes and (k + products) % 128 == 0:
            promoted, acc = np.float32(promoted + np.float32(float(acc))), Fraction(0)
    return np.float32(promoted + np.float32(float(acc))) if promotes else np.float32(float(acc))


@pytest.mark.parametrize("gpu, name", RULES)
def test_bits_are_those_of_the_model(gpu, name):
    generator = np.random.default_rng(5)
    tf32 = name == "tfloat32"

    def numbers(*shape):
        return mp.round_to(generator.standard_normal(shape) * 2.0 ** generator.integers(-3, 4, shape), name)

    a, b = numbers(6, 160), numbers(160, 5)
    got = mp.matmul(a, b, gpu, tf32=tf32)
    assert got.dtype == np.float32
    exact_a = [[Fraction(float(v)) for v in row] for row in mp.to_float(a)]
    exact_b = [[Fraction(float(v)) for v in row] for row in mp.to_float(b).T]
    products, kept = RULES[gpu, name]
    wanted = [[model(x, y, products, kept, kept == 13) for y in exact_b] for x in exact_a]
    np.testing.assert_array_equal(got, np.array(wanted, np.float32))
    np.testing.assert_array_equal(got, mp.matmul(a, b, gpu, tf32=tf32, threads=2))
    np.testing.assert_array_equal(got, mp.matmul(np.asfortranarray(a), b[:, :], f"sm_{mp.GPUS[gpu]}", tf32=tf32))


def test_gpus_differ_and_all_are_close():
    generator = np.random.default_rng(6)
    a = generator.standard_normal((32, 512)).astype(np.float16)
    b = generator.standard_normal((512, 32)).astype(np.float16)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    results = {gpu: mp.matmul(a, b, gpu) for gpu in ("V100", "A100", "H100")}
    for gpu, y in results.items():
        assert mp.error_report(y, exact).relative_error < 1e-5, gpu
    assert (results["V100"] != results["A100"]).any() and (results["A100"] != results["H100"]).any()
    half = mp.matmul(a, b, "H100", accumulate="float16")
    assert half.dtype == np.float16
    assert 1e-5 < mp.error_report(half, exact).relative_error < 1e-2
    small = mp.round_to(a, "float8_e4m3fn")
    other = mp.round_to(b, "float8_e5m2")
    exact = small.astype(np.float64) @ other.astype(np.float64)
    fast = mp.matmul(small, other, "H100", promotion_interval=0)
    promoted = mp.matmul(small, other, "H100")
    assert mp.error_report(promoted, exact).relative_error < mp.error_report(fast, exact).relative_error
    assert mp.matmul(small, other, "H100", float8_unit="through_half").shape == (32, 32)
    assert mp.matmul(np.ones((2, 0), np.float16), np.ones((0, 3), np.float16), "A100").tolist() == [[0] * 3] * 2


@pytest.mark.parametrize("left, right, products, kept", [
    ("nvfp4", "nvfp4", 64, 35), ("mxfp4", "mxfp4", 64, 35), ("mxfp8_e4m3", "mxfp8_e4m3", 32, 25), ("mxfp8_e4m3", "mxfp4", 32, 25),
])
def test_block_formats_have_the_bits_of_the_published_model(left, right, products, kept):
    generator = np.random.default_rng(7)
    scale = {"tensor_scale": 1.0} if left == "nvfp4" else {}
    a = mp.quantize(generator.standard_normal((3, 192)), left, **scale)
    b = mp.quantize(generator.standard_normal((192, 5)), right, direction="along_columns", **scale)
    got = mp.matmul(a, b, "B200")
    x, y = a.elements.astype(np.float64), b.elements.astype(np.float64)
    s, t = a.scales.astype(np.float64), b.scales.astype(np.float64)
    block = a.format.block_size
    for i in range(3):
        for j in range(5):
            acc = Fraction(0)
            for k in range(0, 192, products):
                terms = [(acc, exponent(acc))] if acc else []
                step = 16 if products == 64 else 1  # products that are added exactly
                for p in range(k, k + products, step):
                    scales = Fraction(s[i, p // block]) * Fraction(t[j, p // block])
                    of_scales = exponent(Fraction(s[i, p // block])) + exponent(Fraction(t[j, p // block]))
                    parts = [Fraction(x[i, q]) * Fraction(y[q, j]) for q in range(p, p + step)]
                    if any(parts):
                        e = of_scales if step == 16 else of_scales + sum(
                            max(exponent(Fraction(v)), -6 if name == "mxfp8_e4m3" else 0)
                            for v, name in ((x[i, p], left), (y[p, j], right)))
                        terms.append((sum(parts) * scales, e))
                unit = Fraction(2) ** (max(e for _, e in terms) - kept)
                total = sum(cut(v, unit) for v, _ in terms)
                acc = cut(total, Fraction(2) ** (exponent(total) - 23)) if total else Fraction(0)
            assert got[i, j] == np.float32(float(acc))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, mp.matmul(a, b, "RTX 5090", threads=2))


ONE = np.ones((2, 2), np.float16)
ROWS, COLUMNS = mp.quantize(ONE, "mxfp4"), mp.quantize(ONE, "mxfp4", direction="along_columns")


@pytest.mark.parametrize("call, error, words", [
    (lambda: mp.matmul(ONE, ONE, "H900"), ValueError, "gpu is 'H900'; it must be one of V100"),
    (lambda: mp.matmul(ONE[0], ONE, "H100"), ValueError, "a has 1 dimensions; it must have 2"),
    (lambda: mp.matmul(ONE, np.ones((3, 2), np.float16), "H100"), ValueError, "b has 3 rows; it must have 2"),
    (lambda: mp.matmul(ONE.astype(np.float32), ONE, "H100"), TypeError, "a is an array of float32"),
    (lambda: mp.matmul(ONE, ONE.astype(ml_dtypes.bfloat16), "H100"), ValueError, "do not multiply a of half by b of bfloat16"),
    (lambda: mp.matmul(ONE.astype(ml_dtypes.bfloat16), ONE.astype(ml_dtypes.bfloat16), "V100"), ValueError, "sm_70 do not multiply"),
    (lambda: mp.matmul(ONE, ONE, "H100", accumulate="float64"), ValueError, "accumulate is 'float64'"),
    (lambda: mp.matmul(ONE, ONE, "H100", float8_unit="fast"), ValueError, "float8_unit is 'fast'"),
    (lambda: mp.matmul(mp.round_to(ONE, "float8_e5m2"), mp.round_to(ONE, "float8_e5m2"), "H100", promotion_interval=33), ValueError,
     "promotion_interval is 33; it must be zero or a positive multiple of 32"),
    (lambda: mp.matmul(ROWS, ONE, "B200"), TypeError, "a and b must both be BlockScaled"),
    (lambda: mp.matmul(ROWS, COLUMNS, "H100"), ValueError, "sm_90 do not multiply these block formats"),
    (lambda: mp.matmul(ROWS, ROWS, "B200"), ValueError, "b.direction\\(\\) is 'along_rows'"),
    (lambda: mp.matmul(ROWS, COLUMNS, "B200", accumulate="float16"), ValueError, "accumulate must be float32"),
    (lambda: mp.matmul(mp.quantize(ONE, "mxint8"), COLUMNS, "B200"), ValueError, "do not multiply these block formats"),
])
def test_errors_name_the_argument(call, error, words):
    with pytest.raises(error, match=words):
        call()
