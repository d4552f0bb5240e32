// SPDX-License-Identifier: MIT
/// \file
/// Options of Adafactor.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/error.hpp>
#include <mp/nn/optim/gradient_limits.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/optim/option_checks.hpp>

#include <cstddef>
#include <string_view>

namespace mp {

/// Options of mp::adafactor, with the values of Shazeer and Stern (2018). Under a scaler, a step by a
/// gradient whose square is beyond half of the range of float is skipped.
struct adafactor_options {
    /// Finite and not negative. With relative_step the most that a step is relative to the weights, which after
    /// 1 / learning_rate^2 updates is 1 / sqrt(t); else what it always is.
    double learning_rate = 1e-2;
    bool relative_step = true;
    /// Multiplies the learning rate by the root mean square of a parameter's weights, or epsilon2 if that is
    /// larger.
    bool scale_by_weights = true;
    double beta2_decay = 0.8;     ///< in (0, 4]: the means of squares take a fraction of t^-beta2_decay
    double epsilon1 = 1e-30;      ///< from 2^-120 to 1; added to every squared gradient
    double epsilon2 = 1e-3;       ///< finite and positive
    double clip_threshold = 1.0;  ///< d: positive; the most that the root mean square of an update may be
    double weight_decay =
        0.0;  ///< finite and not negative; this times the learning rate is the fraction that
              ///< every weight loses in a step

    friend constexpr bool operator==(const adafactor_options&, const adafactor_options&) = default;

    /// Calls visitor(name, member) for every option.
    MP_VISITS_MEMBERS(learning_rate, relative_step, scale_by_weights, beta2_decay, epsilon1, epsilon2,
                      clip_threshold, weight_decay)
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <>
struct optimizer_traits<adafactor_options> {
    static constexpr std::string_view name = "mp::adafactor";
    static constexpr std::string_view step = "mp::adafactor::step";
    static std::size_t states(const adafactor_options& /*options*/) { return 0; }
    static void check(std::string_view function, const adafactor_options& options) {
        require_non_negative(function, "learning_rate", options.learning_rate);
        if (!(options.beta2_decay > 0.0 && options.beta2_decay <= 4.0)) {
            throw_argument(function, "beta2_decay", options.beta2_decay, "must be in (0, 4]");
        }
        if (!(options.epsilon1 >= 0x1p-120 && options.epsilon1 <= 1.0)) {
            throw_argument(function, "epsilon1", options.epsilon1, "must be at least 2^-120 and at most 1");
        }
        require_positive(function, "epsilon2", options.epsilon2);
        require_positive(function, "clip_threshold", options.clip_threshold);
        require_non_negative(function, "weight_decay", options.weight_decay);
    }
    static double largest_rate_factor(const adafactor_options& /*options*/) { return 1.0; }
    /// Half of the range is for the roundings of means whose beta approaches 1.
    static gradient_limits limits(const adafactor_options& /*options*/, double largest_state,
                                  double /*largest_step*/) {
        return {.state = double_sqrt(double_multiply(largest_state, 0.5))};
    }
};

}}  // namespace mp::detail
