// SPDX-License-Identifier: MIT
/// \file
/// What a number format is: a handful of constants (the descriptor) and everything that follows from them
/// (the layout). All types of the library, the built-in float and double included, are seen through these.
#pragma once

#include <mp/config.hpp>

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

/// A type that describes a binary floating-point format.
///
/// Three more members are optional: `has_zero = false` for a format whose code 0 is its smallest power of two
/// and that has neither zero nor subnormal numbers (OCP E8M0); `container_bits`, the size in memory of a
/// value that lies in the high bits of something larger (TF32 in 32 bits); and `follows_p3109 = true` for the
/// special cases and the overflow of IEEE P3109, where they differ from those of IEEE 754.
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

namespace detail { inline namespace MP_ISA_NAMESPACE {
template <class Format>
constexpr bool has_zero() {
    if constexpr (requires { Format::has_zero; }) return Format::has_zero;
    return true;
}
template <class Format>
constexpr bool follows_p3109() {
    if constexpr (requires { Format::follows_p3109; }) return Format::follows_p3109;
    return false;
}
template <class Format>
constexpr int container_bits(int width) {
    if constexpr (requires { Format::container_bits; }) return Format::container_bits;
    return width <= 8 ? 8 : width <= 16 ? 16 : width <= 32 ? 32 : 64;
}
template <int Bits>
using unsigned_of_width =
    std::conditional_t<Bits == 8, std::uint8_t,
                       std::conditional_t<Bits == 16, std::uint16_t,
                                          std::conditional_t<Bits == 32, std::uint32_t, std::uint64_t>>>;
}}  // namespace detail

/// All that follows from a descriptor. A magnitude code is the code without its sign bit; the values of
/// magnitude codes grow with the code, so codes can be compared and counted instead of values:
///
///     0 = zero | subnormals | normals ... max_finite_code | infinity_code, if any | NaNs, if any
///
/// or, without zero, normals from code 0 on.
template <format_descriptor Format>
struct layout_of {
    static_assert(Format::exponent_bits >= 1 && Format::exponent_bits <= 16,
                  "mp: a format has between 1 and 16 exponent bits");
    static_assert(Format::fraction_bits >= 0 && Format::fraction_bits <= 52,
                  "mp: a format has between 0 and 52 fraction bits");

    static constexpr int exponent_bits = Format::exponent_bits;
    static constexpr int fraction_bits = Format::fraction_bits;
    static constexpr int magnitude_bits = exponent_bits + fraction_bits;
    /// Bits of one value.
    static constexpr int width = magnitude_bits + (Format::is_signed ? 1 : 0);
    /// The unsigned integer that holds one value: the smallest one, unless the descriptor asks for a larger.
    static constexpr int container_bits = detail::container_bits<Format>(width);
    static_assert(container_bits >= width && (container_bits == 8 || container_bits == 16 ||
                                              container_bits == 32 || container_bits == 64),
                  "mp: the container of a format has 8, 16, 32 or 64 bits, and no fewer than the format");
    using storage = detail::unsigned_of_width<container_bits>;
    /// In memory a code is shifted up by this many bits: the sign is the highest bit of a container that the
    /// descriptor asks for. Zero for all others.
    static constexpr int container_shift = requires { Format::container_bits; } ? container_bits - width : 0;

    /// Whether code 0 is zero, and the codes up to hidden_bit are subnormal numbers.
    static constexpr bool has_zero = detail::has_zero<Format>();
    static constexpr bool is_signed = Format::is_signed;

    /// Significant bits of a normal number, the implicit leading one included.
    static constexpr int precision = fraction_bits + 1;
    /// The smallest normal number is 2^min_exponent.
    static constexpr int min_exponent = (has_zero ? 1 : 0) - Format::bias;
    /// All finite values are multiples of 2^quantum_exponent, the smallest subnormal.
    static constexpr int quantum_exponent = min_exponent - fraction_bits;

