// SPDX-License-Identifier: MIT
/// \file
/// The recipes that are compared: formats, master weights and loss scaling.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "training.hpp"

namespace examples::train_digits {

/// One way to train.
struct recipe {
    std::string_view name;   ///< for the command line
    std::string_view title;  ///< for tables and plots
    training_record (*train)(const training_task& task);
    bool scales_loss = false;
    bool in_float = false;        ///< nothing is cast
    std::string_view style = {};  ///< classes of its lines in the style sheet; empty for its name
};

/// The scale of the static recipe in the ordinary setting. A user picks such a constant from the histogram of
/// gradient exponents: 2^10 lifts all but the smallest gradients into the range of half, and leaves the
/// largest ones, about 1, far below the 65504 where half ends.
inline constexpr float static_scale = 1024.0F;

/// Clean steps until the scale of the dynamic recipe doubles. PyTorch's default, 2000, is made for long
/// trainings: this one has 330 steps, and the scale would never move.
inline constexpr int growth_interval = 20;

/// Those of this program, in the order in which they are shown.
std::span<const recipe> all_recipes();

/// One for each preset of autocast, in their order, which are shown after the others: "preset-" and the
/// preset's name. Weights, gradients and activations are float, and half where the preset has no master
/// weights; the loss is scaled dynamically where the preset computes in half.
std::span<const recipe> preset_recipes();

/// A GPU that trains.
struct gpu {
    std::string name;
    std::span<const recipe> recipes;  ///< with the names of all_recipes(), in their order
};

/// The current CUDA device. Throws user_error where there is none, or none that this program has code for,
/// and in programs that were built without CUDA.
gpu find_cuda_device();

}  // namespace examples::train_digits
