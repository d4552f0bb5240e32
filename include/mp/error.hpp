// SPDX-License-Identifier: MIT
/// \file
/// The exceptions of the library. A function that throws one of them has changed nothing. Where the compiler
/// has no exceptions, an error ends the program instead: see MP_ERROR_HANDLER.
#pragma once

#include <mp/config.hpp>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#if !MP_HAS_EXCEPTIONS && defined(MP_ERROR_HANDLER)
[[noreturn]] void MP_ERROR_HANDLER(const char* message) noexcept;
#endif

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

/// A file cannot be read or written, or is not what it should be. The message begins with its path.
class file_error : public error {
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

namespace detail { inline namespace MP_ISA_NAMESPACE {

/// Every error of the library goes through here: thrown where there are exceptions, otherwise told to the
/// handler. It is not constexpr, so an error in a constant expression does not compile either way.
template <class Error>
[[noreturn]] void throw_error(const Error& error) {
#if MP_HAS_EXCEPTIONS
    throw error;
#elif defined(MP_ERROR_HANDLER)
    ::MP_ERROR_HANDLER(error.what());
#else
    std::fputs(error.what(), stderr);
    std::fputc('\n', stderr);
    std::abort();
#endif
}

/// function(); where that throws an Error, on_error(error) instead.
template <class Error, class Function, class Handler>
decltype(auto) attempt(Function&& function, [[maybe_unused]] Handler&& on_error) {
#if MP_HAS_EXCEPTIONS
    try {
        return function();
    } catch (const Error& error) {
        return on_error(error);
    }
#else
    return function();
#endif
}

/// Calls function() and returns what it threw; null if nothing.
template <class Function>
std::exception_ptr exception_of(Function&& function) noexcept {
#if MP_HAS_EXCEPTIONS
    try {
        function();
    } catch (...) {
        return std::current_exception();
    }
#else
    function();
#endif
    return nullptr;
}

/// Appends the pieces of a message to a text. A call has less code than a chain of std::string::append.
MP_NEVER_INLINE inline void append_text(std::string& text, std::initializer_list<std::string_view> pieces) {
    for (const std::string_view piece : pieces) text.append(piece);
}
MP_NEVER_INLINE inline std::string join_text(std::initializer_list<std::string_view> pieces) {
    std::string text;
    append_text(text, pieces);
    return text;
}

/// Throws an Error with a message of these pieces.
template <class Error>
[[noreturn]] MP_NEVER_INLINE void throw_joined(std::initializer_list<std::string_view> pieces) {
    throw_error(Error(join_text(pieces)));
}

/// The type as which a number is printed, so that a program has one function for all integers of a sign.
template <class Value>
using printed_as =
    std::conditional_t<!std::is_integral_v<Value> || std::is_same_v<Value, bool>, Value,
                       std::conditional_t<std::is_signed_v<Value>, long long, unsigned long long>>;

template <class Value>
MP_NEVER_INLINE std::string printed_number(Value value) {
    if constexpr (std::is_same_v<Value, bool>) {
        return value ? "true" : "false";
    } else if constexpr (std::is_same_v<Value, long long>) {
        const auto bits = static_cast<unsigned long long>(value);
        return value < 0 ? join_text({"-", printed_number(0 - bits)}) : printed_number(bits);
    } else {
        char buffer[64];
        const std::to_chars_result end = std::to_chars(buffer, buffer + sizeof buffer, value);
        return {buffer, end.ptr};
    }
}

/// Text of a value in an error message; floating-point values in the shortest form that reads back the same.
template <class Value>
    requires std::is_arithmetic_v<Value>
std::string error_text(Value value) {
    return printed_number<printed_as<Value>>(value);
}
inline std::string error_text(std::string_view value) {
    return join_text({"'", value, "'"});
}

template <class Value>
[[noreturn]] MP_NEVER_INLINE void throw_value(std::string_view function, std::string_view argument,
                                              std::string_view expected, Value value) {
    throw_joined<argument_error>({function, ": ", argument, " is ", error_text(value), "; it ", expected});
}

/// Throws argument_error: "<function>: <argument> is <value>; it <expected>".
template <class Value>
    requires std::is_arithmetic_v<Value>
[[noreturn]] void throw_argument(std::string_view function, std::string_view argument, Value value,
                                 std::string_view expected) {
    throw_value<printed_as<Value>>(function, argument, expected, value);
}
[[noreturn]] inline void throw_argument(std::string_view function, std::string_view argument,
                                        std::string_view value, std::string_view expected) {
    throw_value(function, argument, expected, value);
}

}}  // namespace detail
}  // namespace mp
