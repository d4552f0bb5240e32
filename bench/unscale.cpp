// SPDX-License-Identifier: MIT
// Passes over all gradients or parameters of a network, on one core: taking the loss scale out of gradients
// while looking for infinities and NaNs, and optimizer steps. Beside mp stand the loops that a user would
// write, and memcpy moving as many bytes as the pass reads and writes.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cells.hpp"

namespace {

/// A network as its optimizer sees it: so many tensors of so many elements.
struct network {
    const char* name;
    std::size_t tensors;
    std::size_t elements;
};
constexpr network networks[] = {
    {"1 x 4096", 1, 4096}, {"1000 x 4096", 1000, 4096}, {"1 x 64 Mi", 1, std::size_t{1} << 26}};
constexpr network trained_networks[] = {{"1000 x 4096", 1000, 4096}, {"8 x 1 Mi", 8, 1 << 20}};

std::size_t size_of(const network& shape) {
    return shape.tensors * shape.elements;
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

/// Moves so many bytes an element in all: half of them are read and half are written.
void add_memcpy(const std::string& table, const network& shape, std::size_t bytes_per_element) {
    bench::add(table, shape.name, "memcpy", [=](benchmark::State& state) {
        const std::size_t floats = (bytes_per_element / 2 + sizeof(float) - 1) / sizeof(float);
        const network copied{shape.name, shape.tensors, shape.elements * floats};
        const std::string role = std::to_string(floats) + " copied ";
        const tensors<float>& from = tensors_of<float>(copied, role + "from ");
        tensors<float>& to = tensors_of<float>(copied, role + "to ");
        for (auto _ : state) {
            for (std::size_t i = 0; i < shape.tensors; ++i) {
                std::memcpy(to[i].data(), from[i].data(), shape.elements * bytes_per_element / 2);
                benchmark::ClobberMemory();
            }
        }
        bench::count_elements(state, size_of(shape));
    });
}

/// Runs `pass(from, to)` on all tensors; it returns whether it found an infinity or NaN, and there are none.
template <class Gradient, class Pass>
void add_unscaling(const std::string& table, const std::string& contender, Pass pass) {
    for (const network& shape : networks) {
        bench::add(table, shape.name, contender, [=](benchmark::State& state) {
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
            bench::count_elements(state, size_of(shape));
        });
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
    for (const network& shape : networks) {
        add_memcpy(in_place, shape, 2 * sizeof(float));
        add_memcpy(widening, shape, sizeof(mp::half) + sizeof(float));
    }
}

/// bfloat16 weights with a float master copy, float gradients, and float state.
using weight = mp::bfloat16;

template <class Optimizer, class Options>
void add_optimizer(const std::string& table, const Options& options) {
    for (const network& shape : trained_networks) {
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
            bench::count_elements(state, size_of(shape));
        });
    }
}

/// What a user would write: one loop a tensor. `update(master, gradient, first, second)` gives the new master
/// weight.
template <class Update>
void add_loop(const std::string& table, Update update) {
    for (const network& shape : trained_networks) {
        bench::add(table, shape.name, "loop", [=](benchmark::State& state) {
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
                    weight* const w = weights[i].data();
                    float* const master = masters[i].data();
                    const float* const gradient = gradients[i].data();
                    float* const m = first[i].data();
                    float* const v = second[i].data();
                    for (std::size_t j = 0; j < shape.elements; ++j) {
                        master[j] = update(master[j], gradient[j] * inverse_scale, m[j], v[j]);
                        w[j] = weight(master[j]);
                    }
                }
                benchmark::ClobberMemory();
            }
            bench::count_elements(state, size_of(shape));
        });
    }
}

void register_optimizers() {
    const std::string adamw = "AdamW step, bfloat16 weights with float master, 30 bytes an element";
    add_optimizer<mp::adamw<weight, float>>(adamw, mp::adamw_options{});
    add_loop(adamw, [](float w, float g, float& m, float& v) {
        m = 0.9F * m + 0.1F * g;
        v = 0.999F * v + 0.001F * (g * g);
        return w - 1e-5F * w - 1e-3F * m / (std::sqrt(v) + 1e-8F);
    });
    const std::string sgd = "SGD step with momentum, bfloat16 weights with float master, 22 bytes an element";
    add_optimizer<mp::sgd<weight, float>>(sgd, mp::sgd_options{.learning_rate = 1e-3, .momentum = 0.9});
    add_loop(sgd, [](float w, float g, float& m, float&) {
        m = 0.9F * m + g;
        return w - 1e-3F * m;
    });
    for (const network& shape : trained_networks) {
        add_memcpy(adamw, shape, 30);
        add_memcpy(sgd, shape, 22);
    }
}

}  // namespace

void bench::register_benchmarks() {
    register_unscaling();
    register_optimizers();
}
