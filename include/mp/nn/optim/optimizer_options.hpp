// SPDX-License-Identifier: MIT
/// \file
/// Options and coefficients of SGD, AdamW and Lion, for optimizers on CPUs and on GPUs.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/optim/gradient_limits.hpp>
#include <mp/nn/optim/kernels/double_power.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/optimizer_coefficients.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp {

/// Options of mp::sgd, with the defaults of torch.optim.SGD. They are multiplied by as floats, and have to be
/// what is said here as floats as well: a momentum of 1 - 2^-25 is refused, since it would be 1.
/// Under a scaler, a step by a gradient is skipped if the momentum would leave the range of the state under
/// such gradients, or a weight would move by more than half of its range.
struct sgd_options {
    double learning_rate = 1e-3;  ///< finite and not negative
    double momentum = 0.0;        ///< in [0, 1); 0 keeps no momentum state
    double dampening = 0.0;  ///< in [0, 1]; takes this fraction off every gradient that enters the momentum
    double weight_decay = 0.0;  ///< finite and not negative; this times the weight is added to the gradient
    bool nesterov = false;      ///< look ahead; needs a momentum, and a dampening of 0

    /// For weights of a reduced format without master copy; otherwise it must be nearest.
    weight_update low_precision_update = weight_update::nearest;
    std::uint64_t seed = 0;  ///< of the random bits of weight_update::stochastic; another for every optimizer

    friend constexpr bool operator==(const sgd_options&, const sgd_options&) = default;

    /// Calls visitor(name, member) for every option.
    MP_VISITS_MEMBERS(learning_rate, momentum, dampening, weight_decay, nesterov, low_precision_update, seed)
};

namespace detail { inline namespace MP_ISA_NAMESPACE {

template <>
struct optimizer_traits<sgd_options> {
    using coefficients = sgd_coefficients;
    static constexpr std::string_view name = "mp::sgd";
    static constexpr std::string_view step = "mp::sgd::step";
    static constexpr std::string_view gpu_step = "mp::sgd_step";
    static std::size_t states(const sgd_options& options) {
        return same_value(options.momentum, 0.0) ? 0 : 1;
    }

    static void check(std::string_view function, const sgd_options& options) {
        require_non_negative(function, "learning_rate", options.learning_rate);
        require_fraction(function, "momentum", options.momentum);
        if (is_non_finite(options.dampening) || !(options.dampening >= 0.0 && options.dampening <= 1.0)) {
            throw_argument(function, "dampening", options.dampening, "must be at least 0 and at most 1");
        }
        require_non_negative(function, "weight_decay", options.weight_decay);
        if (options.nesterov && same_value(options.momentum, 0.0)) {
            throw_argument(function, "momentum", options.momentum, "must not be 0 with nesterov");
        }
        if (options.nesterov && !same_value(options.dampening, 0.0)) {
            throw_argument(function, "dampening", options.dampening, "must be 0 with nesterov");
        }
    }
    static double largest_rate_factor(const sgd_options& /*options*/) { return 1.0; }
    /// One gradient moves a weight by learning_rate / (1 - momentum) of itself over all steps.
    static gradient_limits limits(const sgd_options& options, double largest_state, double largest_step) {
        gradient_limits result;
        result.step = double_multiply(largest_step, double_subtract(1.0, options.momentum));
        if (options.momentum > 0.0) result.state = largest_in_mean(largest_state, options.momentum, 1.0);
        if (options.weight_decay > 0.0) result.state = double_multiply(result.state, 0.5);
        return result;
    }
    MP_HOST_DEVICE static coefficients coefficients_of(const sgd_options& options, double learning_rate,
                                                       std::uint64_t update) noexcept {
        // The buffer starts at zero, so taking the whole gradient at the first update sets it to that.
        const double gradient_scale = update == 1 ? 1.0 : 1.0 - options.dampening;
        return {static_cast<float>(learning_rate),
                static_cast<float>(options.weight_decay),
                static_cast<float>(options.momentum),
                static_cast<float>(gradient_scale),
                !same_value(options.weight_decay, 0.0),
                !same_value(options.momentum, 0.0),
                options.nesterov};
    }
};

}}  // namespace detail

