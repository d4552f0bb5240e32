// SPDX-License-Identifier: MIT
/// \file
/// The bits of a number, drawn.
#pragma once

#include <mp/numbers/format/describe.hpp>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "options.hpp"

namespace mp_inspect {

inline constexpr const char* colour_of_field[] = {"\x1b[31m", "\x1b[32m", "\x1b[36m"};

inline std::string coloured(const std::string& text, int field, const options& chosen) {
    if (!chosen.colours) return text;
    return colour_of_field[field] + text + "\x1b[0m";
}

/// The fields of a code between lines: 0|01011|1001100110.
inline std::string picture(const mp::number_description& x, const options& chosen) {
    std::string text;
    int index = 0;
    for (const std::string& field : {x.sign_field, x.exponent_field, x.fraction_field}) {
        if (!field.empty()) {
            if (!text.empty()) text += chosen.ascii ? "|" : "│";
            text += coloured(field, index, chosen);
        }
        ++index;
    }
    return text;
}

inline std::string repeated(std::string_view text, std::size_t count) {
    std::string result;
    for (; count > 0; --count) result += text;
    return result;
}

/// The same in boxes with the names of the fields below.
inline std::string boxes(const mp::number_description& x, const options& chosen) {
    const bool ascii = chosen.ascii;
    std::string top;
    std::string bottom;
    std::string names;
    const auto add = [&](const std::string& field, std::initializer_list<const char*> labels) {
        if (field.empty()) return;
        top += (top.empty() ? (ascii ? "+" : "┌") : (ascii ? "+" : "┬")) +
               repeated(ascii ? "-" : "─", field.size());
        bottom += (bottom.empty() ? (ascii ? "+" : "└") : (ascii ? "+" : "┴")) +
                  repeated(ascii ? "-" : "─", field.size());
        // The longest label that fits.
        std::string label;
        for (const char* it : labels) {
            if (label.empty() && std::string_view(it).size() <= field.size()) label = it;
        }
        label.resize(field.size(), ' ');
        names += " " + label;
    };
    add(x.sign_field, {"s"});
    add(x.exponent_field, {"exponent", "exp", "e"});
    add(x.fraction_field, {"fraction", "frac", "f"});
    const std::string side = ascii ? "|" : "│";
    while (names.back() == ' ') names.pop_back();
    return top + (ascii ? "+" : "┐") + "\n" + side + picture(x, chosen) + side + "\n" + bottom +
           (ascii ? "+" : "┘") + "\n" + names + "\n";
}

}  // namespace mp_inspect
