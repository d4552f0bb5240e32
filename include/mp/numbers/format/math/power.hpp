// SPDX-License-Identifier: MIT
/// \file
/// pow, cbrt, rsqrt and hypot, and C23's powr, pown and rootn.
///
/// Roots and hypotenuses are algebraic: they are either exact, or farther from all numbers and midpoints of
/// the format than the error of the evaluation. For pow all exact cases are found by looking at the odd part
/// of x; see exact_power.
#pragma once

#include <mp/numbers/format/exact_arithmetic.hpp>
#include <mp/numbers/format/math/exponential.hpp>
#include <mp/numbers/format/math/logarithm.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// x^y where that is a number of up to 40 bits; a zero significand where it is not. x is positive and not
/// one.
///
/// Let x = o 2^e with o odd and y = n / 2^j in lowest terms. If o = 1, the power is 2^(e y), rational only
/// for an integer e y. If o > 1 and y < 0, it is a fraction with a power of o below the line, or irrational.
/// If y > 0, it is rational only if x is the 2^j-th power of a rational number, which is tested by taking j
/// square roots.
MP_HOST_DEVICE constexpr exact_value exact_power(const exact_value& base, const exact_value& exponent) {
    constexpr exact_value none{false, 0, 0};
    exact_value x = without_trailing_zeros(base);
    const exact_value y = without_trailing_zeros(exponent);
    if (x.significand == 1) {
        int power = x.exponent;
        int scale = y.exponent;
        for (; scale < 0 && power % 2 == 0; ++scale) power /= 2;
        if (scale < 0) return none;
        // |power| >= 1: what does not fit into 20 bits is beyond every format.
        const std::uint64_t magnitude =
            static_cast<std::uint64_t>(power < 0 ? -power : power) * (y.significand & ((1U << 20) - 1));
        const bool large = scale > 20 || (y.significand >> 20) != 0 || (magnitude >> 20) != 0 ||
                           ((magnitude << scale) >> 20) != 0;
        const int size = large ? 1 << 20 : static_cast<int>(magnitude << scale);
        return {false, (power < 0) != y.negative ? -size : size, 1};
    }
    if (y.negative || y.exponent < -5 || y.exponent > 5) return none;
    for (int i = y.exponent; i < 0; ++i) {
        const int shift = leading_zeros(x.significand) & ~1;
        const std::uint64_t root =
            square_root(static_cast<uint128>(x.significand << shift) << 64) >> (32 + shift / 2);
        if (x.exponent % 2 != 0 || root * root != x.significand) return none;
        x = {false, x.exponent / 2, root};
    }
    const std::uint64_t count = y.exponent > 0 ? y.significand << y.exponent : y.significand;
    if (count > 26) return none;  // 3^26 has more than 40 bits
    std::uint64_t product = 1;
    for (std::uint64_t i = 0; i < count; ++i) {
        const uint128 next = static_cast<uint128>(product) * x.significand;
        if (next >> 40 != 0) return none;
        product = static_cast<std::uint64_t>(next);
    }
    return {false, x.exponent * static_cast<int>(count), product};
}

/// x^y for positive x other than one and y other than zero.
///
/// The logarithm has a relative error below 2^-61, so that for |y log2 x| < 2^8 the power has one below
/// 2^-52. Over all pairs of half no inexact power comes closer than 2^-45 to a number or midpoint, and over
/// those of bfloat16 not closer than 2^-38, except for powers next to one, where the sign of the logarithm
/// decides. exhaustive/math_pairs.cpp runs through them.
MP_HOST_DEVICE constexpr exact_value power_of(const exact_value& x, const exact_value& y) {
    const exact_value exact = exact_power(x, y);
    if (exact.significand != 0) return exact;
    const approximation logarithm = log2_of(approximate(x)) * approximate(y);
    constexpr long_constant one{0x8000000000000000, 0, -127};
    return inexact(logarithm.top() < -12 ? approximate_one() + expm1_of(logarithm * approximate_ln2())
                                         : exp2_of(logarithm, one));
}

/// 1 for odd integers, 0 for even ones, -1 for others.
MP_HOST_DEVICE constexpr int parity(const exact_value& y) {
    const exact_value shortened = without_trailing_zeros(y);
    return shortened.exponent > 0 ? 0 : shortened.exponent == 0 ? 1 : -1;
}

