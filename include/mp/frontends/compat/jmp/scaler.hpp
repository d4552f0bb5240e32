// SPDX-License-Identifier: MIT
/// \file
/// The dynamic scaler of JMP, for JAX.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/dynamic_policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

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
    MP_VISITS_MEMBERS(loss_scale, period, factor, min_loss_scale)
};

}}  // namespace mp
