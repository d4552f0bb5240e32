// SPDX-License-Identifier: MIT
/// \file
/// Functions of `<cmath>` for a number beside a built-in type, in either order: the result for the exact values of
/// both, rounded once to the format of the number, to nearest even.
///
/// Built-in types are those of compound assignment: float, double, bool, integers of up to 64 bits, unscoped
/// enumerations, and floating-point types of 16 bits. An operand that is a number of the format takes the
/// function of the format; everything else is in integers.
#pragma once

#include <mp/numbers/format/arithmetic.hpp>
#include <mp/numbers/format/ordering.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// An operand of a function for numbers of a format.
template <class T, class Format>
concept function_operand = std::same_as<T, basic_float<Format>> || assigned_operand<T>;

/// The format of the first number among types, of which built-in ones have none.
template <class... T>
struct common_format {};
template <class Format, class... Rest>
struct common_format<basic_float<Format>, Rest...> {
    using type = Format;
};
template <assigned_operand First, class... Rest>
struct common_format<First, Rest...> : common_format<Rest...> {};
template <class... T>
using common_format_t = typename common_format<T...>::type;

/// Arguments of which some are numbers of one format and some, but not all, are of built-in types.
template <class... T>
concept mixed_arguments = requires { typename common_format<T...>::type; } &&
                          (function_operand<T, common_format_t<T...>> && ...) && (assigned_operand<T> || ...);

/// Arguments of C's comparisons, of which one is a number. Those of classes are left to functions of users.
template <class A, class B>
concept compared_arguments =
    (is_basic_float<A> && !std::is_class_v<B>) || (is_basic_float<B> && !std::is_class_v<A>) ||
    (is_basic_float<A> && is_basic_float<B>);

/// The value of an operand: a number, or what compound assignment takes. A NaN of a built-in type is in `nan`.
MP_ANY_EXECUTION_SPACE
template <class X>
MP_HOST_DEVICE constexpr number_parts value_of_operand(X x) noexcept {
    if constexpr (is_basic_float<X>) {
        return parts_of_code<typename X::format>(x.bits());
    } else if constexpr (integer_operand<X>) {
        return parts_of(integer_of(x));
    } else if constexpr (sizeof(X) == 2) {
        return value_of_operand(static_cast<float>(x));
    } else {
        return parts_of(x);
    }
}

/// The number that an operand is, and whether it is one exactly.
template <class Format>
struct converted_operand {
    basic_float<Format> value;
    bool is_exact;
};
MP_ANY_EXECUTION_SPACE
template <class Format, class X>
MP_HOST_DEVICE constexpr converted_operand<Format> converted(X x) noexcept {
    if constexpr (is_basic_float<X>) {
        return {x, true};
    } else {
        const basic_float<Format> y(x);
        const auto order = comparands(y, x);
        const bool keeps_sign = layout_of<Format>::has_signed_zero || y.bits() != 0;
        return {y, keeps_sign && order.ordered && order.a == order.b};
    }
}

MP_ANY_EXECUTION_SPACE
template <class X>
MP_HOST_DEVICE constexpr bool is_nan_operand(X x) noexcept {
    return value_of_operand(x).kind == category::nan;
}

/// function(numbers...) if all operands are numbers of the format, or NaN, whose payload counts; else
/// exact(values...), which gives a code. A NaN beside a format without NaN makes the result what NaN becomes.
MP_ANY_EXECUTION_SPACE
template <class Function, class Exact, class... X>
MP_HOST_DEVICE constexpr auto mixed_result(Function function, Exact exact, X... x) noexcept {
    using format = common_format_t<X...>;
    const bool has_nan = (is_nan_operand(x) || ...);
    if (has_nan && !layout_of<format>::has_nan) return basic_float<format>::from_bits(pack_nan<format>());
    if (has_nan || (converted<format>(x).is_exact && ...)) return function(converted<format>(x).value...);
    return basic_float<format>::from_bits(exact(value_of_operand(x)...));
}

