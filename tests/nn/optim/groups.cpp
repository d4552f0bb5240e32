// SPDX-License-Identifier: MIT
// Groups of parameters with options of their own under one optimizer and one norm, and options that change.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "larger_error.hpp"
#include "nn/scaling/thrown.hpp"

namespace {

std::vector<float> random_values(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
}

/// Three parameters of 5000, 3 and 700 values, and gradients that are the same in every model.
struct model {
    std::vector<float> w[3] = {random_values(5000, 1), random_values(3, 2), random_values(700, 3)};
    std::vector<float> dw[3] = {random_values(5000, 4), random_values(3, 5), random_values(700, 6)};

    [[nodiscard]] mp::parameter<float> parameter(std::size_t i, std::size_t group = 0) {
        return {"p" + std::to_string(i), w[i], dw[i], group};
    }
};

/// A step of every group must be that of an optimizer that has the group alone.
template <class Optimizer, class Options>
void check_groups(const Options& first, const Options& second) {
    model together;
    model apart;
    for (const int threads : {1, 3}) {
        Optimizer optimizer(mp::cpu{.threads = threads},
                            {together.parameter(0, 1), together.parameter(1, 0), together.parameter(2, 1)},
                            {first, second});
        Optimizer of_first({apart.parameter(1)}, first);
        Optimizer of_second({apart.parameter(0), apart.parameter(2)}, second);
        CHECK(optimizer.group_count() == 2);
        CHECK(optimizer.options(1) == second);
        for (int step = 0; step < 3; ++step) {
            optimizer.step();
            of_first.step();
            of_second.step();
        }
        for (int i = 0; i < 3; ++i) CHECK(together.w[i] == apart.w[i]);
    }
}

}  // namespace

TEST_CASE("every group steps as if it were alone") {
    check_groups<mp::adamw<float>>(
        mp::adamw_options{.learning_rate = 0.1, .weight_decay = 0.3},
        mp::adamw_options{.learning_rate = 0.02, .beta1 = 0.5, .weight_decay = 0.0});
    check_groups<mp::sgd<float>>(
        mp::sgd_options{.learning_rate = 0.1},
        mp::sgd_options{.learning_rate = 0.02, .momentum = 0.9, .weight_decay = 0.1});
    check_groups<mp::lion<float>>(mp::lion_options{.learning_rate = 0.1},
                                  mp::lion_options{.learning_rate = 0.02, .weight_decay = 0.1});
    check_groups<mp::lars<float>>(
        mp::lars_options{.learning_rate = 0.5, .weight_decay = 0.0, .layer_adaptation = false},
        mp::lars_options{.learning_rate = 2.0, .trust_coefficient = 0.02, .clip = true});
    check_groups<mp::lamb<float>>(mp::lamb_options{.learning_rate = 0.1, .weight_decay = 0.0},
                                  mp::lamb_options{.learning_rate = 0.02, .weight_decay = 0.1});
}

TEST_CASE("rates move together by a factor, or one by one") {
    model m;
    mp::sgd<float> optimizer({m.parameter(0), m.parameter(1, 1)},
                             {{.learning_rate = 0.5}, {.learning_rate = 0.25}});
    optimizer.set_learning_rate_factor(0.5);
    CHECK(optimizer.learning_rate() == 0.25);
    CHECK(optimizer.learning_rate(1) == 0.125);
    optimizer.set_learning_rate_factor(0.5);  // of the options' rates, not of the present ones
    CHECK(optimizer.learning_rate(1) == 0.125);
    optimizer.set_learning_rate(2.0, 1);
    CHECK(optimizer.learning_rate() == 0.25);
    CHECK(optimizer.learning_rate(1) == 2.0);
    optimizer.set_learning_rate(3.0);
    CHECK(optimizer.learning_rate() == 3.0);
    CHECK(optimizer.learning_rate(1) == 3.0);
    CHECK(optimizer.options(1).learning_rate == 0.25);
}

TEST_CASE("options that change hold from the next step on, and state stays") {
    model changed;
    model reference;
    mp::adamw<float> optimizer({changed.parameter(0)}, {.learning_rate = 0.1, .weight_decay = 0.0});
    optimizer.step();
    optimizer.set_options({.learning_rate = 0.2, .beta1 = 0.9, .weight_decay = 0.5});
    CHECK(optimizer.learning_rate() == 0.2);
    optimizer.step();
    // By hand, in double.
    double worst = 0.0;
    for (std::size_t i = 0; i < 5000; ++i) {
        double w = static_cast<double>(reference.w[0][i]);
        const double g = static_cast<double>(reference.dw[0][i]);
        double m = 0.1 * g;
        double v = 0.001 * g * g;
        w -= 0.1 * (m / 0.1) / (std::sqrt(v / 0.001) + 1e-8);
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        w -= 0.2 * 0.5 * w + 0.2 * (m / (1 - 0.81)) / (std::sqrt(v / (1 - 0.999 * 0.999)) + 1e-8);
        worst = tests::larger_error(worst, std::fabs(w - static_cast<double>(changed.w[0][i])));
    }
    CHECK(worst < 2e-6);
}

