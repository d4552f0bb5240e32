// SPDX-License-Identifier: MIT
/// \file
/// Conversions between a format and float or double without branches, so that a loop over them vectorises.
/// Equal to the integer core (tests prove it for every code and for every float), but nearest-even only.
///
/// Written for what compilers make of it: comparisons are of signed integers, because SSE2 has no others, and
/// choices that involve a float operation go through masks, because a compiler that honours floating-point
/// exceptions moves such an operation into a branch, and then gives up vectorising.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/exact.hpp>
#include <mp/numbers/format/named_formats.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The descriptor of a built-in type.
template <class Native>
struct native_format;
template <>
struct native_format<float> {
    using type = formats::binary32;
};
template <>
struct native_format<double> {
    using type = formats::binary64;
};

/// float or double.
template <class T>
concept built_in = std::same_as<T, float> || std::same_as<T, double>;

/// 2^exponent as float or double; the exponent must be that of a normal number.
template <class Native>
MP_HOST_DEVICE constexpr Native power_of_two(int exponent) {
    using wide = layout_of<typename native_format<Native>::type>;
    constexpr int bias = native_format<Native>::type::bias;
    return bit_cast<Native>(static_cast<typename wide::storage>(
        static_cast<typename wide::storage>(exponent + bias) << wide::fraction_bits));
}

/// A format whose numbers are all numbers of Native, with room for the tricks below: either it has zero, a
/// sign, a fraction and a smaller exponent field, in the middle of Native's range, or it is Native with fewer
/// fraction bits (bfloat16 in float).
template <class Format, class Native>
inline constexpr bool fast_path_in = [] {
    using native = typename native_format<Native>::type;
    using narrow = layout_of<Format>;
    using wide = layout_of<native>;
    if (!narrow::is_signed || !narrow::has_zero || narrow::fraction_bits == 0) return false;
    if (narrow::max_finite_code < narrow::min_normal_code) return false;
    if (narrow::exponent_bits == wide::exponent_bits) {
        return Format::bias == native::bias && narrow::fraction_bits < wide::fraction_bits && narrow::is_ieee;
    }
    return narrow::exponent_bits < wide::exponent_bits && narrow::fraction_bits + 2 < wide::fraction_bits &&
           narrow::quantum_exponent >= wide::min_exponent && narrow::max_exponent < wide::max_exponent &&
           (narrow::is_ieee || Format::nans != nan_encoding::ieee);
}();

/// Whether every number of a format is a number of Native.
template <class Format, class Native>
inline constexpr bool exactly_representable_in =
    layout_of<Format>::precision <= layout_of<typename native_format<Native>::type>::precision &&
    layout_of<Format>::quantum_exponent >=
        layout_of<typename native_format<Native>::type>::quantum_exponent &&
    layout_of<Format>::max_exponent <= layout_of<typename native_format<Native>::type>::max_exponent;

/// Whether a < b, for words whose highest bit is zero.
template <class Word>
MP_HOST_DEVICE constexpr bool less(Word a, Word b) {
    using signed_word = std::make_signed_t<Word>;
    return static_cast<signed_word>(a) < static_cast<signed_word>(b);
}

/// All ones if the condition holds, else zero.
template <class Word>
MP_HOST_DEVICE constexpr Word mask_of(bool condition) {
    return static_cast<Word>(Word{0} - static_cast<Word>(condition));
}

/// One of two words, chosen without a branch.
template <class Word>
MP_HOST_DEVICE constexpr Word select(bool condition, Word yes, Word no) {
    const Word mask = mask_of<Word>(condition);
    return static_cast<Word>(no ^ ((yes ^ no) & mask));
}

