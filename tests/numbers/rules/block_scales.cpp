// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/arrays/convert/block_scale.hpp>
#include <mp/float4.hpp>
#include <mp/float8.hpp>
#include <mp/numbers/rules/block_scales.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace {

namespace lane = mp::detail::single_lane;

/// torchao's _to_mx_rceil and _f32_to_e8m0_rceil (prototype/mx_formats/mx_tensor.py), with its operations on floats.
int torchao_rceil(float amax, double max) {
    const float descale = amax * static_cast<float>(1.0 / max);
    const auto bits = std::bit_cast<std::uint32_t>(descale);
    const std::uint32_t exponent = bits >> 23, fraction = bits & 0x7fffff;
    return static_cast<int>(exponent + (fraction > (exponent == 0 ? 0x400000U : 0U) ? 1U : 0U));
}

/// The code by the definitions, in doubles, which hold all of this exactly.
int expected_code(double amax, double max, int precision, mp::scale_rule rule) {
    const int emax = std::ilogb(max);
    int s = std::ilogb(amax) - emax;
    if (rule == mp::scale_rule::ceil) {
        if (amax > std::ldexp(max, s)) ++s;
    } else if (rule == mp::scale_rule::even) {
        const double units = std::ldexp(amax, precision - 1 - std::ilogb(amax));
        if (std::nearbyint(units) >= std::ldexp(1.0, precision)) ++s;
    } else if (rule == mp::scale_rule::nearest) {
        if (amax < std::ldexp(max, s)) --s;
        const double middle = std::ldexp(1.5 * max, s);
        if (amax > middle || (amax >= middle && (s + 127) % 2 != 0)) ++s;
    } else if (rule == mp::scale_rule::torchao_ceil) {
        if (amax > std::ldexp(1.0, s + emax)) ++s;
    } else if (rule == mp::scale_rule::torchao_rceil) {
        return std::min(torchao_rceil(static_cast<float>(amax), max), 254);
    }
    return s < -127 ? 0 : s > 127 ? 254 : s + 127;
}

template <class Element>
std::size_t wrong_codes() {
    using format = mp::detail::coding_format<Element>;
    using layout = mp::layout_of<format>;
    constexpr double max = mp::detail::to_double<format>(layout::max_finite_code);
    std::size_t wrong = 0;
    const auto check = [&](std::uint32_t magnitude) {
        const auto amax = static_cast<double>(std::bit_cast<float>(magnitude));
        for (const auto rule :
             {mp::scale_rule::floor, mp::scale_rule::ceil, mp::scale_rule::even, mp::scale_rule::nearest,
              mp::scale_rule::torchao_ceil, mp::scale_rule::torchao_rceil}) {
            const std::uint32_t code = lane::scale_exponent_codes<format>(magnitude, rule);
            wrong += static_cast<int>(code) != expected_code(amax, max, layout::precision, rule) ? 1U : 0U;
        }
    };
    // Subnormal ones, and some of every binade: few significant bits, where ties are, and their neighbours.
    for (std::uint32_t i = 1; i < 0x0100'0000; i += 251) check(i);
    for (std::uint32_t i = 1; i < 0x7f80; ++i) {
        for (const std::uint32_t low : {0U, 1U, 2U, 3U, 0x8000U, 0xffffU}) check((i << 16) | low);
    }
    return wrong;
}

TEST_CASE(
    "scales that are powers of two are those of the rules' definitions, for subnormal magnitudes, too") {
    CHECK(wrong_codes<mp::float8_e4m3fn>() == 0);
    CHECK(wrong_codes<mp::float8_e5m2>() == 0);
    CHECK(wrong_codes<mp::float4_e2m1fn>() == 0);
    CHECK(wrong_codes<mp::mx_int8>() == 0);
    CHECK(lane::scale_exponent_codes<mp::formats::float8_e4m3fn>(0, mp::scale_rule::ceil) == 0);
}

}  // namespace
