// SPDX-License-Identifier: MIT
// Scales of single tensors from one iteration to the next: adaptive layer-wise scaling, and the delayed
// scaling of 8-bit tensors.
#include <mp/bfloat16.hpp>
#include <mp/convert.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/nn/scaling/amax.hpp>
#include <mp/nn/scaling/amax_history.hpp>
#include <mp/nn/scaling/layerwise_scaling.hpp>
#include <mp/nn/scaling/state_text.hpp>
#include <mp/nn/scaling/tensor_scaling.hpp>
#include <mp/nn/scaling/tensor_statistics.hpp>
#include <mp/train/training/layers/linear.hpp>

#include "formats.hpp"

#include <limits>
#include <span>

namespace portability {

namespace {

void add_decision(checksum& to, const mp::layerwise_decision& decision) {
    to.add(decision.factor);
    to.add(decision.wanted);
    to.add(decision.limit);
}

/// Layers of a backward pass, one after the other, for some iterations: the values of a gradient pass from
/// layer to layer with the factors that they have been given.
template <class T>
void add_layers(report& to, const std::string& name, const mp::layerwise_options& options) {
    checksum sum;
    constexpr std::size_t layers = 5;
    std::vector<mp::layerwise_scaler> scalers(layers, mp::layerwise_scaler(options));
    for (std::uint64_t iteration = 0; iteration < 6; ++iteration) {
        mp::scaled_tensor<std::vector<T>> gradient{std::vector<T>(701), 4.0F};
        const std::vector<float> start = plain_floats(gradient.values.size(), 200 + iteration,
                                                      99 + static_cast<std::uint32_t>(3 * iteration), 11);
        mp::convert(portable_cpu, start, gradient.values);
        if (iteration == 4) gradient.values[300] = std::numeric_limits<T>::infinity();
        for (std::size_t layer = 0; layer < layers; ++layer) {
            std::vector<T> weights(301);
            const std::vector<float> wide =
                plain_floats(weights.size(), 300 + layer, 108 + 4 * static_cast<std::uint32_t>(layer), 8);
            mp::convert(portable_cpu, wide, weights);
            mp::layerwise_scaler& scaler = scalers[layer];
            if (layer % 2 == 0) {
                const double fan_in = 3.0 + 100.0 * static_cast<double>(layer);
                add_decision(sum, scaler.scale(portable_cpu, gradient, weights, fan_in));
            } else {
                const mp::tensor_statistics logarithms =
                    mp::measure_logarithms(portable_cpu, gradient.values);
                const mp::layerwise_decision decision =
                    scaler.decide(mp::measure_statistics(portable_cpu, gradient.values), gradient.scale,
                                  layer == 1 ? &logarithms : nullptr);
                add_decision(sum, decision);
                mp::multiply_scale(portable_cpu, gradient, decision.factor);
            }
            sum.add(gradient.values);
            sum.add(gradient.scale);
            sum.add(scaler.state().iteration);
            sum.add(scaler.state().factor);
            sum.add(scaler.state().limit);
            std::vector<float> unscaled(gradient.values.size());
            const mp::non_finite_report seen =
                mp::unscale_weight_gradient(portable_cpu, gradient.values, unscaled, gradient.scale);
            sum.add(seen.infinities);
            sum.add(unscaled);
        }
    }
    to.add("layerwise." + name, sum);
}

/// What decide() makes of statistics far beyond those of gradients, where doubles leave their range.
void add_extremes(report& to) {
    checksum sum;
    generator random(211);
    const auto magnitude = [&](std::uint64_t exponents) {
        const std::uint64_t word = random.next();
        return std::bit_cast<double>((std::uint64_t{1023} - exponents / 2 + (word >> 53) % exponents) << 52 |
                                     (word & 0xfffffffffffffU));
    };
    const auto statistics = [&](std::uint64_t exponents) {
        mp::tensor_statistics it;
        it.count = 100 + random.next() % 1000;
        it.mean = magnitude(exponents);
        it.squares = magnitude(2 * exponents);
        it.least_magnitude = magnitude(exponents);
        it.lowest = -magnitude(exponents);
        it.highest = magnitude(exponents);
        return it;
    };
    for (int i = 0; i < 500; ++i) {
        mp::layerwise_options options;
        options.method = i % 3 == 0 ? mp::layerwise_method::abs_range : mp::layerwise_method::approx_range;
        options.bounded = i % 2 == 0;
        options.underflow_probability = static_cast<double>(1 + random.next() % 1023) / 1024.0;
        options.relu_share = static_cast<double>(1 + random.next() % 64) / 64.0;
        mp::layerwise_scaler scaler(options);
        const mp::tensor_statistics gradient = statistics(60), weights = statistics(40);
        const auto accumulated = mp::detail::power_of_two<float>(static_cast<int>(random.next() % 40) - 17);
        add_decision(sum, scaler.decide(gradient, weights, static_cast<double>(1 + random.next() % 5000),
                                        accumulated));
        add_decision(sum, scaler.decide(gradient, accumulated));
        mp::tensor_statistics logarithms = statistics(4);
        logarithms.mean *= -4.0;
        add_decision(sum, scaler.decide(gradient, accumulated, &logarithms));
    }
    to.add("layerwise.extremes", sum);
}

void add_branches(report& to) {
    checksum sum;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
        std::vector<mp::scaled_tensor<std::vector<mp::half>>> branches;
        for (std::uint64_t i = 0; i < 3; ++i) {
            mp::scaled_tensor<std::vector<mp::half>> branch{
                std::vector<mp::half>(101), static_cast<float>(1U << ((seed * 5 + i * 3) % 11))};
            mp::convert(portable_cpu, plain_floats(101, 400 + 3 * seed + i, 110, 24), branch.values);
            branches.push_back(std::move(branch));
        }
        sum.add(mp::join_branches(portable_cpu, std::span(branches)));
        for (const auto& branch : branches) sum.add(branch.values);
    }
    to.add("layerwise.join_branches", sum);
}

/// Iterations of a delayed scale: what is seen, what follows from it, and a tensor in eight bits.
template <class T>
void add_delayed(report& to, const std::string& name, const mp::delayed_scaling& policy,
                 std::int32_t iterations) {
    checksum sum;
    mp::amax_history history(iterations);
    mp::fixed_amax_history<4> fixed;
    generator random(221);
    for (std::uint64_t iteration = 0; iteration < 60; ++iteration) {
        const std::vector<float> values =
            plain_floats(97, 500 + iteration, 60 + static_cast<std::uint32_t>(random.next() % 150), 9);
        float amax = mp::amax(portable_cpu, values);
        if (iteration % 13 == 5) amax = 0.0F;
        if (iteration % 17 == 7) amax = std::numeric_limits<float>::infinity();
        if (iteration % 19 == 9) amax = std::numeric_limits<float>::quiet_NaN();
        if (iteration % 11 == 3) amax = std::bit_cast<float>(77U);
        std::vector<T> codes(values.size());
        mp::quantize_with_scale(portable_cpu, values, codes, history.scale());
        sum.add(codes);
        std::vector<float> back(values.size());
        mp::dequantize_with_scale(portable_cpu, codes, back, history.scale());
        sum.add(back);
        history.record(amax);
        history.record(0.5F);
        fixed.record(-amax);
        for (const mp::amax_update& update : {history.update(policy), fixed.update(policy)}) {
            sum.add(update.before);
            sum.add(update.after);
            sum.add(update.amax);
            sum.add(update.kind);
        }
        sum.add(history.warming_up());
        sum.add(fixed.warming_up());
    }
    to.add("delayed_scaling." + name, sum);
}

/// Iterations of a linear layer with operands in eight bits.
template <class Policy>
void add_float8_layer(report& to, const std::string& name) {
    constexpr mp::cpu ordered{.products = mp::accumulation::ordered};
    mp::parameter_store<mp::bfloat16> store;
    mp::layers::linear<mp::bfloat16, mp::bfloat16, Policy> layer(store, "fc", 45, 37,
                                                                 {.float8 = {.amax_history_length = 3}});
    store.build(5);
    checksum sum;
    mp::tensor<mp::bfloat16> x(41, 45), dy(41, 37), dx(41, 45);
    const auto fill = [](mp::tensor<mp::bfloat16>& values, std::uint64_t seed) {
        const std::vector<float> numbers = plain_floats(values.size(), seed);
        for (std::size_t i = 0; i < numbers.size(); ++i) values.values()[i] = mp::bfloat16(numbers[i]);
    };
    for (std::uint64_t iteration = 0; iteration < 5; ++iteration) {
        fill(x, 900 + iteration);
        fill(dy, 950 + iteration);
        sum.add(std::span<const mp::bfloat16>(layer.forward(ordered, x.view()).data, 41 * 37));
        layer.backward(ordered, dy.view(), dx.view(), iteration % 2 == 1);
        sum.add(std::span<const mp::bfloat16>(dx.values()));
        sum.add(std::span<const mp::bfloat16>(store.gradients()));
        store.weights_changed();
    }
    to.add("float8_linear." + name, sum);
}

}  // namespace

