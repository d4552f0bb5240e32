// SPDX-License-Identifier: MIT
/// \file
/// The traits of an optimizer, keyed by the type of its options, for CPUs and GPUs; checks of the numbers that options are
/// made of; and the ratio that a layer-wise rate is made of.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/numbers/format/basic_float.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

// Checks look at bits, so that -ffast-math cannot remove them. The kernels multiply by floats, so that is what options
// have to be good for: neither infinite nor, unless they are that already, zero. 2^-150 is half of the smallest float,
// and the tie goes to zero.
inline constexpr double largest_vanishing_option = 0x1p-150;
inline constexpr double largest_float_as_double = 0x1.fffffep127;
/// Half a spacing below 1; the tie goes to 1.
inline constexpr double smallest_fraction_that_is_one = 0x1.ffffffp-1;

/// Throws argument_error if `value`, which is not negative, is zero only as a float.
inline void require_not_vanishing(std::string_view function, std::string_view argument, double value) {
    if (value > 0.0 && value <= largest_vanishing_option) {
        throw_argument(function, argument, value, "must be 0, or more than 2^-150, at which a float is 0");
    }
}

/// Throws argument_error unless `value` is finite and not negative, and as a float, too.
inline void require_non_negative(std::string_view function, std::string_view argument, double value) {
    if (is_non_finite(value) || !(value >= 0.0)) {
        throw_argument(function, argument, value, "must be finite and not negative");
    }
    if (value >= float_overflow_threshold) {
        throw_argument(function, argument, value, "must be in the range of float");
    }
    require_not_vanishing(function, argument, value);
}

/// Throws argument_error unless `value` is finite and positive, and as a float, too.
inline void require_positive(std::string_view function, std::string_view argument, double value) {
    require_non_negative(function, argument, value);
    if (!(value > 0.0)) throw_argument(function, argument, value, "must be greater than 0");
}

/// Throws argument_error unless `value` is in [0, 1), as a momentum must be, and as a float, too.
inline void require_fraction(std::string_view function, std::string_view argument, double value) {
    if (is_non_finite(value) || !(value >= 0.0 && value < 1.0)) {
        throw_argument(function, argument, value, "must be at least 0 and less than 1");
    }
    if (value >= smallest_fraction_that_is_one) {
        throw_argument(function, argument, value, "must be less than 1 as a float");
    }
    require_not_vanishing(function, argument, value);
}

/// Throws argument_error in the name of `function` unless weights can be updated in this way.
///
/// \param splits  whether a master is two numbers of the weights' format
inline void check_weight_update(std::string_view function, weight_update how, bool has_master_copy,
                                bool weight_is_float, bool splits) {
    const auto refuse = [&](std::string_view why) {
        throw_argument(function, "low_precision_update", name_of(how), why);
    };
    if (how == weight_update::nearest) return;
    if (has_master_copy) refuse("must be nearest, for there is a master copy");
    if (weight_is_float) refuse("must be nearest, for the weights are float");
    if (how == weight_update::split && !splits) refuse("must be another: only a bfloat16 is half of a float");
}

/// Throws argument_error unless `rate` is finite and not negative, and in the range of float even times
/// `factor`, at least 1, the largest number that an update multiplies it by. A rate that is zero as a float
/// passes: it is where decaying rates end, and moves no weight, as it should.
inline void require_learning_rate(std::string_view function, std::string_view argument, double rate,
                                  double factor) {
    if (is_non_finite(rate) || !(rate >= 0.0)) {
        throw_argument(function, argument, rate, "must be finite and not negative");
    }
    // Not divided: the factor may be so large that the product is infinite, and then it is refused.
    if (!(rate * factor <= largest_float_as_double)) {
        throw_argument(function, argument, rate,
                       "must be at most " + error_text(largest_float_as_double / factor) +
                           ": what an update multiplies by is a float");
    }
}

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
