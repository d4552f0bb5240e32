// SPDX-License-Identifier: MIT
/// \file
/// What the measurements of a setting say, in sentences. Every one of them is made from the numbers of this
/// very run, and left out where the recipes that it speaks about were not trained.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "summary.hpp"
#include "text.hpp"

namespace train_digits {
namespace detail {

/// Differences in test accuracy up to this are called none: 0.3 points, one image of the test set.
inline constexpr double same_accuracy = 0.003;
/// A gradient that is off by less than this share of its length points where the exact one points: the angle
/// between them is below three degrees.
inline constexpr double small_error = 0.05;

inline std::string points_text(double difference) {
    return fixed(100 * std::abs(difference), 1) + " points";
}

/// "test accuracy 97.8% against 98.1%, training loss 4.1 times as large".
inline std::string against(const recipe_summary& it, const recipe_summary& reference) {
    const double factor = it.loss().median / reference.loss().median;
    return "test accuracy " + percent(it.accuracy().mean) + " against " + percent(reference.accuracy().mean) +
           ", and " + times_text(factor) + " its training loss";
}

inline std::string accuracy_verdict(const recipe_summary& it, const recipe_summary& reference) {
    const double behind = reference.accuracy().mean - it.accuracy().mean;
    if (behind > same_accuracy) return "falls " + points_text(behind) + " behind";
    return behind < -same_accuracy ? "is " + points_text(behind) + " ahead of"
                                   : "stays within " + points_text(same_accuracy) + " of";
}

inline std::string flush_sentence(const recipe_summary& half, const recipe_summary* fp32) {
    std::string text =
        "fp16 alone writes " + percent(half.flushed_share()) + " of the gradients of weights as zero, and " +
        percent(half.flushed_share_of_outputs()) + " of those that travel from layer to layer.";
    if (fp32 == nullptr) return text;
    text += " It " + accuracy_verdict(half, *fp32) + " fp32: " + against(half, *fp32) + ".";
    if (half.runs().size() > 1) {
        text += " Its trainings lie between " + percent(half.accuracy().lowest) + " and " +
                percent(half.accuracy().highest) + ", those of fp32 between " +
                percent(fp32->accuracy().lowest) + " and " + percent(fp32->accuracy().highest) + ".";
    }
    return text;
}

inline std::string reason_sentence(const recipe_summary& half, const recipe_summary* scaled) {
    const double error = half.gradient_error();
    std::string text = error < small_error
                           ? "What vanishes hardly counts: the gradient that reaches the optimizer is off by "
                           : "What vanishes counts: the gradient that reaches the optimizer is off by ";
    text += percent(error) + " of its length";
    if (scaled != nullptr) {
        text += ", where the scaled one, which flushes " + percent(scaled->flushed_share()) + ", is off by " +
                percent(scaled->gradient_error());
    }
    return text + ".";
}

inline std::string master_sentence(const recipe_summary& master, const recipe_summary& fp32) {
    const double factor = master.loss().median / fp32.loss().median;
    std::string text =
        "Master weights without loss scaling end with " + times_text(factor) + " the training loss of fp32";
    if (master.gradient_error() >= small_error) {
        text +=
            ": they keep small updates from being rounded away, but cannot bring back gradients that are "
            "zero already";
    }
    return text + ".";
}

inline std::string scaling_sentence(const recipe_summary& scaled, const std::string& kind,
                                    const recipe_summary& fp32) {
    const double skipped = scaled.skipped().mean;
    std::string text =
        kind + " loss scaling " + accuracy_verdict(scaled, fp32) + " fp32: " + against(scaled, fp32);
    if (skipped > 0) text += "; it skipped " + formatted("%.3g", skipped) + " steps a training";
    return text + ".";
}

inline std::string bfloat16_sentence(const recipe_summary& alone, const recipe_summary* master,
                                     const recipe_summary& fp32) {
    std::string text = "bfloat16 has the exponents of float and flushes " + percent(alone.flushed_share()) +
                       " without any scaling; with its 8 significant bits the gradient is off by " +
                       percent(alone.gradient_error()) + ". Alone it ends with " +
                       times_text(alone.loss().median / fp32.loss().median) + " the training loss of fp32";
    if (master != nullptr) {
        text +=
            ", with master weights with " + times_text(master->loss().median / fp32.loss().median) + " it";
    }
    return text + ".";
}

}  // namespace detail

/// The sentences for one setting.
inline std::vector<std::string> findings(const setting_summary& setting) {
    const recipe_summary* fp32 = setting.find("fp32");
    const recipe_summary* half = setting.find("fp16");
    const recipe_summary* master = setting.find("fp16-master");
    const recipe_summary* constant = setting.find("fp16-static");
    const recipe_summary* dynamic = setting.find("fp16-dynamic");
    const recipe_summary* bfloat = setting.find("bf16");
    std::vector<std::string> result;
    if (half != nullptr) {
        result.push_back(detail::flush_sentence(*half, fp32));
        result.push_back(detail::reason_sentence(*half, dynamic != nullptr ? dynamic : constant));
    }
    if (fp32 == nullptr) return result;
    if (master != nullptr) result.push_back(detail::master_sentence(*master, *fp32));
    if (constant != nullptr) result.push_back(detail::scaling_sentence(*constant, "Static", *fp32));
    if (dynamic != nullptr) result.push_back(detail::scaling_sentence(*dynamic, "Dynamic", *fp32));
    if (bfloat != nullptr) {
        result.push_back(detail::bfloat16_sentence(*bfloat, setting.find("bf16-master"), *fp32));
    }
    if (half != nullptr) {
        result.push_back("On this CPU fp16 takes " + times_text(half->seconds().mean / fp32->seconds().mean) +
                         " as long as fp32: it multiplies in float and converts on the way in and out. The "
                         "time that 16 bits save needs hardware that multiplies them.");
    }
    return result;
}

}  // namespace train_digits
