// SPDX-License-Identifier: MIT
#include <device/cuda/real_device.hpp>
#include <device/gpu/rank_sum_checks.hpp>

#include <mp/cuda.hpp>

#include <doctest/doctest.h>

TEST_CASE("sums over ranks on the device have the CPU's bits") {
    gpu_test::real_device device;
    gpu_test::check_rank_sums(device);
}
