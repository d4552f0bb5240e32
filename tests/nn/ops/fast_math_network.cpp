// SPDX-License-Identifier: MIT
// Compiled with -ffast-math, where comparisons with NaN mean nothing.
#include <doctest/doctest.h>
#include <mp/half.hpp>
#include <mp/nn/ops/attention.hpp>
#include <mp/nn/ops/convolution.hpp>
#include <mp/nn/ops/embedding.hpp>
#include <mp/nn/ops/normalization.hpp>
#include <mp/nn/ops/pooling.hpp>

#include <array>
#include <cstddef>
#include <vector>

namespace {

using mp::half;
using mp::ops::absent;

const half nan = half::from_bits(0x7E00);
const half infinity = half::from_bits(0x7C00);
const half minus_infinity = half::from_bits(0xFC00);

template <std::size_t Size>
mp::matrix_view<half> row(std::array<half, Size>& elements) {
    return mp::row_major(elements.data(), 1, static_cast<std::ptrdiff_t>(Size));
}

TEST_CASE("NaN and infinity pass through convolution and pooling") {
    std::array<half, 6> x = {nan, half(1), half(1), infinity, half(1), half(1)};
    std::array<half, 1> w = {half(2)};
    std::array<half, 6> y{};
    mp::ops::conv2d(mp::cpu{}, row(x), row(w), absent, row(y), {.width = 6});
    CHECK(mp::isnan(y[0]));
    CHECK(y[1] == half(2));
    CHECK(mp::isinf(y[3]));

    const mp::ops::pool2d_geometry pairs{.width = 6, .kernel = {1, 2}};
    std::array<half, 3> pooled{}, gradient = {half(3), half(4), half(5)};
    mp::ops::max_pool2d(mp::cpu{}, row(x), row(pooled), pairs);
    CHECK(mp::isnan(pooled[0]));
    CHECK(mp::isinf(pooled[1]));
    CHECK(pooled[2] == half(1));
    std::array<half, 6> dx{};
    mp::ops::max_pool2d_backward(mp::cpu{}, row(x), row(gradient), row(dx), pairs);
    CHECK(dx == std::array<half, 6>{half(3), half(0), half(0), half(4), half(5), half(0)});
}

TEST_CASE("NaN passes through normalization and embedding") {
    std::array<half, 4> x = {half(1), nan, half(2), half(3)};
    std::array<half, 4> y{};
    mp::ops::layer_norm(mp::cpu{}, row(x), absent, absent, row(y));
    for (const half value : y) CHECK(mp::isnan(value));
    mp::ops::rms_norm(mp::cpu{}, row(x), absent, row(y));
    for (const half value : y) CHECK(mp::isnan(value));
    std::array<half, 4> table{};
    mp::ops::embedding_backward(mp::cpu{}, std::array{0}, row(x), row(table));
    CHECK(mp::isnan(table[1]));
    CHECK(table[2] == half(2));
}

TEST_CASE("attention tells a query that sees no key from one with NaN") {
    std::array<half, 2> q = {half(1), nan};
    std::array<half, 2> k = {half(1), half(1)};
    std::array<half, 2> v = {half(4), half(4)};
    std::array<half, 4> mask = {minus_infinity, minus_infinity, half(0), half(0)};
    std::array<half, 2> y{}, dq{}, dk{}, dv{};
    const auto column = [](std::array<half, 2>& elements) { return mp::row_major(elements.data(), 2, 1); };
    const auto masks = mp::row_major(mask.data(), 2, 2);
    std::vector<mp::ops::softmax_statistics> statistics(2);
    mp::ops::scaled_dot_product_attention(mp::cpu{}, column(q), column(k), column(v), masks, column(y), {},
                                          statistics);
    CHECK(y[0].bits() == 0);
    CHECK(mp::isnan(y[1]));
    CHECK(mp::isinf(statistics[0].max));
    CHECK(mp::isnan(statistics[1].max));
    for (const bool saved : {true, false}) {
        if (!saved) statistics.clear();
        mp::ops::scaled_dot_product_attention_backward(mp::cpu{}, column(q), column(k), column(v), masks,
                                                       column(v), column(dq), column(dk), column(dv), {},
                                                       statistics);
        CHECK(dq[0].bits() == 0);
        CHECK(mp::isnan(dq[1]));
        CHECK(mp::isnan(dk[0]));
        CHECK(mp::isnan(dv[1]));
    }
    mask = {half(0), half(0), minus_infinity, minus_infinity};
    mp::ops::scaled_dot_product_attention(mp::cpu{}, column(q), column(k), column(v), masks, column(y));
    CHECK(y[0] == half(4));
    CHECK(y[1].bits() == 0);
}

}  // namespace
