// SPDX-License-Identifier: MIT
/// \file
/// The training loop on a GPU, where a step is a row of launches: the loss scale, the decision to skip and
/// the optimizer live on the device, and the host reads once an epoch what has happened.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/convert.hpp>
#include <mp/gpu.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "../common/data.hpp"
#include "../common/stopwatch.hpp"
#include "device_network.hpp"
#include "probe.hpp"
#include "training.hpp"

namespace examples::train_digits {

/// A network on a device, its optimizer and its loss scale. See device_network.hpp for what a Device is.
///
/// \tparam Value   the format of weights, gradients and activations
/// \tparam Master  the one of the optimizer's weights and momentum
/// \tparam Policy  of the loss scale
template <class Device, class Value, class Master, class Policy>
class device_trainer {
public:
    template <class Element>
    using array = typename Device::template array<Element>;

    /// \param checks  whether gradients are looked at, so that steps are skipped and the scale moves; if not,
    ///                the policy's first scale stays and every step is made
    /// \param notes   steps that take_notes() can tell about
    device_trainer(Device& device, std::span<const std::size_t> widths, std::size_t batch, std::uint64_t seed,
                   const mp::sgd_options& options, float weight, const Policy& policy, bool checks,
                   std::size_t notes)
        : device_(device),
          model_(device, widths, batch, seed),
          options_(options),
          weight_(weight),
          policy_(policy),
          checks_(checks),
          scale_(device.put(std::vector{mp::make_device_loss_scale<0>(policy)})),
          optimizer_(device.put(std::vector{mp::make_device_optimizer(options)})),
          row_losses_(device.put(std::vector<float>(batch))),
          loss_(device.put(std::vector<float>(1))),
          notes_(device.put(std::vector<step_note>(notes))) {
        // Masters begin as the weights are, that is rounded to Value, and everything else at zero.
        network<Value> start(widths, batch, seed);
        const auto weights = start.parameters();
        const auto parameters = model_.parameters();
        momenta_.reserve(parameters.size());
        masters_.reserve(parameters.size());
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const std::size_t size = weights[i].weights.size();
            momenta_.push_back(device.put(std::vector<Master>(size)));
            parameters_.push_back({.weights = parameters[i].weights,
                                   .gradient = parameters[i].gradient,
                                   .momentum = momenta_.back().span()});
            if constexpr (!std::is_same_v<Value, Master>) {
                std::vector<Master> masters(size);
                mp::convert(mp::cpu{}, weights[i].weights, masters);
                masters_.push_back(device.put(masters));
                parameters_.back().masters = masters_.back().span();
            }
        }
    }

    device_trainer(const device_trainer&) = delete;
    device_trainer& operator=(const device_trainer&) = delete;

    /// One step of training, the part to copy. Nothing here waits or allocates. `note` is the place of the
    /// step among the notes.
    void step(mp::matrix_view<const Value> images, std::span<const int> labels, std::size_t note) {
        backward(images, labels);
        if (checks_) {
            mp::check_gradients(device_.exec(), parameters_, scale_.data());
            mp::sgd_step(device_.exec(), parameters_, options_, optimizer_.data(), policy_, scale_.data());
        } else {
            mp::sgd_step(device_.exec(), parameters_, options_, optimizer_.data(),
                         {.inverse_scale = &scale_.data()->inverse_scale});
        }
        launch("note_step", device_.exec(), mp::simt::launch_size{},
               note_step_kernel<scale_type>{loss_.data(), weight_, scale_.data(), optimizer_.data(),
                                            notes_.data() + note});
        if (checks_) mp::update_scale(device_.exec(), policy_, scale_.data());
    }

    /// The gradients of a batch and its loss, as the first half of step().
    void backward(mp::matrix_view<const Value> images, std::span<const int> labels) {
        const auto logits = model_.forward(images);
        // It is here that a scale that is too large overflows.
        mp::ops::softmax_cross_entropy_with_gradient(
            device_.exec(), logits, labels, loss_.data(),
            row_losses_.span().first(static_cast<std::size_t>(logits.rows)), model_.logits_gradient(),
            scale_.data(), weight_);
        model_.backward(images);
    }

    /// What the steps have noted so far; waits.
    std::vector<step_note> take_notes() { return device_.get(notes_); }
    /// What the loss is multiplied by in the next step; waits.
    float current_scale() { return device_.get(scale_).front().current_scale(); }

    device_network<Device, Value>& model() { return model_; }
    /// The optimizer's weights, in the order of network::parameters(); none where Master is Value.
    std::vector<array<Master>>& masters() { return masters_; }
    std::vector<array<Master>>& momenta() { return momenta_; }

    /// Of memory: weight, gradient, momentum, and master copy if there is one.
    static constexpr double bytes_per_parameter =
        2 * sizeof(Value) + sizeof(Master) + (std::is_same_v<Value, Master> ? 0 : sizeof(Master));

private:
    using scale_type = mp::device_loss_scale<Policy, 0>;