/// The value of a code as float or double, exactly; NaNs become quiet and keep sign and payload. The code may
/// come in a wider integer than its own, such as one of Native's size, which saves compilers some shuffling.
///
/// Formats with the exponent field of Native: the bits need only move to their place. In all others:
/// - Normal numbers: move the bits and add the difference of the biases to the exponent field.
/// - Subnormal numbers, code m: with M = 2^(quantum + fraction bits of Native), the bits of M with m in the
///   lowest places are the number M + m * quantum, so subtracting M leaves the value. Both are normal numbers
///   of Native, which is why flushing of subnormals in the environment does no harm; the difference is exact, and
///   only the sign of zero is a matter of the rounding direction.
/// - Infinities and NaNs of IEEE formats have all ones in the exponent field; adding what is missing to all
///   ones in the wider field leaves the payload alone.
template <class Native, class Format, std::unsigned_integral Code>
    requires fast_path_in<Format, Native>
MP_HOST_DEVICE constexpr Native widen(Code code) {
    using native = typename native_format<Native>::type;
    using narrow = layout_of<Format>;
    using wide = layout_of<native>;
    using word = typename wide::storage;
    constexpr int shift = wide::fraction_bits - narrow::fraction_bits;
    if constexpr (Format::exponent_bits == native::exponent_bits) {
        const auto bits = static_cast<typename narrow::storage>(code);
        const auto magnitude = static_cast<typename narrow::storage>(bits & narrow::magnitude_mask);
        const auto quiet = static_cast<typename narrow::storage>(
            less(narrow::infinity_code, magnitude) ? narrow::quiet_bit : 0);
        return bit_cast<Native>(
            static_cast<word>(word{static_cast<typename narrow::storage>(bits | quiet)} << shift));
    } else {
        const word magnitude = code & narrow::magnitude_mask;
        constexpr word bias_difference = static_cast<word>(native::bias - Format::bias)
                                         << wide::fraction_bits;
        auto result = static_cast<word>((magnitude << shift) + bias_difference);
        bool has_sign = true;
        if constexpr (Format::nans == nan_encoding::ieee) {
            constexpr word first = narrow::infinity_code;
            constexpr word missing = wide::infinity_code - ((first << shift) + bias_difference);
            result += magnitude >= first ? missing : word{0};
            result |= magnitude > first ? word{wide::quiet_bit} : word{0};
        } else {
            if constexpr (narrow::has_infinity) {
                result = select(magnitude == narrow::infinity_code, word{wide::infinity_code}, result);
            }
            if constexpr (Format::nans == nan_encoding::all_ones) {
                result = select(magnitude == narrow::nan_code, word{wide::nan_code}, result);
            }
        }
        constexpr Native unit = power_of_two<Native>(narrow::quantum_exponent + wide::fraction_bits);
        const auto raised = static_cast<word>(bit_cast<word>(unit) | magnitude);
        const auto subnormal = bit_cast<word>(bit_cast<Native>(raised) - unit) & wide::magnitude_mask;
        result = select(less(magnitude, word{narrow::hidden_bit}), subnormal, result);
        if constexpr (Format::nans == nan_encoding::negative_zero) {
            has_sign = code != narrow::nan_code;
            result = select(has_sign, result, word{wide::nan_code});
        }
        const word sign = static_cast<word>(code & narrow::sign_mask) << (wide::width - narrow::width);
        return bit_cast<Native>(static_cast<word>(result | (has_sign ? sign : word{0})));
    }
}

/// The upper 32 bits of a double, seen as a format.
struct upper_binary64 {
    static constexpr const char* name = "upper half of double";
    static constexpr int exponent_bits = 11;
    static constexpr int fraction_bits = 20;
    static constexpr int bias = 1023;
    static constexpr bool is_signed = true;
    static constexpr bool has_infinity = true;
    static constexpr nan_encoding nans = nan_encoding::ieee;
};

/// The magnitude of a double rounded to odd to the 21 bits of precision of its upper half: the last bit is set if
/// anything below is. Rounding that to nearest at 19 bits or fewer is rounding once (Boldo and Melquiond 2008).
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr std::uint32_t rounded_to_odd(std::uint64_t bits) {
    const auto upper = static_cast<std::uint32_t>(bits >> 32);
    return (upper & 0x7fffffff) | static_cast<std::uint32_t>(static_cast<std::uint32_t>(bits) != 0);
}