/// Options of mp::adamw, with the defaults of torch.optim.AdamW. They are multiplied by as floats, and
/// have to be what is said here as floats as well: an epsilon of 1e-50 is refused, since it would be 0.
/// Under a scaler, a step by a gradient whose square is beyond the range of the state is skipped.
struct adamw_options {
    double learning_rate = 1e-3;  ///< finite and not negative, also over 1 - beta1 and times weight_decay
    double beta1 = 0.9;           ///< in [0, 1): how slowly the mean of the gradients moves
    double beta2 = 0.999;         ///< in [0, 1): how slowly the mean of their squares moves
    double epsilon = 1e-8;  ///< finite and not negative, 0 for 2^-64; added to the root of the mean square
    double weight_decay =
        1e-2;  ///< finite and not negative; this times the learning rate is the fraction that
               ///< every weight loses in a step
    /// Adds weight_decay times the weight to the gradient instead, as torch.optim.Adam does: the decay then
    /// goes through the means.
    bool coupled_decay = false;

    /// For weights of a reduced format without master copy; otherwise it must be nearest.
    weight_update low_precision_update = weight_update::nearest;
    std::uint64_t seed = 0;  ///< of the random bits of weight_update::stochastic; another for every optimizer

    friend constexpr bool operator==(const adamw_options&, const adamw_options&) = default;

    /// Calls visitor(name, member) for every option.
    MP_VISITS_MEMBERS(learning_rate, beta1, beta2, epsilon, weight_decay, coupled_decay, low_precision_update,
                      seed)
};

namespace detail { inline namespace MP_ISA_NAMESPACE {

template <>
struct optimizer_traits<adamw_options> {
    using coefficients = adamw_coefficients;
    static constexpr std::string_view name = "mp::adamw";
    static constexpr std::string_view step = "mp::adamw::step";
    static constexpr std::string_view gpu_step = "mp::adamw_step";
    static std::size_t states(const adamw_options& /*options*/) { return 2; }

    static void check(std::string_view function, const adamw_options& options) {
        require_non_negative(function, "learning_rate", options.learning_rate);
        require_fraction(function, "beta1", options.beta1);
        require_fraction(function, "beta2", options.beta2);
        require_non_negative(function, "epsilon", options.epsilon);
        require_non_negative(function, "weight_decay", options.weight_decay);
        require_learning_rate(function, "learning_rate", options.learning_rate, largest_rate_factor(options));
    }
    /// The first update has the largest correction of the mean.
    static double largest_rate_factor(const adamw_options& options) {
        return (std::max)({1.0, options.weight_decay, 1.0 / (1.0 - options.beta1)});
    }
    static gradient_limits limits(const adamw_options& options, double largest_state,
                                  double /*largest_step*/) {
        const double square =
            largest_in_mean(largest_state, options.beta2, double_subtract(1.0, options.beta2));
        const double root = double_sqrt(square);
        const bool shared = options.coupled_decay && options.weight_decay > 0.0;
        return {.state = shared ? double_multiply(root, 0.5) : root};
    }
    /// Has the same bits on host and device.
    MP_HOST_DEVICE static coefficients coefficients_of(const adamw_options& options, double learning_rate,
                                                       std::uint64_t update) noexcept {
        return {options.coupled_decay ? 0.0F : static_cast<float>(learning_rate * options.weight_decay),
                static_cast<float>(options.beta1), static_cast<float>(1.0 - options.beta1),
                static_cast<float>(options.beta2), static_cast<float>(1.0 - options.beta2),
                static_cast<float>(learning_rate / (1.0 - double_power(options.beta1, update))),
                static_cast<float>(1.0 / double_sqrt(1.0 - double_power(options.beta2, update))),
                // Not zero: squares of small gradients are, and so would be the divisor.
                static_cast<float>(options.epsilon > 0.0 ? options.epsilon : 0x1p-64),
                static_cast<float>(options.weight_decay),
                options.coupled_decay && options.weight_decay > 0.0};
    }
    MP_HOST_DEVICE static double bias(const adamw_options& options, std::size_t state,
                                      std::uint64_t updates) noexcept {
        return double_subtract(1.0, double_power(state == 0 ? options.beta1 : options.beta2, updates));
    }
    MP_HOST_DEVICE static coefficients of_divided_means(const adamw_options& options, double learning_rate,
                                                        std::uint64_t update) {
        return divided_means(coefficients_of(options, learning_rate, update), options, learning_rate,
                             double_subtract(1.0, options.beta1), double_subtract(1.0, options.beta2),
                             update);
    }

