// SPDX-License-Identifier: MIT
/// \file
/// Options and coefficients of stochastic gradient descent: for mp::sgd on a CPU and
/// mp::sgd_step on a GPU.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/optim/gradient_limits.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/optim/option_checks.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/optimizer_coefficients.hpp>

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
}  // namespace mp
