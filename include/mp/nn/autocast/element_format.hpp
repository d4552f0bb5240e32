// SPDX-License-Identifier: MIT
/// \file
/// Element types as values of an enumeration, for policies and graphs that are read at run time.
#pragma once

#include <mp/nn/autocast/types.hpp>
#include <mp/numbers/format/named_formats.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mp {

/// The type of the numbers in an array. name_of() gives the words of NumPy, ml_dtypes and Keras. Every format
/// of formats::all has a value, the place in that list, also where no enumerator stands for it here.
enum class element_format : unsigned char {
    f16 = formats::position_of<formats::binary16>(),                    ///< "float16": mp::half
    bf16 = formats::position_of<formats::bfloat16>(),                   ///< "bfloat16"
    f32 = formats::position_of<formats::binary32>(),                    ///< "float32"
    f64 = formats::position_of<formats::binary64>(),                    ///< "float64"
    tf32 = formats::position_of<formats::tfloat32>(),                   ///< "tfloat32"
    e4m3fn = formats::position_of<formats::float8_e4m3fn>(),            ///< "float8_e4m3fn"
    e5m2 = formats::position_of<formats::float8_e5m2>(),                ///< "float8_e5m2"
    e4m3 = formats::position_of<formats::float8_e4m3>(),                ///< "float8_e4m3"
    e3m4 = formats::position_of<formats::float8_e3m4>(),                ///< "float8_e3m4"
    e4m3b11fnuz = formats::position_of<formats::float8_e4m3b11fnuz>(),  ///< "float8_e4m3b11fnuz"
    e4m3fnuz = formats::position_of<formats::float8_e4m3fnuz>(),        ///< "float8_e4m3fnuz"
    e5m2fnuz = formats::position_of<formats::float8_e5m2fnuz>(),        ///< "float8_e5m2fnuz"
    e8m0fnu = formats::position_of<formats::float8_e8m0fnu>(),          ///< "float8_e8m0fnu"
    e2m3fn = formats::position_of<formats::float6_e2m3fn>(),            ///< "float6_e2m3fn"
    e3m2fn = formats::position_of<formats::float6_e3m2fn>(),            ///< "float6_e3m2fn"
    e2m1fn = formats::position_of<formats::float4_e2m1fn>(),            ///< "float4_e2m1fn"
    int8 = formats::all::size,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    boolean  ///< "bool"
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The name of a format outside of the library.
template <class Format>
constexpr std::string_view element_name() {
    constexpr std::string_view name = Format::name;
    return name == "half"     ? std::string_view("float16")
           : name == "float"  ? std::string_view("float32")
           : name == "double" ? std::string_view("float64")
                              : name;
}
template <class... Formats>
constexpr std::array<std::string_view, sizeof...(Formats) + 9> element_names_of(formats::list<Formats...>) {
    return {element_name<Formats>()...,
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "bool"};
}

inline constexpr auto element_format_names = element_names_of(formats::all{});

static_assert(element_format_names.size() == static_cast<std::size_t>(element_format::boolean) + 1);

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// "float16" for element_format::f16, "bool" for element_format::boolean; "unknown" for a value that is
/// no enumerator.
constexpr std::string_view name_of(element_format format) noexcept {
    const auto index = static_cast<std::size_t>(format);
    return index < detail::element_format_names.size() ? detail::element_format_names[index] : "unknown";
}

/// The format of this name; empty if there is none.
constexpr std::optional<element_format> find_element_format(std::string_view name) noexcept {
    for (std::size_t i = 0; i < detail::element_format_names.size(); ++i) {
        if (detail::element_format_names[i] == name) return static_cast<element_format>(i);
    }
    return std::nullopt;
}

/// Whether the numbers are floating-point numbers, and not integers or truth values.
constexpr bool is_floating(element_format format) noexcept {
    return format < element_format::int8;
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Element>
constexpr std::optional<element_format> format_of_element() {
    if constexpr (std::same_as<Element, bool>) {
        return element_format::boolean;
    } else if constexpr (std::integral<Element>) {
        constexpr auto first = std::signed_integral<Element> ? element_format::int8 : element_format::uint8;
        constexpr int steps = sizeof(Element) == 1   ? 0
                              : sizeof(Element) == 2 ? 1
                              : sizeof(Element) == 4 ? 2
                                                     : 3;
        return static_cast<element_format>(static_cast<int>(first) + steps);
    } else if constexpr (autocast::floating<Element> && !std::same_as<Element, long double>) {
        return find_element_format(element_name<format_of_t<Element>>());
    } else {
        return std::nullopt;
    }
}

/// All names, for messages: "float16, bfloat16, ...".
inline std::string listed_element_formats() {
    std::string text;
    for (const std::string_view name : element_format_names) {
        if (!text.empty()) text.append(", ");
        text.append(name);
    }
    return text;
}

}}  // namespace mp::detail

namespace mp {

/// The value that stands for a C++ type: element_format_of<mp::half> is element_format::f16.
template <class Element>
    requires(detail::format_of_element<Element>().has_value())
inline constexpr element_format element_format_of = *detail::format_of_element<Element>();

}  // namespace mp