void add_tensor_scale_checksums(report& to) {
    using mp::layerwise_method;
    add_layers<mp::half>(to, "half.approx_range", {});
    add_layers<mp::half>(to, "half.unbounded", {.bounded = false, .update_interval = 2});
    add_layers<mp::half>(to, "half.abs_range", {.method = layerwise_method::abs_range});
    add_layers<float>(to, "float.fixed", {.method = layerwise_method::fixed, .fixed_factor = 12.0});
    add_extremes(to);
    add_branches(to);
    using mp::amax_algorithm;
    using mp::delayed_rule;
    add_delayed<mp::float8_e4m3fn>(to, "transformer_engine", {}, 7);
    add_delayed<mp::float8_e5m2>(
        to, "transformer_engine_most_recent",
        {.format_max = 57344.0F, .margin = 2, .algorithm = amax_algorithm::most_recent}, 3);
    add_delayed<mp::float8_e4m3fn>(to, "ms_amp", {.rule = delayed_rule::ms_amp}, 5);
    add_delayed<mp::float8_e5m2>(to, "ms_amp_margin",
                                 {.format_max = 57344.0F, .margin = 3, .rule = delayed_rule::ms_amp}, 1);
    add_float8_layer<mp::layers::float8_delayed_scaling>(to, "delayed");
    add_float8_layer<mp::layers::float8_current_scaling>(to, "current");
    add_float8_layer<mp::layers::mxfp8_block_scaling>(to, "mxfp8");
}

}  // namespace portability
