# SPDX-License-Identifier: MIT
import math
import random
from fractions import Fraction

import ml_dtypes
import mixed_precision as mp
import numpy as np
import pytest
from model import INF, MODELS, NAN

SMALL = [n for n in MODELS if n != "float8_e8m0fnu"]
MODES = ["nearest_even", "nearest_away", "toward_zero", "upward", "downward", "to_odd"]


def all_codes(name):
    f = mp.FORMATS[name]
    return np.arange(2**f.bits, dtype=np.uint64).astype(f"u{f.dtype.itemsize}").view(f.dtype)


def as_model(value):
    """(negative, magnitude) of a float as the model has it."""
    value = float(value)
    if math.isnan(value):
        return (False, NAN)
    return (math.copysign(1, value) < 0, INF if math.isinf(value) else abs(Fraction(value)))


@pytest.mark.parametrize("name", MODELS)
def test_every_code_has_the_value_of_the_definition_and_of_ml_dtypes(name):
    codes = all_codes(name)
    values = mp.to_float(codes)
    theirs = codes.astype(np.float32)
    np.testing.assert_array_equal(values, theirs)
    np.testing.assert_array_equal(np.signbit(values[~np.isnan(values)]), np.signbit(theirs[~np.isnan(theirs)]))
    for code in range(0, MODELS[name].codes, 1 if MODELS[name].codes <= 256 else 7):
        negative, magnitude = MODELS[name].decode(code)
        assert as_model(values[code]) == (negative and magnitude != NAN, magnitude), code


@pytest.mark.parametrize("name", MODELS)
def test_every_code_is_its_value_rounded(name):
    codes = all_codes(name)
    values = mp.to_float(codes)
    back = mp.round_to(values, name)
    bits = f"u{codes.dtype.itemsize}"
    there = ~np.isnan(values)
    np.testing.assert_array_equal(back.view(bits)[there], codes.view(bits)[there])
    assert np.isnan(back.astype(np.float32))[~there].all()


@pytest.mark.parametrize("name", [n for n in SMALL if n not in ("half", "bfloat16")])
def test_all_halves_and_bfloat16_round_as_in_ml_dtypes(name):
    for source in ("half", "bfloat16"):
        x = mp.to_float(all_codes(source))
        x = x[np.isfinite(x)]
        ours = mp.round_to(x, name)
        theirs = x.astype(mp.FORMATS[name].dtype)
        np.testing.assert_array_equal(ours.view(np.uint8), theirs.view(np.uint8))


def test_floats_round_to_half_and_bfloat16_as_in_numpy_and_ml_dtypes():
    generator = np.random.default_rng(1)
    x = generator.integers(0, 2**32, 300_000, dtype=np.uint32).view(np.float32)
    x = x[~np.isnan(x)]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(mp.round_to(x, "half").view(np.uint16), x.astype(np.float16).view(np.uint16))
    np.testing.assert_array_equal(mp.round_to(x, "bfloat16").view(np.uint16), x.astype(ml_dtypes.bfloat16).view(np.uint16))
    d = generator.standard_normal(100_000) * 2.0 ** generator.integers(-30, 20, 100_000)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(mp.round_to(d, np.float16).view(np.uint16), d.astype(np.float16).view(np.uint16))
    # Once: a double beside the middle of two numbers, which float would take for the middle.
    assert mp.round_to(1 + 2.0**-8 + 2.0**-40, "bfloat16") == 1 + 2.0**-7


def cases(name, count=400):
    """Numbers, middles between neighbours and what lies beside them, and random ones, all of them doubles."""
    rng = random.Random(name)
    finite = MODELS[name].finite
    chosen = list(range(len(finite))) if len(finite) <= 128 else sorted(rng.sample(range(len(finite)), 100)) + [0, 1, len(finite) - 1]
    result = []
    for i in chosen:
        low = finite[i]
        high = finite[i + 1] if i + 1 < len(finite) else low + (low - finite[i - 1])
        middle = (low + high) / 2
        nudge = (high - low) / 2**20
        result += [low, middle, middle - nudge, middle + nudge, low + nudge]
        result.append(low + (high - low) * rng.randrange(2**20) / 2**20)
    result += [finite[-1] * 3 / 2, finite[-1] * 100, finite[1] / 2**9]
    result = [v for v in result if v != 0 and Fraction(float(v)) == v and float(v) != math.inf]
    return (result + [-v for v in result])


