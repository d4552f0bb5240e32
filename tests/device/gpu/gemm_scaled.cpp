// SPDX-License-Identifier: MIT
#include "device/gpu/gemm_scaled_cases.hpp"
#include "larger_error.hpp"

#include <mp/error.hpp>
#include <mp/float8.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace {

using gpu_gemm_test::check_scaled;
using gpu_gemm_test::check_scaled_layouts;
using gpu_gemm_test::groups;
using gpu_gemm_test::matrix;
using gpu_gemm_test::normal_numbers;
using gpu_gemm_test::orders;
using gpu_gemm_test::random_scales;
using mp::arch;
using mp::gpu_gemm_kernel;

TEST_CASE("a scaled product by mma.sync has the bits of the model in every layout, aligned or not") {
    check_scaled_layouts<gpu_gemm_kernel::mma, arch::sm_89, mp::float8_e4m3fn, mp::float8_e5m2, float>();
}

TEST_CASE("scaled products of all ks and large tiles have the bits of the model") {
    for (const std::ptrdiff_t k : {1, 64, 65, 127, 128, 129, 192, 256, 300, 1000}) {
        check_scaled<gpu_gemm_kernel::mma, arch::sm_89, mp::float8_e4m3fn, mp::float8_e5m2, float>(
            {20, 30, k}, {.b_order = orders[1], .seed = 3}, {}, 4);
    }
    for (const std::ptrdiff_t b_vectors_per_scale : {1, 64, 128}) {
        check_scaled<gpu_gemm_kernel::mma, arch::sm_89, mp::float8_e4m3fn, mp::float8_e5m2, float>(
            {200, 270, 400}, {.b_order = orders[1], .seed = 5},
            {.a_vectors_per_scale = 1, .b_vectors_per_scale = b_vectors_per_scale, .tile_rows = 128}, 5);
    }
}

/// What a scaled product means, in double, and the sum of the magnitudes of its products.
struct plain_result {
    std::vector<double> values;
    std::vector<double> magnitudes;
};
template <class A, class B>
plain_result plain_product(const matrix<A>& a, const matrix<float>& a_scales,
                           std::ptrdiff_t a_vectors_per_scale, const matrix<B>& b,
                           const matrix<float>& b_scales, std::ptrdiff_t b_vectors_per_scale) {
    plain_result result;
    for (std::ptrdiff_t i = 0; i < a.view.rows; ++i) {
        for (std::ptrdiff_t j = 0; j < b.view.columns; ++j) {
            double sum = 0;
            double magnitude = 0;
            for (std::ptrdiff_t p = 0; p < a.view.columns; ++p) {
                const double x = static_cast<double>(static_cast<float>(a.view(i, p))) *
                                 static_cast<double>(a_scales.view(i / a_vectors_per_scale, p / 128));
                const double y = static_cast<double>(static_cast<float>(b.view(p, j))) *
                                 static_cast<double>(b_scales.view(p / 128, j / b_vectors_per_scale));
                sum += x * y;
                magnitude += std::fabs(x * y);
            }
            result.values.push_back(sum);
            result.magnitudes.push_back(magnitude);
        }
    }
    return result;
}

template <class Executor>
void check_meaning(const Executor& exec, double unit) {
    for (const std::ptrdiff_t k : {5, 128, 200, 700}) {
        for (const std::ptrdiff_t lines : {1, 4, 128}) {
            normal_numbers draw(2);
            random_scales draw_scale(3);
            const matrix<mp::float8_e4m3fn> a(270, k, orders[0], 0, 0, draw);
            const matrix<mp::float8_e5m2> b(k, 9, orders[1], 0, 0, draw);
            const matrix<float> a_scales(groups(270, lines), groups(k, 128), orders[1], 0, 3, draw_scale);
            const matrix<float> b_scales(groups(k, 128), groups(9, 2), orders[0], 0, 1, draw_scale);
            matrix<float> c(270, 9, orders[0], 0, 0, draw);
            mp::gemm_scaled(exec, 1, a.view, {a_scales.view, lines}, b.view, {b_scales.view, 2}, 0, c.view);
            const plain_result plain = plain_product(a, a_scales, lines, b, b_scales, 2);
            double worst = 0;
            for (std::ptrdiff_t i = 0; i < 270; ++i) {
                for (std::ptrdiff_t j = 0; j < 9; ++j) {
                    const auto n = static_cast<std::size_t>(i * 9 + j);
                    worst = tests::larger_error(
                        worst,
                        std::fabs(static_cast<double>(c.view(i, j)) - plain.values[n]) / plain.magnitudes[n]);
                }
            }
            // Of a block every few products lose as much as `unit` of the largest of them.
            CHECK_MESSAGE(worst < unit * static_cast<double>(std::min<std::ptrdiff_t>(k, 128)), "worst ",
                          worst, ", k ", k, ", lines ", lines);
            CHECK(worst > 0);
        }
    }
}

TEST_CASE("a scaled product means what it says, on the models and on the CPU") {
    check_meaning(mp::emulated<arch::sm_89>{}, 0x1p-13);
    check_meaning(mp::emulated<arch::sm_90>{.float8 = mp::float8_unit::through_half}, 0x1p-23);
    check_meaning(mp::emulated<arch::sm_120>{.threads = 2}, 0x1p-23);
    check_meaning(mp::cpu{}, 0x1p-23);
    check_meaning(mp::cpu{.threads = 2, .products = mp::accumulation::ordered}, 0x1p-23);
}

