// SPDX-License-Identifier: MIT
/// \file
/// Coefficients of the optimizers' updates; the functions coefficients_of make them of options.
#pragma once

#include <mp/config.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Coefficients of the update of SGD.
struct sgd_coefficients {
    static constexpr std::size_t states = 1;
    float rate;
    float decay;           // fraction of the weight that is added to the gradient
    float momentum;        // of the old buffer
    float gradient_scale;  // of the gradient in the buffer
    bool decays;
    bool has_momentum;  // else there is no state
    bool nesterov;
};

/// Coefficients of the update of AdamW.
struct adamw_coefficients {
    static constexpr std::size_t states = 2;
    float decay;            // fraction of itself that the weight loses
    float beta1;            // of the old mean
    float one_minus_beta1;  // of the gradient in its mean
    float beta2;            // of the old mean square
    float one_minus_beta2;  // of the squared gradient in its mean
    float rate;             // learning rate over the bias correction of the mean
    float inverse_bias;     // one over the root of the bias correction of the mean square
    float epsilon;
    float coupled;  // fraction of the weight that is added to the gradient
    bool couples;
};

/// Coefficients of the update of Lion.
struct lion_coefficients {
    static constexpr std::size_t states = 1;
    float rate;
    float decay;            // fraction of itself that the weight loses
    float beta1;            // of the momentum in the direction
    float one_minus_beta1;  // of the gradient in it
    float beta2;            // of the old momentum
    float one_minus_beta2;  // of the gradient in the momentum
};

// Of the updates with a trust ratio; `measured_states` are the states that the ratio depends on, all or none.

/// Coefficients of the update of LARS.
struct lars_coefficients {
    static constexpr std::size_t states = 1;
    static constexpr std::size_t measured_states = 0;
    sgd_coefficients sgd;
    float trust_ratio;  // of the gradient with its decay
};

/// Coefficients of the update of LAMB.
struct lamb_coefficients {
    static constexpr std::size_t states = 2;
    static constexpr std::size_t measured_states = 2;
    adamw_coefficients adamw;  // for a learning rate of 1
    float rate;                // learning rate times trust ratio
};

}}  // namespace mp::detail
