// SPDX-License-Identifier: MIT
/// \file
/// The elements of block-scaled arrays, numbers of up to 8 bits and the fixed-point element of MXINT8; and the scale of
/// a block, in exact integer arithmetic.
#pragma once

#include <mp/arrays/convert/bulk.hpp>
#include <mp/float8.hpp>
#include <mp/numbers/rules/block_scales.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>

namespace mp {

namespace detail { inline namespace MP_ISA_NAMESPACE {

/// The magnitudes of MXINT8 with a sign bit. A number with an exponent field of one bit is a multiple of the
/// quantum m * 2^-6 with m up to 127: its "normal" numbers go on where the "subnormal" ones end. So the core
/// that rounds to floating-point formats rounds to this fixed-point one, in every projection.
struct mx_int8_magnitude : finite_format<1, 6, 1> {
    static constexpr const char* name = "mx_int8";
};

}}  // namespace detail

/// The element of MXINT8: an 8-bit integer in two's complement that counts 64ths, so that values lie between
/// -127/64 and 127/64 (OCP MX 1.0, section 5.3.4). The code -128, which stands for -2, is read but never
/// written: the range in which values are rounded is symmetric, as that section recommends.
///
/// Conversion rounds to nearest even and saturates; NaN becomes 127/64.
class mx_int8 {
public:
    /// Uninitialised, like a built-in number; mx_int8{} is zero.
    mx_int8() = default;

