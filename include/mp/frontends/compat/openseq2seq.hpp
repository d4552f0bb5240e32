// SPDX-License-Identifier: MIT
/// \file
/// The dynamic scalers of OpenSeq2Seq: one that waits for overflows, and LogMax, which looks at how gradients
/// are distributed. What LogMax looks at has to be measured, see loss_scaler::observe.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/dynamic_policy.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/numbers/rules/elementary.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// OpenSeq2Seq's back-off scaler: starts at its ceiling.
struct openseq2seq_policy {
    float scale_min = 1.0F;           ///< finite and greater than 2^-128
    float scale_max = 16384.0F;       ///< finite, at least scale_min; 2^24 in later versions
    float step_factor = 2.0F;         ///< finite and greater than 1
    std::int64_t step_window = 2000;  ///< at least 1

    friend constexpr bool operator==(const openseq2seq_policy&, const openseq2seq_policy&) = default;

    constexpr void validate() const {
        constexpr const char* function = "mp::openseq2seq_policy";
        detail::require_scale(function, "scale_min", scale_min);
        detail::require_scale_from(function, "scale_max", scale_max, static_cast<double>(scale_min));
        detail::require_growth_factor(function, static_cast<double>(step_factor), "step_factor");
        detail::require_counter(function, "step_window", step_window, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_by_window> rules;
        rules.initial_scale = scale_max;
        rules.growth = {static_cast<double>(step_factor), step_window};
        rules.backoff = {1.0, static_cast<double>(step_factor)};
        rules.floor = {static_cast<double>(scale_min)};
        rules.ceiling = {static_cast<double>(scale_max)};
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "openseq2seq";

    /// Calls visitor(name, member) for every parameter.
    MP_VISITS_MEMBERS(scale_min, scale_max, step_factor, step_window)
};

/// OpenSeq2Seq's LogMax: takes the logarithm of the largest unscaled gradient for normally distributed, keeps
/// moving averages of it and of its square, and sets the scale so that `deviations` standard deviations above
/// the average still are 2^target.
///
///     x = log2(largest magnitude), or `non_finite_log` if there were infinities or NaNs
///     scale = clip(2^(target - (mean + deviations * deviation)), floor, ceiling)
///
/// The averages are of float, corrected for their start at zero, the mean by beta1, the deviation by beta2. A
/// gradient that is zero everywhere, whose logarithm would be minus infinity, leaves everything as it is
/// (there it makes the scale NaN). On devices logarithms may differ in the last place from the host's.
///
/// There an infinity counts as a logarithm of 2^16, not of 16, evidently by mistake: one of them keeps the
/// scale at the floor for thousands of iterations. Set non_finite_log to 65536 to have it so.
///
/// Source: open_seq2seq/optimizers/automatic_loss_scaler.py, class LogMaxScaler.
struct logmax_policy {
    struct state_type {
        float scale = 1.0F;
        float mean = 0.0F;         ///< moving average of x by beta1, not corrected
        float slow_mean = 0.0F;    ///< moving average of x by beta2, not corrected
        float slow_square = 0.0F;  ///< moving average of x^2 by beta2, not corrected
        float weight = 1.0F;       ///< beta1^iterations
        float slow_weight = 1.0F;  ///< beta2^iterations

        MP_MEMBERWISE_EQUALITY(state_type);
    };

    float initial_scale = 1.0F;    ///< finite and greater than 2^-128
    float floor = 1.0F;            ///< finite and greater than 0
    float ceiling = 16384.0F;      ///< finite, at least floor
    float target = 16.0F;          ///< the exponent that must not be reached; finite
    float non_finite_log = 16.0F;  ///< what an infinite gradient counts as; finite
    double beta1 = 0.99;           ///< strictly between 0 and 1, also when rounded to float
    double beta2 = 0.999;          ///< strictly between 0 and 1, also when rounded to float
    float deviations = 3.09F;      ///< finite, not negative; 3.09 leaves one overflow in 1000

    MP_MEMBERWISE_EQUALITY(logmax_policy);

    constexpr void validate() const {
        constexpr const char* function = "mp::logmax_policy";
        detail::require_scale(function, "initial_scale", initial_scale);
        detail::require_scale(function, "floor", floor);
        detail::require_scale(function, "ceiling", ceiling);
        if (!(ceiling >= floor)) {
            detail::throw_argument(function, "ceiling", ceiling,
                                   "must be at least the floor, which is " + detail::error_text(floor));
        }
        require_finite(function, "target", target);
        require_finite(function, "non_finite_log", non_finite_log);
        require_finite(function, "deviations", deviations);
        if (deviations < 0.0F) {
            detail::throw_argument(function, "deviations", deviations, "must not be negative");
        }
        require_decay(function, "beta1", beta1);
        require_decay(function, "beta2", beta2);
    }
    constexpr void validate(const state_type& state) const {
        constexpr const char* function = "mp::logmax_policy";
        detail::require_scale(function, "state.scale", state.scale);
        require_finite(function, "state.mean", state.mean);
        require_finite(function, "state.slow_mean", state.slow_mean);
        require_finite(function, "state.slow_square", state.slow_square);
        require_weight(function, "state.weight", state.weight);
        require_weight(function, "state.slow_weight", state.slow_weight);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr state_type initial_state() const { return {initial_scale}; }

    MP_HOST_DEVICE scale_change update(state_type& state, const gradient_observation& seen) const {
        const float before = state.scale;
        const bool bad = seen.non_finite() || detail::is_non_finite(seen.largest);
        if (!bad && !(seen.largest > 0.0)) return {before, before, scale_change_kind::unchanged};
        const float x = bad ? non_finite_log : static_cast<float>(detail::double_log2(seen.largest));
        // As there, 1 - beta is formed in double: in float it has lost digits, which shows in the deviation.
        const auto keep = static_cast<float>(beta1);
        const auto take = static_cast<float>(1.0 - beta1);
        const auto slow_keep = static_cast<float>(beta2);
        const auto slow_take = static_cast<float>(1.0 - beta2);
        // Every operation is rounded to float by itself, on host and device.
        using detail::float_multiply, detail::float_divide, detail::float_add;
        state.mean = float_add(float_multiply(keep, state.mean), float_multiply(take, x));
        state.weight = float_multiply(state.weight, keep);
        state.slow_mean = float_add(float_multiply(slow_keep, state.slow_mean), float_multiply(slow_take, x));
        state.slow_square = float_add(float_multiply(slow_keep, state.slow_square),
                                      float_multiply(slow_take, float_multiply(x, x)));
        state.slow_weight = float_multiply(state.slow_weight, slow_keep);
        const float mean = float_divide(state.mean, float_add(1.0F, -state.weight));
        const float rest = float_add(1.0F, -state.slow_weight);
        const float slow_mean = float_divide(state.slow_mean, rest);
        const float variance =
            float_add(float_divide(state.slow_square, rest), -float_multiply(slow_mean, slow_mean));
        const float deviation =
            variance > 0.0F ? static_cast<float>(detail::double_sqrt(static_cast<double>(variance))) : 0.0F;
        const float exponent = float_add(target, -float_add(mean, float_multiply(deviations, deviation)));
        // Clipped before, so that exp2 stays within float; the floor is above 2^-128.
        float scale = exponent >= 128.0F ? ceiling
                      : exponent < -128.0F
                          ? floor
                          : static_cast<float>(detail::binary_exponential(
                                                   detail::rounded_doubles<1>(static_cast<double>(exponent)))
                                                   .value());
        scale = scale < floor ? floor : scale > ceiling ? ceiling : scale;
        state.scale = scale;
        const auto kind = scale > before   ? scale_change_kind::grown
                          : scale < before ? scale_change_kind::backed_off
                                           : scale_change_kind::unchanged;
        return {before, scale, kind};
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "logmax";

    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        if constexpr (requires { self.slow_mean; }) {
            visitor("scale", self.scale);
            visitor("mean", self.mean);
            visitor("slow_mean", self.slow_mean);
            visitor("slow_square", self.slow_square);
            visitor("weight", self.weight);
            visitor("slow_weight", self.slow_weight);
        } else {
            visitor("initial_scale", self.initial_scale);
            visitor("floor", self.floor);
            visitor("ceiling", self.ceiling);
            visitor("target", self.target);
            visitor("non_finite_log", self.non_finite_log);
            visitor("beta1", self.beta1);
            visitor("beta2", self.beta2);
            visitor("deviations", self.deviations);
        }
    }

private:
    static constexpr void require_finite(const char* function, const char* argument, float value) {
        if (detail::is_non_finite(value)) detail::throw_argument(function, argument, value, "must be finite");
    }
    static constexpr void require_decay(const char* function, const char* argument, double value) {
        if (detail::is_nan(value) || !(value > 0.0 && value < 1.0 && static_cast<float>(value) < 1.0F &&
                                       static_cast<float>(value) > 0.0F)) {
            detail::throw_argument(function, argument, value,
                                   "must be greater than 0 and less than 1, also when rounded to float");
        }
    }
    static constexpr void require_weight(const char* function, const char* argument, float value) {
        if (detail::is_non_finite(value) || !(value >= 0.0F && value <= 1.0F)) {
            detail::throw_argument(function, argument, value, "must be in [0, 1]");
        }
    }
};

}}  // namespace mp