/// What a number is rounded from: as it is, or, of a double, only the upper half where the format is so narrow.
template <class Format, class Native>
using rounding_source = std::conditional_t<std::same_as<Native, double> && layout_of<Format>::precision <= 19,
                                           upper_binary64, typename native_format<Native>::type>;

/// Its magnitude as a code of rounding_source.
template <class Format, class Native>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr auto magnitude_to_round(Native x) {
    using layout = layout_of<typename native_format<Native>::type>;
    const auto bits = bit_cast<typename layout::storage>(x);
    if constexpr (std::same_as<rounding_source<Format, Native>, upper_binary64>) {
        return rounded_to_odd(bits);
    } else {
        return static_cast<typename layout::storage>(bits & layout::magnitude_mask);
    }
}

/// The magnitude code that a magnitude below the smallest normal number of the format rounds to, ties going to
/// even. Without branches, and computed in vain for other magnitudes.
///
/// Float's conversion to an integer truncates, whatever the rounding direction, and is there on vectors of every
/// processor. In units of 2^-kept quanta the magnitude is below 2^31, and only bits below the unit are lost. So
/// that no tie is mistaken for one, the significand is rounded to odd to `kept` bits first: of half a quantum or
/// more, all of them are then integers. The factor 2^(kept - quantum exponent) goes into the exponent field, where
/// subnormal floats become numbers far below the unit.
///
/// Where that has no room, the significand is shifted by what its exponent is below the quantum's.
template <class Format, class Source>
MP_HOST_DEVICE constexpr typename layout_of<Source>::storage round_to_subnormal(
    typename layout_of<Source>::storage magnitude) {
    using narrow = layout_of<Format>;
    using source = layout_of<Source>;
    using word = typename source::storage;
    constexpr int kept = 31 - narrow::fraction_bits;
    if constexpr (sizeof(word) == 4 && kept >= narrow::precision + 2) {
        if constexpr (source::precision > kept) {
            constexpr word dropped = (word{1} << (source::precision - kept)) - 1;
            magnitude = (magnitude | ((magnitude & dropped) + dropped)) & ~dropped;
        }
        // Zero where it is not wanted: what is larger has no place in an integer.
        constexpr word smallest = static_cast<word>(Source::bias + narrow::min_exponent)
                                  << source::fraction_bits;
        bool wanted = less(magnitude, smallest);
        constexpr int rebias = 127 - Source::bias + kept - narrow::quantum_exponent;
        if constexpr (Source::exponent_bits > 8 || rebias < 0) {
            constexpr word least = static_cast<word>(Source::bias + narrow::quantum_exponent - 2)
                                   << source::fraction_bits;
            wanted = wanted && less(least, magnitude);
        }
        const word scaled = (magnitude << (23 - source::fraction_bits)) + (static_cast<word>(rebias) << 23);
        const auto number = bit_cast<float>(scaled & mask_of<word>(wanted));
        const auto units = static_cast<word>(static_cast<std::int32_t>(number));
        const word odd = (units >> kept) & 1;
        return (units + ((word{1} << (kept - 1)) - 1) + odd) >> kept;
    } else {
        constexpr int last = Source::bias + narrow::quantum_exponent + source::fraction_bits;
        constexpr int all = source::fraction_bits + 2;  // nothing is left of a significand that loses these
        const bool is_normal = magnitude >= source::hidden_bit;
        const int wanted = last - (is_normal ? static_cast<int>(magnitude >> source::fraction_bits) : 1);
        const int at_least_one = wanted < 1 ? 1 : wanted;
        const int lost = at_least_one < all ? at_least_one : all;
        const word significand =
            (magnitude & source::fraction_mask) | (is_normal ? source::hidden_bit : word{0});
        const word odd = (significand >> lost) & 1;
        return static_cast<word>(significand + ((word{1} << (lost - 1)) - 1) + odd) >> lost;
    }
}

