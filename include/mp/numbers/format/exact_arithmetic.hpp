// SPDX-License-Identifier: MIT
/// \file
/// + - * / fma and sqrt on codes, by exact integer arithmetic and one rounding at the end. Right in every
/// projection and environment, for every format of up to 32 bits.
#pragma once

#include <mp/numbers/format/exact.hpp>

#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The integer that significands of intermediate results are held in. What 64 bits have to hold is worked out
/// at each operation; with more than 14 bits of precision they are too few for one of them.
template <class Format>
using exact_word = std::conditional_t<(layout_of<Format>::precision <= 14), std::uint64_t, uint128>;

template <class Word>
inline constexpr int bits_in = static_cast<int>(sizeof(Word)) * 8;

template <class Word>
MP_HOST_DEVICE constexpr exact_number<Word> widened(const exact_value& x) {
    return {x.negative, x.exponent, x.significand, x.sticky};
}

/// The same value in 64 bits; what does not fit makes it sticky.
MP_HOST_DEVICE constexpr exact_value to_64_bits(const exact_value& x) {
    return x;
}
MP_HOST_DEVICE constexpr exact_value to_64_bits(const exact_number<uint128>& x) {
    const auto high = static_cast<std::uint64_t>(x.significand >> 64);
    const auto low = static_cast<std::uint64_t>(x.significand);
    if (high == 0) return {x.negative, x.exponent, low, x.sticky};
    const int shift = 64 - leading_zeros(high);
    const auto kept = static_cast<std::uint64_t>(x.significand >> shift);
    const bool lost = (static_cast<uint128>(kept) << shift) != x.significand;
    return {x.negative, x.exponent + shift, kept, x.sticky || lost};
}

/// Shifts the significand up until `spare` zero bits are left above its highest bit.
template <class Word>
MP_HOST_DEVICE constexpr exact_number<Word> normalized(exact_number<Word> x, int spare = 2) {
    const int shift = leading_zeros(x.significand) - spare;
    x.significand <<= shift;
    x.exponent -= shift;
    return x;
}

/// Sum of two exact values whose significands leave at least 16 bits of Word free. The significand of the
/// result is zero when the sum is exactly zero.
///
/// The smaller term is shifted right to the exponent of the larger one; what falls out makes the sum sticky.
/// When the signs differ and something fell out, the difference lies strictly between two integers, so its
/// floor is one less. No bits that decide are lost: terms have at least 14 zero bits at the end once
/// normalised, so bits fall out only when the exponents are at least 14 apart, and then the result has all
/// bits of Word but four.
template <class Word>
MP_HOST_DEVICE constexpr exact_number<Word> add_exact(exact_number<Word> a, exact_number<Word> b) {
    a = normalized(a);
    b = normalized(b);
    if (a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand)) {
        const exact_number<Word> larger = b;
        b = a;
        a = larger;
    }
    const int distance = a.exponent - b.exponent;
    Word shifted = 0;
    bool sticky = true;
    if (distance < bits_in<Word>) {
        shifted = b.significand >> distance;
        sticky = static_cast<Word>(shifted << distance) != b.significand;
    }
    const Word significand =
        a.negative == b.negative ? a.significand + shifted : a.significand - shifted - (sticky ? 1 : 0);
    return {a.negative, a.exponent, significand, sticky};
}

/// The sign of an exact zero that came from terms of opposite signs (IEEE 754-2019, 6.3).
MP_HOST_DEVICE constexpr bool zero_sum_is_negative(const projection& p) {
    return p.round == rounding::downward;
}

/// The quiet NaN that an operation returns when an operand is NaN: that operand's, the first one's if both.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> propagate_nan(storage_of<Format> a, storage_of<Format> b,
                                                          Context&& context) {
    if (is_signaling<Format>(a) || is_signaling<Format>(b)) raise(context, status_flag::invalid);
    return convert_nan<Format, Format>(categorize<Format>(a) == category::nan ? a : b,
                                       projection_of(context));
}

/// -a. What has no negative becomes NaN; zero and NaN of a format without minus zero stay as they are.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> negate_bits(storage_of<Format> a) {
    using layout = layout_of<Format>;
    if (!layout::has_signed_zero) {
        const category kind = categorize<Format>(a);
        if (kind == category::zero || kind == category::nan) return a;
        if (!layout::is_signed) return pack_nan<Format>();
    }
    return static_cast<storage_of<Format>>(a ^ layout::sign_mask);
}

