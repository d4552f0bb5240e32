// SPDX-License-Identifier: MIT
/// \file
/// The dynamic scaler of fairseq.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/dynamic_policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// fairseq's DynamicLossScaler: backs off when the share of overflows since the last change of the scale
/// reaches `tolerance`, and fails when that leaves the scale at min_loss_scale or below.
struct fairseq_policy {
    double init_scale = 32768.0;  ///< of the class; the configuration's default is 128
    double scale_factor = 2.0;    ///< finite and greater than 1
    std::int64_t scale_window =
        2000;                      ///< of the class; the configuration's is 2^14 / world size / update freq
    double tolerance = 0.0;        ///< in [0, 1]
    double threshold = 0.0;        ///< the scale does not go below it; 0 for none, as None there
    double min_loss_scale = 1e-4;  ///< finite and greater than 2^-128, at most init_scale

    MP_MEMBERWISE_EQUALITY(fairseq_policy);

    constexpr void validate() const {
        constexpr const char* function = "mp::fairseq_policy";
        detail::require_scale(function, "min_loss_scale", min_loss_scale);
        detail::require_scale_from(function, "init_scale", init_scale, min_loss_scale);
        detail::require_growth_factor(function, scale_factor, "scale_factor");
        detail::require_counter(function, "scale_window", scale_window, 1);
        if (detail::is_non_finite(tolerance) || !(tolerance >= 0.0 && tolerance <= 1.0)) {
            detail::throw_argument(function, "tolerance", tolerance, "must be at least 0 and at most 1");
        }
        detail::require_limits(function, threshold, init_scale, "threshold", "init_scale");
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_by_window, tolerated_overflow_share, double> rules;
        rules.initial_scale = init_scale;
        rules.growth = {scale_factor, scale_window};
        rules.backoff = {1.0, scale_factor};
        rules.hysteresis = {tolerance};
        rules.floor = {threshold};
        rules.failure_scale = min_loss_scale;
        rules.guards_infinity = false;
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "fairseq";

    /// Calls visitor(name, member) for every parameter.
    MP_VISITS_MEMBERS(init_scale, scale_factor, scale_window, tolerance, threshold, min_loss_scale)
};

}}  // namespace mp
