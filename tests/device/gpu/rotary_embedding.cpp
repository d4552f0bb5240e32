// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/float8.hpp>
#include <mp/nn/ops/rotary_embedding/gpu.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "larger_error.hpp"
#include "matrices.hpp"

namespace {

using gpu_test::layout;
using gpu_test::matrix;
using gpu_test::same_bits;
using gpu_test::simulated;
using gpu_test::workspace;
using mp::bfloat16;
using mp::half;
using mp::ops::head_layout;
using mp::ops::rotary_options;
using mp::ops::rotary_pairing;

template <class X, class Y>
void check_layouts(std::ptrdiff_t rows, std::ptrdiff_t columns, const rotary_options& options) {
    CAPTURE(rows);
    CAPTURE(columns);
    CAPTURE(static_cast<int>(options.pairing));
    std::uint64_t seed = 1;
    for (const layout& in : gpu_test::layouts) {
        for (const layout& out : gpu_test::layouts) {
            matrix<X> x(rows, columns, in);
            matrix<Y> y(rows, columns, out), expected(rows, columns, out);
            x.randomize(1, 5.0F);
            workspace room(mp::ops::rotary_embedding_workspace(rows, columns, options));
            mp::ops::rotary_embedding(room.on({.seed = seed++}), x.view, y.view, options);
            mp::ops::rotary_embedding(mp::cpu{}, x.view, expected.view, options);
            CHECK(same_bits(y, expected));
            CHECK(y.is_contained());
        }
    }
    // In place, as a gradient.
    matrix<X> dy(rows, columns), expected(rows, columns);
    dy.randomize(2);
    mp::ops::rotary_embedding_backward(mp::cpu{}, dy.view, expected.view, options);
    workspace room(mp::ops::rotary_embedding_workspace(rows, columns, options));
    mp::ops::rotary_embedding_backward(room.on(), dy.view, dy.view, options);
    CHECK(same_bits(dy, expected));
}

TEST_CASE("rotary embeddings have the CPU's bits, in every layout, pairing, format and schedule") {
    for (const rotary_pairing pairing : {rotary_pairing::half_split, rotary_pairing::interleaved}) {
        check_layouts<float, float>(1, 2, {.pairing = pairing});
        check_layouts<half, half>(6, 32, {.heads = 2, .pairing = pairing, .first_position = 1000});
        check_layouts<half, half>(3, 34, {.pairing = pairing, .rotated = 10});
        check_layouts<float, bfloat16>(
            6, 66, {.heads = 3, .layout = head_layout::side_by_side, .batch = 2, .pairing = pairing});
        check_layouts<bfloat16, float>(4, 130,
                                       {.heads = 2,
                                        .layout = head_layout::side_by_side,
                                        .pairing = pairing,
                                        .rotated = 62,
                                        .base = 500000});
        check_layouts<half, half>(
            31, 48, {.heads = 3, .layout = head_layout::side_by_side, .pairing = pairing, .rotated = 8});
    }
    check_layouts<mp::float8_e4m3fn, mp::float8_e4m3fn>(2, 32, {});
    // More angles than one launch has.
    check_layouts<float, float>(2, 2 * 300, {.first_position = (1 << 24) - 5});
}

TEST_CASE("points are turned by the angles of the definition") {
    constexpr std::ptrdiff_t tokens = 9, head_dim = 20;
    matrix<float> x(tokens, head_dim), y(tokens, head_dim);
    x.randomize(4);
    workspace room(mp::ops::rotary_embedding_workspace(tokens, head_dim));
    mp::ops::rotary_embedding(room.on(), x.view, y.view, {.first_position = 3});
    double worst = 0;
    for (std::ptrdiff_t t = 0; t < tokens; ++t) {
        for (std::ptrdiff_t i = 0; i < head_dim / 2; ++i) {
            const double angle =
                static_cast<double>(t + 3) * std::pow(10000.0, -2.0 * static_cast<double>(i) / head_dim);
            const auto a = static_cast<double>(x.view(t, i)),
                       b = static_cast<double>(x.view(t, head_dim / 2 + i));
            const double first = a * std::cos(angle) - b * std::sin(angle);
            const double second = a * std::sin(angle) + b * std::cos(angle);
            worst = tests::larger_error(worst, std::abs(first - static_cast<double>(y.view(t, i))));
            worst = tests::larger_error(worst,
                                        std::abs(second - static_cast<double>(y.view(t, head_dim / 2 + i))));
        }
    }
    CHECK(worst < 0x1p-22);
}

TEST_CASE("wrong arguments are refused before anything is written") {
    matrix<float> x(4, 6), y(4, 6);
    y.fill([](auto, auto) { return 7.0F; });
    CHECK_THROWS_WITH_AS(mp::ops::rotary_embedding(simulated{}, x.view, y.view),
                         "mp::ops::rotary_embedding: exec.workspace is 'null'; it must be a workspace in the "
                         "memory of the executor, of at least 96 bytes",
                         mp::argument_error);
    workspace room(mp::ops::rotary_embedding_workspace(4, 6));
    CHECK_THROWS_AS(mp::ops::rotary_embedding(room.on(), x.view, y.view, {.heads = 3}), mp::argument_error);
    CHECK_THROWS_AS(mp::ops::rotary_embedding(room.on(), x.view, y.view, {.rotated = 3}), mp::argument_error);
    CHECK_THROWS_AS(
        mp::ops::rotary_embedding_backward(room.on(), y.view.block(0, 0, 2, 6), y.view.block(1, 0, 2, 6)),
        mp::argument_error);
    CHECK(y.view(3, 5) == 7.0F);
    const mp::matrix_view<float> empty{nullptr, 0, 6, 6};
    mp::ops::rotary_embedding(simulated{}, empty, empty);
}

}  // namespace
