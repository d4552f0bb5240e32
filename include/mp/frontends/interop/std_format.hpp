// SPDX-License-Identifier: MIT
/// \file
/// Numbers in std::format: every mp::basic_float has a std::formatter, where the standard library has
/// std::format; elsewhere this header is empty, and MP_HAS_STD_FORMAT is 0.
///
///     std::format("{} {:+.3e} {:>12.4f} {:a}", x, x, x, x);
///
/// The specifications are those of a float, and so are the texts when there is a precision, rounded once from
/// the exact value. Without type and precision it is the shortest text of the narrow number that reads back
/// (what mp::to_chars writes). The option L is refused.
#pragma once

#include <version>

// libc++ 16 has std::format with -fexperimental-library, but does not announce it yet.
#if defined(__cpp_lib_format)
#define MP_HAS_STD_FORMAT 1
#elif defined(_LIBCPP_VERSION) && _LIBCPP_VERSION >= 160000 && !defined(_LIBCPP_HAS_NO_INCOMPLETE_FORMAT)
#define MP_HAS_STD_FORMAT 1
#else
#define MP_HAS_STD_FORMAT 0
#endif

#if MP_HAS_STD_FORMAT
#include <mp/error.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/formatting.hpp>

#include <format>

namespace mp::detail {

/// The standard's rules about arguments.
template <class ParseContext>
struct std_arguments {
    ParseContext& context;
    static constexpr bool allows_names = false;
    constexpr int next() const { return static_cast<int>(context.next_arg_id()); }
    constexpr void check(int index) const { context.check_arg_id(static_cast<std::size_t>(index)); }
    [[noreturn]] static void fail(const char* message) { throw_error(std::format_error(message)); }
};

template <class Character, class Context>
void fetch_std_size(int& size, const argument_reference<Character>& argument, Context& context) {
    using origin = typename argument_reference<Character>::origin;
    if (argument.from == origin::none) return;
    const auto value = context.arg(static_cast<std::size_t>(argument.index));
    if (!value) throw_error(std::format_error("argument not found"));
    if constexpr (requires { value.visit(size_visitor<std::format_error>{}); }) {
        size = value.visit(size_visitor<std::format_error>{});
    } else {
        size = std::visit_format_arg(size_visitor<std::format_error>{}, value);
    }
}

}  // namespace mp::detail

template <class Format, class Character>
struct std::formatter<mp::basic_float<Format>, Character> {
    template <class ParseContext>
    constexpr auto parse(ParseContext& context) -> typename ParseContext::iterator {
        mp::detail::std_arguments<ParseContext> arguments{context};
        const auto length = context.end() - context.begin();
        if (length == 0) return context.begin();
        const Character* first = &*context.begin();
        mp::detail::spec_parser<Character, decltype(arguments)> parser(first, first + length, arguments);
        return context.begin() + (parser.parse(spec_) - first);
    }

    template <class Context>
    auto format(mp::basic_float<Format> x, Context& context) const -> typename Context::iterator {
        mp::detail::format_spec<Character> spec = spec_;
        mp::detail::fetch_std_size(spec.width, spec.width_argument, context);
        mp::detail::fetch_std_size(spec.precision, spec.precision_argument, context);
        return mp::detail::format_number<Character>(context.out(), x, spec, {false, false});
    }

private:
    mp::detail::format_spec<Character> spec_{};
};
#endif
