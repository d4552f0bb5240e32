// SPDX-License-Identifier: MIT
/// \file
/// The states of DeepSpeed's scalers, to go on here with a run that began there. See state_fields.hpp.
#pragma once

#include <mp/error.hpp>
#include <mp/frontends/compat/deepspeed/scaler.hpp>
#include <mp/frontends/compat/state_fields.hpp>
#include <mp/nn/scaling/flat_object.hpp>
#include <mp/nn/scaling/loss_scaler.hpp>

#include <string>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The keys that both optimizers of DeepSpeed's have.
template <class Policy>
void read_deepspeed_window(foreign_fields& fields, saved_loss_scaler<Policy>& saved) {
    for (const std::string_view name : {"dynamic", "dynamic_loss_scale"}) {
        if (fields.has(name) && !fields.boolean(name)) {
            fields.fail(std::string(name) + " is false: this is a static scaler, see mp::static_policy");
        }
    }
    const double factor = fields.number("scale_factor");
    if (!(factor >= 2.0 && factor <= 2.0)) {
        fields.fail("scale_factor is " + error_text(factor) + "; it must be 2, as DeepSpeed always has it");
    }
    saved.policy.loss_scale_window = fields.integer("scale_window", 1, most_iterations);
    saved.state.scale = fields.number("cur_scale");
    saved.state.growth.iteration = fields.integer("cur_iter", 0, most_iterations);
    saved.state.growth.last_overflow = fields.integer("last_overflow_iter", -1, most_iterations);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The loss scaler object that DeepSpeed's ZeRO optimizers save, as vars(scaler) shows it: cur_scale,
/// cur_iter, last_overflow_iter, scale_factor, scale_window, min_scale, delayed_shift (the hysteresis),
/// cur_hysteresis, consecutive_hysteresis, raise_error_at_min_scale; dynamic and dtype may be there. The
/// initial scale, which it does not hold, is that of `policy`.
[[nodiscard]] inline saved_loss_scaler<deepspeed_policy> import_deepspeed_state(
    std::string_view text, const deepspeed_policy& policy = {}) {
    detail::foreign_fields fields = detail::read_fields("mp::import_deepspeed_state", text);
    saved_loss_scaler<deepspeed_policy> saved{policy, {}};
    detail::read_deepspeed_window(fields, saved);
    saved.policy.min_loss_scale = fields.number("min_scale");
    saved.policy.hysteresis = detail::int32_of(fields, "delayed_shift", 1);
    saved.policy.consecutive_hysteresis = fields.boolean("consecutive_hysteresis");
    saved.policy.raise_error_at_min_scale = fields.boolean("raise_error_at_min_scale");
    saved.state.hysteresis.left = detail::int32_of(fields, "cur_hysteresis", 1);
    if (saved.state.scale < saved.policy.min_loss_scale) {
        // There the next back-off would raise it.
        fields.fail("cur_scale is " + detail::error_text(saved.state.scale) +
                    "; it must be at least min_scale");
    }
    // There a shift of 1 backs off at every overflow, whatever is left.
    if (saved.policy.hysteresis == 1) saved.state.hysteresis.left = 1;
    fields.ignore("dtype");
    return detail::validated(fields, saved);
}

/// What DeepSpeed's FP16_Optimizer saves of its scaling without ZeRO: cur_scale, cur_iter,
/// last_overflow_iter, scale_factor and scale_window; dynamic_loss_scale may be there. The other parameters,
/// which it does not save, are those of `policy`.
[[nodiscard]] inline saved_loss_scaler<deepspeed_fused_policy> import_deepspeed_fused_state(
    std::string_view text, const deepspeed_fused_policy& policy = {}) {
    detail::foreign_fields fields = detail::read_fields("mp::import_deepspeed_fused_state", text);
    saved_loss_scaler<deepspeed_fused_policy> saved{policy, {}};
    detail::read_deepspeed_window(fields, saved);
    return detail::validated(fields, saved);
}

}}  // namespace mp
