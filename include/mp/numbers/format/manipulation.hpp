// SPDX-License-Identifier: MIT
/// \file
/// Functions that take numbers apart and put them together: signs, neighbours, exponents. All exact where not
/// said otherwise.
#pragma once

#include <mp/numbers/format/arithmetic.hpp>
#include <mp/numbers/format/classification.hpp>

#include <climits>
#include <cstdint>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The magnitude of x; works on the sign bit alone, and leaves the NaN of formats without minus zero alone.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fabs(basic_float<Format> x) noexcept {
    return signbit(x) ? -x : x;
}
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> abs(basic_float<Format> x) noexcept {
    return fabs(x);
}
/// The magnitude of `magnitude` with the sign of `sign`; the sign of the NaN of formats without minus zero
/// counts as plus, except that in a format of P3109 the result is NaN then.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> copysign(basic_float<Format> magnitude,
                                                                    basic_float<Format> sign) noexcept {
    if (layout_of<Format>::follows_p3109 && isnan(sign)) return sign;
    const bool negative = signbit(sign) && (Format::nans != nan_encoding::negative_zero || !isnan(sign));
    return signbit(magnitude) == negative ? magnitude : -magnitude;
}

/// The smallest number that is larger than x (IEEE 754's nextUp): of the largest finite number infinity, or
/// itself in a format without infinity. A NaN comes back quiet.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> nextup(basic_float<Format> x) noexcept {
    using value = basic_float<Format>;
    using layout = layout_of<Format>;
    using storage = typename layout::storage;
    if (isnan(x)) return value::from_bits(detail::convert_nan<Format, Format>(x.bits()));
    if (is_zero(x)) return value::from_bits(1);
    const auto magnitude = static_cast<storage>(x.bits() & layout::magnitude_mask);
    if (signbit(x)) return value::from_bits(detail::join<Format>(true, magnitude - 1u));
    if (magnitude == (layout::has_infinity ? layout::infinity_code : layout::max_finite_code)) return x;
    return value::from_bits(static_cast<storage>(magnitude + 1));
}
/// The largest number that is smaller than x (IEEE 754's nextDown). A format without signs ends at its
/// smallest number.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> nextdown(basic_float<Format> x) noexcept {
    using value = basic_float<Format>;
    using storage = typename layout_of<Format>::storage;
    if constexpr (Format::is_signed) {
        if (isnan(x)) return nextup(x);
        if (is_zero(x)) return value::from_bits(detail::join<Format>(true, 1));
        return -nextup(-x);
    } else {
        if (isnan(x)) return nextup(x);
        return x.bits() == 0 ? x : value::from_bits(static_cast<storage>(x.bits() - 1));
    }
}
/// The next number after `from` in the direction of `to`; `to` itself when they are equal; NaN if either is.
/// The neighbour of the largest finite number upward is infinity, or the number itself where there is none.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> nextafter(basic_float<Format> from,
                                                                     basic_float<Format> to) noexcept {
    if (isnan(from) || isnan(to)) {
        return basic_float<Format>::from_bits(
            detail::propagate_nan<Format>(from.bits(), to.bits(), projection{}));
    }
    if (from == to) return to;
    return from < to ? nextup(from) : nextdown(from);
}

/// x * 2^n, rounded once (IEEE 754's scaleB).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> scalbn(basic_float<Format> x, int n,
                                                                  Context&& context = projection{}) noexcept {
    using value = basic_float<Format>;
    const auto bits = detail::operand<Format>(x.bits(), context);
    const detail::category kind = detail::categorize<Format>(bits);
    if (kind == detail::category::nan) {
        return value::from_bits(detail::convert_nan<Format, Format>(bits, context));
    }
    if (kind != detail::category::finite) return value::from_bits(bits);
    detail::exact_value exact = detail::unpack<Format>(bits);
    // From end to end of the widest range of exponents that basic_float allows, and far from integer overflow.
    constexpr int farthest = 100000;
    exact.exponent += n > farthest ? farthest : n < -farthest ? -farthest : n;
    return value::from_bits(detail::round_and_pack<Format>(exact, context));
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> ldexp(basic_float<Format> x, int n,
                                                                 Context&& context = projection{}) noexcept {
    return scalbn(x, n, context);
}

/// The exponent of x: floor(log2(|x|)), of subnormal numbers too. As in `<cmath>` INT_MIN for zero, INT_MAX for
/// infinity and NaN.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr int ilogb(basic_float<Format> x) noexcept {
    if (is_zero(x)) return INT_MIN;
    if (!isfinite(x)) return INT_MAX;
    const detail::exact_value exact = detail::unpack<Format>(x.bits());
    return exact.exponent + 63 - detail::leading_zeros(exact.significand);
}
/// As ilogb(), as a number of the format, rounded to it; -infinity for zero, which divides by zero, and
/// infinity for infinities.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> logb(basic_float<Format> x,
                                                                Context&& context = projection{}) noexcept {
    using value = basic_float<Format>;
    const auto bits = detail::operand<Format>(x.bits(), context);
    switch (detail::categorize<Format>(bits)) {
        case detail::category::nan:
            return value::from_bits(detail::convert_nan<Format, Format>(bits, context));
        case detail::category::infinite:
            return value::from_bits(detail::pack_infinity<Format>(false, context));
        case detail::category::zero:
            detail::raise(context, status_flag::divide_by_zero);
            return value::from_bits(detail::pack_infinity<Format>(true, detail::projection_of(context)));
        case detail::category::finite:
            break;
    }
    return round_to<value>(ilogb(value::from_bits(bits)), context);
}

