// SPDX-License-Identifier: MIT
/// \file
/// Remainders of codes, by integer division of significands.
#pragma once

#include <mp/numbers/format/exact_arithmetic.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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
