// SPDX-License-Identifier: MIT
/// \file
/// Policies that look at how gradients are distributed rather than wait for an overflow. What they look at
/// has to be measured, see loss_scaler::observe.
#pragma once

#include <mp/config.hpp>
#include <mp/rules/elementary.hpp>
#include <mp/rules/rounded_doubles.hpp>
#include <mp/scaling/policy.hpp>
#include <mp/scaling/scale_checks.hpp>

#include <cstdint>
#include <string_view>

namespace mp::inline MP_ISA_NAMESPACE {

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

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-equal"  // all members are equal, numbers too
#endif
        friend constexpr bool operator==(const state_type&, const state_type&) = default;
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
    };

    float initial_scale = 1.0F;    ///< finite and greater than 2^-128
    float floor = 1.0F;            ///< finite and greater than 0
    float ceiling = 16384.0F;      ///< finite, at least floor
    float target = 16.0F;          ///< the exponent that must not be reached; finite
    float non_finite_log = 16.0F;  ///< what an infinite gradient counts as; finite
    double beta1 = 0.99;           ///< strictly between 0 and 1, also when rounded to float
    double beta2 = 0.999;          ///< strictly between 0 and 1, also when rounded to float
    float deviations = 3.09F;      ///< finite, not negative; 3.09 leaves one overflow in 1000

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-equal"  // all members are equal, numbers too
#endif
    friend constexpr bool operator==(const logmax_policy&, const logmax_policy&) = default;
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

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
    [[nodiscard]] MP_HOST_DEVICE constexpr state_type initial_state() const {
        return {initial_scale};
    }

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
        using detail::float_of_product, detail::float_of_quotient, detail::float_of_sum;
        state.mean = float_of_sum(float_of_product(keep, state.mean), float_of_product(take, x));
        state.weight = float_of_product(state.weight, keep);
        state.slow_mean =
            float_of_sum(float_of_product(slow_keep, state.slow_mean), float_of_product(slow_take, x));
        state.slow_square = float_of_sum(float_of_product(slow_keep, state.slow_square),
                                         float_of_product(slow_take, float_of_product(x, x)));
        state.slow_weight = float_of_product(state.slow_weight, slow_keep);
        const float mean = float_of_quotient(state.mean, float_of_sum(1.0F, -state.weight));
        const float rest = float_of_sum(1.0F, -state.slow_weight);
        const float slow_mean = float_of_quotient(state.slow_mean, rest);
        const float variance =
            float_of_sum(float_of_quotient(state.slow_square, rest), -float_of_product(slow_mean, slow_mean));
        const float deviation =
            variance > 0.0F ? static_cast<float>(detail::rounded_sqrt(static_cast<double>(variance))) : 0.0F;
        const float exponent =
            float_of_sum(target, -float_of_sum(mean, float_of_product(deviations, deviation)));
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

/// PopART's automatic loss scaling: every `update_period` iterations the scale is halved if more than
/// `upper_share` of the gradients seen in them were large, and doubled otherwise. Large are magnitudes above
/// `edge` times the largest number of the reduced format, before unscaling; measure them with the scaler's
/// `observe` and histogram_edge(). The header there says the opposite direction; this is what its code does.
///
/// Every iteration is applied, as there: an infinity counts as large and otherwise goes into the weights. Set
/// skip_non_finite to skip such steps.
///
/// Source: willow/src/popx/op/lossscaleupdatex.cpp and sessionoptions.hpp of PopART.
struct histogram_policy {
    struct state_type {
        float scale = 1.0F;
        std::int32_t iterations = 0;  ///< since the last update of the scale
        std::uint64_t lower = 0;      ///< values up to the edge since then
        std::uint64_t upper = 0;      ///< values above it, infinities and NaNs included

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-equal"  // all members are equal, numbers too
#endif
        friend constexpr bool operator==(const state_type&, const state_type&) = default;
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
    };

    float initial_scale = 1.0F;      ///< finite and greater than 2^-128
    std::int32_t update_period = 1;  ///< at least 1
    float edge = 0.125F;             ///< strictly between 0 and 1
    float upper_share = 1e-7F;       ///< in [0, 1)
    bool skip_non_finite = false;

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-equal"  // all members are equal, numbers too
#endif
    friend constexpr bool operator==(const histogram_policy&, const histogram_policy&) = default;
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

    /// The magnitude above which a scaled gradient of a format counts as large.
    [[nodiscard]] MP_HOST_DEVICE constexpr double histogram_edge(double largest_number) const {
        return static_cast<double>(edge) * largest_number;
    }

    constexpr void validate() const {
        constexpr const char* function = "mp::histogram_policy";
        detail::require_scale(function, "initial_scale", initial_scale);
        detail::require_counter(function, "update_period", update_period, 1);
        if (detail::is_non_finite(edge) || !(edge > 0.0F && edge < 1.0F)) {
            detail::throw_argument(function, "edge", edge, "must be greater than 0 and less than 1");
        }
        if (detail::is_non_finite(upper_share) || !(upper_share >= 0.0F && upper_share < 1.0F)) {
            detail::throw_argument(function, "upper_share", upper_share,
                                   "must be at least 0 and less than 1");
        }
    }
    constexpr void validate(const state_type& state) const {
        detail::require_scale("mp::histogram_policy", "state.scale", state.scale);
        detail::require_counter("mp::histogram_policy", "state.iterations", state.iterations, 0);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr state_type initial_state() const {
        return {initial_scale};
    }

    [[nodiscard]] MP_HOST_DEVICE constexpr bool skips(const gradient_observation& seen) const {
        return skip_non_finite && seen.non_finite();
    }

    MP_HOST_DEVICE constexpr scale_change update(state_type& state, const gradient_observation& seen) const {
        const float before = state.scale;
        const std::uint64_t upper = seen.large + seen.infinities + seen.nans;
        state.upper += upper;
        state.lower += seen.values > upper ? seen.values - upper : 0;
        if (state.iterations < update_period) ++state.iterations;
        if (state.iterations < update_period) return {before, before, scale_change_kind::unchanged};
        // upper / (upper + lower) > share, multiplied out as there: upper > share / (1 - share) * lower, in
        // float.
        const float share = upper_share / (1.0F - upper_share);
        const bool lowers = static_cast<float>(state.upper) > static_cast<float>(state.lower) * share;
        state.iterations = 0;
        state.upper = 0;
        state.lower = 0;
        state.scale = detail::scale_as_float(static_cast<double>(before) * (lowers ? 0.5 : 2.0));
        if (!lowers) return {before, state.scale, scale_change_kind::grown};
        const bool vanished = !(state.scale > detail::largest_scale_without_inverse);
        return {before, state.scale, vanished ? scale_change_kind::vanished : scale_change_kind::backed_off};
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "histogram";

    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        if constexpr (requires { self.iterations; }) {
            visitor("scale", self.scale);
            visitor("iterations", self.iterations);
            visitor("lower", self.lower);
            visitor("upper", self.upper);
        } else {
            visitor("initial_scale", self.initial_scale);
            visitor("update_period", self.update_period);
            visitor("edge", self.edge);
            visitor("upper_share", self.upper_share);
            visitor("skip_non_finite", self.skip_non_finite);
        }
    }
};

}  // namespace mp::inline MP_ISA_NAMESPACE