    Device& device_;
    device_network<Device, Value> model_;
    mp::sgd_options options_;
    float weight_;
    Policy policy_;
    bool checks_;
    array<scale_type> scale_;
    array<mp::device_optimizer<mp::sgd_options>> optimizer_;
    array<float> row_losses_;
    array<float> loss_;
    array<step_note> notes_;
    std::vector<array<Master>> masters_;
    std::vector<array<Master>> momenta_;
    std::vector<mp::gpu_parameter<Value, Value, Master>> parameters_;
};

/// Images and labels in device memory.
template <class Device, class Value>
class device_digits {
public:
    device_digits(Device& device, const digits& from)
        : images_(device.put(converted(from.pixels))), labels_(device.put(from.labels)) {}

    /// The images from `first` on, `count` of them.
    mp::matrix_view<const Value> images(std::size_t first, std::size_t count) {
        return mp::row_major<const Value>(images_.data() + first * image_pixels,
                                          static_cast<std::ptrdiff_t>(count),
                                          static_cast<std::ptrdiff_t>(image_pixels));
    }
    std::span<const int> labels(std::size_t first, std::size_t count) {
        return labels_.span().subspan(first, count);
    }

private:
    static std::vector<Value> converted(const std::vector<float>& pixels) {
        std::vector<Value> result(pixels.size());
        mp::convert(mp::cpu{}, pixels, result);
        return result;
    }

    typename Device::template array<Value> images_;
    typename Device::template array<int> labels_;
};

/// The share of a set that the network gets right.
template <class Device, class Value>
double device_accuracy(Device& device, device_network<Device, Value>& model, const digits& set,
                       std::size_t batch) {
    device_digits<Device, Value> on_device(device, set);
    double right = 0.0;
    for (std::size_t first = 0; first < set.size(); first += batch) {
        const std::size_t count = std::min(batch, set.size() - first);
        const auto shape = model.forward(on_device.images(first, count));
        const std::vector<Value> logits = model.logits(device);
        right += mp::ops::accuracy(mp::cpu{}, mp::row_major(logits.data(), shape.rows, shape.columns),
                                   set.labels_of(first, count)) *
                 static_cast<double>(count);
    }
    return right / static_cast<double>(set.size());
}

/// The precision in whose terms the gradients of a format are judged.
template <class Value>
inline constexpr mp::precision precision_of_format =
    std::is_same_v<Value, mp::half>       ? mp::precision::fp16
    : std::is_same_v<Value, mp::bfloat16> ? mp::precision::bf16
                                          : mp::precision::off;

/// Trains a network on a device from the start, on the batches that train() of training.hpp deals. The
/// gradients are looked at as there: those of the device against a backward pass in float on the host.
///
/// \param checks  see device_trainer
template <class Value, class Master, class Device, class Policy>
training_record train_on_device(Device& device, const training_task& task, const Policy& policy, bool checks,
                                std::span<const std::size_t> widths = network_widths,
                                std::size_t batch = batch_size) {
    const auto weight = static_cast<float>(task.loss_weight);
    batches deal(task.data->training, batch, task.seed);
    const std::size_t steps = deal.per_epoch();
    device_trainer<Device, Value, Master, Policy> trainer(
        device, widths, batch, task.seed,
        {.learning_rate = base_learning_rate / task.loss_weight, .momentum = momentum}, weight, policy,
        checks, steps);
    network<Value> on_host(widths, batch, task.seed);
    gradient_probe probe(widths, batch);

    training_record record;
    stopwatch clock;
    for (int epoch = 0; epoch < task.epochs; ++epoch) {
        const std::size_t looked_at = steps / 2;
        digits dealt;
        digits sample;
        for (std::size_t step = 0; step < steps; ++step) {
            const digits& next = deal.next();
            if (step == looked_at) sample = next;
            for (std::size_t i = 0; i < batch; ++i) dealt.add(next, i);
        }
        device_digits<Device, Value> images(device, dealt);
        const auto run = [&](std::size_t begin, std::size_t end) {
            device.wait();
            clock.start();
            for (std::size_t step = begin; step < end; ++step) {
                trainer.step(images.images(step * batch, batch), images.labels(step * batch, batch), step);
            }
            device.wait();
            clock.stop();
        };
        run(0, looked_at);
        trainer.backward(images.images(looked_at * batch, batch), images.labels(looked_at * batch, batch));
        trainer.model().copy_to(device, on_host);
        probe.compare(mp::cpu{.products = mp::accumulation::ordered}, precision_of_format<Value>, on_host,
                      sample, {.weight = weight, .scale = trainer.current_scale()}, record.gradients);
        run(looked_at, steps);

        double loss = 0.0;
        for (const step_note& note : trainer.take_notes()) {
            loss += static_cast<double>(note.loss);
            if (note.applied == 0) record.skipped.push_back(record.scales.size());
            record.scales.push_back(note.scale);
        }
        record.losses.push_back(loss / static_cast<double>(steps));
        task.after_epoch();
    }
    record.accuracy = device_accuracy(device, trainer.model(), task.data->test, batch);
    record.final_scale = static_cast<double>(trainer.current_scale());
    record.bytes_per_parameter = trainer.bytes_per_parameter;
    record.seconds = clock.seconds();
    return record;
}

}  // namespace examples::train_digits
