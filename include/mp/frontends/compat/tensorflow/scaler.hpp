// SPDX-License-Identifier: MIT
/// \file
/// The dynamic scaler of TensorFlow 2.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/dynamic_policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// TensorFlow 2's tf.keras.mixed_precision.LossScaleOptimizer: halves down to 1, and does not grow to
/// infinity.
struct tensorflow_policy {
    float initial_scale = 32768.0F;            ///< finite, at least 1
    std::int32_t dynamic_growth_steps = 2000;  ///< at least 1

    friend constexpr bool operator==(const tensorflow_policy&, const tensorflow_policy&) = default;

    constexpr void validate() const {
        detail::require_scale_from("mp::tensorflow_policy", "initial_scale", initial_scale, 1.0);
        detail::require_counter("mp::tensorflow_policy", "dynamic_growth_steps", dynamic_growth_steps, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr dynamic_policy<> rules() const {
        dynamic_policy<> rules;
        rules.initial_scale = initial_scale;
        rules.growth = {2.0, dynamic_growth_steps, true};
        rules.floor = {1.0};
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "tensorflow";

    /// Calls visitor(name, member) for every parameter.
    MP_VISITS_MEMBERS(initial_scale, dynamic_growth_steps)
};

}}  // namespace mp
