// SPDX-License-Identifier: MIT
/// \file
/// What is left to do by hand around the conversion instructions of GPUs, so that the bits are the library's:
/// saturation, signs and payloads of NaN, and the widening of small formats by one multiplication. Host and
/// device: tests put a model of the instruction in its place and compare with the integer core.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/binary_conversion.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether a format is one that OCP or IEEE 754 defines with these numbers of bits, whatever its name.
template <class Format, int ExponentBits, int FractionBits, bool HasInfinity, nan_encoding Nans>
inline constexpr bool is_signed_format =
    Format::is_signed && Format::exponent_bits == ExponentBits && Format::fraction_bits == FractionBits &&
    Format::bias == (1 << (ExponentBits - 1)) - 1 && layout_of<Format>::has_zero &&
    Format::has_infinity == HasInfinity && Format::nans == Nans;

template <class Format>
inline constexpr bool is_e4m3fn = is_signed_format<Format, 4, 3, false, nan_encoding::all_ones>;
template <class Format>
inline constexpr bool is_e5m2 = is_signed_format<Format, 5, 2, true, nan_encoding::ieee>;
template <class Format>
inline constexpr bool is_e2m3fn = is_signed_format<Format, 2, 3, false, nan_encoding::none>;
template <class Format>
inline constexpr bool is_e3m2fn = is_signed_format<Format, 3, 2, false, nan_encoding::none>;
template <class Format>
inline constexpr bool is_e2m1fn = is_signed_format<Format, 2, 1, false, nan_encoding::none>;

/// The smallest magnitude, as the bits of a float or a half, that rounds to nearest even beyond the largest
/// finite number of a format: halfway to the number that would follow, or the next float if the tie goes back
/// to the largest one, whose code is then even.
template <class Format, class Wide = formats::binary32>
inline constexpr std::uint32_t first_overflow = [] {
    using narrow = layout_of<Format>;
    constexpr int shift = Wide::fraction_bits - narrow::fraction_bits;
    constexpr std::uint32_t largest =
        (std::uint32_t{narrow::max_finite_code} << shift) +
        (static_cast<std::uint32_t>(Wide::bias - Format::bias) << Wide::fraction_bits);
    return largest + (std::uint32_t{1} << (shift - 1)) + ((narrow::max_finite_code & 1) != 0 ? 0u : 1u);
}();

/// The smallest magnitude, as the bits of a float or a half, for which a conversion that saturates to the
/// largest finite number and has no sign for NaN (PTX's cvt.rn.satfinite) may differ from the projection,
/// which must round to nearest even. Formats without NaN take the largest number for it on both sides.
template <class Format, class Wide = formats::binary32>
MP_HOST_DEVICE constexpr std::uint32_t first_repaired(const projection& p) {
    constexpr std::uint32_t infinity = layout_of<Wide>::infinity_code;
    if constexpr (!layout_of<Format>::has_nan) return layout_of<Wide>::magnitude_mask + 1u;
    if (p.saturate == saturation::none) return first_overflow<Format, Wide>;
    return p.saturate == saturation::propagate ? infinity : infinity + 1;
}

/// Whether one of two halves has at least the given magnitude code: what is missing to the sign bit, added to
/// the magnitudes, carries into the sign bits of those, and no further.
MP_HOST_DEVICE constexpr bool pair_reaches(std::uint32_t halves, std::uint32_t magnitude) {
    return (((halves & 0x7fff7fff) + 0x10001 * (0x8000 - magnitude)) & 0x80008000) != 0;
}

/// The code that the projection asks for, from what the saturating conversion made of a float. Below
/// first_repaired both round the same value once; from there on it is an overflow, an infinity or a NaN, and
/// known without rounding.
template <class Format>
MP_HOST_DEVICE constexpr std::uint32_t after_satfinite(std::uint32_t code, std::uint32_t x,
                                                       const projection& p) {
    const std::uint32_t magnitude = x & 0x7fffffff;
    if (magnitude < first_repaired<Format>(p)) return code;
    if (magnitude > 0x7f800000) return convert_nan<Format, formats::binary32>(x, p);
    const bool negative = (x >> 31) != 0;
    return join<Format>(negative, overflow_code<Format>(negative, magnitude == 0x7f800000, p));
}

/// As after_satfinite(), from what a conversion of IEEE 754 made of a float, in any rounding: saturation
/// differs from none only where that is infinite. (With saturation::none a value that is too large is
/// infinite or, where the rounding turns it back, already the largest finite number; the others have the
/// largest finite number for both.)
template <class Format>
MP_HOST_DEVICE constexpr std::uint32_t after_conversion(std::uint32_t code, std::uint32_t x,
                                                        const projection& p) {
    const std::uint32_t magnitude = x & 0x7fffffff;
    if (magnitude > 0x7f800000) return convert_nan<Format, formats::binary32>(x, p);
    if (p.saturate == saturation::none ||
        (code & layout_of<Format>::magnitude_mask) != std::uint32_t{layout_of<Format>::infinity_code}) {
        return code;
    }
    const bool negative = (x >> 31) != 0;
    return join<Format>(negative, overflow_code<Format>(negative, magnitude == 0x7f800000, p));
}

