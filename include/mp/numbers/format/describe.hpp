// SPDX-License-Identifier: MIT
/// \file
/// A number decomposed for a reader: its bits by field, its exact value, its neighbours.
#pragma once

#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/printing.hpp>

#include <cstddef>
#include <string>

namespace mp {

/// The number next to another, and how far away it is.
struct neighbour_description {
    bool exists = false;   ///< false beyond the ends of the format
    std::string text;      ///< the shortest digits that read back; "inf" next to the largest number
    std::string distance;  ///< exact, as a power of two and in decimal: "2^-14 = 6.10352e-05"
};

/// What describe() finds out about a number.
struct number_description {
    std::string format;          ///< the format's name
    std::string kind;            ///< zero, subnormal, normal, infinity, NaN, quiet NaN or signalling NaN
    std::string bits;            ///< the code, in hexadecimal: "0x2e66"
    std::string sign_field;      ///< the bits of the code by field: "0" (empty in formats without signs),
    std::string exponent_field;  ///< "01011"
    std::string fraction_field;  ///< and "1001100110" (empty in formats without fraction)
    bool negative = false;
    int exponent = 0;         ///< the number is significand * 2^exponent
    std::string significand;  ///< in binary: "1.1001100110"; empty for infinities and NaNs
    std::string exact;        ///< the value in decimal, all digits
    std::string shortest;     ///< the shortest digits that read back
    std::string hexadecimal;  ///< "0x1.998p-4"
    std::string ulp;          ///< the unit in the last place, as a distance; empty for infinities and NaNs
    int ulp_exponent = 0;     ///< the same is 2^ulp_exponent
    neighbour_description below;
    neighbour_description above;
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Class>
std::string text_of(const decoded_number& x, const number_style& style) {
    std::string text(x.negative ? 1 : 0, '-');
    text_pieces<Class>(x, style).write([&](char c) { text.push_back(c); });
    return text;
}
template <class Format>
std::string styled_text(storage_of<Format> bits, const number_style& style) {
    return text_of<text_class<Format>>(decode<Format>(bits), style);
}

/// The lowest `count` bits, highest first.
inline std::string binary_text(std::uint64_t bits, int count) {
    std::string text;
    for (int i = count - 1; i >= 0; --i) text.push_back((bits >> i & 1) != 0 ? '1' : '0');
    return text;
}

/// 2^exponent, with six digits of its decimal value where a double has it.
inline std::string power_of_two_text(int exponent) {
    std::string text = "2^";
    text.append(std::to_string(exponent));
    if (exponent < -1074 || exponent > 1023) return text;
    const decoded_number x{category::finite, false, false, false, exponent, 1};
    return text.append(" = ").append(text_of<formats::binary64>(x, {notation::general, 6}));
}

template <class Format>
std::string kind_of(storage_of<Format> bits) {
    switch (categorize<Format>(bits)) {
        case category::zero:
            return "zero";
        case category::infinite:
            return "infinity";
        case category::nan:
            if (layout_of<Format>::quiet_bit == 0) return "NaN";
            return is_signaling<Format>(bits) ? "signalling NaN" : "quiet NaN";
        case category::finite:
            break;
    }
    return is_subnormal_code<Format>(bits) ? "subnormal" : "normal";
}

/// The exponent of the distance between a magnitude code and the next one, both of numbers m * 2^e.
template <class Format>
int spacing_above(storage_of<Format> magnitude) {
    if (layout_of<Format>::has_zero && magnitude == 0) return layout_of<Format>::quantum_exponent;
    return unpack<Format>(magnitude).exponent;
}

template <class Format>
neighbour_description neighbour(storage_of<Format> bits, bool upward) {
    using layout = layout_of<Format>;
    using storage = storage_of<Format>;
    const auto magnitude = static_cast<storage>(bits & layout::magnitude_mask);
    const bool at_zero = layout::has_zero && magnitude == 0;
    // Zeros of both signs have the smallest numbers for neighbours.
    const bool negative = at_zero ? !upward : is_negative<Format>(bits);
    const bool away = at_zero || negative != upward;
    const bool at_end = away ? magnitude == layout::max_finite_code : magnitude == 0;
    if ((negative && !layout::is_signed) || (at_end && !(away && layout::has_infinity))) return {};
    const auto next = static_cast<storage>(away ? magnitude + 1 : magnitude - 1);
    return {true, styled_text<Format>(join<Format>(negative, next), {}),
            at_end ? "inf" : power_of_two_text(spacing_above<Format>(away ? magnitude : next))};
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Takes a number apart. All texts are exact, or the shortest that read back.
///
///     mp::describe(0.1_h).exact            // "0.0999755859375"
///     std::cout << to_string(mp::describe(0.1_h));
template <number T>
[[nodiscard]] number_description describe(T x) {
    using format = detail::format_of_t<T>;
    using layout = layout_of<format>;
    using storage = typename layout::storage;
    const storage bits = detail::bits_of(x);
    const auto magnitude = static_cast<storage>(bits & layout::magnitude_mask);
    const std::uint64_t fraction = magnitude & layout::fraction_mask;
    const detail::category kind = detail::categorize<format>(bits);

    number_description result;
    result.format = format::name;
    result.kind = detail::kind_of<format>(bits);
    result.bits = "0x";
    for (int i = (layout::width + 3) / 4 - 1; i >= 0; --i) {
        result.bits.push_back("0123456789abcdef"[static_cast<std::uint64_t>(bits) >> (4 * i) & 15]);
    }
    if (layout::is_signed) result.sign_field = detail::is_negative<format>(bits) ? "1" : "0";
    result.exponent_field =
        detail::binary_text(std::uint64_t{magnitude} >> layout::fraction_bits, layout::exponent_bits);
    result.fraction_field = detail::binary_text(fraction, layout::fraction_bits);
    result.negative = detail::decode<format>(bits).negative;
    result.exact = detail::styled_text<format>(bits, {detail::notation::exact});
    result.shortest = detail::styled_text<format>(bits, {});
    result.hexadecimal = detail::styled_text<format>(bits, {detail::notation::hexadecimal});
    if (kind == detail::category::infinite || kind == detail::category::nan) return result;

    result.hexadecimal.insert(result.negative ? 1 : 0, "0x");
    const bool normal = magnitude >= layout::min_normal_code;
    result.exponent = detail::spacing_above<format>(magnitude) + layout::fraction_bits;
    result.significand = normal ? "1" : "0";
    if (layout::fraction_bits > 0) result.significand.append(".").append(result.fraction_field);
    result.ulp_exponent = detail::spacing_above<format>(magnitude);
    result.ulp = detail::power_of_two_text(result.ulp_exponent);
    result.below = detail::neighbour<format>(bits, false);
    result.above = detail::neighbour<format>(bits, true);
    return result;
}

/// The description in lines of a name and a value.
[[nodiscard]] inline std::string to_string(const number_description& x) {
    std::string text;
    const auto line = [&](const char* name, const std::string& value) {
        std::string label = name;
        label.resize(12, ' ');
        text.append(label).append(value).append("\n");
    };
    const auto neighbour = [&](const char* name, const neighbour_description& y) {
        line(name, y.exists ? y.text + "   (" + y.distance + " away)" : std::string("none"));
    };
    line("format", x.format);
    line("bits", x.bits);
    std::string fields;
    if (!x.sign_field.empty()) fields.append("sign ").append(x.sign_field).append("  ");
    fields.append("exponent ").append(x.exponent_field);
    if (!x.fraction_field.empty()) fields.append("  fraction ").append(x.fraction_field);
    line("fields", fields);
    line("class", x.kind);
    line("value", x.exact);
    line("shortest", x.shortest);
    if (x.significand.empty()) return text;
    line("hexadecimal", x.hexadecimal);
    line("binary", (x.negative ? "-" : "") + x.significand + " * 2^" + std::to_string(x.exponent));
    neighbour("below", x.below);
    neighbour("above", x.above);
    line("ulp", x.ulp);
    return text;
}

}}  // namespace mp
