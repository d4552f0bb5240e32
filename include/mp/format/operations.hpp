// SPDX-License-Identifier: MIT
/// \file
/// Functions on single numbers: arithmetic in any projection, fma, sqrt, explicit conversion, classification.
#pragma once

#include <mp/format/basic_float.hpp>

namespace mp {

namespace detail {

template <class T>
struct format_of;
template <class Format>
struct format_of<basic_float<Format>> {
    using type = Format;
};
template <>
struct format_of<float> : native_format<float> {};
template <>
struct format_of<double> : native_format<double> {};

template <class T>
using format_of_t = typename format_of<std::remove_cv_t<T>>::type;

/// The bits of any number, float and double included.
template <number T>
MP_HOST_DEVICE constexpr storage_of<format_of_t<T>> bits_of(T x) noexcept {
    if constexpr (reduced<T>) {
        return x.bits();
    } else {
        return bit_cast<storage_of<format_of_t<T>>>(x);
    }
}

/// The number with the given bits, float and double included.
template <number T>
MP_HOST_DEVICE constexpr T number_from_bits(storage_of<format_of_t<T>> bits) noexcept {
    if constexpr (reduced<T>) {
        return T::from_bits(bits);
    } else {
        return bit_cast<T>(bits);
    }
}

}  // namespace detail

/// Converts any number or integer to `To`, rounding the exact value once as the projection says. `To` may be
/// float or double as well. NaN converts to a quiet NaN with the same sign and leading payload.
///
///     mp::round_to<mp::half>(1.0f / 3, {.round = mp::rounding::toward_zero});
///     mp::round_to<mp::float8_e4m3fn>(1000.0, {.saturate = mp::saturation::finite});   // 448
template <number To, class From>
[[nodiscard]] MP_HOST_DEVICE constexpr To round_to(From x, projection p = {}) noexcept {
    using format = detail::format_of_t<To>;
    if constexpr (reduced<From>) {
        return detail::number_from_bits<To>(detail::convert_bits<format, typename From::format>(x.bits(), p));
    } else if constexpr (std::floating_point<From>) {
        return detail::number_from_bits<To>(detail::from_native<format>(x, p));
    } else {
        static_assert(detail::integer<From>, "mp::round_to converts numbers and integers");
        return detail::number_from_bits<To>(detail::from_integer<format>(x, p));
    }
}
/// The same for long double, which devices do not have.
template <number To, std::same_as<long double> From>
[[nodiscard]] constexpr To round_to(From x, projection p = {}) noexcept {
    return detail::number_from_bits<To>(detail::from_long_double<detail::format_of_t<To>>(x, p));
}

/// a + b, a - b, a * b and a / b, the exact result rounded once as the projection says.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> add(basic_float<Format> a, basic_float<Format> b,
                                                               projection p = {}) noexcept {
    if (p == projection{}) return a + b;
    return basic_float<Format>::from_bits(detail::add_bits<Format>(a.bits(), b.bits(), p));
}
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> subtract(basic_float<Format> a,
                                                                    basic_float<Format> b,
                                                                    projection p = {}) noexcept {
    if (p == projection{}) return a - b;
    return basic_float<Format>::from_bits(detail::subtract_bits<Format>(a.bits(), b.bits(), p));
}
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> multiply(basic_float<Format> a,
                                                                    basic_float<Format> b,
                                                                    projection p = {}) noexcept {
    if (p == projection{}) return a * b;
    return basic_float<Format>::from_bits(detail::multiply_bits<Format>(a.bits(), b.bits(), p));
}
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> divide(basic_float<Format> a,
                                                                  basic_float<Format> b,
                                                                  projection p = {}) noexcept {
    if (p == projection{}) return a / b;
    return basic_float<Format>::from_bits(detail::divide_bits<Format>(a.bits(), b.bits(), p));
}

/// a * b + c, the exact result rounded once. (Through float, and for bfloat16 even through double, it would
/// be rounded twice and sometimes wrong.)
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fma(basic_float<Format> a, basic_float<Format> b,
                                                               basic_float<Format> c,
                                                               projection p = {}) noexcept {
    if (p == projection{}) {
        return basic_float<Format>::from_bits(detail::fma_nearest<Format>(a.bits(), b.bits(), c.bits()));
    }
    return basic_float<Format>::from_bits(detail::fma_bits<Format>(a.bits(), b.bits(), c.bits(), p));
}

