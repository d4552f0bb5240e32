// SPDX-License-Identifier: MIT
/// \file
/// The loss scaling of PopART, which looks at how gradients are distributed. What it looks at has to be
/// measured, see loss_scaler::observe.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

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

        MP_MEMBERWISE_EQUALITY(state_type);
    };

    float initial_scale = 1.0F;      ///< finite and greater than 2^-128
    std::int32_t update_period = 1;  ///< at least 1
    float edge = 0.125F;             ///< strictly between 0 and 1
    float upper_share = 1e-7F;       ///< in [0, 1)
    bool skip_non_finite = false;

    MP_MEMBERWISE_EQUALITY(histogram_policy);

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
    [[nodiscard]] MP_HOST_DEVICE constexpr state_type initial_state() const { return {initial_scale}; }

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

}}  // namespace mp
