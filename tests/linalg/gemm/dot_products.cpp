// SPDX-License-Identifier: MIT
// Products of bfloat16 under accumulation::fastest, against the instructions' definition written out in
// float.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "linalg/gemm/reference.hpp"

namespace {

using reference::generator;
using reference::matrix;

constexpr auto by_row = mp::storage_order::row_major;
constexpr auto by_column = mp::storage_order::column_major;

/// Subnormal numbers are zeros of the same sign. By bits, since some processors take a hundred cycles to look at one.
float flushed(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return (bits & 0x7f80'0000U) == 0 ? std::bit_cast<float>(bits & 0x8000'0000U) : x;
}

float flushing_fma(float a, float b, float c) {
    return flushed(std::fma(flushed(a), flushed(b), flushed(c)));
}

/// vdpbf16ps: of two neighbours, the odd one first; zeros where there is none.
float dot_of_pairs(const std::vector<float>& a, const std::vector<float>& b) {
    float sum = 0;
    for (std::size_t p = 0; p < a.size(); p += 2) {
        const bool has_odd = p + 1 < a.size();
        sum = flushing_fma(has_odd ? a[p + 1] : 0.0F, has_odd ? b[p + 1] : 0.0F, sum);
        sum = flushing_fma(a[p], b[p], sum);
    }
    return sum;
}

/// Where the columns of B are contiguous and A has few rows: 16 sums, of every sixteenth pair, as a tree.
float dot_of_columns(const std::vector<float>& a, const std::vector<float>& b) {
    std::vector<float> sums;
    for (std::size_t lane = 0; lane < 16; ++lane) {
        std::vector<float> of_a, of_b;
        for (std::size_t p = 2 * lane; p < a.size(); p += 32) {
            for (std::size_t i = p; i < p + 2; ++i) {
                of_a.push_back(i < a.size() ? a[i] : 0.0F);
                of_b.push_back(i < b.size() ? b[i] : 0.0F);
            }
        }
        sums.push_back(dot_of_pairs(of_a, of_b));
    }
    return reference::sum_of_tree(sums);
}

/// tdpbf16ps: 32 steps at a time, the even and the odd ones apart.
float dot_of_tiles(const std::vector<float>& a, const std::vector<float>& b) {
    float sum = 0;
    for (std::size_t first = 0; first < a.size(); first += 32) {
        float apart[2] = {0, 0};
        for (std::size_t p = first; p < std::min(first + 32, a.size()); ++p) {
            apart[p % 2] = flushing_fma(a[p], b[p], apart[p % 2]);
        }
        sum = flushed(sum + flushed(apart[0] + apart[1]));
    }
    return sum;
}

using dot_product = float (*)(const std::vector<float>&, const std::vector<float>&);

template <class A, class B>
void check(mp::cpu exec, dot_product dot, generator& random, double scale) {
    for (int round = 0; round < 12; ++round) {
        // Fewer rows than 5 are fused, and few by contiguous columns have another order. The first k is long.
        const std::ptrdiff_t least = round == 0 ? 17 : 5, most = round == 0 ? 30 : 70;
        const std::ptrdiff_t rows = reference::random_size(random, least, most);
        const std::ptrdiff_t columns = reference::random_size(random, least, most);
        // Every third k is one that whole tiles fill, so that A may be read where it lies.
        const std::ptrdiff_t k = round % 3 == 2 ? 32 * reference::random_size(random, 1, 5)
                                                : reference::random_size(random, 1, round == 0 ? 2500 : 90);
        matrix<A> a(rows, k, round % 2 == 0 ? by_row : by_column, 1);
        matrix<B> b(k, columns, round % 4 < 2 ? by_row : by_column, 2);
        a.fill_random(random);
        b.fill_random(random);
        if (scale != 1) {
            for (std::ptrdiff_t p = 0; p < k; ++p) {
                for (std::ptrdiff_t r = 0; r < rows; ++r) a.set(r, p, a.get(r, p) * scale);
            }
        }
        const std::vector<double> a_values = a.values();
        const std::vector<double> b_values = b.values();
        matrix<float> c(rows, columns, round % 3 == 0 ? by_column : by_row, 3);
        mp::gemm(exec, 1.0F, a.view(), b.view(), 0.0F, c.view());
        // The same, rounded on its way to memory.
        matrix<mp::bfloat16> narrow(rows, columns, round % 2 == 0 ? by_column : by_row, 1);
        mp::gemm(exec, 1.0F, a.view(), b.view(), 0.0F, narrow.view());
        std::size_t different = 0;
        std::size_t rounded_differently = 0;
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            for (std::ptrdiff_t j = 0; j < columns; ++j) {
                std::vector<float> row;
                std::vector<float> column;
                for (std::ptrdiff_t p = 0; p < k; ++p) {
                    row.push_back(static_cast<float>(a_values[static_cast<std::size_t>(r * k + p)]));
                    column.push_back(static_cast<float>(b_values[static_cast<std::size_t>(p * columns + j)]));
                }
                const auto expected = static_cast<double>(dot(row, column));
                different += reference::same_value(c.get(r, j), expected) ? 0U : 1U;
                const double rounded = reference::rounded(reference::format_of<mp::bfloat16>, expected);
                rounded_differently += reference::same_value(narrow.get(r, j), rounded) ? 0U : 1U;
            }
        }
        CHECK(different == 0);
        CHECK(rounded_differently == 0);
        CHECK(c.surroundings_untouched());
        CHECK(narrow.surroundings_untouched());
    }
}