TEST_CASE("what is refused changes nothing and says why") {
    model m;
    using optimizer = mp::sgd<float>;
    const auto message = [](auto function) { return thrown<mp::argument_error>(function); };
    CHECK(message([&] { optimizer bad({m.parameter(0), m.parameter(1, 1)}); }) ==
          "mp::sgd: parameters[1] ('p1').group is 1; it must be less than the number of groups, which is 1");
    CHECK(holds(message([&] { optimizer bad({m.parameter(0)}, std::vector<mp::sgd_options>{}); }),
                "mp::sgd: groups.size() is 0"));
    CHECK(holds(message([&] {
                    optimizer bad({m.parameter(0)},
                                  {mp::sgd_options{}, mp::sgd_options{.learning_rate = -1.0}});
                }),
                "mp::sgd: learning_rate is -1"));
    CHECK(holds(
        message([&] { optimizer bad({m.parameter(0)}, {mp::sgd_options{}, mp::sgd_options{.seed = 1}}); }),
        "mp::sgd: seed is 1; it must be that of all groups, which is 0"));
    optimizer plain({m.parameter(0)}, {.learning_rate = 0.5});
    CHECK(holds(message([&] { plain.set_options({.momentum = 0.9}); }),
                "mp::sgd: momentum is 0.9; it must be 0, for the optimizer was made without memory for it"));
    CHECK(holds(message([&] { plain.set_options({.weight_decay = -1.0}); }), "weight_decay is -1"));
    CHECK(holds(message([&] { plain.set_options({}, 1); }),
                "group is 1; it must be less than the number of groups"));
    CHECK(holds(message([&] { static_cast<void>(plain.options(1)); }), "group is 1"));
    CHECK(holds(message([&] { static_cast<void>(plain.learning_rate(1)); }), "group is 1"));
    CHECK(holds(message([&] { plain.set_learning_rate(0.1, 2); }), "group is 2"));
    const double infinity = std::numeric_limits<double>::infinity();
    CHECK(holds(message([&] { plain.set_learning_rate_factor(infinity); }), "factor is inf"));
    CHECK(holds(message([&] { plain.set_learning_rate_factor(-0.5); }), "factor is -0.5"));
    CHECK(plain.learning_rate() == 0.5);
    CHECK(plain.options() == mp::sgd_options{.learning_rate = 0.5});
}

TEST_CASE("one norm over the optimizers of an iteration, whatever their formats") {
    std::vector<mp::half> w(300, mp::half(1.0F));
    std::vector<mp::half> dw(300, mp::half(3.0F));
    std::vector<float> gamma(400, 1.0F);
    std::vector<float> dgamma(400, 4.0F);
    mp::sgd<mp::half> weights({{"w", w, dw}}, {.learning_rate = 1.0});
    mp::sgd<float> norms({{"gamma", gamma, dgamma}}, {.learning_rate = 1.0});
    mp::loss_scaler scaler(mp::pytorch_policy{.initial_scale = 1.0F});
    const double whole = std::sqrt(300.0 * 9.0 + 400.0 * 16.0);
    {
        mp::training_iteration iteration(scaler, weights, norms);
        CHECK(iteration.clip_global_gradient_norm(whole / 8) == doctest::Approx(whole).epsilon(1e-12));
        CHECK(weights.unscaled_gradients()[0][7] == doctest::Approx(3.0 / 8).epsilon(1e-6));
        CHECK(norms.unscaled_gradients()[0][7] == doctest::Approx(4.0 / 8).epsilon(1e-6));
        CHECK(iteration.clip_global_gradient_norm(whole) == doctest::Approx(whole / 8).epsilon(1e-6));
        CHECK(norms.unscaled_gradients()[0][7] == doctest::Approx(4.0 / 8).epsilon(1e-6));
        CHECK(holds(thrown<mp::argument_error>([&] { iteration.clip_global_gradient_norm(0.0); }),
                    "clip_global_gradient_norm: max_norm is 0"));
        CHECK(iteration.finish());
    }
    // A norm that is not finite clips nothing, and the step is skipped.
    dw.assign(300, mp::half(3.0F));
    dgamma.assign(400, 4.0F);
    dgamma[5] = std::numeric_limits<float>::infinity();
    mp::training_iteration iteration(scaler, weights, norms);
    CHECK(std::isinf(iteration.clip_global_gradient_norm(1.0)));
    CHECK(weights.unscaled_gradients()[0][7] == 3.0F);
    CHECK_FALSE(iteration.finish());
}

TEST_CASE("gradients are clipped by value, and NaN stays") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> w(7, 0.0F);
    std::vector<float> dw = {1.0F, -1.0F, 0.25F, -0.0F, nan, infinity, -infinity};
    mp::sgd<float> optimizer({{"w", w, dw}}, {.learning_rate = 1.0});
    CHECK_THROWS_AS(optimizer.clip_gradient_value(0.5), mp::state_error);
    optimizer.unscale_gradients(1.0F);
    CHECK_THROWS_AS(optimizer.clip_gradient_value(0.0), mp::argument_error);
    CHECK_THROWS_AS(optimizer.clip_gradient_value(1e-60), mp::argument_error);
    optimizer.clip_gradient_value(0.5);
    const auto clipped = optimizer.unscaled_gradients()[0];
    CHECK(clipped[0] == 0.5F);
    CHECK(clipped[1] == -0.5F);
    CHECK(clipped[2] == 0.25F);
    CHECK(std::signbit(clipped[3]));
    CHECK(std::isnan(clipped[4]));
    CHECK(clipped[5] == 0.5F);
    CHECK(clipped[6] == -0.5F);
}
