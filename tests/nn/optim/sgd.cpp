// SPDX-License-Identifier: MIT
// SGD against the definition in double, and what the types of weight and master make of small updates.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/optim.hpp>

#include <cmath>
#include <cstddef>
#include <random>
#include <type_traits>
#include <vector>

#include "larger_error.hpp"
#include "nn/scaling/thrown.hpp"

namespace {

/// torch.optim.SGD for one weight, as its documentation writes it down.
struct reference {
    mp::sgd_options options;
    double weight;
    double buffer = 0.0;
    bool first = true;

    void step(double gradient) {
        gradient += options.weight_decay * weight;
        if (options.momentum != 0.0) {
            buffer = first ? gradient : options.momentum * buffer + (1.0 - options.dampening) * gradient;
            first = false;
            gradient = options.nesterov ? gradient + options.momentum * buffer : buffer;
        }
        weight -= options.learning_rate * gradient;
    }
};

std::vector<float> random_values(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
}

/// Trains an array with fresh gradients and compares every weight with the reference after every step.
void compare(const mp::sgd_options& options) {
    std::vector<float> weights = random_values(1037, 1);
    std::vector<float> gradient(weights.size());
    std::vector<reference> expected;
    for (const float weight : weights) expected.push_back({options, static_cast<double>(weight)});
    mp::sgd<float> optimizer({{"weight", weights, gradient}}, options);
    for (unsigned step = 0; step < 30; ++step) {
        const std::vector<float> fresh = random_values(weights.size(), 100 + step);
        gradient = fresh;
        optimizer.step();
        double worst = 0.0;
        for (std::size_t i = 0; i < weights.size(); ++i) {
            expected[i].step(static_cast<double>(fresh[i]));
            worst =
                tests::larger_error(worst, std::fabs(static_cast<double>(weights[i]) - expected[i].weight));
        }
        // Each step commits a few roundings of 2^-24 relative to values below 8.
        REQUIRE(worst < 8 * 6e-8 * (step + 4));
    }
    CHECK(optimizer.step_count() == 30);
}

}  // namespace

TEST_CASE("SGD follows its definition in double") {
    SUBCASE("plain") {
        compare({.learning_rate = 0.1});
    }
    SUBCASE("weight decay") {
        compare({.learning_rate = 0.1, .weight_decay = 0.05});
    }
    SUBCASE("momentum") {
        compare({.learning_rate = 0.05, .momentum = 0.9});
    }
    SUBCASE("momentum and dampening") {
        compare({.learning_rate = 0.1, .momentum = 0.8, .dampening = 0.3});
    }
    SUBCASE("momentum and weight decay") {
        compare({.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 0.01});
    }
    SUBCASE("Nesterov") {
        compare({.learning_rate = 0.05, .momentum = 0.9, .nesterov = true});
    }
    SUBCASE("all of it") {
        compare({.learning_rate = 0.05, .momentum = 0.7, .weight_decay = 0.02, .nesterov = true});
    }
}

TEST_CASE("the first gradient enters the momentum undampened") {
    std::vector<float> weights = {0.0F};
    std::vector<float> gradient = {1.0F};
    mp::sgd<float> optimizer({{"", weights, gradient}},
                             {.learning_rate = 1.0, .momentum = 0.5, .dampening = 0.75});
    optimizer.step();
    CHECK(weights[0] == -1.0F);
    CHECK(optimizer.momentum(0)[0] == 1.0F);
    optimizer.step();
    CHECK(optimizer.momentum(0)[0] == 0.75F);
    CHECK(weights[0] == -1.75F);
}

TEST_CASE("the defaults are those of torch.optim.SGD") {
    CHECK(mp::sgd_options{} == mp::sgd_options{1e-3, 0.0, 0.0, 0.0, false});
}