    /// Coefficients for means that are kept divided by their bias 1 - beta^t, of those for means that are not. With
    /// m' = m / (1 - beta^t) the update m = beta m + (1 - beta) g is
    ///
    ///     m' = beta (1 - beta^(t-1)) / (1 - beta^t) m' + (1 - beta) / (1 - beta^t) g.
    ///
    /// \param weight1  of the gradient, weight2 of its square: 1 - beta in the formula
    MP_HOST_DEVICE static coefficients divided_means(coefficients c, const adamw_options& options,
                                                     double learning_rate, double weight1, double weight2,
                                                     std::uint64_t update) noexcept {
        const auto kept = [&](double beta, std::size_t state) {
            return static_cast<float>(double_divide(double_multiply(beta, bias(options, state, update - 1)),
                                                    bias(options, state, update)));
        };
        c.beta1 = kept(options.beta1, 0);
        c.beta2 = kept(options.beta2, 1);
        c.one_minus_beta1 = static_cast<float>(double_divide(weight1, bias(options, 0, update)));
        c.one_minus_beta2 = static_cast<float>(double_divide(weight2, bias(options, 1, update)));
        c.rate = static_cast<float>(learning_rate);
        c.inverse_bias = 1.0F;
        return c;
    }
};

}}  // namespace detail

/// Options of mp::lion, with the defaults of its authors' implementation. They are multiplied by as floats,
/// and have to be what is said here as floats as well. Under a scaler, a step by a gradient beyond the range of the
/// state is skipped.
struct lion_options {
    double learning_rate = 1e-4;  ///< finite and not negative, also times weight_decay; a third to a tenth of
                                  ///< AdamW's
    double beta1 = 0.9;           ///< in [0, 1): fraction of the momentum in the direction of a step
    double beta2 = 0.99;          ///< in [0, 1): how slowly the momentum moves
    double weight_decay =
        0.0;  ///< finite and not negative; this times the learning rate is the fraction that
              ///< every weight loses in a step; three to ten times AdamW's

    /// For weights of a reduced format without master copy; otherwise it must be nearest.
    weight_update low_precision_update = weight_update::nearest;
    std::uint64_t seed = 0;  ///< of the random bits of weight_update::stochastic; another for every optimizer

    friend constexpr bool operator==(const lion_options&, const lion_options&) = default;

    /// Calls visitor(name, member) for every option.
    MP_VISITS_MEMBERS(learning_rate, beta1, beta2, weight_decay, low_precision_update, seed)
};

namespace detail { inline namespace MP_ISA_NAMESPACE {

template <>
struct optimizer_traits<lion_options> {
    using coefficients = lion_coefficients;
    static constexpr std::string_view name = "mp::lion";
    static constexpr std::string_view step = "mp::lion::step";
    static constexpr std::string_view gpu_step = "mp::gpu_optimizer::step";
    static std::size_t states(const lion_options& /*options*/) { return 1; }

    static double largest_rate_factor(const lion_options& options) {
        return (std::max)(1.0, options.weight_decay);
    }
    static gradient_limits limits(const lion_options& options, double largest_state,
                                  double /*largest_step*/) {
        return {.state = largest_in_mean(largest_state, options.beta2, double_subtract(1.0, options.beta2))};
    }
    static void check(std::string_view function, const lion_options& options) {
        require_non_negative(function, "learning_rate", options.learning_rate);
        require_fraction(function, "beta1", options.beta1);
        require_fraction(function, "beta2", options.beta2);
        require_non_negative(function, "weight_decay", options.weight_decay);
        require_learning_rate(function, "learning_rate", options.learning_rate, largest_rate_factor(options));
    }
    MP_HOST_DEVICE static coefficients coefficients_of(const lion_options& options, double learning_rate,
                                                       std::uint64_t /*update*/) {
        return {static_cast<float>(learning_rate),
                static_cast<float>(double_multiply(learning_rate, options.weight_decay)),
                static_cast<float>(options.beta1),
                static_cast<float>(double_subtract(1.0, options.beta1)),
                static_cast<float>(options.beta2),
                static_cast<float>(double_subtract(1.0, options.beta2))};
    }
};

}}  // namespace detail
}  // namespace mp
