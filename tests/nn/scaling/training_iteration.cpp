// SPDX-License-Identifier: MIT
// The scope of one iteration: what it does in which order, what it refuses, and that leaving it early leaves
// everything as it was.
#include <doctest/doctest.h>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>

#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Weights, gradients and an optimizer over them; the gradient of step n is what `backward` says.
struct model {
    std::vector<mp::half> weights = std::vector<mp::half>(4, mp::half(1.0F));
    std::vector<float> gradient = std::vector<float>(4, 0.0F);
    mp::sgd<mp::half, float> optimizer{{{"weights", weights, gradient}}, {.learning_rate = 0.5}};

    void backward(float scaled_value) {
        for (float& value : gradient) value += scaled_value;
    }
};

mp::loss_scaler<mp::pytorch_policy> scaler_at(float scale) {
    mp::loss_scaler scaler(mp::pytorch_policy{.initial_scale = scale, .growth_interval = 3});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    return scaler;
}

}  // namespace

TEST_CASE("an iteration accumulates at one scale, clips, steps, updates once and zeroes the gradients") {
    auto scaler = scaler_at(1024.0F);
    model m;
    {
        mp::training_iteration iteration(scaler, m.optimizer);
        CHECK(iteration.current_scale() == 1024.0F);
        m.backward(iteration.scale(1.0F));
        m.backward(iteration.scale(0.5F));
        const auto norms = iteration.clip_gradient_norm(1.5);
        CHECK(norms[0] == doctest::Approx(3.0));  // four values of 1.5
        const auto finished = iteration.finish();
        CHECK(finished);
        CHECK(finished.steps[0].status == mp::step_status::applied);
        CHECK(finished.change.kind == mp::scale_change_kind::unchanged);
        CHECK(finished.event.applied == 1);
    }
    CHECK(scaler.state().state.growth.tracker == 1);
    CHECK(m.gradient == std::vector<float>(4, 0.0F));
    CHECK(static_cast<float>(m.weights[0]) == doctest::Approx(1.0F - 0.5F * 0.75F).epsilon(0.001));
}

TEST_CASE("a skipped iteration is false, backs off and leaves the weights") {
    auto scaler = scaler_at(1024.0F);
    model m;
    mp::training_iteration iteration(scaler, m.optimizer);
    m.backward(infinity);
    const auto finished = iteration.finish();
    CHECK_FALSE(finished);
    CHECK(finished.steps[0].status == mp::step_status::skipped_infinity);
    CHECK(finished.steps[0].parameter_name == "weights");
    CHECK(finished.change.after == 512.0F);
    CHECK(finished.event.parameter_name.view() == "weights");
    CHECK(finished.event.element == 0);
    CHECK(static_cast<float>(m.weights[0]) == 1.0F);
    CHECK(m.gradient[0] == 0.0F);
}

TEST_CASE("leaving the scope early changes nothing but the gradients") {
    auto scaler = scaler_at(1024.0F);
    model m;
    const auto before = scaler.state();
    try {
        mp::training_iteration iteration(scaler, m.optimizer);
        m.backward(iteration.scale(1.0F));
        iteration.unscale();
        throw std::runtime_error("the data ran out");
    } catch (const std::runtime_error&) {
    }
    CHECK(scaler.state() == before);
    CHECK(scaler.iterations() == 0);
    CHECK(m.gradient[0] == 0.0F);
    CHECK_FALSE(m.optimizer.gradients_unscaled());
    CHECK(m.optimizer.step_count() == 0);
    // And the next iteration works.
    mp::training_iteration iteration(scaler, m.optimizer);
    m.backward(iteration.scale(1.0F));
    CHECK(iteration.finish());
}

TEST_CASE("misuse is refused in words") {
    auto scaler = scaler_at(1024.0F);
    model m;
    mp::training_iteration iteration(scaler, m.optimizer);
    CHECK(holds(thrown<mp::state_error>([&] { mp::training_iteration second(scaler, m.optimizer); }),
                "another training_iteration of this scaler is open"));
    CHECK(holds(thrown<mp::state_error>([&] { scaler.update(); }), "the scale must not change in it"));
    CHECK(holds(thrown<mp::state_error>([&] { scaler.update(2.0F); }), "the scale must not change in it"));
    iteration.unscale();
    iteration.unscale();  // harmless
    CHECK(iteration.finish());
    CHECK(holds(thrown<mp::state_error>([&] { iteration.finish(); }), "this iteration is finished"));
    CHECK(holds(thrown<mp::state_error>([&] { iteration.unscale(); }), "this iteration is finished"));
    scaler.step(m.optimizer);
    CHECK(holds(thrown<mp::state_error>([&] { mp::training_iteration second(scaler, m.optimizer); }),
                "call update or abandon_iteration first"));
}