void check_types(mp::instruction_set isa, dot_product dot, const char* kernel) {
    const mp::cpu exec{.instructions = isa};
    if (mp::processor_instruction_set() < isa) {
        MESSAGE("the processor has no " << std::string(mp::name_of(isa)));
        return;
    }
    CHECK(mp::gemm_kernel_name<mp::bfloat16, mp::bfloat16>(exec) == kernel);
    CHECK(mp::gemm_kernel_name<mp::float8_e4m3fn, mp::float8_e5m2>(exec) == kernel);
    CHECK(mp::gemm_kernel_name<float, mp::bfloat16>(exec) != kernel);
    generator random(1);
    check<mp::bfloat16, mp::bfloat16>(exec, dot, random, 1);
    check<mp::bfloat16, mp::bfloat16>(exec, dot, random, 0x1p-126);  // subnormal operands and sums
    check<mp::float8_e4m3fn, mp::float8_e5m2>(exec, dot, random, 1);
    check<mp::bfloat16, mp::float8_e4m3fn>(exec, dot, random, 0x1p-122);
}

TEST_CASE("with AVX512_BF16, products of bfloat16 are those of vdpbf16ps, pair after pair") {
    check_types(mp::instruction_set::avx512_bf16, &dot_of_pairs, "cpu.bf16.avx512_bf16.12x32");
}

/// Few rows of A, by contiguous columns of B, and the same transposed.
template <class A>
void check_columns(std::ptrdiff_t rows, std::ptrdiff_t k, double scale, generator& random) {
    const mp::cpu exec{.instructions = mp::instruction_set::avx512_bf16};
    const std::ptrdiff_t columns = 16 * (8192 / k / 16 + 1) + 5;
    matrix<A> a(rows, k, by_row, 1);
    matrix<mp::bfloat16> b(k, columns, by_column, 3);
    a.fill_random(random);
    b.fill_random(random);
    for (std::ptrdiff_t p = 0; scale != 1 && p < k; ++p) {
        for (std::ptrdiff_t r = 0; r < rows; ++r) a.set(r, p, a.get(r, p) * scale);
    }
    // What lies behind a column, here the next one, plays no part.
    for (std::ptrdiff_t j = 1; j < columns; j += 3) b.set(0, j, std::numeric_limits<double>::infinity());
    const auto size = static_cast<std::size_t>(rows * columns);
    std::vector<float> c(size), transposed(size);
    std::vector<mp::bfloat16> narrow(size);
    mp::gemm(exec, 1.0F, a.view(), b.view(), 0.0F, mp::row_major(c.data(), rows, columns));
    mp::gemm(exec, 1.0F, mp::transposed(b.view()), mp::transposed(a.view()), 0.0F,
             mp::column_major(transposed.data(), columns, rows));
    mp::gemm(exec, 1.0F, a.view(), b.view(), 0.0F, mp::row_major(narrow.data(), rows, columns));
    std::size_t different = 0;
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        for (std::ptrdiff_t j = 0; j < columns; ++j) {
            std::vector<float> row, column;
            for (std::ptrdiff_t p = 0; p < k; ++p) {
                row.push_back(static_cast<float>(a.get(r, p)));
                column.push_back(static_cast<float>(b.get(p, j)));
            }
            const auto expected = static_cast<double>(dot_of_columns(row, column));
            const auto i = static_cast<std::size_t>(r * columns + j);
            different += reference::same_value(static_cast<double>(c[i]), expected) ? 0U : 1U;
            different += reference::same_value(static_cast<double>(transposed[i]), expected) ? 0U : 1U;
            different +=
                reference::same_value(reference::value_of(narrow[i]),
                                      reference::rounded(reference::format_of<mp::bfloat16>, expected))
                    ? 0U
                    : 1U;
        }
    }
    CAPTURE(rows);
    CAPTURE(k);
    CHECK(different == 0);
}

