// SPDX-License-Identifier: MIT
/// \file
/// The scale policy of PyTorch's GradScaler.
#pragma once

#include <mp/config.hpp>
#include <mp/scaling/policy.hpp>
#include <mp/scaling/scale_checks.hpp>

#include <cstdint>

namespace mp {

/// Dynamic scaling exactly as torch.amp.GradScaler does it: multiply the scale by `backoff_factor` whenever
/// an iteration had an infinity or a NaN, and by `growth_factor` after `growth_interval` clean iterations in
/// a row.
///
/// Arithmetic: the factors are double, the product of the float scale and the factor is formed in double and
/// rounded once (nearest, ties to even) to float. A growth that would make the scale infinite does not
/// happen, but restarts the count like one that does. There is no floor: see scale_change_kind::vanished.
///
/// Defaults and rules: torch/amp/grad_scaler.py and the kernel behind torch._amp_update_scale_, PyTorch 2.x.
struct pytorch_policy {
    using state_type = scale_state;

    float initial_scale = 65536.0F;       ///< finite and greater than 2^-128
    double growth_factor = 2.0;           ///< finite and greater than 1
    double backoff_factor = 0.5;          ///< strictly between 0 and 1
    std::int32_t growth_interval = 2000;  ///< clean iterations until the scale grows; at least 1

    friend constexpr bool operator==(const pytorch_policy&, const pytorch_policy&) = default;

    /// Throws mp::argument_error, naming parameter and value, unless all four are in the ranges above.
    constexpr void validate() const {
        detail::require_scale("mp::pytorch_policy", "initial_scale", initial_scale);
        detail::require_growth_factor("mp::pytorch_policy", growth_factor);
        detail::require_backoff_factor("mp::pytorch_policy", backoff_factor);
        detail::require_growth_interval("mp::pytorch_policy", growth_interval);
    }

    /// Throws mp::argument_error unless `state` is one that a scaler can continue from.
    constexpr void validate(const scale_state& state) const {
        detail::require_scale("mp::pytorch_policy", "state.scale", state.scale);
        detail::require_growth_tracker("mp::pytorch_policy", state.growth_tracker);
    }

    [[nodiscard]] MP_HOST_DEVICE constexpr scale_state initial_state() const { return {initial_scale, 0}; }

    /// One iteration. As in PyTorch the scale grows when the count reaches the interval exactly; if the
    /// interval is lowered below a count already reached, growth resumes only after the next back-off.
    MP_HOST_DEVICE constexpr scale_change update(scale_state& state, bool found_non_finite) const {
        const float before = state.scale;
        if (found_non_finite) {
            // A float times a factor below 1 is below the overflow threshold, so the conversion is defined.
            state.scale = static_cast<float>(static_cast<double>(before) * backoff_factor);
            state.growth_tracker = 0;
            const bool vanished = !(state.scale > detail::largest_scale_without_inverse);
            return {before, state.scale,
                    vanished ? scale_change_kind::vanished : scale_change_kind::backed_off};
        }
        if (state.growth_tracker == detail::largest_tracker) {
            return {before, before, scale_change_kind::unchanged};  // stay there rather than overflow
        }
        if (state.growth_tracker + 1 != growth_interval) {
            ++state.growth_tracker;
            return {before, before, scale_change_kind::unchanged};
        }
        state.growth_tracker = 0;
        const double product = static_cast<double>(before) * growth_factor;
        if (product >= detail::float_overflow_threshold) {
            return {before, before, scale_change_kind::growth_refused};
        }
        state.scale = static_cast<float>(product);
        return {before, state.scale, scale_change_kind::grown};
    }
};

}  // namespace mp
