// SPDX-License-Identifier: MIT
/// \file
/// The dynamic scalers of DeepSpeed.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/dynamic_policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// DeepSpeed's DynamicLossScaler, used with ZeRO 1 to 3. The first growth comes after window + 1 clean
/// iterations; hysteresis is a budget since the last growth, or of overflows in a row with
/// `consecutive_hysteresis`; an overflow at the floor that hysteresis does not absorb is an error. No ceiling
/// and no guard.
struct deepspeed_policy {
    double initial_scale = 65536.0;         ///< 2^initial_scale_power; finite, at least min_loss_scale
    std::int64_t loss_scale_window = 1000;  ///< at least 1
    std::int32_t hysteresis = 2;            ///< at least 1
    bool consecutive_hysteresis = false;
    double min_loss_scale = 1.0;           ///< finite and greater than 2^-128
    bool raise_error_at_min_scale = true;  ///< there it has no key in the configuration file

    MP_MEMBERWISE_EQUALITY(deepspeed_policy);

    constexpr void validate() const {
        constexpr const char* function = "mp::deepspeed_policy";
        detail::require_scale(function, "min_loss_scale", min_loss_scale);
        detail::require_scale_from(function, "initial_scale", initial_scale, min_loss_scale);
        detail::require_counter(function, "loss_scale_window", loss_scale_window, 1);
        detail::require_counter(function, "hysteresis", hysteresis, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_by_window, hysteresis_budget, double> rules;
        rules.initial_scale = initial_scale;
        rules.growth = {2.0, loss_scale_window, 1};
        rules.backoff = {1.0, 2.0};
        rules.hysteresis = {hysteresis, consecutive_hysteresis ? hysteresis_refill::at_clean_iteration
                                                               : hysteresis_refill::at_growth};
        rules.floor = {min_loss_scale, raise_error_at_min_scale ? limit_action::fail : limit_action::clamp};
        rules.guards_infinity = false;
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "deepspeed";

    /// Calls visitor(name, member) for every parameter.
    MP_VISITS_MEMBERS(initial_scale, loss_scale_window, hysteresis, consecutive_hysteresis, min_loss_scale,
                      raise_error_at_min_scale)
};

/// DeepSpeed's FP16_Optimizer without ZeRO: hysteresis is ignored and the floor clamps. For the unfused one
/// set min_loss_scale to 0.25; without arguments from a configuration the fused one starts at 2^32. Later
/// revisions honour hysteresis there: take deepspeed_policy without raise_error_at_min_scale for those.
struct deepspeed_fused_policy {
    double initial_scale = 65536.0;         ///< finite, at least min_loss_scale
    std::int64_t loss_scale_window = 1000;  ///< at least 1
    double min_loss_scale = 1.0;            ///< finite and greater than 2^-128

    MP_MEMBERWISE_EQUALITY(deepspeed_fused_policy);

    constexpr void validate() const {
        constexpr const char* function = "mp::deepspeed_fused_policy";
        detail::require_scale(function, "min_loss_scale", min_loss_scale);
        detail::require_scale_from(function, "initial_scale", initial_scale, min_loss_scale);
        detail::require_counter(function, "loss_scale_window", loss_scale_window, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_by_window, no_hysteresis, double> rules;
        rules.initial_scale = initial_scale;
        rules.growth = {2.0, loss_scale_window, 1};
        rules.backoff = {1.0, 2.0};
        rules.floor = {min_loss_scale};
        rules.guards_infinity = false;
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "deepspeed_fused";

    /// Calls visitor(name, member) for every parameter.
    MP_VISITS_MEMBERS(initial_scale, loss_scale_window, min_loss_scale)
};

}}  // namespace mp
