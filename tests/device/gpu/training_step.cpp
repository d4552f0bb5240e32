// SPDX-License-Identifier: MIT
// What a step of training on a GPU is put together from: groups of parameters with their masters and moments,
// inputs at fixed places, a step that is captured and launched again, losses that stay there, and checkpoints.
#include "device/gpu/training_step_checks.hpp"
#include "device/gpu/watched.hpp"

#include <mp/gpu.hpp>
#include <mp/half.hpp>
#include <mp/optim.hpp>
#include <mp/train/training/checkpoint.hpp>
#include <mp/train/training/parameter_store.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/training/test_folder.hpp"

namespace {

using gpu_test::training_step::model;
using gpu_test::training_step::plain;
using gpu_test::training_step::same_bits;
using mp::half;
using simulated = mp::simulated_gpu<mp::arch::sm_75>;

TEST_CASE("groups, one norm, a schedule and skipped steps: the CPU's bits, and its checkpoint") {
    gpu_test::training_step::check_against_host(gpu_test::watched(simulated{.seed = 5}));
}

TEST_CASE("a step that is captured and launched again has the bits of one that is not") {
    mp::simt::launch_recorder recorder;
    gpu_test::training_step::check_captured(simulated{.recorder = &recorder});
}

TEST_CASE("a parameter that is not used stays where it is, and masters follow weights that are written") {
    for (const bool captured : {false, true}) {
        mp::simt::launch_recorder recorder;
        gpu_test::training_step::check_unused(simulated{.recorder = &recorder}, captured);
        gpu_test::training_step::check_written_weights(simulated{.recorder = &recorder}, captured);
    }
    gpu_test::training_step::check_refused_counts(simulated{});
    for (const auto how : {mp::weight_update::kahan, mp::weight_update::split}) {
        gpu_test::training_step::check_written_without_masters(simulated{}, how);
    }
}

TEST_CASE("gradients are too large by the learning rates that the device reads") {
    for (const bool captured : {false, true}) {
        mp::simt::launch_recorder recorder;
        gpu_test::training_step::check_limits(simulated{.recorder = &recorder}, captured);
    }
}

TEST_CASE("dropout drops other elements when the number in memory is another one") {
    mp::simt::launch_recorder recorder;
    const simulated exec{.recorder = &recorder};
    mp::step_inputs inputs(exec);
    const auto counter = inputs.add<std::uint64_t>(1);
    inputs.build();
    mp::tensor<half> x(exec, 6, 8), y(exec, 6, 8), expected(6, 8);
    x.copy_from(exec, std::vector<half>(48, half(1)));
    const mp::matrix_view<const half> in = x.view();
    mp::replayed_step step(exec);
    std::vector<std::vector<half>> seen;
    for (std::uint64_t i = 0; i < 5; ++i) {
        CAPTURE(i);
        const std::uint64_t added = i / 2 * 1001;  // the same twice
        inputs.host(counter)[0] = added;
        inputs.send();
        step.run([&] {
            mp::ops::dropout<mp::autocast::off>(
                exec, in, y.view(),
                {.probability = 0.4F, .seed = 9, .offset = 5, .added_offset = inputs.device(counter).data()});
        });
        mp::ops::dropout<mp::autocast::off>(mp::cpu{}, in, expected.view(),
                                            {.probability = 0.4F, .seed = 9, .offset = 5 + added});
        CHECK(same_bits<half>(y.values(), expected.values()));
        seen.push_back(y.to_host(exec));
    }
    CHECK(seen[0] == seen[1]);
    CHECK(seen[2] == seen[3]);
    CHECK(seen[1] != seen[2]);
    CHECK(seen[3] != seen[4]);
}

TEST_CASE("losses are kept for the last steps, with micro batches added up") {
    mp::simt::launch_recorder recorder;
    const simulated exec{.recorder = &recorder};
    mp::gpu_loss_log log(exec, 4);
    mp::tensor<float> losses(exec, 1, 2);
    CHECK(log.read().empty());
    mp::replayed_step step(exec);
    const auto run = [&](float loss) {
        losses.copy_from(exec, std::vector{loss, 0.5F});
        step.run([&] { log.add(losses.values()); });
    };
    run(1);
    run(2);
    CHECK(log.read() == std::vector{1.5, 2.5});
    for (const float loss : {3.0F, 4.0F, 5.0F, 6.0F, 7.0F}) run(loss);
    CHECK(log.read() == std::vector{4.5, 5.5, 6.5, 7.5});
    CHECK(log.read().empty());
}

std::string message_of(auto f) {
    try {
        f();
    } catch (const mp::error& error) {
        return error.what();
    }
    return {};
}

TEST_CASE("what a capture cannot have is refused, and the executor goes on") {
    mp::simt::launch_recorder recorder;
    const simulated exec{.recorder = &recorder};
    mp::tensor<float> small(exec, 2, 2);
    mp::simulated_graph graph;
    const auto captured = [&](auto body) { return message_of([&] { graph.capture(exec, body); }); };
    CHECK(captured([&] { static_cast<void>(small.to_host(exec)); }) ==
          "a copy to the host: the simulated GPU is being captured, and this waits for it");
    CHECK(captured([&] { small.resize(exec, 3, 2); }) ==
          "mp::tensor::resize: it would have to grow while a graph is captured; run the step once before");
    CHECK(captured([&] { graph.capture(exec, [] {}); }).find("the simulated GPU is being captured already") !=
          std::string::npos);
    CHECK_FALSE(recorder.recording());
    CHECK(captured([&] { small.resize(exec, 1, 2); }).empty());
    CHECK(graph.empty());
    CHECK(message_of([&] { graph.capture(simulated{}, [] {}); }) ==
          "mp::simulated_graph::capture: exec.recorder is 'null'; it must be an mp::simt::launch_recorder");
    CHECK(message_of([&] { mp::gpu_loss_log(exec, 0); }) ==
          "mp::gpu_loss_log: capacity is 0; it must be at least 1");
}

TEST_CASE("inputs of a step have no places before their memory is made, and get none afterwards") {
    mp::host_workspace workspace;
    const mp::simulated_gpu<mp::arch::sm_80> exec{.workspace = &workspace};
    mp::step_inputs inputs(exec);
    const auto rate = inputs.add<double>(1);
    CHECK_THROWS_WITH_AS(static_cast<void>(inputs.host(rate)),
                         "mp::step_inputs::host: build() has not been called", mp::state_error);
    CHECK_THROWS_AS(static_cast<void>(inputs.device(rate)), mp::state_error);
    CHECK_THROWS_AS(inputs.send(), mp::state_error);
    inputs.build();
    inputs.host(rate)[0] = 0.5;
    inputs.send();
    CHECK(inputs.device(rate)[0] == 0.5);
    CHECK_THROWS_WITH_AS(static_cast<void>(inputs.add<int>(1)),
                         "mp::step_inputs::add: the memory is there already; add before build()",
                         mp::state_error);
}

TEST_CASE("parameters are asked for where they are, and tensors go to the host and back") {
    const simulated exec;
    const model device(exec), host(mp::cpu{});
    CHECK(message_of([&] { static_cast<void>(device.matrices.parameters()); }) ==
          "mp::parameter_store::parameters: the weights are in device memory; call parameters(exec) for an "
          "optimizer there");
    CHECK(
        message_of([&] { static_cast<void>(host.matrices.parameters(exec)); }) ==
        "mp::parameter_store::parameters: the weights are in the memory of the host; build() them with this "
        "executor");
    CHECK(host.matrices.parameters(mp::cpu{}).size() == 2);
    using optimizer = mp::gpu_adamw<simulated, half>;
    CHECK(message_of([&] { optimizer(exec, device.matrices.parameters(exec), plain); }) ==
          "mp::gpu_grouped_optimizer: parameters[1] ('b').group is 1; it must be less than the number of "
          "groups, which is 1");
    mp::tensor<half> it(2, 3);
    CHECK_FALSE(it.on_device());
    it.resize(exec, 2, 2);
    CHECK(it.on_device());
    const std::vector<half> values{half(1), half(2), half(3), half(4)};
    it.copy_from(exec, values);
    CHECK(same_bits<half>(it.to_host(exec), values));
    CHECK(message_of([&] { it.copy_from(exec, std::vector<half>(3)); }) ==
          "mp::tensor::copy_from: values.size() is 3; it must be that of the tensor, which is 4");
    mp::tensor<half> moved = std::move(it);
    CHECK(moved.on_device());
    moved.resize(1, 2);
    CHECK_FALSE(moved.on_device());
    CHECK(moved.values()[0] == half(0));
}

TEST_CASE("groups and parameters that one optimizer cannot have are refused") {
    std::vector<half> weights(3), gradient(3);
    const std::vector<mp::parameter<half>> one{{"w", weights, gradient}};
    const auto refusal = [&](const std::vector<mp::parameter<half>>& parameters,
                             const std::vector<mp::adamw_options>& groups) {
        return message_of([&] { mp::gpu_adamw<simulated, half>(simulated{}, parameters, groups); });
    };
    CHECK(refusal(one, {}) == "mp::gpu_grouped_optimizer: groups.size() is 0; it must be at least 1");
    CHECK(refusal({}, {plain}) == "mp::gpu_grouped_optimizer: parameters.size() is 0; it must be at least 1");
    CHECK(refusal(one, {{}, {.beta1 = 1.0}}) ==
          "mp::make_device_optimizer: beta1 is 1; it must be at least 0 and less than 1");
    CHECK(refusal(one, {{.seed = 1}, {.seed = 2}}) ==
          "mp::gpu_grouped_optimizer: seed is 2; it must be that of all groups, which is 1");
    CHECK(
        refusal(one, {{}, {.low_precision_update = mp::weight_update::kahan}}) ==
        "mp::gpu_grouped_optimizer: low_precision_update is 'kahan'; it must be that of all groups, which is "
        "nearest");
    CHECK(
        refusal({{.name = "w", .weights = weights, .gradient = gradient, .share_of = 6}}, {plain}) ==
        "mp::gpu_grouped_optimizer: parameters[0] ('w').share_of is 6; it must be 0: there are no shares of "
        "ranks on GPUs");
}

TEST_CASE("frozen and empty parameters are in the CPU's checkpoint, and loading counts as a write of all") {
    const test_folder folder;
    std::vector<half> weights(70, half(0.5F)), gradient(70), frozen(5, half(2.0F));
    const std::vector<mp::parameter<half>> parameters{{"w", weights, gradient}, {"frozen", frozen}, {"none"}};
    mp::adamw<half> host(parameters, plain);
    mp::gpu_adamw<simulated, half> device(simulated{}, parameters, plain);
    const auto on_host = [&](auto& visit) { visit("it", host); };
    const auto on_device = [&](auto& visit) { visit("it", device); };
    CHECK(gpu_test::training_step::file_of(folder.file("host"), on_host) ==
          gpu_test::training_step::file_of(folder.file("device"), on_device));
    frozen[1] = half(3.0F);
    const std::uint64_t count = parameters[1].version.count();
    mp::load_checkpoint(folder.file("host"), on_device);
    CHECK(frozen[1] == half(2.0F));
    CHECK(parameters[1].version.count() == count + 1);
}

TEST_CASE("a store in device memory writes weights with their shapes") {
    const test_folder folder;
    const simulated exec;
    model device(exec), host(mp::cpu{});
    mp::save_safetensors(folder.file("device"), [&](auto& visit) { device.matrices.visit_state(visit); });
    mp::save_safetensors(folder.file("host"), [&](auto& visit) { host.matrices.visit_state(visit); });
    CHECK(read_file(folder.file("device")) == read_file(folder.file("host")));
}

}  // namespace
