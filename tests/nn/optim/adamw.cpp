// SPDX-License-Identifier: MIT
// AdamW against its definition, in double and in 50 decimal digits.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/optim.hpp>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "larger_error.hpp"
#include "nn/scaling/thrown.hpp"

namespace {

/// torch.optim.AdamW for one weight, as its documentation writes it down, in any arithmetic.
template <class Real>
struct reference {
    mp::adamw_options options;
    Real weight;
    Real mean = 0;
    Real square = 0;
    int steps = 0;

    void step(Real gradient) {
        using std::pow;
        using std::sqrt;
        ++steps;
        const Real rate = options.learning_rate;
        const Real beta1 = options.beta1;
        const Real beta2 = options.beta2;
        weight -= rate * Real(options.weight_decay) * weight;
        mean = beta1 * mean + (1 - beta1) * gradient;
        square = beta2 * square + (1 - beta2) * gradient * gradient;
        const Real corrected_mean = mean / (1 - pow(beta1, steps));
        const Real corrected_square = square / (1 - pow(beta2, steps));
        weight -= rate * corrected_mean / (sqrt(corrected_square) + Real(options.epsilon));
    }
};

std::vector<float> random_values(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
}

void compare(const mp::adamw_options& options) {
    std::vector<float> weights = random_values(1037, 1);
    std::vector<float> gradient(weights.size());
    std::vector<reference<double>> expected;
    for (const float weight : weights) expected.push_back({options, static_cast<double>(weight)});
    mp::adamw<float> optimizer({{"weight", weights, gradient}}, options);
    for (unsigned step = 0; step < 40; ++step) {
        const std::vector<float> fresh = random_values(weights.size(), 100 + step);
        gradient = fresh;
        optimizer.step();
        double worst = 0.0;
        for (std::size_t i = 0; i < weights.size(); ++i) {
            expected[i].step(static_cast<double>(fresh[i]));
            worst =
                tests::larger_error(worst, std::fabs(static_cast<double>(weights[i]) - expected[i].weight));
        }
        REQUIRE(worst < 4 * 6e-8 * (step + 4));
    }
}

}  // namespace

TEST_CASE("AdamW follows its definition in double") {
    SUBCASE("defaults") {
        compare({});
    }
    SUBCASE("large rate") {
        compare({.learning_rate = 0.05});
    }
    SUBCASE("no decay") {
        compare({.learning_rate = 0.01, .weight_decay = 0.0});
    }
    SUBCASE("other betas and epsilon") {
        compare({.learning_rate = 0.01, .beta1 = 0.5, .beta2 = 0.9, .epsilon = 0.1, .weight_decay = 0.3});
    }
    SUBCASE("no memory") {
        compare({.learning_rate = 0.01, .beta1 = 0.0, .beta2 = 0.0});
    }
}

TEST_CASE("AdamW agrees with 50-digit arithmetic over a thousand steps") {
    using real = boost::multiprecision::cpp_bin_float_50;
    std::vector<float> weights = {1.5F};
    std::vector<float> gradient = {0.0F};
    const mp::adamw_options options{.learning_rate = 1e-3};
    mp::adamw<float> optimizer({{"weight", weights, gradient}}, options);
    reference<real> expected{options, real(weights[0])};
    std::mt19937 random(11);
    std::uniform_real_distribution<float> uniform(-1.0F, 2.0F);
    for (int step = 0; step < 1000; ++step) {
        gradient[0] = uniform(random);
        expected.step(real(gradient[0]));
        optimizer.step();
    }
    // A thousand roundings of weights around 1 walk some sqrt(1000) times 2^-24, far less than the way gone.
    const double error = std::fabs(static_cast<double>(real(weights[0]) - expected.weight));
    CHECK(error < 1e-5);
    CHECK(std::fabs(expected.weight.convert_to<double>() - 1.5) > 0.3);
    const double mean_error =
        std::fabs(static_cast<double>(real(optimizer.gradient_mean(0)[0]) - expected.mean));
    CHECK(mean_error < 1e-6);
    const double square_error =
        std::fabs(static_cast<double>(real(optimizer.gradient_mean_square(0)[0]) / expected.square - 1));
    CHECK(square_error < 1e-5);
}

TEST_CASE("the defaults are those of torch.optim.AdamW") {
    CHECK(mp::adamw_options{} == mp::adamw_options{1e-3, 0.9, 0.999, 1e-8, 1e-2});
}

