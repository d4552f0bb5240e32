// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/half.hpp>
#include <mp/train/training/initializers.hpp>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace {

namespace init = mp::initializers;

std::vector<float> drawn(const mp::initializer& how, std::size_t count, std::uint64_t seed = 1,
                         std::uint64_t first = 0) {
    std::vector<float> values(count, 7.0F);
    mp::initialize(std::span(values), how, seed, first);
    return values;
}

struct moments {
    double mean = 0, variance = 0, kurtosis = 0;
    explicit moments(const std::vector<float>& values) {
        const auto n = static_cast<double>(values.size());
        for (const float x : values) mean += static_cast<double>(x) / n;
        double fourth = 0;
        for (const float x : values) {
            const double d = static_cast<double>(x) - mean;
            variance += d * d / n;
            fourth += d * d * d * d / n;
        }
        kurtosis = fourth / (variance * variance);
    }
};

TEST_CASE("normal weights have the moments and the tail of the normal distribution") {
    // A million of them: means have a deviation of 1e-3, variances 1.4e-3, kurtoses 5e-3.
    const auto values = drawn(init::normal(2.0), 1'000'000);
    const moments found(values);
    CHECK(std::abs(found.mean) < 5 * 2e-3);
    CHECK(std::abs(found.variance / 4 - 1) < 5 * 1.4e-3);
    CHECK(std::abs(found.kurtosis - 3) < 5 * 5e-3);
    for (const double limit : {1.0, 2.0, 3.0, 4.0}) {
        const double share = std::erfc(limit / std::sqrt(2.0));
        const auto beyond = static_cast<double>(std::count_if(values.begin(), values.end(), [&](float x) {
            return std::abs(static_cast<double>(x)) > 2 * limit;
        }));
        CHECK(std::abs(beyond - 1e6 * share) < 5 * std::sqrt(1e6 * share));
    }
    // Neighbours know nothing of each other.
    double products = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
        products += static_cast<double>(values[i - 1]) * static_cast<double>(values[i]);
    }
    CHECK(std::abs(products / 4e6) < 5e-3);
}

TEST_CASE("uniform weights fill their interval evenly, without its ends") {
    const auto values = drawn(init::uniform(0.5), 1'000'000);
    const moments found(values);
    CHECK(std::abs(found.mean) < 5 * 3e-4);
    CHECK(std::abs(found.variance * 12 - 1) < 5e-3);
    CHECK(std::all_of(values.begin(), values.end(), [](float x) { return std::abs(x) <= 0.5F; }));
    for (int i = -5; i < 5; ++i) {
        const auto inside = static_cast<double>(std::count_if(values.begin(), values.end(), [&](float x) {
            return static_cast<double>(x) * 10 >= i && static_cast<double>(x) * 10 < i + 1;
        }));
        CHECK(std::abs(inside - 1e5) < 5 * 300);
    }
}

TEST_CASE("a weight depends on the seed and its index alone") {
    for (const auto& how : {init::normal(1), init::uniform(1)}) {
        const auto all = drawn(how, 100, 3);
        const auto rest = drawn(how, 40, 3, 60);
        CHECK(std::equal(rest.begin(), rest.end(), all.begin() + 60));
        CHECK(drawn(how, 100, 3) == all);
        CHECK(drawn(how, 100, 4) != all);
        for (const int direction : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
            std::fesetround(direction);
            const auto again = drawn(how, 100, 3);
            std::fesetround(FE_TONEAREST);
            CHECK(again == all);
        }
    }
    // Written down once, so that no platform and no later version draws others.
    const auto normal = drawn(init::normal(1), 3, 1);
    CHECK(normal == std::vector<float>{0x1.af3564p-1F, -0x1.6496a8p+1F, -0x1.fa9a1ep+0F});
    const auto uniform = drawn(init::uniform(1), 3, 1);
    CHECK(uniform == std::vector<float>{0x1.7fb3aep-1F, -0x1.dbdac4p-4F, -0x1.804d5p-2F});
}

TEST_CASE("the usual initializers have the deviations of their formulas") {
    CHECK(drawn(init::zeros(), 3) == std::vector<float>(3, 0.0F));
    CHECK(drawn(init::ones(), 3) == std::vector<float>(3, 1.0F));
    CHECK(drawn(init::constant(-2.5), 3) == std::vector<float>(3, -2.5F));
    CHECK(init::xavier_uniform(20, 76).scale == 0.25);
    CHECK(init::kaiming_normal(32).scale == 0.25);
    CHECK(init::fan_in_uniform(64).scale == 0.125);
    std::vector<mp::half> low(4);
    mp::initialize(std::span(low), init::constant(0.1), 1);
    CHECK(low[3] == mp::round_to<mp::half>(0.1));
}

TEST_CASE("initialize names a scale that cannot be, and writes nothing") {
    const auto message = [](const mp::initializer& how) {
        std::vector<float> values(2, 7.0F);
        std::string text;
        try {
            mp::initialize(std::span(values), how, 1);
        } catch (const mp::argument_error& error) {
            text = error.what();
        }
        CHECK(values == std::vector<float>(2, 7.0F));
        return text;
    };
    CHECK(message(init::normal(-1)) == "mp::initialize: how.scale is -1; it must be finite and not negative");
    CHECK(message(init::constant(std::numeric_limits<double>::infinity())) ==
          "mp::initialize: how.scale is inf; it must be finite");
}

}  // namespace
