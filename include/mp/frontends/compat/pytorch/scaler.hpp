// SPDX-License-Identifier: MIT
/// \file
/// The dynamic scalers of PyTorch.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/dynamic_policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/nn/scaling/standard_policy.hpp>

#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The scaler of torch.amp.GradScaler, which is the standard one of this library.
using pytorch_policy = standard_scale_policy;

/// pytorch_policy, and what GradScaler does at scales below 1, too: infinities and NaNs are looked for in the gradients
/// as the backward pass left them. For optimizers that can check gradients by themselves, as all of the library do.
struct pytorch_scaled_check_policy : pytorch_policy {
    static constexpr bool checks_scaled_gradients = true;
    static constexpr std::string_view name = "pytorch_scaled_check";

    friend constexpr bool operator==(const pytorch_scaled_check_policy&,
                                     const pytorch_scaled_check_policy&) = default;
};

/// The same as PyTorch's ShardedGradScaler (fully sharded data parallelism) does it on the CPU: the update
/// has no guard, so a growth can make the scale infinite, which no back-off undoes. Its scale is a tensor of
/// float times a number of Python's, which rounds the factor to float first. Reproduced because runs that
/// come from there show it; for new ones take pytorch_policy with a reducer (see reducer.hpp).
///
/// Source: torch/distributed/fsdp/sharded_grad_scaler.py.
struct sharded_pytorch_policy {
    float initial_scale = 65536.0F;       ///< finite and greater than 2^-128
    double backoff_factor = 0.5;          ///< strictly between 0 and 1; before growth_factor, as there
    double growth_factor = 2.0;           ///< finite and greater than 1
    std::int32_t growth_interval = 2000;  ///< clean iterations until the scale grows; at least 1

    friend constexpr bool operator==(const sharded_pytorch_policy&, const sharded_pytorch_policy&) = default;

    /// Throws mp::argument_error, naming parameter and value, unless all four are in the ranges above.
    constexpr void validate() const {
        detail::require_scale("mp::sharded_pytorch_policy", "initial_scale", initial_scale);
        detail::require_backoff_factor("mp::sharded_pytorch_policy", backoff_factor);
        detail::require_growth_factor("mp::sharded_pytorch_policy", growth_factor);
        detail::require_growth_interval("mp::sharded_pytorch_policy", growth_interval);
    }

    [[nodiscard]] MP_HOST_DEVICE constexpr dynamic_policy<> rules() const {
        dynamic_policy<> rules;
        rules.initial_scale = initial_scale;
        rules.growth = {static_cast<double>(detail::scale_as_float(growth_factor)), growth_interval};
        rules.backoff = {static_cast<double>(detail::scale_as_float(backoff_factor))};
        rules.guards_infinity = false;
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "sharded_pytorch";

    /// Calls visitor(name, member) for every parameter.
    MP_VISITS_MEMBERS(initial_scale, backoff_factor, growth_factor, growth_interval)
};

}}  // namespace mp
