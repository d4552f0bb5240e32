// SPDX-License-Identifier: MIT
// Scalers, logs, histories and sums that were moved from can still be used.
#include <mp/loss_scaling.hpp>
#include <mp/nn/scaling/layerwise_scaling.hpp>
#include <mp/nn/scaling/scaled_gradient.hpp>
#include <mp/nn/scaling/tensor_scaling.hpp>
#include <mp/optim.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

TEST_CASE("a loss scaler can be moved, and both ends go on") {
    std::vector<float> w(3, 1.0F), dw(3, 2.0F);
    mp::sgd<float> optimizer({{"w", w, dw}}, {.learning_rate = 0.1});
    mp::dynamic_loss_scaler scaler;
    CHECK(scaler.current_scale() == 65536.0F);
    scaler.unscale(optimizer);
    mp::dynamic_loss_scaler moved = std::move(scaler);
    moved.step(optimizer);
    moved.update();
    CHECK(moved.iterations() == 1);
    scaler.abandon_iteration();  // NOLINT(bugprone-use-after-move)
    CHECK_THROWS_AS(scaler.update(), mp::state_error);
    scaler.step(optimizer);
    scaler.update();
    CHECK(scaler.current_scale() == 65536.0F);
    moved = std::move(scaler);
    mp::training_iteration iteration(moved, optimizer);
    CHECK(static_cast<bool>(iteration.finish()));
}

TEST_CASE("a log that was moved from keeps no events and counts on") {
    mp::scale_event_log log(2);
    mp::scale_event event{};
    for (int i = 0; i < 3; ++i) log(event);
    mp::scale_event_log moved = std::move(log);
    CHECK(moved.size() == 2);
    CHECK(moved.dropped() == 1);
    CHECK(log.empty());  // NOLINT(bugprone-use-after-move)
    CHECK(log.capacity() == 0);
    CHECK(log.begin() == log.end());
    CHECK(log.to_text().empty());
    log(event);
    CHECK(log.empty());
    CHECK(log.totals().iterations == 1);
    CHECK(log.dropped() == 1);
    log = std::move(moved);
    CHECK(log.size() == 2);
    CHECK(std::distance(log.begin(), log.end()) == 2);
    moved(event);
    log(event);
    CHECK(log.dropped() == 2);
}

TEST_CASE("a history of amax that was moved from has a window") {
    mp::amax_history history(4);
    history.record(3.0F);
    mp::amax_history moved = std::move(history);
    CHECK(moved.newest() == 3.0F);
    CHECK(history == moved);  // NOLINT(bugprone-use-after-move)
    history.record(5.0F);
    CHECK(history.newest() == 5.0F);
    history.update(mp::delayed_scaling{});
    history.reset();
    CHECK(history.length() == 4);
    history = std::move(moved);
    moved.record(1.0F);
    CHECK(history.newest() == 3.0F);
}

TEST_CASE("a sum of gradients that was moved from is one of no gradients") {
    std::vector<float> g(5, 1.0F);
    mp::gradient_accumulator sum(5);
    static_cast<void>(sum.add(mp::cpu{}, mp::scaled_gradient(std::span<float>(g), 2.0F)));
    mp::gradient_accumulator moved = std::move(sum);
    CHECK(sum.size() == 0);  // NOLINT(bugprone-use-after-move)
    CHECK_THROWS_AS(static_cast<void>(sum.add(mp::cpu{}, mp::scaled_gradient(std::span<float>(g), 2.0F))),
                    mp::argument_error);
    static_cast<void>(sum.add(mp::cpu{}, mp::scaled_gradient(std::span<float>(), 2.0F)));
    static_cast<void>(sum.unscale(mp::cpu{}));
    sum.reset();
    CHECK(moved.unscale(mp::cpu{}).gradient.values()[4] == 0.5F);
}
