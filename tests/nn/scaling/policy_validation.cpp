// SPDX-License-Identifier: MIT
// Every parameter and every counter that makes no sense is refused by name and value; and the defaults are
// those of the systems.
#include <doctest/doctest.h>
#include <mp/loss_scaling.hpp>

#include <cstdint>
#include <limits>
#include <string>

#include "nn/scaling/thrown.hpp"

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr const char* nothing = "(nothing was thrown)";

template <class Policy>
std::string refusal(const Policy& policy) {
    return thrown<mp::argument_error>([&] { policy.validate(); });
}

template <class Policy>
std::string state_refusal(const Policy& policy, const mp::scale_state_of<Policy>& state) {
    return thrown<mp::argument_error>([&] { mp::validate_scale_state(policy, state); });
}

template <class Growth = mp::growth_after_clean_run, class Hysteresis = mp::no_hysteresis,
          class Scale = float, class Change>
std::string dynamic_refusal(Change&& change) {
    mp::dynamic_policy<Growth, Hysteresis, Scale> policy;
    change(policy);
    return refusal(policy);
}

}  // namespace

TEST_CASE("dynamic_policy refuses parameters out of range by name and value") {
    CHECK(dynamic_refusal([](auto&) {}) == nothing);
    CHECK(dynamic_refusal([](auto& it) { it.initial_scale = 0.0F; }) ==
          "mp::dynamic_policy: initial_scale is 0; it must be finite and greater than 0");
    CHECK(holds(dynamic_refusal([](auto& it) { it.initial_scale = float(infinity); }),
                "initial_scale is inf;"));
    CHECK(holds(dynamic_refusal([](auto& it) { it.initial_scale = 0x1p-128F; }), "greater than 2^-128"));
    for (const double bad : {0.0, -1.0, infinity, not_a_number, 0x1p-128}) {
        CHECK(holds(dynamic_refusal<mp::growth_after_clean_run, mp::no_hysteresis, double>(
                        [&](auto& it) { it.initial_scale = bad; }),
                    "mp::dynamic_policy: initial_scale is "));
    }
    for (const double bad : {0.0, 1.0, -0.5, 3.0, infinity, not_a_number}) {
        CHECK(holds(dynamic_refusal([&](auto& it) { it.backoff.factor = bad; }),
                    "mp::dynamic_policy: backoff_factor is "));
    }
    CHECK(dynamic_refusal([](auto& it) { it.backoff = {1.0, 1.0}; }) ==
          "mp::dynamic_policy: backoff_factor is 1; it must be greater than 0 and less than 1");
    CHECK(dynamic_refusal([](auto& it) { it.backoff = {1.0, 1e30}; }) == nothing);
    CHECK(
        dynamic_refusal([](auto& it) { it.floor.value = 65537.0; }) ==
        "mp::dynamic_policy: floor.value is 65537; it must be at least 0 and at most initial_scale, which is "
        "65536");
    CHECK(holds(dynamic_refusal([](auto& it) { it.floor.value = -1.0; }), "floor.value is -1;"));
    CHECK(holds(dynamic_refusal([](auto& it) { it.floor.value = not_a_number; }), "floor.value is nan;"));
    CHECK(dynamic_refusal([](auto& it) { it.floor.value = 65536.0; }) == nothing);
    CHECK(dynamic_refusal([](auto& it) { it.ceiling.value = 65535.0; }) ==
          "mp::dynamic_policy: ceiling.value is 65535; it must be at least initial_scale, which is 65536");
    CHECK(holds(dynamic_refusal([](auto& it) { it.ceiling.value = not_a_number; }), "ceiling.value is nan;"));
    CHECK(dynamic_refusal([](auto& it) { it.ceiling.value = 65536.0; }) == nothing);
    for (const double bad : {-1.0, infinity, not_a_number}) {
        CHECK(holds(dynamic_refusal([&](auto& it) { it.failure_scale = bad; }),
                    "it must be finite and not negative"));
    }
    CHECK(dynamic_refusal([](auto& it) { it.skip_tolerance = -1; }) ==
          "mp::dynamic_policy: skip_tolerance is -1; it must be at least 0");
    for (const mp::limit_action bad : {mp::limit_action::clamp, mp::limit_action::keep}) {
        CHECK(dynamic_refusal([&](auto& it) { it.skip_action = bad; }) ==
              "mp::dynamic_policy: skip_action must be limit_action::fail or disable");
    }
    CHECK(dynamic_refusal([](auto& it) { it.skip_action = mp::limit_action::disable; }) == nothing);
}

