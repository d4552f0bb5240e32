// SPDX-License-Identifier: MIT
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/p3109.hpp>
#include <mp/tfloat32.hpp>

#include <bit>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "oracle/exact.hpp"

/// The one place where names of the library meet names of the oracle.
namespace oracle {

/// The oracle's description of a type, written down by hand and not taken from the library's descriptor.
template <class Value>
inline constexpr format format_of = {};
template <>
inline constexpr format format_of<mp::half> = binary16;
template <>
inline constexpr format format_of<mp::bfloat16> = bfloat16;
template <>
inline constexpr format format_of<mp::float8_e4m3fn> = float8_e4m3fn;
template <>
inline constexpr format format_of<mp::float8_e5m2> = float8_e5m2;
template <>
inline constexpr format format_of<mp::tfloat32> = tfloat32;
template <>
inline constexpr format format_of<mp::float8_e4m3> = float8_e4m3;
template <>
inline constexpr format format_of<mp::float8_e3m4> = float8_e3m4;
template <>
inline constexpr format format_of<mp::float8_e4m3fnuz> = float8_e4m3fnuz;
template <>
inline constexpr format format_of<mp::float8_e5m2fnuz> = float8_e5m2fnuz;
template <>
inline constexpr format format_of<mp::float8_e4m3b11fnuz> = float8_e4m3b11fnuz;
template <>
inline constexpr format format_of<mp::float8_e8m0fnu> = float8_e8m0fnu;
template <>
inline constexpr format format_of<mp::float6_e2m3fn> = float6_e2m3fn;
template <>
inline constexpr format format_of<mp::float6_e3m2fn> = float6_e3m2fn;
template <>
inline constexpr format format_of<mp::float4_e2m1fn> = float4_e2m1fn;
template <int K, int P, mp::signedness Signs, mp::domain Domain>
inline constexpr format format_of<mp::p3109<K, P, Signs, Domain>> =
    p3109(K, P, Signs == mp::signedness::is_signed, Domain == mp::domain::extended);
template <>
inline constexpr format format_of<float> = binary32;
template <>
inline constexpr format format_of<double> = binary64;

template <class Format>
inline constexpr bool is_built_in =
    std::is_same_v<Format, mp::formats::binary32> || std::is_same_v<Format, mp::formats::binary64>;

/// The numbers of those formats of the library's list that have this many bits, without float and double.
template <int Least, int Most, class... Formats>
auto numbers_of(mp::formats::list<Formats...>) -> decltype(std::tuple_cat(
    std::declval<std::conditional_t<(!is_built_in<Formats> && mp::layout_of<Formats>::width >= Least &&
                                     mp::layout_of<Formats>::width <= Most),
                                    std::tuple<mp::basic_float<Formats>>, std::tuple<>>>()...));
using named_formats = decltype(numbers_of<1, 64>(mp::formats::all{}));
using small_named_formats = decltype(numbers_of<1, 8>(mp::formats::all{}));

template <class... Values>
constexpr bool are_described(const std::tuple<Values...>*) {
    return ((format_of<Values>.exponent_bits > 0) && ...);
}
static_assert(are_described(static_cast<const named_formats*>(nullptr)),
              "a format of formats::all has no format_of, which says by hand what it is");

/// What is in any of them.
template <class... Lists>
using joined = decltype(std::tuple_cat(std::declval<Lists>()...));

/// Every format of 8 bits and fewer that has a name, and P3109 formats of all kinds: few and many exponent
/// bits, with and without signs and infinities, precision one.
using small_formats =
    joined<small_named_formats,
           std::tuple<mp::p3109<8, 4>, mp::p3109<8, 3, mp::signedness::is_signed, mp::domain::finite>,
                      mp::p3109<8, 1>, mp::p3109<8, 5, mp::signedness::is_unsigned>,
                      mp::p3109<7, 7, mp::signedness::is_unsigned, mp::domain::finite>,
                      mp::p3109<8, 1, mp::signedness::is_unsigned>, mp::p3109<3, 2>,
                      mp::p3109<3, 1, mp::signedness::is_signed, mp::domain::finite>, mp::p3109<5, 4>>>;

/// These and the larger ones.
using all_formats = joined<decltype(numbers_of<9, 64>(mp::formats::all{})), small_formats>;

/// The sign of a NaN converted from one format to another; only the code of minus zero has none.
inline bool keeps_nan_sign(const format& from, const format& to) {
    const auto has_sign = [](const format& f) {
        return f.is_signed && (f.nans == nan_codes::ieee || f.nans == nan_codes::all_ones);
    };
    return has_sign(from) && has_sign(to);
}

constexpr mp::rounding library_rounding(mode m) {
    switch (m) {
        case mode::nearest_even:
            return mp::rounding::nearest_even;
        case mode::nearest_away:
            return mp::rounding::nearest_away;
        case mode::toward_zero:
            return mp::rounding::toward_zero;
        case mode::upward:
            return mp::rounding::upward;
        case mode::downward:
            return mp::rounding::downward;
        case mode::to_odd:
            return mp::rounding::to_odd;
    }
    return mp::rounding::nearest_even;
}

constexpr mp::saturation library_saturation(saturate s) {
    switch (s) {
        case saturate::none:
            return mp::saturation::none;
        case saturate::finite:
            return mp::saturation::finite;
        case saturate::propagate:
            return mp::saturation::propagate;
    }
    return mp::saturation::none;
}

constexpr mp::projection library_projection(mode m, saturate s) {
    return {library_rounding(m), library_saturation(s)};
}

/// The bits of a number of the library, a float or a double.
template <class Value>
std::uint64_t code_of(Value x) {
    if constexpr (requires { x.bits(); }) {
        return x.bits();
    } else if constexpr (sizeof(Value) == 4) {
        return std::bit_cast<std::uint32_t>(x);
    } else {
        return std::bit_cast<std::uint64_t>(x);
    }
}

/// The number with these bits.
template <class Value>
Value value_of(std::uint64_t code) {
    if constexpr (requires { Value::from_bits(0); }) {
        return Value::from_bits(static_cast<typename Value::storage>(code));
    } else if constexpr (sizeof(Value) == 4) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(code));
    } else {
        return std::bit_cast<double>(code);
    }
}

