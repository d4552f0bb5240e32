// SPDX-License-Identifier: MIT
/// \file
/// The exceptions of the library. A function that throws one of them has changed nothing.
#pragma once

#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp {

/// Base of everything that the library throws.
class error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// An argument has a value that the function cannot work with. The message names the function, the
/// argument, its value and what was expected.
class argument_error : public error {
public:
    using error::error;
};

/// Calls came in an order that makes no sense, such as unscaling the same gradients twice.
class state_error : public error {
public:
    using error::error;
};

/// A loss scale reached a limit at which its policy refuses to go on, such as DeepSpeed's at its floor.
class scale_error : public error {
public:
    using error::error;
};

/// The ranks of a run do not go together: their scalers differ, or, as rank_timeout, one of them did not
/// come.
class rank_error : public error {
public:
    using error::error;
};

/// Not all ranks took part in a call within the time that was given. What they would have agreed on is not
/// known, and nor is where they are now: save what can be saved and end.
class rank_timeout : public rank_error {
public:
    using rank_error::rank_error;
};

namespace detail {

/// Text of a value in an error message; floating-point values in the shortest form that reads back the same.
template <class Value>
std::string error_text(const Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
        return value ? "true" : "false";
    } else if constexpr (std::is_arithmetic_v<Value>) {
        char buffer[64];
        const std::to_chars_result end = std::to_chars(buffer, buffer + sizeof buffer, value);
        return {buffer, end.ptr};
    } else {
        std::string text(1, '\'');
        text.append(std::string_view(value));
        return text.append(1, '\'');
    }
}

/// Throws argument_error: "<function>: <argument> is <value>; it <expected>".
template <class Value>
[[noreturn]] void throw_argument(std::string_view function, std::string_view argument, const Value& value,
                                 std::string_view expected) {
    std::string message(function);
    message.append(": ").append(argument).append(" is ").append(error_text(value));
    message.append("; it ").append(expected);
    throw argument_error(message);
}

}  // namespace detail
}  // namespace mp
