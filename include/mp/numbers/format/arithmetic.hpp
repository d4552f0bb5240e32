// SPDX-License-Identifier: MIT
/// \file
/// Conversion and arithmetic in any projection or environment. Every function returns the exact result
/// rounded once. The last argument is a projection (by default nearest-even without saturation), or an
/// environment, which collects flags:
///
///     mp::add(a, b);
///     mp::add(a, b, {.round = mp::rounding::upward});
///     mp::environment env{.subnormals = mp::subnormal_handling::flush_all};
///     mp::add(a, b, env);                       // env.raised says what happened
#pragma once

#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/exact_arithmetic.hpp>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Converts any number or integer to `To`, rounding the exact value once. `To` may be float or double as
/// well. NaN converts to a quiet NaN with the same sign and leading payload; in a format without NaN it
/// becomes the largest finite number.
///
///     mp::round_to<mp::half>(1.0f / 3, {.round = mp::rounding::toward_zero});
///     mp::round_to<mp::float8_e4m3fn>(1000.0, {.saturate = mp::saturation::finite});   // 448
template <number To, class From, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr To round_to(From x, Context&& context = projection{}) noexcept {
    using format = detail::format_of_t<To>;
    if constexpr (reduced<From>) {
        return detail::number_from_bits<To>(
            detail::from_number<format, typename From::format>(x.bits(), context));
    } else if constexpr (detail::built_in<From>) {
        return detail::number_from_bits<To>(detail::from_native<format>(x, context));
    } else {
        static_assert(detail::integer<From>, "mp::round_to converts numbers and integers");
        return detail::number_from_bits<To>(detail::from_integer<format>(x, context));
    }
}
/// Overload for what devices do not have: long double, and the compiler's own _Float16 and __float128.
template <number To, detail::host_float From, detail::context Context = const projection&>
[[nodiscard]] constexpr To round_to(From x, Context&& context = projection{}) noexcept {
    return detail::number_from_bits<To>(detail::from_host_float<detail::format_of_t<To>>(x, context));
}

/// a + b, a - b, a * b and a / b.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> add(basic_float<Format> a, basic_float<Format> b,
                                                               Context&& context = projection{}) noexcept {
    if constexpr (!detail::keeps_flags<Context>) {
        if (context == projection{}) return a + b;
    }
    return basic_float<Format>::from_bits(detail::add_bits<Format>(a.bits(), b.bits(), context));
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> subtract(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    if constexpr (!detail::keeps_flags<Context>) {
        if (context == projection{}) return a - b;
    }
    return basic_float<Format>::from_bits(detail::subtract_bits<Format>(a.bits(), b.bits(), context));
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> multiply(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    if constexpr (!detail::keeps_flags<Context>) {
        if (context == projection{}) return a * b;
    }
    return basic_float<Format>::from_bits(detail::multiply_bits<Format>(a.bits(), b.bits(), context));
}
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> divide(basic_float<Format> a,
                                                                  basic_float<Format> b,
                                                                  Context&& context = projection{}) noexcept {
    if constexpr (!detail::keeps_flags<Context>) {
        if (context == projection{}) return a / b;
    }
    return basic_float<Format>::from_bits(detail::divide_bits<Format>(a.bits(), b.bits(), context));
}

/// a * b + c, rounded once. (Through float, and for bfloat16 even through double, it would be rounded twice
/// and sometimes wrong.) The product of infinity and zero with a quiet NaN added is that NaN, and not
/// invalid.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fma(basic_float<Format> a, basic_float<Format> b,
                                                               basic_float<Format> c,
                                                               Context&& context = projection{}) noexcept {
    if constexpr (!detail::keeps_flags<Context>) {
        if (context == projection{}) {
            return basic_float<Format>::from_bits(detail::fma_nearest<Format>(a.bits(), b.bits(), c.bits()));
        }
    }
    return basic_float<Format>::from_bits(detail::fma_bits<Format>(a.bits(), b.bits(), c.bits(), context));
}

/// The square root; NaN for negative numbers, minus zero for minus zero.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> sqrt(basic_float<Format> a,
                                                                Context&& context = projection{}) noexcept {
    if constexpr (!detail::keeps_flags<Context>) {
        if (context == projection{}) {
            return basic_float<Format>::from_bits(detail::sqrt_nearest<Format>(a.bits()));
        }
    }
    return basic_float<Format>::from_bits(detail::sqrt_bits<Format>(a.bits(), context));
}

/// a - n b with n the integer nearest to the exact a / b, the even one in case of a tie (IEEE 754's
/// remainder). Exact; a zero has the sign of a. Invalid for infinite a and for zero b.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> remainder(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(
        detail::remainder_bits<Format>(a.bits(), b.bits(), detail::quotient::nearest_even, context));
}

