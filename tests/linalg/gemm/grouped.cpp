// SPDX-License-Identifier: MIT
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "linalg/gemm/arrays.hpp"

namespace {

using gemm_test::numbers;
using gemm_test::same;
using mp::half;
using offsets = std::vector<std::int32_t>;

constexpr std::ptrdiff_t rows = 23, in = 40, out = 18, experts = 4;

template <class Call>
std::string message_of(Call call) {
    try {
        call();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "";
}

TEST_CASE("groups of rows: each with its own matrix, whose bits are those of mp::gemm") {
    std::mt19937 random(1);
    const auto x = numbers<half>(rows * in, random), w = numbers<half>(experts * in * out, random);
    const auto bias = numbers<float>(rows, random);
    const offsets begins = {2, 9, 9, 10, 22};
    const auto check = [&](auto exec) {
        std::vector<float> y(rows * out, 3.0F), expected = y;
        const auto of_row = mp::bias_per_row(bias);
        mp::gemm_grouped_m(exec, 2, mp::row_major(x.data(), rows, in),
                           mp::matrix_batch{mp::row_major(w.data(), in, out), in * out}, begins, 0.5F,
                           mp::row_major(y.data(), rows, out), mp::compose(of_row, mp::relu_epilogue{}));
        for (std::size_t g = 0; g < experts; ++g) {
            for (std::ptrdiff_t row = begins[g]; row < begins[g + 1]; ++row) {
                // One row at a time, to whose end its bias is added.
                mp::gemm(exec, 2, mp::row_major(x.data() + row * in, 1, in),
                         mp::row_major(w.data() + static_cast<std::ptrdiff_t>(g) * in * out, in, out), 0.5F,
                         mp::row_major(expected.data() + row * out, 1, out),
                         [&, row](float value, std::ptrdiff_t, std::ptrdiff_t) {
                             return std::max(value + bias[static_cast<std::size_t>(row)], 0.0F);
                         });
            }
        }
        CHECK(same(y, expected));
        CHECK(y.front() == 3.0F);
        CHECK(y.back() == 3.0F);
    };
    check(mp::cpu{.products = mp::accumulation::ordered});
    check(mp::emulated<mp::arch::sm_90>{});
}

TEST_CASE("masked groups: the first rows of each matrix of a batch") {
    std::mt19937 random(2);
    const auto x = numbers<half>(experts * rows * in, random), w = numbers<half>(experts * in * out, random);
    const std::vector<std::int32_t> counts = {5, 0, rows, 1};
    std::vector<mp::bfloat16> y(experts * rows * out, mp::bfloat16(7.0F)), expected = y;
    const mp::cpu exec{.products = mp::accumulation::ordered};
    const mp::matrix_batch a{mp::row_major(x.data(), rows, in), rows * in},
        b{mp::row_major(w.data(), in, out), in * out};
    mp::gemm_masked(exec, 1, a, b, counts, 0,
                    mp::matrix_batch{mp::row_major(y.data(), rows, out), rows * out});
    for (std::ptrdiff_t g = 0; g < experts; ++g) {
        const std::ptrdiff_t count = counts[static_cast<std::size_t>(g)];
        mp::gemm(exec, 1, a[g].block(0, 0, count, in), b[g], 0,
                 mp::row_major(expected.data() + g * rows * out, count, out));
    }
    CHECK(same(y, expected));
}

TEST_CASE("groups of k: a result for each, zero where it has nothing") {
    std::mt19937 random(3);
    const auto x = numbers<half>(rows * in, random), dy = numbers<half>(rows * out, random);
    const offsets begins = {0, 7, 7, 20, rows};
    std::vector<float> dw(experts * in * out, 2.0F), expected = dw;
    const mp::emulated<mp::arch::sm_80> exec{};
    mp::gemm_grouped_k(exec, 1, mp::transposed(mp::row_major(x.data(), rows, in)),
                       mp::row_major(dy.data(), rows, out), begins, 0.5F,
                       mp::matrix_batch{mp::row_major(dw.data(), in, out), in * out});
    for (std::size_t g = 0; g < experts; ++g) {
        const std::ptrdiff_t first = begins[g], k = begins[g + 1] - first;
        mp::gemm(exec, 1, mp::transposed(mp::row_major(x.data() + first * in, k, in)),
                 mp::row_major(dy.data() + first * out, k, out), 0.5F,
                 mp::row_major(expected.data() + static_cast<std::ptrdiff_t>(g) * in * out, in, out));
    }
    CHECK(same(dw, expected));
    CHECK(dw[in * out] == 1.0F);
}

TEST_CASE("groups with scales: each has the bits of mp::gemm_scaled") {
    using mp::float8_e4m3fn;
    constexpr std::ptrdiff_t k = 300, blocks = 3;
    std::mt19937 random(4);
    const auto x = numbers<float8_e4m3fn>(experts * rows * k, random),
               w = numbers<float8_e4m3fn>(experts * k * out, random);
    const auto x_scales = numbers<float>(experts * rows * blocks, random),
               w_scales = numbers<float>(experts * blocks * 2, random);
    const mp::matrix_batch a{mp::row_major(x.data(), rows, k), rows * k},
        b{mp::row_major(w.data(), k, out), k * out};
    const mp::k_block_scales_batch of_a{{mp::row_major(x_scales.data(), rows, blocks)}, rows * blocks},
        of_b{{mp::row_major(w_scales.data(), blocks, 2), 16}, blocks * 2};
    const auto check = [&](auto exec) {
        std::vector<float> y(experts * rows * out, 3.0F), expected = y;
        const mp::matrix_batch c{mp::row_major(y.data(), rows, out), rows * out};
        const offsets begins = {2, 9, 9, 10, 22}, counts = {5, 0, rows, 1};
        mp::gemm_scaled_grouped_m(exec, 2, a.first, of_a.first, b, of_b, begins, 0.5F, c.first);
        for (std::size_t g = 0; g < experts; ++g) {
            const auto number = static_cast<std::ptrdiff_t>(g);
            const std::ptrdiff_t first = begins[g], count = begins[g + 1] - first;
            if (count == 0) continue;
            mp::gemm_scaled(exec, 2, a.first.block(first, 0, count, k),
                            {of_a.first.values.block(first, 0, count, blocks)}, b[number], of_b[number], 0.5F,
                            mp::row_major(expected.data() + first * out, count, out));
        }
        CHECK(same(y, expected));
        mp::gemm_scaled_masked(exec, 1, a, of_a, b, of_b, counts, 0, c);
        for (std::size_t g = 0; g < experts; ++g) {
            const auto number = static_cast<std::ptrdiff_t>(g);
            if (counts[g] == 0) continue;
            mp::gemm_scaled(exec, 1, a[number].block(0, 0, counts[g], k),
                            {of_a[number].values.block(0, 0, counts[g], blocks)}, b[number], of_b[number], 0,
                            mp::row_major(expected.data() + number * rows * out, counts[g], out));
        }
        CHECK(same(y, expected));
    };
    check(mp::cpu{.products = mp::accumulation::ordered});
    check(mp::emulated<mp::arch::sm_90>{});
    std::vector<float> y(rows * out);
    CHECK(message_of([&] {
              mp::gemm_scaled_grouped_m(mp::cpu{}, 1, a.first, {of_a.first.values, 2}, b, of_b, offsets{0, 3},
                                        0, mp::row_major(y.data(), rows, out));
          }) ==
          "mp::gemm_scaled_grouped_m: a_scales.vectors_per_scale is 2; it must be 1, since groups begin at "
          "any row");
}

TEST_CASE("groups of blocks of k with scales: each has the bits of mp::gemm_scaled") {
    using mp::float8_e4m3fn;
    constexpr std::ptrdiff_t m = 9, n = 20, k = 600, blocks = 5;
    std::mt19937 random(5);
    const auto x = numbers<float8_e4m3fn>(m * k, random), dy = numbers<float8_e4m3fn>(k * n, random);
    const auto x_scales = numbers<float>(m * blocks, random), dy_scales = numbers<float>(2 * blocks, random);
    const auto a = mp::row_major(x.data(), m, k);
    const auto b = mp::column_major(dy.data(), k, n);
    const mp::k_block_scales of_a{mp::row_major(x_scales.data(), m, blocks)},
        of_b{mp::column_major(dy_scales.data(), blocks, 2), 16};
    const offsets begins = {128, 384, 384, 600, 600};
    std::vector<float> dw(4 * m * n, 3.0F), expected = dw;
    const mp::cpu exec{.products = mp::accumulation::ordered};
    const auto into = [&](std::vector<float>& to) {
        return mp::matrix_batch{mp::row_major(to.data(), m, n), m * n};
    };
    mp::gemm_scaled_grouped_k(exec, 2, a, of_a, b, of_b, begins, 0.5F, into(dw));
    const auto one = [&](std::ptrdiff_t g, std::ptrdiff_t first, std::ptrdiff_t count, std::ptrdiff_t of_k) {
        mp::gemm_scaled(exec, 2, a.block(0, first * 128, m, of_k), {of_a.values.block(0, first, m, count)},
                        b.block(first * 128, 0, of_k, n), {of_b.values.block(first, 0, count, 2), 16}, 0.5F,
                        into(expected)[g]);
    };
    one(0, 1, 2, 256);
    one(2, 3, 2, 216);
    for (const std::size_t g : {1U, 3U}) std::fill_n(expected.begin() + g * m * n, m * n, 1.5F);
    CHECK(same(dw, expected));
    CHECK(message_of(
              [&] { mp::gemm_scaled_grouped_k(exec, 1, a, of_a, b, of_b, offsets{0, 130}, 0, into(dw)); }) ==
          "mp::gemm_scaled_grouped_k: offsets[1] is 130; it must be a multiple of 128, or all of k, which is "
          "600");
}

TEST_CASE("errors of products of groups name the argument, and nothing is written") {
    std::vector<float> x(rows * in), w(experts * in * out), y(rows * out, 4.0F);
    const mp::matrix_batch b{mp::row_major(w.data(), in, out), in * out};
    const auto error = [&](const offsets& begins, std::ptrdiff_t c_rows = rows,
                           std::ptrdiff_t c_columns = out) {
        return message_of([&] {
            mp::gemm_grouped_m(mp::cpu{}, 1, mp::row_major(x.data(), rows, in), b, begins, 0,
                               mp::row_major(y.data(), c_rows, c_columns));
        });
    };
    CHECK(error({}) ==
          "mp::gemm_grouped_m: offsets.size() is 0; it must be at least 1: it is one more than there are "
          "groups");
    CHECK(error({0, 4, 3}) ==
          "mp::gemm_grouped_m: offsets[2] is 3; it must not be less than the one before, which is 4, nor "
          "more than a.rows, which is 23");
    CHECK(error({0, 24}).starts_with("mp::gemm_grouped_m: offsets[1] is 24"));
    CHECK(error({-1, 2}).starts_with("mp::gemm_grouped_m: offsets[0] is -1"));
    CHECK(error({0, 23}, 22) == "mp::gemm_grouped_m: c.rows is 22; it must equal a.rows, which is 23");
    CHECK(error({0, 23}, rows, 17) ==
          "mp::gemm_grouped_m: c.columns is 17; it must equal b.first.columns, which is 18");
    CHECK(error({0}).empty());
    const auto masked = message_of([&] {
        mp::gemm_masked(mp::cpu{}, 1, mp::matrix_batch{mp::row_major(x.data(), 4, in), 4 * in}, b,
                        offsets{3, 5}, 0, mp::matrix_batch{mp::row_major(y.data(), 4, out), 4 * out});
    });
    CHECK(masked == "mp::gemm_masked: counts[1] is 5; it must be from 0 to a.first.rows, which is 4");
    const auto along_k = message_of([&] {
        mp::gemm_grouped_k(mp::cpu{}, 1, mp::row_major(x.data(), 2, 8), mp::row_major(w.data(), 8, 3),
                           offsets{0, 9}, 0, mp::matrix_batch{mp::row_major(y.data(), 2, 3), 6});
    });
    CHECK(along_k.starts_with("mp::gemm_grouped_k: offsets[1] is 9"));
    CHECK(std::all_of(y.begin(), y.end(), [](float value) { return value == 4.0F; }));
}

}  // namespace