TEST_CASE("an update too small for half is lost without a master copy and kept with one") {
    // The spacing of half at 1 is 2^-10 (2^-11 below): an update of 2^-13 rounds back to 1 every time.
    std::vector<mp::half> alone = {mp::half(1.0F)};
    std::vector<mp::half> with_master = {mp::half(1.0F)};
    std::vector<mp::half> gradient_alone = {mp::half(1.0F)};
    std::vector<mp::half> gradient = {mp::half(1.0F)};
    mp::sgd<mp::half, mp::half, mp::half> half_alone({{"", alone, gradient_alone}},
                                                     {.learning_rate = 0x1p-13});
    mp::sgd<mp::half> mixed({{"", with_master, gradient}}, {.learning_rate = 0x1p-13});
    for (int step = 0; step < 16; ++step) {
        half_alone.step();
        mixed.step();
    }
    CHECK(static_cast<float>(alone[0]) == 1.0F);
    CHECK(mixed.master_weights(0)[0] == 1.0F - 0x1p-9F);
    CHECK(static_cast<float>(with_master[0]) == 1.0F - 0x1p-9F);
    CHECK(half_alone.master_weights(0).data() == alone.data());
    static_assert(mp::sgd<mp::half>::has_master_copy &&
                  !mp::sgd<mp::half, mp::half, mp::half>::has_master_copy);
    static_assert(std::is_same_v<mp::sgd<mp::half>::master_type, float>);
}

TEST_CASE("weights are their masters rounded once to nearest even, whatever the step") {
    std::vector<mp::half> weights(1000);
    std::vector<mp::half> gradient(1000);
    const std::vector<float> start = random_values(1000, 5);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = mp::half(start[i]);
    mp::sgd<mp::half> optimizer({{"", weights, gradient}}, {.learning_rate = 0.1, .momentum = 0.9});
    for (std::size_t i = 0; i < weights.size(); ++i) {
        REQUIRE(optimizer.master_weights(0)[i] == static_cast<float>(weights[i]));
    }
    for (unsigned step = 0; step < 5; ++step) {
        const std::vector<float> fresh = random_values(1000, step);
        for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = mp::half(fresh[i]);
        optimizer.step();
        for (std::size_t i = 0; i < weights.size(); ++i) {
            REQUIRE(weights[i].bits() == mp::half(optimizer.master_weights(0)[i]).bits());
        }
    }
    // Weights that were changed from outside are taken over on request.
    weights[3] = mp::half(42.0F);
    optimizer.reload_master_weights();
    CHECK(optimizer.master_weights(0)[3] == 42.0F);
}

TEST_CASE("half alone keeps weight and momentum in half, each rounded once from float arithmetic") {
    std::vector<mp::half> weights = {mp::half(0.7F), mp::half(-3.0F)};
    std::vector<mp::half> gradient = {mp::half(0.3F), mp::half(1.7F)};
    mp::sgd<mp::half, mp::half, mp::half> optimizer({{"", weights, gradient}},
                                                    {.learning_rate = 0.1, .momentum = 0.9});
    std::vector<mp::half> expected = weights;
    std::vector<mp::half> momentum(2);
    for (int step = 0; step < 20; ++step) {
        for (std::size_t i = 0; i < 2; ++i) {
            const double moved = 0.9 * static_cast<double>(static_cast<float>(momentum[i])) +
                                 static_cast<double>(static_cast<float>(gradient[i]));
            const double moved_weight = static_cast<double>(static_cast<float>(expected[i])) - 0.1 * moved;
            momentum[i] = mp::half(moved);
            expected[i] = mp::half(moved_weight);
        }
        optimizer.step();
        for (std::size_t i = 0; i < 2; ++i) {
            REQUIRE(optimizer.momentum(0)[i].bits() == momentum[i].bits());
            REQUIRE(weights[i].bits() == expected[i].bits());
        }
    }
}

