// SPDX-License-Identifier: MIT
/// \file
/// Comparisons with flags, total order, and the minima and maxima of IEEE 754-2019, section 9.6.
#pragma once

#include <mp/numbers/format/manipulation.hpp>

#include <compare>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// a <=> b; only a signalling NaN is invalid (IEEE 754's compareQuiet...).
template <class Format>
[[nodiscard]] constexpr std::partial_ordering compare_quiet(basic_float<Format> a, basic_float<Format> b,
                                                            environment& env) noexcept {
    if (is_signaling(a) || is_signaling(b)) env.raised |= status_flag::invalid;
    a = basic_float<Format>::from_bits(detail::operand<Format>(a.bits(), env));
    b = basic_float<Format>::from_bits(detail::operand<Format>(b.bits(), env));
    return a <=> b;
}
/// a <=> b; every NaN is invalid (IEEE 754's compareSignaling...).
template <class Format>
[[nodiscard]] constexpr std::partial_ordering compare_signaling(basic_float<Format> a, basic_float<Format> b,
                                                                environment& env) noexcept {
    if (isunordered(a, b)) env.raised |= status_flag::invalid;
    return compare_quiet(a, b, env);
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// An integer in the order of totalOrder: -NaN, -infinity ... -0, +0 ... infinity, NaN, and among NaNs by
/// payload. The only NaN of formats without minus zero counts as positive, that of P3109 as the smallest of all.
template <class Format>
MP_HOST_DEVICE constexpr std::int64_t total_order_key(storage_of<Format> bits) {
    using layout = layout_of<Format>;
    if (layout::follows_p3109 && bits == layout::nan_code) return -1 - std::int64_t{layout::code_mask};
    if (Format::nans == nan_encoding::negative_zero && bits == layout::nan_code) {
        return static_cast<std::int64_t>(layout::code_mask);
    }
    const auto magnitude = static_cast<std::int64_t>(bits & layout::magnitude_mask);
    return is_negative<Format>(bits) ? -magnitude - 1 : magnitude;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Whether a comes before b, or is it, in the total order of IEEE 754, in which zeros and NaNs have their
/// places too.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr bool total_order(basic_float<Format> a,
                                                        basic_float<Format> b) noexcept {
    return detail::total_order_key<Format>(a.bits()) <= detail::total_order_key<Format>(b.bits());
}
/// As total_order(), for |a| and |b|.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr bool total_order_magnitude(basic_float<Format> a,
                                                                  basic_float<Format> b) noexcept {
    return total_order(fabs(a), fabs(b));
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// What min and max do with a NaN next to a number.
enum class nan_rule : unsigned char { propagate, ignore };

/// The operand that comes first in the total order of a and b, or of their magnitudes and then of a and b.
template <class Format, class Context>
MP_HOST_DEVICE constexpr basic_float<Format> choose(basic_float<Format> a, basic_float<Format> b,
                                                    bool smaller, bool by_magnitude, nan_rule rule,
                                                    Context&& context) {
    using value = basic_float<Format>;
#if MP_DEVICE_CODE
    if constexpr (orders_by_instruction<Format> && !keeps_flags<Context>) {
        if (!__builtin_is_constant_evaluated() && !by_magnitude && context == projection{}) {
            return value::from_bits(
                device_choose<Format>(a.bits(), b.bits(), smaller, rule == nan_rule::propagate));
        }
    }
#endif
    if (isunordered(a, b)) {
        const value nan = value::from_bits(propagate_nan<Format>(a.bits(), b.bits(), context));
        if (rule == nan_rule::propagate || (isnan(a) && isnan(b))) return nan;
        return isnan(a) ? b : a;
    }
    std::int64_t key_a = total_order_key<Format>(a.bits());
    std::int64_t key_b = total_order_key<Format>(b.bits());
    if (by_magnitude) {
        const std::int64_t magnitude_a = total_order_key<Format>(fabs(a).bits());
        const std::int64_t magnitude_b = total_order_key<Format>(fabs(b).bits());
        if (magnitude_a != magnitude_b) {
            key_a = magnitude_a;
            key_b = magnitude_b;
        }
    }
    return (key_a < key_b) == smaller ? a : b;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The smaller or larger of two numbers, -0 being smaller than +0. NaN if either is NaN; which NaN is not
/// specified, as for all arithmetic (devices give the canonical one).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> minimum(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return detail::choose(a, b, true, false, detail::nan_rule::propagate, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> maximum(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return detail::choose(a, b, false, false, detail::nan_rule::propagate, context);
}
/// As minimum(), but a NaN next to a number is ignored (a signalling one is invalid nevertheless).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> minimum_number(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return detail::choose(a, b, true, false, detail::nan_rule::ignore, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> maximum_number(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return detail::choose(a, b, false, false, detail::nan_rule::ignore, context);
}
/// As minimum_number(), by magnitude; of two numbers of the same magnitude the smaller or larger one.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> minimum_magnitude(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return detail::choose(a, b, true, true, detail::nan_rule::propagate, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> maximum_magnitude(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return detail::choose(a, b, false, true, detail::nan_rule::propagate, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> minimum_magnitude_number(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return detail::choose(a, b, true, true, detail::nan_rule::ignore, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> maximum_magnitude_number(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return detail::choose(a, b, false, true, detail::nan_rule::ignore, context);
}

/// C's names: NaNs are ignored.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fmin(basic_float<Format> a,
                                                                basic_float<Format> b) noexcept {
    return minimum_number(a, b);
}
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fmax(basic_float<Format> a,
                                                                basic_float<Format> b) noexcept {
    return maximum_number(a, b);
}

/// C23's names for minimum() and so on: fmaximum and fminimum propagate NaN, those with _num ignore it next
/// to a number, those with _mag compare magnitudes.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fmaximum(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return maximum(a, b, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fminimum(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return minimum(a, b, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fmaximum_num(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return maximum_number(a, b, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fminimum_num(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return minimum_number(a, b, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fmaximum_mag(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return maximum_magnitude(a, b, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fminimum_mag(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return minimum_magnitude(a, b, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fmaximum_mag_num(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return maximum_magnitude_number(a, b, context);
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fminimum_mag_num(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return minimum_magnitude_number(a, b, context);
}

/// C23's totalorder and totalordermag, which take pointers, are total_order() and total_order_magnitude().
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr int totalorder(const basic_float<Format>* a,
                                                      const basic_float<Format>* b) noexcept {
    return total_order(*a, *b) ? 1 : 0;
}
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr int totalordermag(const basic_float<Format>* a,
                                                         const basic_float<Format>* b) noexcept {
    return total_order_magnitude(*a, *b) ? 1 : 0;
}

/// a == b; every NaN is invalid (C23's iseqsig).
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr bool(iseqsig)(basic_float<Format> a, basic_float<Format> b) noexcept {
    return a == b;
}
template <class Format>
[[nodiscard]] constexpr bool(iseqsig)(basic_float<Format> a, basic_float<Format> b,
                                      environment& env) noexcept {
    return compare_signaling(a, b, env) == 0;
}

}}  // namespace mp