@pytest.mark.parametrize("saturation", ["none", "finite"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SMALL)
def test_every_mode_is_that_of_fractions(name, mode, saturation):
    model = MODELS[name]
    exact = cases(name)
    x = np.array([float(v) for v in exact])
    got = mp.to_float(mp.round_to(x, name, rounding=mode, saturation=saturation))
    for value, number in zip(exact, got):
        negative, magnitude, _ = model.round(value, mode, saturation)
        if magnitude == 0 and model.kind == "fnuz":
            negative = False
        assert as_model(number) == (negative and magnitude != NAN, magnitude), (value, mode)


@pytest.mark.parametrize("mode", MODES)
def test_flags(mode):
    for name in ("half", "float8_e5m2", "float8_e4m3fn"):
        for value in cases(name)[::9]:
            _, _, flags = MODELS[name].round(value, mode)
            _, raised = mp.round_with_flags(float(value), name, rounding=mode)
            assert (mp.Flags.INEXACT in raised) == ("INEXACT" in flags), (name, value)
            assert (mp.Flags.OVERFLOW in raised) == ("OVERFLOW" in flags), (name, value)
    assert mp.round_with_flags(1.5, "half") == (np.float16(1.5), mp.Flags.NONE)
    assert mp.round_with_flags(1e-10, "half")[1] == mp.Flags.INEXACT | mp.Flags.UNDERFLOW
    assert mp.round_with_flags(2.0**-24, "half")[1] == mp.Flags.NONE
    # Just below the smallest normal number: tiny before rounding, not after.
    x = 2.0**-14 * (1 - 2.0**-13)
    assert mp.round_with_flags(x, "half")[1] == mp.Flags.INEXACT
    assert mp.round_with_flags(x, "half", tininess="before_rounding")[1] == mp.Flags.INEXACT | mp.Flags.UNDERFLOW
    signalling = np.array([0x7F800001], np.uint32).view(np.float32)
    assert mp.round_with_flags(signalling, "half")[1] == mp.Flags.INVALID


def test_subnormals_and_nan():
    x = np.array([2.0**-15, -(2.0**-24), 1.0])
    np.testing.assert_array_equal(mp.round_to(x, "half", subnormals="flush_results"), np.array([0, -0.0, 1], np.float16))
    np.testing.assert_array_equal(mp.round_to(x, "half", subnormals="gradual"), x.astype(np.float16))
    assert mp.round_to(np.nan, "float4_e2m1fn") == 6
    assert mp.round_to(np.nan, "float4_e2m1fn", without_nan="zero") == 0
    negative = np.array([0xFFC00000], np.uint32).view(np.float32)
    assert mp.round_to(negative, "half").view(np.uint16) == 0xFE00
    assert mp.round_to(negative, "half", nan="canonical").view(np.uint16) == 0x7E00
    assert mp.round_to(np.inf, "float8_e5m2", saturation="finite") == 57344
    assert mp.round_to(np.inf, "float8_e5m2", saturation="propagate") == np.inf
    np.testing.assert_array_equal(mp.round_to([1.0, 3.0, 6.0, 1e-300], "float8_e8m0fnu").astype(float), [1, 2, 8, 2.0**-127])


def test_tfloat32_and_float():
    x = np.random.default_rng(2).standard_normal(1000).astype(np.float32)
    down = mp.round_to(x, "tfloat32", rounding="toward_zero")
    assert down.dtype == np.float32
    np.testing.assert_array_equal(down.view(np.uint32), x.view(np.uint32) & 0xFFFFE000)
    d = np.random.default_rng(3).standard_normal(1000)
    np.testing.assert_array_equal(mp.round_to(d, "float"), d.astype(np.float32))
    up = mp.round_to(d, np.float32, rounding="upward")
    assert (up >= d).all() and (np.nextafter(up, np.float32(-np.inf)) < d).all()
    np.testing.assert_array_equal(mp.round_to(d, "double"), d)


@pytest.mark.parametrize("name, code", [("bfloat16", 0x3F85), ("float8_e4m3fn", 0x35), ("float4_e2m1fn", 5)])
def test_stochastic_rounding(name, code):
    low, high = MODELS[name].finite[code:code + 2]
    x = np.full(40_000, float(low + (high - low) * Fraction(5, 16)), np.float64)
    got = mp.round_stochastic(x, name, seed=7)
    assert set(np.unique(mp.to_float(got))) == {float(low), float(high)}
    share = np.mean(mp.to_float(got) == float(high))
    assert abs(share - 5 / 16) < 4 * math.sqrt(5 / 16 * 11 / 16 / x.size)
    bits = f"u{got.dtype.itemsize}"
    # The same whatever the threads, and in parts; other seeds have other bits.
    np.testing.assert_array_equal(got.view(bits), mp.round_stochastic(x, name, 7, threads=3).view(bits))
    np.testing.assert_array_equal(got[1000:].view(bits), mp.round_stochastic(x[1000:], name, 7, first_index=1000).view(bits))
    assert (got.view(bits) != mp.round_stochastic(x, name, 8).view(bits)).any()
    # With flags element by element, the same bits.
    slow, flags = mp.round_with_flags(x[:2000], name, rounding="stochastic_a", seed=7)
    np.testing.assert_array_equal(got[:2000].view(bits), slow.view(bits))
    assert flags == mp.Flags.INEXACT
    # With few random bits the fraction that they see decides, and 3/16 is not seen.
    coarse = np.full(64, float(low + (high - low) * Fraction(3, 16)))
    assert (mp.to_float(mp.round_stochastic(coarse, name, 1, random_bits=2)) == float(low)).all()


def test_arguments():
    assert mp.round_to(np.ones((2, 3)), "half").shape == (2, 3)
    assert mp.round_to(1, "half").shape == ()
    assert mp.round_to([1, 2], "bfloat16").dtype == ml_dtypes.bfloat16
    assert mp.round_to(np.ones((4, 6))[:, ::2], ml_dtypes.float8_e5m2).shape == (4, 3)
    np.testing.assert_array_equal(mp.round_to(np.arange(6).reshape(2, 3).T, "half"), np.arange(6).reshape(2, 3).T)
    assert mp.round_to(np.array([1.5], ">f4"), "half") == 1.5
    assert mp.round_to(np.array([True]), "half") == 1
    assert mp.round_to(np.zeros(0), "half").size == 0
    assert mp.round_to(mp.round_to([0.1], "bfloat16"), "half").dtype == np.float16
    assert mp.to_float(np.array([0x3C00], np.uint16), "half") == 1


@pytest.mark.parametrize("call, error, words", [
    (lambda: mp.round_to(1, "fp7"), ValueError, "format is 'fp7'; it must be one of half, bfloat16"),
    (lambda: mp.round_to(1, np.complex64), ValueError, "format is"),
    (lambda: mp.round_to(1, "half", rounding="up"), ValueError, "rounding is 'up'; it must be one of nearest_even"),
    (lambda: mp.round_to(1, "half", saturation="yes"), ValueError, "saturation is 'yes'"),
    (lambda: mp.round_to(1, "half", subnormals=0), ValueError, "subnormals is 0"),
    (lambda: mp.round_to(1j, "half"), TypeError, "x is an array of complex128"),
    (lambda: mp.round_to(["a"], "half"), TypeError, "x is an array of"),
    (lambda: mp.round_to([2**60 + 1], "half"), ValueError, "x has integers beyond"),
    (lambda: mp.round_to(1, "half", threads=0), ValueError, "threads is 0; it must be from 1 to"),
    (lambda: mp.round_to(1, "half", threads=1.5), TypeError, "threads is 1.5; it must be an integer"),
    (lambda: mp.round_to(1, "half", rounding="stochastic_a"), ValueError, "seed is None; it must be given"),
    (lambda: mp.round_to(1, "half", seed=3), ValueError, "seed is 3; it must be None"),
    (lambda: mp.round_stochastic(1, "half", -1), ValueError, "seed is -1"),
    (lambda: mp.round_stochastic(1, "half", 1, random_bits=33), ValueError, "random_bits is 33; it must be from 1 to 32"),
    (lambda: mp.round_stochastic(1, "half", 1, first_index=2**64), ValueError, "first_index is"),
    (lambda: mp.to_float(np.ones(2)), ValueError, "format is 'double'"),
    (lambda: mp.to_float(np.ones(2, np.uint8), "half"), TypeError, "x is an array of uint8; it must be of float16 or uint16"),
])
def test_errors_name_the_argument(call, error, words):
    with pytest.raises(error, match=words.replace("(", r"\(")):
        call()
