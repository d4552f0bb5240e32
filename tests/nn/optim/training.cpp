// SPDX-License-Identifier: MIT
// Scaler and optimizer together on a problem whose gradients are too small for half.
#include <doctest/doctest.h>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

namespace {

struct outcome {
    double distance = 0.0;
    int skipped = 0;
    float scale = 1.0F;
};

/// Moves 64 half weights towards targets by the gradient of loss_weight * |w - target|^2 / 2, computed in
/// half as a backward pass would, for 300 iterations.
template <class Scaler>
outcome train(Scaler scaler, float loss_weight) {
    std::vector<mp::half> weights(64);
    std::vector<mp::half> gradient(64);
    mp::sgd<mp::half> optimizer({{"weight", weights, gradient}},
                                {.learning_rate = 0.25 / double(loss_weight), .momentum = 0.5});
    const auto target = [](std::size_t i) { return 0.03F * static_cast<float>(i) - 1.0F; };
    outcome result;
    for (int iteration = 0; iteration < 300; ++iteration) {
        const float seed = scaler.scale(loss_weight);
        for (std::size_t i = 0; i < weights.size(); ++i) {
            gradient[i] = mp::half((static_cast<float>(weights[i]) - target(i)) * seed);
        }
        if (!scaler.step(optimizer)) ++result.skipped;
        scaler.update();
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
        result.distance =
            std::max(result.distance, std::fabs(double(optimizer.master_weights(0)[i]) - double(target(i))));
    }
    result.scale = scaler.current_scale();
    return result;
}

}  // namespace

TEST_CASE("gradients that flush to zero in half do not train, and train under loss scaling") {
    const float loss_weight = 0x1p-26F;
    const outcome unscaled = train(mp::dynamic_loss_scaler({}, false), loss_weight);
    CHECK(unscaled.distance > 0.9);
    const outcome constant = train(mp::static_loss_scaler({.initial_scale = 0x1p26F}), loss_weight);
    CHECK(constant.distance < 0.002);
    CHECK(constant.skipped == 0);
    // Starts far too large, so the first steps are skipped until the scale fits; then it grows until it
    // overflows.
    const outcome dynamic =
        train(mp::dynamic_loss_scaler({.initial_scale = 0x1p60F, .growth_interval = 20}), loss_weight);
    CHECK(dynamic.distance < 0.002);
    CHECK(dynamic.skipped >= 18);
    CHECK(dynamic.scale >= 0x1p38F);
}

TEST_CASE("a scale that is far too large costs one skipped step for each halving and no more") {
    // With loss weight 1 the largest gradient is 1, so halves hold it up to a scale of 32768 and 2^16
    // overflows.
    const outcome result = train(mp::dynamic_loss_scaler({.initial_scale = 0x1p20F}), 1.0F);
    CHECK(result.skipped == 5);
    CHECK(result.scale == 0x1p15F);
}
