// SPDX-License-Identifier: MIT
/// \file
/// What the losses share: the factors of a loss and of its gradient.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/numbers/format/classification.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <string_view>

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Factors of a loss, both exact where they are powers of two.
struct loss_factors {
    /// What the mean over the batch is multiplied by, finite and not negative: for example the share of this
    /// batch in a larger one whose loss is averaged.
    float weight = 1.0F;
    /// Loss scale, finite and positive. Only gradients carry it; the optimizer's unscaling takes it out.
    float scale = 1.0F;
};

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline void check_loss_factors(std::string_view function, const ops::loss_factors& factors) {
    if (!isfinite(factors.weight) || factors.weight < 0.0F) {
        throw_argument(function, "factors.weight", factors.weight, "must be finite and not negative");
    }
    if (!isfinite(factors.scale) || !(factors.scale > 0.0F)) {
        throw_argument(function, "factors.scale", factors.scale, "must be finite and positive");
    }
}

/// The loss: the mean of `count` losses, times the weight.
MP_HOST_DEVICE inline double weighted_mean(double sum, double count, float weight) {
    return (rounded_doubles<1>(sum) / count * double_from_float(weight)).value();
}

/// What the slope of one of `count` losses is multiplied by.
inline double gradient_factor(const ops::loss_factors& factors, double count) {
    const rounded_doubles<1> weight = static_cast<double>(factors.weight);
    return (weight * static_cast<double>(factors.scale) / count).value();
}

}}  // namespace mp::detail
