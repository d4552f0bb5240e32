// SPDX-License-Identifier: MIT
/// \file
/// erf and erfc.
///
/// Below 1/2, erf is a polynomial. From there on erfc(x) = e^(-x^2) h(x) / (1 + 2x), where h varies only
/// between 1.1 and 1.3 and is smooth in v = (x - 4) / (x + 3), which runs through [-1, 1): one Chebyshev
/// series for all x (after J. Schonfelder, "Chebyshev expansions for the error and related functions", 1978).
#pragma once

#include <mp/numbers/format/math/exponential.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Two neighbouring terms of Clenshaw's recurrence.
struct clenshaw_terms {
    std::int64_t first = 0;
    std::int64_t second = 0;
};

/// The sum of c_k T_k(v) by Clenshaw's recurrence, from the last coefficient on; v in units of 2^-63.
template <std::int64_t First, std::int64_t... Rest>
MP_HOST_DEVICE constexpr clenshaw_terms clenshaw(std::int64_t v) {
    if constexpr (sizeof...(Rest) == 0) {
        return {First, 0};
    } else {
        const clenshaw_terms last = clenshaw<Rest...>(v);
        const auto doubled = signed_product(last.first, v, 62);
        return {First + doubled - last.second, last.first};
    }
}
template <std::int64_t First, std::int64_t... Rest>
MP_HOST_DEVICE constexpr std::int64_t chebyshev_sum(std::int64_t v) {
    const clenshaw_terms last = clenshaw<Rest...>(v);
    const auto product = signed_product(last.first, v, 63);
    return First + product - last.second;
}

/// erf(x) for |x| < 1/2: x times a polynomial in x^2 through the Chebyshev nodes of [0, 1/4], error 2^-72
/// before rounding.
MP_HOST_DEVICE constexpr approximation small_erf(const approximation& x) {
    return x * approximate(alternating_polynomial<0x906eba8214db688d, 0x3024e8d606f3cd83, 0x0e71790d0215f027,
                                                  0x037059c625113e41, 0x00ab2de6872fad03, 0x001c02db3f9d6c71,
                                                  0x0003f34649464f56, 0x00007d3473fcb2b0, 0x00000dce8cfb325a,
                                                  0x0000015d7686c510, 0x0000001c60ae6747>(to_fixed(x * x)),
                           -63);
}

/// erfc(x) for x >= 1/2. The coefficients of h, in units of 2^-61, are the values at 61 Chebyshev nodes
/// transformed; those left out are below 2^-62. Relative error 2^-55.
MP_HOST_DEVICE constexpr approximation large_erfc(const approximation& x) {
    const approximation v = (x - approximate(4)) / (x + approximate(3));
    const std::uint64_t fixed = to_fixed(v.scaled(-1));
    const auto magnitude = static_cast<std::int64_t>(fixed - (fixed >> 63));  // -1 itself would not fit
    const std::int64_t sum =
        chebyshev_sum<2797259016153174898, -166608078961863196, -60694152420506608, 44241261040464816,
                      -15408450749570533, 3579324835466296, -543525436176665, 36179973171344, 4966499270910,
                      -1386405317302, 31947340347, 31303696925, -3013960964, -706448796, 116741921, 18562567,
                      -4034937, -607953, 136274, 24324, -4435, -1099, 127, 52, -2, -2>(
            v.negative ? -magnitude : magnitude);
    const approximation scaled = approximate(static_cast<std::uint64_t>(sum), -61);
    return exp_of(-(x * x)) * (scaled / (x.scaled(1) + approximate_one()));
}

/// erf(x) for x that is not zero.
MP_HOST_DEVICE constexpr approximation erf_of(const approximation& x) {
    if (x.top() < -1) return small_erf(x);
    approximation result = approximate_one() - large_erfc(x.magnitude());
    result.negative = x.negative;
    return result;
}

MP_HOST_DEVICE constexpr approximation erfc_of(const approximation& x) {
    if (x.top() < -1) return approximate_one() - small_erf(x);
    const approximation result = large_erfc(x.magnitude());
    return x.negative ? approximate_one().scaled(1) - result : result;
}

using evaluate_erf = math_function<erf_of, special::signed_zero, special::signed_one, special::signed_one>;
using evaluate_erfc = math_function<erfc_of, special::one, special::two, special::zero>;

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The error function, 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x. Correctly rounded in every
/// mode for formats of up to 16 bits (all arguments of half, bfloat16 and the 8-bit formats checked); for
/// wider ones the error before rounding is below 2^-50 of the result.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> erf(basic_float<Format> x,
                                                               Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_erf>(x, context);
}

/// 1 - erf(x), without cancellation. Correctly rounded in every mode for formats of up to 16 bits (all
/// arguments checked, as for erf).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> erfc(basic_float<Format> x,
                                                                Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_erfc>(x, context);
}

}}  // namespace mp