/// x = m * 2^*exponent with |m| in [0.5, 1); zero, infinity and NaN come back as they are with exponent 0.
/// (In a format that has no 0.5 the result is rounded to it.)
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> frexp(basic_float<Format> x,
                                                                 int* exponent) noexcept {
    *exponent = 0;
    if (is_zero(x) || !isfinite(x)) return x;
    *exponent = ilogb(x) + 1;
    return scalbn(x, -*exponent);
}

/// scalbn() with an exponent of type long.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> scalbln(
    basic_float<Format> x, long n, Context&& context = projection{}) noexcept {
    const std::int64_t wide = n;
    const std::int64_t limited = wide > INT_MAX ? INT_MAX : wide < INT_MIN ? INT_MIN : wide;
    return scalbn(x, static_cast<int>(limited), context);
}
/// ilogb() as a long: LONG_MIN for zero, LONG_MAX for infinity and NaN.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr long llogb(basic_float<Format> x) noexcept {
    if (is_zero(x)) return LONG_MIN;
    return isfinite(x) ? ilogb(x) : LONG_MAX;
}
/// nextafter() in the direction of a long double, by its exact value; equal to it, x with its sign of zero.
template <class Format>
[[nodiscard]] constexpr basic_float<Format> nexttoward(basic_float<Format> x, long double to) noexcept {
    const detail::number_parts target = detail::parts_of(to);
    const auto order = detail::compare_parts(detail::parts_of_code<Format>(x.bits()), target);
    if (isnan(x) || !order.ordered) return isnan(x) ? nextup(x) : basic_float<Format>(to);
    if (order.a == order.b) return basic_float<Format>(to);
    return order.a < order.b ? nextup(x) : nextdown(x);
}

}}  // namespace mp

// Payloads of NaN: C23's getpayload, setpayload, setpayloadsig and canonicalize.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether NaN has bits below the quiet bit, or is one code.
template <class Format>
inline constexpr bool has_payload = layout_of<Format>::has_nan && layout_of<Format>::quiet_bit != 0;

template <class Format>
MP_HOST_DEVICE constexpr int set_payload(basic_float<Format>* result, basic_float<Format> payload,
                                         bool signaling) {
    using value = basic_float<Format>;
    using layout = layout_of<Format>;
    *result = value::from_bits(pack_zero<Format>(false, projection{}));
    if constexpr (layout::has_nan) {
        std::uint64_t whole = 0;
        const category kind = categorize<Format>(payload.bits());
        if (kind == category::nan || kind == category::infinite || signbit(payload)) return 1;
        if (kind == category::finite) {
            const exact_value x = unpack<Format>(payload.bits());
            const split_value split = split_at(x, 0);
            if (x.exponent >= 32 || !split.is_exact()) return 1;
            whole = split.truncated;
        }
        const std::uint64_t limit = has_payload<Format> ? std::uint64_t{layout::quiet_bit} : 1;
        if (whole >= limit || (signaling && (whole == 0 || !has_payload<Format>))) return 1;
        std::uint64_t code = layout::nan_code | whole;
        if (signaling) code &= ~std::uint64_t{layout::quiet_bit};
        *result = value::from_bits(static_cast<storage_of<Format>>(code));
        return 0;
    }
    return 1;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The payload of a NaN, the bits below its quiet bit as an integer; -1 for what is no NaN.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> getpayload(const basic_float<Format>* x) noexcept {
    using layout = layout_of<Format>;
    if (!isnan(*x)) return basic_float<Format>(-1);
    if constexpr (detail::has_payload<Format>) {
        return basic_float<Format>(static_cast<std::uint32_t>(x->bits() & (layout::quiet_bit - 1u)));
    }
    return basic_float<Format>(0);
}
/// Makes *result the positive quiet NaN with this payload and returns 0; or makes it zero and returns 1,
/// where the payload is no integer that fits, or the format has no NaN.
template <class Format>
MP_HOST_DEVICE constexpr int setpayload(basic_float<Format>* result, basic_float<Format> payload) noexcept {
    return detail::set_payload(result, payload, false);
}
/// As setpayload(), for a signalling NaN, which has no payload of zero.
template <class Format>
MP_HOST_DEVICE constexpr int setpayloadsig(basic_float<Format>* result,
                                           basic_float<Format> payload) noexcept {
    return detail::set_payload(result, payload, true);
}
/// Makes *result the value of *x, a signalling NaN quiet, and returns 0.
template <class Format>
MP_HOST_DEVICE constexpr int canonicalize(basic_float<Format>* result,
                                          const basic_float<Format>* x) noexcept {
    *result = isnan(*x) ? basic_float<Format>::from_bits(detail::convert_nan<Format, Format>(x->bits())) : *x;
    return 0;
}

}}  // namespace mp