TEST_CASE("growth and hysteresis rules refuse parameters out of range by name and value") {
    for (const double bad : {1.0, 0.5, -2.0, infinity, not_a_number}) {
        const char* message = "mp::dynamic_policy: growth_factor is ";
        CHECK(holds(dynamic_refusal([&](auto& it) { it.growth.factor = bad; }), message));
        CHECK(
            holds(dynamic_refusal<mp::growth_by_window>([&](auto& it) { it.growth.factor = bad; }), message));
        CHECK(holds(dynamic_refusal<mp::growth_continuous>([&](auto& it) { it.growth.factor = bad; }),
                    message));
        CHECK(holds(dynamic_refusal<mp::growth_continuous>([&](auto& it) { it.growth.first_factor = bad; }),
                    message));
        CHECK(holds(dynamic_refusal<mp::growth_on_underflow>([&](auto& it) { it.growth.factor = bad; }),
                    message));
    }
    CHECK(dynamic_refusal([](auto& it) { it.growth.interval = 0; }) ==
          "mp::dynamic_policy: growth_interval is 0; it must be at least 1");
    CHECK(dynamic_refusal<mp::growth_by_window>([](auto& it) { it.growth.window = 0; }) ==
          "mp::dynamic_policy: growth.window is 0; it must be at least 1");
    CHECK(dynamic_refusal<mp::growth_by_window>([](auto& it) { it.growth.delay = -1; }) ==
          "mp::dynamic_policy: growth.delay is -1; it must be at least 0");
    for (const double bad : {-0.1, 1.0, infinity, not_a_number}) {
        CHECK(holds(dynamic_refusal<mp::growth_on_underflow>([&](auto& it) { it.growth.share = bad; }),
                    "it must be at least 0 and less than 1"));
    }
    CHECK(holds(dynamic_refusal<mp::growth_on_underflow>([](auto& it) { it.growth.patience = 0; }),
                "growth.patience is 0; it must be at least 1"));
    CHECK(holds(dynamic_refusal<mp::growth_on_underflow>([](auto& it) { it.growth.rest = -1; }),
                "growth.rest is -1; it must be at least 0"));
    using run = mp::growth_after_clean_run;
    CHECK(dynamic_refusal<run, mp::hysteresis_budget>([](auto& it) { it.hysteresis.allowance = 0; }) ==
          "mp::dynamic_policy: hysteresis.allowance is 0; it must be at least 1");
    for (const double bad : {-0.1, 1.1, infinity, not_a_number}) {
        CHECK(holds(
            dynamic_refusal<run, mp::tolerated_overflow_share>([&](auto& it) { it.hysteresis.share = bad; }),
            "it must be at least 0 and at most 1"));
    }
    CHECK(dynamic_refusal<run, mp::tolerated_overflow_share>([](auto& it) { it.hysteresis.share = 1.0; }) ==
          nothing);
}

