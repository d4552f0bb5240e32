// SPDX-License-Identifier: MIT
#include <cuda/real_device.hpp>
#include <gpu/tensor_scaling_checks.hpp>

#include <mp/cuda.hpp>

#include <doctest/doctest.h>

namespace {

namespace checks = gpu_test::tensor_scaling;

TEST_CASE("tensor scaling: codes, windows and blocks on the device are the CPU's") {
    const gpu_test::real_device device;
    checks::check_codes(device.exec());
    checks::check_windows(device.exec(), {1, 2, 3, 258}, 3);
    checks::check_mx(device.exec());
}

TEST_CASE("tensor scaling: a layer with operands of 8 bits, step by step and as a graph") {
    mp::unique_cuda_stream stream;
    mp::device_workspace workspace(stream);
    const mp::cuda_stream exec{stream.get().stream, &workspace};
    checks::check_layer<mp::layers::float8_delayed_scaling>(exec);
    checks::check_captured<mp::layers::float8_delayed_scaling>(exec);
}

}  // namespace
