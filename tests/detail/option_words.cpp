// SPDX-License-Identifier: MIT
// Names of options in other systems cost nothing: no bytes, no place in a list of values, no say in a comparison.
#include <mp/loss_scaling.hpp>
#include <mp/ops.hpp>
#include <mp/optim.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace {

struct adamw_fields {
    double learning_rate, beta1, beta2, epsilon, weight_decay;
    bool coupled_decay;
    mp::weight_update low_precision_update;
    std::uint64_t seed;
};
struct sgd_fields {
    double learning_rate, momentum, dampening, weight_decay;
    bool nesterov;
    mp::weight_update low_precision_update;
    std::uint64_t seed;
};
struct lion_fields {
    double learning_rate, beta1, beta2, weight_decay;
    mp::weight_update low_precision_update;
    std::uint64_t seed;
};
struct adafactor_fields {
    double learning_rate;
    bool relative_step, scale_by_weights;
    double beta2_decay, epsilon1, epsilon2, clip_threshold, weight_decay;
};
struct pytorch_fields {
    float initial_scale;
    double factors[2];
    std::int32_t growth_interval;
};
struct hysteresis_fields {
    float initial_scale;
    double factors[2];
    std::int32_t growth_interval, hysteresis;
};
struct deepspeed_fields {
    double initial_scale;
    std::int64_t loss_scale_window;
    std::int32_t hysteresis;
    bool consecutive_hysteresis;
    double min_loss_scale;
    bool raise_error_at_min_scale;
};
struct dropout_fields {
    float probability;
    std::uint64_t seed, offset;
};

template <class Options, std::size_t Size>
constexpr bool is_plain =
    sizeof(Options) == Size && std::is_aggregate_v<Options> && std::is_trivially_copyable_v<Options>;

static_assert(is_plain<mp::adamw_options, sizeof(adamw_fields)>);
static_assert(is_plain<mp::sgd_options, sizeof(sgd_fields)>);
static_assert(is_plain<mp::lion_options, sizeof(lion_fields)>);
static_assert(is_plain<mp::adafactor_options, sizeof(adafactor_fields)>);
static_assert(is_plain<mp::linear_warmup, 16>);
static_assert(is_plain<mp::cosine_decay, 16>);
static_assert(is_plain<mp::polynomial_decay, 24>);
static_assert(is_plain<mp::step_decay, 16>);
static_assert(is_plain<mp::one_cycle, 32>);
static_assert(is_plain<mp::pytorch_policy, sizeof(pytorch_fields)>);
static_assert(is_plain<mp::sharded_pytorch_policy, sizeof(pytorch_fields)>);
static_assert(is_plain<mp::apex_hysteresis_policy, sizeof(hysteresis_fields)>);
static_assert(is_plain<mp::deepspeed_policy, sizeof(deepspeed_fields)>);
static_assert(is_plain<mp::deepspeed_fused_policy, 24>);
static_assert(is_plain<mp::ops::dropout_options, sizeof(dropout_fields)>);
static_assert(is_plain<mp::ops::normalization_options, sizeof(float)>);

}  // namespace

TEST_CASE("option words: lists of values and designators in order work as without them") {
    constexpr mp::adamw_options listed{1e-4, 0.8, 0.9, 1e-6, 0.5, true, mp::weight_update::stochastic, 7};
    constexpr mp::adamw_options named{.learning_rate = 1e-4,
                                      .beta1 = 0.8,
                                      .beta2 = 0.9,
                                      .epsilon = 1e-6,
                                      .weight_decay = 0.5,
                                      .coupled_decay = true,
                                      .low_precision_update = mp::weight_update::stochastic,
                                      .seed = 7};
    static_assert(listed == named);
    CHECK(listed.seed == 7);
    constexpr mp::one_cycle cycle{100, 0.25, 10.0, 1e3};
    CHECK(cycle.final_divisor == 1e3);
    constexpr mp::deepspeed_policy policy{64.0, 500, 4, true, 8.0, false};
    CHECK(policy.min_loss_scale == 8.0);
    CHECK_FALSE(policy == mp::deepspeed_policy{64.0, 500, 4, true, 8.0, true});
}

TEST_CASE("option words: copies and comparisons look at options only") {
    mp::adamw_options first{.weight_decay = 0.25};
    const mp::adamw_options second = first;
    CHECK(first == second);
    first.seed = 1;
    CHECK(first != second);
    first = second;
    CHECK(first == second);
}