TEST_CASE("states out of range are refused by name and value") {
    const mp::dynamic_policy<> run;
    CHECK(state_refusal(run, mp::scale_state{4.0F, {3}}) == nothing);
    CHECK(state_refusal(run, mp::scale_state{0.0F}) ==
          "mp::dynamic_policy: state.scale is 0; it must be finite and greater than 0");
    CHECK(holds(state_refusal(run, mp::scale_state{float(not_a_number)}), "state.scale is nan;"));
    CHECK(holds(state_refusal(run, mp::scale_state{float(infinity)}), "state.scale is inf;"));
    CHECK(holds(state_refusal(run, mp::scale_state{0x1p-128F}), "greater than 2^-128"));
    CHECK(holds(state_refusal(run, mp::scale_state{4.0F, {-1}}), "state.growth.tracker is -1;"));
    CHECK(holds(state_refusal(run, mp::scale_state{4.0F, {0}, {}, -1}), "state.skipped is -1;"));
    CHECK(state_refusal(run, mp::scale_state{4.0F, {0}, {}, 0, true}) ==
          "mp::dynamic_policy: state.scale is 4; it must be 1 in a disabled state");
    CHECK(state_refusal(run, mp::scale_state{1.0F, {0}, {}, 0, true}) == nothing);

    const mp::dynamic_policy<mp::growth_by_window, mp::hysteresis_budget, double> window;
    CHECK(state_refusal(window, {.scale = 1e300, .growth = {7, 6}, .hysteresis = {1}}) == nothing);
    CHECK(holds(state_refusal(window, {.growth = {-1, -1}}), "state.growth.iteration is -1;"));
    CHECK(holds(state_refusal(window, {.growth = {3, -2}}), "state.growth.last_overflow is -2;"));
    CHECK(state_refusal(window, {.growth = {3, 3}}) ==
          "mp::dynamic_policy: state.growth.last_overflow is 3; it must be less than state.growth.iteration");
    CHECK(holds(state_refusal(window, {.hysteresis = {0}}),
                "state.hysteresis.left is 0; it must be at least 1"));
    mp::dynamic_policy<mp::growth_by_window, mp::hysteresis_budget, double> counting;
    counting.hysteresis.counts_on = true;
    CHECK(state_refusal(counting, {.hysteresis = {-5}}) == nothing);

    const mp::dynamic_policy<mp::growth_on_underflow, mp::tolerated_overflow_share> watchful;
    CHECK(state_refusal(watchful, {}) == nothing);
    CHECK(holds(state_refusal(watchful, {.growth = {-1, 0}}), "state.growth.underflowing is -1;"));
    CHECK(holds(state_refusal(watchful, {.growth = {0, -1}}), "state.growth.resting is -1;"));
    CHECK(holds(state_refusal(watchful, {.hysteresis = {-1, -1, 0}}), "state.hysteresis.iteration is -1;"));
    CHECK(holds(state_refusal(watchful, {.hysteresis = {1, -2, 0}}), "state.hysteresis.last_change is -2;"));
    CHECK(holds(state_refusal(watchful, {.hysteresis = {1, 0, -1}}), "state.hysteresis.overflows is -1;"));
    CHECK(holds(state_refusal(watchful, {.hysteresis = {4, 4, 0}}),
                "state.hysteresis.last_change is 4; it must be less than state.hysteresis.iteration"));

    const mp::mxnet_policy lagged;
    CHECK(state_refusal(lagged, {4.0F, {.scale = 8.0}}) == nothing);
    CHECK(holds(state_refusal(lagged, {0.0F, {.scale = 8.0}}), "mp::lagged_policy: state.scale is 0;"));
    CHECK(holds(state_refusal(lagged, {4.0F, {.scale = 0.0}}), "mp::dynamic_policy: state.scale is 0;"));
}

