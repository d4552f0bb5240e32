// SPDX-License-Identifier: MIT
// Arrays in formats of the run have the bits of single operations, which integers compute, on every instruction set, also
// where a project is compiled with -ffast-math.
#include <mp/arrays/analysis/runtime_arithmetic.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "runtime_cases.hpp"

namespace {

constexpr std::uint64_t infinity_bits = std::uint64_t{0x7ff} << 52;

double of_bits(std::uint64_t bits) {
    return std::bit_cast<double>(bits);
}
/// Any NaN will do.
bool same_bits(double a, double b) {
    const auto x = std::bit_cast<std::uint64_t>(a);
    const auto y = std::bit_cast<std::uint64_t>(b);
    return x == y || ((x << 1) > (infinity_bits << 1) && (y << 1) > (infinity_bits << 1));
}

}  // namespace

TEST_CASE("runtime formats: arrays have the bits of single operations on every instruction set") {
    std::mt19937_64 random(2);
    for (mp::runtime_format f : formats()) {
        CAPTURE(f.precision);
        CAPTURE(static_cast<int>(f.round));
        if (f.precision <= 26) f.random_bits = 27;
        const mp::runtime_arithmetic arithmetic(f);
        const std::size_t count = 611;
        std::vector<double> a = operands(random, count, f);
        std::vector<double> b = operands(random, count, f);
        // Most vectors without anything special.
        for (std::size_t i = 300; i < count; ++i) {
            a[i] = 1 + 0x1p-53 * static_cast<double>(random() >> 11);
            b[i] = a[i] * (i % 2 == 0 ? 0.7 : -0.7);
        }
        a[7] = of_bits(infinity_bits), b[9] = -a[7], a[11] = of_bits(infinity_bits + 5), b[13] = 0, a[13] = 0;
        a[14] = of_bits(std::uint64_t{1} << 63), b[15] = -a[15], a[17] = of_bits(1), a[18] = 1e300,
        b[18] = 1e300;
        a[19] = 0x1p-1000, b[19] = 0x1p-60, a[20] = -1;
        // The quotient is nearly a number of 11 bits, and the residual below what double has.
        for (std::size_t i = 24; i < 120; ++i) {
            b[i] = a[300 + i] * 0x1p-1021;
            a[i] = b[i] * (1 + 0x1p-10 * static_cast<double>(2 * i + 1));
        }
        // Beside the smallest normal number and the largest one, where vectors go another way.
        const auto smallest = std::uint64_t(f.emin + 1023) << 52;
        const auto largest = std::bit_cast<std::uint64_t>(arithmetic.largest());
        for (std::size_t i = 120; i < 280; ++i) {
            const std::uint64_t sign = (i & 1) << 63;
            // Not beyond the largest, for that is another way again.
            a[i] = of_bits((i < 160   ? smallest + i % 16 - 8
                            : i < 200 ? largest + i % 16 - 8
                                      : largest - i % 4) |
                           sign);
            b[i] = a[i] * (i % 48 < 16 ? 0.5 : i % 48 < 32 ? 0x1p-70 : -0x1p-70);
        }
        std::vector<double> out(count);
        using enum mp::instruction_set;
        for (const mp::instruction_set isa : {portable, neon, avx2, avx512}) {
            if (!mp::processor_has(isa)) continue;
            CAPTURE(static_cast<int>(isa));
            const mp::cpu exec{.instructions = isa};
            int wrong = 0;
            const auto check = [&](auto operation) {
                for (std::size_t i = 0; i < count; ++i)
                    wrong += same_bits(out[i], operation(i, mp::random_bits(5, i))) ? 0 : 1;
            };
            arithmetic.round(exec, a, out, 5);
            check([&](std::size_t i, std::uint32_t r) { return arithmetic.round(a[i], r); });
            arithmetic.add(exec, a, b, out, 5);
            check([&](std::size_t i, std::uint32_t r) { return arithmetic.add(a[i], b[i], r); });
            arithmetic.subtract(exec, a, b, out, 5);
            check([&](std::size_t i, std::uint32_t r) { return arithmetic.subtract(a[i], b[i], r); });
            arithmetic.multiply(exec, a, b, out, 5);
            check([&](std::size_t i, std::uint32_t r) { return arithmetic.multiply(a[i], b[i], r); });
            arithmetic.divide(exec, a, b, out, 5);
            check([&](std::size_t i, std::uint32_t r) { return arithmetic.divide(a[i], b[i], r); });
            arithmetic.sqrt(exec, a, out, 5);
            check([&](std::size_t i, std::uint32_t r) { return arithmetic.sqrt(a[i], r); });
            CHECK(wrong == 0);
        }
        arithmetic.multiply(mp::cpu{.threads = 3}, a, b, out, 5);
        for (std::size_t i = 0; i < count; ++i)
            CHECK(same_bits(out[i], arithmetic.multiply(a[i], b[i], mp::random_bits(5, i))));
    }
}

TEST_CASE("runtime formats: far below the smallest number random bits still decide") {
    std::mt19937_64 random(6);
    for (const int bits : {9, 27, 32}) {
        const mp::runtime_arithmetic arithmetic({.precision = 11,
                                                 .emin = -14,
                                                 .emax = 15,
                                                 .round = mp::rounding::stochastic_a,
                                                 .random_bits = bits});
        std::vector<double> a(20000);
        for (std::size_t i = 0; i < a.size(); ++i) {
            const std::uint64_t field = 1023 - 24 - 4 - i % 12;
            a[i] = of_bits(field << 52 | random() >> 12);
        }
        std::vector<double> out(a.size());
        arithmetic.round(mp::cpu{}, a, out, 8);
        int wrong = 0;
        int away = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            wrong += same_bits(out[i], arithmetic.round(a[i], mp::random_bits(8, i))) ? 0 : 1;
            away += out[i] > 0 ? 1 : 0;
        }
        CHECK(wrong == 0);
        // About (2^-4 + 2^-5 + ...) 1.5 / 12 of them.
        CHECK(away > 200);
        CHECK(away < 500);
    }
}
