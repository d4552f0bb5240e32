// SPDX-License-Identifier: MIT
// Every optimizer after one finite gradient of any size, in every format: either the step was skipped, and says why,
// or everything is finite and the weights move as the same optimizer in double moves them.
#include "recovery_model.hpp"

#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using mp::bfloat16, mp::half;
using recovery::values;

constexpr std::size_t size = 12;
constexpr std::size_t spike = 5;
constexpr double float_max = 0x1.fffffep127;

template <class Value>
constexpr recovery::format format_of() {
    if constexpr (std::is_same_v<Value, half>) return recovery::half_format;
    if constexpr (std::is_same_v<Value, bfloat16>) return recovery::bfloat16_format;
    return recovery::float_format;
}

template <class Optimizer>
std::vector<float> stored(const Optimizer& optimizer, std::size_t states, bool compensated) {
    std::vector<float> all(size);
    optimizer.copy_master_weights(0, 0, all);
    for (std::size_t s = 0; s < states; ++s) {
        std::vector<float> state(size);
        optimizer.copy_state(0, s, 0, state);
        all.insert(all.end(), state.begin(), state.end());
    }
    for (const auto it : optimizer.parameters()[0].weights) all.push_back(static_cast<float>(it));
    // Lower halves of split masters are codes, which masters have.
    if (compensated) {
        for (const auto it : optimizer.weight_compensation(0)) all.push_back(static_cast<float>(it));
    }
    return all;
}

bool all_finite(const std::vector<float>& x) {
    for (const float it : x) {
        if (!std::isfinite(it)) return false;
    }
    return true;
}

struct setting {
    recovery::model exact;
    double limit;              // of the gradients that a step takes
    std::size_t states = 0;    // that the optimizer keeps as arrays of the parameter's size
    bool accumulates = false;  // updates below the spacing of the weights
    bool compensated = false;  // Kahan sums
    bool unscales_first = false;
};

/// Warms up, steps by one large gradient, then by a hundred ordinary ones.
template <class Optimizer, class Weight, class Gradient, class Options>
void check(const std::string& name, const Options& options, const setting& with, std::size_t rows = 0) {
    for (const Gradient large : recovery::magnitudes<Gradient>(4)) {
        for (const float sign : {1.0F, -1.0F}) {
            for (const int before : {0, 3}) {
                INFO(name << ", gradient " << sign * static_cast<float>(large) << " after " << before);
                std::vector<Weight> w(size, Weight(1.0F));
                std::vector<Gradient> g(size);
                mp::parameter<Weight, Gradient> parameter{"matrix", w, g};
                parameter.rows = rows;
                Optimizer optimizer({parameter}, options);
                recovery::model exact = with.exact;
                mp::static_loss_scaler scaler(mp::static_policy{.initial_scale = 1.0F});
                const auto step = [&](const values& gradient) {
                    for (std::size_t i = 0; i < size; ++i) g[i] = Gradient(static_cast<float>(gradient[i]));
                    if (with.unscales_first) scaler.unscale(optimizer);
                    const mp::step_result result = scaler.step(optimizer);
                    scaler.update();
                    return result;
                };
                int number = 0;
                for (; number < before; ++number) {
                    REQUIRE(step(recovery::ordinary(size, number)));
                    exact.step(recovery::ordinary(size, number));
                }
                const std::vector<float> kept = stored(optimizer, with.states, with.compensated);
                values gradient = recovery::ordinary(size, number++);
                gradient[spike] = static_cast<double>(sign * static_cast<float>(large));
                const mp::step_result result = step(gradient);
                if (!result) {
                    CHECK(result.status == mp::step_status::skipped_too_large);
                    CHECK(result.too_large == 1);
                    CHECK(result.parameter_index == 0);
                    CHECK(result.parameter_name == "matrix");
                    CHECK(result.element_index == spike);
                    CHECK(std::fabs(gradient[spike]) > 0.99 * with.limit);
                    const std::vector<float> now = stored(optimizer, with.states, with.compensated);
                    CHECK(std::memcmp(kept.data(), now.data(), kept.size() * sizeof(float)) == 0);
                    continue;
                }
                CHECK(std::fabs(gradient[spike]) < 1.001 * with.limit);
                exact.step(gradient);
                const std::vector<float> after = stored(optimizer, with.states, with.compensated);
                REQUIRE(all_finite(after));
                const values begin = exact.w;
                values largest_step(size, 0.0);
                std::vector<float> last = after;
                std::vector<bool> moved(size, false);
                for (int i = 0; i < 100; ++i) {
                    const values old = exact.w;
                    const values usual = recovery::ordinary(size, number++);
                    REQUIRE(step(usual));
                    exact.step(usual);
                    const std::vector<float> now = stored(optimizer, with.states, with.compensated);
                    REQUIRE(all_finite(now));
                    for (std::size_t j = 0; j < size; ++j) {
                        if (std::memcmp(&now[j], &last[j], sizeof(float)) != 0) moved[j] = true;
                        largest_step[j] = std::fmax(largest_step[j], std::fabs(exact.w[j] - old[j]));
                    }
                    last = now;
                }
                constexpr recovery::format weights =
                    format_of<std::conditional_t<Optimizer::has_master_copy, float, Weight>>();
                for (std::size_t j = 0; j < size; ++j) {
                    const double ulp = recovery::spacing(weights, static_cast<double>(after[j]));
                    const bool moves = with.accumulates ? std::fabs(exact.w[j] - begin[j]) > 32 * ulp
                                                        : largest_step[j] > 1.5 * ulp;
                    CAPTURE(j);
                    CAPTURE(exact.w[j] - begin[j]);
                    CHECK((moved[j] || !moves));
                    if constexpr (std::is_same_v<Weight, float> &&
                                  std::is_same_v<typename Optimizer::state_type, float>) {
                        // Products below the normal range of float vanish, and with them the direction of Lion.
                        if (std::fabs(gradient[spike]) < 1e-36) continue;
                        CHECK(static_cast<double>(last[j]) ==
                              doctest::Approx(exact.w[j]).epsilon(1e-3).scale(0.1));
                    }
                }
            }
        }
    }
}