TEST_CASE("presets refuse parameters out of range by their own names") {
    const float nan = float(not_a_number);
    CHECK(holds(refusal(mp::sharded_pytorch_policy{.initial_scale = nan}),
                "mp::sharded_pytorch_policy: initial_scale is nan;"));
    CHECK(holds(refusal(mp::sharded_pytorch_policy{.backoff_factor = 1.0}), "backoff_factor is 1;"));
    CHECK(holds(refusal(mp::sharded_pytorch_policy{.growth_factor = 0.5}), "growth_factor is 0.5;"));
    CHECK(holds(refusal(mp::sharded_pytorch_policy{.growth_interval = 0}), "growth_interval is 0;"));
    CHECK(refusal(mp::tensorflow_policy{.initial_scale = 0.5F}) ==
          "mp::tensorflow_policy: initial_scale is 0.5; it must be at least 1");
    CHECK(holds(refusal(mp::tensorflow_policy{.dynamic_growth_steps = 0}), "dynamic_growth_steps is 0;"));
    CHECK(holds(refusal(mp::keras_policy{.initial_scale = 0.0F}), "mp::keras_policy: initial_scale is 0;"));
    CHECK(holds(refusal(mp::keras_policy{.dynamic_growth_steps = 0}), "dynamic_growth_steps is 0;"));
    CHECK(refusal(mp::jmp_policy{.loss_scale = 2.0F, .min_loss_scale = 4.0F}) ==
          "mp::jmp_policy: loss_scale is 2; it must be at least 4");
    CHECK(holds(refusal(mp::jmp_policy{.period = 0}), "period is 0;"));
    CHECK(holds(refusal(mp::jmp_policy{.factor = 1}), "factor is 1; it must be at least 2"));
    CHECK(holds(refusal(mp::jmp_policy{.min_loss_scale = nan}), "min_loss_scale is nan;"));
    CHECK(holds(refusal(mp::apex_policy{.init_scale = infinity}), "mp::apex_policy: init_scale is inf;"));
    CHECK(holds(refusal(mp::apex_policy{.scale_window = 0}), "scale_window is 0;"));
    CHECK(holds(refusal(mp::apex_policy{.min_loss_scale = 3e7}), "min_loss_scale is 3e+07; it must be"));
    CHECK(holds(refusal(mp::apex_policy{.min_loss_scale = -1.0}), "min_loss_scale is -1;"));
    CHECK(holds(refusal(mp::apex_policy{.max_loss_scale = infinity}), "max_loss_scale is inf;"));
    CHECK(holds(refusal(mp::apex_fp16_utils_policy{.init_scale = 0.5}),
                "mp::apex_fp16_utils_policy: init_scale is 0.5; it must be at least 1"));
    CHECK(holds(refusal(mp::apex_fp16_utils_policy{.scale_factor = 1.0}), "scale_factor is 1;"));
    CHECK(holds(refusal(mp::apex_fp16_utils_policy{.scale_window = 0}), "scale_window is 0;"));
    CHECK(holds(refusal(mp::apex_hysteresis_policy{.initial_scale = nan}),
                "mp::apex_hysteresis_policy: initial_scale is nan;"));
    CHECK(holds(refusal(mp::apex_hysteresis_policy{.growth_factor = 1.0}), "growth_factor is 1;"));
    CHECK(holds(refusal(mp::apex_hysteresis_policy{.backoff_factor = 0.0}), "backoff_factor is 0;"));
    CHECK(holds(refusal(mp::apex_hysteresis_policy{.growth_interval = 0}), "growth_interval is 0;"));
    CHECK(holds(refusal(mp::apex_hysteresis_policy{.hysteresis = 0}), "hysteresis is 0;"));
    CHECK(holds(refusal(mp::mxnet_policy{.init_scale = 0.0}), "mp::mxnet_policy: init_scale is 0;"));
    CHECK(holds(refusal(mp::mxnet_policy{.scale_factor = 1.0}), "scale_factor is 1;"));
    CHECK(holds(refusal(mp::mxnet_policy{.scale_window = 0}), "scale_window is 0;"));
    CHECK(
        holds(refusal(mp::mxnet_policy{.max_loss_scale = 2.0}), "max_loss_scale is 2; it must be at least"));
    CHECK(holds(refusal(mp::deepspeed_policy{.initial_scale = 0.5}),
                "mp::deepspeed_policy: initial_scale is 0.5; it must be at least 1"));
    CHECK(holds(refusal(mp::deepspeed_policy{.loss_scale_window = 0}), "loss_scale_window is 0;"));
    CHECK(holds(refusal(mp::deepspeed_policy{.hysteresis = 0}), "hysteresis is 0;"));
    CHECK(holds(refusal(mp::deepspeed_policy{.min_loss_scale = 0.0}), "min_loss_scale is 0;"));
    CHECK(holds(refusal(mp::deepspeed_fused_policy{.initial_scale = 0.5}),
                "mp::deepspeed_fused_policy: initial_scale is 0.5;"));
    CHECK(holds(refusal(mp::deepspeed_fused_policy{.loss_scale_window = 0}), "loss_scale_window is 0;"));
    CHECK(holds(refusal(mp::deepspeed_fused_policy{.min_loss_scale = 0.0}), "min_loss_scale is 0;"));
    CHECK(holds(refusal(mp::megatron_policy{.initial_scale = 0.5F}),
                "mp::megatron_policy: initial_scale is 0.5;"));
    CHECK(holds(refusal(mp::megatron_policy{.min_scale = 0.0F}), "min_scale is 0;"));
    CHECK(holds(refusal(mp::megatron_policy{.growth_factor = 1.0F}), "growth_factor is 1;"));
    CHECK(holds(refusal(mp::megatron_policy{.backoff_factor = 1.0F}), "backoff_factor is 1;"));
    CHECK(holds(refusal(mp::megatron_policy{.growth_interval = 0}), "growth_interval is 0;"));
    CHECK(holds(refusal(mp::megatron_policy{.hysteresis = 0}), "hysteresis is 0;"));
    CHECK(holds(refusal(mp::fairseq_policy{.init_scale = 5e-5}), "mp::fairseq_policy: init_scale is 5e-05;"));
    CHECK(holds(refusal(mp::fairseq_policy{.scale_factor = 1.0}), "scale_factor is 1;"));
    CHECK(holds(refusal(mp::fairseq_policy{.scale_window = 0}), "scale_window is 0;"));
    CHECK(holds(refusal(mp::fairseq_policy{.tolerance = 1.5}), "mp::fairseq_policy: tolerance is 1.5;"));
    CHECK(holds(refusal(mp::fairseq_policy{.threshold = 65536.0}), "threshold is 65536;"));
    CHECK(holds(refusal(mp::fairseq_policy{.min_loss_scale = 0.0}), "min_loss_scale is 0;"));
    CHECK(
        holds(refusal(mp::openseq2seq_policy{.scale_min = 0.0F}), "mp::openseq2seq_policy: scale_min is 0;"));
    CHECK(
        holds(refusal(mp::openseq2seq_policy{.scale_max = 0.5F}), "scale_max is 0.5; it must be at least 1"));
    CHECK(holds(refusal(mp::openseq2seq_policy{.step_factor = 1.0F}), "step_factor is 1;"));
    CHECK(holds(refusal(mp::openseq2seq_policy{.step_window = 0}), "step_window is 0;"));
    CHECK(refusal(mp::chainer_policy{0}) == "mp::chainer_policy: interval is 0; it must be at least 1");
}

