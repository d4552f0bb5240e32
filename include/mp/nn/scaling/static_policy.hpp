// SPDX-License-Identifier: MIT
/// \file
/// The scale policy that keeps one scale.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Static loss scaling: the scale stays what it is. A step with infinities or NaNs is skipped by default;
/// with `skip_non_finite = false` it is applied all the same, and only reported.
struct static_policy {
    struct state_type {
        float scale = 1.0F;  ///< what the loss is multiplied by

        MP_MEMBERWISE_EQUALITY(state_type);
    };

    float initial_scale = 1.0F;   ///< finite and greater than 2^-128
    bool skip_non_finite = true;  ///< whether a step with infinities or NaNs is skipped

    MP_MEMBERWISE_EQUALITY(static_policy);

    /// Throws mp::argument_error unless the scale is in the range above.
    constexpr void validate() const {
        detail::require_scale("mp::static_policy", "initial_scale", initial_scale);
    }

    /// Throws mp::argument_error unless `state` is one that a scaler can continue from.
    constexpr void validate(const state_type& state) const {
        detail::require_scale("mp::static_policy", "state.scale", state.scale);
    }

    [[nodiscard]] MP_HOST_DEVICE constexpr state_type initial_state() const { return {initial_scale}; }

    /// Leaves the scale alone.
    MP_HOST_DEVICE constexpr scale_change update(state_type& state, bool /*found_non_finite*/) const {
        return {state.scale, state.scale, scale_change_kind::unchanged};
    }

    /// Whether a step with these gradients is skipped.
    [[nodiscard]] MP_HOST_DEVICE constexpr bool skips(const gradient_observation& seen) const {
        return skip_non_finite && seen.non_finite();
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "static";

    /// Calls visitor(name, member) for everything that has to be saved, of a policy or of a state.
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        if constexpr (requires { self.scale; }) {
            visitor("scale", self.scale);
        } else {
            visitor("initial_scale", self.initial_scale);
            visitor("skip_non_finite", self.skip_non_finite);
        }
    }
};

}}  // namespace mp
