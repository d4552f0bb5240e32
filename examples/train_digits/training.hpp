// SPDX-License-Identifier: MIT
/// \file
/// The training loop: autocast, loss scaling and an optimizer with or without master weights, put together.
#pragma once

#include <mp/autocast.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/ops.hpp>
#include <mp/optim.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../common/data.hpp"
#include "../common/stopwatch.hpp"
#include "network.hpp"
#include "probe.hpp"

namespace examples::train_digits {

inline constexpr std::array<std::size_t, 5> network_widths{image_pixels, 128, 128, 128, digit_classes};
inline constexpr std::size_t batch_size = 128;
inline constexpr double base_learning_rate = 0.1;
inline constexpr double momentum = 0.9;

/// "64-128-128-128-10".
inline std::string network_text() {
    std::string text;
    for (const std::size_t width : network_widths) text += (text.empty() ? "" : "-") + std::to_string(width);
    return text;
}

/// What one training is given, apart from the recipe.
struct training_task {
    const split_digits* data = nullptr;
    int epochs = 30;
    std::uint64_t seed = 1;
    /// What the mean loss of a batch is multiplied by; the learning rate is divided by it, so that in exact
    /// arithmetic every weight gives the same training.
    double loss_weight = 1.0;
    std::function<void()> after_epoch = [] {};
};

/// What came out of one training.
struct training_record {
    std::vector<double> losses;        ///< of each epoch: the mean over its batches, without loss weight
    double accuracy = 0.0;             ///< on the test set, at the end
    std::vector<float> scales;         ///< the loss scale of every step
    std::vector<std::size_t> skipped;  ///< the steps that were skipped, counted from 0
    double final_scale = 1.0;          ///< after the last step
    gradient_record gradients;         ///< looked at once an epoch
    double bytes_per_parameter = 0.0;  ///< weight, gradient, master copy and momentum
    double seconds = 0.0;              ///< of the training itself, without evaluation and probe
};

/// What a training step returns.
struct step_outcome {
    float loss;              ///< of the batch before the step, without loss weight and scale
    mp::step_result result;  ///< whether the optimizer stepped
};

/// One step of training in mixed precision, the part to copy: autocast takes what the layers read to
/// the precision that `way` says, itself one or a preset, the loss is scaled on its way into the backward
/// pass, and the scaler steps the optimizer unless the gradients overflowed. `weight` is what the mean loss
/// of the batch is multiplied by.
template <class Way, class Value, class Optimizer, class Scaler>
step_outcome training_step(mp::cpu exec, const Way& way, network<Value>& model, Optimizer& optimizer,
                           Scaler& scaler, const digits& batch, float weight) {
    const mp::autocast_region region(way);
    const auto images = batch.images(0, batch.size());
    const auto logits = model.forward(exec, images);
    const float loss = mp::ops::softmax_cross_entropy(exec, logits, batch.labels);
    model.backward(exec, images, batch.labels, {.weight = weight, .scale = scaler.scale(1.0F)});
    const mp::step_result result = scaler.step(optimizer);
    scaler.update();
    return {loss, result};
}

/// The share of a set that the network gets right.
template <class Way, class Value>
double accuracy(mp::cpu exec, const Way& way, network<Value>& model, const digits& set) {
    const mp::autocast_region region(way);
    double right = 0.0;
    for (std::size_t first = 0; first < set.size(); first += batch_size) {
        const std::size_t count = std::min(batch_size, set.size() - first);
        const auto logits = model.forward(exec, set.images(first, count));
        right += mp::ops::accuracy(exec, logits, set.labels_of(first, count)) * static_cast<double>(count);
    }
    return right / static_cast<double>(set.size());
}

/// Trains a network from the start.
///
/// Value is the format of weights, gradients and activations, and Master the one in which the optimizer keeps
/// its weights and momentum: <float, float> is plain training, <half, float> is mixed precision with master
/// weights, <half, half> is half alone. <float, float> under a region that is on keeps everything in float
/// and casts what the ops read. `way` is what the regions are made from: a mp::precision, or a preset of
/// autocast. The images are float, and the loss is computed in float unless a preset says otherwise. A scaler
/// that is disabled has scale 1.
template <class Value, class Master, class Way, class Scaler>
training_record train(const training_task& task, const Way& way, Scaler scaler) {
    mp::host_workspace workspace;
    const mp::cpu exec{.products = mp::accumulation::ordered,  // the same figures on every processor
                       .workspace = &workspace};
    const auto weight = static_cast<float>(task.loss_weight);
    network<Value> model(network_widths, batch_size, task.seed);
    mp::sgd<Value, Value, Master> optimizer(
        model.parameters(), {.learning_rate = base_learning_rate / task.loss_weight, .momentum = momentum});
    batches deal(task.data->training, batch_size, task.seed);
    gradient_probe probe(network_widths, batch_size);

    training_record record;
    stopwatch clock;
    for (int epoch = 0; epoch < task.epochs; ++epoch) {
        double loss = 0.0;
        for (std::size_t step = 0; step < deal.per_epoch(); ++step) {
            const digits& batch = deal.next();
            const float scale = scaler.current_scale();
            if (step == deal.per_epoch() / 2) {
                probe.measure(exec, way, model, batch, {.weight = weight, .scale = scale}, record.gradients);
            }
            clock.start();
            const step_outcome outcome = training_step(exec, way, model, optimizer, scaler, batch, weight);
            clock.stop();
            loss += static_cast<double>(outcome.loss);
            if (!outcome.result) record.skipped.push_back(record.scales.size());
            record.scales.push_back(scale);
        }
        record.losses.push_back(loss / static_cast<double>(deal.per_epoch()));
        task.after_epoch();
    }
    record.accuracy = accuracy(exec, way, model, task.data->test);
    record.final_scale = static_cast<double>(scaler.current_scale());
    record.bytes_per_parameter = optimizer.bytes_per_parameter();
    record.seconds = clock.seconds();
    return record;
}

}  // namespace examples::train_digits
