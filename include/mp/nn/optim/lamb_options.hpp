// SPDX-License-Identifier: MIT
/// \file
/// Options and coefficients of LAMB.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/optim/adamw_options.hpp>
#include <mp/nn/optim/gradient_limits.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/optim/option_checks.hpp>
#include <mp/nn/optim/trust_ratio.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/optimizer_coefficients.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp {

/// Options of mp::lamb, with the words and defaults of Apex's FusedLAMB. They are multiplied by as floats, see
/// mp::adamw_options. For max_grad_norm there is clip_gradient_norm. Under a scaler, a step by a gradient
/// whose square is beyond the range of the state is skipped.
struct lamb_options {
    double learning_rate = 1e-3;  ///< finite and not negative, also over 1 - beta1 and times weight_decay
    double beta1 = 0.9;           ///< in [0, 1): how slowly the mean of the gradients moves
    double beta2 = 0.999;         ///< in [0, 1): how slowly the mean of their squares moves
    double epsilon = 1e-6;  ///< finite and not negative, 0 for 2^-64; added to the root of the mean square
    double weight_decay = 1e-2;   ///< finite and not negative; this times the weight is part of the update
    bool bias_correction = true;  ///< divides the means by 1 - beta^t
    bool adam_w_mode = true;      ///< false: weight_decay times the weight is added to the gradient instead
    bool grad_averaging = true;   ///< false: gradients enter their mean whole, not times 1 - beta1
    bool use_nvlamb = false;      ///< trust ratios also where weight_decay is 0, where it is 1 otherwise

    /// For weights of a reduced format without master copy; otherwise it must be nearest.
    weight_update low_precision_update = weight_update::nearest;
    std::uint64_t seed = 0;  ///< of the random bits of weight_update::stochastic; another for every optimizer

    friend constexpr bool operator==(const lamb_options&, const lamb_options&) = default;

    /// Calls visitor(name, member) for every option.
    MP_VISITS_MEMBERS(learning_rate, beta1, beta2, epsilon, weight_decay, bias_correction, adam_w_mode,
                      grad_averaging, use_nvlamb, low_precision_update, seed)
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <>
struct optimizer_traits<lamb_options> {
    using coefficients = lamb_coefficients;
    static constexpr std::string_view name = "mp::lamb";
    static constexpr std::string_view step = "mp::lamb::step";
    static std::size_t states(const lamb_options& /*options*/) { return 2; }

    static void check(std::string_view function, const lamb_options& options) {
        adamw::check(function, adamw_of(options));
    }
    static double largest_rate_factor(const lamb_options& options) {
        return adamw::largest_rate_factor(adamw_of(options));
    }
    static gradient_limits limits(const lamb_options& options, double largest_state, double largest_step) {
        gradient_limits result = adamw::limits(adamw_of(options), largest_state, largest_step);
        const double sum = largest_in_mean(largest_state, options.beta1, 1.0);
        if (!options.grad_averaging) result.state = (std::min)(result.state, sum);
        return result;
    }
    MP_HOST_DEVICE static coefficients coefficients_of(const lamb_options& options, double learning_rate,
                                                       std::uint64_t update) {
        // At a learning rate of 1, what a weight loses in a step of AdamW is the update of LAMB.
        coefficients c = {adamw::coefficients_of(adamw_of(options), 1.0, update),
                          static_cast<float>(learning_rate)};
        if (!options.grad_averaging) c.adamw.one_minus_beta1 = 1.0F;
        if (!options.bias_correction) c.adamw.rate = c.adamw.inverse_bias = 1.0F;
        return c;
    }
    /// Without the correction a mean is what it is.
    MP_HOST_DEVICE static double bias(const lamb_options& options, std::size_t state, std::uint64_t updates) {
        return options.bias_correction ? adamw::bias(adamw_of(options), state, updates) : 1.0;
    }
    MP_HOST_DEVICE static coefficients of_divided_means(const lamb_options& options, double learning_rate,
                                                        std::uint64_t update) {
        coefficients c = coefficients_of(options, learning_rate, update);
        if (!options.bias_correction) return c;
        const double weight = options.grad_averaging ? double_subtract(1.0, options.beta1) : 1.0;
        c.adamw = adamw::divided_means(c.adamw, adamw_of(options), 1.0, weight,
                                       double_subtract(1.0, options.beta2), update);
        return c;
    }
    MP_HOST_DEVICE static bool adapts(const lamb_options& options) {
        return options.use_nvlamb || options.weight_decay > 0.0;
    }
    MP_HOST_DEVICE static double trust_ratio(const lamb_options& /*options*/, double /*learning_rate*/,
                                             double weight_norm, double update_norm) {
        return double_divide(weight_norm, update_norm);
    }
    MP_HOST_DEVICE static coefficients with_trust_ratio(coefficients c, double learning_rate, double ratio) {
        c.rate = finite_float(double_multiply(learning_rate, ratio));
        return c;
    }

private:
    using adamw = optimizer_traits<adamw_options>;
    MP_HOST_DEVICE static adamw_options adamw_of(const lamb_options& options) {
        return {.learning_rate = options.learning_rate,
                .beta1 = options.beta1,
                .beta2 = options.beta2,
                .epsilon = options.epsilon,
                .weight_decay = options.weight_decay,
                .coupled_decay = !options.adam_w_mode};
    }
};

}}  // namespace mp::detail
