// SPDX-License-Identifier: MIT
// Compiled as every test, and once more with -ffast-math, where compilers assume that there are no NaNs and
// may reorder sums. What must hold all the same is asked for by bits here.
#include <mp/bfloat16.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

bool is_nan_pattern(float x) {
    return (std::bit_cast<std::uint32_t>(x) & 0x7FFF'FFFFU) > 0x7F80'0000U;
}

TEST_CASE("products of small integers are exact whatever the compiler may reorder") {
    constexpr std::size_t rows = 40, columns = 30, k = 50;
    std::vector<mp::half> a(rows * k);
    std::vector<mp::bfloat16> b(k * columns);
    std::vector<float> c(rows * columns, 2.0F);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = mp::half(static_cast<int>(i % 7) - 3);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = mp::bfloat16(static_cast<int>(i % 5) - 2);
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), rows, k), mp::row_major(b.data(), k, columns), -3.0F,
             mp::row_major(c.data(), rows, columns));
    int wrong = 0;
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t j = 0; j < columns; ++j) {
            int sum = -6;
            for (std::size_t p = 0; p < k; ++p) {
                sum +=
                    (static_cast<int>((r * k + p) % 7) - 3) * (static_cast<int>((p * columns + j) % 5) - 2);
            }
            wrong += c[r * columns + j] == static_cast<float>(sum) ? 0 : 1;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("a NaN among the operands arrives in C, through relu too, and in C it is not read with beta zero") {
    const float nan = std::bit_cast<float>(0x7FC0'0000U);
    constexpr std::size_t size = 20;
    std::vector<float> a(size * size, 1.0F);
    const std::vector<float> b(size * size, 1.0F);
    a[7 * size + 3] = nan;
    std::vector<float> c(size * size, nan);
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), size, size), mp::row_major(b.data(), size, size), 0.0F,
             mp::row_major(c.data(), size, size), mp::relu_epilogue{});
    int wrong = 0;
    for (std::size_t i = 0; i < c.size(); ++i) wrong += is_nan_pattern(c[i]) == (i / size == 7) ? 0 : 1;
    CHECK(wrong == 0);
    CHECK(c[0] == 20.0F);
}

/// One element as mp::gemm documents dot products: `count` sums, added up as a tree. In volatile floats, whose
/// sums no compiler reorders.
float documented_dot(const std::vector<float>& a, const std::vector<float>& b, std::size_t k, std::size_t row,
                     std::size_t column, std::size_t count) {
    std::vector<float> sums(count);
    for (std::size_t p = 0; p < k; ++p) {
        volatile float product = a[row * k + p] * b[column * k + p];  // exact
        volatile float sum = product + sums[p % count];
        sums[p % count] = sum;
    }
    for (std::size_t half = count / 2; half > 0; half /= 2) {
        for (std::size_t i = 0; i < half; ++i) {
            volatile float sum = sums[i] + sums[i + half];
            sums[i] = sum;
        }
    }
    return sums[0];
}

TEST_CASE("dot products are added up in their order") {
    if (mp::best_instruction_set() == mp::instruction_set::portable) return;
    constexpr std::size_t k = 700, columns = 37;
    for (const std::size_t rows : {std::size_t{1}, std::size_t{3}}) {
        std::vector<float> a(rows * k), b(columns * k), c(rows * columns);
        std::uint32_t bits = 1;
        for (std::vector<float>* values : {&a, &b}) {
            for (float& x : *values) {
                bits = bits * 1664525U + 1013904223U;
                x = static_cast<float>(static_cast<std::int32_t>(bits) >> 20) * 0x1p-11F;  // 12 bits
            }
        }
        mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), rows, k),
                 mp::transposed(mp::row_major(b.data(), columns, k)), 0.0F,
                 mp::row_major(c.data(), rows, columns));
        int wrong = 0;
        for (std::size_t i = 0; i < c.size(); ++i) {
            const float expected = documented_dot(a, b, k, i / columns, i % columns, rows == 1 ? 32 : 16);
            wrong += std::bit_cast<std::uint32_t>(c[i]) == std::bit_cast<std::uint32_t>(expected) ? 0 : 1;
        }
        CHECK(wrong == 0);
    }
}

}  // namespace
