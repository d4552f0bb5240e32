// SPDX-License-Identifier: MIT
/// \file
/// The command line.
#pragma once

#include <mp/numbers/format/projection.hpp>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "../common/arguments.hpp"
#include "../common/user_error.hpp"

namespace mp_inspect {

inline constexpr std::string_view usage = R"(usage: mp-inspect VALUE [options]
       mp-inspect 0xBITS --format NAME [options]
       mp-inspect --list

Shows what VALUE becomes in every format: its bits, the shortest digits that stand for it there, the error in
units of the last place, the IEEE flags raised, and the bits by field (sign, exponent, fraction). VALUE is
decimal, hexadecimal (0x1.8p-3: with a point or an exponent), inf or nan, of any length, and is rounded once
into each format. 0xBITS, without point and exponent, is a code of one format.

  --format NAME      only this format, in detail; `all` adds the 8-bit formats of IEEE P3109 to the table
  --round MODE       nearest_even (the default), nearest_away, toward_zero, upward, downward, to_odd
  --saturate WHAT    none (the default), finite, propagate
  --ascii            no characters beyond ASCII
  --list             the formats and their limits
  --help             this text
)";

using examples::user_error;

/// What the user asks for.
struct options {
    bool help = false;
    bool list = false;
    bool ascii = false;
    bool colours = false;
    std::string value;
    std::string format;
    mp::projection projection{};
};

/// VALUE, ready to be read by mp::read_number.
struct number_text {
    std::string original;
    std::string digits;  ///< without 0x and plus sign
    std::chars_format notation = std::chars_format::general;
    long double approximate = 0;  ///< only for the error in the last column
};

template <class Value, std::size_t Count>
Value choose(std::string_view option, std::string text, const std::pair<const char*, Value> (&names)[Count]) {
    std::replace(text.begin(), text.end(), '-', '_');
    std::string known;
    for (const auto& [name, value] : names) {
        if (text == name) return value;
        known.append(" ").append(name);
    }
    throw user_error(std::string(option) + " is '" + text + "'; it must be one of" + known);
}

inline options parse(int count, char** arguments) {
    using enum mp::rounding;
    constexpr std::pair<const char*, mp::rounding> modes[] = {
        {"nearest_even", nearest_even}, {"nearest_away", nearest_away},
        {"toward_zero", toward_zero},   {"upward", upward},
        {"downward", downward},         {"to_odd", to_odd}};
    constexpr std::pair<const char*, mp::saturation> saturations[] = {
        {"none", mp::saturation::none},
        {"finite", mp::saturation::finite},
        {"propagate", mp::saturation::propagate}};
    options result;
    bool only_values = false;
    for (int i = 1; i < count; ++i) {
        const std::string argument = arguments[i];
        if (argument == "--" && !only_values) {
            only_values = true;
            continue;
        }
        if (only_values || (!argument.starts_with("--") && argument != "-h")) {
            if (!result.value.empty()) throw user_error("unexpected argument '" + argument + "'");
            if (argument.empty()) throw user_error("VALUE is empty; see --help");
            result.value = argument;
            continue;
        }
        const examples::command_line_option option(i, count, arguments);
        const std::string& name = option.name();
        bool* const flag = name == "--help"    ? &result.help
                           : name == "--list"  ? &result.list
                           : name == "--ascii" ? &result.ascii
                                               : nullptr;
        if (flag != nullptr) {
            option.set(*flag);
        } else if (name == "--format") {
            result.format = option.value();
        } else if (name == "--round") {
            result.projection.round = choose(name, option.value(), modes);
        } else if (name == "--saturate") {
            result.projection.saturate = choose(name, option.value(), saturations);
        } else {
            throw user_error("unknown option '" + name + "'; see --help");
        }
    }
    if (!result.help && !result.list && result.value.empty()) throw user_error("no VALUE; see --help");
    result.colours = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
    return result;
}

/// Whether VALUE is 0xBITS, and not a hexadecimal number.
inline bool is_code(const std::string& value) {
    return (value.starts_with("0x") || value.starts_with("0X")) && value.size() > 2 &&
           value.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string::npos;
}

inline number_text parse_value(const std::string& value) {
    number_text result;
    result.original = value;
    result.approximate = std::strtold(value.c_str(), nullptr);
    const bool negative = value.starts_with("-");
    std::string rest = value.substr(negative || value.starts_with("+") ? 1 : 0);
    if (rest.starts_with("0x") || rest.starts_with("0X")) {
        rest.erase(0, 2);
        result.notation = std::chars_format::hex;
    }
    // A second sign is none.
    if (rest.starts_with("-")) rest = "?" + rest;
    result.digits = (negative ? "-" : "") + rest;
    return result;
}

}  // namespace mp_inspect