TEST_CASE("the result does not depend on the number of threads") {
    const std::vector<float> start = random_values(300007, 3);
    const std::vector<float> fresh = random_values(300007, 4);
    std::vector<std::vector<mp::bfloat16>> results;
    for (const int threads : {1, 2, 5}) {
        std::vector<mp::bfloat16> weights(start.size());
        std::vector<mp::bfloat16> gradient(start.size());
        for (std::size_t i = 0; i < start.size(); ++i) {
            weights[i] = mp::bfloat16(start[i]);
            gradient[i] = mp::bfloat16(fresh[i]);
        }
        // Three parameters, so that chunks begin inside one and end inside another.
        const std::span<mp::bfloat16> w(weights);
        const std::span<mp::bfloat16> g(gradient);
        mp::sgd<mp::bfloat16> optimizer(mp::cpu{threads},
                                        {{"a", w.subspan(0, 11), g.subspan(0, 11)},
                                         {"b", w.subspan(11, 200000), g.subspan(11, 200000)},
                                         {"c", w.subspan(200011), g.subspan(200011)}},
                                        {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01});
        for (int step = 0; step < 3; ++step) optimizer.step(0.5F);
        results.push_back(weights);
    }
    for (std::size_t i = 0; i < start.size(); ++i) {
        REQUIRE(results[0][i].bits() == results[1][i].bits());
        REQUIRE(results[0][i].bits() == results[2][i].bits());
        // A parameter that every thread left out would agree too.
        const bool moved = results[0][i].bits() != mp::bfloat16(start[i]).bits();
        if (std::fabs(fresh[i]) > 0.5F && std::fabs(start[i]) < 2.0F) REQUIRE(moved);
    }
}

TEST_CASE("a fused step does exactly what unscaling and stepping do") {
    const std::vector<float> start = random_values(1500, 8);
    std::vector<mp::half> weights[2] = {std::vector<mp::half>(1500), std::vector<mp::half>(1500)};
    std::vector<mp::half> gradient[2] = {std::vector<mp::half>(1500), std::vector<mp::half>(1500)};
    for (std::size_t i = 0; i < start.size(); ++i) weights[0][i] = weights[1][i] = mp::half(start[i]);
    mp::sgd<mp::half> fused({{"", weights[0], gradient[0]}}, {.learning_rate = 0.01, .momentum = 0.9});
    mp::sgd<mp::half> explicitly({{"", weights[1], gradient[1]}}, {.learning_rate = 0.01, .momentum = 0.9});
    for (unsigned step = 0; step < 4; ++step) {
        const std::vector<float> fresh = random_values(1500, step);
        for (std::size_t i = 0; i < fresh.size(); ++i) gradient[0][i] = gradient[1][i] = mp::half(fresh[i]);
        fused.step(1.0F / 3.0F);
        explicitly.unscale_gradients(1.0F / 3.0F);
        explicitly.step();
        for (std::size_t i = 0; i < start.size(); ++i) {
            REQUIRE(fused.master_weights(0)[i] == explicitly.master_weights(0)[i]);
            REQUIRE(fused.momentum(0)[i] == explicitly.momentum(0)[i]);
            REQUIRE(weights[0][i].bits() == weights[1][i].bits());
        }
    }
}

TEST_CASE("a parameter without a gradient stays as it is, and its momentum starts when it gets trained") {
    std::vector<float> frozen = {5.0F};
    std::vector<float> trained = {5.0F};
    std::vector<float> gradient = {1.0F};
    mp::sgd<float> optimizer({{"frozen", frozen, {}}, {"trained", trained, gradient}},
                             {.learning_rate = 1.0, .weight_decay = 0.1});
    optimizer.step();
    CHECK(frozen[0] == 5.0F);
    CHECK(trained[0] == doctest::Approx(3.5));
    CHECK(optimizer.momentum(0).empty());
}

