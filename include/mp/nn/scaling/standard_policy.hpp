// SPDX-License-Identifier: MIT
/// \file
/// The standard dynamic loss scaler.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/dynamic_policy.hpp>
#include <mp/nn/scaling/loss_scaler.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Standard dynamic loss scaling, event for event as torch.amp.GradScaler does it: multiplies the scale by
/// `backoff_factor` after an iteration with an infinity or a NaN, and by `growth_factor` after `growth_interval`
/// clean iterations in a row.
///
/// Arithmetic: the factors are double, the product of the float scale and the factor is formed in double and
/// rounded once (nearest, ties to even) to float. A growth that would make the scale infinite does not
/// happen, but restarts the count like one that does. There is no floor: see scale_change_kind::vanished.
/// The scale grows when the count reaches the interval exactly; if the interval is lowered below a count
/// already reached, growth resumes only after the next back-off.
///
/// Differs from PyTorch in one respect: gradients are checked after unscaling. PyTorch checks the scaled gradients, which
/// at a scale below 1 passes gradients that are infinite once unscaled: 3e38 at a scale of 0.25 makes the weight minus
/// infinity there, and is skipped here. pytorch_scaled_check_policy reproduces PyTorch's check.
///
/// Defaults and rules: torch/amp/grad_scaler.py and the kernel behind torch._amp_update_scale_, PyTorch 2.x.
struct standard_scale_policy {
    float initial_scale = 65536.0F;       ///< finite and greater than 2^-128
    double growth_factor = 2.0;           ///< finite and greater than 1
    double backoff_factor = 0.5;          ///< strictly between 0 and 1
    std::int32_t growth_interval = 2000;  ///< clean iterations until the scale grows; at least 1

    friend constexpr bool operator==(const standard_scale_policy&, const standard_scale_policy&) = default;

    /// Throws mp::argument_error, naming parameter and value, unless all four are in the ranges above.
    constexpr void validate() const {
        detail::require_scale("mp::standard_scale_policy", "initial_scale", initial_scale);
        detail::require_growth_factor("mp::standard_scale_policy", growth_factor);
        detail::require_backoff_factor("mp::standard_scale_policy", backoff_factor);
        detail::require_growth_interval("mp::standard_scale_policy", growth_interval);
    }

    [[nodiscard]] MP_HOST_DEVICE constexpr dynamic_policy<> rules() const {
        dynamic_policy<> rules;
        rules.initial_scale = initial_scale;
        rules.growth = {growth_factor, growth_interval};
        rules.backoff = {backoff_factor};
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "pytorch";

    /// Calls visitor(name, member) for every parameter.
    MP_VISITS_MEMBERS(initial_scale, growth_factor, backoff_factor, growth_interval)
};

/// Dynamic loss scaling as PyTorch's GradScaler does it.
using dynamic_loss_scaler = loss_scaler<standard_scale_policy>;

}}  // namespace mp