/// Formats of weights, masters and state.
template <template <class, class, class, class> class Optimizer, class Options, class Limit>
void check_formats(const std::string& name, Options options, const auto& rule, const auto& rule_of_blocks,
                   std::size_t states, const Limit& limit) {
    using mp::block_moment;
    const auto with = [&](double largest_state, double largest_weight) {
        return setting{.exact = recovery::model(size, rule),
                       .limit = limit(largest_state, largest_weight),
                       .states = states};
    };
    const double bfloat16_max = recovery::bfloat16_format.largest;
    check<Optimizer<float, float, float, float>, float, float>(name + " float", options,
                                                               with(float_max, float_max));
    check<Optimizer<bfloat16, bfloat16, float, float>, bfloat16, bfloat16>(name + " bfloat16", options,
                                                                           with(float_max, bfloat16_max));
    check<Optimizer<half, half, float, float>, half, half>(name + " half", options, with(float_max, 65504.0));
    check<Optimizer<half, float, float, half>, half, float>(name + " half state, float gradients", options,
                                                            with(65504.0, 65504.0));
    check<Optimizer<half, half, half, half>, half, half>(name + " half alone", options,
                                                         with(65504.0, 65504.0));
    check<Optimizer<bfloat16, bfloat16, bfloat16, bfloat16>, bfloat16, bfloat16>(
        name + " bfloat16 alone", options, with(bfloat16_max, bfloat16_max));
    for (const mp::weight_update how :
         {mp::weight_update::stochastic, mp::weight_update::kahan, mp::weight_update::split}) {
        if constexpr (requires { options.low_precision_update; }) {
            Options changed = options;
            changed.low_precision_update = how;
            setting accumulating = with(bfloat16_max, bfloat16_max);
            accumulating.accumulates = true;
            accumulating.compensated = how == mp::weight_update::kahan;
            const std::string text = name + " bfloat16 " + std::string(name_of(how));
            check<Optimizer<bfloat16, float, bfloat16, bfloat16>, bfloat16, float>(text, changed,
                                                                                   accumulating);
            if (how == mp::weight_update::split) continue;
            accumulating.limit = limit(65504.0, 65504.0);
            const std::string of_half = name + " half " + std::string(name_of(how));
            check<Optimizer<half, half, half, half>, half, half>(of_half, changed, accumulating);
        }
    }
    setting blocks = with(float_max, float_max);
    blocks.exact.rule = rule_of_blocks;
    check<Optimizer<float, float, float, block_moment>, float, float>(name + " blocks", options, blocks);
}

template <class W, class G, class M, class S>
using adamw = mp::adamw<W, G, M, S>;
template <class W, class G, class M, class S>
using lamb = mp::lamb<W, G, M, S>;
template <class W, class G, class M, class S>
using sgd = mp::sgd<W, G, M, S>;
template <class W, class G, class M, class S>
using lars = mp::lars<W, G, M, S>;
template <class W, class G, class M, class S>
using lion = mp::lion<W, G, M, S>;

