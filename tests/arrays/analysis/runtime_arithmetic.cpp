// SPDX-License-Identifier: MIT
// Formats of the run against exact rationals that are rounded by comparing with the two neighbours, in every direction; and
// the kernels of all instruction sets against single operations.
#include <mp/arrays/analysis/runtime_arithmetic.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>

#include <boost/multiprecision/cpp_int.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "nn/scaling/thrown.hpp"
#include "runtime_cases.hpp"

namespace {

using rational = boost::multiprecision::cpp_rational;
using integer = boost::multiprecision::cpp_int;
using enum mp::rounding;

constexpr double infinity = std::numeric_limits<double>::infinity();

rational power_of_two(int exponent) {
    const integer power = integer(1) << static_cast<unsigned>(std::abs(exponent));
    return exponent >= 0 ? rational(power) : rational(1, power);
}
rational exactly(double x) {
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    return rational(static_cast<std::int64_t>(std::ldexp(fraction, 53))) * power_of_two(exponent - 53);
}

/// A value that is root or quotient: compared without being one. compare(x) is the sign of value - x.
struct unknown {
    std::function<int(const rational&)> compare;
    double guess;  ///< near the magnitude
};

/// The definition: the neighbours of the value in the format, then the direction. `random` for stochastic_a.
double reference(const unknown& value, bool is_negative, const mp::runtime_format& f, std::uint32_t random) {
    // The neighbours of the magnitude: multiples of the last place, found by steps from a guess.
    int exponent = 0;
    std::frexp(value.guess, &exponent);
    exponent -= 1;
    while (value.compare(power_of_two(exponent)) < 0) --exponent;
    while (value.compare(power_of_two(exponent + 1)) >= 0) ++exponent;
    const bool below = exponent < f.emin;
    const int last = below ? (f.subnormals ? f.emin - f.precision + 1 : f.emin) : exponent - f.precision + 1;
    const rational unit = power_of_two(last);
    integer low = 0;
    for (int bit = 60; bit >= 0; --bit) {
        const integer candidate = low + (integer(1) << static_cast<unsigned>(bit));
        if (value.compare(candidate * unit) >= 0) low = candidate;
    }
    const bool exact = value.compare(low * unit) == 0;
    const int half = value.compare((low + rational(1, 2)) * unit);
    const bool odd = (low & 1) != 0;
    bool up = false;
    if (!exact) {
        if (f.round == nearest_even) up = half > 0 || (half == 0 && odd);
        if (f.round == nearest_away) up = half >= 0;
        if (f.round == upward) up = !is_negative;
        if (f.round == downward) up = is_negative;
        if (f.round == to_odd) up = !odd;
        if (f.round == stochastic_a) {
            // floor(v 2^N) + R >= 2^N, so v >= (2^N - R) / 2^N.
            const std::uint64_t one = std::uint64_t{1} << f.random_bits;
            const std::uint64_t least = one - (random & (one - 1));
            up = value.compare((low + rational(least, one)) * unit) >= 0;
        }
    }
    const rational magnitude = (low + (up ? 1 : 0)) * unit;
    const rational largest = (2 - power_of_two(1 - f.precision)) * power_of_two(f.emax);
    double result = 0;
    if (magnitude > largest) {
        const bool inward =
            f.round == toward_zero || f.round == to_odd || f.round == (is_negative ? upward : downward);
        result = inward || f.saturate != mp::saturation::none ? largest.convert_to<double>() : infinity;
    } else {
        result = magnitude.convert_to<double>();
    }
    return is_negative ? -result : result;
}
unknown known(const rational& magnitude) {
    return {[magnitude](const rational& x) { return magnitude < x   ? -1
                                                    : magnitude > x ? 1
                                                                    : 0; },
            magnitude.convert_to<double>()};
}
double reference_of(const rational& x, bool zero_is_negative, const mp::runtime_format& f,
                    std::uint32_t random) {
    if (x == 0) return zero_is_negative ? -0.0 : 0.0;
    return reference(known(abs(x)), x < 0, f, random);
}

bool same(double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
           (std::isnan(a) && std::isnan(b));
}

}  // namespace

