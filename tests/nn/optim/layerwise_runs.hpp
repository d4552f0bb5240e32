// SPDX-License-Identifier: MIT
// Runs of optimizers with layer-wise rates, to be compared with results of others.
#pragma once

#include <doctest/doctest.h>
#include <mp/optim.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "larger_error.hpp"
#include "nn/optim/executors.hpp"

/// The weights of a parameter of 6 and one of 3, after five steps from given weights by given gradients. The
/// parameters are in groups of their own.
template <class Optimizer, class Options>
std::vector<float> five_steps(const Options& first, const Options& second) {
    std::vector<float> w, dw(6), b = {0.5F, -1.5F, 0.25F}, db(3);
    for (int i = 0; i < 6; ++i) w.push_back(static_cast<float>(i * 7 % 5 - 2) * 0.375F + 0.125F);
    Optimizer optimizer({{"w", w, dw}, {"b", b, db, 1}}, {first, second});
    for (int step = 1; step <= 5; ++step) {
        for (int i = 0; i < 6; ++i) {
            dw[static_cast<std::size_t>(i)] = static_cast<float>((i * 5 + step * 3) % 7 - 3) * 0.0625F;
        }
        for (int i = 0; i < 3; ++i) {
            db[static_cast<std::size_t>(i)] = static_cast<float>((i * 3 + step) % 4 - 1) * 0.5F;
        }
        optimizer.step();
    }
    w.insert(w.end(), b.begin(), b.end());
    return w;
}

inline void check_close(const std::vector<float>& seen, const std::vector<double>& expected) {
    REQUIRE(seen.size() == expected.size());
    for (std::size_t i = 0; i < seen.size(); ++i) {
        CAPTURE(i);
        CHECK(std::fabs(static_cast<double>(seen[i]) - expected[i]) < 2e-7);
    }
}

/// Trains parameters of several sizes for six steps, one more without a gradient, and compares their weights with those
/// of `reference(weights)`, an object with step(gradients) and `weights`, in long double. All executors give the same
/// bits, which the norm of some chunks and some blocks goes into.
template <class Optimizer, class Reference, class Options>
void check_by_reference(const Options& options, double tolerance) {
    const std::vector<std::size_t> sizes = {1, 4095, 4096, 4097, 50000, 0, 17};
    std::string first;
    for (const mp::cpu exec : optimizer_executors({1, 3})) {
        std::mt19937 random(8);
        std::normal_distribution<float> normal;
        std::vector<std::vector<float>> weights;
        std::vector<std::vector<float>> gradients;
        std::vector<mp::parameter<float>> parameters;
        std::vector<Reference> expected;
        for (const std::size_t size : sizes) {
            weights.emplace_back(size);
            gradients.emplace_back(size);
            const float scale = std::ldexp(1.0F, static_cast<int>(weights.size()) - 4);
            for (float& it : weights.back()) it = scale * normal(random);
            expected.push_back({options, {weights.back().begin(), weights.back().end()}});
        }
        std::vector<float> untrained(3, 5.0F);
        for (std::size_t i = 0; i < sizes.size(); ++i) parameters.push_back({"", weights[i], gradients[i]});
        parameters.push_back({"", untrained, {}});
        Optimizer optimizer(exec, parameters, options);
        CHECK(optimizer.trust_ratio(4) == 1.0);
        std::string bytes;
        const auto add = [&](const void* data, std::size_t size) {
            bytes.append(static_cast<const char*>(data), size);
        };
        for (int step = 0; step < 6; ++step) {
            for (auto& it : gradients) {
                for (float& g : it) g = normal(random) * (step == 3 ? 0.01F : 8.0F);
            }
            optimizer.step(0.25F);
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                std::vector<long double> g(sizes[i]);
                for (std::size_t j = 0; j < g.size(); ++j)
                    g[j] = static_cast<long double>(gradients[i][j]) / 4;
                expected[i].step(g);
                CHECK(optimizer.trust_ratio(i) == doctest::Approx(double(expected[i].ratio)).epsilon(1e-6));
                double worst = 0.0;
                long double largest = 0.0L;
                for (std::size_t j = 0; j < g.size(); ++j) {
                    const long double error =
                        static_cast<long double>(weights[i][j]) - expected[i].weights[j];
                    worst = tests::larger_error(worst, static_cast<double>(std::fabs(error)));
                    largest = std::max(largest, std::fabs(expected[i].weights[j]));
                }
                CHECK(worst <= tolerance * static_cast<double>(largest));
                const double ratio = optimizer.trust_ratio(i);
                add(&ratio, sizeof ratio);
            }
        }
        for (const auto& it : weights) add(it.data(), it.size() * sizeof(float));
        CHECK(untrained == std::vector<float>(3, 5.0F));
        CHECK(optimizer.trust_ratio(sizes.size()) == 1.0);
        if (first.empty()) first = bytes;
        CHECK(bytes == first);
    }
}

inline long double norm_of(const std::vector<long double>& values) {
    long double sum = 0.0L;
    for (const long double it : values) sum += it * it;
    return std::sqrt(sum);
}
