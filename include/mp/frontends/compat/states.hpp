// SPDX-License-Identifier: MIT
/// \file
/// Scaler states of all systems that are read, to go on here with runs that began there: PyTorch, Apex,
/// DeepSpeed and Megatron. The text is what Python's json.dumps or print makes of the system's state.
///
///     mp::dynamic_loss_scaler scaler;
///     scaler.restore(mp::import_pytorch_state(R"({"scale": 32768.0, "growth_factor": 2.0, ...})"));
///
/// The imported scaler moves as the original would have. All functions throw mp::argument_error, with the
/// place in the text or the name of the key, if the text is not one flat object, a key is missing, there
/// twice or not known, or a value is none that a scaler can continue from. A tensor is accepted around a
/// single number as long as it is whole, such as tensor([65536.], device='cuda:0'); tensors are printed with
/// four digits, so print others with .item().
#pragma once

#include <mp/arrays/io/text_excerpt.hpp>
#include <mp/error.hpp>
#include <mp/frontends/compat/apex/scaler.hpp>
#include <mp/frontends/compat/deepspeed/scaler.hpp>
#include <mp/frontends/compat/megatron/scaler.hpp>
#include <mp/frontends/compat/pytorch/scaler.hpp>
#include <mp/nn/scaling/flat_object.hpp>
#include <mp/nn/scaling/loss_scaler.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline constexpr std::int64_t most_iterations = std::int64_t{1} << 62;
inline constexpr std::int64_t largest_int32 = 2147483647;

inline foreign_fields read_fields(std::string_view function, std::string_view text) {
    foreign_reader reader(function, text);
    flat_object object = reader.read_flat_object();
    reader.require_end();
    return {function, std::move(object)};
}

/// A scale that the original keeps as float: rounded once, as there.
inline float float_of(foreign_fields& fields, std::string_view name) {
    const float number = scale_as_float(fields.number(name));
    if (is_non_finite(number)) fields.fail(std::string(name) + " is beyond the range of float");
    return number;
}

inline std::int32_t int32_of(foreign_fields& fields, std::string_view name, std::int64_t least) {
    return static_cast<std::int32_t>(fields.integer(name, least, largest_int32));
}

/// What the rules of the policy say to what was read.
template <class Policy>
saved_loss_scaler<Policy> validated(const foreign_fields& fields, const saved_loss_scaler<Policy>& saved) {
    fields.finish();
    attempt<argument_error>(
        [&] {
            saved.policy.validate();
            validate_scale_state(saved.policy, saved.state);
        },
        [&](const argument_error& refused) { fields.fail(refused.what()); });
    return saved;
}

inline saved_loss_scaler<apex_policy> apex_scaler(foreign_fields fields, const apex_policy& policy) {
    saved_loss_scaler<apex_policy> saved{policy, initial_scale_state(policy)};
    saved.state.scale = fields.number("loss_scale");
    saved.state.growth.tracker = int32_of(fields, "unskipped", 0);
    return validated(fields, saved);
}

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

/// One scaler of apex.amp.state_dict(): loss_scale and unskipped. Apex saves no parameters, so they are those
/// of `policy`; it does not save either whether the scale was static.
[[nodiscard]] inline saved_loss_scaler<apex_policy> import_apex_state(std::string_view text,
                                                                      const apex_policy& policy = {}) {
    policy.validate();
    return detail::apex_scaler(detail::read_fields("mp::import_apex_state", text), policy);
}

/// All scalers of apex.amp.state_dict(): {"loss_scaler0": {...}, "loss_scaler1": {...}}, in the order of
/// their numbers.
[[nodiscard]] inline std::vector<saved_loss_scaler<apex_policy>> import_apex_states(
    std::string_view text, const apex_policy& policy = {}) {
    constexpr std::string_view function = "mp::import_apex_states";
    policy.validate();
    std::vector<saved_loss_scaler<apex_policy>> scalers;
    detail::foreign_reader reader(function, text);
    reader.read_object([&](std::string_view key) {
        const std::string expected = "loss_scaler" + detail::error_text(scalers.size());
        if (key != expected) {
            reader.fail("the key is " + detail::quoted_excerpt(key) + " where " +
                        detail::quoted_excerpt(expected) + " was expected");
        }
        scalers.push_back(detail::apex_scaler({function, reader.read_flat_object()}, policy));
    });
    reader.require_end();
    return scalers;
}

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
