// SPDX-License-Identifier: MIT
#include "device/gpu/gemm_cases.hpp"

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <random>
#include <vector>

namespace {

using gpu_gemm_test::check;
using gpu_gemm_test::check_layouts;
using gpu_gemm_test::normal_numbers;
using gpu_gemm_test::orders;
using mp::arch;
using mp::gpu_gemm_kernel;

/// Signed zeros, the largest and the smallest numbers of half, and now and then something that is not finite.
class extreme_numbers {
public:
    float operator()() {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        const float choices[] = {0.0F, -0.0F, 1.0F, -1.0F, 65504.0F, -65504.0F, 5.9604645e-8F, 6.1e-5F, 3.0F};
        switch (random_() % 400) {
            case 0:
                return infinity;
            case 1:
                return -infinity;
            case 2:
                return std::numeric_limits<float>::quiet_NaN();
            default:
                return choices[random_() % 9];
        }
    }

private:
    std::mt19937 random_{2};
};

TEST_CASE("a product of half by mma.sync has the bits of the model in every layout, aligned or not") {
    check_layouts<gpu_gemm_kernel::mma, arch::sm_80, mp::half, mp::half, float>();
    check<gpu_gemm_kernel::mma, arch::sm_80, mp::half, mp::half, float>({40, 50, 60}, {.beta = 1},
                                                                        extreme_numbers());
}

TEST_CASE("a product of bfloat16 by mma.sync has the bits of the model in every layout, aligned or not") {
    check_layouts<gpu_gemm_kernel::mma, arch::sm_90, mp::bfloat16, mp::bfloat16, mp::bfloat16>();
    check<gpu_gemm_kernel::mma, arch::sm_90, mp::bfloat16, mp::bfloat16, mp::bfloat16>(
        {40, 50, 60}, {.beta = 1}, extreme_numbers());
}

TEST_CASE("an epilogue gets every element with its place, whatever the order of C") {
    std::vector<float> bias(45);
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i) - 20;
    for (const auto c_order : orders) {
        check<gpu_gemm_kernel::mma, arch::sm_80, mp::half, mp::half, mp::half>(
            {37, 45, 70}, {.c_order = c_order}, normal_numbers(4),
            mp::compose(mp::bias_per_column(bias), mp::relu_epilogue{}));
    }
}

}  // namespace
