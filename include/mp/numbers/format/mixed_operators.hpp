// SPDX-License-Identifier: MIT
/// \file
/// Operators between a reduced number and a built-in type.
///
/// An integer operand, bool and unscoped enumerations among them, becomes a number of the format, rounded
/// once to nearest even, and the operation is one of the format. With a floating-point operand the operation
/// is one of its type, and of float for types of 16 bits: plain arithmetic of the language, in the
/// environment of the caller. That needs a type that has all numbers of the format; convert explicitly where
/// it does not.
///
/// Comparisons are by the exact values of both sides, whatever the types: half(2048) == 2049 is false, though
/// half(2049) is 2048. NaN is unordered with everything.
///
/// Compound assignment of float, double and integers of up to 64 bits gives the exact result, rounded once to
/// the left side. So h += x is h + x where x is a number of the format, and else the more exact one of the
/// two. A float, double or long double takes a number as it takes a float.
///
///     mp::half h{3};
///     auto a = h + 1;          // mp::half
///     auto b = h + 1.0f;       // float
///     h += 0.1f;               // the exact 3 + 0.1f, rounded once to half
#pragma once

#include <mp/numbers/format/basic_float.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The type that a number of a format and an operand meet in.
template <class Format, class X>
struct common_number {
    using type = decltype(0.0f + X{});
};
template <class Format, integer_operand X>
struct common_number<Format, X> {
    using type = basic_float<Format>;
};
template <class Format, class X>
using common_number_t = typename common_number<Format, X>::type;

/// Built-in types that a number is compared with: all of them.
template <class T>
concept compared_operand = integer_operand<T> || built_in<T> || host_float<T>;

/// Built-in types that a compound assignment takes on its right side.
template <class T>
concept assigned_operand =
    (integer_operand<T> && sizeof(T) <= 8) || built_in<T> || (host_float<T> && sizeof(T) == 2);

/// h op x, rounded once. A number of the format is told by comparing it with what it becomes there; then the
/// operation of the format is the same, unless x is a zero whose sign the format does not have.
MP_ANY_EXECUTION_SPACE
template <class Format, class X>
MP_HOST_DEVICE constexpr basic_float<Format> rounded_once(operation kind, basic_float<Format> h,
                                                          X x) noexcept {
    if constexpr (integer_operand<X> && !integer<X>) {
        return rounded_once(kind, h, integer_of(x));
    } else if constexpr (sizeof(X) == 2 && !integer<X>) {
        return rounded_once(kind, h, static_cast<float>(x));
    } else {
        const basic_float<Format> y(x);
        const auto order = compare_with<Format>(y.bits(), x);
        const bool keeps_sign = layout_of<Format>::has_signed_zero || y.bits() != 0;
        if (keeps_sign && order.ordered && order.a == order.b) {
            if (kind == operation::add) return h + y;
            if (kind == operation::subtract) return h - y;
            if (kind == operation::multiply) return h * y;
            return h / y;
        }
        return basic_float<Format>::from_bits(mixed_operation<Format>(kind, h.bits(), x));
    }
}