/// Rounds a magnitude code of Source (binary32, binary64 or upper_binary64) to nearest even once, overflow as
/// saturation::none: the magnitude code of Format. Ties of normal results can go toward zero instead.
///
/// Results that are normal: adding (half a unit - 1) plus the lowest kept bit to the bits of the magnitude
/// carries into the kept bits exactly when nearest-even rounds up, and a carry out of the fraction lands in
/// the exponent field, as it should. What is too large is first brought down to the code that follows the
/// largest finite one, which has no low bits to round.
template <class Format, class Source, bool TiesTowardZero = false>
MP_HOST_DEVICE constexpr typename layout_of<Source>::storage round_magnitude(
    typename layout_of<Source>::storage magnitude) {
    using narrow = layout_of<Format>;
    using source = layout_of<Source>;
    using word = typename source::storage;
    constexpr int shift = source::fraction_bits - narrow::fraction_bits;
    constexpr word bias_difference = static_cast<word>(Source::bias - Format::bias) << source::fraction_bits;
    constexpr word half_minus_one = (word{1} << (shift - 1)) - 1;
    // The code after the largest finite one, if it is not a finite one in its turn.
    constexpr word beyond = word{narrow::max_finite_code} + (narrow::can_overflow ? 1 : 0);
    constexpr word overflow = !narrow::can_overflow  ? beyond
                              : narrow::has_infinity ? word{narrow::infinity_code}
                                                     : word{narrow::nan_code};

    constexpr word largest = (beyond << shift) + bias_difference;
    const word last_kept = TiesTowardZero ? 0 : (magnitude >> shift) & 1;
    const word limited = less(magnitude, largest) ? magnitude : largest;
    word code = (limited - bias_difference + half_minus_one + last_kept) >> shift;
    if constexpr (overflow != beyond) code = select(code == beyond, overflow, code);

    constexpr word smallest_normal = static_cast<word>(Source::bias + narrow::min_exponent)
                                     << source::fraction_bits;
    code = select(less(magnitude, smallest_normal), round_to_subnormal<Format, Source>(magnitude), code);

    word nan = narrow::has_nan ? narrow::nan_code : narrow::max_finite_code;
    if constexpr (Format::nans == nan_encoding::ieee) nan |= (magnitude >> shift) & narrow::fraction_mask;
    return select(less(word{source::infinity_code}, magnitude), nan, code);
}

/// Rounds a float or double to nearest even once, overflow as saturation::none; the code is in the low bits.
template <class Format, bool TiesTowardZero = false, class Native>
    requires fast_path_in<Format, Native>
MP_HOST_DEVICE constexpr std::uint32_t narrow_to_word(Native x) {
    using narrow = layout_of<Format>;
    using native = typename native_format<Native>::type;
    const auto bits = bit_cast<typename layout_of<native>::storage>(x);
    if constexpr (Format::exponent_bits == native::exponent_bits) {
        // There is neither overflow to look after nor underflow, and the sign can stay where it is.
        using word = typename layout_of<native>::storage;
        constexpr int shift = native::fraction_bits - narrow::fraction_bits;
        constexpr word half_minus_one = (word{1} << (shift - 1)) - 1;
        const word kept = bits >> shift;
        const word rounded = (bits + half_minus_one + (kept & 1)) >> shift;
        const bool nan = less(layout_of<native>::infinity_code, bits & layout_of<native>::magnitude_mask);
        return static_cast<std::uint32_t>(select(nan, kept | narrow::quiet_bit, rounded));
    }
    const auto code =
        static_cast<std::uint32_t>(round_magnitude<Format, rounding_source<Format, Native>, TiesTowardZero>(
            magnitude_to_round<Format>(x)));
    auto sign = static_cast<std::uint32_t>(bits >> (layout_of<native>::width - 32)) & 0x80000000;
    sign >>= 31 - narrow::magnitude_bits;
    if constexpr (!Format::is_signed) {
        return code;
    } else if constexpr (Format::nans == nan_encoding::negative_zero) {
        // Zero and NaN have no sign.
        constexpr std::uint32_t infinite_or_finite = narrow::max_finite_code + (narrow::has_infinity ? 1 : 0);
        return code | (sign & mask_of<std::uint32_t>(code - 1 < infinite_or_finite));
    } else if constexpr (!narrow::has_nan) {
        // What stands for NaN has no sign.
        const bool nan = categorize<native>(bits) == category::nan;
        return code | (sign & mask_of<std::uint32_t>(!nan));
    } else {
        return code | sign;
    }
}

