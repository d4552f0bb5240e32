// SPDX-License-Identifier: MIT
/// \file
/// + - * / fma and sqrt on codes, by exact integer arithmetic and one rounding at the end. Right in every
/// projection for formats of up to 24 bits of precision.
#pragma once

#include <mp/format/exact.hpp>

namespace mp::detail {

/// Shifts the significand up until its highest bit is bit 61, which leaves room for a carry and for the sign
/// of a difference.
MP_HOST_DEVICE constexpr exact_value normalized(exact_value x) {
    const int shift = leading_zeros(x.significand) - 2;
    x.significand <<= shift;
    x.exponent -= shift;
    return x;
}

/// Sum of two exact values of at most 48 significant bits each. The significand of the result is zero when
/// the sum is exactly zero.
///
/// The smaller term is shifted right to the exponent of the larger one; what falls out makes the sum sticky.
/// When the signs differ and something fell out, the difference lies strictly between two integers, so its
/// floor is one less. No bits that decide are lost: terms have at least 14 zero bits at the end once
/// normalised, so bits fall out only when the exponents are at least 14 apart, and then the result has at
/// least 60 bits.
MP_HOST_DEVICE constexpr exact_value add_exact(exact_value a, exact_value b) {
    a = normalized(a);
    b = normalized(b);
    if (a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand)) {
        const exact_value larger = b;
        b = a;
        a = larger;
    }
    const int distance = a.exponent - b.exponent;
    std::uint64_t shifted = 0;
    bool sticky = true;
    if (distance < 64) {
        shifted = b.significand >> distance;
        sticky = (shifted << distance) != b.significand;
    }
    const std::uint64_t significand =
        a.negative == b.negative ? a.significand + shifted : a.significand - shifted - (sticky ? 1 : 0);
    return {a.negative, a.exponent, significand, sticky};
}

/// The sign of an exact zero that came from terms of opposite signs (IEEE 754-2019, 6.3).
MP_HOST_DEVICE constexpr bool zero_sum_is_negative(projection p) {
    return p.round == rounding::downward;
}

template <class Format>
using storage_of = typename layout_of<Format>::storage;

