// SPDX-License-Identifier: MIT
// Compiled with -ffast-math, where comparisons with NaN mean nothing.
#include <doctest/doctest.h>
#include <mp/half.hpp>
#include <mp/ops.hpp>

#include <array>

namespace {

TEST_CASE("NaN and infinity pass through the ops on the way to the check of the loss scaler") {
    using mp::half;
    std::array<half, 4> x = {half::from_bits(0x7E00), half::from_bits(0xFE00), half::from_bits(0x7C00),
                             half(-1)};
    std::array<half, 4> y{};
    mp::ops::relu(mp::cpu{}, mp::row_major(x.data(), 1, 4), mp::row_major(y.data(), 1, 4));
    CHECK(mp::isnan(y[0]));
    CHECK(mp::isnan(y[1]));
    CHECK(mp::isinf(y[2]));
    CHECK(y[3].bits() == 0);

    std::array<half, 4> dy = x;
    std::array<half, 4> w{};
    std::array<half, 4> db{};
    mp::ops::linear_backward(mp::cpu{}, mp::row_major(x.data(), 1, 1), mp::row_major(w.data(), 4, 1),
                             mp::row_major(dy.data(), 1, 4), mp::ops::absent, mp::ops::absent, db);
    CHECK(mp::isnan(db[0]));
    CHECK(mp::isinf(db[2]));

    const mp::autocast_region region(mp::precision::bf16);
    std::array<float, 4> product{};
    mp::ops::linear(mp::cpu{}, mp::row_major(dy.data(), 4, 1), mp::row_major(dy.data() + 3, 1, 1),
                    mp::ops::absent, mp::row_major(product.data(), 4, 1));
    CHECK(mp::isnan(product[0]));
    CHECK(mp::isinf(product[2]));
    CHECK(product[3] == 1.0F);
}

}  // namespace
