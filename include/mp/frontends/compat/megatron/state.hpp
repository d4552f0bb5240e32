// SPDX-License-Identifier: MIT
/// \file
/// The state of Megatron's scaler, to go on here with a run that began there. See state_fields.hpp.
#pragma once

#include <mp/frontends/compat/megatron/scaler.hpp>
#include <mp/frontends/compat/state_fields.hpp>
#include <mp/nn/scaling/loss_scaler.hpp>
#include <mp/nn/scaling/policy.hpp>

#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The state_dict() of Megatron's DynamicGradScaler: scale, growth_tracker and hysteresis_tracker, which is
/// not positive after overflows in a row. Megatron saves no parameters, so they are those of `policy`.
[[nodiscard]] inline saved_loss_scaler<megatron_policy> import_megatron_state(
    std::string_view text, const megatron_policy& policy = {}) {
    policy.validate();
    detail::foreign_fields fields = detail::read_fields("mp::import_megatron_state", text);
    if (fields.empty()) {
        fields.fail("the state is empty; that is what a ConstantGradScaler saves, see mp::static_policy");
    }
    saved_loss_scaler<megatron_policy> saved{policy, initial_scale_state(policy)};
    saved.state.scale = detail::float_of(fields, "scale");
    saved.state.growth.tracker = detail::int32_of(fields, "growth_tracker", 0);
    saved.state.hysteresis.left = detail::int32_of(fields, "hysteresis_tracker", -detail::largest_int32);
    return detail::validated(fields, saved);
}

}}  // namespace mp