    /// The number of a code, an integer in two's complement.
    [[nodiscard]] MP_HOST_DEVICE static constexpr mx_int8 from_bits(std::uint8_t bits) noexcept {
        mx_int8 result{};
        result.code_ = bits;
        return result;
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr std::uint8_t bits() const noexcept { return code_; }
    /// The integer; the value is this over 64.
    [[nodiscard]] MP_HOST_DEVICE constexpr int count_of_64ths() const noexcept {
        return code_ < 128 ? code_ : code_ - 256;
    }

    MP_HOST_DEVICE explicit constexpr mx_int8(float x, projection p = {}) noexcept
        : code_(from_magnitude(detail::from_native<detail::mx_int8_magnitude>(x, p))) {}
    MP_HOST_DEVICE explicit constexpr mx_int8(double x, projection p = {}) noexcept
        : code_(from_magnitude(detail::from_native<detail::mx_int8_magnitude>(x, p))) {}
    /// Exact.
    MP_HOST_DEVICE constexpr operator float() const noexcept {
        return static_cast<float>(count_of_64ths()) * 0.015625f;
    }

    /// Two's complement from a magnitude of 7 bits with a sign bit.
    [[nodiscard]] MP_HOST_DEVICE static constexpr std::uint8_t from_magnitude(std::uint8_t code) noexcept {
        const auto all_ones_if_negative = static_cast<std::uint8_t>(-(code >> 7));
        const auto magnitude = static_cast<std::uint8_t>(code & 0x7f);
        return static_cast<std::uint8_t>((magnitude ^ all_ones_if_negative) - all_ones_if_negative);
    }

private:
    std::uint8_t code_;
};

/// Element types of block-scaled arrays: a number of up to 8 bits that has a zero and a sign, or mx_int8.
template <class T>
concept block_element = std::same_as<T, mx_int8> ||(
    reduced<T>&& requires { requires layout_of<typename T::format>::width <= 8; } &&
    requires { requires detail::fast_path_in<typename T::format, float>; });

namespace detail { inline namespace MP_ISA_NAMESPACE {

/// Rounding and storage of an element type.
template <class Element>
struct element_coding {
    using format = typename Element::format;
    MP_HOST_DEVICE static constexpr std::uint8_t from_code(std::uint8_t code) noexcept { return code; }
    /// The values of a block of codes.
    static void widen(const std::uint8_t* codes, double* values) noexcept {
        widen_block<format>(codes, values);
    }
};
template <>
struct element_coding<mx_int8> {
    using format = mx_int8_magnitude;
    MP_HOST_DEVICE static constexpr std::uint8_t from_code(std::uint8_t code) noexcept {
        return mx_int8::from_magnitude(code);
    }
    static void widen(const std::uint8_t* codes, double* values) noexcept {
        for (std::size_t i = 0; i < convert_block; ++i) {
            values[i] = static_cast<double>(static_cast<std::int8_t>(codes[i])) * 0.015625;
        }
    }
};

template <class Element>
using coding_format = typename element_coding<Element>::format;

/// Bits of an element in memory.
template <class Element>
inline constexpr int element_width = layout_of<coding_format<Element>>::width;

}}  // namespace detail

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Scale>
inline constexpr bool is_power_of_two_scale = is_float_exponent<typename Scale::format>;

/// n / (divisor * 2^exponent) with at least 64 bits of significand, what is left over being sticky.
MP_HOST_DEVICE constexpr exact_value divide_exact(const exact_value& n, std::uint64_t divisor,
                                                  int exponent) noexcept {
    const int shift = 64 + leading_zeros(n.significand);
    const uint128 numerator = static_cast<uint128>(n.significand) << shift;
    const uint128 quotient = numerator / divisor;
    const bool rest = quotient * divisor != numerator || n.sticky;
    return to_64_bits(exact_number<uint128>{n.negative, n.exponent - shift - exponent, quotient, rest});
}

/// As divide_exact(), with at least 64 - b bits, for a divisor of b bits; a division of 64 bits is ten times
/// as fast.
MP_HOST_DEVICE constexpr exact_value divide_to_few_bits(const exact_value& n, std::uint64_t divisor,
                                                        int exponent) noexcept {
    const int shift = leading_zeros(n.significand);
    const std::uint64_t numerator = n.significand << shift;
    const std::uint64_t quotient = numerator / divisor;
    return {n.negative, n.exponent - shift - exponent, quotient, quotient * divisor != numerator || n.sticky};
}

/// The exponent of the scale of a block, by a rule other than standard, clamped to what E8M0 holds. The
/// significand has up to 62 bits.
template <class Element>
constexpr int scale_exponent(const exact_value& amax, scale_rule rule) noexcept {
    const int shift = leading_zeros(amax.significand);
    constexpr int bias = 127;
    return single_lane::scale_exponent_code<coding_format<Element>, 62>(rule, amax.significand << shift >> 2,
                                                                        amax.exponent + 63 - shift + bias) -
           bias;
}

/// As scale_exponent(), for an infinite amax. Under floor and even it counts as 2^128, as it does when the
/// exponent field of a float is looked at; the others have the largest scale.
template <class Element>
constexpr int infinite_scale_exponent(scale_rule rule) noexcept {
    const bool looks_at_exponent = rule == scale_rule::floor || rule == scale_rule::even;
    return looks_at_exponent ? scale_exponent<Element>({false, 128, 1}, scale_rule::floor) : 127;
}

/// Code of the smallest scale of a block.
template <class Scale>
constexpr std::uint8_t smallest_scale_code(block_scale_floor floor) noexcept {
    using layout = layout_of<typename Scale::format>;
    if (!layout::has_zero || floor == block_scale_floor::none) return 0;
    return static_cast<std::uint8_t>(floor == block_scale_floor::smallest ? 1 : layout::hidden_bit);
}

/// The code of a scale that is no power of two: amax / (max * tensor scale), rounded once, and at least
/// `smallest`. `max` is the element that amax becomes.
template <class Element, class Scale>
constexpr std::uint8_t scale_code(const exact_value& amax, float tensor_scale, scale_rule rule,
                                  std::uint8_t smallest,
                                  const exact_value& max = largest_of<coding_format<Element>>) noexcept {
    using format = typename Scale::format;
    const exact_value tensor = unpack<formats::binary32>(bit_cast<std::uint32_t>(tensor_scale));
    // 33 bits and more of the quotient, and 10 are enough for a scale.
    const auto code = round_and_pack<format>(
        divide_to_few_bits(amax, max.significand * tensor.significand, max.exponent + tensor.exponent),
        scale_projection(rule));
    return (std::max)(static_cast<std::uint8_t>(code), smallest);
}

/// The largest scale of a block that a computed tensor scale leads to: the largest number, or, if one and a half
/// times that scale must be representable, the largest power of two for which it is.
template <class Scale>
MP_HOST_DEVICE constexpr exact_value largest_block_scale(scale_rule rule) noexcept {
    constexpr exact_value largest = largest_of<typename Scale::format>;
    if (!is_four_over_six(rule)) return largest;
    constexpr int exponent = layout_of<typename Scale::format>::max_exponent;
    constexpr bool holds_three_halves = largest.significand << leading_zeros(largest.significand) >> 62 == 3;
    return {false, holds_three_halves ? exponent : exponent - 1, 1};
}

/// amax / (largest scale * largest element), rounded to nearest even, but no subnormal float, which some
/// processors are told to take for zero. 1 for a matrix of zeros.
template <class Element, class Scale>
MP_HOST_DEVICE constexpr float tensor_scale_for(const exact_value& amax, scale_rule rule) noexcept {
    if (amax.significand == 0) return 1;
    constexpr exact_value element = largest_of<coding_format<Element>>;
    const exact_value scale = largest_block_scale<Scale>(rule);
    const exact_value quotient =
        divide_to_few_bits(amax, element.significand * scale.significand, element.exponent + scale.exponent);
    const std::uint32_t bits =
        round_and_pack<formats::binary32>(quotient, projection{rounding::nearest_even, saturation::finite});
    constexpr std::uint32_t smallest_normal = 0x00800000;
    return bit_cast<float>(bits < smallest_normal ? smallest_normal : bits);
}

}}  // namespace mp::detail
