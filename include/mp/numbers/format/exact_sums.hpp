// SPDX-License-Identifier: MIT
/// \file
/// Sums of three exact values, whose exponents may lie as far apart as they like.
#pragma once

#include <mp/numbers/format/exact_arithmetic.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A sum with room for a carry again: add_exact() takes numbers with two free bits. A tail, or a bit that is
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

}}  // namespace mp::detail
