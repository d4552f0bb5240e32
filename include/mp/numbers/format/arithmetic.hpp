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

#include <mp/numbers/format/exact_remainder.hpp>
#include <mp/numbers/format/number_traits.hpp>

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

}}  // namespace mp
