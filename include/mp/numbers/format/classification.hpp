// SPDX-License-Identifier: MIT
/// \file
/// What kind of number something is, seen on its bits: right under -ffast-math too. float and double are
/// welcome.
#pragma once

#include <mp/numbers/format/basic_float.hpp>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Any NaN, quiet or signalling; found on the bits, so also under -ffast-math.
template <number T>
[[nodiscard]] MP_HOST_DEVICE constexpr bool isnan(T x) noexcept {
    return detail::categorize<detail::format_of_t<T>>(detail::bits_of(x)) == detail::category::nan;
}
/// A NaN that raises `invalid` wherever it is an operand, and that every conversion makes quiet.
template <number T>
[[nodiscard]] MP_HOST_DEVICE constexpr bool is_signaling(T x) noexcept {
    return detail::is_signaling<detail::format_of_t<T>>(detail::bits_of(x));
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
    return detail::is_subnormal_code<detail::format_of_t<T>>(detail::bits_of(x));
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

/// C23's names, in parentheses because C libraries have macros of these names. (Theirs for issubnormal calls
/// fpclassify, which comes with <mp/math.hpp>.)
template <reduced T>
[[nodiscard]] MP_HOST_DEVICE constexpr bool(iszero)(T x) noexcept {
    return is_zero(x);
}
template <reduced T>
[[nodiscard]] MP_HOST_DEVICE constexpr bool(issubnormal)(T x) noexcept {
    return is_subnormal(x);
}
template <reduced T>
[[nodiscard]] MP_HOST_DEVICE constexpr bool(issignaling)(T x) noexcept {
    return is_signaling(x);
}
/// Always: every code of a format is canonical.
template <reduced T>
[[nodiscard]] MP_HOST_DEVICE constexpr bool(iscanonical)(T) noexcept {
    return true;
}

}}  // namespace mp
