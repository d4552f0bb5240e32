// SPDX-License-Identifier: MIT
/// \file
/// The dynamic scalers of OpenSeq2Seq and Chainer. See presets.hpp.
#pragma once

#include <mp/config.hpp>
#include <mp/rules/elementary.hpp>
#include <mp/rules/rounded_doubles.hpp>
#include <mp/scaling/dynamic_policy.hpp>
#include <mp/scaling/scale_checks.hpp>

#include <cstdint>
#include <string_view>

namespace mp::inline MP_ISA_NAMESPACE {

/// OpenSeq2Seq's back-off scaler: starts at its ceiling.
struct openseq2seq_policy {
    float scale_min = 1.0F;           ///< finite and greater than 2^-128
    float scale_max = 16384.0F;       ///< finite, at least scale_min; 2^24 in later versions
    float step_factor = 2.0F;         ///< finite and greater than 1
    std::int64_t step_window = 2000;  ///< at least 1

    friend constexpr bool operator==(const openseq2seq_policy&, const openseq2seq_policy&) = default;

    constexpr void validate() const {
        constexpr const char* function = "mp::openseq2seq_policy";
        detail::require_scale(function, "scale_min", scale_min);
        detail::require_scale_from(function, "scale_max", scale_max, static_cast<double>(scale_min));
        detail::require_growth_factor(function, static_cast<double>(step_factor), "step_factor");
        detail::require_counter(function, "step_window", step_window, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_by_window> rules;
        rules.initial_scale = scale_max;
        rules.growth = {static_cast<double>(step_factor), step_window};
        rules.backoff = {1.0, static_cast<double>(step_factor)};
        rules.floor = {static_cast<double>(scale_min)};
        rules.ceiling = {static_cast<double>(scale_max)};
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "openseq2seq";

    /// Calls visitor(name, member) for every parameter.
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("scale_min", self.scale_min);
        visitor("scale_max", self.scale_max);
        visitor("step_factor", self.step_factor);
        visitor("step_window", self.step_window);
    }
};

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
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("interval", self.interval);
    }
};

}  // namespace mp::inline MP_ISA_NAMESPACE
