// SPDX-License-Identifier: MIT
/// \file
/// The elements of block-scaled arrays: numbers of up to 8 bits, and the fixed-point element of MXINT8.
#pragma once

#include <mp/arrays/convert/bulk.hpp>

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