/// a + b, or a - b if b is to be negated.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> sum_bits(storage_of<Format> a, storage_of<Format> b,
                                                     bool negate_b, Context&& context) {
    using word = std::conditional_t<(layout_of<Format>::precision <= 24), std::uint64_t, uint128>;
    a = operand<Format>(a, context);
    b = operand<Format>(b, context);
    const category kind_a = categorize<Format>(a);
    const category kind_b = categorize<Format>(b);
    const bool negative_a = is_negative<Format>(a);
    const bool negative_b = is_negative<Format>(b) != negate_b;
    const bool zero_is_negative = zero_sum_is_negative(projection_of(context));
    if (kind_a == category::nan || kind_b == category::nan) return propagate_nan<Format>(a, b, context);
    if (kind_a == category::infinite) {
        if (kind_b == category::infinite && negative_a != negative_b)
            return invalid_operation<Format>(context);
        return pack_infinity<Format>(negative_a, context);
    }
    if (kind_b == category::infinite) return pack_infinity<Format>(negative_b, context);
    if (kind_a == category::zero && kind_b == category::zero) {
        return pack_zero<Format>(negative_a == negative_b ? negative_a : zero_is_negative, context);
    }
    exact_value x = unpack<Format>(kind_a == category::zero ? b : a);
    if (kind_a == category::zero) x.negative = negative_b;
    if (kind_a == category::zero || kind_b == category::zero) return round_and_pack<Format>(x, context);
    exact_value y = unpack<Format>(b);
    y.negative = negative_b;
    const exact_value sum = to_64_bits(add_exact(widened<word>(x), widened<word>(y)));
    if (sum.significand == 0) return pack_zero<Format>(zero_is_negative, context);
    return round_and_pack<Format>(sum, context);
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> add_bits(storage_of<Format> a, storage_of<Format> b,
                                                     Context&& context) {
    return sum_bits<Format>(a, b, false, context);
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> subtract_bits(storage_of<Format> a, storage_of<Format> b,
                                                          Context&& context) {
    return sum_bits<Format>(a, b, true, context);
}

/// The product of two significands has at most 62 bits.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> multiply_bits(storage_of<Format> a, storage_of<Format> b,
                                                          Context&& context) {
    a = operand<Format>(a, context);
    b = operand<Format>(b, context);
    const category kind_a = categorize<Format>(a);
    const category kind_b = categorize<Format>(b);
    const bool negative = is_negative<Format>(a) != is_negative<Format>(b);
    if (kind_a == category::nan || kind_b == category::nan) return propagate_nan<Format>(a, b, context);
    if (kind_a == category::infinite || kind_b == category::infinite) {
        if (kind_a == category::zero || kind_b == category::zero) return invalid_operation<Format>(context);
        return pack_infinity<Format>(negative, context);
    }
    if (kind_a == category::zero || kind_b == category::zero) return pack_zero<Format>(negative, context);
    const exact_value x = unpack<Format>(a);
    const exact_value y = unpack<Format>(b);
    return round_and_pack<Format>({negative, x.exponent + y.exponent, x.significand * y.significand},
                                  context);
}

/// The quotient is cut off with the remainder as sticky: at 62 - 14 = 48 bits or more from 64-bit words,
/// which is 14 + 34, and at 126 - 31 bits from 128-bit ones.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> divide_bits(storage_of<Format> a, storage_of<Format> b,
                                                        Context&& context) {
    using word = exact_word<Format>;
    a = operand<Format>(a, context);
    b = operand<Format>(b, context);
    const category kind_a = categorize<Format>(a);
    const category kind_b = categorize<Format>(b);
    const bool negative = is_negative<Format>(a) != is_negative<Format>(b);
    if (kind_a == category::nan || kind_b == category::nan) return propagate_nan<Format>(a, b, context);
    if (kind_a == category::infinite) {
        const bool zero_is_invalid = layout_of<Format>::follows_p3109 && kind_b == category::zero;
        if (kind_b == category::infinite || zero_is_invalid) return invalid_operation<Format>(context);
        return pack_infinity<Format>(negative, context);
    }
    if (kind_b == category::infinite) return pack_zero<Format>(negative, context);
    if (kind_b == category::zero) {
        if (layout_of<Format>::follows_p3109 || kind_a == category::zero)
            return invalid_operation<Format>(context);
        raise(context, status_flag::divide_by_zero);
        return pack_infinity<Format>(negative, projection_of(context));
    }
    if (kind_a == category::zero) return pack_zero<Format>(negative, context);
    const exact_number<word> x = normalized(widened<word>(unpack<Format>(a)));
    const exact_value y = unpack<Format>(b);
    const word quotient = x.significand / y.significand;
    const bool sticky = quotient * y.significand != x.significand;
    return round_and_pack<Format>(
        to_64_bits(exact_number<word>{negative, x.exponent - y.exponent, quotient, sticky}), context);
}

