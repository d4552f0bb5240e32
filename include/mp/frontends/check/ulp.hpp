// SPDX-License-Identifier: MIT
/// \file
/// How far two numbers are apart, in units in the last place (ulp).
#pragma once

#include <mp/frontends/check/round_to_format.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The exponent of one ulp of Format at |x|: the weight of the last bit of the numbers in x's binade. Below
/// the smallest normal number it is the smallest subnormal, beyond the largest number that of the last
/// binade.
template <class Format>
int ulp_exponent(const exact_fraction& x) {
    using layout = layout_of<Format>;
    if (x.kind != category::finite) return layout::quantum_exponent;
    const std::int64_t rough = rough_log2(x);
    if (rough < layout::min_exponent) return layout::quantum_exponent;
    if (rough > layout::max_exponent) return layout::max_exponent - layout::fraction_bits;
    // rough is floor(log2 |x|) or one more, and within a few thousand now.
    const std::int64_t shift = rough - x.exponent;
    const bool reached = shift >= 0 ? x.numerator >= (x.denominator << static_cast<unsigned>(shift))
                                    : (x.numerator << static_cast<unsigned>(-shift)) >= x.denominator;
    const auto binade = static_cast<int>(reached ? rough : rough - 1);
    return (std::max)(binade, layout::min_exponent) - layout::fraction_bits;
}

/// Beyond 2^4000 and below 2^-4000 all values are alike in the eyes of every format; clamping them there
/// keeps the integers small.
inline exact_fraction clamped(exact_fraction x) {
    if (x.kind != category::finite) return x;
    const std::int64_t log2 = rough_log2(x);
    if (log2 > 4000 || log2 < -4000) {
        x.numerator = 1;
        x.denominator = 1;
        x.exponent = log2 > 0 ? 4000 : -4000;
    }
    return x;
}

struct distances {
    double absolute = 0;
    double relative = 0;  // zero when the reference is zero
    double ulp = 0;
};

/// The distances of finite x from a finite reference.
template <class Format>
distances distances_between(const exact_fraction& x, const exact_fraction& reference) {
    distances result;
    const exact_fraction nearest = clamped(reference);
    exact_fraction gap = difference(x, nearest);
    result.absolute = magnitude_to_double(gap);
    if (gap.kind == category::zero) return result;
    exact_fraction in_ulps = gap;
    in_ulps.exponent -= ulp_exponent<Format>(reference);
    result.ulp = magnitude_to_double(in_ulps);
    if (reference.kind == category::finite) {
        gap.numerator *= nearest.denominator;
        gap.denominator *= nearest.numerator;
        gap.exponent -= nearest.exponent;
        result.relative = magnitude_to_double(gap);
    }
    return result;
}

/// Whether x, which is not finite or whose reference is not, is what the reference rounds to; any NaN will
/// do.
template <number Value>
bool agrees_outside_range(Value x, const exact_fraction& reference) {
    const Value expected = number_from_bits<Value>(round_fraction<format_of_t<Value>>(reference, {}));
    return isnan(expected) ? isnan(x) : bits_of(expected) == bits_of(x);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The distance of a computed x from its exact reference, in ulps of x's format at the reference.
///
/// An ulp is the gap between the numbers of the format in the binade that holds the reference; among
/// subnormal numbers and at zero it is the smallest subnormal. A correctly rounded x is at most 0.5 away, or
/// 1 in a directed mode. The difference is exact, and rounded only in the returned double (about 1e-15
/// relative).
///
/// If x or the reference is not finite the distance is 0 when x is what the reference rounds to in
/// nearest-even (NaN for NaN, infinity for infinity or for a reference too large for the format), and
/// infinite otherwise.
template <number Value, reference_number Reference>
[[nodiscard]] double ulp_distance(Value x, const Reference& reference) {
    const detail::exact_fraction exact = detail::to_fraction(reference);
    const bool reference_is_finite =
        exact.kind == detail::category::zero || exact.kind == detail::category::finite;
    if (!isfinite(x) || !reference_is_finite) {
        return detail::agrees_outside_range(x, exact) ? 0 : std::numeric_limits<double>::infinity();
    }
    return detail::distances_between<detail::format_of_t<Value>>(detail::to_fraction(x), exact).ulp;
}

/// How many steps from one number of the format to the next lead from a to b. Zeros of both signs are the
/// same place; infinity is one step after the largest finite number. Two NaNs are 0 apart, a NaN and a number
/// the largest std::uint64_t.
template <number Value>
[[nodiscard]] constexpr std::uint64_t ulps_between(Value a, Value b) noexcept {
    using layout = layout_of<detail::format_of_t<Value>>;
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? 0 : ~std::uint64_t{0};
    const std::uint64_t steps_a = detail::bits_of(a) & layout::magnitude_mask;
    const std::uint64_t steps_b = detail::bits_of(b) & layout::magnitude_mask;
    if (signbit(a) != signbit(b)) return steps_a + steps_b;
    return steps_a > steps_b ? steps_a - steps_b : steps_b - steps_a;
}

}}  // namespace mp
