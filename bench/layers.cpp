// SPDX-License-Identifier: MIT
// What a reduced format brings to training: three linear layers of 1024 units with relu between them, as
// examples/train_digits puts them together, forward and backward, counted as the operations of their matrix
// products. `float` is the same network with floats in all places.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/ops.hpp>

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cells.hpp"

namespace {

constexpr std::ptrdiff_t units = 1024;
constexpr int layer_count = 3;

/// Numbers of both signs below `bound`.
template <class Value>
std::vector<Value> numbers(std::ptrdiff_t count, float bound, std::uint32_t bits) {
    std::vector<Value> result(static_cast<std::size_t>(count));
    for (Value& x : result) {
        bits = bits * 1664525U + 1013904223U;
        x = static_cast<Value>(static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31F * bound);
    }
    return result;
}

template <class Value>
class network {
public:
    explicit network(std::ptrdiff_t batch) : batch_(batch), input_(numbers<Value>(batch * units, 1.0F, 1)) {
        for (std::uint32_t i = 0; i < layer_count; ++i) {
            // The variance of He et al. 2015: activations keep their size from layer to layer.
            layers_.push_back({numbers<Value>(units * units, 0.0765F, 2 + i), std::vector<Value>(units),
                               std::vector<Value>(units * units), std::vector<Value>(units),
                               std::vector<Value>(input_.size()), std::vector<Value>(input_.size())});
        }
        layers_.back().output_gradient = numbers<Value>(batch * units, 1.0F, 9);
    }

    /// The outputs of all layers, and then the gradients of all weights, as far as the given gradient of the
    /// last outputs says.
    void iterate(mp::cpu exec) {
        for (std::size_t i = 0; i < layers_.size(); ++i) {
            const bool last = i + 1 == layers_.size();
            layer& to = layers_[i];
            mp::ops::linear(exec, rows(i == 0 ? input_ : layers_[i - 1].output), square(to.weights), to.bias,
                            rows(to.output), last ? mp::ops::activation::none : mp::ops::activation::relu);
        }
        for (std::size_t i = layers_.size(); i-- > 1;) {
            layer& to = layers_[i];
            layer& from = layers_[i - 1];
            mp::ops::linear_backward(exec, rows(from.output), square(to.weights), rows(to.output_gradient),
                                     rows(from.output_gradient), square(to.weight_gradient),
                                     to.bias_gradient);
            mp::ops::relu_backward(exec, rows(from.output), rows(from.output_gradient),
                                   rows(from.output_gradient));
        }
        layer& first = layers_.front();
        mp::ops::linear_backward(exec, rows(input_), square(first.weights), rows(first.output_gradient),
                                 mp::ops::absent, square(first.weight_gradient), first.bias_gradient);
    }

    /// Of the matrix products of an iteration: forward, and backward to weights and, except for the first layer,
    /// to inputs.
    [[nodiscard]] double operations() const {
        return 2.0 * static_cast<double>(batch_ * units * units) * (3 * layer_count - 1);
    }

private:
    struct layer {
        std::vector<Value> weights;
        std::vector<Value> bias;
        std::vector<Value> weight_gradient;
        std::vector<Value> bias_gradient;
        std::vector<Value> output;
        std::vector<Value> output_gradient;
    };

    auto rows(std::vector<Value>& values) const { return mp::row_major(values.data(), batch_, units); }
    static auto square(std::vector<Value>& values) { return mp::row_major(values.data(), units, units); }

    std::ptrdiff_t batch_;
    std::vector<Value> input_;
    std::vector<layer> layers_;
};

template <class Value>
void add_network(const std::string& contender) {
    const std::string table = "training iteration of three layers of 1024 units";
    for (const std::ptrdiff_t batch : {64, 256, 1024}) {
        if (batch == 1024 && bench::quick()) continue;
        const auto made = std::make_shared<std::unique_ptr<network<Value>>>();
        for (const int threads : {1, 2}) {
            const std::string row =
                "batch of " + std::to_string(batch) + (threads == 2 ? ", two threads" : "");
            auto* const cell = bench::add(table, row, contender, [=](benchmark::State& state) {
                if (!*made) *made = std::make_unique<network<Value>>(batch);
                for (auto _ : state) {
                    (*made)->iterate(mp::cpu{.threads = threads});
                    benchmark::ClobberMemory();
                }
                bench::count_operations(state, (*made)->operations());
            });
            if (threads == 2) cell->UseRealTime();
        }
    }
}

}  // namespace

void bench::register_benchmarks() {
    add_network<mp::bfloat16>("mp bfloat16");
    add_network<mp::half>("half");
    add_network<float>("float");
    add_note("training iteration of three layers of 1024 units",
             "All three are mp; in brackets: how many times faster bfloat16 is.");
}
