// SPDX-License-Identifier: MIT
// The updates of the optimizers one element at a time, every operation rounded to float through memory that
// the compiler has to respect, and conversions by the scalar functions of format/.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/optim.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

namespace oracle {

inline float stored(float x) {
    volatile float kept = x;
    return kept;
}
inline float add(float a, float b) {
    return stored(a + b);
}
inline float subtract(float a, float b) {
    return stored(a - b);
}
inline float multiply(float a, float b) {
    return stored(a * b);
}

/// What Adam adds to a root.
template <class Options>
float epsilon_of(const Options& options) {
    return options.epsilon > 0.0 ? static_cast<float>(options.epsilon) : 0x1p-64F;
}

template <class Value>
float widened(Value x) {
    return static_cast<float>(x);
}

/// The elements of one parameter.
template <class Weight, class Master, class State>
struct parameter_state {
    std::vector<Weight> weights;
    std::vector<Master> masters;
    std::vector<Master> compensation;
    std::vector<State> states[2];
    std::uint64_t updates = 0;
    std::uint32_t index = 0;
};

template <class Value>
Value rounded_to(float x, mp::weight_update how, const mp::rounding_stream& stream, std::size_t element) {
    if constexpr (std::is_same_v<Value, float>) {
        return x;
    } else if (how == mp::weight_update::stochastic) {
        return mp::round_to<Value>(x, mp::stochastic(mp::random_rounding_bits(stream, element)));
    } else {
        return mp::round_to<Value>(x);
    }
}

/// The float whose nearest bfloat16 is `high`, by its distance from it.
inline float joined_halves(mp::bfloat16 high, mp::bfloat16 low) {
    if ((high.bits() & 0x7FFFU) > 0x7F80U) {
        return std::bit_cast<float>(std::uint32_t{high.bits()} << 16 | low.bits());
    }
    const std::int64_t distance = low.bits() < 0x8000U ? low.bits() : std::int64_t{low.bits()} - 0x10000;
    return std::bit_cast<float>(static_cast<std::uint32_t>(std::int64_t{high.bits()} * 0x10000 + distance));
}

/// The weight as an update takes it.
template <class Weight, class Master, class State>
float trained_weight(const parameter_state<Weight, Master, State>& p, std::size_t i, mp::weight_update how) {
    if constexpr (std::is_same_v<Master, mp::bfloat16>) {
        if (how == mp::weight_update::split) return joined_halves(p.masters[i], p.compensation[i]);
    }
    const float weight = widened(p.masters[i]);
    return how == mp::weight_update::kahan ? add(weight, widened(p.compensation[i])) : weight;
}

/// The trust ratio, of norms that are summed one square after the other in long double.
template <class Weight, class Master, class State, class Gradient, class Rule>
long double ratio_of(const parameter_state<Weight, Master, State>& p, std::span<const Gradient> gradient,
                     float inverse_scale, mp::weight_update how, const Rule& rule) {
    long double weights = 0.0L;
    long double measured = 0.0L;
    for (std::size_t i = 0; i < p.masters.size(); ++i) {
        const float weight = trained_weight(p, i, how);
        float states[2] = {widened(p.states[0][i]), widened(p.states[1][i])};
        const float it =
            rule.measured(p.updates, weight, multiply(widened(gradient[i]), inverse_scale), states);
        weights += static_cast<long double>(weight) * static_cast<long double>(weight);
        measured += static_cast<long double>(it) * static_cast<long double>(it);
    }
    const bool usual = std::isfinite(weights) && std::isfinite(measured) && weights > 0.0L && measured > 0.0L;
    return usual ? rule.ratio_of(std::sqrt(weights), std::sqrt(measured)) : 1.0L;
}
inline float finite(long double x) {
    return static_cast<float>(std::min<long double>(x, std::numeric_limits<float>::max()));
}

/// rule(update, weight, gradient, states[2]).
template <class Weight, class Master, class State, class Gradient, class Rule>
void step(parameter_state<Weight, Master, State>& p, std::span<const Gradient> gradient, float inverse_scale,
          mp::weight_update how, std::uint64_t seed, bool has_states, Rule rule) {
    if (gradient.empty()) return;
    ++p.updates;
    if constexpr (requires { rule.divided; }) rule.divided = mp::reduced<State>;
    if constexpr (requires { rule.ratio; }) {
        if (rule.adapts()) rule.ratio = ratio_of(p, gradient, inverse_scale, how, rule);
    }
    for (std::size_t i = 0; i < p.masters.size(); ++i) {
        float weight = trained_weight(p, i, how);
        float states[2] = {widened(p.states[0][i]), widened(p.states[1][i])};
        rule(p.updates, weight, multiply(widened(gradient[i]), inverse_scale), states);
        for (std::uint32_t s = 0; s < 2 && has_states; ++s) {
            p.states[s][i] = rounded_to<State>(states[s], how, {seed, p.index, p.updates, s + 1}, i);
        }
        p.masters[i] = rounded_to<Master>(weight, how, {seed, p.index, p.updates, 0}, i);
        if (how == mp::weight_update::kahan) {
            p.compensation[i] = rounded_to<Master>(subtract(weight, widened(p.masters[i])), how, {}, i);
        }
        if constexpr (std::is_same_v<Master, mp::bfloat16>) {
            if (how == mp::weight_update::split) {
                p.masters[i] =
                    mp::round_to<Master>(weight, mp::projection{.round = mp::rounding::nearest_away});
                p.compensation[i] = Master::from_bits(
                    static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(weight) & 0xFFFFU));
            }
        }
        p.weights[i] = rounded_to<Weight>(widened(p.masters[i]), mp::weight_update::nearest, {}, i);
    }
}

