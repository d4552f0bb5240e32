// SPDX-License-Identifier: MIT
/// \file
/// Remainders of codes, by integer division of significands.
#pragma once

#include <mp/numbers/format/exact_arithmetic.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// How the quotient becomes an integer.
enum class quotient : unsigned char { nearest_even, toward_zero };

/// x - n y. Significands have at most 31 bits.
///
/// Where x has the larger exponent, its significand is shifted up to y's exponent 31 bits at a time, and what
/// y goes into is taken away after each step: the parity of n is that of the last partial quotient, since all
/// earlier ones are multiplied by two or more. Where y has the larger exponent by 32 or more, x is less than
/// half of y.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> remainder_bits(storage_of<Format> a, storage_of<Format> b,
                                                           quotient kind, Context&& context) {
    a = operand<Format>(a, context);
    b = operand<Format>(b, context);
    const category kind_a = categorize<Format>(a);
    const category kind_b = categorize<Format>(b);
    if (kind_a == category::nan || kind_b == category::nan) return propagate_nan<Format>(a, b, context);
    if (kind_a == category::infinite || kind_b == category::zero) return invalid_operation<Format>(context);
    if (kind_a == category::zero) return a;
    const exact_value x = unpack<Format>(a);
    if (kind_b == category::infinite) return round_and_pack<Format>(x, context);
    const exact_value y = unpack<Format>(b);
    int steps = x.exponent - y.exponent;
    if (steps <= -32) return round_and_pack<Format>(x, context);

    const std::uint64_t divisor = steps < 0 ? y.significand << -steps : y.significand;
    std::uint64_t rest = x.significand % divisor;
    bool odd = (x.significand / divisor) % 2 != 0;
    while (steps > 0) {
        const int step = steps < 31 ? steps : 31;
        rest <<= step;
        odd = (rest / divisor) % 2 != 0;
        rest %= divisor;
        steps -= step;
    }
    const int exponent = x.exponent < y.exponent ? x.exponent : y.exponent;
    bool negative = x.negative;
    if (kind == quotient::nearest_even && (2 * rest > divisor || (2 * rest == divisor && odd))) {
        rest = divisor - rest;
        negative = !negative;
    }
    if (rest == 0) return pack_zero<Format>(x.negative, context);
    return round_and_pack<Format>({negative, exponent, rest}, context);
}

}}  // namespace mp::detail
