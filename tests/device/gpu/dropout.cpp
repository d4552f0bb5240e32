// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/float8.hpp>
#include <mp/nn/ops/dropout/gpu.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "matrices.hpp"

namespace {

using gpu_test::layout;
using gpu_test::matrix;
using gpu_test::same_bits;
using gpu_test::simulated;
using gpu_test::watched;
using mp::bfloat16;
using mp::half;
using mp::ops::dropout_options;

template <class X, class Y>
void check_layouts(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    CAPTURE(rows);
    CAPTURE(columns);
    std::uint64_t seed = 1;
    for (const layout& in : gpu_test::layouts) {
        for (const layout& out : gpu_test::layouts) {
            const dropout_options options{.probability = 0.3F, .seed = 7 + seed, .offset = seed * 5};
            matrix<X> x(rows, columns, in);
            matrix<Y> y(rows, columns, out), expected(rows, columns, out);
            x.randomize(1, 5.0F);
            mp::ops::dropout(watched(simulated{.seed = seed++}), x.view, y.view, options);
            mp::ops::dropout(mp::cpu{}, x.view, expected.view, options);
            CHECK(same_bits(y, expected));
            CHECK(y.is_contained());
        }
    }
    // In place, as a gradient.
    matrix<X> dy(rows, columns), expected(rows, columns);
    dy.randomize(2);
    const dropout_options options{.probability = 0.9F, .seed = 3, .offset = 2};
    mp::ops::dropout_backward(mp::cpu{}, dy.view, expected.view, options);
    mp::ops::dropout_backward(simulated{}, dy.view, dy.view, options);
    CHECK(same_bits(dy, expected));
}

TEST_CASE("dropout has the CPU's mask and bits, in every layout, format and schedule") {
    for (const std::ptrdiff_t rows : {1, 5}) {
        for (const std::ptrdiff_t columns : {1, 31, 33, 130}) {
            check_layouts<float, float>(rows, columns);
            check_layouts<half, half>(rows, columns);
        }
    }
    check_layouts<bfloat16, float>(3, 70);
    check_layouts<float, bfloat16>(70, 3);
    check_layouts<mp::float8_e4m3fn, mp::float8_e4m3fn>(3, 50);
}

/// A word of the stream by the paper's definition: ten rounds over a counter of 64 bits, with the seed as
/// key.
std::uint32_t word(std::uint64_t seed, std::uint64_t index) {
    std::array<std::uint32_t, 4> x{static_cast<std::uint32_t>(index / 4),
                                   static_cast<std::uint32_t>(index / 4 >> 32), 0, 0};
    auto low = static_cast<std::uint32_t>(seed), high = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t first = std::uint64_t{0xD2511F53} * x[0];
        const std::uint64_t second = std::uint64_t{0xCD9E8D57} * x[2];
        x = {static_cast<std::uint32_t>(second >> 32) ^ x[1] ^ low, static_cast<std::uint32_t>(second),
             static_cast<std::uint32_t>(first >> 32) ^ x[3] ^ high, static_cast<std::uint32_t>(first)};
        low += 0x9E3779B9;
        high += 0xBB67AE85;
    }
    return x[index % 4];
}

TEST_CASE("an element is dropped by the word of its index, also where indices begin again at zero") {
    constexpr std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{3}, last - 2, last - 40}) {
        matrix<half> x(3, 37), y(3, 37);
        x.fill([](auto, auto) { return 1.0F; });
        mp::ops::dropout(simulated{}, x.view, y.view, {.probability = 0.5F, .seed = 99, .offset = offset});
        int wrong = 0;
        for (std::ptrdiff_t r = 0; r < 3; ++r) {
            for (std::ptrdiff_t c = 0; c < 37; ++c) {
                const bool dropped = word(99, offset + static_cast<std::uint64_t>(r * 37 + c)) < 0x8000'0000U;
                wrong += static_cast<float>(y.view(r, c)) == (dropped ? 0.0F : 2.0F) ? 0 : 1;
            }
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("probabilities of 0 and 1, and what is dropped whatever it is") {
    matrix<float> x(2, 9), y(2, 9);
    x.fill([](auto, auto c) { return c % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : -3.0F; });
    mp::ops::dropout(simulated{}, x.view, y.view, {.probability = 1.0F});
    CHECK(same_bits(y.view(1, 2), 0.0F));
    CHECK(same_bits(y.view(1, 3), 0.0F));
    mp::ops::dropout(simulated{}, x.view, y.view, {.probability = 0.0F});
    CHECK(gpu_test::is_nan(y.view(1, 2)));
    CHECK(y.view(1, 3) == -3.0F);
}

TEST_CASE("wrong arguments are refused before anything is written") {
    matrix<float> x(2, 9), y(2, 9), other(2, 8);
    y.fill([](auto, auto) { return 7.0F; });
    CHECK_THROWS_WITH_AS(mp::ops::dropout(simulated{}, x.view, y.view, {.probability = 1.5F}),
                         "mp::ops::dropout: options.probability is 1.5; it must be from 0 to 1",
                         mp::argument_error);
    CHECK_THROWS_AS(mp::ops::dropout(simulated{}, other.view, y.view, {}), mp::argument_error);
    CHECK_THROWS_AS(
        mp::ops::dropout_backward(simulated{}, y.view.block(0, 0, 2, 8), y.view.block(0, 1, 2, 8), {}),
        mp::argument_error);
    CHECK(y.view(0, 0) == 7.0F);
    const mp::matrix_view<float> empty{nullptr, 0, 9, 9};
    mp::ops::dropout(simulated{}, empty, empty, {});
}

}  // namespace
