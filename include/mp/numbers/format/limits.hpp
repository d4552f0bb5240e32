// SPDX-License-Identifier: MIT
/// \file
/// std::numeric_limits and std::hash for every mp::basic_float.
#pragma once

#include <mp/base/wide_integer.hpp>
#include <mp/numbers/format/basic_float.hpp>

#include <limits>
#include <typeindex>  // the lightest standard header that declares std::hash

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The largest n with 10^n <= x, for x > 0 of up to 32 bits.
template <int MostBits>
constexpr int floor_log10(const exact_value& x) {
    const int top = 63 - leading_zeros(x.significand) + x.exponent;
    // 10^n <= 2^top <= x for this n, and x < 2^(top + 1) < 10^(n + 2).
    const int n = floor_log10_of_power_of_two(top);
    if (floor_log10_of_power_of_two(top + 1) == n) return n;  // x < 10^(n + 1) as well
    wide_integer<MostBits / 32 + 3> value(x.significand);
    wide_integer<MostBits / 32 + 3> power(1);
    (x.exponent >= 0 ? value : power).shift_left(x.exponent >= 0 ? x.exponent : -x.exponent);
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

}}  // namespace mp::detail

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
    static constexpr int digits10 = mp::detail::floor_log10_of_power_of_two(layout::precision - 1);
    static constexpr int max_digits10 = mp::detail::ceil_log10_of_power_of_two(layout::precision) + 1;
    static constexpr int min_exponent = layout::min_exponent + 1;
    static constexpr int min_exponent10 = mp::detail::ceil_log10_of_power_of_two(layout::min_exponent);
    static constexpr int max_exponent = layout::max_exponent + 1;
    static constexpr int max_exponent10 =
        mp::detail::floor_log10<layout::max_exponent*(layout::max_exponent < 0 ? -4 : 4) + 128>(
            mp::detail::unpack<Format>(layout::max_finite_code));
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
