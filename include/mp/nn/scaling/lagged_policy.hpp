// SPDX-License-Identifier: MIT
/// \file
/// A scale that follows its policy one iteration late.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Uses the scale that `Rules` decided on not in the next iteration but in the one after it. So an overflow
/// is normally followed by a second one at the same scale, and the scale ends one notch too low; MXNet does
/// it.
template <class Rules>
struct lagged_policy {
    struct state_type {
        float scale = 1.0F;                    ///< what the loss is multiplied by
        typename Rules::state_type next = {};  ///< next.scale will be it after the next update

        MP_MEMBERWISE_EQUALITY(state_type);
    };

    Rules rules_ahead = {};

    MP_MEMBERWISE_EQUALITY(lagged_policy);

    constexpr void validate() const { rules_ahead.validate(); }
    constexpr void validate(const state_type& state) const {
        detail::require_scale("mp::lagged_policy", "state.scale", state.scale);
        rules_ahead.validate(state.next);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr state_type initial_state() const {
        const typename Rules::state_type next = rules_ahead.initial_state();
        return {detail::scale_as_float(next.scale), next};
    }

    /// One iteration. The kind is that of the decision, which shows in the scale one update later.
    MP_HOST_DEVICE constexpr scale_change update(state_type& state, const gradient_observation& seen) const {
        const float before = state.scale;
        const float promoted = detail::scale_as_float(state.next.scale);
        const scale_change decided = update_scale(rules_ahead, state.next, seen);
        if (decided.kind != scale_change_kind::failed) state.scale = promoted;
        return {before, state.scale, decided.kind};
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "lagged";

    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        if constexpr (requires { self.next; }) {
            visitor("lagged_scale", self.scale);
            Rules::visit(self.next, visitor);
        } else {
            Rules::visit(self.rules_ahead, visitor);
        }
    }
};

}}  // namespace mp
