// SPDX-License-Identifier: MIT
/// \file
/// The dynamic scalers of other systems, event for event: the same scale and the same skips for the same
/// sequence of clean and bad iterations, their defects included. Parameters have the names and defaults that
/// they have there. PyTorch's are in pytorch_policy.hpp, OpenSeq2Seq's LogMax and PopART's histogram in
/// distribution_policies.hpp.
///
///     mp::loss_scaler scaler(mp::deepspeed_policy{.loss_scale_window = 500});
///
/// Where a system raises an exception at its floor, loss_scaler::update throws scale_error, and nothing has
/// changed. Systems that keep the scale as a number of Python's have it as double here.
#pragma once

#include <mp/config.hpp>
#include <mp/scaling/dynamic_policy.hpp>
#include <mp/scaling/lagged_policy.hpp>
#include <mp/scaling/scale_checks.hpp>

#include <cmath>
#include <cstdint>
#include <string_view>

namespace mp {

/// TensorFlow 2's tf.keras.mixed_precision.LossScaleOptimizer: halves down to 1, and does not grow to
/// infinity.
struct tensorflow_policy {
    float initial_scale = 32768.0F;            ///< finite, at least 1
    std::int32_t dynamic_growth_steps = 2000;  ///< at least 1

    friend constexpr bool operator==(const tensorflow_policy&, const tensorflow_policy&) = default;

