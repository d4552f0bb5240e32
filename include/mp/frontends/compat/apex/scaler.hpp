// SPDX-License-Identifier: MIT
/// \file
/// The dynamic scalers of Apex.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/dynamic_policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Apex's amp (apex/amp/scaler.py), with the ceiling of amp.initialize.
struct apex_policy {
    double init_scale = 65536.0;         ///< greater than 2^-128; the smaller of it and max_loss_scale counts
    std::int32_t scale_window = 2000;    ///< at least 1
    double min_loss_scale = 0.0;         ///< 0 for none, as None there
    double max_loss_scale = 16777216.0;  ///< finite, at least min_loss_scale

    friend constexpr bool operator==(const apex_policy&, const apex_policy&) = default;

    constexpr void validate() const {
        detail::require_scale("mp::apex_policy", "init_scale", init_scale);
        detail::require_counter("mp::apex_policy", "scale_window", scale_window, 1);
        detail::require_limits("mp::apex_policy", min_loss_scale, max_loss_scale);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_after_clean_run, no_hysteresis, double> rules;
        rules.initial_scale = init_scale < max_loss_scale ? init_scale : max_loss_scale;
        rules.growth = {2.0, scale_window};
        rules.floor = {min_loss_scale};
        rules.ceiling = {max_loss_scale};
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "apex";

    /// Calls visitor(name, member) for every parameter.
    MP_VISITS_MEMBERS(init_scale, scale_window, min_loss_scale, max_loss_scale)
};

/// The scaler of Apex's older fp16_utils: no ceiling, grows in windows from the last overflow.
struct apex_fp16_utils_policy {
    double init_scale = 4294967296.0;  ///< finite, at least 1
    double scale_factor = 2.0;         ///< finite and greater than 1
    std::int64_t scale_window = 1000;  ///< at least 1

    friend constexpr bool operator==(const apex_fp16_utils_policy&, const apex_fp16_utils_policy&) = default;

    constexpr void validate() const {
        detail::require_scale_from("mp::apex_fp16_utils_policy", "init_scale", init_scale, 1.0);
        detail::require_growth_factor("mp::apex_fp16_utils_policy", scale_factor, "scale_factor");
        detail::require_counter("mp::apex_fp16_utils_policy", "scale_window", scale_window, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_by_window, no_hysteresis, double> rules;
        rules.initial_scale = init_scale;
        rules.growth = {scale_factor, scale_window};
        rules.backoff = {1.0, scale_factor};
        rules.floor = {1.0};
        rules.guards_infinity = false;
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "apex_fp16_utils";

    /// Calls visitor(name, member) for every parameter.
    MP_VISITS_MEMBERS(init_scale, scale_factor, scale_window)
};

/// Apex's CUDA kernel update_scale_hysteresis: PyTorch's rules, but only the `hysteresis`-th overflow in a
/// row and those after it back off. The defaults are PyTorch's; the kernel's caller gives them there.
struct apex_hysteresis_policy {
    float initial_scale = 65536.0F;       ///< finite and greater than 2^-128
    double growth_factor = 2.0;           ///< finite and greater than 1
    double backoff_factor = 0.5;          ///< strictly between 0 and 1
    std::int32_t growth_interval = 2000;  ///< at least 1
    std::int32_t hysteresis = 2;          ///< at least 1

    friend constexpr bool operator==(const apex_hysteresis_policy&, const apex_hysteresis_policy&) = default;

    constexpr void validate() const {
        constexpr const char* function = "mp::apex_hysteresis_policy";
        detail::require_scale(function, "initial_scale", initial_scale);
        detail::require_growth_factor(function, growth_factor);
        detail::require_backoff_factor(function, backoff_factor);
        detail::require_growth_interval(function, growth_interval);
        detail::require_counter(function, "hysteresis", hysteresis, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_after_clean_run, hysteresis_budget> rules;
        rules.initial_scale = initial_scale;
        rules.growth = {growth_factor, growth_interval};
        rules.backoff = {backoff_factor};
        rules.hysteresis = {hysteresis, hysteresis_refill::at_clean_iteration, true};
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "apex_hysteresis";

    /// Calls visitor(name, member) for every parameter.
    MP_VISITS_MEMBERS(initial_scale, growth_factor, backoff_factor, growth_interval, hysteresis)
};

}}  // namespace mp