/// The square root, correctly rounded; NaN for negative numbers, minus zero for minus zero.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> sqrt(basic_float<Format> a,
                                                                projection p = {}) noexcept {
    if (p == projection{}) return basic_float<Format>::from_bits(detail::sqrt_nearest<Format>(a.bits()));
    return basic_float<Format>::from_bits(detail::sqrt_bits<Format>(a.bits(), p));
}

/// Classification looks at bits, so it stays right under -ffast-math; float and double are welcome too.
template <number T>
[[nodiscard]] MP_HOST_DEVICE constexpr bool isnan(T x) noexcept {
    return detail::categorize<detail::format_of_t<T>>(detail::bits_of(x)) == detail::category::nan;
}
template <number T>
[[nodiscard]] MP_HOST_DEVICE constexpr bool isinf(T x) noexcept {
    return detail::categorize<detail::format_of_t<T>>(detail::bits_of(x)) == detail::category::infinite;
}
template <number T>
[[nodiscard]] MP_HOST_DEVICE constexpr bool is_zero(T x) noexcept {
    return detail::categorize<detail::format_of_t<T>>(detail::bits_of(x)) == detail::category::zero;
}
/// Neither infinite nor NaN.
template <number T>
[[nodiscard]] MP_HOST_DEVICE constexpr bool isfinite(T x) noexcept {
    using layout = layout_of<detail::format_of_t<T>>;
    return !isnan(x) && (detail::bits_of(x) & layout::magnitude_mask) <= layout::max_finite_code;
}
/// Finite, not zero, and smaller in magnitude than the smallest normal number.
template <number T>
[[nodiscard]] MP_HOST_DEVICE constexpr bool is_subnormal(T x) noexcept {
    using layout = layout_of<detail::format_of_t<T>>;
    const auto magnitude = detail::bits_of(x) & layout::magnitude_mask;
    return magnitude != 0 && magnitude < layout::hidden_bit;
}
/// Finite, not zero and not subnormal.
template <number T>
[[nodiscard]] MP_HOST_DEVICE constexpr bool isnormal(T x) noexcept {
    return isfinite(x) && !is_zero(x) && !is_subnormal(x);
}
/// The sign bit, of zeros and NaNs too.
template <number T>
[[nodiscard]] MP_HOST_DEVICE constexpr bool signbit(T x) noexcept {
    return detail::is_negative<detail::format_of_t<T>>(detail::bits_of(x));
}
/// Whether a comparison of a and b is unordered because one of them is NaN.
template <number T>
[[nodiscard]] MP_HOST_DEVICE constexpr bool isunordered(T a, T b) noexcept {
    return isnan(a) || isnan(b);
}

/// The magnitude of x; works on the sign bit alone.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> fabs(basic_float<Format> x) noexcept {
    return signbit(x) ? -x : x;
}
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> abs(basic_float<Format> x) noexcept {
    return fabs(x);
}
/// The magnitude of `magnitude` with the sign of `sign`.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> copysign(basic_float<Format> magnitude,
                                                                    basic_float<Format> sign) noexcept {
    return signbit(magnitude) == signbit(sign) ? magnitude : -magnitude;
}

/// The next number after `from` in the direction of `to`; `to` itself when they are equal; NaN if either is.
/// The neighbour of the largest finite number upward is infinity, or the number itself where there is none.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> nextafter(basic_float<Format> from,
                                                                     basic_float<Format> to) noexcept {
    using value = basic_float<Format>;
    using layout = layout_of<Format>;
    using storage = typename layout::storage;
    if (isnan(from) || isnan(to)) {
        return value::from_bits(detail::propagate_nan<Format>(from.bits(), to.bits()));
    }
    if (from == to) return to;
    if (is_zero(from)) return value::from_bits(detail::join<Format>(to < from, 1));
    const bool grows = (from < to) != signbit(from);
    const auto magnitude = static_cast<storage>(from.bits() & layout::magnitude_mask);
    if (grows && magnitude == layout::max_finite_code && !layout::has_infinity) return from;
    const auto next = static_cast<storage>(grows ? magnitude + 1 : magnitude - 1);
    return value::from_bits(detail::join<Format>(signbit(from), next));
}

}  // namespace mp