inline auto rule_of(const mp::sgd_options& o) {
    return [o](std::uint64_t update, float& weight, float gradient, float* states) {
        const float rate = static_cast<float>(o.learning_rate);
        const float momentum = static_cast<float>(o.momentum);
        const float share = update == 1 ? 1.0F : static_cast<float>(1.0 - o.dampening);
        if (o.weight_decay != 0.0) {
            gradient = add(gradient, multiply(static_cast<float>(o.weight_decay), weight));
        }
        float step = gradient;
        if (o.momentum != 0.0) {
            states[0] = add(multiply(momentum, states[0]), multiply(share, gradient));
            step = o.nesterov ? add(gradient, multiply(momentum, states[0])) : states[0];
        }
        weight = subtract(weight, multiply(rate, step));
    };
}

/// How a mean moves: what is left of the old one, what of the new value comes, and what it is multiplied by to be used. A
/// divided one is the mean of all values so far, weighted by beta to the power of their age, and used as it is.
struct mean_rule {
    float kept;
    float taken;
    double bias;
};
inline mean_rule mean_rule_of(double beta, double taken, std::uint64_t update, bool corrects, bool divided) {
    const double t = static_cast<double>(update);
    const double bias = corrects ? 1.0 - std::pow(beta, t) : 1.0;
    if (!divided || !corrects) return {static_cast<float>(beta), static_cast<float>(taken), bias};
    return {static_cast<float>(beta * (1.0 - std::pow(beta, t - 1.0)) / bias),
            static_cast<float>(taken / bias), 1.0};
}

struct adamw_rule {
    mp::adamw_options o;
    bool divided = false;

    void operator()(std::uint64_t update, float& weight, float gradient, float* states) const {
        const mean_rule mean = mean_rule_of(o.beta1, 1.0 - o.beta1, update, true, divided);
        const mean_rule square = mean_rule_of(o.beta2, 1.0 - o.beta2, update, true, divided);
        const float rate = static_cast<float>(o.learning_rate / mean.bias);
        const float inverse_bias = static_cast<float>(1.0 / std::sqrt(square.bias));
        if (o.coupled_decay && o.weight_decay != 0.0) {
            gradient = add(gradient, multiply(static_cast<float>(o.weight_decay), weight));
        }
        states[0] = add(multiply(mean.kept, states[0]), multiply(mean.taken, gradient));
        states[1] =
            add(multiply(square.kept, states[1]), multiply(square.taken, multiply(gradient, gradient)));
        const float denominator = add(multiply(stored(std::sqrt(states[1])), inverse_bias), epsilon_of(o));
        const float decay = o.coupled_decay ? 0.0F : static_cast<float>(o.learning_rate * o.weight_decay);
        const float decayed = multiply(decay, weight);
        weight = subtract(weight, add(decayed, multiply(rate, stored(states[0] / denominator))));
    }
};
inline auto rule_of(const mp::adamw_options& o) {
    return adamw_rule{o};
}

inline auto rule_of(const mp::lion_options& o) {
    return [o](std::uint64_t, float& weight, float gradient, float* states) {
        const float rate = static_cast<float>(o.learning_rate);
        const float direction = add(multiply(static_cast<float>(o.beta1), states[0]),
                                    multiply(static_cast<float>(1.0 - o.beta1), gradient));
        states[0] = add(multiply(static_cast<float>(o.beta2), states[0]),
                        multiply(static_cast<float>(1.0 - o.beta2), gradient));
        const float step = direction > 0.0F ? rate : direction < 0.0F ? -rate : direction;
        const float decayed = multiply(static_cast<float>(o.learning_rate * o.weight_decay), weight);
        weight = subtract(weight, add(decayed, step));
    };
}

