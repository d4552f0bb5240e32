// SPDX-License-Identifier: MIT
/// \file
/// The traits of an optimizer, keyed by the type of its options, for CPUs and GPUs; and the ratio that a layer-wise rate is
/// made of.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/optim/option_checks.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/numbers/format/basic_float.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Specialised beside every struct of options with
/// - `coefficients`, what the update multiplies by, and the arrays of state that its rule has:
///   coefficients::states;
/// - `name`, `step` and `gpu_step`, by which messages call the optimizer, its step, and the step on a GPU;
/// - `static std::size_t states(const Options&)`: arrays of state that there must be memory for;
/// - `static void check(function, options)`, which throws argument_error for options out of range;
/// - `static double largest_rate_factor(options)`: by what an update multiplies the learning rate at most;
/// - `static coefficients coefficients_of(options, learning_rate, update)` of update number 1, 2 ...;
/// - `static gradient_limits limits(options, largest_state, largest_step)`, see gradient_limits.hpp;
///
/// where states are means that begin at zero, with
/// - `static double bias(options, state, update)`: what such a mean is too small by after an update, 1 - beta^update;
/// - `static coefficients of_divided_means(options, learning_rate, update)`: the same for states that are kept divided
///   by their bias;
///
/// and for layer-wise rates, where coefficients_of leaves the trust ratio at 1, with
/// - `static bool adapts(options)`: whether the trust ratio may be another;
/// - `static double trust_ratio(options, learning_rate, weight_norm, measured_norm)`, of norms that are finite and
///   positive;
/// - `static coefficients with_trust_ratio(coefficients, learning_rate, ratio)`.
template <class Options>
struct optimizer_traits;

/// Whether states are kept divided by their bias: in formats that round much. There a mean stops on its way to a constant
/// where a step of it is less than half the spacing, which for the mean of squares is at half its way in bfloat16 with
/// beta2 = 0.999, and a weight goes 1.44 times too far. A divided mean is at the constant from the first step on.
template <class Options, class State>
inline constexpr bool divides_means = reduced<State> && requires(const Options& options) {
    optimizer_traits<Options>::bias(options, std::size_t{}, std::uint64_t{});
};

/// The coefficients of an update for states of this type.
MP_ANY_EXECUTION_SPACE
template <class State, class Options>
MP_HOST_DEVICE auto coefficients_for(const Options& options, double learning_rate, std::uint64_t update) {
    if constexpr (divides_means<Options, State>) {
        return optimizer_traits<Options>::of_divided_means(options, learning_rate, update);
    } else {
        return optimizer_traits<Options>::coefficients_of(options, learning_rate, update);
    }
}

/// Options of an optimizer with layer-wise rates.
template <class Options>
concept layerwise_options = requires(const Options& options) { optimizer_traits<Options>::adapts(options); };

}}  // namespace mp::detail

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
