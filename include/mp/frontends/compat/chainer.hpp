// SPDX-License-Identifier: MIT
/// \file
/// The dynamic scaler of Chainer.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/dynamic_policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/numbers/rules/elementary.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Chainer's loss scaling: doubles at every iteration until the first overflow, and from then on grows by
/// 2^(1/interval) at every clean one; between 1 and the largest half.
struct chainer_policy {
    std::int32_t interval = 1000;  ///< clean iterations for a doubling; at least 1

    friend constexpr bool operator==(const chainer_policy&, const chainer_policy&) = default;

    constexpr void validate() const {
        detail::require_counter("mp::chainer_policy", "interval", interval, 1);
    }
    /// On the host only; device code takes what it returns.
    [[nodiscard]] dynamic_policy<growth_continuous, no_hysteresis, double> rules() const {
        dynamic_policy<growth_continuous, no_hysteresis, double> rules;
        rules.initial_scale = 1.0;
        rules.growth.factor =
            detail::binary_exponential(detail::rounded_doubles<1>(1.0) / static_cast<double>(interval))
                .value();
        rules.floor = {1.0};
        rules.ceiling = {65504.0};
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "chainer";

    /// Calls visitor(name, member) for every parameter.
    MP_VISITS_MEMBERS(interval)
};

}}  // namespace mp
