// SPDX-License-Identifier: MIT
/// \file
/// The formats, and what can be asked about them.
#pragma once

#include <mp/numbers/format/describe.hpp>
#include <mp/numbers/format/named_formats.hpp>
#include <mp/p3109.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "options.hpp"

namespace mp_inspect {

/// A line of the table.
struct finding {
    mp::number_description number;
    std::string value;  ///< nine significant digits, rounded from the exact value
    std::string error;
    std::string flags;
};

/// The limits of a format.
struct limits {
    std::string layout;
    std::string largest;
    std::string smallest_normal;
    std::string smallest;
    std::string specials;
};

inline std::string flag_names(const mp::environment& env) {
    std::string text;
    const std::pair<mp::status_flag, const char*> names[] = {{mp::status_flag::invalid, "invalid"},
                                                             {mp::status_flag::overflow, "overflow"},
                                                             {mp::status_flag::underflow, "underflow"},
                                                             {mp::status_flag::inexact, "inexact"}};
    for (const auto& [flag, name] : names) {
        if (env.raised.test(flag)) text.append(text.empty() ? "" : " ").append(name);
    }
    return text.empty() ? "-" : text;
}

template <class Number>
finding find(const number_text& text, const mp::projection& projection) {
    mp::environment env{.project = projection};
    const char* first = text.digits.data();
    const auto [end, ec, x] = mp::read_number<Number>(first, first + text.digits.size(), text.notation, env);
    if (ec == std::errc::invalid_argument || end != first + text.digits.size()) {
        throw user_error("VALUE is '" + text.original +
                         "'; it must be a decimal or hexadecimal number, inf, nan or 0xBITS");
    }
    char buffer[64];
    const auto value_end = mp::to_chars(buffer, buffer + sizeof buffer, x, std::chars_format::general, 9);
    finding result{mp::describe(x), std::string(buffer, value_end.ptr), "-", flag_names(env)};
    if (!mp::isfinite(x) || !std::isfinite(text.approximate)) return result;
    if (!env.raised.any()) {
        result.error = "exact";
        return result;
    }
    const long double difference = static_cast<long double>(static_cast<double>(x)) - text.approximate;
    const auto ulps = static_cast<double>(std::ldexp(difference, -result.number.ulp_exponent));
    std::snprintf(buffer, sizeof buffer, std::abs(ulps) < 1e4 ? "%+.3f" : "%+.2e", ulps);
    result.error = buffer;
    return result;
}

template <class Number>
Number from_code(std::uint64_t code) {
    if constexpr (mp::reduced<Number>) {
        return Number::from_bits(static_cast<typename Number::storage>(code));
    } else if constexpr (sizeof(Number) == 4) {
        return std::bit_cast<Number>(static_cast<std::uint32_t>(code));
    } else {
        return std::bit_cast<Number>(code);
    }
}

template <class Number>
mp::number_description describe_code(std::uint64_t code) {
    return mp::describe(from_code<Number>(code));
}

template <class Number, class Format>
limits limits_of() {
    using layout = mp::layout_of<Format>;
    limits result;
    result.layout = std::to_string(layout::is_signed ? 1 : 0) + "+" + std::to_string(layout::exponent_bits) +
                    "+" + std::to_string(layout::fraction_bits);
    result.largest = describe_code<Number>(layout::max_finite_code).shortest;
    result.smallest_normal = describe_code<Number>(layout::min_normal_code).shortest;
    result.smallest = describe_code<Number>(layout::has_zero ? 1 : 0).shortest;
    const auto add = [&](bool has, const char* special) {
        if (has) result.specials.append(result.specials.empty() ? "" : " ").append(special);
    };
    add(layout::has_zero, layout::has_signed_zero ? "+-0" : "0");
    add(layout::has_infinity, "inf");
    add(layout::has_nan, "nan");
    return result;
}

/// What the program knows about a format.
struct format_entry {
    std::string name;
    int width;
    bool in_short_table;
    finding (*find)(const number_text&, const mp::projection&);
    mp::number_description (*describe_code)(std::uint64_t);
    limits (*limits_of)();
};

template <class Number, class Format>
format_entry entry(bool in_short_table) {
    return {Format::name, mp::layout_of<Format>::width, in_short_table,
            find<Number>, describe_code<Number>,        limits_of<Number, Format>};
}

template <int P>
void add_p3109(std::vector<format_entry>& formats) {
    using mp::domain;
    using mp::signedness;
    const auto add = [&]<class Number>(std::type_identity<Number>) {
        formats.push_back(entry<Number, typename Number::format>(false));
    };
    add(std::type_identity<mp::p3109<8, P>>{});
    add(std::type_identity<mp::p3109<8, P, signedness::is_signed, domain::finite>>{});
    add(std::type_identity<mp::p3109<8, P, signedness::is_unsigned>>{});
    add(std::type_identity<mp::p3109<8, P, signedness::is_unsigned, domain::finite>>{});
}

/// The type of the numbers of a format.
template <class Format>
using number_of = std::conditional_t<
    std::is_same_v<Format, mp::formats::binary64>, double,
    std::conditional_t<std::is_same_v<Format, mp::formats::binary32>, float, mp::basic_float<Format>>>;

/// Those of the library, the widest first, and P3109's of 8 bits.
inline std::vector<format_entry> all_formats() {
    std::vector<format_entry> formats = []<class... Formats>(mp::formats::list<Formats...>) {
        return std::vector<format_entry>{entry<number_of<Formats>, Formats>(true)...};
    }(mp::formats::all{});
    std::stable_sort(formats.begin(), formats.end(),
                     [](const format_entry& a, const format_entry& b) { return a.width > b.width; });
    [&]<int... P>(std::integer_sequence<int, P...>) {
        (add_p3109<P + 1>(formats), ...);
    }(std::make_integer_sequence<int, 7>{});
    return formats;
}

}  // namespace mp_inspect