    static constexpr storage magnitude_mask = static_cast<storage>((std::uint64_t{1} << magnitude_bits) - 1);
    static constexpr storage sign_mask =
        Format::is_signed ? static_cast<storage>(std::uint64_t{1} << magnitude_bits) : storage{0};
    static constexpr storage fraction_mask = static_cast<storage>((std::uint64_t{1} << fraction_bits) - 1);
    static constexpr storage code_mask = static_cast<storage>(magnitude_mask | sign_mask);
    /// The implicit leading one.
    static constexpr storage hidden_bit = static_cast<storage>(std::uint64_t{1} << fraction_bits);
    static constexpr storage min_normal_code = has_zero ? hidden_bit : storage{0};

    static_assert(Format::is_signed || Format::nans != nan_encoding::negative_zero,
                  "mp: a format without signs has no code of minus zero to be its NaN");
    static_assert(
        !Format::has_infinity || Format::nans != nan_encoding::ieee || exponent_bits >= 2,
        "mp: IEEE specials take the highest exponent, so there must be another one for the numbers");

    static constexpr bool has_infinity = Format::has_infinity;
    static constexpr bool has_nan = Format::nans != nan_encoding::none;
    /// Special cases and overflow as in IEEE P3109: x / 0 is NaN, and without infinities everything saturates.
    static constexpr bool follows_p3109 = detail::follows_p3109<Format>();
    /// Whether overflow to nearest leaves the finite numbers, for infinity or NaN in its place.
    static constexpr bool can_overflow = has_infinity || (has_nan && !follows_p3109);
    /// Specials as in IEEE 754.
    static constexpr bool is_ieee = has_infinity && Format::nans == nan_encoding::ieee;
    static constexpr bool has_signed_zero =
        Format::is_signed && has_zero && Format::nans != nan_encoding::negative_zero;

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
    static constexpr int max_exponent =
        (max_finite_code < min_normal_code ? 1 : static_cast<int>(max_finite_code >> fraction_bits)) -
        Format::bias;
};

/// Whether a P3109 format has negative numbers, and whether it has infinities.
enum class signedness : unsigned char { is_signed, is_unsigned };
enum class domain : unsigned char { finite, extended };

namespace formats {

/// IEEE P3109 interim report 4.0, section 3.1: the exponent bias is 2^(K - P - 1) with signs and 2^(K - P)
/// without; NaN is the code of minus zero with signs and the highest code without; infinity is the highest
/// magnitude that is left. Annex C has the formats of two bits.
template <int K, int P, signedness Signs = signedness::is_signed, domain Domain = domain::extended>
struct p3109 {
    static_assert(K >= 2 && K <= 16, "mp: formats of P3109 have 2 to 16 bits here");
    static_assert(
        P >= 1 && (Signs == signedness::is_signed ? P < K : P <= K),
        "mp: the precision P of a P3109 format is at least 1, and less than K (K itself without signs)");

    static constexpr bool is_signed = Signs == signedness::is_signed;
    static constexpr int exponent_bits = is_signed ? K - P : K - P + 1;
    static constexpr int fraction_bits = P - 1;
    static constexpr int bias = 1 << (exponent_bits - 1);
    static constexpr bool has_infinity = Domain == domain::extended;
    static constexpr bool follows_p3109 = true;
    static constexpr nan_encoding nans = is_signed ? nan_encoding::negative_zero : nan_encoding::all_ones;

private:
    // binary8p4se and the like.
    static constexpr struct text {
        char characters[16];
    } name_text = [] {
        text result{{'b', 'i', 'n', 'a', 'r', 'y'}};
        int length = 6;
        const auto write = [&](int n) {
            if (n >= 10) result.characters[length++] = static_cast<char>('0' + n / 10);
            result.characters[length++] = static_cast<char>('0' + n % 10);
        };
        write(K);
        result.characters[length++] = 'p';
        write(P);
        result.characters[length++] = is_signed ? 's' : 'u';
        result.characters[length++] = has_infinity ? 'e' : 'f';
        return result;
    }();

public:
    static constexpr const char* name = name_text.characters;
};

}  // namespace formats

}  // namespace mp
