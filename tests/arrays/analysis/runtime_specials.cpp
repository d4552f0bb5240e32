// SPDX-License-Identifier: MIT
// Zeros, infinities, NaN and numbers at the ends of the ranges in a format of the run: by the rules of IEEE 754, and arrays that
// are full of one pair as single operations.
#include <mp/arrays/analysis/runtime_arithmetic.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "arrays/convert/instruction_sets.hpp"
#include "runtime_cases.hpp"

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

bool same(double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (a != a && b != b);
}

/// A result that the processor gives in its default modes, in which zeros that are the sum of other things than zeros of one
/// sign are positive.
double directed(double result, bool is_sum_of_one_sign, const mp::runtime_format& f) {
    if (result == 0 && !is_sum_of_one_sign) return f.round == mp::rounding::downward ? -0.0 : 0.0;
    if (std::isinf(result) && f.saturate == mp::saturation::finite) {
        const double largest = (2 - std::ldexp(1.0, 1 - f.precision)) * std::ldexp(1.0, f.emax);
        return std::copysign(largest, result);
    }
    return result;
}

}  // namespace

TEST_CASE("runtime formats: zeros, infinities and NaN give what IEEE 754 says, in every direction") {
    // Each operation of two of these is exact, so that the processor's result is the right one but for the sign of zeros.
    const std::vector<double> kinds{0.0, -0.0, infinity, -infinity, not_a_number, 1.0, -1.0};
    for (const mp::runtime_format& f : formats()) {
        CAPTURE(f.precision);
        CAPTURE(static_cast<int>(f.round));
        const mp::runtime_arithmetic arithmetic(f);
        int wrong = 0;
        const auto check = [&](double found, double expected) { wrong += same(found, expected) ? 0 : 1; };
        for (const double a : kinds) {
            check(arithmetic.sqrt(a, 511), directed(std::sqrt(a), true, f));
            check(arithmetic.round(a, 511), directed(a, true, f));
            for (const double b : kinds) {
                const bool zeros = a == 0 && b == 0;
                check(arithmetic.add(a, b, 511),
                      directed(a + b, zeros && std::signbit(a) == std::signbit(b), f));
                check(arithmetic.subtract(a, b, 511),
                      directed(a - b, zeros && std::signbit(a) != std::signbit(b), f));
                check(arithmetic.multiply(a, b, 511), directed(a * b, true, f));
                check(arithmetic.divide(a, b, 511), directed(a / b, true, f));
                for (const double c : kinds) {
                    const double product = a * b;
                    const bool one_sign = product == 0 && c == 0 && std::signbit(product) == std::signbit(c);
                    check(arithmetic.fma(a, b, c, 511), directed(std::fma(a, b, c), one_sign, f));
                }
            }
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE(
    "runtime formats: arrays that are full of one special pair are as single operations, on every "
    "processor") {
    constexpr std::size_t count = 19;  // vectors and a rest
    constexpr double largest = std::numeric_limits<double>::max();
    constexpr double smallest = std::numeric_limits<double>::denorm_min();
    std::vector<double> out(count);
    for (const mp::runtime_format& f : formats()) {
        CAPTURE(f.precision);
        CAPTURE(static_cast<int>(f.round));
        const mp::runtime_arithmetic arithmetic(f);
        const bool is_random = f.round == mp::rounding::stochastic_a;
        const double top = arithmetic.largest();
        const double least = arithmetic.smallest();
        std::vector<double> numbers{0.0,
                                    infinity,
                                    1.0,
                                    3.0,
                                    largest,
                                    smallest,
                                    0x1p-1022,
                                    0x1p-500,
                                    top,
                                    least,
                                    std::nextafter(top, infinity),
                                    least / 2,
                                    0x1.8p1000};
        const std::size_t positive = numbers.size();
        for (std::size_t i = 0; i < positive; ++i) numbers.push_back(-numbers[i]);
        numbers.push_back(not_a_number);
        for (const mp::instruction_set isa : instruction_sets_at_hand()) {
            CAPTURE(static_cast<int>(isa));
            const mp::cpu exec{.instructions = isa};
            int wrong = 0;
            for (const double x : numbers) {
                const std::vector<double> a(count, x);
                const auto check = [&](auto single) {
                    for (std::size_t i = 0; i < count; ++i) {
                        const std::uint32_t bits = is_random ? mp::random_bits(5, i) : 0;
                        wrong += same(out[i], single(bits)) ? 0 : 1;
                    }
                };
                arithmetic.round(exec, a, out, 5);
                check([&](std::uint32_t bits) { return arithmetic.round(x, bits); });
                arithmetic.sqrt(exec, a, out, 5);
                check([&](std::uint32_t bits) { return arithmetic.sqrt(x, bits); });
                for (const double y : numbers) {
                    const std::vector<double> b(count, y);
                    arithmetic.add(exec, a, b, out, 5);
                    check([&](std::uint32_t bits) { return arithmetic.add(x, y, bits); });
                    arithmetic.subtract(exec, a, b, out, 5);
                    check([&](std::uint32_t bits) { return arithmetic.subtract(x, y, bits); });
                    arithmetic.multiply(exec, a, b, out, 5);
                    check([&](std::uint32_t bits) { return arithmetic.multiply(x, y, bits); });
                    arithmetic.divide(exec, a, b, out, 5);
                    check([&](std::uint32_t bits) { return arithmetic.divide(x, y, bits); });
                }
            }
            CHECK(wrong == 0);
        }
    }
}