/// a * b + c, rounded once. The product may need twice the bits of a significand; see add_exact.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> fma_bits(storage_of<Format> a, storage_of<Format> b,
                                                     storage_of<Format> c, Context&& context) {
    using word = std::conditional_t<(layout_of<Format>::precision <= 24), std::uint64_t, uint128>;
    a = operand<Format>(a, context);
    b = operand<Format>(b, context);
    c = operand<Format>(c, context);
    const category kind_a = categorize<Format>(a);
    const category kind_b = categorize<Format>(b);
    const category kind_c = categorize<Format>(c);
    const bool negative = is_negative<Format>(a) != is_negative<Format>(b);
    const bool negative_c = is_negative<Format>(c);
    const bool zero_is_negative = zero_sum_is_negative(projection_of(context));
    if (is_signaling<Format>(c)) raise(context, status_flag::invalid);
    if (kind_a == category::nan || kind_b == category::nan) return propagate_nan<Format>(a, b, context);
    const bool infinite_product = kind_a == category::infinite || kind_b == category::infinite;
    const bool zero_product = kind_a == category::zero || kind_b == category::zero;
    if (kind_c == category::nan) return convert_nan<Format, Format>(c, projection_of(context));
    if (infinite_product) {
        if (zero_product || (kind_c == category::infinite && negative != negative_c))
            return invalid_operation<Format>(context);
        return pack_infinity<Format>(negative, context);
    }
    if (kind_c == category::infinite) return pack_infinity<Format>(negative_c, context);
    if (zero_product) {
        if (kind_c != category::zero) return round_and_pack<Format>(unpack<Format>(c), context);
        return pack_zero<Format>(negative == negative_c ? negative : zero_is_negative, context);
    }
    const exact_value x = unpack<Format>(a);
    const exact_value y = unpack<Format>(b);
    const exact_value product{negative, x.exponent + y.exponent, x.significand * y.significand};
    if (kind_c == category::zero) return round_and_pack<Format>(product, context);
    const exact_value sum = to_64_bits(add_exact(widened<word>(product), widened<word>(unpack<Format>(c))));
    if (sum.significand == 0) return pack_zero<Format>(zero_is_negative, context);
    return round_and_pack<Format>(sum, context);
}

/// floor(sqrt(x)), digit by digit.
template <class Word>
MP_HOST_DEVICE constexpr Word integer_sqrt(Word x) {
    Word root = 0;
    for (Word bit = Word{1} << (bits_in<Word> / 2 - 1); bit != 0; bit >>= 1) {
        const Word candidate = root | bit;
        if (candidate * candidate <= x) root = candidate;
    }
    return root;
}

