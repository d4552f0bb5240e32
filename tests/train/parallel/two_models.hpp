// SPDX-License-Identifier: MIT
/// \file
/// Two models whose gradients are reduced at the same time on one communicator, for every kind of communicator.
#pragma once

#include <mp/ops.hpp>
#include <mp/parallel.hpp>
#include <mp/training.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace two_models {

/// How the backward passes of the ranks differ.
enum class ranks_differ : unsigned char {
    not_at_all,
    in_time,   ///< rank 1 sleeps now and then
    in_order,  ///< rank 1 writes the gradients of the second model first
};

struct setting {
    ranks_differ differ = ranks_differ::not_at_all;
    int in_flight = 4;
    mp::wire_format wire = mp::wire_format::as_stored;
    bool compare_sent = false;
};

inline constexpr int matrices = 6;
inline constexpr std::ptrdiff_t side = 32;

struct model {
    mp::parameter_store<float> store;
    std::vector<float> values;  ///< of every gradient on this rank

    /// The gradients of rank r are first * (r + 1), and their mean first * (ranks + 1) / 2, exactly.
    model(const std::string& name, int rank, float first)
        : values(static_cast<std::size_t>(side * side), first * static_cast<float>(rank + 1)) {
        for (int i = 0; i < matrices; ++i) store.add_matrix(name + std::to_string(i), side, side);
        store.build(1);
    }
    /// Writes gradient i as an op of a backward pass does.
    void write(int i) {
        const auto gradient = store.parameters()[static_cast<std::size_t>(i)].gradient;
        mp::ops::relu(mp::cpu{}, mp::row_major(std::as_const(values).data(), side, side),
                      mp::row_major(gradient.data(), side, side));
    }
    [[nodiscard]] std::size_t wrong(float expected) const {
        std::size_t count = 0;
        for (const auto& it : store.parameters()) {
            for (const float value : it.gradient) count += value < expected || value > expected ? 1U : 0U;
        }
        return count;
    }
};

/// Runs both models' backward passes at once, which write the gradients in turns.
template <class A, class B>
void write_both(A& a, B& b, ranks_differ differ, int rank, int step) {
    const bool swaps = differ == ranks_differ::in_order && rank == 1 && step > 0;
    for (int i = matrices - 1; i >= 0; --i) {
        if (differ == ranks_differ::in_time && rank == 1 && i % 3 == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        if (swaps) b.write(i);
        a.write(i);
        if (!swaps) b.write(i);
    }
}

/// Returns the number of gradients that are not the mean over the ranks, in three steps of both models.
template <class Ranks>
std::size_t wrong_gradients(Ranks& ranks, const setting& how) {
    model a("a", ranks.rank(), 1), b("b", ranks.rank(), 8);
    const mp::reduction_options options{
        .wire = how.wire, .bucket_bytes = 1, .in_flight = how.in_flight, .compare_sent = how.compare_sent};
    mp::gradient_reduction of_a(mp::cpu{}, ranks, options, a.store);
    mp::gradient_reduction of_b(mp::cpu{}, ranks, options, b.store);
    const float mean = static_cast<float>(ranks.size() + 1) / 2;
    std::size_t wrong = 0;
    for (int step = 0; step < 3; ++step) {
        {
            const auto overlap_of_a = of_a.backward(1.0F);
            const auto overlap_of_b = of_b.backward(1.0F);
            write_both(a, b, how.differ, ranks.rank(), step);
        }
        of_a.finish();
        of_b.finish();
        wrong += a.wrong(mean) + b.wrong(8 * mean);
    }
    return wrong;
}

/// As wrong_gradients, where the first model has a sharded optimizer, and steps, computes norms and is saved while
/// gradients of the second one are on their way.
template <class Ranks>
std::size_t wrong_with_shares(Ranks& ranks, ranks_differ differ, const std::string& path) {
    model a("a", ranks.rank(), 1), b("b", ranks.rank(), 8);
    mp::gradient_reduction of_a(mp::cpu{}, ranks, {.bucket_bytes = 1, .share_only = true}, a.store);
    mp::gradient_reduction of_b(mp::cpu{}, ranks, {.bucket_bytes = 1, .in_flight = 2}, b.store);
    auto optimizer = mp::shard<mp::sgd<float>>(mp::cpu{}, of_a, a.store, mp::sgd_options{.learning_rate = 1});
    for (auto& weight : a.store.mutable_weights()) weight = 0;
    optimizer.local().follow_weights();
    const float mean = static_cast<float>(ranks.size() + 1) / 2;
    std::size_t wrong = 0;
    for (int step = 0; step < 3; ++step) {
        {
            const auto overlap_of_a = of_a.backward(1.0F);
            const auto overlap_of_b = of_b.backward(1.0F);
            write_both(a, b, differ, ranks.rank(), step);
        }
        of_a.finish();
        static_cast<void>(optimizer.unscale_gradients(1.0F));
        const double norm = optimizer.gradient_norm();
        const auto expected = static_cast<double>(mean * static_cast<float>(side));
        const double square = norm * norm / (expected * expected * matrices);
        wrong += square < 1 - 1e-9 || square > 1 + 1e-9 ? 1U : 0U;
        optimizer.step();
        mp::save_checkpoint(ranks, path, [&](auto& visit) { visit("optimizer", optimizer); });
        of_b.finish();
        wrong += b.wrong(8 * mean);
        for (const auto& it : a.store.parameters()) {
            for (const float weight : it.weights) {
                const float due = -mean * static_cast<float>(step + 1);
                wrong += weight < due || weight > due ? 1U : 0U;
            }
        }
    }
    return wrong;
}

}  // namespace two_models
