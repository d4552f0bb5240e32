# SPDX-License-Identifier: MIT
import mixed_precision as mp
import numpy as np
import pytest


@pytest.mark.parametrize("name", [n for n in mp.FORMATS if n not in ("float", "double", "float8_e8m0fnu", "tfloat32")])
def test_range_report_counts_what_rounding_does(name):
    generator = np.random.default_rng(7)
    x = generator.standard_normal(20_000) * 2.0 ** generator.integers(-40, 40, 20_000)
    x[:5] = [0, -0.0, np.inf, -np.inf, np.nan]
    report = mp.range_report(x, name)
    f = mp.FORMATS[name]
    y = mp.to_float(mp.round_to(x, name)).astype(np.float64)
    finite = np.isfinite(x) & (x != 0)
    assert report.count == x.size and report.zeros == 2 and report.infinities == 2 and report.nans == 1
    assert report.largest_magnitude == np.abs(x[np.isfinite(x)]).max()
    # Beyond the largest number by half a unit or more, which a format with neither infinity nor NaN does not show.
    limit = f.largest + 2.0 ** (np.frexp(f.largest)[1] - 1) * f.epsilon / 2
    over = finite & (np.abs(x) >= limit)
    if f.has_nan or f.has_infinity:
        over |= finite & ~np.isfinite(y)
    assert report.overflows == np.count_nonzero(over)
    assert report.flushed == np.count_nonzero(finite & (y == 0))
    assert report.subnormals == np.count_nonzero(finite & (y != 0) & (np.abs(y) < f.smallest_normal))
    counts = dict(report.exponents)
    wanted = np.frexp(x[finite])[1] - 1
    assert counts == {int(e): int(n) for e, n in zip(*np.unique(wanted, return_counts=True))}
    assert report.flushed_fraction == pytest.approx(report.flushed / np.count_nonzero(finite))
    single = x.astype(np.float32)
    assert mp.range_report(single, name, threads=2).overflows == mp.range_report(single.astype(np.float64), name).overflows


def test_error_report():
    x = np.linspace(1, 2, 1000, endpoint=False)
    report = mp.error_report(mp.round_to(x, "bfloat16"), x)
    assert report.count == 1000 and report.nonfinite == 0 and report.flushed == 0
    assert 0.49 < report.max_ulp <= 0.5
    assert report.max_error <= 2.0**-8 and report.max_relative_error <= 2.0**-8
    down = mp.error_report(mp.round_to(x, "bfloat16", rounding="toward_zero"), x)
    assert 0.9 < down.max_ulp < 1 and down.relative_error > report.relative_error
    odd = mp.error_report(mp.round_to([1e-9, 1e9, np.nan, 1.0], "half"), [1e-9, 1e9, np.nan, 1.0])
    assert (odd.flushed, odd.nonfinite, odd.max_relative_error) == (1, 2, 1.0)
    assert mp.error_report([1.25], [1.0], "half").max_ulp == 256
    with pytest.raises(ValueError, match="reference has the shape"):
        mp.error_report([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="format is 'float'; it must be a reduced one"):
        mp.range_report([1.0], "float")


def test_formats_are_those_of_ml_dtypes():
    import ml_dtypes

    for name, f in mp.FORMATS.items():
        if name == "tfloat32":
            continue
        info = ml_dtypes.finfo(f.dtype)
        assert f.largest == float(info.max) and f.bits == info.bits and f.epsilon == float(info.eps), name
        assert f.smallest_normal == float(info.smallest_normal), name
        if name != "float8_e8m0fnu":
            assert f.smallest_subnormal == float(info.smallest_subnormal), name
    assert mp.__version__.count(".") == 2
