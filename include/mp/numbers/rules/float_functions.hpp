// SPDX-License-Identifier: MIT
/// \file
/// Elementary functions in float for kernels: the same bits on every device and on the host, as they are
/// made of float operations that round to nearest even (fma among them), and call no library. Activations are
/// in <mp/numbers/rules/activations.hpp>; these serve the reductions of rows on GPUs.
///
/// Errors are given in units in the last place of the float result, as measured over the arguments that the
/// tests name; polynomials are those through the Chebyshev nodes of their interval.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/numbers/rules/float_float.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether x is NaN, told by bits.
MP_HOST_DEVICE MP_ALWAYS_INLINE bool is_float_nan(float x) {
    return (bit_cast<std::uint32_t>(x) & 0x7FFF'FFFFU) > 0x7F80'0000U;
}
/// Whether x is neither infinite nor NaN.
MP_HOST_DEVICE MP_ALWAYS_INLINE bool is_float_finite(float x) {
    return (bit_cast<std::uint32_t>(x) & 0x7F80'0000U) != 0x7F80'0000U;
}
/// x, or the nearer end of [-limit, limit]; `limit` or -limit for NaN.
MP_HOST_DEVICE MP_ALWAYS_INLINE float float_within(float x, float limit) {
    x = x < limit ? x : limit;
    return x > -limit ? x : -limit;
}
/// `result`, or x, made quiet, where x is NaN.
MP_HOST_DEVICE MP_ALWAYS_INLINE float nan_or(float x, float result) {
    return is_float_nan(x) ? bit_cast<float>(bit_cast<std::uint32_t>(x) | 0x0040'0000U) : result;
}
/// The NaN that stands for what is not defined.
MP_HOST_DEVICE MP_ALWAYS_INLINE float float_quiet_nan() {
    return bit_cast<float>(std::uint32_t{0x7FC0'0000});
}

/// 2^n for -126 <= n <= 127.
MP_HOST_DEVICE MP_ALWAYS_INLINE float float_power_of_two(int n) {
    return bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23);
}

/// significand * 2^exponent, which may be too small or too large for a float.
struct float_parts {
    float significand;
    int exponent;

    /// As a float: rounded once where that is subnormal, infinite where it is too large.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE float value() const {
        // Two factors, as 2^exponent alone may be no normal number. If already the first product is
        // subnormal, the second one is zero.
        int n = exponent < -250 ? -250 : exponent;
        n = n > 250 ? 250 : n;
        const int half = n / 2;
        return float_multiply(float_multiply(significand, float_power_of_two(half)),
                              float_power_of_two(n - half));
    }
};

/// e^(x + rest) for |x| <= 400 and a rest of less than an ulp of x: the significand lies between 0.7 and 1.42
/// and has an error of 1.1 units of its last place at most.
MP_HOST_DEVICE MP_ALWAYS_INLINE float_parts exponential_parts_within(float x, float rest) {
    const single_lane::reduced_argument reduced =
        single_lane::reduce_argument(single_lane::broadcast(x), single_lane::broadcast(rest));
    const auto n = static_cast<std::int32_t>(single_lane::as_uint32(reduced.shifted) -
                                             bit_cast<std::uint32_t>(single_lane::to_integer + 60));
    const float r = reduced.rest.value;
    const float p = single_lane::exponential_tail(reduced.rest).value;
    const float above_one = float_multiply_add(p, float_multiply(r, r), r);
    return {float_add(1.0F, above_one), n};
}

/// As exponential_parts_within(), for all x; the ends of the range, which no float tells from zero and
/// infinity, stand for what is beyond. `rest` counts only inside. For NaN the result is finite.
MP_HOST_DEVICE MP_ALWAYS_INLINE float_parts exponential_parts(float x, float rest = 0.0F) {
    const float bounded = float_within(x, 400.0F);
    return exponential_parts_within(bounded, same_value(bounded, x) ? rest : 0.0F);
}

/// e^(x + rest), subnormal results included: 1.1 units in the last place. Zero for -infinity.
MP_HOST_DEVICE MP_ALWAYS_INLINE float float_exponential(float x, float rest = 0.0F) {
    return exponential_parts(x, rest).value();
}

/// As float_exponential(), for x <= 80 where what is below e^-87 does not count: e^-87 stands for it.
MP_HOST_DEVICE MP_ALWAYS_INLINE float float_exponential_term(float x, float rest = 0.0F) {
    constexpr float smallest = -87.0F;
    const float_parts parts =
        exponential_parts_within(x > smallest ? x : smallest, x > smallest ? rest : 0.0F);
    return float_multiply(parts.significand, float_power_of_two(parts.exponent));
}

/// log(sum) for a sum of at least 1/2 and less than 2^120: less than one unit in the last place, and the rest
/// of the sum counts, as it has to near 1.
MP_HOST_DEVICE MP_ALWAYS_INLINE float float_logarithm(float_float sum) {
    constexpr float ln_2 = 0x1.62e430p-1F;
    constexpr float ln_2_rest = -0x1.05c610p-29F;
    constexpr std::uint32_t root_half = 0x3F35'04F3U;
    // sum = m 2^n with m from sqrt(1/2) to sqrt(2)
    const std::uint32_t bits = bit_cast<std::uint32_t>(sum.high) - root_half;
    const auto n = static_cast<std::int32_t>(bits) >> 23;
    const float m = bit_cast<float>((bits & 0x007F'FFFFU) + root_half);
    const float f = float_subtract(m, 1.0F);  // exact
    // (log(1 + f) - f + f^2 / 2) / f^3, good to 2^-28 of the logarithm
    float q = float_multiply_add(0x1.1d8ea6p-4F, f, -0x1.d635bcp-4F);
    q = float_multiply_add(q, f, 0x1.dea282p-4F);
    q = float_multiply_add(q, f, -0x1.fcf4c6p-4F);
    q = float_multiply_add(q, f, 0x1.23d21ap-3F);
    q = float_multiply_add(q, f, -0x1.555b4ap-3F);
    q = float_multiply_add(q, f, 0x1.999d5ap-3F);
    q = float_multiply_add(q, f, -0x1.fffffcp-3F);
    q = float_multiply_add(q, f, 0x1.555554p-2F);
    const float square = float_multiply(f, f);
    // What float loses of n ln 2 + f and what the rest of the sum adds come together with the small terms.
    const auto whole = static_cast<float>(n);
    const float_float of_power = exact_product(whole, ln_2);
    const float_float large = exact_sum(of_power.high, f);
    float tail = float_add(large.low, of_power.low);
    tail = float_multiply_add(whole, ln_2_rest, tail);
    tail = float_add(tail, float_divide(sum.low, sum.high));
    tail = float_add(tail, float_multiply(float_multiply_add(q, f, -0.5F), square));
    return float_add(large.high, tail);
}

}}  // namespace mp::detail
