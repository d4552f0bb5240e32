// SPDX-License-Identifier: MIT
/// \file
/// The dynamic scalers of TensorFlow 2, Keras 3 and JAX (jmp). See presets.hpp.
#pragma once

#include <mp/config.hpp>
#include <mp/scaling/dynamic_policy.hpp>
#include <mp/scaling/scale_checks.hpp>

#include <cstdint>
#include <string_view>

namespace mp::inline MP_ISA_NAMESPACE {

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
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("initial_scale", self.initial_scale);
        visitor("dynamic_growth_steps", self.dynamic_growth_steps);
    }
};

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
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("initial_scale", self.initial_scale);
        visitor("dynamic_growth_steps", self.dynamic_growth_steps);
    }
};

/// jmp.DynamicLossScale (JAX). The initial scale has no default there. The factor, an integer, becomes a
/// float before it is used, as there.
struct jmp_policy {
    float loss_scale = 32768.0F;  ///< finite, at least min_loss_scale
    std::int32_t period = 2000;   ///< at least 1
    std::int32_t factor = 2;      ///< at least 2
    float min_loss_scale = 1.0F;  ///< finite and greater than 2^-128

    friend constexpr bool operator==(const jmp_policy&, const jmp_policy&) = default;

    constexpr void validate() const {
        detail::require_scale("mp::jmp_policy", "min_loss_scale", min_loss_scale);
        detail::require_scale_from("mp::jmp_policy", "loss_scale", loss_scale,
                                   static_cast<double>(min_loss_scale));
        detail::require_counter("mp::jmp_policy", "period", period, 1);
        detail::require_counter("mp::jmp_policy", "factor", factor, 2);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr dynamic_policy<> rules() const {
        dynamic_policy<> rules;
        rules.initial_scale = loss_scale;
        const auto float_factor = static_cast<float>(factor);
        rules.growth = {static_cast<double>(float_factor), period};
        rules.backoff = {1.0, static_cast<double>(float_factor)};
        rules.floor = {static_cast<double>(min_loss_scale)};
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "jmp";

    /// Calls visitor(name, member) for every parameter.
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("loss_scale", self.loss_scale);
        visitor("period", self.period);
        visitor("factor", self.factor);
        visitor("min_loss_scale", self.min_loss_scale);
    }
};

}  // namespace mp::inline MP_ISA_NAMESPACE
