// SPDX-License-Identifier: MIT
/// \file
/// Numbers in {fmt}: every mp::basic_float has a formatter. Needs {fmt} 8 or later, linked or with
/// FMT_HEADER_ONLY.
///
///     fmt::print("{} {:+.3e} {:>12.4f} {:a}\n", x, x, x, x);
///
/// The specifications are those of a float in {fmt}, and with a precision so are the texts, rounded once from
/// the exact value. Without type and precision it is the shortest text of the narrow number that reads back
/// (what mp::to_chars writes). The option L is refused.
#pragma once

#include <mp/error.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/formatting.hpp>

#include <fmt/format.h>

namespace mp::detail {

/// {fmt}'s rules about arguments.
template <class ParseContext>
struct fmt_arguments {
    ParseContext& context;
    static constexpr bool allows_names = true;
    constexpr int next() const { return static_cast<int>(context.next_arg_id()); }
    constexpr void check(int index) const { context.check_arg_id(index); }
    [[noreturn]] static void fail(const char* message) { throw_error(fmt::format_error(message)); }
};

template <class Character, class Context>
void fetch_size(int& size, const argument_reference<Character>& argument, Context& context) {
    using origin = typename argument_reference<Character>::origin;
    if (argument.from == origin::none) return;
    const auto value = argument.from == origin::index
                           ? context.arg(argument.index)
                           : context.arg(fmt::basic_string_view<Character>(
                                 argument.name, static_cast<std::size_t>(argument.name_length)));
    if (!value) throw_error(fmt::format_error("argument not found"));
#if FMT_VERSION >= 110000
    size = value.visit(size_visitor<fmt::format_error>{});
#else
    size = fmt::visit_format_arg(size_visitor<fmt::format_error>{}, value);
#endif
}

}  // namespace mp::detail

/// Formats of {fmt}, as of float: "{:+.3e}".
template <class Format, class Character>
struct fmt::formatter<mp::basic_float<Format>, Character> {
    template <class ParseContext>
    constexpr auto parse(ParseContext& context) -> decltype(context.begin()) {
        const Character* first = context.begin();
        const Character* last = context.end();
        mp::detail::fmt_arguments<ParseContext> arguments{context};
        mp::detail::spec_parser<Character, decltype(arguments)> parser(first, last, arguments);
        return context.begin() + (parser.parse(spec_) - first);
    }

    template <class Context>
    auto format(mp::basic_float<Format> x, Context& context) const -> decltype(context.out()) {
        mp::detail::format_spec<Character> spec = spec_;
        mp::detail::fetch_size(spec.width, spec.width_argument, context);
        mp::detail::fetch_size(spec.precision, spec.precision_argument, context);
        return mp::detail::format_number<Character>(context.out(), x, spec, {true, true});
    }

private:
    mp::detail::format_spec<Character> spec_{};
};
