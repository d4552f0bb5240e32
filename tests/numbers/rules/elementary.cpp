// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/numbers/rules/elementary.hpp>

#include <cmath>
#include <random>

#include "larger_error.hpp"

namespace {

using number = mp::detail::rounded_doubles<1>;

/// log2 of the largest relative error against the C library's long doubles.
template <class Function, class Exact>
double error_bits(double low, double high, bool by_exponent, Function f, Exact exact) {
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> draw(low, high);
    long double worst = 0;
    for (int i = 0; i < 100000; ++i) {
        const double x = by_exponent ? std::exp2(draw(random)) : draw(random);
        const long double expected = exact(static_cast<long double>(x));
        worst = tests::larger_error(worst, std::fabs((static_cast<long double>(f(x)) - expected) / expected));
    }
    return static_cast<double>(std::log2(worst));
}

TEST_CASE("exponentials and logarithms keep the errors that they promise") {
    using namespace mp::detail;
    CHECK(error_bits(
              -200, 200, false, [](double x) { return exponential(number(x)).value(); },
              [](long double x) { return std::exp(x); }) < -49);
    CHECK(error_bits(
              -290, 290, false, [](double x) { return binary_exponential(number(x)).value(); },
              [](long double x) { return std::exp2(x); }) < -52);
    for (const bool near_one : {false, true}) {
        const double low = near_one ? 0.7 : -1000;
        const double high = near_one ? 1.4 : 1000;
        // Two units in the last place are 2^-51 of a number at most.
        CHECK(error_bits(low, high, !near_one, double_log, [](long double x) { return std::log(x); }) < -51);
        CHECK(error_bits(low, high, !near_one, double_log2, [](long double x) { return std::log2(x); }) <
              -51);
    }
    for (int n = -300; n <= 300; ++n) {
        CHECK(binary_exponential(number(static_cast<double>(n))).value() == std::ldexp(1.0, n));
        CHECK(double_log2(std::ldexp(1.0, n)) == static_cast<double>(n));
    }
    CHECK(double_log(1.0) == 0.0);
    CHECK(exponential(number(0.0)).value() == 1.0);
    CHECK(exponential(number(-1e300)).value() == exponential(number(-208.0)).value());
    CHECK(exponential(number(1e300)).value() == exponential(number(208.0)).value());
}

}  // namespace
