// SPDX-License-Identifier: MIT
/// \file
/// The logistic function of a number.
#pragma once

#include <mp/numbers/format/math/exponential.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// With t = e^-|x|: 1 / (1 + t), or t / (1 + t) for negative x, which neither cancels nor overflows.
struct fast_sigmoid : fast_function<fast_sigmoid> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        const double power = fast_power_of(-absolute(x) * thirty_two_log2_e).value();
        return select_double(x < 0, power, 1.0) / (1 + power);
    }
};

/// 1 / (1 + e^-x) is rational for x = 0 alone, where it is 1/2.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> sigmoid_bits(storage_of<Format> a, Context&& context) {
    a = operand<Format>(a, context);
    switch (categorize<Format>(a)) {
        case category::zero:
            return round_exact<Format>(false, 1, -1, context);
        case category::infinite:
            return is_negative<Format>(a) ? pack_zero<Format>(false, context)
                                          : round_exact<Format>(false, 1, 0, context);
        case category::nan:
            return convert_nan<Format, Format>(a, context);
        case category::finite:
            break;
    }
    const approximation x = approximate(unpack<Format>(a));
    const approximation power = exp_of(-x.magnitude());
    const approximation divisor = approximate_one() + power;
    return round_inexact<Format>((x.negative ? power : approximate_one()) / divisor, context);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The logistic function 1 / (1 + e^-x): 0 and 1 at the infinities, 1/2 at zero. Correctly rounded to nearest
/// even for formats of up to 16 bits (all arguments of half, bfloat16 and the 8-bit formats checked); for
/// wider ones the error before rounding is below 2^-55 of the result.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> sigmoid(basic_float<Format> x) noexcept {
    return basic_float<Format>::from_bits(detail::nearest_through_double<Format, detail::fast_sigmoid>(
        projection{}, [](auto a, auto&& c) { return detail::sigmoid_bits<Format>(a, c); }, x.bits()));
}

}}  // namespace mp
