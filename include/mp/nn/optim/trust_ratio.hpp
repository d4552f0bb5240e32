// SPDX-License-Identifier: MIT
/// \file
/// The ratio that a layer-wise rate is made of.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/optim/option_checks.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Two norms of a parameter.
struct layer_norms {
    bool wanted = false;    // else they are zero
    double weights = 0.0;   // in the precision in which they are trained, before the step
    double measured = 0.0;  // of the gradients or the update
};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The trust ratio of a parameter. It is 1 where a norm is zero, and where one is not finite: then an element is not,
/// and the others step as if there were no ratio.
template <layerwise_options Options>
[[nodiscard]] MP_HOST_DEVICE double trust_ratio_of(const Options& options, double learning_rate,
                                                   const layer_norms& norms) noexcept {
    if (is_non_finite(norms.weights) || is_non_finite(norms.measured)) return 1.0;
    if (!(norms.weights > 0.0 && norms.measured > 0.0)) return 1.0;
    return optimizer_traits<Options>::trust_ratio(options, learning_rate, norms.weights, norms.measured);
}

/// A positive factor as a float, at most the largest one: what it multiplies then has so small a norm that a layer
/// moves by no more than the learning rate allows.
[[nodiscard]] MP_HOST_DEVICE inline float finite_float(double factor) noexcept {
    return static_cast<float>(factor < largest_float_as_double ? factor : largest_float_as_double);
}

}}  // namespace mp::detail
