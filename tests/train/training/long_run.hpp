// SPDX-License-Identifier: MIT
/// \file
/// A long training of a small network: in floats or halves by the library's layers, optimizer, loss scaler and
/// checkpoints, and in double by hand.
#pragma once

#include <mp/loss_scaling.hpp>
#include <mp/ops.hpp>
#include <mp/optim.hpp>
#include <mp/training.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace long_run {

inline constexpr std::size_t inputs = 3, hidden = 5, outputs = 2, rows = 4;
inline constexpr std::size_t parameters = hidden * inputs + hidden + outputs * hidden + outputs;

/// Rows of numbers that half holds, and smooth functions of them with noise.
struct batch {
    std::array<double, rows * inputs> x;
    std::array<double, rows * outputs> target;

    batch(std::uint64_t step, std::uint64_t micro) {
        std::uint64_t state = (step * 2 + micro) * 0x9E3779B97F4A7C15U;
        const auto uniform = [&] {  // splitmix64
            std::uint64_t z = state += 0x9E3779B97F4A7C15U;
            z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
            z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
            return static_cast<double>((z ^ (z >> 31U)) >> 55U) / 256 - 1;  // multiples of 2^-8
        };
        for (double& it : x) it = uniform();
        for (std::size_t r = 0; r < rows; ++r) {
            const double* const row = x.data() + r * inputs;
            const double noise = uniform() / 8;
            target[r * outputs] = std::round(256 * (std::sin(2 * row[0]) + noise)) / 256;
            target[r * outputs + 1] = std::round(256 * (row[1] * row[2] - row[0] / 2 - noise)) / 256;
        }
    }
};

/// What happens in the step, besides training.
struct plan {
    std::uint64_t steps;

    [[nodiscard]] bool overflows(std::uint64_t step) const { return step * 0x9E3779B97F4A7C15U % 997 == 0; }
    [[nodiscard]] bool resumes(std::uint64_t step) const { return step != 0 && step % (steps / 10) == 0; }
    /// Learning rate and decay of the matrices and of the biases; they change every twentieth of the run.
    [[nodiscard]] mp::adamw_options options(std::size_t group, std::uint64_t step) const {
        const bool odd = step / (steps / 20) % 2 != 0;
        return {.learning_rate = (odd ? 1e-3 : 2e-3) * (group == 0 ? 1 : 0.5),
                .weight_decay = group == 1 ? 0.0 : (odd ? 0.1 : 0.05)};
    }
    /// Falls to a tenth.
    [[nodiscard]] double rate_factor(std::uint64_t step) const {
        return 1 - 0.9 * static_cast<double>(step) / static_cast<double>(steps);
    }
};

/// The network, its gradients and AdamW in double, in the order w1, b1, w2, b2.
struct in_double {
    std::array<double, parameters> w{}, gradient{}, mean{}, square{};
    std::uint64_t updates = 0;
    static constexpr std::size_t b1 = hidden * inputs, w2 = b1 + hidden, b2 = w2 + outputs * hidden;

    /// Adds half the gradient of the mean squared error; returns the error.
    double backward(const batch& data) {
        double loss = 0;
        for (std::size_t r = 0; r < rows; ++r) {
            const double* const x = data.x.data() + r * inputs;
            std::array<double, hidden> before{}, a{}, da{};
            for (std::size_t h = 0; h < hidden; ++h) {
                before[h] = w[b1 + h];
                for (std::size_t i = 0; i < inputs; ++i) before[h] += w[h * inputs + i] * x[i];
                a[h] = before[h] / 2 * (1 + std::erf(before[h] / std::sqrt(2.0)));
            }
            for (std::size_t o = 0; o < outputs; ++o) {
                double error = w[b2 + o] - data.target[r * outputs + o];
                for (std::size_t h = 0; h < hidden; ++h) error += w[w2 + o * hidden + h] * a[h];
                loss += error * error / (rows * outputs);
                const double d = 0.5 * 2 * error / (rows * outputs);
                gradient[b2 + o] += d;
                for (std::size_t h = 0; h < hidden; ++h) {
                    gradient[w2 + o * hidden + h] += d * a[h];
                    da[h] += d * w[w2 + o * hidden + h];
                }
            }
            for (std::size_t h = 0; h < hidden; ++h) {
                const double density = std::exp(-before[h] * before[h] / 2) / std::sqrt(2 * std::acos(-1.0));
                const double d =
                    da[h] * ((1 + std::erf(before[h] / std::sqrt(2.0))) / 2 + before[h] * density);
                gradient[b1 + h] += d;
                for (std::size_t i = 0; i < inputs; ++i) gradient[h * inputs + i] += d * x[i];
            }
        }
        return loss;
    }
    void step(const plan& how, std::uint64_t number) {
        ++updates;
        const double t = static_cast<double>(updates);
        for (std::size_t i = 0; i < parameters; ++i) {
            const bool bias = (i >= b1 && i < w2) || i >= b2;
            const mp::adamw_options options = how.options(bias ? 1 : 0, number);
            const double rate = options.learning_rate * how.rate_factor(number);
            mean[i] = 0.9 * mean[i] + 0.1 * gradient[i];
            square[i] = 0.999 * square[i] + 0.001 * gradient[i] * gradient[i];
            const double root = std::sqrt(square[i] / (1 - std::pow(0.999, t))) + 1e-8;
            w[i] -= rate * options.weight_decay * w[i] + rate / (1 - std::pow(0.9, t)) * mean[i] / root;
        }
    }
};

