// SPDX-License-Identifier: MIT
#include "training.hpp"

#include <mp/autocast.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/ops.hpp>
#include <mp/optim.hpp>
#include <mp/training.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <optional>
#include <span>

#include "../common/stopwatch.hpp"
#include "network.hpp"

namespace examples::train_convolution {
namespace {

/// What a training step returns.
struct step_outcome {
    float loss;    ///< of the batch before the step, without scale
    bool applied;  ///< whether the optimizer stepped
};

/// One step of training in mixed precision, the part to copy. The region is all that tells one system from
/// another: it casts what the layers read as the preset says. The loss is scaled on its way into the backward
/// pass, and the optimizer steps unless the gradients overflowed.
template <class Value, class Optimizer>
step_outcome training_step(mp::cpu exec, const mp::autocast::preset& preset, network<Value>& model,
                           mp::tape& tape, Optimizer& optimizer, mp::dynamic_loss_scaler& scaler,
                           const digits& batch) {
    const mp::autocast_region region(preset);
    mp::training_iteration iteration(scaler, optimizer);
    const auto logits = model.forward(exec, tape, batch.images(0, batch.size()));
    const float loss = mp::ops::softmax_cross_entropy_with_gradient(
        exec, logits.value(), batch.labels, logits.add_to_gradient(), {.scale = iteration.current_scale()});
    tape.backward();
    const bool applied = static_cast<bool>(iteration.finish());
    return {loss, applied};
}

/// The share of a set that the network gets right.
template <class Value>
double accuracy(mp::cpu exec, const mp::autocast::preset& preset, network<Value>& model, mp::tape& tape,
                const digits& set) {
    const mp::autocast_region region(preset);
    double right = 0.0;
    for (std::size_t first = 0; first < set.size(); first += batch_size) {
        const std::size_t count = std::min(batch_size, set.size() - first);
        const auto logits = model.forward(exec, tape, set.images(first, count)).value();
        right += mp::ops::accuracy(exec, logits, set.labels_of(first, count)) * static_cast<double>(count);
        tape.clear();
    }
    return right / static_cast<double>(set.size());
}

/// Trains with weights, gradients and activations in Value, and the optimizer's state in it as well.
template <class Value>
training_record train_stored_as(const mp::autocast::preset& preset, const training_task& task) {
    mp::host_workspace workspace;
    const mp::cpu exec{.products = mp::accumulation::ordered,  // the same figures on every processor
                       .workspace = &workspace};
    network<Value> model(task.seed);
    mp::tape tape;
    mp::sgd<Value, Value, Value> optimizer(model.parameters.parameters(),
                                           {.learning_rate = learning_rate, .momentum = momentum});
    mp::dynamic_loss_scaler scaler({.growth_interval = growth_interval}, scales_loss(preset));
    batches deal(task.data->training, batch_size, task.seed);

    training_record record;
    record.stored_type = mp::autocast::type_name<Value>();
    stopwatch clock;
    const std::size_t steps = deal.per_epoch() * static_cast<std::size_t>(task.epochs);
    double loss = 0.0;
    for (std::size_t step = 0; step < steps; ++step) {
        const digits& batch = deal.next();
        record.scales.push_back(scaler.current_scale());
        // Counting looks at every number, so only the last step is counted. The region of the step is inside
        // of this one, which has nothing but the ledger.
        mp::autocast::cast_ledger ledger;
        std::optional<mp::autocast_region> counted;
        const bool last = step + 1 == steps;
        if (last) counted.emplace(mp::autocast_options{.ledger = &ledger});
        clock.start();
        const step_outcome outcome = training_step(exec, preset, model, tape, optimizer, scaler, batch);
        clock.stop();
        if (last) {
            record.ops = ledger.ops();
            record.casts = ledger.casts();
        }
        if (!outcome.applied) record.skipped.push_back(step);
        loss += static_cast<double>(outcome.loss);
        if ((step + 1) % deal.per_epoch() == 0) {
            record.losses.push_back(loss / static_cast<double>(deal.per_epoch()));
            loss = 0.0;
            task.after_epoch();
        }
    }
    record.accuracy = accuracy(exec, preset, model, tape, task.data->test);
    record.final_scale = static_cast<double>(scaler.current_scale());
    record.seconds = clock.seconds();
    return record;
}

/// The ops of the network on what they read: matrices and arrays of Value.
template <class Value>
std::vector<std::string> explain_stored_as(const mp::autocast::preset& preset) {
    using matrix = mp::matrix_view<const Value>;
    using array = std::span<const Value>;
    using labels = std::span<const int>;
    const mp::autocast_region region(preset);
    std::vector<std::string> lines;
    const auto add = [&]<class Op, class... Inputs>() {
        lines.push_back(mp::autocast::explain<mp::autocast::by_region, Op, mp::cpu, Inputs...>().text());
    };
    add.template operator()<mp::ops::conv2d_op, matrix, matrix, array>();
    add.template operator()<mp::ops::relu_op, matrix>();
    add.template operator()<mp::ops::max_pool2d_op, matrix>();
    add.template operator()<mp::ops::layer_norm_op, matrix, array, array>();
    add.template operator()<mp::ops::linear_op, matrix, matrix, array>();
    add.template operator()<mp::ops::softmax_cross_entropy_with_gradient_op, matrix, labels>();
    add.template operator()<mp::ops::linear_backward_op, matrix, matrix, matrix>();
    add.template operator()<mp::ops::layer_norm_backward_op, matrix, array, matrix>();
    add.template operator()<mp::ops::relu_backward_op, matrix, matrix>();
    add.template operator()<mp::ops::max_pool2d_backward_op, matrix, matrix>();
    add.template operator()<mp::ops::conv2d_backward_op, matrix, matrix, matrix>();
    return lines;
}

}  // namespace

training_record train(const mp::autocast::preset& preset, const training_task& task) {
    if (preset.master_weights) return train_stored_as<float>(preset, task);
    return train_stored_as<mp::half>(preset, task);
}

std::vector<std::string> explain(const mp::autocast::preset& preset) {
    if (preset.master_weights) return explain_stored_as<float>(preset);
    return explain_stored_as<mp::half>(preset);
}

}  // namespace examples::train_convolution
