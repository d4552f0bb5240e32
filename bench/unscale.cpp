// SPDX-License-Identifier: MIT
// Passes over all gradients or parameters of a network, on one core: taking the loss scale out of gradients
// while looking for infinities and NaNs, and optimizer steps. Beside mp stand the loops that a user would
// write, memcpy moving as many bytes as the pass reads and writes, and as limit the same pass written by hand
// for AVX-512, where the processor has it.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cells.hpp"
#include "limits/limits.hpp"
#include "shared_memory.hpp"

namespace {

/// A network as its optimizer sees it: a number of tensors of one size.
struct network {
    const char* name;
    std::size_t tensors;
    std::size_t elements;
};
constexpr network networks[] = {
    {"1 x 4096", 1, 4096}, {"1000 x 4096", 1000, 4096}, {"1 x 64 Mi", 1, std::size_t{1} << 26}};
constexpr network trained_networks[] = {{"1000 x 4096", 1000, 4096}, {"64 x 1 Mi", 64, 1 << 20}};

/// Networks of more than this are left out of quick runs.
constexpr std::size_t most_elements_when_quick = std::size_t{8} << 20;

bool left_out(const network& shape) {
    return bench::quick() && shape.tensors * shape.elements > most_elements_when_quick;
}

std::size_t size_of(const network& shape) {
    return shape.tensors * shape.elements;
}

/// Bytes that a pass with bytes_per_element reads and writes in all.
double bytes_of(const network& shape, std::size_t bytes_per_element) {
    return static_cast<double>(size_of(shape) * bytes_per_element);
}

/// Each pass makes the values smaller by this, so little that they never become subnormal.
constexpr float inverse_scale = 0x1.fffffep-1F;

template <class Value>
using tensors = std::vector<std::vector<Value>>;

/// The tensors of a network, with values of both signs around one. Those of the same `role` are shared, so
/// that memory is there before the first benchmark runs.
template <class Value>
tensors<Value>& tensors_of(const network& shape, const std::string& role) {
    static std::map<std::string, tensors<Value>> all;
    tensors<Value>& result = all[role + shape.name];
    if (!result.empty()) return result;
    result.assign(shape.tensors, std::vector<Value>(shape.elements));
    for (std::vector<Value>& tensor : result) {
        for (std::size_t i = 0; i < shape.elements; ++i) {
            tensor[i] = Value(static_cast<float>(i % 1000) * 0.002F - 0.999F);
        }
    }
    return result;
}

/// Moves bytes_per_element for each element: half of them are read and half are written.
void add_memcpy(const std::string& table, const network& shape, std::size_t bytes_per_element) {
    if (left_out(shape)) return;
    const auto copy = [=](benchmark::State& state) {
        const std::size_t tensor_bytes = shape.elements * bytes_per_element / 2;
        const char* const from = bench::shared_memory<char, 0>(shape.tensors * tensor_bytes);
        char* const to = bench::shared_memory<char, 1>(shape.tensors * tensor_bytes);
        for (auto _ : state) {
            for (std::size_t i = 0; i < shape.tensors; ++i) {
                std::memcpy(to + i * tensor_bytes, from + i * tensor_bytes, tensor_bytes);
                benchmark::ClobberMemory();
            }
        }
        bench::count_elements(state, size_of(shape), bytes_of(shape, bytes_per_element));
    };
    bench::add(table, shape.name, "memcpy", copy, bench::role::reference);
}

/// Runs `pass(from, to)` on all tensors; it returns whether it found an infinity or NaN, and there are none.
template <class Gradient, class Pass>
void add_unscaling(const std::string& table, const std::string& contender, Pass pass,
                   bench::role part = bench::role::contender) {
    for (const network& shape : networks) {
        if (left_out(shape)) continue;
        const auto run = [=](benchmark::State& state) {
            tensors<Gradient>& from = tensors_of<Gradient>(shape, "gradient ");
            tensors<float>& to = tensors_of<float>(shape, "gradient ");
            bool found = false;
            for (auto _ : state) {
                for (std::size_t i = 0; i < shape.tensors; ++i) {
                    found |= pass(std::span(from[i]), std::span(to[i]));
                }
                benchmark::ClobberMemory();
            }
            if (found) state.SkipWithError("found an infinity or NaN that is not there");
            bench::count_elements(state, size_of(shape), bytes_of(shape, sizeof(Gradient) + sizeof(float)));
        };
        bench::add(table, shape.name, contender, run, part);
    }
}

void register_unscaling() {
    const std::string in_place = "unscale and check float gradients in place";
    add_unscaling<float>(in_place, "mp", [](std::span<float> gradient, std::span<float>) {
        return mp::unscale_and_check(mp::cpu{}, gradient, inverse_scale).found();
    });
    add_unscaling<float>(in_place, "loop", [](std::span<float> gradient, std::span<float>) {
        bool found = false;
        for (float& x : gradient) {
            x *= inverse_scale;
            found |= !std::isfinite(x);
        }
        return found;
    });
    add_unscaling<float>(in_place, "two loops", [](std::span<float> gradient, std::span<float>) {
        for (float& x : gradient) x *= inverse_scale;
        for (const float x : gradient) {
            if (!std::isfinite(x)) return true;
        }
        return false;
    });
    const std::string widening = "unscale and check half gradients into float";
    add_unscaling<mp::half>(widening, "mp", [](std::span<mp::half> gradient, std::span<float> unscaled) {
        return mp::unscale_and_check(mp::cpu{}, gradient, unscaled, inverse_scale).found();
    });
    add_unscaling<mp::half>(widening, "loop", [](std::span<mp::half> gradient, std::span<float> unscaled) {
        bool found = false;
        for (std::size_t i = 0; i < gradient.size(); ++i) {
            unscaled[i] = gradient[i] * inverse_scale;
            found |= !std::isfinite(unscaled[i]);
        }
        return found;
    });
    if (bench::limits::has_passes()) {
        add_unscaling<float>(
            in_place, "by hand",
            [](std::span<float> gradient, std::span<float>) {
                return bench::limits::unscale(gradient.data(), gradient.size(), inverse_scale);
            },
            bench::role::limit);
        add_unscaling<mp::half>(
            widening, "by hand",
            [](std::span<mp::half> gradient, std::span<float> unscaled) {
                const auto* const codes = reinterpret_cast<const std::uint16_t*>(gradient.data());
                return bench::limits::unscale_half(codes, unscaled.data(), gradient.size(), inverse_scale);
            },
            bench::role::limit);
    }
    for (const network& shape : networks) {
        add_memcpy(in_place, shape, 2 * sizeof(float));
        add_memcpy(widening, shape, sizeof(mp::half) + sizeof(float));
    }
}

/// bfloat16 weights with a float master copy, float gradients, and float state.
using weight = mp::bfloat16;

template <class Optimizer, class Options>
void add_optimizer(const std::string& table, std::size_t bytes_per_element, const Options& options) {
    for (const network& shape : trained_networks) {
        if (left_out(shape)) continue;
        const auto optimizer = std::make_shared<std::optional<Optimizer>>();
        bench::add(table, shape.name, "mp", [=](benchmark::State& state) {
            if (!*optimizer) {
                tensors<weight>& weights = tensors_of<weight>(shape, "weight ");
                tensors<float>& gradients = tensors_of<float>(shape, "trained ");
                std::vector<mp::parameter<weight, float>> parameters;
                for (std::size_t i = 0; i < shape.tensors; ++i) {
                    parameters.push_back({"", weights[i], gradients[i]});
                }
                optimizer->emplace(std::move(parameters), options);
            }
            for (auto _ : state) {
                (*optimizer)->step(inverse_scale);
                benchmark::ClobberMemory();
            }
            bench::count_elements(state, size_of(shape), bytes_of(shape, bytes_per_element));
        });
    }
}

/// The arrays of one tensor and its state.
struct training {
    std::size_t count;
    weight* weights;
    float* master;
    const float* gradient;
    float* first;
    float* second;
};

/// Adds a contender that does `step(training)` for each tensor.
template <class Step>
void add_steps(const std::string& table, const std::string& contender, std::size_t bytes_per_element,
               Step step, bench::role part = bench::role::contender) {
    for (const network& shape : trained_networks) {
        if (left_out(shape)) continue;
        const auto run = [=](benchmark::State& state) {
            tensors<weight>& weights = tensors_of<weight>(shape, "weight ");
            const tensors<float>& gradients = tensors_of<float>(shape, "trained ");
            tensors<float>& masters = tensors_of<float>(shape, "master ");
            tensors<float>& first = tensors_of<float>(shape, "first state ");
            tensors<float>& second = tensors_of<float>(shape, "second state ");
            // Whatever the last benchmark left must not become infinite or subnormal here.
            for (tensors<float>* all : {&masters, &first, &second}) {
                for (std::vector<float>& it : *all) std::fill(it.begin(), it.end(), 0.5F);
            }
            for (auto _ : state) {
                for (std::size_t i = 0; i < shape.tensors; ++i) {
                    step(training{shape.elements, weights[i].data(), masters[i].data(), gradients[i].data(),
                                  first[i].data(), second[i].data()});
                }
                benchmark::ClobberMemory();
            }
            bench::count_elements(state, size_of(shape), bytes_of(shape, bytes_per_element));
        };
        bench::add(table, shape.name, contender, run, part);
    }
}

/// What a user would write: one loop a tensor. `update(master, gradient, first, second)` gives the new master
/// weight.
template <class Update>
void add_loop(const std::string& table, std::size_t bytes_per_element, Update update) {
    add_steps(table, "loop", bytes_per_element, [=](const training& t) {
        for (std::size_t j = 0; j < t.count; ++j) {
            t.master[j] = update(t.master[j], t.gradient[j] * inverse_scale, t.first[j], t.second[j]);
            t.weights[j] = weight(t.master[j]);
        }
    });
}

/// What frameworks do that have no fused optimizer: a pass over the tensor for each operation.
void adamw_in_passes(const training& t) {
    static std::vector<float> unscaled;
    static std::vector<float> change;
    if (unscaled.size() < t.count) {
        unscaled.resize(t.count);
        change.resize(t.count);
    }
    float* __restrict const g = unscaled.data();
    float* __restrict const d = change.data();
    float* __restrict const m = t.first;
    float* __restrict const v = t.second;
    float* __restrict const w = t.master;
    const std::size_t count = t.count;
    for (std::size_t j = 0; j < count; ++j) g[j] = t.gradient[j] * inverse_scale;
    for (std::size_t j = 0; j < count; ++j) w[j] -= 1e-5F * w[j];
    for (std::size_t j = 0; j < count; ++j) m[j] *= 0.9F;
    for (std::size_t j = 0; j < count; ++j) m[j] += 0.1F * g[j];
    for (std::size_t j = 0; j < count; ++j) v[j] *= 0.999F;
    for (std::size_t j = 0; j < count; ++j) v[j] += 0.001F * (g[j] * g[j]);
    for (std::size_t j = 0; j < count; ++j) d[j] = std::sqrt(v[j]);
    for (std::size_t j = 0; j < count; ++j) d[j] += 1e-8F;
    for (std::size_t j = 0; j < count; ++j) w[j] -= 1e-3F * m[j] / d[j];
    for (std::size_t j = 0; j < count; ++j) t.weights[j] = weight(w[j]);
}

void register_optimizers() {
    constexpr std::size_t adamw_bytes = 30;
    const std::string adamw = "AdamW step, bfloat16 weights with float master, 30 bytes an element";
    add_optimizer<mp::adamw<weight, float>>(adamw, adamw_bytes, mp::adamw_options{});
    add_loop(adamw, adamw_bytes, [](float w, float g, float& m, float& v) {
        m = 0.9F * m + 0.1F * g;
        v = 0.999F * v + 0.001F * (g * g);
        return w - 1e-5F * w - 1e-3F * m / (std::sqrt(v) + 1e-8F);
    });
    add_steps(adamw, "pass by pass", adamw_bytes, adamw_in_passes);
    if (bench::limits::has_passes()) {
        add_steps(
            adamw, "by hand", adamw_bytes,
            [](const training& t) {
                constexpr bench::limits::adamw_factors factors{inverse_scale, 1e-5F, 0.9F, 0.1F, 0.999F,
                                                               0.001F,        1e-3F, 1.0F, 1e-8F};
                bench::limits::adamw(reinterpret_cast<std::uint16_t*>(t.weights), t.master, t.first, t.second,
                                     t.gradient, t.count, factors);
            },
            bench::role::limit);
    }
    constexpr std::size_t sgd_bytes = 22;
    const std::string sgd = "SGD step with momentum, bfloat16 weights with float master, 22 bytes an element";
    add_optimizer<mp::sgd<weight, float>>(sgd, sgd_bytes,
                                          mp::sgd_options{.learning_rate = 1e-3, .momentum = 0.9});
    add_loop(sgd, sgd_bytes, [](float w, float g, float& m, float&) {
        m = 0.9F * m + g;
        return w - 1e-3F * m;
    });
    for (const network& shape : trained_networks) {
        add_memcpy(adamw, shape, adamw_bytes);
        add_memcpy(sgd, shape, sgd_bytes);
    }
}

}  // namespace

void bench::register_benchmarks() {
    register_unscaling();
    register_optimizers();
}
