// SPDX-License-Identifier: MIT
/// \file
/// Options and coefficients of LARS.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/optim/gradient_limits.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/optim/option_checks.hpp>
#include <mp/nn/optim/sgd_options.hpp>
#include <mp/nn/optim/trust_ratio.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/optimizer_coefficients.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp {

/// Options of mp::lars. Those of SGD are multiplied by as floats, see mp::sgd_options; those of the trust ratio are
/// used in double.
struct lars_options {
    double learning_rate = 0.1;  ///< finite and not negative
    double momentum = 0.9;       ///< in [0, 1); 0 keeps no momentum state
    double dampening = 0.0;      ///< in [0, 1]; as in mp::sgd_options
    double epsilon = 1e-8;       ///< finite and not negative; added to the divisor of the trust ratio
    double weight_decay = 1e-4;  ///< finite and not negative; this times the weight is added to the gradient
    bool nesterov = false;       ///< look ahead; needs a momentum, and a dampening of 0
    double trust_coefficient = 1e-3;  ///< finite and positive; Apex's LARC has 0.02
    /// Divides the trust ratio by the learning rate, and lets it be at most 1, as Apex's LARC does: the learning rate
    /// is then the most that a layer's rate may be.
    bool clip = false;
    bool layer_adaptation =
        true;  ///< false: a trust ratio of 1, as usual for biases and norms; the step is mp::sgd's

    /// For weights of a reduced format without master copy; otherwise it must be nearest.
    weight_update low_precision_update = weight_update::nearest;
    std::uint64_t seed = 0;  ///< of the random bits of weight_update::stochastic; another for every optimizer

    friend constexpr bool operator==(const lars_options&, const lars_options&) = default;

    /// Calls visitor(name, member) for every option.
    MP_VISITS_MEMBERS(learning_rate, momentum, dampening, epsilon, weight_decay, nesterov, trust_coefficient,
                      clip, layer_adaptation, low_precision_update, seed)
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <>
struct optimizer_traits<lars_options> {
    using coefficients = lars_coefficients;
    static constexpr std::string_view name = "mp::lars";
    static constexpr std::string_view step = "mp::lars::step";
    static std::size_t states(const lars_options& options) { return sgd::states(sgd_of(options)); }
    static void check(std::string_view function, const lars_options& options) {
        sgd::check(function, sgd_of(options));
        require_non_negative(function, "epsilon", options.epsilon);
        require_positive(function, "trust_coefficient", options.trust_coefficient);
    }
    static double largest_rate_factor(const lars_options& /*options*/) { return 1.0; }
    /// A trust ratio bounds the step by the norm of the weights; half of the range is for the decay.
    static gradient_limits limits(const lars_options& options, double largest_state, double largest_step) {
        if (options.layer_adaptation) return {.state = double_multiply(largest_float_as_double, 0.5)};
        return sgd::limits(sgd_of(options), largest_state, largest_step);
    }

    MP_HOST_DEVICE static coefficients coefficients_of(const lars_options& options, double learning_rate,
                                                       std::uint64_t update) {
        return {sgd::coefficients_of(sgd_of(options), learning_rate, update), 1.0F};
    }
    MP_HOST_DEVICE static bool adapts(const lars_options& options) { return options.layer_adaptation; }
    MP_HOST_DEVICE static double trust_ratio(const lars_options& options, double learning_rate,
                                             double weight_norm, double gradient_norm) {
        const double decayed = double_add(gradient_norm, double_multiply(options.weight_decay, weight_norm));
        const double ratio = double_divide(double_multiply(options.trust_coefficient, weight_norm),
                                           double_add(decayed, options.epsilon));
        if (!options.clip) return ratio;
        return ratio < learning_rate ? double_divide(ratio, learning_rate) : 1.0;
    }
    MP_HOST_DEVICE static coefficients with_trust_ratio(coefficients c, double /*learning_rate*/,
                                                        double ratio) {
        c.trust_ratio = finite_float(ratio);
        return c;
    }

private:
    using sgd = optimizer_traits<sgd_options>;
    MP_HOST_DEVICE static sgd_options sgd_of(const lars_options& options) {
        return {.learning_rate = options.learning_rate,
                .momentum = options.momentum,
                .dampening = options.dampening,
                .weight_decay = options.weight_decay,
                .nesterov = options.nesterov};
    }
};

}}  // namespace mp::detail
