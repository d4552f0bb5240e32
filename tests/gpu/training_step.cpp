// SPDX-License-Identifier: MIT
// What a step of training on a GPU is put together from: groups of parameters with their masters and moments,
// inputs at fixed places, a step that is captured and launched again, losses that stay there, and checkpoints.
#include <mp/bfloat16.hpp>
#include <mp/gpu.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>
#include <mp/training/checkpoint.hpp>
#include <mp/training/parameter_store.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "training/test_folder.hpp"

namespace {

using mp::half;
using simulated = mp::simulated_gpu<mp::arch::sm_75>;

template <class Value>
bool same_bits(std::span<const Value> a, std::span<const Value> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// Parameters of two formats, as a model has them; on an executor.
struct model {
    mp::parameter_store<half> matrices;
    mp::parameter_store<float> norms;

    template <class Executor>
    explicit model(const Executor& exec) {
        matrices.add_matrix("w", 7, 9, mp::initializers::normal(0.3));
        matrices.add_vector("b", 9, mp::initializers::uniform(0.1), {.group = 1});
        norms.add_vector("gamma", 7, mp::initializers::ones());
        matrices.build(exec, 3);
        norms.build(exec, 3);
    }
};

const mp::adamw_options decayed{.learning_rate = 0.01, .beta2 = 0.95, .weight_decay = 0.1};
const mp::adamw_options plain{.learning_rate = 0.02, .beta2 = 0.95, .weight_decay = 0.0};
const mp::pytorch_policy policy{.initial_scale = 256.0, .growth_interval = 3};

/// Gradients of step `number`, times the scale; in the fifth one overflows.
void draw(model& of, std::uint64_t number, float scale) {
    std::mt19937_64 random(number);
    std::normal_distribution<float> normal;
    for (half& it : of.matrices.gradients()) it = half(normal(random) * scale);
    for (float& it : of.norms.gradients()) it = normal(random) * scale;
    if (number == 4) {
        // In both: the CPU skips only those that have one, a GPU all.
        of.matrices.gradients()[3] = std::numeric_limits<half>::infinity();
        of.norms.gradients()[1] = std::numeric_limits<float>::infinity();
    }
}
double factor_of(std::uint64_t step) {
    return 1.0 / (1.0 + static_cast<double>(step));
}

struct on_host {
    model it{mp::cpu{}};
    mp::adamw<half> matrices{it.matrices.parameters(), std::vector{decayed, plain}};
    mp::adamw<float> norms{it.norms.parameters(), plain};
    mp::loss_scaler<mp::pytorch_policy> scaler{policy};
    std::uint64_t step = 0;

    void run(std::uint64_t end) {
        for (; step < end; ++step) {
            mp::training_iteration iteration(scaler, matrices, norms);
            draw(it, step, iteration.current_scale());
            matrices.set_learning_rate_factor(factor_of(step));
            norms.set_learning_rate_factor(factor_of(step));
            iteration.clip_global_gradient_norm(1.5);
            iteration.finish();
        }
    }
    auto everything() {
        return [this](auto& visit) {
            visit("matrices", matrices);
            visit("norms", norms);
            visit("scaler", scaler);
            visit("step", step);
        };
    }
};

struct on_device {
    simulated exec;
    model it{exec};
    mp::gpu_adamw<simulated, half> matrices{exec, it.matrices.parameters(exec), {decayed, plain}};
    mp::gpu_adamw<simulated, float> norms{exec, it.norms.parameters(exec), plain};
    mp::gpu_loss_scaler<simulated, mp::pytorch_policy> scaler{exec, policy};
    mp::step_inputs<simulated> inputs{exec};
    mp::step_inputs<simulated>::place<double> rate = inputs.add<double>(1);
    mp::replayed_step<simulated> replayed{exec};
    std::uint64_t step = 0;
    int bodies = 0;

    explicit on_device(simulated on) : exec(on) {
        inputs.build();
        matrices.set_learning_rate_factor(inputs.device(rate).data());
        norms.set_learning_rate_factor(inputs.device(rate).data());
    }
    void run(std::uint64_t end) {
        for (; step < end; ++step) {
            draw(it, step, scaler.state().current_scale());  // host memory here: a backward pass
            inputs.host(rate)[0] = factor_of(step);
            inputs.send();
            const auto body = [&] {
                ++bodies;
                mp::training_iteration iteration(scaler, matrices, norms);
                iteration.clip_global_gradient_norm(1.5);
                iteration.finish();
            };
            exec.recorder == nullptr ? body() : replayed.run(body);
        }
    }
    auto everything() {
        return [this](auto& visit) {
            visit("matrices", matrices);
            visit("norms", norms);
            visit("scaler", scaler);
            visit("step", step);
        };
    }
};

std::string file_of(const std::string& path, auto&& everything) {
    mp::save_checkpoint(path, everything);
    return read_file(path);
}

TEST_CASE("groups, one norm, a schedule and skipped steps: the CPU's bits, and its checkpoint") {
    const test_folder folder;
    on_host host;
    on_device device(simulated{.seed = 5});
    CHECK(same_bits<half>(device.it.matrices.weights(), host.it.matrices.weights()));
    for (const std::uint64_t end : {1, 4, 5, 12}) {
        CAPTURE(end);
        host.run(end);
        device.run(end);
        CHECK(same_bits<half>(device.it.matrices.weights(), host.it.matrices.weights()));
        CHECK(same_bits<float>(device.it.norms.weights(), host.it.norms.weights()));
        CHECK(file_of(folder.file("device"), device.everything()) ==
              file_of(folder.file("host"), host.everything()));
    }
    CHECK(host.matrices.step_count() == 11);
    CHECK(device.matrices.state(1).steps == 11);
    CHECK(device.scaler.state().skipped == 1);
    CHECK(device.matrices.state_bytes() == 3 * (64 + 64) * sizeof(float));

    // Goes on from the other's file, on either.
    on_device resumed(simulated{});
    mp::load_checkpoint(folder.file("host"), resumed.everything());
    on_host back;
    mp::load_checkpoint(folder.file("device"), back.everything());
    host.run(20);
    resumed.run(20);
    back.run(20);
    CHECK(same_bits<half>(resumed.it.matrices.weights(), host.it.matrices.weights()));
    CHECK(same_bits<half>(back.it.matrices.weights(), host.it.matrices.weights()));
    CHECK(file_of(folder.file("device"), resumed.everything()) ==
          file_of(folder.file("host"), host.everything()));
}

TEST_CASE("a step that is captured and launched again has the bits of one that is not") {
    mp::simt::launch_recorder recorder;
    on_device eager(simulated{});
    on_device replayed(simulated{.recorder = &recorder});
    for (const std::uint64_t end : {1, 2, 12}) {
        CAPTURE(end);
        eager.run(end);
        replayed.run(end);
        CHECK(same_bits<half>(replayed.it.matrices.weights(), eager.it.matrices.weights()));
    }
    CHECK(replayed.bodies == 2);
    CHECK(eager.bodies == 12);
    CHECK(replayed.replayed.nodes() > 8);
    replayed.replayed.forget();
    replayed.run(15);
    eager.run(15);
    CHECK(replayed.bodies == 4);
    CHECK(same_bits<half>(replayed.it.matrices.weights(), eager.it.matrices.weights()));
}

TEST_CASE("dropout drops other elements when the number in memory is another one") {
    mp::simt::launch_recorder recorder;
    mp::host_workspace workspace;
    const simulated exec{.workspace = &workspace, .recorder = &recorder};
    const simulated eager{.workspace = &workspace};
    mp::step_inputs inputs(exec);
    const auto counter = inputs.add<std::uint64_t>(1);
    inputs.build();
    mp::tensor<half> x(exec, 6, 8);
    std::vector<half> values;
    for (int i = 0; i < 48; ++i) values.push_back(half(static_cast<float>(i % 7) - 2.5F));
    x.copy_from(exec, values);
    /// Results of all ops that drop, one after the other.
    const auto run = [&](const simulated& on, const mp::ops::dropout_options& options,
                         mp::tensor<half>& results) {
        using mp::autocast::off;
        const mp::matrix_view<const half> in = x.view();
        const auto to = [&](std::ptrdiff_t i) { return results.view().block(6 * i, 0, 6, 8); };
        const mp::ops::attention_options heads{.heads = 2, .causal = true, .dropout = options};
        mp::ops::dropout<off>(on, in, to(0), options);
        mp::ops::scaled_dot_product_attention<off>(on, in, in, in, mp::ops::absent, to(1), heads);
        mp::ops::scaled_dot_product_attention_backward<off>(on, in, in, in, mp::ops::absent, in, to(2), to(3),
                                                            to(4), heads);
    };
    mp::tensor<half> found(exec, 30, 8), expected(exec, 30, 8);
    mp::replayed_step step(exec);
    std::vector<std::vector<half>> seen;
    for (std::uint64_t i = 0; i < 5; ++i) {
        CAPTURE(i);
        const std::uint64_t added = i / 2 * 1001;  // the same twice
        inputs.host(counter)[0] = added;
        inputs.send();
        step.run([&] {
            run(exec,
                {.probability = 0.4F, .seed = 9, .offset = 5, .added_offset = inputs.device(counter).data()},
                found);
        });
        run(eager, {.probability = 0.4F, .seed = 9, .offset = 5 + added}, expected);
        CHECK(same_bits<half>(found.values(), expected.values()));
        seen.push_back(found.to_host(exec));
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

TEST_CASE("a store in device memory writes weights with their shapes") {
    const test_folder folder;
    const simulated exec;
    model device(exec), host(mp::cpu{});
    mp::save_safetensors(folder.file("device"), [&](auto& visit) { device.matrices.visit_state(visit); });
    mp::save_safetensors(folder.file("host"), [&](auto& visit) { host.matrices.visit_state(visit); });
    CHECK(read_file(folder.file("device")) == read_file(folder.file("host")));
}

}  // namespace