TEST_CASE("with AVX512_BF16, some rows by contiguous columns are 16 sums of every sixteenth pair") {
    if (mp::processor_instruction_set() < mp::instruction_set::avx512_bf16) {
        MESSAGE("the processor has no AVX512_BF16");
        return;
    }
    generator random(4);
    for (const std::ptrdiff_t rows : {5, 8, 13, 16}) {
        for (const std::ptrdiff_t k : {32, 33, 62, 511, 1024, 1025, 1061, 2113}) {
            check_columns<mp::bfloat16>(rows, k, 1, random);
        }
    }
    check_columns<mp::bfloat16>(7, 301, 0x1p-126, random);  // subnormal operands and sums
    check_columns<mp::bfloat16>(7, 1301, 0x1p-124, random);
    check_columns<mp::float8_e4m3fn>(6, 700, 1, random);
}

TEST_CASE("with AMX, products of bfloat16 are those of tdpbf16ps, 32 steps at a time") {
    check_types(mp::instruction_set::amx, &dot_of_tiles, "cpu.bf16.amx.32x32");
}

TEST_CASE("under accumulation::ordered, products of bfloat16 have the same bits on every instruction set") {
    generator random(2);
    matrix<mp::bfloat16> a(45, 700, by_row, 1);
    matrix<mp::bfloat16> b(700, 61, by_column, 1);
    a.fill_random(random);
    b.fill_random(random);
    for (std::ptrdiff_t p = 0; p < 700; p += 3) a.set(7, p, std::ldexp(a.get(7, p), -126));
    matrix<float> first(45, 61, by_row, 0);
    mp::gemm(mp::cpu{.instructions = mp::instruction_set::portable, .products = mp::accumulation::ordered},
             1.0F, a.view(), b.view(), 0.0F, first.view());
    for (mp::cpu exec : reference::executors()) {
        if (exec.products != mp::accumulation::ordered) continue;
        for (const int threads : {1, 3}) {
            exec.threads = threads;
            matrix<float> c(45, 61, by_row, 0);
            mp::gemm(exec, 1.0F, a.view(), b.view(), 0.0F, c.view());
            CHECK(c.bytes() == first.bytes());
        }
    }
}

TEST_CASE("the number of threads changes no bit of dot products") {
    generator random(3);
    matrix<mp::bfloat16> a(150, 710, by_row, 0);
    matrix<mp::bfloat16> b(710, 170, by_row, 0);
    a.fill_random(random);
    b.fill_random(random);
    for (mp::cpu exec : reference::executors()) {
        exec.threads = 1;
        matrix<float> first(150, 170, by_row, 0);
        mp::gemm(exec, 1.0F, a.view(), b.view(), 0.0F, first.view());
        for (const int threads : {2, 5}) {
            exec.threads = threads;
            matrix<float> c(150, 170, by_row, 0);
            mp::gemm(exec, 1.0F, a.view(), b.view(), 0.0F, c.view());
            CHECK(c.bytes() == first.bytes());
        }
    }
}

}  // namespace
