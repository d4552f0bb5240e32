// SPDX-License-Identifier: MIT
#include "device/gpu/gemm_cases.hpp"

#include <mp/float8.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>

namespace {

using gpu_gemm_test::check;
using gpu_gemm_test::check_layouts;
using gpu_gemm_test::normal_numbers;
using mp::arch;
using mp::gpu_gemm_kernel;

TEST_CASE("a product of both 8-bit types has the bits of the model in every layout, aligned or not") {
    check_layouts<gpu_gemm_kernel::mma, arch::sm_89, mp::float8_e4m3fn, mp::float8_e5m2, mp::half>();
}

TEST_CASE("sums of 8 bits on sm_89 are promoted every 128 products") {
    check<gpu_gemm_kernel::mma, arch::sm_89, mp::float8_e4m3fn, mp::float8_e4m3fn, float>({20, 30, 1000}, {},
                                                                                          normal_numbers(3));
    check<gpu_gemm_kernel::mma, arch::sm_89, mp::float8_e4m3fn, mp::float8_e4m3fn, float>({70, 150, 257}, {},
                                                                                          normal_numbers(4));
}

TEST_CASE("a product of 8 bits by mma.sync of sm_90 has the bits of the way through half") {
    check<gpu_gemm_kernel::mma, arch::sm_90, mp::float8_e5m2, mp::float8_e5m2, float>({20, 30, 100}, {},
                                                                                      normal_numbers(5));
}

}  // namespace