/// The quiet NaN that an operation returns when an operand is NaN: that operand's, the first one's if both.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> propagate_nan(storage_of<Format> a, storage_of<Format> b) {
    return convert_nan<Format, Format>(categorize<Format>(a) == category::nan ? a : b);
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> negate_bits(storage_of<Format> a) {
    if (!layout_of<Format>::has_signed_zero) {
        const category kind = categorize<Format>(a);
        if (kind == category::zero || kind == category::nan) return a;
    }
    return static_cast<storage_of<Format>>(a ^ layout_of<Format>::sign_mask);
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> add_bits(storage_of<Format> a, storage_of<Format> b,
                                                     projection p) {
    const category kind_a = categorize<Format>(a);
    const category kind_b = categorize<Format>(b);
    const bool negative_a = is_negative<Format>(a);
    const bool negative_b = is_negative<Format>(b);
    if (kind_a == category::nan || kind_b == category::nan) return propagate_nan<Format>(a, b);
    if (kind_a == category::infinite) {
        if (kind_b == category::infinite && negative_a != negative_b) return pack_nan<Format>();
        return pack_infinity<Format>(negative_a, p);
    }
    if (kind_b == category::infinite) return pack_infinity<Format>(negative_b, p);
    if (kind_a == category::zero && kind_b == category::zero) {
        return pack_zero<Format>(negative_a == negative_b ? negative_a : zero_sum_is_negative(p));
    }
    if (kind_a == category::zero) return b;
    if (kind_b == category::zero) return a;
    const exact_value sum = add_exact(unpack<Format>(a), unpack<Format>(b));
    if (sum.significand == 0) return pack_zero<Format>(zero_sum_is_negative(p));
    return round_and_pack<Format>(sum, p);
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> subtract_bits(storage_of<Format> a, storage_of<Format> b,
                                                          projection p) {
    if (categorize<Format>(b) == category::nan) return propagate_nan<Format>(a, b);
    if (!layout_of<Format>::has_signed_zero && categorize<Format>(b) == category::zero) {
        return add_bits<Format>(a, b, p);
    }
    return add_bits<Format>(a, negate_bits<Format>(b), p);
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> multiply_bits(storage_of<Format> a, storage_of<Format> b,
                                                          projection p) {
    const category kind_a = categorize<Format>(a);
    const category kind_b = categorize<Format>(b);
    const bool negative = is_negative<Format>(a) != is_negative<Format>(b);
    if (kind_a == category::nan || kind_b == category::nan) return propagate_nan<Format>(a, b);
    if (kind_a == category::infinite || kind_b == category::infinite) {
        if (kind_a == category::zero || kind_b == category::zero) return pack_nan<Format>();
        return pack_infinity<Format>(negative, p);
    }
    if (kind_a == category::zero || kind_b == category::zero) return pack_zero<Format>(negative);
    const exact_value x = unpack<Format>(a);
    const exact_value y = unpack<Format>(b);
    return round_and_pack<Format>({negative, x.exponent + y.exponent, x.significand * y.significand}, p);
}

/// The quotient is cut off at 38 bits or more, with the remainder as sticky.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> divide_bits(storage_of<Format> a, storage_of<Format> b,
                                                        projection p) {
    const category kind_a = categorize<Format>(a);
    const category kind_b = categorize<Format>(b);
    const bool negative = is_negative<Format>(a) != is_negative<Format>(b);
    if (kind_a == category::nan || kind_b == category::nan) return propagate_nan<Format>(a, b);
    if (kind_a == category::infinite) {
        if (kind_b == category::infinite) return pack_nan<Format>();
        return pack_infinity<Format>(negative, p);
    }
    if (kind_b == category::infinite) return pack_zero<Format>(negative);
    if (kind_b == category::zero) {
        return kind_a == category::zero ? pack_nan<Format>() : pack_infinity<Format>(negative, p);
    }
    if (kind_a == category::zero) return pack_zero<Format>(negative);
    const exact_value x = normalized(unpack<Format>(a));
    const exact_value y = unpack<Format>(b);
    const std::uint64_t quotient = x.significand / y.significand;
    const bool sticky = quotient * y.significand != x.significand;
    return round_and_pack<Format>({negative, x.exponent - y.exponent, quotient, sticky}, p);
}

/// a * b + c, rounded once.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> fma_bits(storage_of<Format> a, storage_of<Format> b,
                                                     storage_of<Format> c, projection p) {
    const category kind_a = categorize<Format>(a);
    const category kind_b = categorize<Format>(b);
    const category kind_c = categorize<Format>(c);
    const bool negative = is_negative<Format>(a) != is_negative<Format>(b);
    const bool negative_c = is_negative<Format>(c);
    if (kind_a == category::nan || kind_b == category::nan) return propagate_nan<Format>(a, b);
    const bool infinite_product = kind_a == category::infinite || kind_b == category::infinite;
    const bool zero_product = kind_a == category::zero || kind_b == category::zero;
    if (kind_c == category::nan) return convert_nan<Format, Format>(c);
    if (infinite_product) {
        if (zero_product || (kind_c == category::infinite && negative != negative_c))
            return pack_nan<Format>();
        return pack_infinity<Format>(negative, p);
    }
    if (kind_c == category::infinite) return pack_infinity<Format>(negative_c, p);
    if (zero_product) {
        if (kind_c != category::zero) return c;
        return pack_zero<Format>(negative == negative_c ? negative : zero_sum_is_negative(p));
    }
    const exact_value x = unpack<Format>(a);
    const exact_value y = unpack<Format>(b);
    const exact_value product{negative, x.exponent + y.exponent, x.significand * y.significand};
    if (kind_c == category::zero) return round_and_pack<Format>(product, p);
    const exact_value sum = add_exact(product, unpack<Format>(c));
    if (sum.significand == 0) return pack_zero<Format>(zero_sum_is_negative(p));
    return round_and_pack<Format>(sum, p);
}

/// The root of a 62-bit or 61-bit integer has 31 bits; what is left over is sticky.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> sqrt_bits(storage_of<Format> a, projection p) {
    const category kind = categorize<Format>(a);
    if (kind == category::nan) return convert_nan<Format, Format>(a);
    if (kind == category::zero) return a;
    if (is_negative<Format>(a)) return pack_nan<Format>();
    if (kind == category::infinite) return pack_infinity<Format>(false, p);
    exact_value x = normalized(unpack<Format>(a));
    if (x.exponent % 2 != 0) {
        x.significand >>= 1;  // exact: the bits at the end are zero
        x.exponent += 1;
    }
    std::uint64_t root = 0;
    for (std::uint64_t bit = std::uint64_t{1} << 30; bit != 0; bit >>= 1) {
        const std::uint64_t candidate = root | bit;
        if (candidate * candidate <= x.significand) root = candidate;
    }
    return round_and_pack<Format>({false, x.exponent / 2, root, root * root != x.significand}, p);
}

}  // namespace mp::detail