TEST_CASE("inside of an iteration nothing else steps, and no gradient is in two optimizers") {
    auto scaler = scaler_at(1024.0F);
    model m, other;
    {
        mp::training_iteration iteration(scaler, m.optimizer);
        m.backward(iteration.scale(1.0F));
        for (const auto& step : {std::function<void()>([&] { m.optimizer.step(); }),
                                 std::function<void()>([&] { m.optimizer.step(1.0F / 1024); }),
                                 std::function<void()>([&] { (void)scaler.step(m.optimizer); })}) {
            CHECK(holds(thrown<mp::state_error>(step),
                        "an mp::training_iteration of this optimizer is open; its finish() steps"));
        }
        CHECK(static_cast<float>(m.weights[0]) == 1.0F);
        other.optimizer.step();
        REQUIRE(iteration.finish());
        m.optimizer.step();  // the iteration is finished
    }
    mp::sgd<mp::half, float> second({{"b", other.weights, std::span(m.gradient)}}, {.learning_rate = 0.5});
    CHECK(holds(thrown<mp::argument_error>([&] { mp::training_iteration both(scaler, m.optimizer, second); }),
                "mp::training_iteration: optimizers is 'number 0 and number 1'; it must not have a gradient "
                "in common"));
    CHECK(mp::training_iteration(scaler, m.optimizer, other.optimizer).finish().event.applied == 2);
}

TEST_CASE("a scope that is refused leaves the open one as it is") {
    auto scaler = scaler_at(1024.0F);
    model m;
    mp::training_iteration iteration(scaler, m.optimizer);
    CHECK_THROWS_AS(mp::training_iteration again(scaler, m.optimizer), mp::state_error);
    CHECK_THROWS_AS(mp::training_iteration twice(scaler, m.optimizer, m.optimizer), mp::argument_error);
    CHECK_THROWS_AS(m.optimizer.step(), mp::state_error);
    CHECK_FALSE(m.optimizer.is_used(0));
    CHECK(iteration.finish());
    CHECK(static_cast<float>(m.weights[0]) == 1.0F);
}

TEST_CASE("an iteration whose scale nothing has asked for does not step") {
    mp::dynamic_loss_scaler scaler;
    model m;
    mp::training_iteration iteration(scaler, m.optimizer);
    m.backward(65536.0F);
    CHECK(holds(thrown<mp::state_error>([&] { iteration.finish(); }),
                "mp::loss_scaler::step: the scale is 65536, and nothing has asked for it"));
    CHECK(static_cast<float>(m.weights[0]) == 1.0F);
    static_cast<void>(iteration.current_scale());
    CHECK(iteration.finish());
    CHECK(static_cast<float>(m.weights[0]) == 0.5F);
}

TEST_CASE("several optimizers are skipped each on its own, and one overflow backs off for all") {
    auto scaler = scaler_at(64.0F);
    model good;
    model bad;
    mp::training_iteration iteration(scaler, good.optimizer, bad.optimizer);
    good.backward(iteration.scale(1.0F));
    bad.backward(infinity);
    const auto finished = iteration.finish();
    CHECK_FALSE(finished);
    CHECK(finished.steps[0]);
    CHECK(finished.steps[1].status == mp::step_status::skipped_infinity);
    CHECK(finished.event.applied == 1);
    CHECK(finished.event.skipped == 1);
    CHECK(static_cast<float>(good.weights[0]) == 0.5F);
    CHECK(static_cast<float>(bad.weights[0]) == 1.0F);
    CHECK(scaler.current_scale() == 32.0F);
}

TEST_CASE("a policy that refuses to go on throws, and scale, counters and gradients are fit to go on") {
    mp::loss_scaler scaler(mp::deepspeed_policy{.initial_scale = 1.0, .hysteresis = 1});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    model m;
    const auto before = scaler.state();
    {
        mp::training_iteration iteration(scaler, m.optimizer);
        m.backward(infinity);
        CHECK(holds(thrown<mp::scale_error>([&] { iteration.finish(); }), "refuses to go on at scale 1"));
    }
    CHECK(scaler.state() == before);
    CHECK(m.gradient[0] == 0.0F);
    mp::training_iteration iteration(scaler, m.optimizer);
    m.backward(iteration.scale(1.0F));
    CHECK(iteration.finish());
}

TEST_CASE("a batch is run again at the lower scale until its step is applied") {
    auto scaler = scaler_at(1024.0F);
    model m;
    int passes = 0;
    const auto backward = [&](auto& iteration) {
        ++passes;
        // Overflows at scales above 256, as a gradient of 255 would in half.
        m.backward(iteration.current_scale() > 256.0F ? infinity : iteration.scale(0.25F));
    };
    auto outcome = mp::train_with_retries(scaler, backward, 2, m.optimizer);
    CHECK(outcome.applied);
    CHECK(outcome.attempts == 3);
    CHECK(passes == 3);
    CHECK(scaler.current_scale() == 256.0F);
    CHECK(m.optimizer.step_count() == 1);
    outcome = mp::train_with_retries(scaler, [&](auto&) { m.backward(infinity); }, 1, m.optimizer);
    CHECK_FALSE(outcome.applied);
    CHECK(outcome.attempts == 2);
    CHECK(outcome.change.after == 64.0F);
    CHECK_THROWS_AS(mp::train_with_retries(scaler, backward, -1, m.optimizer), mp::argument_error);
}
