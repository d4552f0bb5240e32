// SPDX-License-Identifier: MIT
// How close pow and atan2 come to numbers and midpoints, over all pairs of half and bfloat16. Together with
// the error of the evaluation, which is below 2^-52 (and which math_functions.cpp would find larger), this
// proves that rounding what was evaluated is rounding the exact value.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/math.hpp>

#include <doctest/doctest.h>
#include <algorithm>
#include <cstdint>

#include "numbers/format/exhaustive/progress.hpp"

namespace {

using namespace mp::detail;

/// The distance of a significand of 64 bits from the next one of precision + 1 bits.
template <class Format>
std::uint64_t distance(const approximation& x) {
    constexpr int bits = mp::layout_of<Format>::precision + 1;
    const std::uint64_t rest = x.significand << bits;
    return std::min(rest, ~rest + 1) >> bits;
}

/// Whether a result this large is within the range of a format, where rounding has to decide something.
template <class Format>
bool in_range(const approximation& x) {
    using layout = mp::layout_of<Format>;
    return x.top() >= layout::quantum_exponent - 2 && x.top() <= layout::max_exponent;
}

constexpr std::uint64_t error = std::uint64_t{1} << (64 - 52);

}  // namespace

TEST_CASE_TEMPLATE("no inexact power is closer to a number or midpoint than its error", Format,
                   mp::formats::bfloat16, mp::formats::binary16) {
    using layout = mp::layout_of<Format>;
    constexpr long_constant one{0x8000000000000000, 0, -127};
    std::uint64_t closest = ~std::uint64_t{0};
    exhaustive::progress progress(layout::max_finite_code);
    for (std::uint16_t i = 1; i <= layout::max_finite_code; ++i) {
        if (i % 256 == 0) progress.show(i, Format::name);
        if (is_unit<Format>(i)) continue;
        const exact_value x = unpack<Format>(i);
        const approximation logarithm = log2_of(approximate(x));
        for (std::uint16_t j = 1; j <= layout::max_finite_code; ++j) {
            exact_value y = unpack<Format>(j);
            approximation power = logarithm * approximate(y);
            // Powers next to one are on the right side of it; those beyond 2^256 are out of range.
            if (power.top() < -12 || power.top() >= 8) continue;
            for (const bool inverse : {false, true}) {
                y.negative = inverse;
                const approximation result = exp2_of(inverse ? -power : power, one);
                if (!in_range<Format>(result)) continue;
                const std::uint64_t d = distance<Format>(result);
                if (d < closest && exact_power(x, y).significand == 0) closest = d;
            }
        }
    }
    progress.finish();
    CHECK(closest > error);
}

TEST_CASE_TEMPLATE("no angle is closer to a number or midpoint than its error", Format, mp::formats::bfloat16,
                   mp::formats::binary16) {
    // An angle depends on the significands and on the difference of the exponents. Beyond 2^-16 or 2^30 it is
    // the slope less something smaller than any distance, or as close to pi/2 or pi.
    constexpr std::uint64_t hidden_bit = mp::layout_of<Format>::hidden_bit;
    std::uint64_t closest = ~std::uint64_t{0};
    exhaustive::progress progress(hidden_bit);
    for (std::uint64_t m = hidden_bit; m < 2 * hidden_bit; ++m) {
        progress.show(m - hidden_bit, Format::name);
        for (std::uint64_t n = hidden_bit; n < 2 * hidden_bit; ++n) {
            for (int exponent = -30; exponent <= 30; ++exponent) {
                const approximation angle = first_quadrant_angle(approximate(m, exponent), approximate(n, 0));
                closest = std::min(closest, distance<Format>(approximate_pi() - angle));
                if (exponent >= -15) closest = std::min(closest, distance<Format>(angle));
            }
        }
    }
    progress.finish();
    CHECK(closest > error);
}
