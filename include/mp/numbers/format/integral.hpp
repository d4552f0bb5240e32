// SPDX-License-Identifier: MIT
/// \file
/// Rounding to whole numbers, as numbers of the same format and as integers.
#pragma once

#include <mp/numbers/format/manipulation.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The integer next to a finite value in the direction of the projection, as a magnitude; it is below 2^64
/// because the exponent is at most zero wherever this is called.
MP_HOST_DEVICE constexpr std::uint64_t nearby_integer(const exact_value& x, const projection& p) {
    const split_value split = split_at(x, 0);
    return split.truncated + (rounds_up(split, x.negative, (split.truncated & 1) != 0, p) ? 1 : 0);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// x rounded to a whole number in the direction of the projection or environment; a zero keeps the sign of x.
/// Raises inexact if that changes x (IEEE 754's roundToIntegralExact).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> round_to_integral(
    basic_float<Format> x, Context&& context = projection{}) noexcept {
    using value = basic_float<Format>;
    const auto bits = detail::operand<Format>(x.bits(), context);
    const detail::category kind = detail::categorize<Format>(bits);
    if (kind == detail::category::nan) {
        return value::from_bits(detail::convert_nan<Format, Format>(bits, context));
    }
    if (kind != detail::category::finite) return value::from_bits(bits);
    const detail::exact_value exact = detail::unpack<Format>(bits);
    if (exact.exponent >= 0) return value::from_bits(bits);
    if (!detail::split_at(exact, 0).is_exact()) detail::raise(context, status_flag::inexact);
    const std::uint64_t whole = detail::nearby_integer(exact, detail::projection_of(context));
    if (whole == 0) return value::from_bits(detail::pack_zero<Format>(exact.negative, context));
    return value::from_bits(detail::round_and_pack<Format>({exact.negative, 0, whole}, context));
}

/// The named directions: to nearest with ties to even (rint, nearbyint, roundeven), to nearest with ties away
/// from zero, toward zero, up and down.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> rint(basic_float<Format> x) noexcept {
    return round_to_integral(x);
}
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> nearbyint(basic_float<Format> x) noexcept {
    return round_to_integral(x);
}
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> roundeven(basic_float<Format> x) noexcept {
    return round_to_integral(x);
}
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> round(basic_float<Format> x) noexcept {
    return round_to_integral(x, {.round = rounding::nearest_away});
}
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> trunc(basic_float<Format> x) noexcept {
    return round_to_integral(x, {.round = rounding::toward_zero});
}
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> ceil(basic_float<Format> x) noexcept {
    return round_to_integral(x, {.round = rounding::upward});
}
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> floor(basic_float<Format> x) noexcept {
    return round_to_integral(x, {.round = rounding::downward});
}

/// x without its fraction; the fraction, with the sign of x, is the result. That of an infinity is zero.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> modf(basic_float<Format> x,
                                                                basic_float<Format>* whole) noexcept {
    using value = basic_float<Format>;
    *whole = trunc(x);
    if (isnan(x)) return *whole;
    const value zero = value::from_bits(detail::pack_zero<Format>(signbit(x), projection{}));
    if (isinf(x)) return zero;
    const value fraction = x - *whole;
    return is_zero(fraction) ? zero : fraction;
}

/// x as an integer, rounded as the projection or environment says. Out of range it is the nearest integer of
/// the type, and zero for NaN; both are invalid and then not inexact.
template <detail::integer Integer, class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr Integer round_to_integer(basic_float<Format> x,
                                                                Context&& context = projection{}) noexcept {
    const auto bits = detail::operand<Format>(x.bits(), context);
    const detail::category kind = detail::categorize<Format>(bits);
    if (kind == detail::category::finite) {
        const detail::exact_value exact = detail::unpack<Format>(bits);
        if (exact.exponent < 0) {
            const detail::exact_value whole{exact.negative, 0,
                                            detail::nearby_integer(exact, detail::projection_of(context))};
            const auto [result, fits] = detail::clamped_integer<Integer>(whole);
            if (!fits) {
                detail::raise(context, status_flag::invalid);
            } else if (!detail::split_at(exact, 0).is_exact()) {
                detail::raise(context, status_flag::inexact);
            }
            return result;
        }
        const auto [result, fits] = detail::clamped_integer<Integer>(exact);
        if (!fits) detail::raise(context, status_flag::invalid);
        return result;
    }
    if (kind != detail::category::zero) detail::raise(context, status_flag::invalid);
    return detail::to_integer<Integer, Format>(bits);
}