/// The comparands of h and x; see compare_with.
MP_ANY_EXECUTION_SPACE
template <class Format, class X>
MP_HOST_DEVICE constexpr auto comparands(basic_float<Format> h, X x) noexcept {
    if constexpr (integer_operand<X>) {
        return compare_with<Format>(h.bits(), integer_of(x));
    } else if constexpr (sizeof(X) == 2) {
        return compare_with<Format>(h.bits(), static_cast<float>(x));
    } else {
        return compare_with<Format>(h.bits(), x);
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

// Types that only the host has may take part, which nvcc need not warn of.
#define MP_MIXED_ARITHMETIC(op, kind)                                                                    \
    MP_ANY_EXECUTION_SPACE                                                                               \
    template <class Format, detail::mixed_operand<Format> X>                                             \
    [[nodiscard]] MP_HOST_DEVICE constexpr auto operator op(basic_float<Format> a, X b) noexcept {       \
        using common = detail::common_number_t<Format, X>;                                               \
        return static_cast<common>(a) op static_cast<common>(b);                                         \
    }                                                                                                    \
    MP_ANY_EXECUTION_SPACE                                                                               \
    template <class Format, detail::mixed_operand<Format> X>                                             \
    [[nodiscard]] MP_HOST_DEVICE constexpr auto operator op(X a, basic_float<Format> b) noexcept {       \
        using common = detail::common_number_t<Format, X>;                                               \
        return static_cast<common>(a) op static_cast<common>(b);                                         \
    }                                                                                                    \
    MP_ANY_EXECUTION_SPACE                                                                               \
    template <class Format, detail::assigned_operand X>                                                  \
    MP_HOST_DEVICE constexpr basic_float<Format>& operator op##=(basic_float<Format>& a, X b) noexcept { \
        return a = detail::rounded_once(detail::operation::kind, a, b);                                  \
    }                                                                                                    \
    /* A float, double or long double takes a number as it takes a float. */                             \
    MP_ANY_EXECUTION_SPACE                                                                               \
    template <class Format, detail::floating_operand<Format> X>                                          \
    MP_HOST_DEVICE constexpr X& operator op##=(X & a, basic_float<Format> b) noexcept {                  \
        return a = static_cast<X>(a op b);                                                               \
    }                                                                                                    \
    /* An integer on the left side would drop the fraction: write i = static_cast<int>(i + h). */        \
    template <class Format, detail::integer_operand X,                                                   \
              class Advice = detail::write_static_cast_or_round_to_integer>                              \
    void operator op##=(X&, basic_float<Format>) = delete;
MP_MIXED_ARITHMETIC(+, add)
MP_MIXED_ARITHMETIC(-, subtract)
MP_MIXED_ARITHMETIC(*, multiply)
MP_MIXED_ARITHMETIC(/, divide)
#undef MP_MIXED_ARITHMETIC

MP_ANY_EXECUTION_SPACE
template <class Format, detail::compared_operand X>
[[nodiscard]] MP_HOST_DEVICE constexpr bool operator==(basic_float<Format> a, X b) noexcept {
    const auto keys = detail::comparands(a, b);
    return keys.ordered & (keys.a == keys.b);
}
// `reverse` is the operator with its operands exchanged.
#define MP_MIXED_COMPARISON(op, reverse)                                                           \
    MP_ANY_EXECUTION_SPACE                                                                         \
    template <class Format, detail::compared_operand X>                                            \
    [[nodiscard]] MP_HOST_DEVICE constexpr bool operator op(basic_float<Format> a, X b) noexcept { \
        const auto keys = detail::comparands(a, b);                                                \
        return keys.ordered & (keys.a op keys.b);                                                  \
    }                                                                                              \
    MP_ANY_EXECUTION_SPACE                                                                         \
    template <class Format, detail::compared_operand X>                                            \
    [[nodiscard]] MP_HOST_DEVICE constexpr bool operator op(X a, basic_float<Format> b) noexcept { \
        return b reverse a;                                                                        \
    }
MP_MIXED_COMPARISON(<, >)
MP_MIXED_COMPARISON(<=, >=)
MP_MIXED_COMPARISON(>, <)
MP_MIXED_COMPARISON(>=, <=)
#undef MP_MIXED_COMPARISON
template <class Format, detail::compared_operand X>
[[nodiscard]] constexpr std::partial_ordering operator<=>(basic_float<Format> a, X b) noexcept {
    const auto keys = detail::comparands(a, b);
    if (!keys.ordered) return std::partial_ordering::unordered;
    return keys.a <=> keys.b;
}

}}  // namespace mp

/// What a number and a built-in type meet in, as in the operators.
template <class Format, mp::detail::mixed_operand<Format> X>
struct std::common_type<mp::basic_float<Format>, X> {
    using type = mp::detail::common_number_t<Format, X>;
};
template <class Format, mp::detail::mixed_operand<Format> X>
struct std::common_type<X, mp::basic_float<Format>> {
    using type = mp::detail::common_number_t<Format, X>;
};