/// A value that is not NaN as a code, rounded in the direction.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> code_of_value(const number_parts& x, rounding direction = {}) {
    const projection p{direction};
    if (x.kind == category::zero) return pack_zero<Format>(x.negative, p);
    if (x.kind == category::infinite) return pack_infinity<Format>(x.negative, p);
    return round_and_pack<Format>(x.value, p);
}
MP_HOST_DEVICE constexpr number_parts with_sign(number_parts x, bool negative) {
    x.negative = negative;
    x.value.negative = negative;
    return x;
}

/// Whether a comes before b in the order of the values, in which -0 comes before +0; by magnitude first if
/// asked for.
MP_HOST_DEVICE constexpr bool comes_first(const number_parts& a, const number_parts& b, bool by_magnitude) {
    if (by_magnitude) {
        const auto order = compare_parts(with_sign(a, false), with_sign(b, false));
        if (order.a != order.b) return order.a < order.b;
    }
    const auto order = compare_parts(a, b);
    if (order.a != order.b) return order.a < order.b;
    return a.negative && !b.negative;
}

/// The smaller or the larger one of two exact values, rounded. Beside a number NaN gives NaN, or the number where
/// IgnoresNan, also in a format without NaN. `function` is the one of two numbers of the format.
MP_ANY_EXECUTION_SPACE
template <bool Smaller, bool ByMagnitude, bool IgnoresNan, class Function, class A, class B>
MP_HOST_DEVICE constexpr auto mixed_extremum(Function function, A a, B b) noexcept {
    using format = common_format_t<A, B>;
    if constexpr (IgnoresNan && !layout_of<format>::has_nan) {
        if (is_nan_operand(a)) return converted<format>(b).value;
        if (is_nan_operand(b)) return converted<format>(a).value;
    }
    return mixed_result(
        function,
        [](const auto& x, const auto& y) {
            return code_of_value<format>(comes_first(x, y, ByMagnitude) == Smaller ? x : y);
        },
        a, b);
}

/// a - b if a > b, else zero.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> positive_difference(const number_parts& a,
                                                                const number_parts& b) {
    const auto order = compare_parts(a, b);
    if (order.a <= order.b) return pack_zero<Format>(false, projection{});
    return mixed_sum<Format, uint128>(a, with_sign(b, !b.negative));
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> remainder_of_values(const number_parts& a, const number_parts& b,
                                                                quotient kind, int* bits = nullptr) {
    if (bits != nullptr) *bits = 0;
    if (a.kind == category::infinite || b.kind == category::zero) return pack_nan<Format>();
    if (a.kind == category::zero || b.kind == category::infinite) return code_of_value<Format>(a);
    const exact_remainder result = remainder_of<uint128>(a.value, b.value, kind);
    if (bits != nullptr) *bits = quotient_bits(result.quotient, a.negative != b.negative);
    if (result.rest.significand == 0) return pack_zero<Format>(a.negative, projection{});
    return round_and_pack<Format>(result.rest, projection{});
}

/// The number of the format next to `from` in the direction of `to`.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> next_to_value(const number_parts& from, const number_parts& to) {
    using value = basic_float<Format>;
    const auto order = compare_parts(from, to);
    if (order.a == order.b) return code_of_value<Format>(to);
    // In a format without infinity the number next to it is the last one.
    if (!layout_of<Format>::has_infinity && from.kind == category::infinite)
        return pack_infinity<Format>(from.negative, projection{.saturate = saturation::finite});
    const bool up = order.a < order.b;
    const auto next =
        value::from_bits(code_of_value<Format>(from, up ? rounding::upward : rounding::downward));
    const auto reached = compare_parts(parts_of_code<Format>(next.bits()), from);
    if (!reached.ordered || reached.a != reached.b) return next.bits();
    return (up ? nextup(next) : nextdown(next)).bits();
}

