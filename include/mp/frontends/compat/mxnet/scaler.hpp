// SPDX-License-Identifier: MIT
/// \file
/// The dynamic scaler of MXNet.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/dynamic_policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// MXNet's amp: Apex's rules, applied one iteration late. An overflow is therefore normally followed by a
/// second one at the same scale, one more skipped step, and a scale one notch lower than necessary.
struct mxnet_policy {
    double init_scale = 65536.0;         ///< finite and greater than 2^-128
    double scale_factor = 2.0;           ///< finite and greater than 1
    std::int32_t scale_window = 2000;    ///< at least 1
    double max_loss_scale = 16777216.0;  ///< finite, at least init_scale

    friend constexpr bool operator==(const mxnet_policy&, const mxnet_policy&) = default;

    constexpr void validate() const {
        detail::require_scale("mp::mxnet_policy", "init_scale", init_scale);
        detail::require_growth_factor("mp::mxnet_policy", scale_factor, "scale_factor");
        detail::require_counter("mp::mxnet_policy", "scale_window", scale_window, 1);
        detail::require_scale_from("mp::mxnet_policy", "max_loss_scale", max_loss_scale, init_scale);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_after_clean_run, no_hysteresis, double> ahead;
        ahead.initial_scale = init_scale;
        ahead.growth = {scale_factor, scale_window};
        ahead.backoff = {1.0, scale_factor};
        ahead.ceiling = {max_loss_scale};
        return lagged_policy<decltype(ahead)>{ahead};
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "mxnet";

    /// Calls visitor(name, member) for every parameter.
    MP_VISITS_MEMBERS(init_scale, scale_factor, scale_window, max_loss_scale)
};

}}  // namespace mp