    constexpr void validate() const {
        detail::require_scale_from("mp::tensorflow_policy", "initial_scale", initial_scale, 1.0);
        detail::require_counter("mp::tensorflow_policy", "dynamic_growth_steps", dynamic_growth_steps, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr dynamic_policy<> rules() const {
        dynamic_policy<> rules;
        rules.initial_scale = initial_scale;
        rules.growth = {2.0, dynamic_growth_steps, true};
        rules.floor = {1.0};
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "tensorflow";

    /// Calls visitor(name, member) for every parameter.
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("initial_scale", self.initial_scale);
        visitor("dynamic_growth_steps", self.dynamic_growth_steps);
    }
};

/// Keras 3's LossScaleOptimizer: no floor, and no guard, so the scale can grow to infinity and stay there.
struct keras_policy {
    float initial_scale = 32768.0F;            ///< finite and greater than 2^-128
    std::int32_t dynamic_growth_steps = 2000;  ///< at least 1

    friend constexpr bool operator==(const keras_policy&, const keras_policy&) = default;

    constexpr void validate() const {
        detail::require_scale("mp::keras_policy", "initial_scale", initial_scale);
        detail::require_counter("mp::keras_policy", "dynamic_growth_steps", dynamic_growth_steps, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr dynamic_policy<> rules() const {
        dynamic_policy<> rules;
        rules.initial_scale = initial_scale;
        rules.growth = {2.0, dynamic_growth_steps};
        rules.guards_infinity = false;
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "keras";

    /// Calls visitor(name, member) for every parameter.
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("initial_scale", self.initial_scale);
        visitor("dynamic_growth_steps", self.dynamic_growth_steps);
    }
};

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
        detail::require_scale_from("mp::jmp_policy", "loss_scale", loss_scale, min_loss_scale);
        detail::require_counter("mp::jmp_policy", "period", period, 1);
        detail::require_counter("mp::jmp_policy", "factor", factor, 2);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr dynamic_policy<> rules() const {
        dynamic_policy<> rules;
        rules.initial_scale = loss_scale;
        const auto float_factor = static_cast<float>(factor);
        rules.growth = {float_factor, period};
        rules.backoff = {1.0, float_factor};
        rules.floor = {min_loss_scale};
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "jmp";

    /// Calls visitor(name, member) for every parameter.
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("loss_scale", self.loss_scale);
        visitor("period", self.period);
        visitor("factor", self.factor);
        visitor("min_loss_scale", self.min_loss_scale);
    }
};

/// Apex's amp (apex/amp/scaler.py), with the ceiling of amp.initialize.
struct apex_policy {
    double init_scale = 65536.0;         ///< greater than 2^-128; the smaller of it and max_loss_scale counts
    std::int32_t scale_window = 2000;    ///< at least 1
    double min_loss_scale = 0.0;         ///< 0 for none, as None there
    double max_loss_scale = 16777216.0;  ///< finite, at least min_loss_scale

    friend constexpr bool operator==(const apex_policy&, const apex_policy&) = default;

    constexpr void validate() const {
        detail::require_scale("mp::apex_policy", "init_scale", init_scale);
        detail::require_counter("mp::apex_policy", "scale_window", scale_window, 1);
        detail::require_limits("mp::apex_policy", min_loss_scale, max_loss_scale);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_after_clean_run, no_hysteresis, double> rules;
        rules.initial_scale = init_scale < max_loss_scale ? init_scale : max_loss_scale;
        rules.growth = {2.0, scale_window};
        rules.floor = {min_loss_scale};
        rules.ceiling = {max_loss_scale};
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "apex";

    /// Calls visitor(name, member) for every parameter.
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("init_scale", self.init_scale);
        visitor("scale_window", self.scale_window);
        visitor("min_loss_scale", self.min_loss_scale);
        visitor("max_loss_scale", self.max_loss_scale);
    }
};

/// The scaler of Apex's older fp16_utils: no ceiling, grows in windows from the last overflow.
struct apex_fp16_utils_policy {
    double init_scale = 4294967296.0;  ///< finite, at least 1
    double scale_factor = 2.0;         ///< finite and greater than 1
    std::int64_t scale_window = 1000;  ///< at least 1

    friend constexpr bool operator==(const apex_fp16_utils_policy&, const apex_fp16_utils_policy&) = default;

    constexpr void validate() const {
        detail::require_scale_from("mp::apex_fp16_utils_policy", "init_scale", init_scale, 1.0);
        detail::require_growth_factor("mp::apex_fp16_utils_policy", scale_factor, "scale_factor");
        detail::require_counter("mp::apex_fp16_utils_policy", "scale_window", scale_window, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_by_window, no_hysteresis, double> rules;
        rules.initial_scale = init_scale;
        rules.growth = {scale_factor, scale_window};
        rules.backoff = {1.0, scale_factor};
        rules.floor = {1.0};
        rules.guards_infinity = false;
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "apex_fp16_utils";

    /// Calls visitor(name, member) for every parameter.
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("init_scale", self.init_scale);
        visitor("scale_factor", self.scale_factor);
        visitor("scale_window", self.scale_window);
    }
};

/// Apex's CUDA kernel update_scale_hysteresis: PyTorch's rules, but only the `hysteresis`-th overflow in a
/// row and those after it back off. The defaults are PyTorch's; the kernel's caller gives them there.
struct apex_hysteresis_policy {
    float initial_scale = 65536.0F;       ///< finite and greater than 2^-128
    double growth_factor = 2.0;           ///< finite and greater than 1
    double backoff_factor = 0.5;          ///< strictly between 0 and 1
    std::int32_t growth_interval = 2000;  ///< at least 1
    std::int32_t hysteresis = 2;          ///< at least 1

    friend constexpr bool operator==(const apex_hysteresis_policy&, const apex_hysteresis_policy&) = default;

    constexpr void validate() const {
        constexpr const char* function = "mp::apex_hysteresis_policy";
        detail::require_scale(function, "initial_scale", initial_scale);
        detail::require_growth_factor(function, growth_factor);
        detail::require_backoff_factor(function, backoff_factor);
        detail::require_growth_interval(function, growth_interval);
        detail::require_counter(function, "hysteresis", hysteresis, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_after_clean_run, hysteresis_budget> rules;
        rules.initial_scale = initial_scale;
        rules.growth = {growth_factor, growth_interval};
        rules.backoff = {backoff_factor};
        rules.hysteresis = {hysteresis, hysteresis_refill::at_clean_iteration, true};
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "apex_hysteresis";

    /// Calls visitor(name, member) for every parameter.
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("initial_scale", self.initial_scale);
        visitor("growth_factor", self.growth_factor);
        visitor("backoff_factor", self.backoff_factor);
        visitor("growth_interval", self.growth_interval);
        visitor("hysteresis", self.hysteresis);
    }
};

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
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("init_scale", self.init_scale);
        visitor("scale_factor", self.scale_factor);
        visitor("scale_window", self.scale_window);
        visitor("max_loss_scale", self.max_loss_scale);
    }
};

/// DeepSpeed's DynamicLossScaler, used with ZeRO 1 to 3. The first growth comes after window + 1 clean
/// iterations; hysteresis is a budget since the last growth, or of overflows in a row with
/// `consecutive_hysteresis`; an overflow at the floor that hysteresis does not absorb is an error. No ceiling
/// and no guard.
struct deepspeed_policy {
    double initial_scale = 65536.0;         ///< 2^initial_scale_power; finite, at least min_loss_scale
    std::int64_t loss_scale_window = 1000;  ///< at least 1
    std::int32_t hysteresis = 2;            ///< at least 1
    bool consecutive_hysteresis = false;
    double min_loss_scale = 1.0;           ///< finite and greater than 2^-128
    bool raise_error_at_min_scale = true;  ///< there it has no key in the configuration file

    friend constexpr bool operator==(const deepspeed_policy&, const deepspeed_policy&) = default;

    constexpr void validate() const {
        constexpr const char* function = "mp::deepspeed_policy";
        detail::require_scale(function, "min_loss_scale", min_loss_scale);
        detail::require_scale_from(function, "initial_scale", initial_scale, min_loss_scale);
        detail::require_counter(function, "loss_scale_window", loss_scale_window, 1);
        detail::require_counter(function, "hysteresis", hysteresis, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_by_window, hysteresis_budget, double> rules;
        rules.initial_scale = initial_scale;
        rules.growth = {2.0, loss_scale_window, 1};
        rules.backoff = {1.0, 2.0};
        rules.hysteresis = {hysteresis, consecutive_hysteresis ? hysteresis_refill::at_clean_iteration
                                                               : hysteresis_refill::at_growth};
        rules.floor = {min_loss_scale, raise_error_at_min_scale ? limit_action::fail : limit_action::clamp};
        rules.guards_infinity = false;
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "deepspeed";

    /// Calls visitor(name, member) for every parameter.
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("initial_scale", self.initial_scale);
        visitor("loss_scale_window", self.loss_scale_window);
        visitor("hysteresis", self.hysteresis);
        visitor("consecutive_hysteresis", self.consecutive_hysteresis);
        visitor("min_loss_scale", self.min_loss_scale);
        visitor("raise_error_at_min_scale", self.raise_error_at_min_scale);
    }
};

/// DeepSpeed's FP16_Optimizer without ZeRO: hysteresis is ignored and the floor clamps. For the unfused one
/// set min_loss_scale to 0.25; without arguments from a configuration the fused one starts at 2^32. Later
/// revisions honour hysteresis there: take deepspeed_policy without raise_error_at_min_scale for those.
struct deepspeed_fused_policy {
    double initial_scale = 65536.0;         ///< finite, at least min_loss_scale
    std::int64_t loss_scale_window = 1000;  ///< at least 1
    double min_loss_scale = 1.0;            ///< finite and greater than 2^-128

    friend constexpr bool operator==(const deepspeed_fused_policy&, const deepspeed_fused_policy&) = default;

    constexpr void validate() const {
        constexpr const char* function = "mp::deepspeed_fused_policy";
        detail::require_scale(function, "min_loss_scale", min_loss_scale);
        detail::require_scale_from(function, "initial_scale", initial_scale, min_loss_scale);
        detail::require_counter(function, "loss_scale_window", loss_scale_window, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_by_window, no_hysteresis, double> rules;
        rules.initial_scale = initial_scale;
        rules.growth = {2.0, loss_scale_window, 1};
        rules.backoff = {1.0, 2.0};
        rules.floor = {min_loss_scale};
        rules.guards_infinity = false;
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "deepspeed_fused";

    /// Calls visitor(name, member) for every parameter.
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("initial_scale", self.initial_scale);
        visitor("loss_scale_window", self.loss_scale_window);
        visitor("min_loss_scale", self.min_loss_scale);
    }
};

/// Megatron's DynamicGradScaler: a budget of overflows that only growth refills, a floor that clamps, and no
/// guard. Factors are rounded to float, as there.
struct megatron_policy {
    float initial_scale = 4294967296.0F;  ///< finite, at least min_scale
    float min_scale = 1.0F;               ///< finite and greater than 2^-128
    float growth_factor = 2.0F;           ///< finite and greater than 1
    float backoff_factor = 0.5F;          ///< strictly between 0 and 1
    std::int32_t growth_interval = 1000;  ///< at least 1
    std::int32_t hysteresis = 2;          ///< at least 1

    friend constexpr bool operator==(const megatron_policy&, const megatron_policy&) = default;

    constexpr void validate() const {
        constexpr const char* function = "mp::megatron_policy";
        detail::require_scale(function, "min_scale", min_scale);
        detail::require_scale_from(function, "initial_scale", initial_scale, min_scale);
        detail::require_growth_factor(function, growth_factor);
        detail::require_backoff_factor(function, backoff_factor);
        detail::require_growth_interval(function, growth_interval);
        detail::require_counter(function, "hysteresis", hysteresis, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_after_clean_run, hysteresis_budget> rules;
        rules.initial_scale = initial_scale;
        rules.growth = {growth_factor, growth_interval};
        rules.backoff = {backoff_factor};
        rules.hysteresis = {hysteresis, hysteresis_refill::at_growth, true};
        rules.floor = {min_scale};
        rules.guards_infinity = false;
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "megatron";

    /// Calls visitor(name, member) for every parameter.
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("initial_scale", self.initial_scale);
        visitor("min_scale", self.min_scale);
        visitor("growth_factor", self.growth_factor);
        visitor("backoff_factor", self.backoff_factor);
        visitor("growth_interval", self.growth_interval);
        visitor("hysteresis", self.hysteresis);
    }
};

/// fairseq's DynamicLossScaler: backs off when the share of overflows since the last change of the scale
/// reaches `tolerance`, and fails when that leaves the scale at min_loss_scale or below.
struct fairseq_policy {
    double init_scale = 32768.0;  ///< of the class; the configuration's default is 128
    double scale_factor = 2.0;    ///< finite and greater than 1
    std::int64_t scale_window =
        2000;                      ///< of the class; the configuration's is 2^14 / world size / update freq
    double tolerance = 0.0;        ///< in [0, 1]
    double threshold = 0.0;        ///< the scale does not go below it; 0 for none, as None there
    double min_loss_scale = 1e-4;  ///< finite and greater than 2^-128, at most init_scale

    friend constexpr bool operator==(const fairseq_policy&, const fairseq_policy&) = default;

    constexpr void validate() const {
        constexpr const char* function = "mp::fairseq_policy";
        detail::require_scale(function, "min_loss_scale", min_loss_scale);
        detail::require_scale_from(function, "init_scale", init_scale, min_loss_scale);
        detail::require_growth_factor(function, scale_factor, "scale_factor");
        detail::require_counter(function, "scale_window", scale_window, 1);
        if (detail::is_non_finite(tolerance) || !(tolerance >= 0.0 && tolerance <= 1.0)) {
            detail::throw_argument(function, "tolerance", tolerance, "must be at least 0 and at most 1");
        }
        detail::require_limits(function, threshold, init_scale, "threshold", "init_scale");
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_by_window, tolerated_overflow_share, double> rules;
        rules.initial_scale = init_scale;
        rules.growth = {scale_factor, scale_window};
        rules.backoff = {1.0, scale_factor};
        rules.hysteresis = {tolerance};
        rules.floor = {threshold};
        rules.failure_scale = min_loss_scale;
        rules.guards_infinity = false;
        return rules;
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "fairseq";

    /// Calls visitor(name, member) for every parameter.
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("init_scale", self.init_scale);
        visitor("scale_factor", self.scale_factor);
        visitor("scale_window", self.scale_window);
        visitor("tolerance", self.tolerance);
        visitor("threshold", self.threshold);
        visitor("min_loss_scale", self.min_loss_scale);
    }
};

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
        detail::require_scale_from(function, "scale_max", scale_max, scale_min);
        detail::require_growth_factor(function, step_factor, "step_factor");
        detail::require_counter(function, "step_window", step_window, 1);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr auto rules() const {
        dynamic_policy<growth_by_window> rules;
        rules.initial_scale = scale_max;
        rules.growth = {step_factor, step_window};
        rules.backoff = {1.0, step_factor};
        rules.floor = {scale_min};
        rules.ceiling = {scale_max};
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
        rules.growth.factor = std::pow(2.0, 1.0 / static_cast<double>(interval));
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

}  // namespace mp
