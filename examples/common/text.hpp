// SPDX-License-Identifier: MIT
/// \file
/// Numbers as text for output.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace examples {

/// What printf makes of one number.
inline std::string formatted(const char* format, double value) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, format, value);
    return buffer;
}

/// With `digits` digits after the point.
inline std::string fixed(double value, int digits) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
    return buffer;
}

/// A share of 1 as a percentage: 0.0804 is "8.0%", and 0.0004 is "0.04%".
inline std::string percent(double share) {
    const double value = 100.0 * share;
    const int digits = value == 0.0 || value >= 0.995 ? 1 : 2;
    return (value > 0.0 && value < 0.005 ? std::string("<0.01") : fixed(value, digits)) + "%";
}

/// A scale or a weight: "2^16" for powers of two, else the number.
inline std::string power_text(double value) {
    int exponent = 0;
    if (value > 0.0 && std::isfinite(value) && std::frexp(value, &exponent) == 0.5) {
        return exponent == 1 ? "1" : "2^" + std::to_string(exponent - 1);
    }
    return formatted("%.4g", value);
}

/// A loss with two significant digits.
inline std::string loss_text(double value) {
    if (!(value > 0.0) || !std::isfinite(value)) return formatted("%g", value);
    const int digits = 1 - static_cast<int>(std::floor(std::log10(value)));
    return value >= 1e-5 && value < 100.0 ? fixed(value, std::clamp(digits, 0, 7)) : formatted("%.1e", value);
}

/// "6.6 times", or "1.03 times" where one digit would say nothing, or "4900 times".
inline std::string times_text(double factor) {
    if (factor >= 99.5 && factor < 1e15) {
        const double unit = std::pow(10.0, std::floor(std::log10(factor)) - 1);
        factor = std::round(factor / unit) * unit;
    }
    return fixed(factor, factor < 1.95 ? 2 : factor < 9.95 ? 1 : 0) + " times";
}

/// Characters of UTF-8 text, which is what it takes on a terminal.
inline std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// The text filled up with spaces to `width` characters, on the left or on the right.
inline std::string padded(const std::string& text, std::size_t width, bool to_the_right) {
    const std::string fill(width - std::min(width, width_of(text)), ' ');
    return to_the_right ? fill + text : text + fill;
}

}  // namespace examples
