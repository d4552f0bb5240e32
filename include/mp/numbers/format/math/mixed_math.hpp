// SPDX-License-Identifier: MIT
/// \file
/// Functions of <mp/math.hpp> for a number beside a built-in type, in either order: of the exact values of
/// both, rounded once to the format of the number, to nearest even.
///
/// hypot is exact for operands of up to 53 bits. The others are evaluated, to 2^-50 of the result or better,
/// and operands have up to 32 bits: float, bool, integers, enumerations and floating-point types of 16 and 32
/// bits. For a double that could be too little, because it can be chosen so that the exact result is closer
/// to a midpoint than any two numbers of the format come; it does not compile. Exponents of pow are integers
/// of up to 64 bits as well.
#pragma once

#include <mp/numbers/format/math/inverse_trigonometric.hpp>
#include <mp/numbers/format/math/power.hpp>
#include <mp/numbers/format/mixed_functions.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// As mixed_result(), but beside a NaN an operand counts as what it is exactly: pow(1, NaN) is 1, and pow of
/// something that becomes 1 is NaN.
MP_ANY_EXECUTION_SPACE
template <class Function, class Exact, class... X>
MP_HOST_DEVICE constexpr auto mixed_math_result(Function function, Exact exact, X... x) noexcept {
    using format = common_format_t<X...>;
    const bool has_nan = (is_nan_operand(x) || ...);
    if (has_nan && !layout_of<format>::has_nan) return basic_float<format>::from_bits(pack_nan<format>());
    if (((converted<format>(x).is_exact || is_nan_operand(x)) && ...))
        return function(converted<format>(x).value...);
    if (has_nan) {
        basic_float<format> nan{};
        ((is_nan_operand(x) ? void(nan = converted<format>(x).value) : void()), ...);
        // A signalling one becomes quiet.
        return basic_float<format>::from_bits(convert_nan<format, format>(nan.bits()));
    }
    return basic_float<format>::from_bits(exact(value_of_operand(x)...));
}

template <class... T>
concept mixed_arguments_of_32_bits = mixed_arguments<T...> && ((significand_bits<T>() <= 32) && ...);
template <class... T>
concept mixed_arguments_of_53_bits = mixed_arguments<T...> && ((significand_bits<T>() <= 53) && ...);
template <class Base, class Exponent>
concept mixed_power = mixed_arguments<Base, Exponent> && (significand_bits<Base>() <= 32) &&
                      (significand_bits<Exponent>() <= 32 || integer_operand<Exponent>);

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> hypot_of_values(const number_parts& a, const number_parts& b) {
    if (a.kind == category::infinite || b.kind == category::infinite)
        return pack_infinity<Format>(false, projection{});
    if (a.kind == category::zero || b.kind == category::zero)
        return code_of_value<Format>(with_sign(a.kind == category::zero ? b : a, false));
    return round_and_pack<Format>(hypot_of(a.value, b.value), projection{});
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// a^b of exact values, rounded once, as pow() of two numbers. The empty pack makes it less specialised than a function
/// template of a user, such as one of (T, std::integral), which overload resolution finds beside it.
MP_ANY_EXECUTION_SPACE
template <class A, class B, class... Nothing>
    requires(sizeof...(Nothing) == 0 && detail::mixed_power<A, B>)
[[nodiscard]] MP_HOST_DEVICE constexpr auto pow(A a, B b, Nothing...) noexcept {
    using format = detail::common_format_t<A, B>;
    if constexpr (!layout_of<format>::has_nan) {
        if (detail::power_is_one(detail::value_of_operand(a), detail::value_of_operand(b)))
            return basic_float<format>::from_bits(detail::round_exact<format>(false, 1, 0, projection{}));
    }
    return detail::mixed_math_result([](auto x, auto y) { return pow(x, y); },
                                     [](const auto& x, const auto& y) {
                                         return detail::power_is_one(x, y)
                                                    ? detail::round_exact<format>(false, 1, 0, projection{})
                                                    : detail::power_of_parts<format>(x, y, projection{});
                                     },
                                     a, b);
}
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_power<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto powr(A a, B b) noexcept {
    using format = detail::common_format_t<A, B>;
    return detail::mixed_math_result(
        [](auto x, auto y) { return powr(x, y); },
        [](const auto& x, const auto& y) { return detail::powr_of_parts<format>(x, y, projection{}); }, a, b);
}

/// The angle of the point (b, a), as atan2() of two numbers.
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments_of_32_bits<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto atan2(A a, B b) noexcept {
    using format = detail::common_format_t<A, B>;
    return detail::mixed_math_result(
        [](auto x, auto y) { return atan2(x, y); },
        [](const auto& x, const auto& y) { return detail::radians_of_point<format>(x, y, projection{}); }, a,
        b);
}
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments_of_32_bits<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto atan2pi(A a, B b) noexcept {
    using format = detail::common_format_t<A, B>;
    return detail::mixed_math_result(
        [](auto x, auto y) { return atan2pi(x, y); },
        [](const auto& x, const auto& y) { return detail::half_turns_of_point<format>(x, y, projection{}); },
        a, b);
}

/// The root of the sum of the squares, as hypot() of numbers.
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments_of_53_bits<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto hypot(A a, B b) noexcept {
    using format = detail::common_format_t<A, B>;
    return detail::mixed_math_result(
        [](auto x, auto y) { return hypot(x, y); },
        [](const auto& x, const auto& y) { return detail::hypot_of_values<format>(x, y); }, a, b);
}
MP_ANY_EXECUTION_SPACE
template <class A, class B, class C>
    requires detail::mixed_arguments_of_32_bits<A, B, C>
[[nodiscard]] MP_HOST_DEVICE constexpr auto hypot(A a, B b, C c) noexcept {
    using format = detail::common_format_t<A, B, C>;
    return detail::mixed_math_result([](auto x, auto y, auto z) { return hypot(x, y, z); },
                                     [](const auto& x, const auto& y, const auto& z) {
                                         return detail::hypot_of_parts<format>(x, y, z, projection{});
                                     },
                                     a, b, c);
}

}}  // namespace mp