/// Whether a value is 1 or -1.
MP_HOST_DEVICE constexpr bool is_unit(const number_parts& x) {
    if (x.kind != category::finite) return false;
    const exact_value shortened = without_trailing_zeros(x.value);
    return shortened.significand == 1 && shortened.exponent == 0;
}

/// Whether a power is one whatever the other operand is, NaN included.
MP_HOST_DEVICE constexpr bool power_is_one(const number_parts& x, const number_parts& y) {
    return y.kind == category::zero || (is_unit(x) && !x.negative);
}

/// x^y of values of which neither is NaN, and power_is_one() is false. Special cases: IEEE 754-2019, 9.2.1.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> power_of_parts(const number_parts& a, const number_parts& b,
                                                           Context&& context) {
    const bool unit = is_unit(a);
    if (b.kind == category::infinite) {
        if (unit) return round_exact<Format>(false, 1, 0, context);
        const bool large =
            a.kind == category::infinite || (a.kind == category::finite && approximate(a.value).top() >= 0);
        return large != b.negative ? pack_infinity<Format>(false, context)
                                   : pack_zero<Format>(false, context);
    }
    const int odd = parity(b.value);
    const bool negative = a.negative && odd == 1;
    if (a.kind == category::zero) {
        return b.negative ? pole<Format>(negative, context) : pack_zero<Format>(negative, context);
    }
    if (a.kind == category::infinite) {
        return b.negative ? pack_zero<Format>(negative, context) : pack_infinity<Format>(negative, context);
    }
    if (a.negative && odd < 0) return invalid_operation<Format>(context);
    if (unit) return round_exact<Format>(negative, 1, 0, context);
    exact_value x = a.value;
    x.negative = false;
    exact_value result = power_of(x, b.value);
    result.negative = negative;
    return round_and_pack<Format>(result, context);
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> pow_bits(storage_of<Format> a, storage_of<Format> b,
                                                     Context&& context) {
    a = operand<Format>(a, context);
    b = operand<Format>(b, context);
    if (is_signaling<Format>(a) || is_signaling<Format>(b)) return propagate_nan<Format>(a, b, context);
    const number_parts x = parts_of_code<Format>(a);
    const number_parts y = parts_of_code<Format>(b);
    if (power_is_one(x, y)) return round_exact<Format>(false, 1, 0, context);
    if (x.kind == category::nan || y.kind == category::nan) return propagate_nan<Format>(a, b, context);
    return power_of_parts<Format>(x, y, context);
}

/// The cube root of x = m 2^(3k) with m in [1, 8). A number or midpoint b differs from an inexact root by
/// |x - b^3| / (3 b^2) or more, at least 2^-50 of it for 16 bits of precision. Roots that are numbers have at
/// most 11 bits, as x has at most 31.
MP_HOST_DEVICE constexpr exact_value cbrt_of(const exact_value& argument) {
    const approximation x = approximate(argument).magnitude();
    const int remainder = ((x.top() % 3) + 3) % 3;
    const int third = (x.top() - remainder) / 3;
    const approximation reduced = x.scaled(-3 * third);
    constexpr long_constant one_third{0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaaa, -129};
    const approximation root = exp2_of(log2_of(reduced), one_third);
    const std::uint64_t nearest = ((root.significand >> 43) + 1) >> 1;
    const int exponent = root.exponent + 44;
    const approximation cube = approximate(nearest * nearest * nearest, 3 * exponent);
    if (cube.exponent == reduced.exponent && cube.significand == reduced.significand)
        return {argument.negative, exponent + third, nearest};
    return {argument.negative, root.exponent + third, root.significand, true};
}

using evaluate_cbrt =
    math_function<cbrt_of, special::signed_zero, special::signed_infinity, special::signed_infinity>;

/// 1 / sqrt(x) is rational, for x with a power of two below the line, only if x is an even power of two: an
/// odd factor would be below the line of the result.
MP_HOST_DEVICE constexpr function_value rsqrt_of(const exact_value& argument) {
    if (argument.negative) return special::invalid;
    const exact_value x = without_trailing_zeros(argument);
    if (x.significand == 1 && x.exponent % 2 == 0) return exact_value{false, -x.exponent / 2, 1};
    return approximate_one() / square_root(approximate(x));
}

using evaluate_rsqrt = math_function<rsqrt_of, special::two_sided_pole, special::invalid, special::zero>;

/// x^2 of a significand of up to 64 bits.
MP_HOST_DEVICE constexpr exact_number<uint128> square_of(const exact_value& x) {
    return {false, 2 * x.exponent, static_cast<uint128>(x.significand) * x.significand};
}

/// The root of a sum of squares: the sum has 126 bits, what does not fit is sticky, and so is the rest of the
/// root.
MP_HOST_DEVICE constexpr exact_value root_of_sum(exact_number<uint128> sum) {
    const int free = leading_zeros(sum.significand);
    const int shift = (sum.exponent - free) % 2 == 0 ? free : free - 1;
    sum.significand <<= shift;
    sum.exponent -= shift;
    const std::uint64_t root = square_root(sum.significand);
    const bool exact = static_cast<uint128>(root) * root == sum.significand && !sum.sticky;
    return {false, sum.exponent / 2, root, !exact};
}

/// sqrt(x^2 + y^2) of significands of up to 53 bits.
MP_HOST_DEVICE constexpr exact_value hypot_of(const exact_value& x, const exact_value& y) {
    return root_of_sum(add_exact(square_of(x), square_of(y)));
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> hypot_bits(storage_of<Format> a, storage_of<Format> b,
                                                       Context&& context) {
    a = operand<Format>(a, context);
    b = operand<Format>(b, context);
    const category kind_a = categorize<Format>(a);
    const category kind_b = categorize<Format>(b);
    const bool nan = kind_a == category::nan || kind_b == category::nan;
    if (is_signaling<Format>(a) || is_signaling<Format>(b) || (nan && layout_of<Format>::follows_p3109))
        return propagate_nan<Format>(a, b, context);
    if (kind_a == category::infinite || kind_b == category::infinite)
        return pack_infinity<Format>(false, context);
    if (nan) return propagate_nan<Format>(a, b, context);
    if (kind_a == category::zero && kind_b == category::zero) return pack_zero<Format>(false, context);
    if (kind_a == category::zero || kind_b == category::zero) {
        exact_value x = unpack<Format>(kind_a == category::zero ? b : a);
        x.negative = false;
        return round_and_pack<Format>(x, context);
    }
    return round_and_pack<Format>(hypot_of(unpack<Format>(a), unpack<Format>(b)), context);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// x^y, with the special cases of IEEE 754 and C: pow(x, 0) and pow(1, y) are 1 even for NaN. Correctly
/// rounded in every mode for formats of up to 16 bits (all pairs of half, bfloat16 and the 8-bit formats
/// checked).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> pow(basic_float<Format> x, basic_float<Format> y,
                                                               Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(detail::nearest_through_double<Format, detail::fast_pow>(
        context, [](auto a, auto b, auto&& c) { return detail::pow_bits<Format>(a, b, c); }, x.bits(),
        y.bits()));
}

/// The cube root. Correctly rounded in every mode for formats of up to 16 bits (by proof, and all arguments
/// of half, bfloat16 and the 8-bit formats checked).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> cbrt(basic_float<Format> x,
                                                                Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_cbrt, detail::fast_cbrt>(x, context);
}

/// 1 / sqrt(x), rounded once; infinity with the sign of x for zeros. Correctly rounded in every mode for
/// formats of up to 16 bits (by proof, and all arguments checked, as for cbrt).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> rsqrt(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_rsqrt, detail::fast_rsqrt>(x, context);
}

