// SPDX-License-Identifier: MIT
/// \file
/// Values of options on a command line.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "user_error.hpp"

namespace examples {

/// The number that all of the text means.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// The whole number that the value of an option is. Throws user_error for anything else.
template <class Integer>
Integer parse_integer(std::string_view option, std::string_view text, Integer least, Integer most) {
    const auto value = parse_number<Integer>(text);
    if (!value || *value < least || *value > most) {
        throw user_error(std::string(option) + " is '" + std::string(text) +
                         "'; it must be a whole number from " + std::to_string(least) + " to " +
                         std::to_string(most));
    }
    return *value;
}

/// Adds the names in a list such as "one,two" that are not there yet. Throws user_error, which lists the
/// known names, for others.
inline void add_names(std::string_view option, std::string_view list, std::span<const std::string_view> known,
                      std::vector<std::string>& into) {
    for (bool more = true; more;) {
        const std::size_t comma = list.find(',');
        const std::string_view name = list.substr(0, comma);
        more = comma != std::string_view::npos;
        if (more) list.remove_prefix(comma + 1);
        if (std::find(known.begin(), known.end(), name) == known.end()) {
            std::string message = std::string(option) + " is '" + std::string(name) + "'; it must be one of";
            for (const std::string_view it : known) message.append(" ").append(it);
            throw user_error(message);
        }
        if (std::find(into.begin(), into.end(), name) == into.end()) into.emplace_back(name);
    }
}

}  // namespace examples