/// As remainder(), with n the exact a / b without its fraction, so that the result has the sign of a (C's
/// fmod).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fmod(basic_float<Format> a, basic_float<Format> b,
                                                                Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(
        detail::remainder_bits<Format>(a.bits(), b.bits(), detail::quotient::toward_zero, context));
}

/// remainder(), and in *quotient the last 31 bits of n with the sign of a / b; zero where the result is NaN.
template <class Format, detail::context Context = const projection&>
MP_HOST_DEVICE constexpr basic_float<Format> remquo(basic_float<Format> a, basic_float<Format> b,
                                                    int* quotient,
                                                    Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(detail::remainder_bits<Format>(
        a.bits(), b.bits(), detail::quotient::nearest_even, context, quotient));
}

/// a - b if a > b, else plus zero; NaN if either is NaN.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fdim(basic_float<Format> a, basic_float<Format> b,
                                                                Context&& context = projection{}) noexcept {
    if (a > b || !(a <= b)) return subtract(a, b, context);
    return basic_float<Format>::from_bits(detail::pack_zero<Format>(false, context));
}

/// (a + b) / 2: the exact mean, rounded once, without overflow on the way.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> midpoint(
    basic_float<Format> a, basic_float<Format> b, Context&& context = projection{}) noexcept {
    using value = basic_float<Format>;
    const auto x = detail::operand<Format>(a.bits(), context);
    const auto y = detail::operand<Format>(b.bits(), context);
    if (detail::categorize<Format>(x) != detail::category::finite ||
        detail::categorize<Format>(y) != detail::category::finite) {
        // Of infinities, NaN and two zeros the mean is the sum; beside a zero it is half of the other one.
        const bool halves = detail::categorize<Format>(x) == detail::category::zero
                                ? detail::categorize<Format>(y) == detail::category::finite
                                : detail::categorize<Format>(y) == detail::category::zero &&
                                      detail::categorize<Format>(x) == detail::category::finite;
        if (!halves) return add(value::from_bits(x), value::from_bits(y), context);
        detail::exact_value half =
            detail::unpack<Format>(detail::categorize<Format>(x) == detail::category::zero ? y : x);
        --half.exponent;
        return value::from_bits(detail::round_and_pack<Format>(half, context));
    }
    detail::exact_value sum =
        detail::to_64_bits(detail::add_exact(detail::widened<detail::uint128>(detail::unpack<Format>(x)),
                                             detail::widened<detail::uint128>(detail::unpack<Format>(y))));
    if (sum.significand == 0) {
        return value::from_bits(
            detail::pack_zero<Format>(detail::zero_sum_is_negative(detail::projection_of(context)), context));
    }
    --sum.exponent;
    return value::from_bits(detail::round_and_pack<Format>(sum, context));
}

/// a + t (b - a), rounded once: a at t = 0, b at t = 1, monotonic in t. Infinities and NaN as the operations
/// of the format have them.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> lerp(basic_float<Format> a, basic_float<Format> b,
                                                                basic_float<Format> t,
                                                                Context&& context = projection{}) noexcept {
    using value = basic_float<Format>;
    using term = detail::exact_number<detail::uint128>;
    a = value::from_bits(detail::operand<Format>(a.bits(), context));
    b = value::from_bits(detail::operand<Format>(b.bits(), context));
    t = value::from_bits(detail::operand<Format>(t.bits(), context));
    const auto is_number = [](value x) {
        const detail::category kind = detail::categorize<Format>(x.bits());
        return kind == detail::category::zero || kind == detail::category::finite;
    };
    if (!is_number(a) || !is_number(b) || !is_number(t)) {
        return add(a, multiply(t, subtract(b, a, context), context), context);
    }
    if (a == b) return a;
    const auto exact = [](value x) {
        if (detail::categorize<Format>(x.bits()) == detail::category::zero) return detail::exact_value{};
        return detail::unpack<Format>(x.bits());
    };
    const detail::exact_value from = exact(a);
    const detail::exact_value to = exact(b);
    const detail::exact_value part = exact(t);
    const auto product = [&](const detail::exact_value& x, bool negative) {
        return term{negative, x.exponent + part.exponent,
                    static_cast<detail::uint128>(x.significand) * part.significand};
    };
    const detail::exact_value sum = detail::to_64_bits(detail::sum_of_three(
        detail::widened<detail::uint128>(from), product(to, to.negative != part.negative),
        product(from, from.negative == part.negative)));
    if (sum.significand == 0) {
        return value::from_bits(
            detail::pack_zero<Format>(detail::zero_sum_is_negative(detail::projection_of(context)), context));
    }
    return value::from_bits(detail::round_and_pack<Format>(sum, context));
}

}}  // namespace mp