/// The square of a gradient is in the range of the state.
const auto root_limit = [](double state, double) { return std::sqrt(state); };

/// What 1 / (1 - momentum) gradients add up to is in the range of the state, and what they move a weight by in half of
/// that of the weights.
auto sum_limit(double momentum, double rate) {
    return [=](double state, double weight) {
        return (1.0 - momentum) * std::fmin(momentum > 0.0 ? state : float_max, 0.5 * weight / rate);
    };
}

}  // namespace

TEST_CASE("AdamW recovers from one gradient of any size") {
    const mp::adamw_options options{.learning_rate = 0.03, .weight_decay = 0.0};
    check_formats<adamw>("adamw", options, recovery::adam{}, recovery::adam{.blocks = true}, 2, root_limit);
    recovery::adam quick{.beta1 = 0.5, .beta2 = 0.95, .epsilon = 0x1p-64};
    mp::adamw_options quick_options = options;
    quick_options.beta1 = quick.beta1;
    quick_options.beta2 = quick.beta2;
    quick_options.epsilon = 0.0;
    recovery::adam quick_blocks = quick;
    quick_blocks.blocks = true;
    check_formats<adamw>("adamw without epsilon", quick_options, quick, quick_blocks, 2, root_limit);
}

TEST_CASE("AdamW recovers where gradients are unscaled before the step") {
    const mp::adamw_options options{.learning_rate = 0.03, .weight_decay = 0.0};
    setting with{.exact = recovery::model(size, recovery::adam{}),
                 .limit = std::sqrt(float_max),
                 .states = 2,
                 .unscales_first = true};
    check<mp::adamw<float>, float, float>("float", options, with);
    check<mp::adamw<bfloat16>, bfloat16, bfloat16>("bfloat16", options, with);
    with.limit = std::sqrt(65504.0);
    check<mp::adamw<half, half, half, half>, half, half>("half alone", options, with);
}

TEST_CASE("LAMB recovers from one gradient of any size") {
    const mp::lamb_options options{.learning_rate = 0.03};
    const recovery::lamb blocks{.inner = {.epsilon = 1e-6, .blocks = true}};
    check_formats<lamb>("lamb", options, recovery::lamb{}, blocks, 2, root_limit);
}

TEST_CASE("SGD recovers from one gradient of any size") {
    const mp::sgd_options options{.learning_rate = 0.03};
    const recovery::sgd plain;
    check_formats<sgd>("sgd", options, plain, plain, 0, sum_limit(0.0, 0.03));
    mp::sgd_options with_momentum = options;
    with_momentum.momentum = 0.9;
    const recovery::sgd heavy{.momentum = 0.9};
    check_formats<sgd>("sgd momentum", with_momentum, heavy, heavy, 1, sum_limit(0.9, 0.03));
    with_momentum.nesterov = true;
    const recovery::sgd ahead{.momentum = 0.9, .nesterov = true};
    check_formats<sgd>("sgd nesterov", with_momentum, ahead, ahead, 1, sum_limit(0.9, 0.03));
}

TEST_CASE("LARS recovers from one gradient of any size") {
    const mp::lars_options options{.learning_rate = 1.0, .weight_decay = 0.0, .trust_coefficient = 0.02};
    const auto limit = [](double, double) { return 0.5 * float_max; };
    check_formats<lars>("lars", options, recovery::lars{}, recovery::lars{}, 1, limit);
}

TEST_CASE("Lion recovers from one gradient of any size") {
    const mp::lion_options options{.learning_rate = 0.03};
    const auto limit = [](double state, double) { return state; };
    check_formats<lion>("lion", options, recovery::lion{}, recovery::lion{}, 1, limit);
}

TEST_CASE("Adafactor recovers from one gradient of any size") {
    for (const std::size_t rows : {std::size_t{1}, std::size_t{3}}) {
        const mp::adafactor_options options{.learning_rate = 0.03};
        const setting with{.exact = recovery::model(size, recovery::adafactor{.rows = rows}),
                           .limit = std::sqrt(0.5 * float_max)};
        check<mp::adafactor<float>, float, float>("adafactor float", options, with, rows);
        check<mp::adafactor<half>, half, half>("adafactor half", options, with, rows);
        check<mp::adafactor<bfloat16>, bfloat16, bfloat16>("adafactor bfloat16", options, with, rows);
        check<mp::adafactor<half, float, half>, half, float>("adafactor half alone", options, with, rows);
    }
}
