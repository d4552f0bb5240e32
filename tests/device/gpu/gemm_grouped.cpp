// SPDX-License-Identifier: MIT
#include <mp/device/gpu/gemm_grouped.hpp>

#include <mp/bfloat16.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/simt.hpp>
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "linalg/gemm/arrays.hpp"

namespace {

using gemm_test::numbers;
using gemm_test::same;
using mp::arch;
using mp::half;
using offsets = std::vector<std::int32_t>;

template <class Value>
mp::matrix_view<const Value> view_of(const std::vector<Value>& values, std::ptrdiff_t rows,
                                     std::ptrdiff_t columns, bool by_rows) {
    return by_rows ? mp::row_major(values.data(), rows, columns)
                   : mp::column_major(values.data(), rows, columns);
}

/// Both orders of a and b by turns; rows of c in groups as given.
template <arch Arch>
void check_rows(const offsets& begins, std::ptrdiff_t rows, std::ptrdiff_t in, std::ptrdiff_t out,
                unsigned number) {
    std::mt19937 random(number);
    const auto count = static_cast<std::ptrdiff_t>(begins.size()) - 1;
    const auto x = numbers<half>(rows * in, random), w = numbers<half>(count * in * out, random);
    const auto bias = numbers<float>(rows, random);
    std::vector<float> y(static_cast<std::size_t>(rows * out), 3.0F), expected = y;
    const auto a = view_of(x, rows, in, number % 2 == 0);
    const mp::matrix_batch b{view_of(w, in, out, number / 2 % 2 == 0), in * out};
    const auto epilogue = mp::bias_per_row(std::span<const float>(bias));
    const mp::simulated_gpu<Arch> gpu{.seed = number};
    mp::gemm_grouped_m(gpu, 1.5F, a, b, begins, 0.5F, mp::row_major(y.data(), rows, out), epilogue);
    mp::gemm_grouped_m(mp::emulated<Arch>{}, 1.5F, a, b, begins, 0.5F,
                       mp::row_major(expected.data(), rows, out), epilogue);
    CAPTURE(number);
    CHECK(same(y, expected));
}

TEST_CASE("groups of rows on the simulated GPU: the bits of the model, rows outside of groups as they were") {
    for (unsigned number = 0; number < 4; ++number) {
        check_rows<arch::sm_80>({0, 7, 7, 90, 91, 160}, 160, 72, 80, number);
        check_rows<arch::sm_80>({3, 3, 40, 77, 77}, 81, 33, 21, number);
    }
    check_rows<arch::sm_80>({0, 300}, 300, 64, 136, 5);
    check_rows<arch::sm_80>({5, 5, 5}, 9, 64, 8, 6);
}

TEST_CASE("offsets in device memory that nobody could check: nothing outside of the matrices") {
    // Matrices in the middle of larger arrays.
    std::mt19937 random(7);
    const auto x = numbers<half>(60 * 16, random), w = numbers<half>(3 * 16 * 8, random);
    const auto a = mp::row_major(x.data() + 20 * 16, 20, 16);
    const mp::matrix_batch b{mp::row_major(w.data(), 16, 8), 16 * 8};
    std::vector<float> y(60 * 8, 5.0F), expected = y;
    const mp::simulated_gpu<arch::sm_80> gpu;
    mp::gemm_grouped_m(gpu, 1, a, b, offsets{-5, 30, 4, 1000}, 0, mp::row_major(y.data() + 20 * 8, 20, 8));
    mp::gemm_grouped_m(mp::emulated<arch::sm_80>{}, 1, a, b, offsets{0, 20, 20, 20}, 0,
                       mp::row_major(expected.data() + 20 * 8, 20, 8));
    CHECK(same(y, expected));
}

TEST_CASE("masked groups on the simulated GPU") {
    constexpr std::ptrdiff_t rows = 70, in = 40, out = 24, count = 4;
    std::mt19937 random(2);
    const auto x = numbers<half>(count * rows * in, random), w = numbers<half>(count * in * out, random);
    for (const bool a_by_rows : {true, false}) {
        std::vector<float> y(count * rows * out, 7.0F), expected = y;
        const mp::matrix_batch a{view_of(x, rows, in, a_by_rows), rows * in},
            b{view_of(w, in, out, !a_by_rows), in * out};
        const mp::matrix_batch c{mp::row_major(y.data(), rows, out), rows * out};
        mp::gemm_masked(mp::simulated_gpu<arch::sm_80>{}, 1, a, b, offsets{5, -3, 1000, 65}, 0, c);
        mp::gemm_masked(mp::emulated<arch::sm_80>{}, 1, a, b, offsets{5, 0, rows, 65}, 0,
                        mp::matrix_batch{mp::row_major(expected.data(), rows, out), rows * out});
        CHECK(same(y, expected));
    }
}

TEST_CASE("groups of k on the simulated GPU: any orders and beginnings, zero where a group has nothing") {
    constexpr std::ptrdiff_t tokens = 150, in = 72, out = 40;
    std::mt19937 random(3);
    const auto x = numbers<half>(tokens * in, random), dy = numbers<half>(tokens * out, random);
    const offsets begins = {2, 50, 50, 53, 150};
    for (unsigned number = 0; number < 8; ++number) {
        std::vector<float> dw(4 * in * out, 2.0F), expected = dw;
        const auto a = view_of(x, in, tokens, number % 2 == 0);
        const auto b = view_of(dy, tokens, out, number / 2 % 2 == 0);
        const auto into = [&](std::vector<float>& to) {
            return mp::matrix_batch{
                number < 4 ? mp::row_major(to.data(), in, out) : mp::column_major(to.data(), in, out),
                in * out};
        };
        // The sum of nothing is a positive zero, whatever alpha is.
        const float alpha = number % 3 == 0 ? -1.0F : 1.0F;
        const float beta = number % 3 == 0 ? 0.0F : 0.5F;
        mp::gemm_grouped_k(mp::simulated_gpu<arch::sm_80>{.seed = number}, alpha, a, b, begins, beta,
                           into(dw));
        mp::gemm_grouped_k(mp::emulated<arch::sm_80>{}, alpha, a, b, begins, beta, into(expected));
        CAPTURE(number);
        CHECK(same(dw, expected));
    }
}

TEST_CASE("errors of products of groups on GPUs") {
    std::vector<half> x(64), w(64);
    std::vector<float> y(64);
    const mp::matrix_batch b{mp::row_major(w.data(), 4, 4), 16};
    const auto message = [](auto call) -> std::string {
        try {
            call();
        } catch (const mp::argument_error& error) {
            return error.what();
        }
        return "";
    };
    CHECK(message([&] {
              mp::gemm_grouped_m(mp::simulated_gpu<arch::sm_80>{}, 1, mp::row_major(x.data(), 8, 4), b,
                                 offsets{0, 8}, 0, mp::column_major(y.data(), 8, 4));
          }) ==
          "mp::gemm_grouped_m: c.order is 'column_major'; it must be row_major: on GPUs groups are of its "
          "rows");
    CHECK(message([&] {
              mp::gemm_grouped_m(mp::simulated_gpu<arch::sm_75>{}, 1, mp::row_major(x.data(), 8, 4), b,
                                 offsets{0, 8}, 0, mp::row_major(y.data(), 8, 4));
          }) ==
          "mp::gemm_grouped_m: exec's capability is 75; it must be at least 80, from which on mma.sync "
          "multiplies operands of "
          "this type");
}

}  // namespace
