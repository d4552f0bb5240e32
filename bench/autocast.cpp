// SPDX-License-Identifier: MIT
// What autocast costs: a static call against the casts and the call by hand (nothing), a call in a region by
// how its category is found, what the cache of casts saves, what a ledger takes.
#include <mp/autocast.hpp>
#include <mp/convert.hpp>
#include <mp/frontends/compat/op_lists.hpp>
#include <mp/gemm.hpp>
#include <mp/ops.hpp>

#include <benchmark/benchmark.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cells.hpp"

namespace {

namespace ac = mp::autocast;

struct multiply_op {
    static constexpr std::string_view name = "multiply";
    static constexpr auto category = mp::op_category::lower_precision;
    constexpr auto operator()(auto a, auto b) const { return a * b; }
};

/// Numbers between 1 and 2, where nothing under- or overflows.
std::vector<float> numbers(std::size_t count) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = 1.0F + static_cast<float>(i % 97) / 97.0F;
    return values;
}

void register_static_calls() {
    const std::string table = "a static call, and the same casts and call by hand";
    constexpr std::size_t count = 4096;
    const auto a = std::make_shared<std::vector<float>>(numbers(count));
    const auto b = std::make_shared<std::vector<float>>(numbers(count));
    const auto c = std::make_shared<std::vector<float>>(count);
    const auto multiply = [&](const std::string& contender, auto product) {
        bench::add(table, "half products of floats", contender, [=](benchmark::State& state) {
            for (auto _ : state) {
                for (std::size_t i = 0; i < count; ++i) (*c)[i] = product((*a)[i], (*b)[i]);
                benchmark::DoNotOptimize(c->data());
                benchmark::ClobberMemory();
            }
            bench::count_elements(state, count);
        });
    };
    multiply("mp",
             [](float x, float y) { return static_cast<float>(ac::call<ac::fp16>(multiply_op{}, x, y)); });
    multiply("by hand", [](float x, float y) { return static_cast<float>(mp::half(x) * mp::half(y)); });

    constexpr std::ptrdiff_t n = 128;
    const auto left = std::make_shared<std::vector<float>>(numbers(n * n));
    const auto right = std::make_shared<std::vector<float>>(numbers(n * n));
    const auto result = std::make_shared<std::vector<float>>(n * n);
    const auto view = [](std::vector<float>& values) { return mp::row_major(values.data(), n, n); };
    const std::string row = "product of 128 x 128 floats in bfloat16";
    bench::add(table, row, "mp", [=](benchmark::State& state) {
        for (auto _ : state) {
            mp::ops::matmul<ac::bf16>(mp::cpu{}, view(*left), view(*right), view(*result));
            benchmark::ClobberMemory();
        }
        bench::count_elements(state, static_cast<std::size_t>(n * n));
    });
    bench::add(table, row, "by hand", [=](benchmark::State& state) {
        for (auto _ : state) {
            std::vector<mp::bfloat16> x(left->size());
            std::vector<mp::bfloat16> y(right->size());
            std::vector<mp::bfloat16> z(result->size());
            mp::convert(mp::cpu{}, std::span<const float>(*left), std::span(x));
            mp::convert(mp::cpu{}, std::span<const float>(*right), std::span(y));
            mp::gemm(mp::cpu{}, 1.0F, mp::row_major(x.data(), n, n), mp::row_major(y.data(), n, n), 0.0F,
                     mp::row_major(z.data(), n, n));
            mp::convert(mp::cpu{}, std::span<const mp::bfloat16>(z), std::span(*result));
            benchmark::ClobberMemory();
        }
        bench::count_elements(state, static_cast<std::size_t>(n * n));
    });
}

/// Its kernel does nothing: what remains is the decision.
struct idle_op {
    static constexpr std::string_view name = "scaled_dot_product_attention";
    static constexpr auto category = mp::op_category::pass_through;
    void operator()(mp::cpu, int* calls) const { ++*calls; }
};

void register_decisions() {
    const std::string table = "deciding about an op that does nothing; an element is a call";
    const auto add = [&](const std::string& row, auto make_region) {
        bench::add(table, row, "mp", [=](benchmark::State& state) {
            [[maybe_unused]] const auto region = make_region();
            int calls = 0;
            for (auto _ : state) {
                ac::dispatch(idle_op{}, mp::cpu{}, &calls);
                benchmark::DoNotOptimize(calls);
            }
            bench::count_elements(state, 1);
        });
    };
    using region = mp::autocast_region;
    add("outside of regions", [] { return 0; });
    add("in a region, the op's own category", [] { return region(mp::precision::fp16); });
    add("by the list of PyTorch, 110 rules",
        [] { return region(mp::precision::fp16, ac::lists::pytorch_cuda); });
    add("by the list of MXNet, 689 rules", [] { return region(mp::precision::fp16, ac::lists::mxnet); });
    add("by the fourth rule of the region", [] {
        return region({.cpu = mp::precision::fp16,
                       .rules = {{"softmax", mp::op_category::full_precision},
                                 {"linear", mp::op_category::lower_precision},
                                 {"layer_norm", mp::op_category::full_precision},
                                 {"*", mp::op_category::pass_through}}});
    });
}

void register_cache() {
    const std::string table = "a linear layer of 1024 inputs and outputs, float weights, in bfloat16";
    constexpr std::ptrdiff_t width = 1024;
    const auto weights = std::make_shared<std::vector<float>>(numbers(width * width));
    for (const std::ptrdiff_t batch : {1, 16, 256}) {
        const auto x = std::make_shared<std::vector<float>>(numbers(static_cast<std::size_t>(batch * width)));
        const auto y = std::make_shared<std::vector<float>>(x->size());
        const auto add = [&](const std::string& contender, auto weight_operand, ac::cast_ledger* ledger) {
            bench::add(table, "batch of " + std::to_string(batch), contender,
                       [=, keep = weights](benchmark::State& state) {
                           const mp::autocast_region region({.cpu = mp::precision::bf16, .ledger = ledger});
                           const auto layer = [&] {
                               mp::ops::linear(mp::cpu{}, mp::row_major(x->data(), batch, width),
                                               weight_operand, mp::ops::absent,
                                               mp::row_major(y->data(), batch, width));
                           };
                           layer();  // the cache, if there is one, has the weights now
                           for (auto _ : state) {
                               layer();
                               benchmark::ClobberMemory();
                           }
                           bench::count_elements(state, x->size());
                       });
        };
        static ac::cast_ledger ledger;
        const auto view = mp::row_major(weights->data(), width, width);
        add("mp", ac::cached(view, ac::buffer_version()), nullptr);
        add("without the cache", view, nullptr);
        add("with a ledger", ac::cached(view, ac::buffer_version()), &ledger);
    }
}

}  // namespace

void bench::register_benchmarks() {
    register_static_calls();
    register_decisions();
    register_cache();
}
