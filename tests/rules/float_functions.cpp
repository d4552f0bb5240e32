// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/rules/float_functions.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>

namespace {

using namespace mp::detail;

/// A unit in the last place of a float at x.
double unit(double x) {
    return x == 0 ? 0x1p-149 : std::ldexp(1.0, std::max(std::ilogb(x) - 23, -149));
}

struct deviation {
    double units = 0;
    double absolute = 0;
};

/// The largest errors over every 4099th float of an interval, against the C library's doubles.
template <class Function, class Exact>
deviation sweep(float low, float high, Function f, Exact exact) {
    deviation worst;
    for (std::uint64_t code = 0; code < (std::uint64_t{1} << 32); code += 4099) {
        const auto x = mp::detail::bit_cast<float>(static_cast<std::uint32_t>(code));
        if (!(x >= low && x <= high)) continue;
        const double expected = exact(static_cast<double>(x));
        const double error = std::fabs(static_cast<double>(f(x)) - expected);
        worst.units = std::max(worst.units, error / unit(expected));
        worst.absolute = std::max(worst.absolute, error);
    }
    return worst;
}

double normal(double x) {
    return std::erfc(-x / std::numbers::sqrt2) / 2;
}
double logistic(double x) {
    return 1 / (1 + std::exp(-x));
}
double twice_z(double x) {
    return 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
}

TEST_CASE("the float functions of kernels keep the errors that they promise") {
    CHECK(sweep(
              -104, 88, [](float x) { return float_exponential(x); }, [](double x) { return std::exp(x); })
              .units < 1.1);
    CHECK(sweep(
              -86.9F, 80, [](float x) { return float_exponential_term(x); },
              [](double x) { return std::exp(x); })
              .units < 1.1);
    CHECK(sweep(
              0.5F, 1e36F,
              [](float x) {
                  return float_logarithm({x, 0});
              },
              [](double x) { return std::log(x); })
              .units < 1);
    CHECK(sweep(
              -119, 1e30F, [](float x) { return float_silu::value(x); },
              [](double x) { return x * logistic(x); })
              .units < 4);
    CHECK(sweep(
              -119, 300, [](float x) { return float_silu::slope(x); },
              [](double x) { return logistic(x) * (1 + x * (1 - logistic(x))); })
              .absolute < 0x1p-22);
    CHECK(sweep(
              -15.9F, 1e30F, [](float x) { return float_gelu::value(x); },
              [](double x) { return x * normal(x); })
              .units < 6);
    CHECK(sweep(
              -300, 300, [](float x) { return float_gelu::slope(x); },
              [](double x) { return normal(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); })
              .absolute < 0x1p-22);
    CHECK(sweep(
              -15.9F, 1e30F, [](float x) { return float_gelu_tanh::value(x); },
              [](double x) { return x * logistic(twice_z(x)); })
              .units < 4);
    CHECK(sweep(
              -300, 300, [](float x) { return float_gelu_tanh::slope(x); },
              [](double x) {
                  const double s = logistic(twice_z(x));
                  const double inner = twice_z(1) / 1.044715 * (1 + 3 * 0.044715 * x * x);
                  return s + (s == 0 || s == 1 ? 0 : x * inner * s * logistic(-twice_z(x)));
              })
              .absolute < 0x1p-21);
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
    CHECK(float_silu::value(-infinity) == 0.0F);
    CHECK(std::signbit(float_gelu::value(-infinity)));
    CHECK(float_gelu::value(infinity) == infinity);
    CHECK(float_gelu_tanh::value(infinity) == infinity);
    CHECK(float_gelu::slope(infinity) == 1.0F);
    CHECK(float_gelu::slope(-infinity) == 0.0F);
}

TEST_CASE("pairs of floats sum what float sums lose") {
    std::mt19937 random(3);
    double_float sum;
    double expected = 0;
    for (int i = 0; i < 100'000; ++i) {
        const float x = (static_cast<float>(random() >> 8) * 0x1p-23F - 1.0F) * 1000.0F;
        sum = sum + x;
        expected += static_cast<double>(x);
    }
    CHECK(sum.value() == static_cast<float>(expected));
    double_float far = double_float{0x1p60F, 0} + 1.0F;
    far = far + double_float{-0x1p60F, 0};
    CHECK(far.value() == 1.0F);
    CHECK(static_cast<double>(divided({10.0F, 0x1p-25F}, 3.0F).value()) == doctest::Approx(10.0 / 3.0));
    const double_float third = reciprocal({3.0F, 0});
    CHECK(std::fabs(static_cast<double>(third.high) + static_cast<double>(third.low) - 1.0 / 3.0) < 0x1p-45);
    constexpr float infinity = std::numeric_limits<float>::infinity();
    CHECK(((double_float{1, 0} + infinity) + 2.0F).value() == infinity);
}

}  // namespace
