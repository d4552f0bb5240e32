// SPDX-License-Identifier: MIT
/// \file
/// std::numeric_limits and std::hash for every mp::basic_float.
#pragma once

#include <mp/detail/wide_integer.hpp>
#include <mp/format/basic_float.hpp>

#include <limits>
#include <typeindex>  // the lightest standard header that declares std::hash

namespace mp::detail {

/// floor(n * log10(2)) and its negation-safe ceiling for the small n of exponents and precisions;
/// 30103/100000 is log10(2) to 7 digits, which is enough for |n| < 2000.
constexpr int floor_log10_of_two_to(int n) {
    const int scaled = n * 30103;
    return scaled >= 0 ? scaled / 100000 : -((-scaled + 99999) / 100000);
}
constexpr int ceil_log10_of_two_to(int n) {
    return -floor_log10_of_two_to(-n);
}

/// The largest n with 10^n <= significand * 2^exponent, by exact integers.
constexpr int floor_log10(std::uint64_t significand, int exponent) {
    const int top = 63 - leading_zeros(significand) + exponent;
    // 10^n <= 2^top <= x for this n, and x < 2^(top + 1) < 10^(n + 2).
    const int n = floor_log10_of_two_to(top);
    wide_integer<96> value(significand);
    wide_integer<96> power(1);
    (exponent >= 0 ? value : power).shift_left(exponent >= 0 ? exponent : -exponent);
    for (int i = 0; i < n + 1; ++i) power.multiply_add(10, 0);
    for (int i = 0; i > n + 1; --i) value.multiply_add(10, 0);
    return power.compare(value) <= 0 ? n + 1 : n;
}

// C++23 deprecates these values and their type, and asks numeric_limits for the member all the same.
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif
inline constexpr auto has_subnormals = std::denorm_present;
inline constexpr auto has_no_subnormals = std::denorm_absent;
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

}  // namespace mp::detail

/// All members follow from the format's descriptor. infinity() and the NaNs are zero where the format has
/// none, as the standard asks.
template <class Format>
class std::numeric_limits<mp::basic_float<Format>> {
    using value = mp::basic_float<Format>;
    using layout = mp::layout_of<Format>;
    using storage = typename layout::storage;

public:
    static constexpr bool is_specialized = true;
    static constexpr bool is_signed = Format::is_signed;
    static constexpr bool is_integer = false;
    static constexpr bool is_exact = false;
    static constexpr bool has_infinity = layout::has_infinity;
    static constexpr bool has_quiet_NaN = layout::has_nan;
    static constexpr bool has_signaling_NaN = layout::quiet_bit > 1;
    static constexpr auto has_denorm =
        layout::has_zero ? mp::detail::has_subnormals : mp::detail::has_no_subnormals;
    static constexpr bool has_denorm_loss = false;
    static constexpr std::float_round_style round_style = std::round_to_nearest;
    static constexpr bool is_iec559 = layout::is_ieee;
    static constexpr bool is_bounded = true;
    static constexpr bool is_modulo = false;
    static constexpr int radix = 2;
    static constexpr int digits = layout::precision;
    static constexpr int digits10 = mp::detail::floor_log10_of_two_to(layout::precision - 1);
    static constexpr int max_digits10 = mp::detail::ceil_log10_of_two_to(layout::precision) + 1;
    static constexpr int min_exponent = layout::min_exponent + 1;
    static constexpr int min_exponent10 = mp::detail::ceil_log10_of_two_to(layout::min_exponent);
    static constexpr int max_exponent = layout::max_exponent + 1;
    static constexpr int max_exponent10 =
        mp::detail::floor_log10(mp::detail::unpack<Format>(layout::max_finite_code).significand,
                                mp::detail::unpack<Format>(layout::max_finite_code).exponent);
    static constexpr bool traps = false;
    static constexpr bool tinyness_before = false;

    MP_HOST_DEVICE static constexpr value(min)() noexcept {
        return value::from_bits(layout::min_normal_code);
    }
    MP_HOST_DEVICE static constexpr value(max)() noexcept {
        return value::from_bits(layout::max_finite_code);
    }
    MP_HOST_DEVICE static constexpr value lowest() noexcept {
        return Format::is_signed ? -(max)() : value::from_bits(0);
    }
    /// The distance from 1 to the next larger number.
    MP_HOST_DEVICE static constexpr value epsilon() noexcept {
        return value::from_bits(mp::detail::round_and_pack<Format>({false, -layout::fraction_bits, 1}, {}));
    }
    MP_HOST_DEVICE static constexpr value round_error() noexcept { return value(0.5f); }
    MP_HOST_DEVICE static constexpr value infinity() noexcept {
        return value::from_bits(layout::has_infinity ? layout::infinity_code : storage{0});
    }
    MP_HOST_DEVICE static constexpr value quiet_NaN() noexcept { return value::from_bits(layout::nan_code); }
    MP_HOST_DEVICE static constexpr value signaling_NaN() noexcept {
        return value::from_bits(has_signaling_NaN
                                    ? static_cast<storage>(layout::infinity_code | (layout::quiet_bit >> 1))
                                    : storage{0});
    }
    MP_HOST_DEVICE static constexpr value denorm_min() noexcept {
        return layout::has_zero ? value::from_bits(1) : (min)();
    }
};

template <class Format>
class std::numeric_limits<const mp::basic_float<Format>>
    : public std::numeric_limits<mp::basic_float<Format>> {};

/// Equal numbers have equal hashes: zeros of both signs do.
template <class Format>
struct std::hash<mp::basic_float<Format>> {
    MP_HOST_DEVICE constexpr std::size_t operator()(mp::basic_float<Format> x) const noexcept {
        const auto bits = x.bits();
        const bool zero = (bits & mp::layout_of<Format>::magnitude_mask) == 0;
        return zero ? 0 : static_cast<std::size_t>(bits) * 0x9e3779b97f4a7c15u;
    }
};
