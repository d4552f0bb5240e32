// SPDX-License-Identifier: MIT
// Compiled with -ffast-math: what queries see and do not see, and rows without a meaning, are found all
// the same.
#include <doctest/doctest.h>
#include <mp/nn/ops/attention.hpp>
#include <mp/nn/ops/attention/gpu.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "matrices.hpp"

namespace {

using gpu_test::matrix;
using gpu_test::simulated;
using gpu_test::watched;

float from_bits(std::uint32_t bits) {
    return mp::detail::bit_cast<float>(bits);
}
constexpr std::uint32_t plus_infinity = 0x7F80'0000U;
constexpr std::uint32_t minus_infinity = 0xFF80'0000U;
constexpr std::uint32_t some_nan = 0xFFC0'1234U;

std::uint32_t bits_of(float x) {
    return mp::detail::bit_cast<std::uint32_t>(x);
}

TEST_CASE_TEMPLATE("masks of infinities and NaN do what they do without -ffast-math", Value, mp::half,
                   float) {
    constexpr std::ptrdiff_t keys = 70;
    matrix<Value> q(5, 8), k(keys, 8), v(keys, 2), y(5, 2), dq(5, 8), dk(keys, 8), dv(keys, 2);
    q.randomize(1);
    k.randomize(2);
    v.randomize(3);
    k.view(1, 0) = static_cast<Value>(from_bits(some_nan));  // which the first queries do not see
    // One row for each kind: masked, all masked, +infinity, NaN, and one that sees the key that is NaN.
    matrix<float> mask(5, keys);
    mask.fill([](auto r, auto c) {
        if (r == 1 || (r != 4 && c == 1)) return from_bits(minus_infinity);
        if (r == 2 && c == 2) return from_bits(plus_infinity);
        if (r == 3 && c == 66) return from_bits(some_nan);
        return static_cast<float>(c % 3);
    });
    std::vector<mp::ops::softmax_statistics> statistics(5);
    mp::ops::scaled_dot_product_attention(watched(simulated{.seed = 1}), q.view, k.view, v.view, mask.view,
                                          y.view, {}, statistics);
    for (std::ptrdiff_t r = 0; r < 5; ++r) {
        CHECK(gpu_test::is_nan(static_cast<float>(y.view(r, 1))) == (r > 1));
        CHECK(gpu_test::is_nan(statistics[static_cast<std::size_t>(r)].max) == (r > 1));
    }
    CHECK(bits_of(static_cast<float>(y.view(1, 0))) == 0);
    CHECK(bits_of(statistics[1].max) == minus_infinity);
    mp::host_workspace memory;
    k.view(1, 0) = Value(0.0F);  // products with zero weights are NaN else
    mp::ops::scaled_dot_product_attention_backward(watched(simulated{.seed = 2, .workspace = &memory}),
                                                   q.view, k.view, v.view, mask.view, y.view, dq.view,
                                                   dk.view, dv.view, {}, statistics);
    CHECK_FALSE(gpu_test::is_nan(static_cast<float>(dq.view(0, 0))));
    CHECK(bits_of(static_cast<float>(dq.view(1, 0))) == 0);
    CHECK(gpu_test::is_nan(static_cast<float>(dq.view(2, 0))));
    CHECK(gpu_test::is_nan(static_cast<float>(dv.view(5, 0))));
}

}  // namespace