TEST_CASE("scaled products of slices of p are those of whole blocks, added in order") {
    for (const int splits : {2, 3, 5, 13}) {  // 13 steps of 64, 7 blocks of 128
        check_scaled<gpu_gemm_kernel::mma, arch::sm_89, mp::float8_e4m3fn, mp::float8_e5m2, float>(
            {20, 30, 800}, {.b_order = orders[1], .alpha = 1.5F, .beta = 0.25F, .seed = 6},
            {.splits = splits}, 6);
    }
}

TEST_CASE("scales that do not fit are refused by name, on every executor alike, and nothing is written") {
    const std::vector<mp::float8_e4m3fn> ones(300 * 4, mp::float8_e4m3fn(1));
    const std::vector<float> scales(64, 1.0F);
    std::vector<float> c(16, 5.0F);
    const auto a = mp::row_major(ones.data(), 4, 300);
    const std::vector<mp::float8_e5m2> others(300 * 4, mp::float8_e5m2(1));
    const auto b = mp::column_major(others.data(), 300, 4);
    const auto message = [&](const mp::k_block_scales& a_scales, const mp::k_block_scales& b_scales) {
        std::vector<std::string> texts;
        const auto attempt = [&](auto exec) {
            try {
                mp::gemm_scaled(exec, 1, a, a_scales, b, b_scales, 0, mp::row_major(c.data(), 4, 4));
                texts.emplace_back("nothing");
            } catch (const mp::argument_error& error) {
                texts.emplace_back(error.what());
            }
        };
        attempt(mp::cpu{});
        attempt(mp::emulated<arch::sm_89>{});
        attempt(mp::simulated_gpu<arch::sm_89>{});
        CHECK(texts[1] == texts[0]);
        CHECK(texts[2] == texts[0]);
        return texts[0];
    };
    const auto matrix_of = [&](std::ptrdiff_t rows, std::ptrdiff_t columns) {
        return mp::row_major(scales.data(), rows, columns);
    };
    CHECK(message({matrix_of(3, 3)}, {matrix_of(3, 1), 128}) ==
          "mp::gemm_scaled: a_scales.values.rows is 3; it must equal a.rows / a_scales.vectors_per_scale, "
          "rounded "
          "up, which is 4");
    CHECK(
        message({matrix_of(4, 2)}, {matrix_of(3, 1), 128}) ==
        "mp::gemm_scaled: a_scales.values.columns is 2; it must equal a.columns / 128, rounded up, which is "
        "3");
    CHECK(message({matrix_of(2, 3), 2}, {matrix_of(4, 1), 128}) ==
          "mp::gemm_scaled: b_scales.values.rows is 4; it must equal b.rows / 128, rounded up, which is 3");
    CHECK(message({matrix_of(4, 3)}, {matrix_of(3, 4), 128}) ==
          "mp::gemm_scaled: b_scales.values.columns is 4; it must equal b.columns / "
          "b_scales.vectors_per_scale, "
          "rounded up, which is 1");
    CHECK(message({matrix_of(4, 3), 3}, {matrix_of(3, 4)}) ==
          "mp::gemm_scaled: a_scales.vectors_per_scale is 3; it must be a power of two, such as 1 or 128");
    CHECK(message({matrix_of(4, 3), 0}, {matrix_of(3, 4)}) ==
          "mp::gemm_scaled: a_scales.vectors_per_scale is 0; it must be a power of two, such as 1 or 128");
    CHECK(message({mp::matrix_view<const float>{nullptr, 4, 3, 3}}, {matrix_of(3, 4)}) ==
          "mp::gemm_scaled: a_scales.values.data is null; it must point to a matrix of 4 x 3 elements");
    const float* const inside = c.data();
    CHECK(message({matrix_of(4, 3)}, {mp::row_major(inside, 3, 1), 128}).find("overlap b_scales.values") !=
          std::string::npos);
    CHECK(c == std::vector<float>(16, 5.0F));
    CHECK(message({matrix_of(4, 3)}, {matrix_of(3, 1), 128}) == "nothing");
    CHECK(c == std::vector<float>(16, 300.0F));
}

TEST_CASE("scales are not read where the operands are not") {
    std::vector<float> c(4, 8.0F);
    const std::vector<mp::float8_e4m3fn> none(1);
    const mp::k_block_scales no_scales{mp::row_major(static_cast<const float*>(nullptr), 2, 0)};
    const mp::k_block_scales none_either{mp::row_major(static_cast<const float*>(nullptr), 0, 2)};
    const auto run = [&](auto exec) {
        mp::gemm_scaled(exec, 1, mp::row_major(none.data(), 2, 0), no_scales,
                        mp::row_major(none.data(), 0, 2), none_either, 0.5F, mp::row_major(c.data(), 2, 2));
    };
    run(mp::cpu{});
    run(mp::emulated<arch::sm_89>{});
    CHECK(c == std::vector<float>(4, 2.0F));
}

}  // namespace
