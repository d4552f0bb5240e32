// SPDX-License-Identifier: MIT
/// \file
/// The dynamic scaler of Keras 3.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/dynamic_policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Keras 3's LossScaleOptimizer: no floor, and no guard, so the scale can grow to infinity and stay there.
struct keras_policy {
    float initial_scale = 32768.0F;            ///< finite and greater than 2^-128
    std::int32_t dynamic_growth_steps = 2000;  ///< at least 1

    friend constexpr bool operator==(const keras_policy&, const keras_policy&) = default;

    constexpr void validate() const {
        detail::require_scale("mp::keras_policy", "initial_scale", initial_scale);
        detail::require_counter("mp::keras_policy", "dynamic_growth_steps", dynamic_growth_steps, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr dynamic_policy<> rules() const {
        dynamic_policy<> rules;
        rules.initial_scale = initial_scale;
        rules.growth = {2.0, dynamic_growth_steps};
        rules.guards_infinity = false;
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "keras";

    /// Calls visitor(name, member) for every parameter.
    MP_VISITS_MEMBERS(initial_scale, dynamic_growth_steps)
};

}}  // namespace mp
