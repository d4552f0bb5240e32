// SPDX-License-Identifier: MIT
/// \file
/// The training loop on a GPU: a step is a row of launches that is captured once and launched as one graph; the
/// scale, the decision to skip, norms, counts and losses live on the device, and the host only sends text.
#pragma once

#include <mp/autocast.hpp>
#include <mp/convert.hpp>
#include <mp/gpu.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>
#include <mp/parallel.hpp>
#include <mp/training.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../common/stopwatch.hpp"
#include "../common/text.hpp"
#include "parts.hpp"
#include "training.hpp"

namespace examples::train_gpt {

/// What a recipe makes of gradients that overflow: it skips the step and halves the scale, or nothing.
template <bool Scales>
auto device_scaling() {
    if constexpr (Scales) {
        return scaling;
    } else {
        return mp::static_policy{.initial_scale = 1.0};
    }
}

/// Trains as train() of recipes.cpp does on CPUs, with the same files: a run goes on there and here.
///
/// A Device is where it runs: CUDA in cuda_recipes.cu, the simulated GPU in simulated_recipes.cpp. It has
///  - `exec()`, the executor with a workspace, and `beside()`, the same with another workspace, for what runs
///    between steps: the one of a captured step must not grow;
///  - `wait()`, until all that was enqueued is done, and `workspace_bytes()`.
///
/// Ranks exchange gradients between the backward passes and the optimizer: their messages, which know no streams, cannot be
/// captured, so that steps of several ranks are launched one launch after the other. The communicator takes memory of the device:
/// see options.hpp.
///
/// This is the part to copy.
template <class Storage, class Policy, class Master, bool Scales,
          mp::precision Computing = mp::precision::off, class Device>
training_record train_on_device(Device& device, const training_task& task) {
    const auto exec = device.exec();
    using executor = std::remove_const_t<decltype(exec)>;
    mp::any_communicator& ranks = *task.ranks;
    const bool alone = ranks.size() == 1;
    gpt<Storage, Policy> model(exec, task.sizes, task.seed);
    auto of_matrices = model.matrices.parameters(exec);
    auto of_norms = model.norms.parameters(exec);
    mp::gradient_reduction reduction(exec, ranks, {.wire = task.wire}, of_matrices, of_norms);
    const auto options = optimizer_options(task);
    mp::gpu_adamw<executor, Storage, Storage, Master, float> matrices(exec, of_matrices, options);
    mp::gpu_adamw<executor, float> norms(exec, of_norms, options[plain]);
    mp::gpu_loss_scaler scaler(exec, device_scaling<Scales>());
    const auto schedule = schedule_of(task);

    // What the host gives to a step: text, learning rate, and where dropout's random words begin.
    const auto micro_batches = static_cast<std::size_t>(task.accumulate);
    const auto tokens = static_cast<std::size_t>(task.batch * task.sizes.context);
    mp::step_inputs inputs(exec);
    const auto ids = inputs.template add<int>(micro_batches * tokens);
    const auto labels = inputs.template add<int>(micro_batches * tokens);
    const auto rate = inputs.template add<double>(1);
    const auto words = inputs.template add<std::uint64_t>(1);
    inputs.build();
    matrices.set_learning_rate_factor(inputs.device(rate).data());
    norms.set_learning_rate_factor(inputs.device(rate).data());
    mp::tensor<float> losses(exec, 1, task.accumulate);
    constexpr std::size_t unread = 32;  // steps; the scaler keeps 64 events
    mp::gpu_loss_log log(exec, unread);

    const mp::autocast_region region(mp::autocast_options{.cuda = Computing, .keep_casts = false});

    training_record record;
    std::uint64_t step = 0;
    // Of all ranks: a run may go on with fewer ranks that accumulate more.
    const auto rank = static_cast<std::uint64_t>(ranks.rank()),
               size = static_cast<std::uint64_t>(ranks.size());
    const std::uint64_t all_micro_batches = micro_batches * size;
    mp::dynamic_loss_scaler idle(scaling, false);  // what a file has of a run without scaling
    const auto everything = [&](auto& visit) {
        visit.expect("seed", task.seed);
        visit.expect("steps", task.steps);
        visit.expect("sequences", static_cast<std::uint64_t>(task.batch));
        visit.expect("micro batches", all_micro_batches);
        visit.expect("characters", static_cast<std::uint64_t>(task.text->training.size()));
        visit.expect("dropout", task.dropout);
        visit("matrices", matrices);
        visit("norms", norms);
        if constexpr (Scales) {
            visit("scaler", scaler);
        } else {
            visit("scaler", idle);
        }
        visit("layers", model);
        visit("ranks", reduction);
        visit("step", step);
    };
    if (task.resume && std::filesystem::exists(task.checkpoint))
        mp::load_checkpoint(ranks, task.checkpoint, everything);
    mp::require_same_state(ranks, everything);
    const std::uint64_t first_step = step;
    const std::uint64_t end =
        task.stop_after == 0 ? task.steps : std::min(task.steps, step + task.stop_after);

    // Everything that a step does on the device. Nothing here allocates or reads a number, and only messages of ranks wait.
    const auto everything_of_a_step = [&] {
        mp::training_iteration iteration(scaler, matrices, norms);
        for (std::size_t micro = 0; micro < micro_batches; ++micro) {
            const std::uint64_t offset = micro * size * model.dropout_words(task.batch);
            model.forward(exec, inputs.device(ids).subspan(micro * tokens, tokens), task.batch,
                          {{.probability = task.dropout,
                            .seed = task.seed + dropout_seed,
                            .offset = offset,
                            .added_offset = inputs.device(words).data()}});
            const auto overlap = reduction.backward(1.0F, micro + 1 == micro_batches);
            model.backward(exec, inputs.device(labels).subspan(micro * tokens, tokens),
                           losses.values().data() + micro, iteration.scale(),
                           1.0F / static_cast<float>(task.accumulate), micro != 0);
        }
        reduction.finish();
        mp::reduce_amax(ranks, model);
        iteration.clip_global_gradient_norm(1.0);
        log.add(losses.values());
        iteration.finish();
    };
    // What has happened since the last time; waits.
    const auto read = [&] {
        for (const double loss : log.read()) record.losses.push_back(loss);
        for (const mp::scale_event& event : scaler.state().events()) {
            if (event.iteration < record.scales.size()) continue;
            if (event.skipped != 0) record.skipped.push_back(first_step + event.iteration);
            record.scales.push_back(static_cast<double>(event.change.before));
        }
    };

    mp::replayed_step captured(exec);
    batch_of_text batch;
    stopwatch all;
    all.start();
    for (; step < end; ++step) {
        const std::uint64_t number = step * all_micro_batches + rank;
        for (std::size_t micro = 0; micro < micro_batches; ++micro) {
            batch.draw(task, number + micro * size);
            const auto at = static_cast<std::ptrdiff_t>(micro * tokens);
            std::copy(batch.ids.begin(), batch.ids.end(), inputs.host(ids).begin() + at);
            std::copy(batch.labels.begin(), batch.labels.end(), inputs.host(labels).begin() + at);
        }
        inputs.host(rate)[0] = schedule.at(step);
        inputs.host(words)[0] = number * model.dropout_words(task.batch);
        inputs.send();
        alone ? captured.run(everything_of_a_step) : everything_of_a_step();

        const bool last = step + 1 == end;
        const bool looks = last || (step + 1) % 50 == 0;
        if (looks || (step + 1 - first_step) % unread == 0) read();
        if (looks) {
            device.wait();
            all.stop();
            const std::vector<Storage> gradients =
                mp::host_copy(exec, std::span<const Storage>(model.matrices.gradients()));
            record.gradients += mp::report_range<mp::half>(mp::cpu{}, gradients);
            record.validated_at.push_back(static_cast<double>(step + 1));
            record.validation.push_back(validation_loss(device.beside(), model, task));
            all.start();
        }
        if (!task.checkpoint.empty() && (last || (step + 1) % task.checkpoint_every == 0)) {
            ++step;  // the next one to be done
            mp::save_checkpoint(ranks, task.checkpoint, everything);
            --step;
        }
        task.after_step(record.losses.empty() ? "loss on the device"
                                              : "loss " + fixed(record.losses.back(), 3));
    }
    device.wait();
    all.stop();
    mean_over_ranks(ranks, record.losses);

    record.parameters = model.parameter_count();
    record.seconds.all = all.seconds();
    record.tokens_per_second = static_cast<double>(end - first_step) *
                               static_cast<double>(all_micro_batches * tokens) / all.seconds();
    record.memory = {
        .weights = model.matrices.weights().size_bytes() + model.norms.weights().size_bytes(),
        .gradients = model.matrices.gradients().size_bytes() + model.norms.gradients().size_bytes(),
        .masters = matrices.master_bytes() + norms.master_bytes(),
        .moments = matrices.state_bytes() + norms.state_bytes() - matrices.master_bytes(),
        .activations = model.activation_bytes(),
        .workspace = device.workspace_bytes()};
    record.sample = sample(device.beside(), model, task);
    if (!task.weights.empty() && ranks.rank() == 0) save_weights(task.weights, model);
    return record;
}

}  // namespace examples::train_gpt
