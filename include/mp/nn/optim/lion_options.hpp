// SPDX-License-Identifier: MIT
/// \file
/// Options and coefficients of Lion: for mp::lion on a CPU and mp::gpu_optimizer on a GPU.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/optim/gradient_limits.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/optim/option_checks.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/optimizer_coefficients.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp {

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
