// SPDX-License-Identifier: MIT
// The slowest average whose coefficient is a half of the last place of one: twenty time constants are 3.4e8 updates.
#include <mp/optim.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

TEST_CASE("an average with decay 1 - 2^-24 arrives at weights that stay") {
    std::vector<float> w(1, 1.0F), dw(1);
    mp::sgd<float> optimizer({{"w", w, dw}}, {.learning_rate = 1.0});
    mp::weight_average average(optimizer, {.decay = 1.0 - 0x1p-24});
    w[0] = 2.0F;
    for (int constant = 1; constant <= 20; ++constant) {
        for (std::uint64_t n = 0; n < (1U << 24); ++n) average.update();
        const double expected = 2.0 - std::exp(std::log1p(-0x1p-24) * 0x1p24 * constant);
        CHECK(std::fabs(static_cast<double>(average.values(0)[0]) - expected) < 1e-6);
    }
}
