// SPDX-License-Identifier: MIT
#include <mp/optim.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

namespace {

TEST_CASE("powers by squaring are exact for short products, and as near as is promised for all") {
    CHECK(mp::detail::double_power(0.999, 0) == 1.0);
    CHECK(mp::detail::double_power(0.999, 1) == 0.999);
    CHECK(mp::detail::double_power(0.999, 2) == 0.999 * 0.999);
    CHECK(mp::detail::double_power(0.5, 1000) == 0x1p-1000);
    CHECK(mp::detail::double_power(0.0, 3) == 0.0);
    CHECK(mp::detail::double_power(0.9, 1'000'000'000'000) == 0.0);
    for (const double base : {0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.999999}) {
        for (std::uint64_t exponent = 1; exponent < 50'000'000; exponent += 1 + exponent / 3) {
            const long double exact =
                std::pow(static_cast<long double>(base), static_cast<long double>(exponent));
            const auto power = static_cast<long double>(mp::detail::double_power(base, exponent));
            CAPTURE(base);
            CAPTURE(exponent);
            // Below the normal numbers of double the steps are those of subnormals.
            CHECK(std::fabs(power - exact) <=
                  0x1p-53L * static_cast<long double>(exponent) * exact + 0x1p-1074L);
        }
    }
}

TEST_CASE("the coefficients of Adam are those of its definition, rounded to float") {
    const mp::adamw_options options{.learning_rate = 1e-3, .weight_decay = 0.01};
    int off_by_one = 0;
    for (std::uint64_t number = 1; number < 100'000; number += 1 + number / 50) {
        const auto t = static_cast<long double>(number);
        const auto found =
            mp::detail::optimizer_traits<mp::adamw_options>::coefficients_of(options, 1e-3, number);
        const auto rate = static_cast<float>(1e-3L / (1.0L - std::pow(0.9L, t)));
        const auto inverse_bias = static_cast<float>(1.0L / std::sqrt(1.0L - std::pow(0.999L, t)));
        CHECK(found.rate == doctest::Approx(rate).epsilon(1e-7));
        CHECK(found.inverse_bias == doctest::Approx(inverse_bias).epsilon(1e-7));
        off_by_one += found.rate != rate || found.inverse_bias != inverse_bias ? 1 : 0;
        CHECK(found.decay == static_cast<float>(1e-3 * 0.01));
    }
    CHECK(off_by_one <= 2);
}

}  // namespace
