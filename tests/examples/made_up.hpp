// SPDX-License-Identifier: MIT
// Results that no training has given, to test what is said about them.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "train_digits/summary.hpp"

namespace examples_test {

inline constexpr examples::train_digits::recipe made_up_recipes[] = {
    {"fp32", "fp32", nullptr, false, true},
    {"fp16", "fp16 alone", nullptr, false},
    {"fp16-master", "fp16, master weights", nullptr, false},
    {"fp16-static", "fp16, static scale", nullptr, true},
    {"fp16-dynamic", "fp16, dynamic scale", nullptr, true},
    {"bf16-master", "bf16, master weights", nullptr, false},
    {"bf16", "bf16 alone", nullptr, false},
};

/// What is made up about a recipe; every training of it is the same.
struct made_up {
    double accuracy = 0.98;
    double loss = 0.001;
    double gradient_error = 0.001;
    int flushed = 0;  ///< of 100 gradient values
    std::vector<std::size_t> skipped = {};
};

inline examples::train_digits::recipe_summary summary_of(std::string_view name, const made_up& it,
                                                         std::size_t runs = 2) {
    const examples::train_digits::recipe* found = nullptr;
    for (const examples::train_digits::recipe& one : made_up_recipes) {
        if (one.name == name) found = &one;
    }
    examples::train_digits::training_record run;
    run.losses = {1.0, 0.1, it.loss};
    run.accuracy = it.accuracy;
    run.scales = {1024.0F, 1024.0F, 512.0F, 512.0F, 512.0F, 512.0F};
    run.skipped = it.skipped;
    run.final_scale = 512.0;
    run.bytes_per_parameter = 12.0;
    run.seconds = 1.5;
    run.gradients.relative_error = it.gradient_error;
    run.gradients.steps = 1;
    run.gradients.parameters.count = 100;
    run.gradients.parameters.flushed = static_cast<std::uint64_t>(it.flushed);
    run.gradients.parameters.exponents[100] = 100;
    run.gradients.outputs = run.gradients.parameters;
    return {*found, std::vector<examples::train_digits::training_record>(runs, run)};
}

inline examples::train_digits::setting_summary setting_of(
    const std::vector<std::pair<std::string_view, made_up>>& recipes, double loss_weight = 1.0,
    std::size_t runs = 2) {
    examples::train_digits::setting_summary setting{loss_weight, 7, {}};
    for (const auto& [name, it] : recipes) setting.recipes.push_back(summary_of(name, it, runs));
    return setting;
}

}  // namespace examples_test
