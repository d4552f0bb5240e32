// SPDX-License-Identifier: MIT
/// \file
/// Chunks of a text that was read, for error messages.
#pragma once

#include <mp/config.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Returns the text in quotes, cut off after `longest` bytes, with every byte that is not printable ASCII as \xNN: a
/// hostile file must not write control characters into a log.
MP_CORE_FUNCTION std::string quoted_excerpt(std::string_view text, std::size_t longest = 60);

#if MP_CORE_BODIES
MP_CORE_FUNCTION std::string quoted_excerpt(std::string_view text, std::size_t longest) {
    constexpr std::string_view digits = "0123456789abcdef";
    const bool cut = text.size() > longest;
    std::string quoted(1, '\'');
    for (const char character : text.substr(0, longest)) {
        const auto byte = static_cast<unsigned char>(character);
        if (byte >= 0x20 && byte < 0x7f) {
            quoted.push_back(character);
        } else {
            quoted.append("\\x").append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
        }
    }
    return quoted.append(cut ? "...'" : "'");
}
#endif

}}  // namespace mp::detail
