// SPDX-License-Identifier: MIT
/// \file
/// Patterns for names of layers, as in file names: * stands for any text, ? for one character.
#pragma once

#include <mp/config.hpp>

#include <cstddef>
#include <string_view>

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// Whether the whole text matches the pattern. Takes at most as many steps as the product of their lengths.
constexpr bool matches_pattern(std::string_view pattern, std::string_view text) {
    std::size_t p = 0;
    std::size_t t = 0;
    std::size_t star = std::string_view::npos;  // the last * seen, and how much of the text it stands for
    std::size_t taken = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            taken = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++taken;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

}}  // namespace mp::autocast