/// sqrt(x^2 + y^2) without overflow on the way; infinite if one operand is, even if the other is NaN.
/// Correctly rounded in every mode for all formats, by exact arithmetic.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> hypot(basic_float<Format> x, basic_float<Format> y,
                                                                 Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(detail::nearest_through_double<Format, detail::fast_hypot>(
        context, [](auto a, auto b, auto&& c) { return detail::hypot_bits<Format>(a, b, c); }, x.bits(),
        y.bits()));
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// x^y as e^(y log x), for values of which neither is NaN: IEEE 754-2019, 9.2.1.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> powr_of_parts(const number_parts& a, const number_parts& b,
                                                          Context&& context) {
    const bool at_end = a.kind == category::zero || a.kind == category::infinite;
    const bool unit = is_unit(a) && !a.negative;
    if (a.negative && a.kind != category::zero) return invalid_operation<Format>(context);
    if (at_end && b.kind == category::zero) return invalid_operation<Format>(context);
    if (unit && b.kind == category::infinite) return invalid_operation<Format>(context);
    if (unit || b.kind == category::zero) return round_exact<Format>(false, 1, 0, context);
    if (a.kind == category::zero) {
        if (!b.negative) return pack_zero<Format>(false, context);
        return b.kind == category::infinite ? pack_infinity<Format>(false, context)
                                            : pole<Format>(false, context);
    }
    return power_of_parts<Format>(a, b, context);
}

