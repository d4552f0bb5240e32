// SPDX-License-Identifier: MIT
#include "device/gpu/gemm_cases.hpp"

#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>

namespace {

using gpu_gemm_test::check_layouts;
using mp::arch;
using mp::gpu_gemm_kernel;

TEST_CASE("a product of tfloat32 by mma.sync has the bits of the model in every layout, aligned or not") {
    check_layouts<gpu_gemm_kernel::mma, arch::sm_120, mp::tfloat32, mp::tfloat32, float>();
}

}  // namespace