/// The root of a significand that fills Word, or all of it but a bit, fills half of Word: 32 bits, or 64
/// where more are needed. What is left over is sticky.
template <class Word>
MP_HOST_DEVICE constexpr exact_value sqrt_exact(const exact_value& x) {
    exact_number<Word> scaled = normalized(widened<Word>(x), 0);
    if (scaled.exponent % 2 != 0) {
        scaled.significand >>= 1;  // exact: the bits at the end are zero
        scaled.exponent += 1;
    }
    const Word root = integer_sqrt(scaled.significand);
    return {false, scaled.exponent / 2, static_cast<std::uint64_t>(root), root * root != scaled.significand};
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> sqrt_bits(storage_of<Format> a, Context&& context) {
    a = operand<Format>(a, context);
    const category kind = categorize<Format>(a);
    if (kind == category::nan) return convert_nan<Format, Format>(a, context);
    if (kind == category::zero) return a;
    if (is_negative<Format>(a)) return invalid_operation<Format>(context);
    if (kind == category::infinite) return pack_infinity<Format>(false, context);
    const exact_value x = unpack<Format>(a);
    const bool half_a_word =
        layout_of<Format>::precision <= 24 && !is_stochastic(projection_of(context).round);
    return round_and_pack<Format>(half_a_word ? sqrt_exact<std::uint64_t>(x) : sqrt_exact<uint128>(x),
                                  context);
}

// Sums of three exact values, whose exponents may lie as far apart as they like.

/// A sum with spare bits for a carry again: add_exact() takes numbers with two free bits. A tail, or a bit that is
/// shifted out, is left as a last bit of one.
MP_HOST_DEVICE constexpr exact_number<uint128> with_room(exact_number<uint128> x) {
    const uint128 lost = (x.significand & 1) | (x.sticky ? 1 : 0);
    if (leading_zeros(x.significand) < 2) {
        x.significand >>= 1;
        ++x.exponent;
    }
    x.significand |= lost;
    x.sticky = false;
    return x;
}

/// a + b + c of significands of up to 64 bits, of which any may be zero; the significand of the result is
/// zero when the sum is.
///
/// Where the two terms of the largest exponents are close, their sum is exact, and the third one is added as
/// add_exact() adds. Where they are far apart, they cannot cancel, and the smaller two are added first: if
/// that sum has a tail, a bit at its end stands for it, which ends far below the largest term.
MP_HOST_DEVICE constexpr exact_number<uint128> sum_of_three(exact_number<uint128> a, exact_number<uint128> b,
                                                            exact_number<uint128> c) {
    const auto order = [](exact_number<uint128>& x, exact_number<uint128>& y) {
        const bool swap =
            x.significand == 0 || (y.significand != 0 && x.exponent - leading_zeros(x.significand) <
                                                             y.exponent - leading_zeros(y.significand));
        if (!swap) return;
        const exact_number<uint128> z = x;
        x = y;
        y = z;
    };
    order(a, b);
    order(b, c);
    order(a, b);
    if (b.significand == 0) return a;
    if (c.significand == 0) return add_exact(a, b);
    const int distance =
        a.exponent - leading_zeros(a.significand) - (b.exponent - leading_zeros(b.significand));
    if (distance <= 40) {
        const exact_number<uint128> sum = add_exact(a, b);
        return sum.significand == 0 ? c : add_exact(with_room(sum), c);
    }
    const exact_number<uint128> smaller = add_exact(b, c);
    if (smaller.significand == 0) return a;
    return add_exact(a, with_room(smaller));
}

// Remainders of codes, by integer division of significands.

/// How the quotient becomes an integer.
enum class quotient : unsigned char { nearest_even, toward_zero };

/// x - n y, whose significand is zero if it is, and the last bits of n.
struct exact_remainder {
    exact_value rest;
    std::uint64_t quotient;
};

/// x - n y for x and y of any sign. Word has twice the bits of the significands.
///
/// Where x has the larger exponent, its significand is shifted up to y's exponent by half a word at a time,
/// and what y goes into is taken away after each step; quotients of earlier steps are shifted along, modulo
/// 2^64. Where y is more than twice as large as x, x is less than half of y.
template <class Word>
MP_HOST_DEVICE constexpr exact_remainder remainder_of(const exact_value& x, const exact_value& y,
                                                      quotient kind) {
    constexpr int most = bits_in<Word> / 2 - 1;
    const int top_x = x.exponent - leading_zeros(x.significand);
    const int top_y = y.exponent - leading_zeros(y.significand);
    if (top_x < top_y - 1) return {x, 0};
    int steps = x.exponent - y.exponent;
    const Word divisor = steps < 0 ? static_cast<Word>(y.significand) << -steps : Word{y.significand};
    Word rest = x.significand % divisor;
    auto count = static_cast<std::uint64_t>(x.significand / divisor);
    while (steps > 0) {
        const int step = steps < most ? steps : most;
        rest <<= step;
        count = (count << step) + static_cast<std::uint64_t>(rest / divisor);
        rest = rest % divisor;
        steps -= step;
    }
    const int exponent = x.exponent < y.exponent ? x.exponent : y.exponent;
    bool negative = x.negative;
    if (kind == quotient::nearest_even && (2 * rest > divisor || (2 * rest == divisor && (count & 1) != 0))) {
        rest = divisor - rest;
        negative = !negative;
        ++count;
    }
    return {{negative, exponent, static_cast<std::uint64_t>(rest)}, count};
}

/// The last bits of a quotient as remquo has them: 31 of them, with the sign of the quotient.
MP_HOST_DEVICE constexpr int quotient_bits(std::uint64_t count, bool negative) {
    const auto bits = static_cast<int>(count & 0x7fffffff);
    return negative ? -bits : bits;
}

/// x - n y; the last bits of n go to *bits unless that is null. Significands have at most 31 bits.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> remainder_bits(storage_of<Format> a, storage_of<Format> b,
                                                           quotient kind, Context&& context,
                                                           int* bits = nullptr) {
    a = operand<Format>(a, context);
    b = operand<Format>(b, context);
    if (bits != nullptr) *bits = 0;
    const category kind_a = categorize<Format>(a);
    const category kind_b = categorize<Format>(b);
    if (kind_a == category::nan || kind_b == category::nan) return propagate_nan<Format>(a, b, context);
    if (kind_a == category::infinite || kind_b == category::zero) return invalid_operation<Format>(context);
    if (kind_a == category::zero) return a;
    const exact_value x = unpack<Format>(a);
    if (kind_b == category::infinite) return round_and_pack<Format>(x, context);
    const exact_value y = unpack<Format>(b);
    const exact_remainder result = remainder_of<std::uint64_t>(x, y, kind);
    if (bits != nullptr) *bits = quotient_bits(result.quotient, x.negative != y.negative);
    if (result.rest.significand == 0) return pack_zero<Format>(x.negative, context);
    return round_and_pack<Format>(result.rest, context);
}

}}  // namespace mp::detail
