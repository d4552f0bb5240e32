// SPDX-License-Identifier: MIT
/// \file
/// The table of a setting, for the terminal and for the page.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "../common/table.hpp"
#include "../common/text.hpp"
#include "summary.hpp"

namespace examples::train_digits {

/// One line that says what the setting is.
inline std::string setting_title(const setting_summary& setting) {
    const std::string batch = std::to_string(batch_size);
    if (setting.loss_weight == 1.0) return "Ordinary setting: the loss is averaged over a batch of " + batch;
    const std::string weight = power_text(setting.loss_weight);
    const std::string rate = formatted("%g", base_learning_rate / setting.loss_weight);
    const std::string means = setting.loss_weight < 1.0
                                  ? ", as when it is averaged over a global batch in large-scale training"
                                  : "";
    return "Loss weight " + weight + means + "; the learning rate is " + rate + " to match";
}

namespace detail {

inline std::string accuracy_spread(const spread& it, bool ranges) {
    const auto text = [](double share) { return fixed(100 * share, 1); };
    return spread_text(text(it.mean) + "%", text(it.lowest), text(it.highest), ranges);
}

inline std::string scale_text(const recipe_summary& it) {
    if (!it.scales_loss()) return "-";
    const std::string low = power_text(it.final_scale().lowest);
    const std::string high = power_text(it.final_scale().highest);
    return low == high ? low : low + ".." + high;
}

}  // namespace detail

/// What was measured, a line for each recipe; with the range of the trainings, if so asked.
inline table results_table(const setting_summary& setting, bool ranges) {
    table result;
    result.head = {{"", "recipe"},        {"test", "accuracy"},     {"training", "loss"},
                   {"skipped", "steps"},  {"final", "scale"},       {"flushed", "to zero"},
                   {"gradient", "error"}, {"bytes a", "parameter"}, {"", "seconds"}};
    for (const recipe_summary& it : setting.recipes) {
        const double skipped = it.skipped().mean;
        const bool whole = skipped == std::floor(skipped);
        result.rows.push_back({std::string(it.title()), detail::accuracy_spread(it.accuracy(), ranges),
                               loss_spread(it.loss(), ranges),
                               fixed(skipped, whole ? 0 : 1) + " of " + std::to_string(it.steps()),
                               detail::scale_text(it), percent(it.flushed_fraction()),
                               percent(it.gradient_error()), formatted("%g", it.bytes_per_parameter()),
                               fixed(it.seconds().mean, 2)});
    }
    return result;
}

/// What the columns mean.
inline std::vector<std::string> table_notes(const setting_summary& setting) {
    const auto runs = setting.recipes.front().runs().size();
    std::vector<std::string> notes;
    if (runs > 1) {
        notes.push_back("Means of " + std::to_string(runs) + " trainings with seeds " +
                        std::to_string(setting.first_seed) + " to " +
                        std::to_string(setting.first_seed + runs - 1) + ".");
    }
    notes.emplace_back(
        "training loss: the mean over the batches of the last epoch, without the loss weight.");
    notes.emplace_back(
        "flushed: gradients of weights and biases that are not zero in float, but zero in the format of the "
        "recipe at its loss scale.");
    notes.emplace_back(
        "gradient error: distance of the gradient that the optimizer gets from the one that float gives for "
        "the same weights, as a share of its length.");
    const auto is_preset = [](const recipe_summary& it) { return it.name().starts_with("preset-"); };
    if (std::any_of(setting.recipes.begin(), setting.recipes.end(), is_preset)) {
        notes.emplace_back(
            "Under a preset of autocast weights are float and rounded at each use, which the gradient error "
            "then contains; the other recipes in 16 bits have weights that are rounded already.");
    }
    const std::string seconds = setting.gpu.empty()
                                    ? "one thread of this CPU."
                                    : "of all steps of a training on " + setting.gpu + ", launches included.";
    notes.push_back("bytes/param: weight, gradient, master weight and momentum. seconds: " + seconds);
    if (!setting.gpu.empty() && setting.find("fp32") != nullptr) {
        notes.emplace_back(
            "fp32 in TF32: all is float, but products read their factors without the last 13 bits. The "
            "gradient error shows what that does.");
    }
    if (setting.find("fp16-dynamic") != nullptr) {
        notes.push_back("The dynamic scale starts at 2^16 and doubles after " +
                        std::to_string(growth_interval) +
                        " clean steps instead of PyTorch's 2000, since the training is short.");
    }
    return notes;
}

}  // namespace examples::train_digits
