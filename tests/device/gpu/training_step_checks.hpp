// SPDX-License-Identifier: MIT
// Steps of training with groups of parameters, a schedule, one norm and skipped steps: on an executor for GPUs against
// those of the CPU, launch by launch and captured.
#pragma once

#include <mp/gpu.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>
#include <mp/train/training/checkpoint.hpp>
#include <mp/train/training/parameter_store.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "train/training/test_folder.hpp"

namespace gpu_test::training_step {

using mp::half;

template <class Value>
bool same_bits(std::span<const Value> a, std::span<const Value> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}
template <class Value, class Executor>
bool same_bits_on(const Executor& exec, std::span<const Value> a, std::span<const Value> b) {
    const std::vector<Value> copy = mp::host_copy(exec, a);
    return same_bits<Value>(copy, b);
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

inline const mp::adamw_options decayed{.learning_rate = 0.01, .beta2 = 0.95, .weight_decay = 0.1};
inline const mp::adamw_options plain{.learning_rate = 0.02, .beta2 = 0.95, .weight_decay = 0.0};
inline const mp::pytorch_policy policy{.initial_scale = 256.0, .growth_interval = 3};

/// From this step on the second parameter is not used.
inline constexpr std::uint64_t unused_from = 20;

/// Gradients of step `number`, times the scale; in the fifth one overflows.
template <class Executor>
void draw(const Executor& exec, model& of, std::uint64_t number, float scale) {
    std::mt19937_64 random(number);
    std::normal_distribution<float> normal;
    const auto fill = [&]<class Value>(std::span<Value> gradients, std::size_t bad) {
        std::vector<Value> values;
        for (std::size_t i = 0; i < gradients.size(); ++i) values.push_back(Value(normal(random) * scale));
        // In both: the CPU skips only those that have one, a GPU all.
        if (number == 4) values[bad] = std::numeric_limits<Value>::infinity();
        if (number >= unused_from && values.size() > 64)
            std::fill(values.begin() + 64, values.end(), Value());
        if constexpr (mp::gpu_executor<Executor>) {
            mp::detail::executor_memory<Executor>::copy_to_device(exec, gradients.data(), values.data(),
                                                                  gradients.size_bytes());
        } else {
            std::copy(values.begin(), values.end(), gradients.begin());
        }
    };
    fill(of.matrices.gradients(), 3);
    fill(of.norms.gradients(), 1);
}
inline double factor_of(std::uint64_t step) {
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
            draw(mp::cpu{}, it, step, iteration.current_scale());
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

/// The same on a GPU; captured if that is wanted.
template <class Executor>
struct on_device {
    Executor exec;
    bool captures;
    model it{exec};
    mp::gpu_adamw<Executor, half> matrices{exec, it.matrices.parameters(exec), {decayed, plain}};
    mp::gpu_adamw<Executor, float> norms{exec, it.norms.parameters(exec), plain};
    mp::gpu_loss_scaler<Executor, mp::pytorch_policy> scaler{exec, policy};
    mp::step_inputs<Executor> inputs{exec};
    typename mp::step_inputs<Executor>::template place<double> rate = inputs.template add<double>(1);
    mp::replayed_step<Executor> replayed{exec};
    std::uint64_t step = 0;
    int bodies = 0;

    explicit on_device(const Executor& on, bool captured = false) : exec(on), captures(captured) {
        inputs.build();
        matrices.set_learning_rate_factor(inputs.device(rate).data());
        norms.set_learning_rate_factor(inputs.device(rate).data());
    }
    void run(std::uint64_t end) {
        for (; step < end; ++step) {
            draw(exec, it, step, scaler.state().current_scale());
            inputs.host(rate)[0] = factor_of(step);
            inputs.send();
            const auto body = [&] {
                ++bodies;
                mp::training_iteration iteration(scaler, matrices, norms);
                iteration.clip_global_gradient_norm(1.5);
                iteration.finish();
            };
            captures ? replayed.run(body) : body();
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
    template <class Other>
    bool has_weights_of(Other& other) {
        return same_bits_on<half>(exec, it.matrices.weights(), other.it.matrices.weights()) &&
               same_bits_on<float>(exec, it.norms.weights(), other.it.norms.weights());
    }
};

inline std::string file_of(const std::string& path, auto&& everything) {
    mp::save_checkpoint(path, everything);
    return read_file(path);
}

/// The CPU's bits, and its checkpoint, from which either goes on.
template <class Executor>
void check_against_host(const Executor& exec) {
    const test_folder folder;
    on_host host;
    on_device<Executor> device(exec);
    CHECK(device.has_weights_of(host));
    for (const std::uint64_t end : {1U, 4U, 5U, 12U}) {
        CAPTURE(end);
        host.run(end);
        device.run(end);
        CHECK(device.has_weights_of(host));
        CHECK(file_of(folder.file("device"), device.everything()) ==
              file_of(folder.file("host"), host.everything()));
    }
    CHECK(host.matrices.step_count() == 11);
    CHECK(device.matrices.state(1).steps == 11);
    CHECK(device.scaler.state().skipped == 1);
    CHECK(device.matrices.state_bytes() == 3 * (64 + 64) * sizeof(float));

    on_device<Executor> resumed(exec);
    mp::load_checkpoint(folder.file("host"), resumed.everything());
    on_host back;
    mp::load_checkpoint(folder.file("device"), back.everything());
    host.run(20);
    resumed.run(20);
    back.run(20);
    CHECK(resumed.has_weights_of(host));
    CHECK(same_bits<half>(back.it.matrices.weights(), host.it.matrices.weights()));
    CHECK(file_of(folder.file("device"), resumed.everything()) ==
          file_of(folder.file("host"), host.everything()));
}

/// A step that is captured and launched again has the bits of the CPU.
template <class Executor>
void check_captured(const Executor& exec) {
    on_host host;
    on_device<Executor> captured(exec, true);
    for (const std::uint64_t end : {1U, 2U, 12U}) {
        CAPTURE(end);
        host.run(end);
        captured.run(end);
        CHECK(captured.has_weights_of(host));
    }
    CHECK(captured.bodies == 2);
    CHECK(captured.replayed.nodes() > 8);
    captured.replayed.forget();
    captured.run(15);
    host.run(15);
    CHECK(captured.bodies == 4);
    CHECK(captured.has_weights_of(host));
}

/// A parameter whose gradient is zero stays where it is, and goes on with momentum where that is wanted.
template <class Executor>
void check_unused(const Executor& exec, bool captured) {
    on_host host;
    on_device<Executor> device(exec, captured), all(exec, captured);
    const auto second = [&](auto& of) {
        return mp::host_copy(exec, std::span<const half>(of.it.matrices.parameters(exec)[1].weights));
    };
    all.matrices.set_steps_unused_parameters(true);
    host.run(unused_from);
    device.run(unused_from);
    all.run(unused_from);
    const auto before = second(device);
    host.run(unused_from + 3);
    device.run(unused_from + 3);
    all.run(unused_from + 3);
    CHECK(device.has_weights_of(host));
    CHECK(same_bits<half>(second(device), before));
    CHECK_FALSE(same_bits<half>(second(all), before));
}

/// Counts that a group cannot have are found before anything is loaded.
template <class Executor>
void check_refused_counts(const Executor& exec) {
    const test_folder folder;
    model host_model(mp::cpu{}), device_model(exec);
    auto of_host = host_model.matrices.parameters();
    for (auto& it : of_host) it.group = 0;
    mp::adamw<half> host(of_host, plain);
    mp::loss_scaler scaler(mp::static_policy{.initial_scale = 1.0F});
    const auto step = [&](bool both) {
        mp::training_iteration iteration(scaler, host);
        for (std::size_t i = 0; i < (both ? 2 : 1); ++i) {
            for (half& value : of_host[i].gradient) value = half(0.5F);
        }
        static_cast<void>(iteration.finish());
    };
    step(true);
    step(false);
    mp::save_checkpoint(folder.file("host"), [&](auto& visit) { visit("it", host); });
    auto parameters = device_model.matrices.parameters(exec);
    for (auto& it : parameters) it.group = 0;
    mp::gpu_adamw<Executor, half> device(exec, parameters, plain);
    const auto before = mp::host_copy(exec, device_model.matrices.weights());
    CHECK_THROWS_AS(mp::load_checkpoint(folder.file("host"), [&](auto& visit) { visit("it", device); }),
                    mp::state_error);
    CHECK(same_bits<half>(mp::host_copy(exec, device_model.matrices.weights()), before));
}

/// A gradient that is too large for a step at one learning rate and not at another, which the device reads, captured or
/// not, or which was loaded: the host decides alike.
template <class Executor>
void check_limits(const Executor& exec, bool captured) {
    // Half of the range is 32752; the second group with its larger rate comes to it first.
    const std::vector<mp::sgd_options> groups = {{.learning_rate = 0.25}, {.learning_rate = 0.5}};
    const auto build = [](mp::parameter_store<half>& store, const auto& on) {
        store.add_vector("first", 70, mp::initializers::ones());
        store.add_vector("second", 70, mp::initializers::ones(), {.group = 1});
        store.build(on, 1);
    };
    mp::parameter_store<half> host, device;
    build(host, mp::cpu{});
    build(device, exec);
    mp::sgd<half, half, half, half> of_host(host.parameters(), groups);
    mp::gpu_sgd<Executor, half, half, half, half> of_device(exec, device.parameters(exec), groups);
    const mp::static_policy unscaled{.initial_scale = 1.0F};
    mp::static_loss_scaler host_scaler(unscaled);
    mp::gpu_loss_scaler scaler(exec, unscaled);
    mp::step_inputs<Executor> inputs(exec);
    const auto rate = inputs.template add<double>(1);
    inputs.build();
    const auto step = [&](double factor, bool clips, bool is_skipped, const auto& run) {
        CAPTURE(factor);
        CAPTURE(clips);
        std::fill(host.gradients().begin(), host.gradients().end(), half(0.5F));
        host.parameters()[1].gradient[33] = half(20000.0F);
        mp::detail::executor_memory<Executor>::copy_to_device(
            exec, device.gradients().data(), host.gradients().data(), host.gradients().size_bytes());
        inputs.host(rate)[0] = factor;
        inputs.send();
        of_host.set_learning_rate_factor(factor);
        if (clips) {
            host_scaler.unscale(of_host);
            of_host.clip_gradient_norm(1000.0);
        }
        const mp::step_status status = host_scaler.step(of_host).status;
        host_scaler.update();
        run([&] {
            if (clips) scaler.clip_gradient_norm(of_device, 1000.0);
            scaler.step(of_device);
            scaler.update();
        });
        CHECK((status == mp::step_status::skipped_too_large) == is_skipped);
        CHECK(scaler.state().events().back().skipped == (is_skipped ? 1U : 0U));
        CHECK(same_bits_on<half>(exec, device.weights(), host.weights()));
    };
    const auto at_once = [](const auto& body) { body(); };
    of_device.set_learning_rate_factor(inputs.device(rate).data());
    for (const bool clips : {false, true}) {
        mp::replayed_step<Executor> replayed(exec);
        const auto run = [&](const auto& body) { captured ? replayed.run(body) : body(); };
        for (const double factor : {1.0, 0.25, 4.0, 0.5, 4.0}) step(factor, clips, !clips && factor > 3, run);
    }
    of_device.set_learning_rate_factor(nullptr);
    const test_folder folder;
    for (const double factor : {4.0, 0.25}) {
        of_host.set_learning_rate_factor(factor);
        mp::save_checkpoint(folder.file("host"), [&](auto& visit) { visit("it", of_host); });
        mp::load_checkpoint(folder.file("host"), [&](auto& visit) { visit("it", of_device); });
        step(factor, false, factor > 3, at_once);
    }

    // On a device all parameters have the smallest bound of the groups, 16376 at a rate of 2.
    of_device.set_learning_rate_factor(inputs.device(rate).data());
    inputs.host(rate)[0] = 4.0;
    inputs.send();
    std::fill(host.gradients().begin(), host.gradients().end(), half(0.5F));
    for (const float large : {16000.0F, 20000.0F}) {
        host.parameters()[0].gradient[7] = half(large);
        mp::detail::executor_memory<Executor>::copy_to_device(
            exec, device.gradients().data(), host.gradients().data(), host.gradients().size_bytes());
        scaler.step(of_device);
        scaler.update();
        const mp::scale_event event = scaler.state().events().back();
        CHECK(event.skipped == (large > 16376.0F ? 1U : 0U));
        if (event.skipped == 1) CHECK(event.parameter == 0);
    }
}

/// Masters follow weights that were written between steps, captured ones as well, as on the CPU.
template <class Executor>
void check_written_weights(const Executor& exec, bool captured) {
    on_host host;
    on_device<Executor> device(exec, captured);
    const auto write = [&](bool all) {
        // Half of the weights stay, and with them what their masters have beyond them.
        const std::span<half> weights =
            all ? host.it.matrices.replace_weights() : host.it.matrices.mutable_weights();
        for (std::size_t i = 0; i < 30; ++i) weights[i] = half(0.5F + static_cast<float>(i));
        const std::span<half> on_gpu =
            all ? device.it.matrices.replace_weights() : device.it.matrices.mutable_weights();
        mp::detail::executor_memory<Executor>::copy_to_device(exec, on_gpu.data(), weights.data(),
                                                              weights.size_bytes());
    };
    for (std::uint64_t end = 2; end < 12; end += 3) {
        CAPTURE(end);
        host.run(end);
        device.run(end);
        CHECK(device.has_weights_of(host));
        write(end == 8);
    }
    host.run(14);
    device.run(14);
    CHECK(device.has_weights_of(host));
    if (captured) CHECK(device.bodies == 2);
    // The versions tell others of every step, replayed or not.
    const std::uint64_t count = device.it.norms.parameters(exec)[0].version.count();
    device.run(16);
    CHECK(device.it.norms.parameters(exec)[0].version.count() == count + 2);
}

/// Compensations and lower halves of masters follow weights that were written, with the bits of the CPU.
template <class Executor>
void check_written_without_masters(const Executor& exec, mp::weight_update how) {
    using mp::bfloat16;
    const mp::adamw_options options{.learning_rate = 1e-3, .weight_decay = 0, .low_precision_update = how};
    mp::parameter_store<bfloat16> host, device;
    for (auto* const store : {&host, &device}) store->add_vector("w", 1000, mp::initializers::normal(0.1));
    host.build(1);
    device.build(exec, 1);
    mp::adamw<bfloat16, bfloat16, bfloat16, float> of_host(host.parameters(), options);
    mp::gpu_adamw<Executor, bfloat16, bfloat16, bfloat16, float> of_device(exec, device.parameters(exec),
                                                                           options);
    mp::gpu_loss_scaler scaler(exec, mp::static_policy{.initial_scale = 1.0F});
    const auto step = [&](std::uint64_t number) {
        std::mt19937_64 random(number);
        std::normal_distribution<float> normal;
        for (bfloat16& g : host.gradients()) g = bfloat16(normal(random));
        using memory = mp::detail::executor_memory<Executor>;
        memory::copy_to_device(exec, device.gradients().data(), host.gradients().data(),
                               host.gradients().size_bytes());
        of_host.step();
        scaler.step(of_device);
        scaler.update();
    };
    const auto check = [&] {
        CHECK(same_bits_on<bfloat16>(exec, device.weights(), host.weights()));
        CHECK(same_bits_on<bfloat16>(exec, of_device.arrays(0).compensation, of_host.weight_compensation(0)));
    };
    for (std::uint64_t number = 0; number < 6; ++number) {
        step(number);
        check();
        const bool all = number == 3;
        const std::span<bfloat16> to = all ? host.replace_weights() : host.mutable_weights();
        // Larger ones, smaller ones and zeros beside remainders of all kinds.
        for (std::size_t i = 0; i < 300; ++i)
            to[3 * i] = bfloat16(i % 3 == 0 ? 0.0F : i % 3 == 1 ? 1e-6F : 3.0F);
        const std::span<bfloat16> on_gpu = all ? device.replace_weights() : device.mutable_weights();
        mp::detail::executor_memory<Executor>::copy_to_device(exec, on_gpu.data(), to.data(),
                                                              to.size_bytes());
        of_device.follow_weights();
        of_host.follow_weights();
        check();
    }
}

}  // namespace gpu_test::training_step
