// SPDX-License-Identifier: MIT
#include "device/gpu/gemm_cases.hpp"

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>

namespace {

using gpu_gemm_test::check;
using gpu_gemm_test::check_layouts;
using gpu_gemm_test::normal_numbers;
using mp::arch;
using mp::gpu_gemm_kernel;

TEST_CASE("a product by wmma has the bits of the model, wherever the elements of fragments lie") {
    check_layouts<gpu_gemm_kernel::wmma, arch::sm_75, mp::half, mp::half, mp::half>();
    check_layouts<gpu_gemm_kernel::wmma, arch::sm_90, mp::tfloat32, mp::tfloat32, float>();
    check<gpu_gemm_kernel::wmma, arch::sm_80, mp::bfloat16, mp::bfloat16, float>({130, 140, 100}, {.seed = 5},
                                                                                 normal_numbers(5));
}

TEST_CASE("a product by ordinary instructions has the bits of the CPU's ordered product") {
    check_layouts<gpu_gemm_kernel::simt, arch::sm_75, mp::bfloat16, mp::bfloat16, float>();
}

}  // namespace