/// The same of the library's parts, with weights, activations and gradients in Storage.
template <class Storage>
struct in_storage {
    mp::parameter_store<Storage> store;
    mp::layers::linear<Storage> first{store, "first", inputs, hidden, {.bias_group = 1}};
    mp::layers::linear<Storage> second{store, "second", hidden, outputs, {.bias_group = 1}};
    mp::tensor<Storage> a{rows, hidden}, da{rows, hidden}, dy{rows, outputs};
    std::unique_ptr<mp::adamw<Storage>> optimizer;
    mp::dynamic_loss_scaler scaler{{.growth_interval = 100}};
    std::uint64_t step_number = 0;

    in_storage(const plan& how, std::uint64_t seed) {
        store.build(seed);
        optimizer = std::make_unique<mp::adamw<Storage>>(store.parameters(),
                                                         std::vector{how.options(0, 0), how.options(1, 0)});
    }
    void backward(const batch& data, float scale, bool add) {
        std::array<Storage, rows * inputs> x;
        std::array<Storage, rows * outputs> target;
        std::transform(data.x.begin(), data.x.end(), x.begin(), [](double it) { return Storage(it); });
        std::transform(data.target.begin(), data.target.end(), target.begin(),
                       [](double it) { return Storage(it); });
        const mp::cpu exec;
        const auto before = first.forward(exec, mp::row_major(x.data(), rows, inputs));
        mp::ops::gelu(exec, before, a.view());
        const auto y = second.forward(exec, a.view());
        mp::ops::mean_squared_error_backward(exec, y, mp::row_major(target.data(), rows, outputs), dy.view(),
                                             {.weight = 0.5F, .scale = scale});
        second.backward(exec, dy.view(), da.view(), add);
        mp::ops::gelu_backward(exec, before, da.view(), da.view());
        first.backward(exec, da.view(), mp::ops::absent, add);
    }
    /// Whether the weights were updated.
    bool step(const plan& how) {
        if (step_number % (how.steps / 20) == 0) {
            for (const std::size_t group : {0, 1})
                optimizer->set_options(how.options(group, step_number), group);
        }
        mp::training_iteration iteration(scaler, *optimizer);
        for (const std::uint64_t micro : {0, 1}) {
            backward(batch(step_number, micro), iteration.current_scale(), micro != 0);
        }
        if (how.overflows(step_number)) {
            const auto gradient = optimizer->parameters()[step_number % 4].gradient;
            gradient[step_number % gradient.size()] = std::numeric_limits<Storage>::infinity();
        }
        optimizer->set_learning_rate_factor(how.rate_factor(step_number));
        const bool updated = static_cast<bool>(iteration.finish());
        ++step_number;
        return updated;
    }
    template <class Visitor>
    void operator()(Visitor& visit) {
        visit("optimizer", *optimizer);
        visit("scaler", scaler);
        visit("step", step_number);
    }
};

/// What came out.
struct outcome {
    std::uint64_t skipped = 0;
    double loss = 0;        ///< of the run in double, mean of the last hundredth
    double difference = 0;  ///< of all weights, root mean square over that of the weights in double
    bool counts_agree = false;
};

/// The gradients of the run in double are those of its own weights; it skips the steps that the other one skips.
template <class Storage, class Progress>
outcome compare(const plan& how, const std::string& checkpoint, const Progress& progress) {
    auto run = std::make_unique<in_storage<Storage>>(how, 1);
    in_double exact;
    const auto each = [&](auto&& function) {
        std::size_t i = 0;
        for (std::size_t p = 0; p < run->optimizer->parameters().size(); ++p) {
            // Masters: what the optimizer means.
            for (const float w : run->optimizer->master_weights(p)) function(i++, static_cast<double>(w));
        }
    };
    each([&](std::size_t i, double w) { exact.w[i] = w; });
    outcome result;
    for (std::uint64_t step = 0; step < how.steps; ++step) {
        if (how.resumes(step)) {
            mp::save_checkpoint(checkpoint, *run);
            run = std::make_unique<in_storage<Storage>>(how, step);
            mp::load_checkpoint(checkpoint, *run);
        }
        exact.gradient.fill(0);
        double loss = 0;
        for (const std::uint64_t micro : {0, 1}) loss += exact.backward(batch(step, micro)) / 2;
        if (run->step(how)) {
            exact.step(how, step);
        } else {
            ++result.skipped;
        }
        if (step >= how.steps - how.steps / 100) result.loss += loss / static_cast<double>(how.steps / 100);
        progress(step);
    }
    double of_difference = 0, of_weights = 0;
    each([&](std::size_t i, double w) {
        of_difference += (w - exact.w[i]) * (w - exact.w[i]);
        of_weights += exact.w[i] * exact.w[i];
    });
    result.difference = std::sqrt(of_difference / of_weights);
    result.counts_agree = run->optimizer->step_count() == exact.updates;
    return result;
}

}  // namespace long_run
