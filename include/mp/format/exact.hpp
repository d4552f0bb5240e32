// SPDX-License-Identifier: MIT
/// \file
/// The integer core: exact values as integers, and the one place where they are rounded into a format.
/// Everything here is integer arithmetic and works in constant expressions, on the device, and whatever the
/// floating-point environment or the compiler's float options are. It is the source of truth; every hardware
/// path elsewhere is an optimisation whose equality with it is tested exhaustively.
#pragma once

#include <mp/config.hpp>
#include <mp/detail/bits.hpp>
#include <mp/format/descriptor.hpp>
#include <mp/format/projection.hpp>

#include <cstdint>

namespace mp::detail {

/// A non-zero finite value: (-1)^negative * (significand + tail) * 2^exponent, where tail is 0 when sticky is
/// false, and some unknown number strictly between 0 and 1 when it is true.
struct exact_value {
    bool negative;
    int exponent;
    std::uint64_t significand;
    bool sticky = false;
};

/// Magnitude code of an overflow to or beyond infinity; `infinite` tells an infinite operand or result from a
/// finite value that is too large.
template <class Format>
MP_HOST_DEVICE constexpr std::uint64_t overflow_code(bool negative, bool infinite, projection p) {
    using layout = layout_of<Format>;
    const bool away = infinite || p.round == rounding::nearest_even || p.round == rounding::nearest_away ||
                      (p.round == rounding::upward && !negative) ||
                      (p.round == rounding::downward && negative);
    const bool saturates =
        p.saturate == saturation::finite || (p.saturate == saturation::propagate && !infinite);
    if (saturates || !away) return layout::max_finite_code;
    if constexpr (layout::has_infinity) return layout::infinity_code;
    if constexpr (layout::has_nan) return layout::nan_code;
    return layout::max_finite_code;
}

/// Joins sign and magnitude. In formats without a minus zero the code of minus zero is NaN, so zero and NaN
/// lose their sign there.
template <class Format>
MP_HOST_DEVICE constexpr typename layout_of<Format>::storage join(bool negative, std::uint64_t code) {
    using layout = layout_of<Format>;
    using storage = typename layout::storage;
    if constexpr (Format::nans == nan_encoding::negative_zero) {
        if (code == 0 || code > layout::magnitude_mask) return static_cast<storage>(code);
    }
    return static_cast<storage>(code | (negative ? layout::sign_mask : storage{0}));
}

/// The format's bits for a zero, an infinity and a NaN of the given sign.
template <class Format>
MP_HOST_DEVICE constexpr auto pack_zero(bool negative) {
    return join<Format>(negative, 0);
}
template <class Format>
MP_HOST_DEVICE constexpr auto pack_infinity(bool negative, projection p) {
    return join<Format>(negative, overflow_code<Format>(negative, true, p));
}
template <class Format>
MP_HOST_DEVICE constexpr auto pack_nan(bool negative = false) {
    return join<Format>(negative, layout_of<Format>::nan_code);
}

/// Rounds an exact non-zero value once and packs it; underflow is gradual.
///
/// Precondition: a sticky significand has at least precision + 2 bits, so that the tail never reaches up to
/// the bits that decide.
///
/// Why the code can be computed by one addition: with q the exponent of the last kept bit (never below the
/// quantum) and k the kept significand, the magnitude code is ((q - quantum) << fraction_bits) + k. In the
/// lowest binade and below, q is the quantum and the code is k itself; above, the hidden bit of k adds the
/// one that the exponent field needs. A carry out of k from rounding up runs into the exponent field and
/// gives the next power of two, and running past max_finite_code is overflow.
template <class Format>
MP_HOST_DEVICE constexpr typename layout_of<Format>::storage round_and_pack(exact_value x, projection p) {
    using layout = layout_of<Format>;
    const int top = 63 - leading_zeros(x.significand);
    int last = x.exponent + top - layout::fraction_bits;
    if (last < layout::quantum_exponent) last = layout::quantum_exponent;
    const int shift = last - x.exponent;

    std::uint64_t kept = 0;
    std::uint64_t dropped = 0;    // what is shifted out, compared with half a unit below
    std::uint64_t half_unit = 0;  // zero when half a unit is larger than anything dropped
    if (shift <= 0) {
        kept = x.significand << -shift;
    } else if (shift < 64) {
        kept = x.significand >> shift;
        dropped = x.significand & ((std::uint64_t{1} << shift) - 1);
        half_unit = std::uint64_t{1} << (shift - 1);
    } else {
        dropped = x.significand;
        half_unit = shift == 64 ? std::uint64_t{1} << 63 : 0;
    }

    const bool inexact = dropped != 0 || x.sticky;
    bool up = false;
    switch (p.round) {
        case rounding::nearest_even:
            up =
                half_unit != 0 && (dropped > half_unit || (dropped == half_unit && (x.sticky || (kept & 1))));
            break;
        case rounding::nearest_away:
            up = half_unit != 0 && dropped >= half_unit;
            break;
        case rounding::toward_zero:
            break;
        case rounding::upward:
            up = inexact && !x.negative;
            break;
        case rounding::downward:
            up = inexact && x.negative;
            break;
        case rounding::to_odd:
            up = inexact && (kept & 1) == 0;
            break;
    }

    // Too large whatever the rounding; without this the shift below could leave 64 bits.
    if (last + layout::fraction_bits > layout::max_exponent) {
        return join<Format>(x.negative, overflow_code<Format>(x.negative, false, p));
    }
    const std::uint64_t code =
        (static_cast<std::uint64_t>(last - layout::quantum_exponent) << layout::fraction_bits) + kept +
        (up ? 1 : 0);
    if (code > layout::max_finite_code) {
        return join<Format>(x.negative, overflow_code<Format>(x.negative, false, p));
    }
    return join<Format>(x.negative, code);
}

/// What a code stands for.
enum class category : unsigned char { zero, finite, infinite, nan };

/// The category of a code; `finite` means finite and not zero.
template <class Format>
MP_HOST_DEVICE constexpr category categorize(typename layout_of<Format>::storage bits) {
    using layout = layout_of<Format>;
    if constexpr (Format::nans == nan_encoding::negative_zero) {
        if (bits == layout::nan_code) return category::nan;
    }
    const auto magnitude = static_cast<typename layout::storage>(bits & layout::magnitude_mask);
    if (magnitude == 0) return category::zero;
    if (magnitude <= layout::max_finite_code) return category::finite;
    if (layout::has_infinity && magnitude == layout::infinity_code) return category::infinite;
    return category::nan;
}

/// Sign bit of a code.
template <class Format>
MP_HOST_DEVICE constexpr bool is_negative(typename layout_of<Format>::storage bits) {
    return (bits & layout_of<Format>::sign_mask) != 0;
}

/// The exact value of a code whose category is finite.
template <class Format>
MP_HOST_DEVICE constexpr exact_value unpack(typename layout_of<Format>::storage bits) {
    using layout = layout_of<Format>;
    const int field = static_cast<int>((bits & layout::magnitude_mask) >> layout::fraction_bits);
    const std::uint64_t fraction = bits & layout::fraction_mask;
    const int binade = field == 0 ? 0 : field - 1;
    return {is_negative<Format>(bits), layout::quantum_exponent + binade,
            field == 0 ? fraction : fraction | layout::hidden_bit};
}

/// Converts a NaN: keeps the sign and the leading bits of the payload, and makes it quiet.
template <class To, class From>
MP_HOST_DEVICE constexpr typename layout_of<To>::storage convert_nan(typename layout_of<From>::storage bits) {
    using to = layout_of<To>;
    using from = layout_of<From>;
    std::uint64_t code = to::nan_code;
    if constexpr (To::nans == nan_encoding::ieee && From::nans == nan_encoding::ieee) {
        const std::uint64_t payload = bits & from::fraction_mask;
        if constexpr (from::fraction_bits >= to::fraction_bits) {
            code |= payload >> (from::fraction_bits - to::fraction_bits);
        } else {
            code |= payload << (to::fraction_bits - from::fraction_bits);
        }
    }
    return join<To>(is_negative<From>(bits), code);
}

}  // namespace mp::detail