TEST_CASE("runtime formats: every operation is the exact result rounded once") {
    std::mt19937_64 random(1);
    for (const mp::runtime_format& f : formats()) {
        CAPTURE(f.precision);
        CAPTURE(static_cast<int>(f.round));
        const mp::runtime_arithmetic arithmetic(f);
        const std::vector<double> a = operands(random, 30, f);
        std::vector<double> b = operands(random, 30, f);
        const std::vector<double> c = operands(random, 30, f);
        const bool minus = f.round == downward;
        int wrong = 0;
        const auto check = [&](double found, double expected) { wrong += same(found, expected) ? 0 : 1; };
        for (std::size_t i = 0; i < a.size(); ++i) {
            const std::uint32_t bits = mp::random_bits(3, i);
            if (i % 5 == 0) b[i] = -a[i] * (1 + 0x1p-50);
            const rational x = exactly(a[i]);
            const rational y = exactly(b[i]);
            const bool negative = std::signbit(a[i]) != std::signbit(b[i]);
            check(arithmetic.round(a[i], bits), reference_of(x, std::signbit(a[i]), f, bits));
            const bool zeros = a[i] == 0 && b[i] == 0;
            const bool zero_sum =
                zeros && std::signbit(a[i]) == std::signbit(b[i]) ? std::signbit(a[i]) : minus;
            check(arithmetic.add(a[i], b[i], bits), reference_of(x + y, zero_sum, f, bits));
            const bool zero_difference =
                zeros && std::signbit(a[i]) != std::signbit(b[i]) ? std::signbit(a[i]) : minus;
            check(arithmetic.subtract(a[i], b[i], bits), reference_of(x - y, zero_difference, f, bits));
            check(arithmetic.multiply(a[i], b[i], bits), reference_of(x * y, negative, f, bits));
            if (b[i] != 0) check(arithmetic.divide(a[i], b[i], bits), reference_of(x / y, negative, f, bits));
            const rational fused = x * y + exactly(c[i]);
            if (fused != 0)
                check(arithmetic.fma(a[i], b[i], c[i], bits), reference_of(fused, false, f, bits));
            if (a[i] == 0) continue;
            const rational radicand = abs(x);
            const unknown root{[&](const rational& it) {
                                   return radicand < it * it ? -1 : radicand > it * it ? 1 : 0;
                               },
                               std::sqrt(std::abs(a[i]))};
            check(arithmetic.sqrt(std::abs(a[i]), bits), reference(root, false, f, bits));
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("runtime formats: zeros and infinities give the same in arrays, in every direction") {
    const auto same = [](double x, double y) {
        return std::isnan(x) ? std::isnan(y)
                             : std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
    };
    const double specials[] = {0.0, -0.0, infinity, -infinity, 1.0, -1.0, std::nan("")};
    for (const mp::rounding direction : {nearest_even, nearest_away, toward_zero, upward, downward, to_odd}) {
        const mp::runtime_arithmetic arithmetic(
            {.precision = 11, .emin = -14, .emax = 15, .round = direction});
        for (const double a : specials) {
            for (const double b : specials) {
                const std::vector<double> as(64, a), bs(64, b);
                std::vector<double> out(64);
                arithmetic.divide(mp::cpu{}, as, bs, out);
                CHECK(same(out[5], a / b));
                arithmetic.multiply(mp::cpu{}, as, bs, out);
                CHECK(same(out[5], a * b));
            }
            std::vector<double> out(64);
            arithmetic.sqrt(mp::cpu{}, std::vector<double>(64, a), out);
            CHECK(same(out[5], std::sqrt(a)));
        }
    }
}

TEST_CASE("runtime formats: half is mp::half, in all directions") {
    std::mt19937_64 random(4);
    for (const auto round : {nearest_even, nearest_away, toward_zero, upward, downward, to_odd, stochastic_a,
                             stochastic_b, stochastic_c}) {
        auto f = mp::runtime_format_of<mp::half>();
        f.round = round;
        const mp::runtime_arithmetic arithmetic(f);
        int wrong = 0;
        for (int i = 0; i < 20000; ++i) {
            const auto word = random();
            const double x = std::ldexp(static_cast<double>(static_cast<std::int64_t>(word)),
                                        -63 - static_cast<int>(word % 40) + 17);
            const auto bits = static_cast<std::uint32_t>(random());
            const mp::projection p{.round = round, .random_bits = 32, .random = bits};
            wrong +=
                same(arithmetic.round(x, bits), static_cast<double>(mp::round_to<mp::half>(x, p))) ? 0 : 1;
        }
        CHECK(wrong == 0);
    }
    CHECK(mp::runtime_arithmetic(mp::runtime_format_of<mp::half>()).largest() == 65504);
    CHECK(mp::runtime_arithmetic(mp::runtime_format_of<mp::half>()).smallest() == 0x1p-24);
}

TEST_CASE("runtime formats: what double cannot carry is refused by name") {
    const auto refused = [](const mp::runtime_format& f) {
        return thrown<mp::argument_error>([&] { const mp::runtime_arithmetic arithmetic(f); });
    };
    CHECK(holds(refused({.precision = 54}), "precision is 54; it must be 1 to 53"));
    CHECK(holds(refused({.precision = 0}), "precision is 0"));
    CHECK(holds(refused({.precision = 11, .emin = -1022 - 60}), "emin is -1082"));
    CHECK(holds(refused({.precision = 11, .emin = 5, .emax = 4}), "emax is 4"));
    CHECK(holds(refused({.precision = 31, .round = stochastic_a}),
                "precision is 31; it must be at most 62 - random_bits, or a result would be rounded twice"));
    CHECK(holds(refused({.precision = 11, .round = stochastic_a, .random_bits = 33}), "random_bits is 33"));
    const mp::runtime_arithmetic arithmetic({.precision = 11});
    const std::vector<double> a(3);
    std::vector<double> out(2);
    CHECK(holds(thrown<mp::argument_error>([&] { arithmetic.round(mp::cpu{}, a, out); }),
                "mp::runtime_arithmetic::round: a.size() is 3"));
}