/// C's names: to an integer as rint() and round() go; out of range the nearest integer, NaN 0.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr long lrint(basic_float<Format> x,
                                                  Context&& context = projection{}) noexcept {
    return round_to_integer<long>(x, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr long long llrint(basic_float<Format> x,
                                                        Context&& context = projection{}) noexcept {
    return round_to_integer<long long>(x, context);
}
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr long lround(basic_float<Format> x) noexcept {
    return round_to_integer<long>(x, {.round = rounding::nearest_away});
}
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr long long llround(basic_float<Format> x) noexcept {
    return round_to_integer<long long>(x, {.round = rounding::nearest_away});
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// x rounded to an integer of `width` bits, two's complement or unsigned; invalid beyond. With
/// `report_inexact` the change of x is inexact.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr basic_float<Format> to_integer_of_width(basic_float<Format> x, rounding direction,
                                                                 unsigned width, bool is_signed,
                                                                 bool report_inexact, Context&& context) {
    using value = basic_float<Format>;
    const auto bits = operand<Format>(x.bits(), context);
    const category kind = categorize<Format>(bits);
    if (kind == category::nan) return value::from_bits(convert_nan<Format, Format>(bits, context));
    if (width == 0 || kind == category::infinite) return value::from_bits(invalid_operation<Format>(context));
    if (kind == category::zero) return value::from_bits(bits);
    exact_value whole = unpack<Format>(bits);
    const bool exact = split_at(whole, 0).is_exact() || whole.exponent >= 0;
    if (!exact) {
        projection to_whole = projection_of(context);
        to_whole.round = direction;
        whole = {whole.negative, 0, nearby_integer(whole, to_whole)};
    }
    if (whole.significand != 0) {
        const int zeros = leading_zeros(whole.significand);
        const auto top = static_cast<std::int64_t>(63 - zeros) + whole.exponent;
        const std::int64_t free_bits = static_cast<std::int64_t>(width) - (is_signed ? 1 : 0);
        const bool power_of_two = whole.significand << zeros == std::uint64_t{1} << 63;
        const bool fits =
            top < free_bits || (is_signed && whole.negative && top == free_bits && power_of_two);
        if (!fits || (whole.negative && !is_signed))
            return value::from_bits(invalid_operation<Format>(context));
    }
    if (!exact && report_inexact) raise(context, status_flag::inexact);
    if (whole.significand == 0) return value::from_bits(pack_zero<Format>(whole.negative, context));
    return value::from_bits(round_and_pack<Format>(whole, projection_of(context)));
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// x rounded in the direction to an integer of `width` bits, as a number of the format: fromfp to a signed
/// integer, ufromfp to an unsigned one, those with x raising inexact where that changes x. NaN and invalid
/// where the integer does not fit, and for a width of zero. (The direction is an mp::rounding in place of
/// C23's macros.)
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fromfp(basic_float<Format> x, rounding direction,
                                                                  unsigned width,
                                                                  Context&& context = projection{}) noexcept {
    return detail::to_integer_of_width(x, direction, width, true, false, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> ufromfp(
    basic_float<Format> x, rounding direction, unsigned width, Context&& context = projection{}) noexcept {
    return detail::to_integer_of_width(x, direction, width, false, false, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fromfpx(
    basic_float<Format> x, rounding direction, unsigned width, Context&& context = projection{}) noexcept {
    return detail::to_integer_of_width(x, direction, width, true, true, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> ufromfpx(
    basic_float<Format> x, rounding direction, unsigned width, Context&& context = projection{}) noexcept {
    return detail::to_integer_of_width(x, direction, width, false, true, context);
}

}}  // namespace mp
