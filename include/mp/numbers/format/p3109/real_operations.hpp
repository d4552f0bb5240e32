// SPDX-License-Identifier: MIT
/// \file
/// Signs, roots, products with sums, minima and maxima of closed extended reals: sections 4.10 and 4.11 of
/// IEEE P3109. All are exact, or have 63 bits and more and are sticky.
#pragma once

#include <mp/numbers/format/math/power.hpp>
#include <mp/numbers/format/p3109/extended_real.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

constexpr extended_real real_identity(const extended_real& x) {
    return x;
}
constexpr extended_real real_magnitude(const extended_real& x) {
    return x.with_sign(false);
}
constexpr extended_real real_copy_sign(const extended_real& x, const extended_real& y) {
    return y.is_nan() ? y : x.with_sign(y.is_negative());
}
constexpr extended_real real_difference(const extended_real& x, const extended_real& y) {
    return real_sum(x, real_negative(y));
}
constexpr extended_real real_product_sum(const extended_real& x, const extended_real& y,
                                         const extended_real& z) {
    return real_sum(real_product(x, y), z);
}
constexpr extended_real real_reciprocal(const extended_real& x) {
    return real_quotient(real_integer(1), x);
}

constexpr extended_real real_root(const extended_real& x) {
    if (x.is_nan() || x.is_negative()) return real_nan();
    if (x.kind != category::finite) return x;
    return as_real(sqrt_exact<uint128>(to_64_bits(x.value)));
}

/// floor(2^n / x) has 127 or 128 bits with the n chosen here, and the whole part of its root is that of the
/// root of 2^n / x.
constexpr extended_real real_reciprocal_root(const extended_real& x) {
    if (x.is_nan() || x.is_zero() || x.is_negative()) return real_nan();
    if (x.is_infinite()) return {};
    const exact_value argument = without_trailing_zeros(to_64_bits(x.value));
    const uint128 divisor = argument.significand;
    uint128 quotient = divisor == 1 ? 1 : 0;
    uint128 rest = divisor == 1 ? 0 : 1;
    int n = 0;
    for (; (quotient >> 126) == 0 || (n + argument.exponent) % 2 != 0; ++n) {
        rest <<= 1;
        quotient <<= 1;
        if (rest >= divisor) {
            rest -= divisor;
            quotient |= 1;
        }
    }
    const std::uint64_t root = square_root(quotient);
    const bool exact = rest == 0 && static_cast<uint128>(root) * root == quotient;
    return as_real(exact_value{false, -(n + argument.exponent) / 2, root, !exact});
}

constexpr extended_real real_hypotenuse(const extended_real& x, const extended_real& y) {
    if (x.is_nan() || y.is_nan()) return real_nan();
    if (x.is_infinite() || y.is_infinite()) return real_infinity();
    if (x.is_zero()) return real_magnitude(y);
    if (y.is_zero()) return real_magnitude(x);
    return as_real(hypot_of(to_64_bits(x.value), to_64_bits(y.value)));
}

/// What a minimum or maximum does with NaN, and with infinities beside finite numbers.
enum class extremum_rule : unsigned char { propagate, number, finite };

/// The minima and maxima of 4.11: by magnitude, and where those are equal by value, if ByMagnitude.
template <bool Smaller, bool ByMagnitude, extremum_rule Rule>
constexpr extended_real real_extremum(const extended_real& x, const extended_real& y) {
    if (x.is_nan() || y.is_nan()) {
        if (Rule == extremum_rule::propagate) return real_nan();
        return x.is_nan() ? y : x;
    }
    if (Rule == extremum_rule::finite && x.is_finite() != y.is_finite()) return x.is_finite() ? x : y;
    int order = ByMagnitude ? compare_magnitudes(x, y) : 0;
    if (order == 0) order = compare_reals(x, y);
    return (order < 0) == Smaller ? x : y;
}

inline constexpr auto real_minimum = real_extremum<true, false, extremum_rule::propagate>;
inline constexpr auto real_maximum = real_extremum<false, false, extremum_rule::propagate>;
inline constexpr auto real_minimum_number = real_extremum<true, false, extremum_rule::number>;
inline constexpr auto real_maximum_number = real_extremum<false, false, extremum_rule::number>;
inline constexpr auto real_minimum_magnitude = real_extremum<true, true, extremum_rule::propagate>;
inline constexpr auto real_maximum_magnitude = real_extremum<false, true, extremum_rule::propagate>;
inline constexpr auto real_minimum_magnitude_number = real_extremum<true, true, extremum_rule::number>;
inline constexpr auto real_maximum_magnitude_number = real_extremum<false, true, extremum_rule::number>;
inline constexpr auto real_minimum_finite = real_extremum<true, false, extremum_rule::finite>;
inline constexpr auto real_maximum_finite = real_extremum<false, false, extremum_rule::finite>;

/// x limited to [lo, hi]; NaN if that is empty, or the interval of an infinity that bounds the wrong side.
constexpr extended_real real_clamp(const extended_real& x, const extended_real& lo, const extended_real& hi) {
    if (x.is_nan() || lo.is_nan() || hi.is_nan() || compare_reals(lo, hi) > 0) return real_nan();
    if (compare_reals(x, lo) <= 0) return lo;
    return compare_reals(x, hi) >= 0 ? hi : x;
}

}}  // namespace mp::detail
