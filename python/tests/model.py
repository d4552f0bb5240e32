# SPDX-License-Identifier: MIT
"""Formats and rounding once more, in fractions, from the definitions: what the package is judged by. Shares no code with it."""

from fractions import Fraction

INF, NAN = "inf", "nan"


class Model:
    """A format: exponent and fraction bits, bias, and what the codes of the largest exponent mean.

    kind: "ieee"; "fn", whose last code is NaN; "fnuz", whose minus zero is NaN; "finite"; "scale", 2^(code - 127)."""

    def __init__(self, exponent_bits, fraction_bits, kind, bias=None):
        self.fraction_bits, self.kind = fraction_bits, kind
        self.bias = 2 ** (exponent_bits - 1) - 1 + (kind == "fnuz") if bias is None else bias
        self.signed = kind != "scale"
        self.magnitude_bits = exponent_bits + fraction_bits
        self.codes = 2 ** (self.magnitude_bits + self.signed)
        self.values = [self._value(c) for c in range(2**self.magnitude_bits)]
        #: Finite magnitudes in ascending order, whose places are their codes.
        self.finite = [v for v in self.values if v not in (INF, NAN)]
        self.first = 0

    def _value(self, code):
        """Of a magnitude's code."""
        if self.kind == "scale":
            return NAN if code == 255 else Fraction(2) ** (code - 127)
        fraction = code % 2**self.fraction_bits
        exponent = code >> self.fraction_bits
        top = 2 ** (self.magnitude_bits - self.fraction_bits) - 1
        if self.kind == "ieee" and exponent == top:
            return NAN if fraction else INF
        if self.kind == "fn" and code == 2**self.magnitude_bits - 1:
            return NAN
        if exponent == 0:
            return Fraction(fraction, 2**self.fraction_bits) * Fraction(2) ** (1 - self.bias)
        return (1 + Fraction(fraction, 2**self.fraction_bits)) * Fraction(2) ** (exponent - self.bias)

    def decode(self, code):
        """(negative, magnitude) of a code; the sign of NaN does not count."""
        negative, magnitude = divmod(code, 2**self.magnitude_bits)
        if self.kind == "fnuz" and negative and magnitude == 0:
            return False, NAN
        return bool(negative), self.values[magnitude]

    def round(self, x, mode, saturation="none", random=0, bits=0):
        """(negative, magnitude) and flags of a Fraction that is not zero, in one of the modes; to nearest even of a tie, and
        for overflow, the next number beyond the largest is what it would be without bound."""
        negative, m = x < 0, abs(x)
        if not self.signed and negative:
            raise NotImplementedError
        low, even = self._below(m)
        step = self._step(m)
        high = low + step
        exact = m == low
        where = (m - low) / step
        away = {
            "nearest_even": where > Fraction(1, 2) or (where == Fraction(1, 2) and not even),
            "nearest_away": where >= Fraction(1, 2),
            "toward_zero": False,
            "upward": not negative,
            "downward": negative,
            "to_odd": even,
            "stochastic_a": int(where * 2**bits) + random >= 2**bits,
        }[mode]
        rounded = low if exact or not away else high
        largest = self.finite[-1]
        flags = set() if exact else {"INEXACT"}
        if rounded > largest:
            flags |= {"OVERFLOW", "INEXACT"}
            if saturation == "none" and (mode not in ("toward_zero", "to_odd")):
                to_largest = mode in ("upward", "downward") and not away
                if not to_largest:
                    return (negative, self._infinity(), flags)
            return (negative, largest, flags)
        return (negative, rounded, flags)

    def _infinity(self):
        return INF if self.kind == "ieee" else self.finite[-1] if self.kind == "finite" else NAN

    def _exponent(self, m):
        e = m.numerator.bit_length() - m.denominator.bit_length()
        return e if Fraction(2) ** e <= m else e - 1

    def _step(self, m):
        return Fraction(2) ** (max(self._exponent(m), 1 - self.bias) - self.fraction_bits)

    def _below(self, m):
        """The largest number (without bound) not above m, and whether its code is even."""
        step = self._step(m)
        low = (m // step) * step
        return low, (m // step) % 2 == 0


MODELS = {
    "half": Model(5, 10, "ieee"), "bfloat16": Model(8, 7, "ieee"), "float8_e4m3fn": Model(4, 3, "fn"),
    "float8_e5m2": Model(5, 2, "ieee"), "float8_e4m3": Model(4, 3, "ieee"), "float8_e3m4": Model(3, 4, "ieee"),
    "float8_e4m3fnuz": Model(4, 3, "fnuz"), "float8_e5m2fnuz": Model(5, 2, "fnuz"),
    "float8_e4m3b11fnuz": Model(4, 3, "fnuz", bias=11), "float6_e2m3fn": Model(2, 3, "finite"),
    "float6_e3m2fn": Model(3, 2, "finite"), "float4_e2m1fn": Model(2, 1, "finite"), "float8_e8m0fnu": Model(8, 0, "scale"),
}
