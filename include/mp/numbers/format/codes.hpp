// SPDX-License-Identifier: MIT
/// \file
/// What the codes of a format stand for, and how specials and signs become codes.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/descriptor.hpp>
#include <mp/numbers/format/projection.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// What a code stands for; `finite` means finite and not zero.
enum class category : unsigned char { zero, finite, infinite, nan };

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Format>
using storage_of = typename layout_of<Format>::storage;

/// The category of a code.
template <class Format>
MP_HOST_DEVICE constexpr category categorize(storage_of<Format> bits) {
    using layout = layout_of<Format>;
    if constexpr (Format::nans == nan_encoding::negative_zero) {
        if (bits == layout::nan_code) return category::nan;
    }
    const auto magnitude = static_cast<storage_of<Format>>(bits & layout::magnitude_mask);
    if (layout::has_zero && magnitude == 0) return category::zero;
    if (magnitude <= layout::max_finite_code) return category::finite;
    if (layout::has_infinity && magnitude == layout::infinity_code) return category::infinite;
    return category::nan;
}

/// Sign bit of a code.
template <class Format>
MP_HOST_DEVICE constexpr bool is_negative(storage_of<Format> bits) {
    return (bits & layout_of<Format>::sign_mask) != 0;
}

/// Whether a code is that of a NaN that raises `invalid` wherever it is an operand (IEEE 754-2019, 6.2.1).
template <class Format>
MP_HOST_DEVICE constexpr bool is_signaling(storage_of<Format> bits) {
    using layout = layout_of<Format>;
    if constexpr (layout::quiet_bit == 0) return false;
    return categorize<Format>(bits) == category::nan && (bits & layout::quiet_bit) == 0;
}

/// Whether a code is that of a number smaller than all normal ones, but not zero.
template <class Format>
MP_HOST_DEVICE constexpr bool is_subnormal_code(storage_of<Format> bits) {
    using layout = layout_of<Format>;
    const auto magnitude = static_cast<storage_of<Format>>(bits & layout::magnitude_mask);
    return magnitude != 0 && magnitude < layout::min_normal_code;
}

/// Joins sign and magnitude. In formats without a minus zero the code of minus zero is NaN, so zero and NaN
/// lose their sign there; formats without signs have none to lose.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> join(bool negative, std::uint64_t code) {
    using layout = layout_of<Format>;
    using storage = storage_of<Format>;
    if constexpr (Format::nans == nan_encoding::negative_zero) {
        if (code == 0 || code > layout::magnitude_mask) return static_cast<storage>(code);
    }
    return static_cast<storage>(code | (negative ? layout::sign_mask : storage{0}));
}

/// As overflow_code(), by section 4.7.5 of IEEE P3109: a format without infinity has its largest or smallest
/// finite number instead; only negative values of a format without signs become NaN.
template <class Format>
MP_HOST_DEVICE constexpr std::uint64_t p3109_overflow_code(bool negative, bool infinite,
                                                           const projection& p) {
    using layout = layout_of<Format>;
    const bool below_all = negative && !layout::is_signed;
    const std::uint64_t clamped = below_all ? 0 : layout::max_finite_code;
    const bool has_infinity = layout::has_infinity && !below_all;
    if (p.saturate == saturation::finite) return clamped;
    if (!infinite) {
        const rounding inward = negative ? rounding::upward : rounding::downward;
        const bool stays = p.round == rounding::toward_zero || p.round == inward ||
                           (p.round == rounding::to_odd && has_infinity && !layout::is_signed);
        if (stays || p.saturate == saturation::propagate) return clamped;
    }
    if (has_infinity) return layout::infinity_code;
    return below_all && p.saturate == saturation::none ? layout::nan_code : clamped;
}

/// Magnitude code of an overflow to or beyond infinity; `infinite` tells an infinite operand or result from a
/// finite value that is too large. In a format without signs the same for negative values, which are as far
/// out of its range.
template <class Format>
MP_HOST_DEVICE constexpr std::uint64_t overflow_code(bool negative, bool infinite, const projection& p) {
    using layout = layout_of<Format>;
    if constexpr (layout::follows_p3109) return p3109_overflow_code<Format>(negative, infinite, p);
    const bool away = infinite || p.round == rounding::nearest_even || p.round == rounding::nearest_away ||
                      is_stochastic(p.round) || (p.round == rounding::upward && !negative) ||
                      (p.round == rounding::downward && negative);
    const bool saturates =
        p.saturate == saturation::finite || (p.saturate == saturation::propagate && !infinite);
    if (!layout::is_signed && negative) return saturates || !layout::has_nan ? 0 : layout::nan_code;
    if (saturates || !away) return layout::max_finite_code;
    if constexpr (layout::has_infinity) return layout::infinity_code;
    if constexpr (layout::has_nan) return layout::nan_code;
    return layout::max_finite_code;
}

