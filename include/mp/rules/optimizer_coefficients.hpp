// SPDX-License-Identifier: MIT
/// \file
/// What the updates of the optimizers multiply by; the options' functions coefficients_of make it.
#pragma once

#include <mp/config.hpp>

#include <cstddef>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// What the update of SGD multiplies by.
struct sgd_coefficients {
    static constexpr std::size_t states = 1;
    float rate;
    float decay;     // share of the weight that is added to the gradient
    float momentum;  // of the old buffer
    float share;     // of the gradient in the buffer
    bool decays;
    bool has_momentum;  // else there is no state
    bool nesterov;
};

/// What the update of AdamW multiplies by.
struct adamw_coefficients {
    static constexpr std::size_t states = 2;
    float decay;         // share of itself that the weight loses
    float mean_keep;     // of the old mean
    float mean_share;    // of the gradient in its mean
    float square_keep;   // of the old mean square
    float square_share;  // of the squared gradient in its mean
    float rate;          // learning rate over the bias correction of the mean
    float inverse_bias;  // one over the root of the bias correction of the mean square
    float epsilon;
    float coupled;  // share of the weight that is added to the gradient
    bool couples;
};

/// What the update of Lion multiplies by.
struct lion_coefficients {
    static constexpr std::size_t states = 1;
    float rate;
    float decay;            // share of itself that the weight loses
    float direction_keep;   // of the momentum in the direction
    float direction_share;  // of the gradient in it
    float momentum_keep;    // of the old momentum
    float momentum_share;   // of the gradient in the momentum
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
