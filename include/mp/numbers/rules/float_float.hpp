// SPDX-License-Identifier: MIT
/// \file
/// Sums of floats that do not lose what float rounds away: a float and the rest, which together hold some 48
/// bits. On most GPUs double arithmetic is 32 or 64 times as slow as float arithmetic; this is six additions.
///
/// Every operation is an instruction that rounds to nearest even and honours subnormals whatever nvcc's -ftz
/// and --use_fast_math say, and on the host one that no option of the compiler changes, so both have the same
/// bits.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/exponential.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// high + low. `low` is an error term: small, and without meaning where high is infinite or NaN.
struct float_float {
    float high = 0;
    float low = 0;

    /// The sum, rounded once. What is infinite or NaN is so in `high` already.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE float value() const {
        const bool finite = (bit_cast<std::uint32_t>(high) & 0x7F80'0000U) != 0x7F80'0000U;
        return finite ? float_add(high, low) : high;
    }
};

/// a + b exactly: the rounded sum and its error.
MP_HOST_DEVICE MP_ALWAYS_INLINE float_float exact_sum(float a, float b) {
    const single_lane::two_sum exact(single_lane::broadcast(a), single_lane::broadcast(b));
    return {exact.sum.value, exact.error.value};
}

/// a b exactly, unless it underflows.
MP_HOST_DEVICE MP_ALWAYS_INLINE float_float exact_product(float a, float b) {
    const float product = float_multiply(a, b);
    return {product, float_multiply_add(a, b, -product)};
}

/// Adds to a sum. The errors are added up apart from the sum: what comes out after n additions differs from
/// the exact sum by 2^-24 of it, and less than n^2 2^-48 times the sum of the magnitudes.
MP_HOST_DEVICE MP_ALWAYS_INLINE float_float operator+(float_float a, float b) {
    const float_float sum = exact_sum(a.high, b);
    return {sum.high, float_add(a.low, sum.low)};
}
/// a + b has the bits of b + a, except for the signs of zeros in `low`.
MP_HOST_DEVICE MP_ALWAYS_INLINE float_float operator+(float_float a, float_float b) {
    const float_float sum = exact_sum(a.high, b.high);
    return {sum.high, float_add(float_add(a.low, b.low), sum.low)};
}

/// Terms of a long sum after which it is normalized.
inline constexpr int pair_terms = 16;

/// The same sum with `high` rounded and `low` its error. Long sums are normalized after every pair_terms terms:
/// after n additions they differ from the exact sum by 2^-24 of it and n 2^-45 times the sum of the magnitudes,
/// however large n is, since what `low` collects in between is below 2^-20 of the largest partial sum.
MP_HOST_DEVICE MP_ALWAYS_INLINE float_float normalized(float_float sum) {
    auto high = single_lane::broadcast(sum.high);
    auto low = single_lane::broadcast(sum.low);
    single_lane::normalize_pair(high, low);
    return {high.value, low.value};
}

/// sum / divisor with an error of some 2^-46 of it.
MP_HOST_DEVICE MP_ALWAYS_INLINE float_float divided(float_float sum, float divisor) {
    const float quotient = float_divide(sum.value(), divisor);
    const float rest = float_add(float_multiply_add(-quotient, divisor, sum.high), sum.low);
    return {quotient, float_divide(rest, divisor)};
}

/// 1 / sum with an error of some 2^-46 of it.
MP_HOST_DEVICE MP_ALWAYS_INLINE float_float reciprocal(float_float sum) {
    const float quotient = float_divide(1.0F, sum.value());
    const float rest = float_multiply_add(-quotient, sum.low, float_multiply_add(-quotient, sum.high, 1.0F));
    return {quotient, float_multiply(quotient, rest)};
}

/// x times a pair, rounded once and a little.
MP_HOST_DEVICE MP_ALWAYS_INLINE float product(float x, float_float factor) {
    return float_multiply_add(x, factor.high, float_multiply(x, factor.low));
}

}}  // namespace mp::detail
