// SPDX-License-Identifier: MIT
// Products by wgmma whose C is written by TMA, and those beside them that are not.
#include "device/gpu/gemm_cases.hpp"

#include <mp/base/bits.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace {

using gpu_gemm_test::check;
using gpu_gemm_test::normal_numbers;
using gpu_gemm_test::orders;
using mp::arch;
using mp::gpu_gemm_kernel;

constexpr auto row = mp::storage_order::row_major;
constexpr auto column = mp::storage_order::column_major;

/// Mostly numbers, of which some products overflow bfloat16 and half, and now and then infinity and NaN.
class any_numbers {
public:
    explicit any_numbers(unsigned seed) : numbers_(seed) {}
    float operator()() {
        ++count_;
        const float x = numbers_();
        if (count_ % 4001 == 0) return std::numeric_limits<float>::infinity();
        if (count_ % 5003 == 0) return std::numeric_limits<float>::quiet_NaN();
        return count_ % 97 == 0 ? x * 60000.0F : x;
    }

private:
    normal_numbers numbers_;
    int count_ = 0;
};

TEST_CASE("tiles of 16 bits, at the edges of C, too, have the bits of the model") {
    // Blocks have several tiles one after the other, and lie below C with a part of them or with all.
    std::uint64_t seed = 0;
    for (const auto c_order : {row, column}) {
        for (const int cluster_blocks : {2, 1}) {
            check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::bfloat16, mp::bfloat16, mp::bfloat16>(
                {264, 520, 72},
                {.b_order = column,
                 .c_order = c_order,
                 .alpha = 0.75F,
                 .seed = ++seed,
                 .multiprocessors = 2,
                 .cluster_blocks = cluster_blocks},
                any_numbers(3));
        }
    }
    check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::half, mp::half, mp::half>(
        {136, 264, 72},
        {.b_order = column, .alpha = 3, .seed = ++seed, .multiprocessors = 1, .cluster_blocks = 1},
        any_numbers(4));
}

TEST_CASE("tiles of 8 bits and of floats have the bits of the model") {
    for (const int cluster_blocks : {2, 1}) {
        const gpu_gemm_test::setting with{.b_order = column,
                                          .alpha = 0.125F,
                                          .seed = 5,
                                          .multiprocessors = 2,
                                          .cluster_blocks = cluster_blocks};
        check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::float8_e4m3fn, mp::float8_e4m3fn, mp::float8_e4m3fn>(
            {272, 272, 160}, with, any_numbers(5));
        check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::float8_e5m2, mp::float8_e5m2, float>(
            {272, 272, 160}, with, any_numbers(6));
    }
}

TEST_CASE("other ends of a product have the bits of the model, inside of C and at its edges") {
    std::vector<float> bias(400);
    normal_numbers draw(6);
    for (float& x : bias) x = draw();
    std::uint64_t seed = 0;
    for (const auto c_order : {row, column}) {
        check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::bfloat16, mp::bfloat16, mp::bfloat16>(
            {264, 400, 72},
            {.b_order = column, .c_order = c_order, .alpha = 0.75F, .seed = ++seed, .cluster_blocks = 1},
            any_numbers(7),
            mp::compose(mp::bias_per_column(std::span<const float>(bias)), mp::relu_epilogue{}));
        check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::bfloat16, mp::bfloat16, mp::bfloat16>(
            {136, 400, 72},
            {.b_order = column, .c_order = c_order, .beta = 1, .seed = ++seed, .cluster_blocks = 1},
            any_numbers(8));
    }
    // Few rows, which pass through shared memory transposed.
    for (const std::ptrdiff_t rows : {3, 40}) {
        check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::bfloat16, mp::bfloat16, mp::bfloat16>(
            {rows, 200, 72}, {.b_order = column, .alpha = 0.75F, .beta = 1, .seed = ++seed}, any_numbers(9),
            mp::compose(mp::bias_per_column(std::span<const float>(bias).first(200)), mp::relu_epilogue{}));
    }
}

TEST_CASE("the sum of two floats has the same bits rounded once and through double") {
    std::mt19937 random(9);
    const auto bits = [&] { return static_cast<std::uint32_t>(random()); };
    std::size_t different = 0;
    for (int i = 0; i < 2000000; ++i) {
        // Of any sign, with few bits now and then; up to 63 places apart.
        const std::uint32_t fraction = i % 3 == 0 ? (0x7FFFFFU << (i % 23)) & 0x7FFFFFU : 0x7FFFFFU;
        const std::uint32_t exponent = bits() % 192;
        const std::uint32_t a = (bits() & (0x80000000U | fraction)) | (exponent + bits() % 64) << 23;
        const std::uint32_t b = (bits() & (0x80000000U | fraction)) | exponent << 23;
        const auto x = mp::detail::bit_cast<float>(a);
        const auto y = mp::detail::bit_cast<float>(b);
        const float once = mp::detail::float_add(x, y);
        const auto twice = static_cast<float>(static_cast<double>(x) + static_cast<double>(y));
        different += mp::detail::bit_cast<std::uint32_t>(once) != mp::detail::bit_cast<std::uint32_t>(twice);
    }
    CHECK(different == 0);
}

TEST_CASE("slices of k and batches by wgmma have the bits of mma.sync") {
    constexpr std::ptrdiff_t k = 200;
    constexpr std::ptrdiff_t count = 2;
    normal_numbers draw(8);
    // Lines of sums begin at multiples of 16 bytes, or not; few rows are computed as the transpose of C.
    using extent = std::pair<std::ptrdiff_t, std::ptrdiff_t>;
    for (const auto& [rows, columns] :
         {extent{136, 136}, extent{136, 132}, extent{136, 133}, extent{33, 136}, extent{7, 133}}) {
        std::vector<mp::bfloat16> a(static_cast<std::size_t>(rows * k * count));
        std::vector<mp::bfloat16> b(static_cast<std::size_t>(k * columns * count));
        for (mp::bfloat16& x : a) x = mp::bfloat16(draw());
        for (mp::bfloat16& x : b) x = mp::bfloat16(draw());
        const mp::simulated_gpu<arch::sm_90> gpu{.seed = 1};
        const auto product = [&]<gpu_gemm_kernel Kernel>(int splits) {
            std::vector<mp::bfloat16> c(static_cast<std::size_t>(rows * columns * count), mp::bfloat16(7));
            auto plan = mp::plan_gemm<mp::bfloat16, Kernel>(gpu, rows, columns, k, count, {.splits = splits});
            plan.gpu.multiprocessors = 3;
            std::vector<float> workspace(plan.workspace_size(), std::nanf(""));
            mp::gemm_batched<Kernel>(gpu, plan, 2,
                                     mp::matrix_batch{mp::row_major(a.data(), rows, k), rows * k},
                                     mp::matrix_batch{mp::column_major(b.data(), k, columns), k * columns}, 0,
                                     mp::matrix_batch{mp::row_major(c.data(), rows, columns), rows * columns},
                                     mp::identity_epilogue{}, std::span(workspace));
            return c;
        };
        for (const int splits : {1, 2, 4}) {
            CHECK(product.operator()<gpu_gemm_kernel::wgmma>(splits) ==
                  product.operator()<gpu_gemm_kernel::mma>(splits));
        }
        // Of three slices of four steps the last one is empty.
        CHECK(product.operator()<gpu_gemm_kernel::wgmma>(3) == product.operator()<gpu_gemm_kernel::wgmma>(2));
    }
}

}  // namespace
