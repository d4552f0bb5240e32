// SPDX-License-Identifier: MIT
/// \file
/// The traits of an optimizer, keyed by the type of its options, for CPUs and GPUs.
#pragma once

#include <mp/config.hpp>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Specialised beside every struct of options with
/// - `coefficients`, what the update multiplies by, and the arrays of state that its rule has:
///   coefficients::states;
/// - `name`, `step` and `gpu_step`, by which messages call the optimizer, its step, and the step on a GPU;
/// - `static std::size_t states(const Options&)`: arrays of state that there must be memory for;
/// - `static void check(function, options)`, which throws argument_error for options out of range;
/// - `static double largest_rate_factor(options)`: by what an update multiplies the learning rate at most;
/// - `static coefficients coefficients_of(options, learning_rate, update)` of update number 1, 2 ...
///
/// and for layer-wise rates, where coefficients_of leaves the trust ratio at 1, with
/// - `static bool adapts(options)`: whether the trust ratio may be another;
/// - `static double trust_ratio(options, learning_rate, weight_norm, measured_norm)`, of norms that are finite and
///   positive;
/// - `static coefficients with_trust_ratio(coefficients, learning_rate, ratio)`.
template <class Options>
struct optimizer_traits;

/// Options of an optimizer with layer-wise rates.
template <class Options>
concept layerwise_options = requires(const Options& options) { optimizer_traits<Options>::adapts(options); };

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