struct lars_rule {
    mp::lars_options o;
    long double ratio = 1.0L;

    [[nodiscard]] bool adapts() const { return o.layer_adaptation; }
    [[nodiscard]] float measured(std::uint64_t, float, float gradient, float*) const { return gradient; }
    [[nodiscard]] long double ratio_of(long double weights, long double gradients) const {
        const auto decay = static_cast<long double>(o.weight_decay);
        const long double all = static_cast<long double>(o.trust_coefficient) * weights /
                                (gradients + decay * weights + static_cast<long double>(o.epsilon));
        if (!o.clip) return all;
        return std::min(all / static_cast<long double>(o.learning_rate), 1.0L);
    }
    void operator()(std::uint64_t update, float& weight, float gradient, float* states) const {
        if (o.weight_decay != 0.0) {
            gradient = add(gradient, multiply(static_cast<float>(o.weight_decay), weight));
        }
        rule_of(mp::sgd_options{.learning_rate = o.learning_rate,
                                .momentum = o.momentum,
                                .dampening = o.dampening,
                                .nesterov = o.nesterov})(update, weight, multiply(finite(ratio), gradient),
                                                         states);
    }
};
inline auto rule_of(const mp::lars_options& o) {
    return lars_rule{o};
}

struct lamb_rule {
    mp::lamb_options o;
    long double ratio = 1.0L;
    bool divided = false;

    [[nodiscard]] bool adapts() const { return o.use_nvlamb || o.weight_decay != 0.0; }
    [[nodiscard]] float measured(std::uint64_t update, float weight, float gradient, float* states) const {
        const mean_rule mean =
            mean_rule_of(o.beta1, o.grad_averaging ? 1.0 - o.beta1 : 1.0, update, o.bias_correction, divided);
        const mean_rule square = mean_rule_of(o.beta2, 1.0 - o.beta2, update, o.bias_correction, divided);
        const float decayed = multiply(static_cast<float>(o.weight_decay), weight);
        if (!o.adam_w_mode && o.weight_decay != 0.0) gradient = add(gradient, decayed);
        states[0] = add(multiply(mean.kept, states[0]), multiply(mean.taken, gradient));
        states[1] =
            add(multiply(square.kept, states[1]), multiply(square.taken, multiply(gradient, gradient)));
        const float root =
            multiply(stored(std::sqrt(states[1])), static_cast<float>(1.0 / std::sqrt(square.bias)));
        const float moved =
            multiply(static_cast<float>(1.0 / mean.bias), stored(states[0] / add(root, epsilon_of(o))));
        return add(o.adam_w_mode ? decayed : multiply(0.0F, weight), moved);
    }
    [[nodiscard]] long double ratio_of(long double weights, long double updates) const {
        return weights / updates;
    }
    void operator()(std::uint64_t update, float& weight, float gradient, float* states) const {
        const float rate = finite(static_cast<long double>(o.learning_rate) * ratio);
        weight = subtract(weight, multiply(rate, measured(update, weight, gradient, states)));
    }
};
inline auto rule_of(const mp::lamb_options& o) {
    return lamb_rule{o};
}

/// The same bits, or both NaN: which of two NaNs' payloads survives an addition is not promised.
template <class Value>
bool same(Value left, Value right) {
    const auto is_nan = [](Value x) {
        return (std::bit_cast<std::uint32_t>(widened(x)) & 0x7fffffffU) > 0x7f800000U;
    };
    return std::memcmp(&left, &right, sizeof left) == 0 || (is_nan(left) && is_nan(right));
}

template <class Left, class Right>
std::size_t differences(const Left& left, const Right& right) {
    std::size_t count = left.size() == right.size() ? 0 : 1;
    for (std::size_t i = 0; i < left.size() && i < right.size(); ++i) {
        count += same(left[i], right[i]) ? 0U : 1U;
    }
    return count;
}

/// Mostly ordinary values, and now and then one that is not.
inline float some_value(std::mt19937& random) {
    const std::uint32_t kind = static_cast<std::uint32_t>(random() % 64);
    const float ordinary = std::normal_distribution<float>()(random);
    if (kind == 0) return std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (kind == 1) return ordinary * 0x1p-130F;  // a subnormal float
    if (kind == 2) return ordinary * 0x1p-20F;   // subnormal in half
    if (kind == 3) return -0.0F;
    return ordinary;
}

}  // namespace oracle