/// x^n of an integer n, with the special cases of pow.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> pown_bits(storage_of<Format> a, const number_parts& n,
                                                      Context&& context) {
    a = operand<Format>(a, context);
    if (is_signaling<Format>(a)) return convert_nan<Format, Format>(a, context);
    const number_parts x = parts_of_code<Format>(a);
    if (power_is_one(x, n)) return round_exact<Format>(false, 1, 0, context);
    if (x.kind == category::nan) return convert_nan<Format, Format>(a, context);
    return power_of_parts<Format>(x, n, context);
}

/// c with c^n = x, for odd x of at most 31 bits; 0 if there is none.
MP_HOST_DEVICE constexpr std::uint64_t integer_root(std::uint64_t x, std::uint64_t n) {
    if (x == 1 || n == 1) return x;
    if (n > 31) return 0;
    std::uint64_t root = 0;
    for (std::uint64_t bit = std::uint64_t{1} << 15; bit != 0; bit >>= 1) {
        const std::uint64_t candidate = root | bit;
        std::uint64_t power = 1;
        for (std::uint64_t i = 0; i < n && power <= x; ++i) power *= candidate;
        if (power == x) return candidate;
        if (power < x) root = candidate;
    }
    return 0;
}

/// The n-th root of x > 0. With x = o 2^e and odd o it is rational, and then a fraction with a power of two
/// below the line, only if n divides e and o is an n-th power; and o one for negative n.
MP_HOST_DEVICE constexpr exact_value root_of(const exact_value& argument, const exact_value& n) {
    const exact_value x = without_trailing_zeros(argument);
    const exact_value degree = without_trailing_zeros(n);
    const bool fits = degree.exponent < 32 && approximate(n).top() < 32;
    const std::uint64_t magnitude = fits ? degree.significand << degree.exponent : ~std::uint64_t{0};
    const auto power = static_cast<std::uint64_t>(x.exponent < 0 ? -x.exponent : x.exponent);
    if (power % magnitude == 0 && (!n.negative || x.significand == 1)) {
        const std::uint64_t root = integer_root(x.significand, magnitude);
        const auto exponent = static_cast<int>(power / magnitude);
        if (root != 0) return {false, (x.exponent < 0) != n.negative ? -exponent : exponent, root};
    }
    const approximation logarithm = log2_of(approximate(x)) / approximate(n);
    constexpr long_constant one{0x8000000000000000, 0, -127};
    return inexact(logarithm.top() < -12 ? approximate_one() + expm1_of(logarithm * approximate_ln2())
                                         : exp2_of(logarithm, one));
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> rootn_bits(storage_of<Format> a, const number_parts& n,
                                                       Context&& context) {
    a = operand<Format>(a, context);
    const category kind = categorize<Format>(a);
    if (kind == category::nan) return convert_nan<Format, Format>(a, context);
    if (n.kind == category::zero) return invalid_operation<Format>(context);
    const bool odd = parity(n.value) == 1;
    const bool negative = is_negative<Format>(a);
    if (kind == category::zero) {
        return n.negative ? pole<Format>(negative && odd, context)
                          : pack_zero<Format>(negative && odd, context);
    }
    if (negative && !odd) return invalid_operation<Format>(context);
    if (kind == category::infinite) {
        return n.negative ? pack_zero<Format>(negative, context) : pack_infinity<Format>(negative, context);
    }
    exact_value x = unpack<Format>(a);
    x.negative = false;
    exact_value result = root_of(x, n.value);
    result.negative = negative;
    return round_and_pack<Format>(result, context);
}

/// sqrt(x^2 + y^2 + z^2) of values of up to 32 bits; neither is NaN.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> hypot_of_parts(const number_parts& x, const number_parts& y,
                                                           const number_parts& z, Context&& context) {
    if (x.kind == category::infinite || y.kind == category::infinite || z.kind == category::infinite)
        return pack_infinity<Format>(false, context);
    const auto square = [](const number_parts& p) {
        return p.kind == category::zero ? exact_number<uint128>{} : square_of(p.value);
    };
    const exact_number<uint128> sum = sum_of_three(square(x), square(y), square(z));
    if (sum.significand == 0) return pack_zero<Format>(false, context);
    return round_and_pack<Format>(root_of_sum(sum), context);
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> hypot3_bits(storage_of<Format> a, storage_of<Format> b,
                                                        storage_of<Format> c, Context&& context) {
    a = operand<Format>(a, context);
    b = operand<Format>(b, context);
    c = operand<Format>(c, context);
    const auto is_nan = [](storage_of<Format> bits) { return categorize<Format>(bits) == category::nan; };
    const auto is_infinite = [](storage_of<Format> bits) {
        return categorize<Format>(bits) == category::infinite;
    };
    const bool signaling = is_signaling<Format>(a) || is_signaling<Format>(b) || is_signaling<Format>(c);
    const bool infinite = is_infinite(a) || is_infinite(b) || is_infinite(c);
    const bool nan_wins = !infinite || layout_of<Format>::follows_p3109;
    if (signaling || (nan_wins && (is_nan(a) || is_nan(b) || is_nan(c)))) {
        return is_nan(a) || is_nan(b) ? propagate_nan<Format>(a, is_nan(b) ? b : c, context)
                                      : propagate_nan<Format>(c, c, context);
    }
    if (infinite) return pack_infinity<Format>(false, context);
    return hypot_of_parts<Format>(parts_of_code<Format>(a), parts_of_code<Format>(b),
                                  parts_of_code<Format>(c), context);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// x^y as e^(y log x): as pow(), but NaN for negative x, and for the indeterminate 0^0, infinity^0 and
/// 1^infinity. Correctly rounded in every mode for formats of up to 16 bits, as pow() is.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> powr(basic_float<Format> x, basic_float<Format> y,
                                                                Context&& context = projection{}) noexcept {
    return detail::function_of_two(x, y, context, [](const auto& v, const auto& w, auto&& c) {
        return detail::powr_of_parts<Format>(v, w, c);
    });
}

/// x^n for an integer n, which is exact; the special cases are those of pow(). Correctly rounded in every
/// mode for formats of up to 16 bits (all x of half and bfloat16 with small, large and random n checked).
template <class Format, detail::integer Integer, detail::context Context = const projection&>
    requires(sizeof(Integer) <= 8)
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> pown(basic_float<Format> x, Integer n,
                                                                Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(detail::pown_bits<Format>(x.bits(), detail::parts_of(n), context));
}

/// The n-th root of x, x^(1/n); of negative x for odd n only; NaN for n = 0. Correctly rounded in every mode
/// for formats of up to 16 bits (all x of half and bfloat16 with small, large and random n checked).
template <class Format, detail::integer Integer, detail::context Context = const projection&>
    requires(sizeof(Integer) <= 8)
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> rootn(basic_float<Format> x, Integer n,
                                                                 Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(detail::rootn_bits<Format>(x.bits(), detail::parts_of(n), context));
}

/// sqrt(x^2 + y^2 + z^2) without overflow on the way; infinite if one operand is, even beside NaN. Correctly
/// rounded in every mode for all formats, by exact arithmetic.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> hypot(basic_float<Format> x, basic_float<Format> y,
                                                                 basic_float<Format> z,
                                                                 Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(detail::hypot3_bits<Format>(x.bits(), y.bits(), z.bits(), context));
}

}}  // namespace mp
