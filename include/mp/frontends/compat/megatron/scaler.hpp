// SPDX-License-Identifier: MIT
/// \file
/// The dynamic scaler of Megatron.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/dynamic_policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Megatron's DynamicGradScaler: a budget of overflows that only growth refills, a floor that clamps, and no
/// guard. Factors are rounded to float, as there.
struct megatron_policy {
    float initial_scale = 4294967296.0F;  ///< finite, at least min_scale
    float min_scale = 1.0F;               ///< finite and greater than 2^-128
    float growth_factor = 2.0F;           ///< finite and greater than 1
    float backoff_factor = 0.5F;          ///< strictly between 0 and 1
    std::int32_t growth_interval = 1000;  ///< at least 1
    std::int32_t hysteresis = 2;          ///< at least 1

    MP_MEMBERWISE_EQUALITY(megatron_policy);

    constexpr void validate() const {
        constexpr const char* function = "mp::megatron_policy";
        detail::require_scale(function, "min_scale", min_scale);
        detail::require_scale_from(function, "initial_scale", initial_scale, static_cast<double>(min_scale));
        detail::require_growth_factor(function, static_cast<double>(growth_factor));
        detail::require_backoff_factor(function, static_cast<double>(backoff_factor));
        detail::require_growth_interval(function, growth_interval);
        detail::require_counter(function, "hysteresis", hysteresis, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_after_clean_run, hysteresis_budget> rules;
        rules.initial_scale = initial_scale;
        rules.growth = {static_cast<double>(growth_factor), growth_interval};
        rules.backoff = {static_cast<double>(backoff_factor)};
        rules.hysteresis = {hysteresis, hysteresis_refill::at_growth, true};
        rules.floor = {static_cast<double>(min_scale)};
        rules.guards_infinity = false;
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "megatron";

    /// Calls visitor(name, member) for every parameter.
    MP_VISITS_MEMBERS(initial_scale, min_scale, growth_factor, backoff_factor, growth_interval, hysteresis)
};

}}  // namespace mp
