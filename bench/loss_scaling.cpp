// SPDX-License-Identifier: MIT
// What loss scaling costs the host: the bookkeeping of an iteration around an optimizer that does nothing,
// for every policy, and what the types that keep scaled gradients apart add to the loops by hand (nothing).
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cells.hpp"

namespace {

/// An optimizer without weights: what remains is the scaler's own work.
struct idle_optimizer {
    mp::gradient_report report{.checked = 1};

    mp::gradient_report unscale_gradients(float) { return report; }
    void step() {}
    void skip_step() {}
};

/// One iteration: scale the loss, step, update. Every `period`-th finds an infinity, 0 for none.
template <class Policy>
void add_iteration(const std::string& table, const std::string& row, const Policy& policy) {
    for (const int period : {0, 10}) {
        const auto scaler = std::make_shared<mp::loss_scaler<Policy>>(policy);
        bench::add(table, row, period == 0 ? "mp" : "every tenth skipped", [=](benchmark::State& state) {
            idle_optimizer optimizer;
            float loss = 1.0F;
            int count = 0;
            for (auto _ : state) {
                benchmark::DoNotOptimize(loss);
                float scaled = scaler->scale(loss);
                benchmark::DoNotOptimize(scaled);
                optimizer.report.infinities = ++count == period ? 1 : 0;
                if (count == period) count = 0;
                bool applied = static_cast<bool>(scaler->step(optimizer));
                benchmark::DoNotOptimize(applied);
                scaler->update();
                // The scale must not run away over millions of iterations.
                if (!(scaler->current_scale() < 1e30F && scaler->current_scale() > 1e-4F)) {
                    scaler->restore({policy, mp::initial_scale_state(policy)});
                }
            }
            bench::count_elements(state, 1);
        });
    }
}

void register_iterations() {
    const std::string table =
        "an iteration of one optimizer: scale, step, update; an element is an iteration";
    add_iteration(table, "pytorch", mp::pytorch_policy{});
    add_iteration(table, "apex", mp::apex_policy{});
    add_iteration(table, "mxnet", mp::mxnet_policy{});
    add_iteration(table, "deepspeed", mp::deepspeed_policy{.raise_error_at_min_scale = false});
    add_iteration(table, "megatron", mp::megatron_policy{});
    add_iteration(table, "fairseq", mp::fairseq_policy{.threshold = 1e-3});
    add_iteration(table, "histogram", mp::histogram_policy{});
    add_iteration(table, "static", mp::static_policy{});
}

constexpr std::size_t count = 4096;

/// Taking the scale out and clipping, by the typed functions and by the same loops on plain spans.
void register_types() {
    const std::string table = "unscale 4096 half gradients and clip them to a norm";
    const auto gradient = std::make_shared<std::vector<mp::half>>(count, mp::half(0.25F));
    const auto unscaled = std::make_shared<std::vector<float>>(count);
    bench::add(table, "typed and plain", "mp", [=](benchmark::State& state) {
        for (auto _ : state) {
            const auto clean =
                mp::unscale_and_check(mp::cpu{}, mp::scaled_gradient(*gradient, 1024.0F), *unscaled);
            double norm = mp::clip_gradient_norm(clean.gradient, 1e-3);
            benchmark::DoNotOptimize(norm);
        }
        bench::count_elements(state, count);
    });
    bench::add(table, "typed and plain", "plain spans", [=](benchmark::State& state) {
        for (auto _ : state) {
            const std::span<float> values(*unscaled);
            mp::unscale_and_check(mp::cpu{}, *gradient, values, 1.0F / 1024.0F);
            double sum = 0.0;
            for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
            double norm = std::sqrt(sum);
            const double factor = 1e-3 / (norm + 1e-6);
            if (factor < 1.0) {
                for (float& value : values) value *= static_cast<float>(factor);
            }
            benchmark::DoNotOptimize(norm);
        }
        bench::count_elements(state, count);
    });
}

}  // namespace

void bench::register_benchmarks() {
    register_iterations();
    register_types();
}