TEST_CASE("the learning rate can follow a schedule") {
    std::vector<float> weights = {1.0F};
    std::vector<float> gradient = {1.0F};
    mp::sgd<float> optimizer({{"", weights, gradient}}, {.learning_rate = 0.5});
    optimizer.set_learning_rate(0.25);
    optimizer.step();
    CHECK(weights[0] == 0.75F);
    CHECK(optimizer.learning_rate() == 0.25);
    for (const double bad : {-0.1, std::nan(""), HUGE_VAL}) {
        CHECK(holds(thrown<mp::argument_error>([&] { optimizer.set_learning_rate(bad); }),
                    "mp::optimizer_base::set_learning_rate: rate is "));
    }
    CHECK(optimizer.learning_rate() == 0.25);
}

TEST_CASE("memory is accounted for to the byte") {
    std::vector<mp::half> weights(100);
    std::vector<mp::half> gradient(100);
    mp::sgd<mp::half> mixed({{"", weights, gradient}}, {.momentum = 0.9});
    CHECK(mixed.bytes_per_parameter() == 2 + 2 + 4 + 4);
    mixed.unscale_gradients(1.0F);
    mixed.clip_gradient_norm(1.0);
    CHECK(mixed.bytes_per_parameter() == 2 + 2 + 4 + 4);
    static_cast<void>(mixed.unscaled_gradients());
    CHECK(mixed.bytes_per_parameter() == 2 + 2 + 4 + 4 + 4);
    mp::sgd<mp::half, mp::half, mp::half> alone({{"", weights, gradient}}, {.momentum = 0.9});
    CHECK(alone.bytes_per_parameter() == 2 + 2 + 2);
    std::vector<float> single(10);
    std::vector<float> single_gradient(10);
    mp::sgd<float> full({{"", single, single_gradient}});
    CHECK(full.bytes_per_parameter() == 4 + 4);
}

TEST_CASE("options out of range are refused by name and value") {
    std::vector<float> weights(2);
    std::vector<float> gradient(2);
    const auto refusal = [&](const mp::sgd_options& options) {
        return thrown<mp::argument_error>(
            [&] { mp::sgd<float> optimizer({{"", weights, gradient}}, options); });
    };
    CHECK(refusal({.learning_rate = -1.0}) ==
          "mp::sgd: learning_rate is -1; it must be finite and not negative");
    CHECK(holds(refusal({.learning_rate = std::nan("")}), "learning_rate is nan;"));
    CHECK(holds(refusal({.learning_rate = HUGE_VAL}), "learning_rate is inf;"));
    CHECK(refusal({.momentum = 1.0}) == "mp::sgd: momentum is 1; it must be at least 0 and less than 1");
    CHECK(holds(refusal({.momentum = -0.5}), "momentum is -0.5;"));
    CHECK(holds(refusal({.momentum = std::nan("")}), "momentum is nan;"));
    CHECK(refusal({.momentum = 0.5, .dampening = 1.5}) ==
          "mp::sgd: dampening is 1.5; it must be at least 0 and at most 1");
    CHECK(holds(refusal({.weight_decay = -1.0}), "weight_decay is -1;"));
    CHECK(refusal({.nesterov = true}) == "mp::sgd: momentum is 0; it must not be 0 with nesterov");
    CHECK(refusal({.momentum = 0.5, .dampening = 0.5, .nesterov = true}) ==
          "mp::sgd: dampening is 0.5; it must be 0 with nesterov");
    CHECK(holds(
        thrown<mp::argument_error>([&] { mp::sgd<float> optimizer(mp::cpu{0}, {{"", weights, gradient}}); }),
        "mp::sgd: exec.threads is 0"));
    mp::sgd<float> optimizer({{"", weights, gradient}});
    CHECK(holds(thrown<mp::argument_error>([&] { optimizer.step(-1.0F); }),
                "mp::sgd::step: inverse_scale is -1;"));
    CHECK(thrown<mp::argument_error>([&] { static_cast<void>(optimizer.momentum(1)); }) ==
          "mp::sgd::momentum: index is 1; it must be less than the number of parameters, which is 1");
}
