// SPDX-License-Identifier: MIT
/// \file
/// What the measurements of a setting say, in sentences. Every one of them is made from the numbers of this
/// very run, and left out where the recipes that it speaks about were not trained.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "../common/text.hpp"
#include "summary.hpp"

namespace examples::train_digits {
namespace detail {

/// Differences in test accuracy up to this are called none: 0.3 points, one image of the test set.
inline constexpr double same_accuracy = 0.003;
/// A gradient that is off by less than this share of its length points where the exact one points: the angle
/// between them is below three degrees.
inline constexpr double small_error = 0.05;

inline std::string points_text(double difference) {
    return fixed(100 * std::abs(difference), 1) + " points";
}

inline std::string flush_sentence(const recipe_summary& half) {
    return "fp16 alone writes " + percent(half.flushed_fraction()) +
           " of the gradients of weights as zero, and " + percent(half.flushed_share_of_outputs()) +
           " of those that travel from layer to layer.";
}

/// How a recipe did against fp32.
inline std::string verdict_sentence(const recipe_summary& it, const std::string& name,
                                    const recipe_summary& fp32) {
    const double behind = fp32.accuracy().mean - it.accuracy().mean;
    const double factor = it.loss().mean / fp32.loss().mean;
    std::string text = name;
    if (behind > same_accuracy) {
        text += " falls " + points_text(behind) + " behind fp32";
    } else if (behind < -same_accuracy) {
        text += " is " + points_text(behind) + " ahead of fp32";
    } else {
        text += " stays within " + points_text(same_accuracy) + " of fp32";
    }
    text += ": test accuracy " + percent(it.accuracy().mean) + " against " + percent(fp32.accuracy().mean) +
            (behind <= same_accuracy && factor > 2.0 ? ", but " : ", and ") + times_text(factor) +
            " its training loss";
    const double skipped = it.skipped().mean;
    if (skipped > 0) text += "; it skipped " + formatted("%.2g", skipped) + " steps a training";
    return text + ".";
}

inline std::string reason_sentence(const recipe_summary& half, const recipe_summary* scaled) {
    const double error = half.gradient_error();
    std::string text = error < small_error
                           ? "What vanishes hardly counts: the gradient that reaches the optimizer is off by "
                           : "What vanishes counts: the gradient that reaches the optimizer is off by ";
    text += percent(error) + " of its length";
    if (scaled != nullptr) {
        text += ", where the scaled one, which flushes " + percent(scaled->flushed_fraction()) +
                ", is off by " + percent(scaled->gradient_error());
    }
    return text + ".";
}

inline std::string master_sentence(const recipe_summary& master, const recipe_summary& fp32) {
    const double factor = master.loss().mean / fp32.loss().mean;
    std::string text =
        "Master weights without loss scaling end with " + times_text(factor) + " the training loss of fp32";
    if (master.gradient_error() >= small_error) {
        text += ": gradients that are zero already are zero for them, too";
    }
    return text + ".";
}

inline std::string bfloat16_sentence(const recipe_summary& alone, const recipe_summary* master,
                                     const recipe_summary& fp32) {
    std::string text = "bfloat16 has the exponents of float and flushes " +
                       percent(alone.flushed_fraction()) +
                       " without any scaling; with its 8 significant bits the gradient is off by " +
                       percent(alone.gradient_error()) + ". Alone it ends with " +
                       times_text(alone.loss().mean / fp32.loss().mean) + " the training loss of fp32";
    if (master != nullptr) {
        text += ", with master weights with " + times_text(master->loss().mean / fp32.loss().mean) + " it";
    }
    return text + ".";
}

}  // namespace detail

/// The sentences that differ from setting to setting.
inline std::vector<std::string> findings(const setting_summary& setting) {
    const recipe_summary* fp32 = setting.find("fp32");
    const recipe_summary* half = setting.find("fp16");
    const recipe_summary* master = setting.find("fp16-master");
    const recipe_summary* constant = setting.find("fp16-static");
    const recipe_summary* dynamic = setting.find("fp16-dynamic");
    std::vector<std::string> result;
    if (half != nullptr) {
        result.push_back(detail::flush_sentence(*half));
        result.push_back(detail::reason_sentence(*half, dynamic != nullptr ? dynamic : constant));
    }
    if (fp32 == nullptr) return result;
    if (half != nullptr) result.push_back(detail::verdict_sentence(*half, "fp16 alone", *fp32));
    if (master != nullptr) result.push_back(detail::master_sentence(*master, *fp32));
    if (constant != nullptr) {
        result.push_back(detail::verdict_sentence(*constant, "Static loss scaling", *fp32));
    }
    if (dynamic != nullptr) {
        result.push_back(detail::verdict_sentence(*dynamic, "Dynamic loss scaling", *fp32));
    }
    return result;
}

/// The sentences that any one setting tells for all.
inline std::vector<std::string> general_findings(const setting_summary& setting) {
    const recipe_summary* fp32 = setting.find("fp32");
    const recipe_summary* half = setting.find("fp16");
    const recipe_summary* bfloat = setting.find("bf16");
    std::vector<std::string> result;
    if (fp32 == nullptr) return result;
    if (bfloat != nullptr) {
        result.push_back(detail::bfloat16_sentence(*bfloat, setting.find("bf16-master"), *fp32));
    }
    if (half != nullptr) {
        const std::string times = times_text(half->seconds().mean / fp32->seconds().mean);
        result.push_back(setting.gpu.empty()
                             ? "On this CPU fp16 takes " + times +
                                   " as long as fp32: it multiplies in float and converts on the way in and "
                                   "out. The time that 16 bits save needs hardware that multiplies them."
                             : "On " + setting.gpu + " fp16 takes " + times + " as long as fp32.");
    }
    return result;
}

}  // namespace examples::train_digits
