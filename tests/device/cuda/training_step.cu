// SPDX-License-Identifier: MIT
#include <device/cuda/real_device.hpp>
#include <device/gpu/tensor_scaling_checks.hpp>
#include <device/gpu/training_step_checks.hpp>

#include <mp/cuda.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace {

TEST_CASE(
    "groups, one norm, a schedule and skipped steps: the device has the CPU's bits, and its checkpoint") {
    gpu_test::real_device device;
    gpu_test::training_step::check_against_host(device.exec());
}

TEST_CASE("a graph of a step is launched again, with the CPU's bits") {
    gpu_test::real_device device;
    mp::cuda_stream exec = device.exec();
    exec.programmatic_launch = true;
    gpu_test::training_step::check_captured(exec);
}

TEST_CASE("a parameter that is not used stays where it is, and masters follow weights that are written") {
    gpu_test::real_device device;
    for (const bool captured : {false, true}) {
        gpu_test::training_step::check_unused(device.exec(), captured);
        gpu_test::training_step::check_written_weights(device.exec(), captured);
    }
    for (const auto how : {mp::weight_update::kahan, mp::weight_update::split}) {
        gpu_test::training_step::check_written_without_masters(device.exec(), how);
    }
}

TEST_CASE("gradients are too large by the learning rates that the device reads") {
    gpu_test::real_device device;
    for (const bool captured : {false, true}) {
        gpu_test::training_step::check_limits(device.exec(), captured);
    }
}

TEST_CASE("a graph is updated where its launches are the same, and made anew where they are not") {
    gpu_test::real_device device;
    const mp::cuda_stream stream = device.exec();
    mp::tensor<float> losses(stream, 1, 1);
    mp::gpu_loss_log log(stream, 8);
    losses.copy_from(stream, std::vector{0.5F});
    mp::cuda_graph graph;
    const auto add = [&](int times) {
        return graph.capture(stream, [&] {
            for (int i = 0; i < times; ++i) log.add(losses.values());
        });
    };
    CHECK_THROWS_AS(graph.launch(stream), mp::state_error);
    CHECK_FALSE(add(1));
    CHECK(graph.nodes() == 1);
    graph.launch(stream);
    CHECK(add(1));
    graph.launch(stream);
    CHECK_FALSE(add(2));
    CHECK(graph.nodes() == 2);
    graph.launch(stream);
    CHECK(log.read().size() == 4);
    // What waits is refused, and the stream goes on.
    CHECK_THROWS_AS(graph.capture(stream, [&] { static_cast<void>(log.read()); }), mp::cuda_error);
    graph.launch(stream);
    CHECK(log.read() == std::vector{0.5, 0.5});
}

TEST_CASE("tensor scaling: codes, windows and blocks on the device are the CPU's") {
    const gpu_test::real_device device;
    gpu_test::tensor_scaling::check_codes(device.exec());
    gpu_test::tensor_scaling::check_windows(device.exec(), {1, 2, 3, 258}, 3);
    gpu_test::tensor_scaling::check_mx(device.exec());
}

TEST_CASE("tensor scaling: a layer with operands of 8 bits, step by step and as a graph") {
    mp::unique_cuda_stream stream;
    mp::device_workspace workspace(stream);
    const mp::cuda_stream exec{stream.get().stream, &workspace};
    gpu_test::tensor_scaling::check_layer<mp::layers::float8_delayed_scaling>(exec);
    gpu_test::tensor_scaling::check_captured<mp::layers::float8_delayed_scaling>(exec);
}

}  // namespace