/// A word of a description: text, a number in hexadecimal digits, or a double. Descriptions are lists of them and
/// no templates, since tests describe hundreds of combinations of types.
class word {
public:
    constexpr word(std::string_view text) : text_(text) {}
    constexpr word(const char* text) : text_(text) {}
    word(const std::string& text) : text_(text) {}
    template <std::integral Number>
    constexpr word(Number number) : is_(kind::number), number_(static_cast<std::uint64_t>(number)) {}
    constexpr word(double number) : is_(kind::floating), number_(std::bit_cast<std::uint64_t>(number)) {}
    /// Anything that a stream takes, such as a number of Boost's, for as long as it lives.
    template <class Other>
        requires(!std::convertible_to<Other, std::string_view> && !std::is_arithmetic_v<Other>)
    word(const Other& other)
        : is_(kind::streamed),
          other_(&other),
          print_([](std::ostream& to, const void* it) { to << *static_cast<const Other*>(it); }) {}

    std::string text() const {
        if (is_ == kind::text) return std::string(text_);
        if (is_ == kind::floating) return std::to_string(std::bit_cast<double>(number_));
        if (is_ == kind::streamed) {
            std::ostringstream line;
            print_(line, other_);
            return line.str();
        }
        std::string digits;
        std::uint64_t rest = number_;
        do {
            digits.insert(digits.begin(), "0123456789abcdef"[rest & 15U]);
            rest >>= 4U;
        } while (rest != 0);
        return digits;
    }

private:
    enum class kind : unsigned char { text, number, floating, streamed };
    std::string_view text_;
    kind is_ = kind::text;
    std::uint64_t number_ = 0;
    const void* other_ = nullptr;
    void (*print_)(std::ostream&, const void*) = nullptr;
};

/// Collects disagreements: counts all and describes the first few, so that a test checks one number and fails
/// with something to look at.
class disagreements {
public:
    long count = 0;

    template <class... Parts>
    void add(const Parts&... parts) {
        add_words({word(parts)...});
    }
    void add_words(std::initializer_list<word> words, std::initializer_list<word> more = {}) {
        if (++count > 5) return;
        for (const auto& part : {words, more}) {
            for (const word& it : part) first_ += it.text() + ' ';
        }
        first_ += '\n';
    }

    const std::string& first() const { return first_; }

private:
    std::string first_;
};

/// Refers to a function for as long as a call lasts.
template <class Signature>
class function_reference;
template <class Result, class... Arguments>
class function_reference<Result(Arguments...)> {
public:
    template <class Function>
    function_reference(const Function& function)
        : function_(&function), call_([](const void* it, Arguments... arguments) -> Result {
              return (*static_cast<const Function*>(it))(arguments...);
          }) {}

    Result operator()(Arguments... arguments) const { return call_(function_, arguments...); }

private:
    const void* function_;
    Result (*call_)(const void*, Arguments...);
};

inline const char* name_of(mode m) {
    constexpr const char* names[] = {"nearest_even", "nearest_away", "toward_zero",
                                     "upward",       "downward",     "to_odd"};
    return names[static_cast<int>(m)];
}

inline const char* name_of(saturate s) {
    constexpr const char* names[] = {"none", "finite", "propagate"};
    return names[static_cast<int>(s)];
}

/// Compares the codes that `compute` gives with the oracle in all 18 projections; `operands` describe them.
inline void compare_codes(disagreements& wrong, const format& f, const exact_result& exact,
                          function_reference<std::uint64_t(mp::projection)> compute,
                          std::initializer_list<word> operands) {
    for (const mode m : modes) {
        for (const saturate s : saturations) {
            const std::uint64_t code = compute(library_projection(m, s));
            const outcome expected = finish(f, exact, m, s);
            if (matches(f, expected, code)) continue;
            wrong.add_words(operands, {name_of(m), name_of(s), "gives", code, "instead of", expected.code});
        }
    }
}

/// Compares `compute(projection)` with the oracle in all 18 projections; `parts` describe the operands.
template <class Value, class Compute, class... Parts>
void compare_in_every_projection(disagreements& wrong, const exact_result& exact, Compute compute,
                                 const Parts&... parts) {
    compare_codes(wrong, format_of<Value>, exact,
                  [&](mp::projection p) { return code_of<Value>(compute(p)); }, {word(parts)...});
}

}  // namespace oracle
