// SPDX-License-Identifier: MIT
/// \file
/// powr, pown, rootn, and hypot of three.
#pragma once

#include <mp/numbers/format/exact_sums.hpp>
#include <mp/numbers/format/math/power.hpp>

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

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> powr_bits(storage_of<Format> a, storage_of<Format> b,
                                                      Context&& context) {
    a = operand<Format>(a, context);
    b = operand<Format>(b, context);
    if (categorize<Format>(a) == category::nan || categorize<Format>(b) == category::nan)
        return propagate_nan<Format>(a, b, context);
    return powr_of_parts<Format>(parts_of_code<Format>(a), parts_of_code<Format>(b), context);
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
    return basic_float<Format>::from_bits(detail::powr_bits<Format>(x.bits(), y.bits(), context));
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