TEST_CASE(
    "the first step of size learning rate goes against the sign of the gradient, however small that is") {
    for (const float size : {1e3F, 1.0F, 1e-3F}) {
        std::vector<float> weights = {0.0F, 0.0F};
        std::vector<float> gradient = {size, -size};
        mp::adamw<float> optimizer({{"", weights, gradient}}, {.learning_rate = 0.125, .weight_decay = 0.0});
        optimizer.step();
        CHECK(weights[0] == doctest::Approx(-0.125).epsilon(1e-4));
        CHECK(weights[1] == -weights[0]);
    }
}

TEST_CASE("bfloat16 weights are their float masters rounded once, on any number of threads") {
    const std::vector<float> start = random_values(100003, 3);
    std::vector<std::vector<mp::bfloat16>> results;
    for (const int threads : {1, 3}) {
        std::vector<mp::bfloat16> weights(start.size());
        std::vector<mp::bfloat16> gradient(start.size());
        for (std::size_t i = 0; i < start.size(); ++i) weights[i] = mp::bfloat16(start[i]);
        mp::adamw<mp::bfloat16> optimizer(mp::cpu{threads}, {{"", weights, gradient}},
                                          {.learning_rate = 0.01});
        for (unsigned step = 0; step < 3; ++step) {
            const std::vector<float> fresh = random_values(start.size(), 40 + step);
            for (std::size_t i = 0; i < start.size(); ++i) gradient[i] = mp::bfloat16(fresh[i]);
            optimizer.step(0x1p-3F);
        }
        for (std::size_t i = 0; i < start.size(); ++i) {
            REQUIRE(weights[i].bits() == mp::bfloat16(optimizer.master_weights(0)[i]).bits());
        }
        CHECK(optimizer.bytes_per_parameter() == 2 + 2 + 4 + 4 + 4);
        results.push_back(weights);
    }
    for (std::size_t i = 0; i < start.size(); ++i) REQUIRE(results[0][i].bits() == results[1][i].bits());
}

TEST_CASE("state in a reduced format is rounded once from float arithmetic") {
    std::vector<mp::bfloat16> weights = {mp::bfloat16(1.0F)};
    std::vector<mp::bfloat16> gradient = {mp::bfloat16(0.3F)};
    mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16> optimizer({{"", weights, gradient}},
                                                                  {.learning_rate = 0.5});
    optimizer.step();
    const float g = static_cast<float>(gradient[0]);
    // Divided by their bias, means are the first gradient and its square.
    CHECK(optimizer.gradient_mean(0)[0].bits() == gradient[0].bits());
    CHECK(optimizer.gradient_mean_square(0)[0].bits() == mp::bfloat16(g * g).bits());
    CHECK(optimizer.bytes_per_parameter() == 8);
}

TEST_CASE("bias correction counts the updates of each parameter") {
    // The second array has no gradient, so only the first counts.
    std::vector<float> weights = {0.0F};
    std::vector<float> frozen = {3.0F};
    std::vector<float> gradient = {1.0F};
    mp::adamw<float> optimizer({{"a", weights, gradient}, {"b", frozen, {}}}, {.learning_rate = 0.1});
    optimizer.step();
    optimizer.step();
    CHECK(frozen[0] == 3.0F);
    CHECK(optimizer.step_count() == 2);
    CHECK(optimizer.gradient_mean(1)[0] == 0.0F);
    CHECK(weights[0] == doctest::Approx(-0.1 * (1 - 1e-3) - 0.1).epsilon(1e-5));
}

TEST_CASE("options out of range are refused by name and value") {
    std::vector<float> weights(2);
    std::vector<float> gradient(2);
    const auto refusal = [&](const mp::adamw_options& options) {
        return thrown<mp::argument_error>(
            [&] { mp::adamw<float> optimizer({{"", weights, gradient}}, options); });
    };
    CHECK(refusal({.learning_rate = -1.0}) ==
          "mp::adamw: learning_rate is -1; it must be finite and not negative");
    CHECK(refusal({.beta1 = 1.0}) == "mp::adamw: beta1 is 1; it must be at least 0 and less than 1");
    CHECK(holds(refusal({.beta2 = -0.1}), "beta2 is -0.1;"));
    CHECK(holds(refusal({.beta2 = std::nan("")}), "beta2 is nan;"));
    CHECK(holds(refusal({.epsilon = -1e-8}), "epsilon is -1e-08;"));
    CHECK(holds(refusal({.weight_decay = HUGE_VAL}), "weight_decay is inf;"));
    mp::adamw<float> optimizer({{"", weights, gradient}});
    CHECK(holds(thrown<mp::argument_error>([&] { optimizer.step(-1.0F); }),
                "mp::adamw::step: inverse_scale is -1;"));
    CHECK(holds(thrown<mp::argument_error>([&] { static_cast<void>(optimizer.gradient_mean(9)); }),
                "index is 9;"));
}
