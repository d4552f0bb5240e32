// SPDX-License-Identifier: MIT
#include <mp/gemm.hpp>
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "message_of.hpp"

namespace {

using mp::arch;
using mp::emulated;
using mp::instruction_set;
using mp::storage_order;

using bytes = std::vector<std::int8_t>;

bytes random_bytes(std::size_t count, std::mt19937& random) {
    bytes result(count);
    for (std::int8_t& it : result) it = static_cast<std::int8_t>(random());
    return result;
}

template <class Value>
mp::matrix_view<Value> view(std::vector<Value>& data, std::ptrdiff_t rows, std::ptrdiff_t columns,
                            bool by_rows) {
    return by_rows ? mp::row_major(data.data(), rows, columns) : mp::column_major(data.data(), rows, columns);
}

/// The sum of an element, modulo 2^32.
std::uint32_t sum_of(mp::matrix_view<std::int8_t> a, mp::matrix_view<std::int8_t> b, std::ptrdiff_t i,
                     std::ptrdiff_t j) {
    std::uint64_t sum = 0;
    for (std::ptrdiff_t p = 0; p < a.columns; ++p)
        sum += static_cast<std::uint64_t>(std::int64_t{a(i, p)} * b(p, j));
    return static_cast<std::uint32_t>(sum);
}

TEST_CASE("sums of 8-bit integers are exact: any size, order, instruction set and number of threads") {
    std::mt19937 random(1);
    const std::ptrdiff_t sizes[][3] = {{1, 1, 1},    {3, 5, 0},    {7, 2, 1023}, {5, 9, 1025},
                                       {2, 300, 40}, {270, 3, 70}, {6, 17, 2500}};
    for (const auto isa : {instruction_set::portable, instruction_set::neon, instruction_set::avx2,
                           instruction_set::avx512, instruction_set::best}) {
        if (!mp::processor_has(isa)) continue;
        unsigned layout = 0;
        for (const auto& [m, n, k] : sizes) {
            ++layout;
            bytes left = random_bytes(static_cast<std::size_t>(m * k) + 1, random);
            bytes right = random_bytes(static_cast<std::size_t>(k * n) + 1, random);
            const auto a = view(left, m, k, layout % 2 == 0);
            const auto b = view(right, k, n, layout / 2 % 2 == 0);
            std::vector<std::int32_t> c(static_cast<std::size_t>(m * n), 7);
            const auto before = c;
            const auto to = view(c, m, n, layout / 4 % 2 == 0);
            const mp::cpu exec{.threads = layout % 3 == 0 ? 3 : 1, .instructions = isa};
            int wrong = 0;
            const auto compare = [&](std::int64_t alpha, std::int64_t beta) {
                for (std::ptrdiff_t i = 0; i < m; ++i) {
                    for (std::ptrdiff_t j = 0; j < n; ++j) {
                        const auto expected =
                            static_cast<std::uint32_t>(alpha * sum_of(a, b, i, j) + beta * 7);
                        wrong += static_cast<std::uint32_t>(to(i, j)) == expected ? 0 : 1;
                    }
                }
            };
            mp::gemm(exec, 1, a, b, 0, to);
            compare(1, 0);
            c = before;
            mp::gemm(exec, -3, a, b, 5, to);
            compare(-3, 5);
            c = before;
            mp::gemm(exec, 0, a, b, 1, to);
            CHECK(c == before);
            mp::gemm(emulated<arch::sm_75>{.instructions = isa}, 1, a, b, 0, to);
            compare(1, 0);
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("extremes: the largest sums that float holds, and those that 32 bits do not") {
    for (const std::ptrdiff_t k : {1024, 1025, 131071, 131072, 262144}) {
        const bytes a(static_cast<std::size_t>(k), -128);
        bytes b(a);
        std::int32_t c[2] = {};
        const auto to = mp::row_major(c, 1, 2);
        bytes two(static_cast<std::size_t>(2 * k), -128);
        std::fill(two.begin() + k, two.end(), std::int8_t{127});
        mp::gemm(mp::cpu{}, 1, mp::row_major(a.data(), 1, k), mp::column_major(two.data(), k, 2), 0, to);
        CHECK(static_cast<std::uint32_t>(c[0]) == static_cast<std::uint32_t>(k << 14));
        CHECK(static_cast<std::uint32_t>(c[1]) == static_cast<std::uint32_t>(-k * (127 << 7)));
    }
}

TEST_CASE("into numbers: exact sums, rounded once, then alpha, beta, scales and the type of c") {
    constexpr std::ptrdiff_t m = 9, n = 21, k = 3000;
    std::mt19937 random(3);
    bytes left = random_bytes(m * k, random), right = random_bytes(k * n, random);
    // Sums of more than 24 bits.
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = static_cast<std::int8_t>(left[i] | 64);
    for (std::size_t i = 0; i < right.size(); ++i) right[i] = static_cast<std::int8_t>((right[i] & 63) | 64);
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = static_cast<std::int8_t>(left[i] & 127);
    const auto a = mp::row_major(left.data(), m, k);
    const auto b = mp::column_major(right.data(), k, n);
    std::vector<float> row_scale(m), column_scale(n);
    for (float& it : row_scale) it = static_cast<float>(random() % 1000) * 0x1.3p-12F;
    for (float& it : column_scale) it = static_cast<float>(random() % 1000) * 0x1.7p-9F;
    for (const int direction : {FE_TONEAREST, FE_UPWARD}) {
        std::vector<float> c(m * n);
        std::vector<mp::half> narrow(m * n, mp::half(2.0F));
        std::fesetround(direction);
        mp::gemm(emulated<arch::sm_80>{.threads = 2}, 1, a, b, 0, mp::row_major(c.data(), m, n));
        mp::gemm(emulated<arch::sm_90>{}, 0x1.8p-20F, a, b, 0.5F, mp::column_major(narrow.data(), m, n),
                 mp::compose(mp::scale_per_row(row_scale), mp::scale_per_column(column_scale)));
        std::fesetround(FE_TONEAREST);
        int wrong = 0;
        bool rounds = false;
        for (std::ptrdiff_t i = 0; i < m; ++i) {
            for (std::ptrdiff_t j = 0; j < n; ++j) {
                const auto sum = static_cast<std::int32_t>(sum_of(a, b, i, j));
                const auto expected = static_cast<float>(sum);
                rounds = rounds || static_cast<double>(expected) != static_cast<double>(sum);
                wrong += c[static_cast<std::size_t>(i * n + j)] == expected ? 0 : 1;
                const auto scaled = static_cast<float>(
                    static_cast<double>(0x1.8p-20F) * static_cast<double>(expected) + 0.5 * 2);
                const mp::half half((scaled * row_scale[static_cast<std::size_t>(i)]) *
                                    column_scale[static_cast<std::size_t>(j)]);
                wrong += narrow[static_cast<std::size_t>(j * m + i)].bits() == half.bits() ? 0 : 1;
            }
        }
        CHECK(wrong == 0);
        CHECK(rounds);
    }
    std::vector<float> c(m * n, 4.0F);
    mp::gemm(emulated<arch::sm_80>{}, 0.0F, a, b, 0.5F, mp::row_major(c.data(), m, n));
    CHECK(c.back() == 2.0F);
}

TEST_CASE("errors of integer products name the argument") {
    bytes numbers(64);
    std::vector<std::int32_t> c(64, 5);
    const auto a = mp::row_major(numbers.data(), 4, 8);
    const auto b = mp::row_major(numbers.data(), 8, 3);
    const auto error = [&](auto exec, auto left, auto right, auto to) {
        return message_of([&] { mp::gemm(exec, 1, left, right, 0, to); });
    };
    CHECK(error(mp::cpu{.threads = 0}, a, b, mp::row_major(c.data(), 4, 3)) ==
          "mp::gemm: exec.threads is 0; it must be at least 1");
    CHECK(error(mp::cpu{}, a, a, mp::row_major(c.data(), 4, 3)) ==
          "mp::gemm: b.rows is 4; it must equal a.columns, which is 8");
    CHECK(error(emulated<arch::sm_90>{}, a, b, mp::row_major(c.data(), 4, 4)) ==
          "mp::gemm: c.columns is 4; it must equal b.columns, which is 3");
    CHECK(std::all_of(c.begin(), c.end(), [](std::int32_t x) { return x == 5; }));
}

}  // namespace
