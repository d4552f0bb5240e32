// SPDX-License-Identifier: MIT
/// \file
/// What a number format is: a handful of constants (the descriptor) and everything that follows from them
/// (the layout). All types of the library, the built-in float and double included, are seen through these.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace mp {

/// Which codes of a format are NaN.
enum class nan_encoding : unsigned char {
    ieee,           ///< exponent field all ones and fraction not zero, as in IEEE 754
    all_ones,       ///< only the magnitude with every bit set (OCP E4M3, "fn")
    negative_zero,  ///< only the code that would be minus zero ("fnuz", IEEE P3109)
    none            ///< there is no NaN (MX FP6 and FP4)
};

/// Descriptors of the formats that have a name. A descriptor of your own with the same members works
/// everywhere these do: mp::basic_float<my_format>.
///
/// Sources: IEEE 754-2019 table 3.5 (binary16, binary32, binary64), the BFloat16 numerics definition of
/// Intel (2018), OCP 8-bit floating point specification OFP8 1.0 table 1 (E4M3 and E5M2).
namespace formats {

/// IEEE 754 binary16, "half" or "fp16": 1 sign, 5 exponent and 10 fraction bits.
struct binary16 {
    static constexpr const char* name = "half";
    static constexpr int exponent_bits = 5;
    static constexpr int fraction_bits = 10;
    static constexpr int bias = 15;
    static constexpr bool is_signed = true;
    static constexpr bool has_infinity = true;
    static constexpr nan_encoding nans = nan_encoding::ieee;
};

/// bfloat16: the upper half of binary32, so the range of float at 8 bits of precision.
struct bfloat16 {
    static constexpr const char* name = "bfloat16";
    static constexpr int exponent_bits = 8;
    static constexpr int fraction_bits = 7;
    static constexpr int bias = 127;
    static constexpr bool is_signed = true;
    static constexpr bool has_infinity = true;
    static constexpr nan_encoding nans = nan_encoding::ieee;
};

/// OCP OFP8 E4M3: no infinities, one NaN magnitude, and therefore finite values up to 448.
struct float8_e4m3fn {
    static constexpr const char* name = "float8_e4m3fn";
    static constexpr int exponent_bits = 4;
    static constexpr int fraction_bits = 3;
    static constexpr int bias = 7;
    static constexpr bool is_signed = true;
    static constexpr bool has_infinity = false;
    static constexpr nan_encoding nans = nan_encoding::all_ones;
};

/// OCP OFP8 E5M2: the upper byte of binary16, with IEEE infinities and NaNs; finite values up to 57344.
struct float8_e5m2 {
    static constexpr const char* name = "float8_e5m2";
    static constexpr int exponent_bits = 5;
    static constexpr int fraction_bits = 2;
    static constexpr int bias = 15;
    static constexpr bool is_signed = true;
    static constexpr bool has_infinity = true;
    static constexpr nan_encoding nans = nan_encoding::ieee;
};

/// IEEE 754 binary32, the built-in float.
struct binary32 {
    static constexpr const char* name = "float";
    static constexpr int exponent_bits = 8;
    static constexpr int fraction_bits = 23;
    static constexpr int bias = 127;
    static constexpr bool is_signed = true;
    static constexpr bool has_infinity = true;
    static constexpr nan_encoding nans = nan_encoding::ieee;
};

/// IEEE 754 binary64, the built-in double.
struct binary64 {
    static constexpr const char* name = "double";
    static constexpr int exponent_bits = 11;
    static constexpr int fraction_bits = 52;
    static constexpr int bias = 1023;
    static constexpr bool is_signed = true;
    static constexpr bool has_infinity = true;
    static constexpr nan_encoding nans = nan_encoding::ieee;
};

}  // namespace formats

/// A type that describes a binary floating-point format.
template <class Format>
concept format_descriptor = requires {
    { Format::name } -> std::convertible_to<const char*>;
    { Format::exponent_bits } -> std::convertible_to<int>;
    { Format::fraction_bits } -> std::convertible_to<int>;
    { Format::bias } -> std::convertible_to<int>;
    { Format::is_signed } -> std::convertible_to<bool>;
    { Format::has_infinity } -> std::convertible_to<bool>;
    { Format::nans } -> std::convertible_to<nan_encoding>;
};