TEST_CASE("the defaults of the presets are those of their systems") {
    CHECK(mp::tensorflow_policy{} == mp::tensorflow_policy{32768.0F, 2000});
    CHECK(mp::keras_policy{} == mp::keras_policy{32768.0F, 2000});
    CHECK(mp::jmp_policy{} == mp::jmp_policy{32768.0F, 2000, 2, 1.0F});
    CHECK(mp::sharded_pytorch_policy{} == mp::sharded_pytorch_policy{65536.0F, 0.5, 2.0, 2000});
    CHECK(mp::apex_policy{} == mp::apex_policy{65536.0, 2000, 0.0, 16777216.0});
    CHECK(mp::apex_fp16_utils_policy{} == mp::apex_fp16_utils_policy{4294967296.0, 2.0, 1000});
    CHECK(mp::mxnet_policy{} == mp::mxnet_policy{65536.0, 2.0, 2000, 16777216.0});
    CHECK(mp::deepspeed_policy{} == mp::deepspeed_policy{65536.0, 1000, 2, false, 1.0, true});
    CHECK(mp::deepspeed_fused_policy{} == mp::deepspeed_fused_policy{65536.0, 1000, 1.0});
    CHECK(mp::megatron_policy{} == mp::megatron_policy{4294967296.0F, 1.0F, 2.0F, 0.5F, 1000, 2});
    CHECK(mp::fairseq_policy{} == mp::fairseq_policy{32768.0, 2.0, 2000, 0.0, 0.0, 1e-4});
    CHECK(mp::openseq2seq_policy{} == mp::openseq2seq_policy{1.0F, 16384.0F, 2.0F, 2000});
    CHECK(mp::chainer_policy{} == mp::chainer_policy{1000});
    CHECK(mp::chainer_policy{}.rules().growth == mp::growth_continuous{});
    CHECK(mp::initial_scale_state(mp::deepspeed_policy{.hysteresis = 3}).hysteresis.left == 3);
    CHECK(mp::initial_scale_state(mp::apex_policy{.max_loss_scale = 16.0}).scale == 16.0);
}

TEST_CASE("counters that were loaded cannot overflow") {
    using by_window = mp::dynamic_policy<mp::growth_by_window>;
    by_window::state_type far;
    far.growth.iteration = std::numeric_limits<std::int64_t>::max();
    CHECK(holds(thrown<mp::argument_error>([&] { by_window{}.validate(far); }), "must be at most 2^62"));
    mp::dynamic_policy<mp::growth_on_underflow> on_underflow;
    auto state = on_underflow.initial_state();
    state.growth.underflowing = std::numeric_limits<std::int32_t>::max();
    on_underflow.validate(state);
    CHECK(on_underflow.update(state, {.values = 2, .flushed = 1}).kind == mp::scale_change_kind::grown);
    mp::histogram_policy histogram{.update_period = 2};
    auto counts = histogram.initial_state();
    counts.iterations = std::numeric_limits<std::int32_t>::max();
    histogram.validate(counts);
    histogram.update(counts, {.values = 1});
    CHECK(counts.iterations == 0);
}