/// Formats of up to 8 bits whose numbers become floats and halves by a shift and one exact multiplication.
///
/// The magnitude of a code, moved to the top of a wider fraction and read as a number there, is the value
/// times 2^(bias - wider bias), for normal numbers because the exponent field is read against the wider bias,
/// and for subnormal ones because the field is zero on both sides and means the exponent of field one.
/// Multiplied by the power of two it is the value, which the wider format has: exact, and with the sign moved
/// along as well. It holds only where subnormal operands are not flushed, so not on every host.
template <class Format>
inline constexpr bool widens_by_multiplication =
    layout_of<Format>::width <= 8 && Format::is_signed && layout_of<Format>::has_zero &&
    layout_of<Format>::fraction_bits > 0 && Format::exponent_bits <= 4 && Format::bias >= 0 &&
    Format::bias < 15 && !Format::has_infinity &&
    (Format::nans == nan_encoding::none || Format::nans == nan_encoding::all_ones);

/// The factor and the operand of that multiplication for a float.
template <class Format>
inline constexpr std::uint32_t float_factor = static_cast<std::uint32_t>(254 - Format::bias) << 23;

template <class Format>
MP_HOST_DEVICE constexpr std::uint32_t float_to_multiply(std::uint32_t code) {
    using narrow = layout_of<Format>;
    return ((code & narrow::magnitude_mask) << (23 - narrow::fraction_bits)) |
           ((code & narrow::sign_mask) << (32 - narrow::width));
}

/// A code of widens_by_multiplication with the product that `multiply`, a function of the bits of two floats,
/// gives: the bits of the float.
template <class Format, class Multiply>
MP_HOST_DEVICE constexpr std::uint32_t widen_by_multiplication(std::uint32_t code, Multiply&& multiply) {
    const std::uint32_t value = multiply(float_to_multiply<Format>(code), float_factor<Format>);
    if constexpr (Format::nans == nan_encoding::all_ones) {
        const bool nan = (code & layout_of<Format>::magnitude_mask) == layout_of<Format>::nan_code;
        return nan ? (value & 0x80000000) | 0x7fc00000 : value;
    }
    return value;
}

/// Two codes of a format that has one byte, the first one in the low byte, become two halves, the first one
/// in the low 16 bits; NaNs are the caller's business, see pair_has_nan. `multiply` is a function of two
/// pairs of halves that multiplies them one by one.
///
/// E5M2 is the upper byte of binary16, and only moves.
template <class Format>
inline constexpr bool widens_in_pairs = (widens_by_multiplication<Format> || is_e5m2<Format>) &&
                                        (!layout_of<Format>::has_nan || layout_of<Format>::width == 8);

template <class Format, class Multiply>
MP_HOST_DEVICE constexpr std::uint32_t widen_pair(std::uint32_t codes, [[maybe_unused]] Multiply&& multiply) {
    using narrow = layout_of<Format>;
    if constexpr (is_e5m2<Format>) {
        return ((codes & 0xff) << 8) | ((codes & 0xff00) << 16);
    } else {
        constexpr std::uint32_t both = 0x10001;
        const std::uint32_t apart = (codes & 0xff) | ((codes & 0xff00) << 8);
        const std::uint32_t operands =
            ((apart & (both * narrow::magnitude_mask)) << (10 - narrow::fraction_bits)) |
            ((apart & (both * narrow::sign_mask)) << (16 - narrow::width));
        return multiply(operands, both * (static_cast<std::uint32_t>(30 - Format::bias) << 10));
    }
}

/// Whether one of two codes of 8 or 16 bits next to each other is a NaN. Added to a magnitude, the number of
/// codes behind the last one that is none carries into the sign bit for NaNs alone, and the carry goes no
/// further.
template <class Format>
MP_HOST_DEVICE constexpr bool pair_has_nan(std::uint32_t codes) {
    using narrow = layout_of<Format>;
    if constexpr (!narrow::has_nan) return false;
    constexpr std::uint32_t both = narrow::width == 16 ? 0x10001 : 0x101;
    constexpr std::uint32_t last = narrow::has_infinity ? narrow::infinity_code : narrow::max_finite_code;
    constexpr std::uint32_t nans = narrow::magnitude_mask - last;
    return (((codes & (both * narrow::magnitude_mask)) + both * nans) & (both * narrow::sign_mask)) != 0;
}

}}  // namespace mp::detail