/// All that follows from a descriptor. A magnitude code is the code without its sign bit; the values of
/// magnitude codes grow with the code, so codes can be compared and counted instead of values:
///
///     0 = zero | subnormals | normals ... max_finite_code | infinity_code, if any | NaNs, if any
template <format_descriptor Format>
struct layout_of {
    static_assert(Format::exponent_bits >= 1 && Format::exponent_bits <= 11,
                  "mp: a format has between 1 and 11 exponent bits");
    static_assert(Format::fraction_bits >= 0 && Format::fraction_bits <= 52,
                  "mp: a format has between 0 and 52 fraction bits");

    static constexpr int exponent_bits = Format::exponent_bits;
    static constexpr int fraction_bits = Format::fraction_bits;
    static constexpr int magnitude_bits = exponent_bits + fraction_bits;
    /// Bits of one value.
    static constexpr int width = magnitude_bits + (Format::is_signed ? 1 : 0);
    /// The smallest unsigned integer that holds one value.
    using storage = std::conditional_t<
        (width <= 8), std::uint8_t,
        std::conditional_t<(width <= 16), std::uint16_t,
                           std::conditional_t<(width <= 32), std::uint32_t, std::uint64_t>>>;

    /// Significant bits of a normal number, the implicit leading one included.
    static constexpr int precision = fraction_bits + 1;
    /// The smallest normal number is 2^min_exponent.
    static constexpr int min_exponent = 1 - Format::bias;
    /// All finite values are multiples of 2^quantum_exponent, the smallest subnormal.
    static constexpr int quantum_exponent = min_exponent - fraction_bits;

    static constexpr storage magnitude_mask = static_cast<storage>((std::uint64_t{1} << magnitude_bits) - 1);
    static constexpr storage sign_mask =
        Format::is_signed ? static_cast<storage>(std::uint64_t{1} << magnitude_bits) : storage{0};
    static constexpr storage fraction_mask = static_cast<storage>((std::uint64_t{1} << fraction_bits) - 1);
    /// The implicit leading one, and at the same time the code of the smallest normal number.
    static constexpr storage hidden_bit = static_cast<storage>(std::uint64_t{1} << fraction_bits);

    static constexpr bool has_infinity = Format::has_infinity;
    static constexpr bool has_nan = Format::nans != nan_encoding::none;
    /// Specials as in IEEE 754.
    static constexpr bool is_ieee = has_infinity && Format::nans == nan_encoding::ieee;
    static constexpr bool has_signed_zero = Format::is_signed && Format::nans != nan_encoding::negative_zero;

    /// The first magnitude code that no finite value has, as far as infinities and NaNs take codes away.
    static constexpr std::uint64_t finite_code_count =
        Format::nans == nan_encoding::ieee
            ? ((std::uint64_t{1} << exponent_bits) - 1) << fraction_bits
            : (std::uint64_t{1} << magnitude_bits) - (Format::nans == nan_encoding::all_ones ? 1 : 0) -
                  (has_infinity ? 1 : 0);
    static constexpr storage max_finite_code = static_cast<storage>(finite_code_count - 1);
    /// Code of infinity where the format has one; else the first code past the finite ones.
    static constexpr storage infinity_code = static_cast<storage>(finite_code_count);
    /// The bit that tells quiet from signalling NaNs; zero where there is no such difference.
    static constexpr storage quiet_bit = Format::nans == nan_encoding::ieee && fraction_bits > 0
                                             ? static_cast<storage>(hidden_bit >> 1)
                                             : storage{0};
    /// The NaN that operations return when no operand gives a payload, without a sign. Zero where the format
    /// has no NaN.
    static constexpr storage nan_code = Format::nans == nan_encoding::ieee
                                            ? static_cast<storage>(infinity_code | quiet_bit)
                                        : Format::nans == nan_encoding::all_ones      ? magnitude_mask
                                        : Format::nans == nan_encoding::negative_zero ? sign_mask
                                                                                      : storage{0};
    /// The largest finite value lies in [2^max_exponent, 2^(max_exponent + 1)).
    static constexpr int max_exponent = static_cast<int>(max_finite_code >> fraction_bits) - Format::bias;
};

}  // namespace mp