/// a b + c. The product of the significands has at most 112 bits.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> fused_values(const number_parts& a, const number_parts& b,
                                                         const number_parts& c) {
    const projection nearest{};
    const bool negative = a.negative != b.negative;
    if (a.kind == category::infinite || b.kind == category::infinite) {
        if (a.kind == category::zero || b.kind == category::zero) return pack_nan<Format>();
        if (c.kind == category::infinite && c.negative != negative) return pack_nan<Format>();
        return pack_infinity<Format>(negative, nearest);
    }
    if (c.kind == category::infinite) return pack_infinity<Format>(c.negative, nearest);
    if (a.kind == category::zero || b.kind == category::zero) {
        if (c.kind == category::zero) return pack_zero<Format>(negative && c.negative, nearest);
        return code_of_value<Format>(c);
    }
    const exact_number<uint128> product{negative, a.value.exponent + b.value.exponent,
                                        static_cast<uint128>(a.value.significand) * b.value.significand};
    const exact_value sum =
        to_64_bits(c.kind == category::zero ? product : add_exact(product, widened<uint128>(c.value)));
    if (sum.significand == 0) return pack_zero<Format>(false, nearest);
    return round_and_pack<Format>(sum, nearest);
}

/// The bits of an operand's significand.
template <class X>
constexpr int significand_bits() {
    if constexpr (is_basic_float<X>) {
        return X::layout::precision;
    } else if constexpr (std::is_floating_point_v<X>) {
        return sizeof(X) > 4 ? 53 : 24;
    } else {
        return static_cast<int>(sizeof(X)) * 8;
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Minima and maxima: the one that the exact values choose, rounded.
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto fmin(A a, B b) noexcept {
    return detail::mixed_extremum<true, false, true>([](auto x, auto y) { return fmin(x, y); }, a, b);
}
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto fmax(A a, B b) noexcept {
    return detail::mixed_extremum<false, false, true>([](auto x, auto y) { return fmax(x, y); }, a, b);
}
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto fminimum(A a, B b) noexcept {
    return detail::mixed_extremum<true, false, false>([](auto x, auto y) { return fminimum(x, y); }, a, b);
}
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto fmaximum(A a, B b) noexcept {
    return detail::mixed_extremum<false, false, false>([](auto x, auto y) { return fmaximum(x, y); }, a, b);
}
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto fminimum_num(A a, B b) noexcept {
    return detail::mixed_extremum<true, false, true>([](auto x, auto y) { return fminimum_num(x, y); }, a, b);
}
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto fmaximum_num(A a, B b) noexcept {
    return detail::mixed_extremum<false, false, true>([](auto x, auto y) { return fmaximum_num(x, y); }, a,
                                                      b);
}
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto fminimum_mag(A a, B b) noexcept {
    return detail::mixed_extremum<true, true, false>([](auto x, auto y) { return fminimum_mag(x, y); }, a, b);
}
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto fmaximum_mag(A a, B b) noexcept {
    return detail::mixed_extremum<false, true, false>([](auto x, auto y) { return fmaximum_mag(x, y); }, a,
                                                      b);
}
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto fminimum_mag_num(A a, B b) noexcept {
    return detail::mixed_extremum<true, true, true>([](auto x, auto y) { return fminimum_mag_num(x, y); }, a,
                                                    b);
}
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto fmaximum_mag_num(A a, B b) noexcept {
    return detail::mixed_extremum<false, true, true>([](auto x, auto y) { return fmaximum_mag_num(x, y); }, a,
                                                     b);
}

/// The exact difference, rounded, or zero.
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto fdim(A a, B b) noexcept {
    using format = detail::common_format_t<A, B>;
    return detail::mixed_result(
        [](auto x, auto y) { return fdim(x, y); },
        [](const auto& x, const auto& y) { return detail::positive_difference<format>(x, y); }, a, b);
}

/// The exact remainders, rounded.
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto fmod(A a, B b) noexcept {
    using format = detail::common_format_t<A, B>;
    return detail::mixed_result([](auto x, auto y) { return fmod(x, y); },
                                [](const auto& x, const auto& y) {
                                    return detail::remainder_of_values<format>(x, y,
                                                                               detail::quotient::toward_zero);
                                },
                                a, b);
}
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto remainder(A a, B b) noexcept {
    using format = detail::common_format_t<A, B>;
    return detail::mixed_result([](auto x, auto y) { return remainder(x, y); },
                                [](const auto& x, const auto& y) {
                                    return detail::remainder_of_values<format>(
                                        x, y, detail::quotient::nearest_even);
                                },
                                a, b);
}
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
MP_HOST_DEVICE constexpr auto remquo(A a, B b, int* bits) noexcept {
    using format = detail::common_format_t<A, B>;
    if (bits != nullptr) *bits = 0;
    return detail::mixed_result([bits](auto x, auto y) { return remquo(x, y, bits); },
                                [bits](const auto& x, const auto& y) {
                                    return detail::remainder_of_values<format>(
                                        x, y, detail::quotient::nearest_even, bits);
                                },
                                a, b);
}

/// The number of the format next to the exact value of a in the direction of b; b, rounded, if they are equal.
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto nextafter(A a, B b) noexcept {
    using format = detail::common_format_t<A, B>;
    return detail::mixed_result(
        [](auto x, auto y) { return nextafter(x, y); },
        [](const auto& x, const auto& y) { return detail::next_to_value<format>(x, y); }, a, b);
}

/// The magnitude of a, rounded, with the sign of b.
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr auto copysign(A a, B b) noexcept {
    using format = detail::common_format_t<A, B>;
    if constexpr (!layout_of<format>::has_nan) {
        if (detail::is_nan_operand(b)) {
            const bool is_negative = detail::value_of_operand(b).negative;
            return basic_float<format>::from_bits(
                detail::code_of_value<format>(detail::with_sign(detail::value_of_operand(a), is_negative)));
        }
    }
    return detail::mixed_result([](auto x, auto y) { return copysign(x, y); },
                                [](const auto& x, const auto& y) {
                                    return detail::code_of_value<format>(detail::with_sign(x, y.negative));
                                },
                                a, b);
}

/// a b + c, rounded once. (Two factors of 64 bits, or one beside a double, do not compile.)
MP_ANY_EXECUTION_SPACE
template <class A, class B, class C>
    requires(detail::mixed_arguments<A, B, C> &&
             detail::significand_bits<A>() + detail::significand_bits<B>() <= 112)
[[nodiscard]] MP_HOST_DEVICE constexpr auto fma(A a, B b, C c) noexcept {
    using format = detail::common_format_t<A, B, C>;
    return detail::mixed_result(
        [](auto x, auto y, auto z) { return fma(x, y, z); },
        [](const auto& x, const auto& y, const auto& z) { return detail::fused_values<format>(x, y, z); }, a,
        b, c);
}

/// nextafter() for a built-in type toward a number; that of a number toward a long double is with the numbers.
MP_ANY_EXECUTION_SPACE
template <detail::assigned_operand X, class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> nexttoward(X from,
                                                                      basic_float<Format> to) noexcept {
    return nextafter(from, to);
}

/// C's comparisons, as the operators: by the exact values, false for NaN.
template <class A, class B>
    requires detail::compared_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr bool isgreater(A a, B b) noexcept {
    return a > b;
}
template <class A, class B>
    requires detail::compared_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr bool isgreaterequal(A a, B b) noexcept {
    return a >= b;
}
template <class A, class B>
    requires detail::compared_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr bool isless(A a, B b) noexcept {
    return a < b;
}
template <class A, class B>
    requires detail::compared_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr bool islessequal(A a, B b) noexcept {
    return a <= b;
}
template <class A, class B>
    requires detail::compared_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr bool islessgreater(A a, B b) noexcept {
    return a < b || a > b;
}
MP_ANY_EXECUTION_SPACE
template <class A, class B>
    requires detail::mixed_arguments<A, B>
[[nodiscard]] MP_HOST_DEVICE constexpr bool isunordered(A a, B b) noexcept {
    return detail::value_of_operand(a).kind == detail::category::nan ||
           detail::value_of_operand(b).kind == detail::category::nan;
}

}}  // namespace mp