/// widen for a number that stands alone, where a branch that is nearly always right costs less than going
/// through all cases: normal numbers first.
template <class Native, class Format>
    requires fast_path_in<Format, Native>
MP_HOST_DEVICE constexpr Native widen_one(typename layout_of<Format>::storage code) {
    using native = typename native_format<Native>::type;
    using narrow = layout_of<Format>;
    using wide = layout_of<native>;
    using word = typename wide::storage;
    constexpr int shift = wide::fraction_bits - narrow::fraction_bits;
    constexpr word bias_difference = static_cast<word>(native::bias - Format::bias) << wide::fraction_bits;
    const word magnitude = code & narrow::magnitude_mask;
    const auto from_smallest = static_cast<word>(magnitude - narrow::hidden_bit);
    if (from_smallest > word{narrow::max_finite_code} - narrow::hidden_bit)
        return widen<Native, Format>(code);
    const word sign = static_cast<word>(code & narrow::sign_mask) << (wide::width - narrow::width);
    return bit_cast<Native>(static_cast<word>(((magnitude << shift) + bias_difference) | sign));
}

/// Stores the code of a number that rounds to a normal one, or in IEEE's formats overflows just beyond; false for
/// all others. Ties can go toward zero.
template <class Format, bool TiesTowardZero = false, class Native>
    requires fast_path_in<Format, Native> &&
             (Format::exponent_bits < native_format<Native>::type::exponent_bits)
MP_HOST_DEVICE
MP_ALWAYS_INLINE constexpr bool narrow_normal(Native x, typename layout_of<Format>::storage& code) {
    using native = typename native_format<Native>::type;
    using narrow = layout_of<Format>;
    using wide = layout_of<native>;
    using word = typename wide::storage;
    constexpr int shift = wide::fraction_bits - narrow::fraction_bits;
    constexpr word bias_difference = static_cast<word>(native::bias - Format::bias) << wide::fraction_bits;
    constexpr word half_minus_one = (word{1} << (shift - 1)) - 1;
    constexpr word smallest = (word{narrow::hidden_bit} << shift) + bias_difference;
    // In IEEE's formats what is above the largest number rounds to that or, one code on, to infinity.
    constexpr word above = narrow::is_ieee ? (word{1} << shift) - 1 : 0;
    constexpr word largest = (word{narrow::max_finite_code} << shift) + bias_difference + above;
    const word bits = bit_cast<word>(x);
    const word magnitude = bits & wide::magnitude_mask;
    if (magnitude - smallest > largest - smallest) return false;
    const word last_kept = TiesTowardZero ? 0 : (magnitude >> shift) & 1;
    const word rounded = (magnitude - bias_difference + half_minus_one + last_kept) >> shift;
    const word sign = (bits & wide::sign_mask) >> (wide::width - 1 - narrow::magnitude_bits);
    code = static_cast<typename narrow::storage>(Format::is_signed ? rounded | sign : rounded);
    return true;
}

/// narrow_to_word for a number that stands alone, where a branch that is nearly always right costs less than going
/// through all cases.
template <class Format, bool TiesTowardZero = false, class Native>
    requires fast_path_in<Format, Native>
MP_HOST_DEVICE constexpr typename layout_of<Format>::storage narrow_nearest_even(Native x) {
    using storage = typename layout_of<Format>::storage;
    if constexpr (Format::exponent_bits < native_format<Native>::type::exponent_bits) {
        storage code = 0;
        if (narrow_normal<Format, TiesTowardZero>(x, code)) return code;
    }
    return static_cast<storage>(narrow_to_word<Format, TiesTowardZero>(x));
}

}}  // namespace mp::detail
