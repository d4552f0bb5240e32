// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/numbers/rules/float_functions.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "numbers/rules/float_sweep.hpp"

namespace {

using namespace mp::detail;
using float_sweep::sweep;
using float_sweep::unit;

TEST_CASE("the float functions of kernels keep the errors that they promise") {
    CHECK(sweep(
              -104, 88, [](float x) { return float_exponential(x); }, [](double x) { return std::exp(x); })
              .units < 1.1);
    CHECK(sweep(
              -86.9F, 80, [](float x) { return float_exponential_term(x); },
              [](double x) { return std::exp(x); })
              .units < 1.1);
    CHECK(sweep(
              0.5F, 1e36F, [](float x) { return float_logarithm({x, 0}); },
              [](double x) { return std::log(x); })
              .units < 1);
}

TEST_CASE("the rest of an argument counts, and so do the ends of the range") {
    // e^(50 + 2^-19) and e^50 differ by 2^-19 of them, which is four ulps of 50 away from showing in it.
    const double expected = std::exp(50.0 + 0x1.8p-20);
    CHECK(std::fabs(static_cast<double>(float_exponential(50.0F, 0x1.8p-20F)) - expected) <
          1.1 * unit(expected));
    CHECK(static_cast<double>(float_logarithm({1.0F, 0x1p-30F})) == 0x1p-30);
    constexpr float infinity = std::numeric_limits<float>::infinity();
    CHECK(float_exponential(-infinity) == 0.0F);
    CHECK(float_exponential(infinity) == infinity);
    CHECK(float_exponential(0.0F) == 1.0F);
    CHECK(float_exponential(-103.0F) == 0x1p-149F);  // 1.34 of the smallest number
}

TEST_CASE("pairs of floats sum what float sums lose") {
    std::mt19937 random(3);
    float_float sum;
    double expected = 0;
    for (int i = 0; i < 100'000; ++i) {
        const float x = (static_cast<float>(random() >> 8) * 0x1p-23F - 1.0F) * 1000.0F;
        sum = sum + x;
        expected += static_cast<double>(x);
    }
    CHECK(sum.value() == static_cast<float>(expected));
    float_float far = float_float{0x1p60F, 0} + 1.0F;
    far = far + float_float{-0x1p60F, 0};
    CHECK(far.value() == 1.0F);
    CHECK(static_cast<double>(divided({10.0F, 0x1p-25F}, 3.0F).value()) == doctest::Approx(10.0 / 3.0));
    const float_float third = reciprocal({3.0F, 0});
    CHECK(std::fabs(static_cast<double>(third.high) + static_cast<double>(third.low) - 1.0 / 3.0) < 0x1p-45);
    constexpr float infinity = std::numeric_limits<float>::infinity();
    CHECK(((float_float{1, 0} + infinity) + 2.0F).value() == infinity);
}

}  // namespace
