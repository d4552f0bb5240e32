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

}}  // namespace mp
