// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/nn/optim/weight_average.hpp>
#include <mp/numbers/format/classification.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "larger_error.hpp"
#include "numbers/rules/float_sweep.hpp"

namespace {

using namespace mp::detail;
using float_sweep::sweep;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

double normal(double x) {
    return std::erfc(-x / std::numbers::sqrt2) / 2;
}
double logistic(double x) {
    return 1 / (1 + std::exp(-x));
}
double twice_z(double x) {
    return 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
}

template <class Function>
float value(float x) {
    return apply_elementwise<Function>(x);
}
template <class Function>
float slope(float x) {
    return apply_elementwise<slope_of<Function>>(x, 1.0F);
}

TEST_CASE("activations keep the errors that they promise, in their tails too") {
    const auto exact = [](auto function) { return function; };
    CHECK(sweep(-119, 1e30F, value<silu_function>, exact([](double x) { return x * logistic(x); })).units <
          4);
    CHECK(sweep(-20, 1e30F, value<gelu_function>, exact([](double x) { return x * normal(x); })).units < 5);
    CHECK(sweep(-12, 1e30F, value<gelu_tanh_function>, [](double x) {
              return x * logistic(twice_z(x));
          }).units < 4);
    CHECK(sweep(-1e30F, 1e30F, value<tanh_function>, [](double x) { return std::tanh(x); }).units < 3);
    CHECK(sweep(-119, 1e30F, value<sigmoid_function>, logistic).units < 3);
    CHECK(sweep(-300, 300, slope<silu_function>, [](double x) {
              return logistic(x) * (1 + x * (1 - logistic(x)));
          }).absolute < 0x1p-22);
    CHECK(sweep(-300, 300, slope<gelu_function>, [](double x) {
              return normal(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
          }).absolute < 0x1p-22);
    CHECK(sweep(-300, 300, slope<gelu_tanh_function>, [](double x) {
              const double s = logistic(twice_z(x));
              const double inner = twice_z(1) / 1.044715 * (1 + 3 * 0.044715 * x * x);
              return s + (s == 0 || s == 1 ? 0 : x * inner * s * logistic(-twice_z(x)));
          }).absolute < 0x1p-21);
    CHECK(sweep(-1, 1, slope<tanh_function>, [](double y) { return 1 - y * y; }).units < 2.5);
    CHECK(sweep(0, 1, slope<sigmoid_function>, [](double y) { return y * (1 - y); }).units < 2.5);
}

TEST_CASE("gelu keeps its error where it is largest, for every float there") {
    // Six roundings, each as much as an ulp of a result just below a power of two.
    double worst = 0;
    for (std::uint32_t code = std::bit_cast<std::uint32_t>(-0x1.00p-6F);
         code < std::bit_cast<std::uint32_t>(-0x1.08p-6F); ++code) {
        const auto x = std::bit_cast<float>(code);
        const double expected = static_cast<double>(x) * normal(static_cast<double>(x));
        const double error = std::fabs(static_cast<double>(value<gelu_function>(x)) - expected);
        worst = tests::larger_error(worst, error / float_sweep::unit(expected));
    }
    CHECK(worst < 6);
    CHECK(worst > 5);  // or the promise could be stronger
}

TEST_CASE("zeros, infinities and NaN go where the functions go") {
    const auto is = [](float a, float b) {
        return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    };
    const auto check = [&]<class Function>(Function /*which*/, float at_minus_infinity, float at_infinity) {
        CHECK(is(value<Function>(0.0F), 0.0F));
        CHECK(is(value<Function>(-0.0F), -0.0F));
        CHECK(is(value<Function>(infinity), at_infinity));
        CHECK(is(value<Function>(-infinity), at_minus_infinity));
        CHECK(mp::isnan(value<Function>(nan)));
        CHECK(mp::isnan(value<Function>(-nan)));
        CHECK(mp::isnan(value<Function>(std::bit_cast<float>(0x7F80'0001U))));
    };
    check(gelu_function{}, -0.0F, infinity);
    check(gelu_tanh_function{}, -0.0F, infinity);
    check(silu_function{}, -0.0F, infinity);
    check(tanh_function{}, -1.0F, 1.0F);
    const auto check_slope = [&]<class Function>(Function /*which*/) {
        CHECK(slope<Function>(infinity) == 1.0F);
        CHECK(slope<Function>(-infinity) == 0.0F);
        CHECK(slope<Function>(0.0F) == 0.5F);
        CHECK(mp::isnan(slope<Function>(nan)));
        CHECK(mp::isnan(slope<Function>(-nan)));
        CHECK(mp::isnan(apply_elementwise<slope_of<Function>>(1.0F, nan)));
    };
    check_slope(gelu_function{});
    check_slope(gelu_tanh_function{});
    check_slope(silu_function{});
    // What lies beyond the smallest float is zero, and what does not is rounded once.
    CHECK(is(value<gelu_function>(-15.5F), -0.0F));
    CHECK(is(value<silu_function>(-110.0F), -0.0F));
    CHECK(static_cast<double>(value<silu_function>(-108.0F)) ==
          -0x1p-149 * std::round(108 * std::exp(-108.0) * 0x1p149));
    CHECK(is(value<sigmoid_function>(0.0F), 0.5F));
    CHECK(is(value<sigmoid_function>(infinity), 1.0F));
    CHECK(is(value<sigmoid_function>(-infinity), 0.0F));
    CHECK(is(value<sigmoid_function>(-104.0F), 0.0F));
    CHECK(is(value<sigmoid_function>(-103.5F), 0x1p-149F));
    CHECK(mp::isnan(value<sigmoid_function>(nan)));
    CHECK(mp::isnan(value<sigmoid_function>(-nan)));
    CHECK(mp::isnan(apply_elementwise<slope_of<sigmoid_function>>(nan, 1.0F)));
    CHECK(mp::isnan(apply_elementwise<slope_of<sigmoid_function>>(0.5F, nan)));
    CHECK(is(value<relu_function>(-0.0F), 0.0F));
    CHECK(is(value<relu_function>(-infinity), 0.0F));
    CHECK(is(value<relu_function>(0x1p-149F), 0x1p-149F));
    CHECK(mp::isnan(value<relu_function>(nan)));
    CHECK(mp::isnan(value<relu_function>(-nan)));
    CHECK(is(apply_elementwise<slope_of<relu_function>>(-0.0F, 3.0F), 0.0F));
    CHECK(is(apply_elementwise<slope_of<relu_function>>(-2.0F, nan), 0.0F));
    CHECK(is(apply_elementwise<slope_of<relu_function>>(0x1p-149F, -0.0F), -0.0F));
    CHECK(is(apply_elementwise<slope_of<relu_function>>(nan, 3.0F), 3.0F));
    CHECK(is(apply_elementwise<slope_of<relu_function>>(-nan, 3.0F), 3.0F));
}

/// Numbers of many magnitudes, subnormal ones, infinities and NaNs among them.
std::vector<float> numbers(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<float> x(count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto bits = static_cast<std::uint32_t>(random());
        x[i] = i % 3 == 0 ? std::bit_cast<float>(bits)
                          : static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-27F;
    }
    return x;
}

/// How many elements of arrays of 0 to 130 elements have other bits than one number at a time, or are written
/// past the end.
template <class Function, class... From>
std::size_t differences(mp::instruction_set isa, const std::vector<From>&... from) {
    std::size_t different = 0;
    for (std::size_t count = 0; count <= 130; ++count) {
        std::vector<float> to(count + 1, 42.0F);
        map_floats<Function>(isa, count, to.data(), from.data()...);
        different += to[count] == 42.0F ? 0U : 1U;
        for (std::size_t i = 0; i < count; ++i) {
            const float one = apply_elementwise<Function>(from[i]...);
            const bool both_nan = mp::isnan(one) && mp::isnan(to[i]);
            different += both_nan || std::bit_cast<std::uint32_t>(one) == std::bit_cast<std::uint32_t>(to[i])
                             ? 0U
                             : 1U;
        }
    }
    return different;
}

TEST_CASE("arrays of every length have the bits of one number at a time, for every instruction set") {
    const std::vector<float> x = numbers(130, 7);
    const std::vector<float> y = numbers(130, 8);
    for (const mp::instruction_set isa : {mp::instruction_set::portable, mp::instruction_set::neon,
                                          mp::instruction_set::avx2, mp::instruction_set::avx512}) {
        if (!mp::includes(mp::best_instruction_set(), isa)) continue;
        CAPTURE(static_cast<int>(isa));
        CHECK(differences<gelu_function>(isa, x) == 0);
        CHECK(differences<gelu_tanh_function>(isa, x) == 0);
        CHECK(differences<silu_function>(isa, x) == 0);
        CHECK(differences<tanh_function>(isa, x) == 0);
        CHECK(differences<sigmoid_function>(isa, x) == 0);
        CHECK(differences<relu_function>(isa, x) == 0);
        CHECK(differences<slope_of<gelu_function>>(isa, x, y) == 0);
        CHECK(differences<slope_of<gelu_tanh_function>>(isa, x, y) == 0);
        CHECK(differences<slope_of<silu_function>>(isa, x, y) == 0);
        CHECK(differences<slope_of<tanh_function>>(isa, x, y) == 0);
        CHECK(differences<slope_of<sigmoid_function>>(isa, x, y) == 0);
        CHECK(differences<slope_of<relu_function>>(isa, x, y) == 0);
        CHECK(differences<sum_function>(isa, x, y) == 0);
        CHECK(differences<product_function>(isa, x, y) == 0);
    }
}

TEST_CASE("averages of every length follow their recurrence, with the same bits for every instruction set") {
    const std::vector<float> start = numbers(130, 9);
    const std::vector<float> x = numbers(130, 10);
    for (const float taken : {0.0F, 0x1p-24F, 0.1F, 0.5F, 0.75F, 1.0F}) {
        std::vector<float> expected_high, expected_low;
        for (const mp::instruction_set isa : {mp::instruction_set::portable, mp::instruction_set::neon,
                                              mp::instruction_set::avx2, mp::instruction_set::avx512}) {
            if (!mp::includes(mp::best_instruction_set(), isa)) continue;
            CAPTURE(static_cast<int>(isa));
            for (const std::size_t count : {130, 129, 67, 16, 3, 1}) {
                std::vector<float> high = start, low(start.size());
                average_floats(isa, count, high.data(), low.data(), x.data(), taken, 1 - taken);
                std::size_t different = 0;
                for (std::size_t i = 0; i < count; ++i) {
                    const double a = start[i];
                    const double b = x[i];
                    if (!std::isfinite(a) || !std::isfinite(b) || std::isinf(start[i] - x[i])) continue;
                    const double right = a + static_cast<double>(taken) * (b - a);
                    const double found = static_cast<double>(high[i]) + static_cast<double>(low[i]);
                    const double bound = 0x1p-22 * static_cast<double>(taken) * std::fabs(b - a) +
                                         0x1p-47 * std::max(std::fabs(a), std::fabs(b)) + 0x1p-148;
                    different +=
                        std::fabs(found - right) <= bound && (taken != 1 || high[i] == x[i]) ? 0U : 1U;
                }
                CHECK(different == 0);
                CHECK(std::equal(high.begin() + static_cast<std::ptrdiff_t>(count), high.end(),
                                 start.begin() + static_cast<std::ptrdiff_t>(count), [](float a, float b) {
                                     return std::bit_cast<std::uint32_t>(a) ==
                                            std::bit_cast<std::uint32_t>(b);
                                 }));
                if (count != 130) continue;
                if (isa == mp::instruction_set::portable) {
                    expected_high = high;
                    expected_low = low;
                }
                for (std::size_t i = 0; i < count; ++i) {
                    if (!std::isfinite(expected_low[i])) continue;
                    different += std::bit_cast<std::uint32_t>(high[i]) ==
                                             std::bit_cast<std::uint32_t>(expected_high[i]) &&
                                         std::bit_cast<std::uint32_t>(low[i]) ==
                                             std::bit_cast<std::uint32_t>(expected_low[i])
                                     ? 0U
                                     : 1U;
                }
                CHECK(different == 0);
            }
        }
    }
}

}  // namespace