/// The format's bits for a zero. A format without zero has its smallest number for it if values saturate,
/// else NaN (as ml_dtypes has for E8M0).
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> pack_zero(bool negative, Context&& context) {
    using layout = layout_of<Format>;
    if constexpr (layout::has_zero) return join<Format>(negative, 0);
    if (layout::has_nan && projection_of(context).saturate == saturation::none) {
        raise(context, status_flag::invalid);
        return layout::nan_code;
    }
    raise(context, status_flag::underflow | status_flag::inexact);
    return 0;
}

/// The format's bits for an infinity, which is exact where the format has it.
template <class Format, context Context>
MP_HOST_DEVICE constexpr storage_of<Format> pack_infinity(bool negative, Context&& context) {
    using layout = layout_of<Format>;
    const std::uint64_t code = overflow_code<Format>(negative, true, projection_of(context));
    if (!layout::has_infinity || code != layout::infinity_code) {
        raise(context, status_flag::overflow | status_flag::inexact);
    }
    return join<Format>(negative, code);
}

/// The format's NaN, or what the projection puts in its place where there is none.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> pack_nan(bool negative = false, const projection& p = {}) {
    using layout = layout_of<Format>;
    if constexpr (layout::has_nan) {
        return join<Format>(negative && p.nan == nan_propagation::keep, layout::nan_code);
    } else {
        const bool zero = layout::has_zero && p.without_nan == nan_substitute::zero;
        return zero ? storage_of<Format>{0} : static_cast<storage_of<Format>>(layout::max_finite_code);
    }
}

/// The NaN of an invalid operation.
template <class Format, context Context>
MP_HOST_DEVICE constexpr storage_of<Format> invalid_operation(Context&& context) {
    raise(context, status_flag::invalid);
    return pack_nan<Format>(false, projection_of(context));
}

/// Converts a NaN: makes it quiet, and keeps the sign and the leading bits of the payload if the projection
/// does.
template <class To, class From>
MP_HOST_DEVICE constexpr storage_of<To> convert_nan(storage_of<From> bits, const projection& p = {}) {
    using to = layout_of<To>;
    using from = layout_of<From>;
    if (!to::has_nan || p.nan == nan_propagation::canonical) return pack_nan<To>(false, p);
    std::uint64_t code = to::nan_code;
    if constexpr (To::nans == nan_encoding::ieee && From::nans == nan_encoding::ieee) {
        const std::uint64_t payload = bits & from::fraction_mask;
        if constexpr (from::fraction_bits >= to::fraction_bits) {
            code |= payload >> (from::fraction_bits - to::fraction_bits);
        } else {
            code |= payload << (to::fraction_bits - from::fraction_bits);
        }
    }
    // The NaN that has the code of minus zero has no sign.
    const bool negative = From::nans != nan_encoding::negative_zero && is_negative<From>(bits);
    return join<To>(negative, code);
}

/// As above, but a signalling NaN raises `invalid`.
template <class To, class From>
MP_HOST_DEVICE constexpr storage_of<To> convert_nan(storage_of<From> bits, environment& context) {
    if (is_signaling<From>(bits) || !layout_of<To>::has_nan) raise(context, status_flag::invalid);
    return convert_nan<To, From>(bits, context.project);
}

/// A code as an operand: an environment may take subnormal numbers for zeros.
template <class Format, context Context>
MP_HOST_DEVICE constexpr storage_of<Format> operand(storage_of<Format> bits, Context&& context) {
    if constexpr (keeps_flags<Context>) {
        if (context.subnormals == subnormal_handling::flush_all && is_subnormal_code<Format>(bits)) {
            return join<Format>(is_negative<Format>(bits), 0);
        }
    }
    return bits;
}

}}  // namespace mp::detail
