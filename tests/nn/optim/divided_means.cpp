// SPDX-License-Identifier: MIT
// Means of Adam in a reduced format: under a gradient that does not change, a weight goes the learning rate in every step,
// whatever means are kept in. Means that are not divided by their bias stop half way in bfloat16, and it goes 1.44 times
// as far.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/optim.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using bf16 = mp::bfloat16;

/// How far the weights went on average, in units of the learning rate times the steps.
template <class Optimizer, class Options>
double distance(Options options, float gradient, int steps) {
    using weight = typename Optimizer::weight_type;
    options.learning_rate = 1e-3;
    options.weight_decay = 0.0;
    std::vector<weight> weights(16);
    std::vector<typename Optimizer::gradient_type> gradients(16);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = weight(4.0F);
    for (auto& it : gradients) it = typename Optimizer::gradient_type(gradient);
    Optimizer optimizer({{"w", weights, gradients}}, options);
    for (int step = 0; step < steps; ++step) optimizer.step();
    double moved = 0.0;
    for (const weight w : weights) moved += 4.0 - static_cast<double>(static_cast<float>(w));
    return moved / 16.0 / (1e-3 * steps);
}

mp::adamw_options with(mp::weight_update how) {
    mp::adamw_options options;
    options.low_precision_update = how;
    return options;
}

}  // namespace

TEST_CASE("under a constant gradient a weight goes the learning rate in every step") {
    CHECK(distance<mp::adamw<float>>(mp::adamw_options{}, 0.3F, 3000) == doctest::Approx(1.0).epsilon(1e-3));
    for (const float gradient : {0.3F, 1.0F, 7.0F, 1e-3F}) {
        CAPTURE(gradient);
        using kahan = mp::adamw<bf16, bf16, bf16, bf16>;
        using with_masters = mp::adamw<bf16, bf16, float, bf16>;
        CHECK(distance<kahan>(with(mp::weight_update::kahan), gradient, 3000) ==
              doctest::Approx(1.0).epsilon(0.02));
        CHECK(distance<with_masters>(mp::adamw_options{}, gradient, 3000) ==
              doctest::Approx(1.0).epsilon(0.02));
        CHECK(distance<kahan>(with(mp::weight_update::stochastic), gradient, 3000) ==
              doctest::Approx(1.0).epsilon(0.05));
        CHECK(distance<mp::adamw<bf16, bf16, bf16, bf16>>(with(mp::weight_update::split), gradient, 3000) ==
              doctest::Approx(1.0).epsilon(0.02));
        // In half, squares below 2^-24 are zero however they are kept.
        if (gradient > 0.01F) {
            CHECK(distance<mp::adamw<float, float, float, mp::half>>(mp::adamw_options{}, gradient, 3000) ==
                  doctest::Approx(1.0).epsilon(0.02));
        }
        // LAMB without decay does not adapt; without averaging its mean is ten gradients.
        using lamb = mp::lamb<bf16, bf16, bf16, bf16>;
        mp::lamb_options options;
        options.low_precision_update = mp::weight_update::kahan;
        CHECK(distance<lamb>(options, gradient, 3000) == doctest::Approx(1.0).epsilon(0.02));
        options.grad_averaging = false;
        CHECK(distance<lamb>(options, gradient, 300) == doctest::Approx(10.0).epsilon(0.02));
    }
}

TEST_CASE("a divided mean is the mean of all gradients, weighted by their age") {
    std::vector<float> weights(1);
    std::vector<float> gradients(1);
    const mp::adamw_options options{.beta1 = 0.8, .beta2 = 0.95};
    mp::adamw<float, float, float, mp::half> optimizer({{"w", weights, gradients}}, options);
    long double first = 0.0L;
    long double second = 0.0L;
    long double weights1 = 0.0L;
    long double weights2 = 0.0L;
    for (int step = 1; step <= 40; ++step) {
        gradients[0] = 1.0F + 0.5F * static_cast<float>((step * 7) % 5);
        optimizer.step();
        const auto g = static_cast<long double>(gradients[0]);
        first = 0.8L * first + g;
        second = 0.95L * second + g * g;
        weights1 = 0.8L * weights1 + 1.0L;
        weights2 = 0.95L * weights2 + 1.0L;
        // Half a spacing of each step, which the means forget as they go.
        CHECK(static_cast<double>(static_cast<float>(optimizer.gradient_mean(0)[0])) ==
              doctest::Approx(static_cast<double>(first / weights1)).epsilon(3e-3));
        CHECK(static_cast<double>(static_cast<float>(optimizer.gradient_mean_square(0)[0])) ==
              doctest::Approx(static_cast<double>(second / weights2)).epsilon(1e-2));
    }
}
