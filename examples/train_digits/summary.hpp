// SPDX-License-Identifier: MIT
/// \file
/// The trainings of one recipe with several seeds, taken together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../common/spread.hpp"
#include "recipes.hpp"
#include "training.hpp"

namespace examples::train_digits {

/// The trainings of one recipe in one setting.
class recipe_summary {
public:
    recipe_summary(const recipe& of, std::vector<training_record> runs)
        : recipe_(&of), runs_(std::move(runs)) {
        for (const training_record& run : runs_) gradients_ += run.gradients;
    }

    [[nodiscard]] std::string_view name() const { return recipe_->name; }
    [[nodiscard]] std::string_view title() const { return recipe_->title; }
    /// Classes of its lines in the style sheet.
    [[nodiscard]] std::string style() const {
        return std::string(recipe_->style.empty() ? recipe_->name : recipe_->style);
    }
    [[nodiscard]] bool scales_loss() const { return recipe_->scales_loss; }
    [[nodiscard]] const std::vector<training_record>& runs() const { return runs_; }

    [[nodiscard]] spread accuracy() const {
        return over_runs([](const training_record& run) { return run.accuracy; });
    }
    /// Of the batches of the last epoch.
    [[nodiscard]] spread loss() const { return loss_in(runs_.front().losses.size() - 1); }
    /// Of the batches of an epoch, counted from 0.
    [[nodiscard]] spread loss_in(std::size_t epoch) const {
        return over_runs([epoch](const training_record& run) { return run.losses[epoch]; });
    }
    [[nodiscard]] spread skipped() const {
        return over_runs([](const training_record& run) { return static_cast<double>(run.skipped.size()); });
    }
    [[nodiscard]] spread final_scale() const {
        return over_runs([](const training_record& run) { return run.final_scale; });
    }
    [[nodiscard]] spread seconds() const {
        return over_runs([](const training_record& run) { return run.seconds; });
    }
    [[nodiscard]] std::size_t steps() const { return runs_.front().scales.size(); }
    [[nodiscard]] double bytes_per_parameter() const { return runs_.front().bytes_per_parameter; }
    [[nodiscard]] const gradient_record& gradients() const { return gradients_; }

    /// Share of the non-zero gradients of weights and biases that the recipe's format writes as zero.
    [[nodiscard]] double flushed_fraction() const {
        return in_float() ? 0.0 : gradients_.parameters.flushed_fraction();
    }
    /// The same for the gradients that travel from layer to layer.
    [[nodiscard]] double flushed_share_of_outputs() const {
        return in_float() ? 0.0 : gradients_.outputs.flushed_fraction();
    }
    [[nodiscard]] double gradient_error() const { return gradients_.mean_relative_error(); }

private:
    /// Its record says what half would do, as there is no report for float.
    [[nodiscard]] bool in_float() const { return recipe_->in_float; }

    template <class Number>
    [[nodiscard]] spread over_runs(Number number) const {
        std::vector<double> values;
        values.reserve(runs_.size());
        for (const training_record& run : runs_) values.push_back(number(run));
        return spread_of(values);
    }

    const recipe* recipe_;
    std::vector<training_record> runs_;
    gradient_record gradients_;
};

/// All recipes at one loss weight.
struct setting_summary {
    double loss_weight = 1.0;
    std::uint64_t first_seed = 1;
    std::vector<recipe_summary> recipes;
    std::string gpu = {};  ///< its name where the recipes were trained on one; empty for the CPU

    /// The recipe of that name, or null if it was not trained.
    [[nodiscard]] const recipe_summary* find(std::string_view name) const {
        for (const recipe_summary& it : recipes) {
            if (it.name() == name) return &it;
        }
        return nullptr;
    }
};

}  // namespace examples::train_digits
