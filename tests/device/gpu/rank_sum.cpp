// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/gpu.hpp>

#include "device/gpu/rank_sum_checks.hpp"
#include "device/gpu/simulated_device.hpp"

TEST_CASE("sums over ranks on the simulated GPU have the CPU's bits") {
    gpu_test::simulated_device device;
    gpu_test::check_rank_sums(device);
}
