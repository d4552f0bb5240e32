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
    std::vector<mp::half> a(40 * 50);
    std::vector<mp::bfloat16> b(50 * 30);
    std::vector<float> c(40 * 30, 2.0F);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = mp::half(static_cast<int>(i % 7) - 3);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = mp::bfloat16(static_cast<int>(i % 5) - 2);
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), 40, 50), mp::row_major(b.data(), 50, 30), -3.0F,
             mp::row_major(c.data(), 40, 30));
    int wrong = 0;
    for (std::size_t r = 0; r < 40; ++r) {
        for (std::size_t j = 0; j < 30; ++j) {
            int sum = -6;
            for (std::size_t k = 0; k < 50; ++k) {
                sum += (static_cast<int>((r * 50 + k) % 7) - 3) * (static_cast<int>((k * 30 + j) % 5) - 2);
            }
            wrong += c[r * 30 + j] == static_cast<float>(sum) ? 0 : 1;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("a NaN among the factors arrives in C, through relu too, and in C it is not read with beta zero") {
    const float nan = std::bit_cast<float>(0x7FC0'0000U);
    std::vector<float> a(20 * 20, 1.0F);
    const std::vector<float> b(20 * 20, 1.0F);
    a[7 * 20 + 3] = nan;
    std::vector<float> c(20 * 20, nan);
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), 20, 20), mp::row_major(b.data(), 20, 20), 0.0F,
             mp::row_major(c.data(), 20, 20), mp::relu_epilogue{});
    int wrong = 0;
    for (std::size_t i = 0; i < c.size(); ++i) wrong += is_nan_pattern(c[i]) == (i / 20 == 7) ? 0 : 1;
    CHECK(wrong == 0);
    CHECK(c[0] == 20.0F);
}

}  // namespace
