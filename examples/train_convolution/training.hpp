// SPDX-License-Identifier: MIT
/// \file
/// Trainings of the convolutional network, each under a preset of autocast.
#pragma once

#include <mp/frontends/compat/presets.hpp>
#include <mp/nn/autocast/cast_ledger.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../common/data.hpp"

namespace examples::train_convolution {

inline constexpr std::size_t batch_size = 64;
inline constexpr double learning_rate = 0.02;
inline constexpr double momentum = 0.9;

/// Clean steps until the loss scale doubles. PyTorch's default, 2000, is made for long trainings: in this one
/// the scale would never move.
inline constexpr int growth_interval = 20;

/// What one training is given, apart from the preset.
struct training_task {
    const split_digits* data = nullptr;
    int epochs = 8;
    std::uint64_t seed = 1;
    std::function<void()> after_epoch = [] {};
};

/// What came out of one training.
struct training_record {
    std::vector<double> losses;                    ///< of each epoch: the mean over its batches
    double accuracy = 0.0;                         ///< on the test set, at the end
    std::vector<float> scales;                     ///< the loss scale of every step
    std::vector<std::size_t> skipped;              ///< the steps that were skipped, counted from 0
    double final_scale = 1.0;                      ///< after the last step
    std::string stored_type;                       ///< format of weights and activations
    std::vector<mp::autocast::op_record> ops;      ///< of the last step; empty where autocast is off
    std::vector<mp::autocast::cast_record> casts;  ///< of the last step
    double seconds = 0.0;                          ///< of the training itself, without evaluation
};

/// Whether trainings under this preset scale the loss: half needs it, and formats with the exponents of float
/// do not.
constexpr bool scales_loss(const mp::autocast::preset& preset) {
    return preset.value == mp::precision::fp16;
}

/// Trains a network from the start under a preset. The same task gives the same numbers.
training_record train(const mp::autocast::preset& preset, const training_task& task);

/// What the preset does with each op of the network, forward and backward, in one line each.
std::vector<std::string> explain(const mp::autocast::preset& preset);

}  // namespace examples::train_convolution
