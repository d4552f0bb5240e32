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

/// An option of a command line, --name VALUE or --name=VALUE, and -h for --help.
class command_line_option {
public:
    /// The i-th of `count` arguments, which begins with a dash; its value may be the next.
    command_line_option(int& i, int count, char** arguments)
        : i_(i), count_(count), arguments_(arguments), name_(arguments[i]) {
        if (name_ == "-h") name_ = "--help";
        const std::size_t equals = name_.find('=');
        joined_ = equals != std::string::npos;
        if (!joined_) return;
        joined_value_ = name_.substr(equals + 1);
        name_.resize(equals);
    }

    [[nodiscard]] const std::string& name() const { return name_; }
    /// What stands behind the equals sign, or nothing.
    [[nodiscard]] const std::string& joined_value() const { return joined_value_; }
    /// The value. Throws user_error if there is none.
    [[nodiscard]] std::string value() const {
        if (joined_) return joined_value_;
        if (i_ + 1 == count_) throw user_error(name_ + " needs a value");
        return arguments_[++i_];
    }
    /// Sets a flag. Throws user_error for a value.
    void set(bool& flag) const {
        if (joined_) throw user_error(name_ + " takes no value");
        flag = true;
    }

private:
    int& i_;
    int count_;
    char** arguments_;
    std::string name_;
    bool joined_ = false;
    std::string joined_value_;
};

}  // namespace examples
