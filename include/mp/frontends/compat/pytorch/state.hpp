// SPDX-License-Identifier: MIT
/// \file
/// The state of PyTorch's GradScaler, to go on here with a run that began there. See state_fields.hpp.
#pragma once

#include <mp/frontends/compat/pytorch/scaler.hpp>
#include <mp/frontends/compat/state_fields.hpp>
#include <mp/nn/scaling/loss_scaler.hpp>

#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// torch.amp.GradScaler's state_dict(): scale, growth_factor, backoff_factor, growth_interval and
/// _growth_tracker. The scale is also the initial one, as load_state_dict has it there.
[[nodiscard]] inline saved_loss_scaler<pytorch_policy> import_pytorch_state(std::string_view text) {
    detail::foreign_fields fields = detail::read_fields("mp::import_pytorch_state", text);
    if (fields.empty()) {
        fields.fail("the state is empty; that is what a disabled GradScaler saves, which has no scale");
    }
    saved_loss_scaler<pytorch_policy> saved;
    saved.policy.initial_scale = detail::float_of(fields, "scale");
    saved.policy.growth_factor = fields.number("growth_factor");
    saved.policy.backoff_factor = fields.number("backoff_factor");
    saved.policy.growth_interval = detail::int32_of(fields, "growth_interval", 1);
    saved.state.scale = saved.policy.initial_scale;
    saved.state.growth.tracker = detail::int32_of(fields, "_growth_tracker", 0);
    return detail::validated(fields, saved);
}

}}  // namespace mp
