// SPDX-License-Identifier: MIT
/// \file
/// Human-readable numbers.
#pragma once

#include <mp/error.hpp>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// "1 infinity", "3 infinities".
inline std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
    return error_text(count).append(1, ' ').append(count == 1 ? one : many);
}

/// With `digits` digits after the point, and no zeros at the end.
inline std::string fixed_text(double value, int digits) {
    char buffer[400];
    const std::to_chars_result end =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, digits);
    std::string text(buffer, end.ptr);
    if (digits > 0) {
        text.erase(text.find_last_not_of('0') + 1);
        if (text.ends_with('.')) text.pop_back();
    }
    return text == "-0" ? "0" : text;
}

/// With six digits.
inline std::string short_text(double x) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.6g", x);
    return buffer;
}

/// A share of 1 in percent: "12.5%", "0.031%", "<0.001%".
inline std::string percent_text(double share) {
    if (share > 0.0 && share < 1e-5) return "<0.001%";
    return fixed_text(100.0 * share, share < 0.01 ? 3 : 1) + "%";
}

}}  // namespace mp::detail
