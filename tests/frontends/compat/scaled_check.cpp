// SPDX-License-Identifier: MIT
// Which gradients a scaler looks at. The weights and scales of PyTorch are those of torch 2.15.0: SGD with a rate of 0.5,
// torch.amp.GradScaler("cpu", init_scale=...), with and without unscale_ before step.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/frontends/compat/pytorch/scaler.hpp>
#include <mp/optim.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

struct outcome {
    float first;
    float second;
    float scale;
};

template <class Policy, class Gradient = float>
outcome run(float scale, float gradient, bool unscales_first) {
    std::vector<float> weights{1.0F, 1.0F};
    std::vector<Gradient> gradients{Gradient(gradient), Gradient(1.0F)};
    mp::sgd<float, Gradient> optimizer({{"w", weights, gradients}}, {.learning_rate = 0.5});
    Policy policy;
    policy.initial_scale = scale;
    mp::loss_scaler scaler(policy);
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    if (unscales_first) (void)scaler.unscale(optimizer);
    (void)scaler.step(optimizer);
    scaler.update();
    return {weights[0], weights[1], scaler.current_scale()};
}

bool same(outcome a, outcome b) {
    return a.first == b.first && a.second == b.second && a.scale == b.scale;
}

}  // namespace

TEST_CASE("pytorch_scaled_check_policy steps and skips as GradScaler does, at scales below 1 too") {
    using policy = mp::pytorch_scaled_check_policy;
    for (const bool first : {false, true}) {
        CAPTURE(first);
        CHECK(same(run<policy>(0.25F, 3e38F, first), {-infinity, -1.0F, 0.25F}));
        CHECK(same(run<policy>(0.25F, infinity, first), {1.0F, 1.0F, 0.125F}));
        CHECK(same(run<policy>(0.25F, not_a_number, first), {1.0F, 1.0F, 0.125F}));
        CHECK(same(run<policy>(2.0F, 3e38F, first), {1.0F - 0.25F * 3e38F, 0.75F, 2.0F}));
        CHECK(same(run<policy>(1.0F, 3e38F, first), {1.0F - 0.5F * 3e38F, 0.5F, 1.0F}));
        // Gradients of 16 bits, which torch does not unscale: 2^127 is infinite without the scale.
        CHECK(same(run<policy, mp::bfloat16>(0.25F, 0x1p127F, first), {-infinity, -1.0F, 0.25F}));
        CHECK(same(run<policy, mp::bfloat16>(0.25F, infinity, first), {1.0F, 1.0F, 0.125F}));
    }
}

TEST_CASE("pytorch_policy skips what is infinite without the scale, and differs in nothing else") {
    using policy = mp::pytorch_policy;
    for (const bool first : {false, true}) {
        CAPTURE(first);
        CHECK(same(run<policy>(0.25F, 3e38F, first), {1.0F, 1.0F, 0.125F}));
        for (const float scale : {0.25F, 1.0F, 3.0F, 65536.0F}) {
            for (const float gradient : {1.0F, 3e38F, infinity, not_a_number}) {
                if (scale < 1.0F && gradient == 3e38F) continue;
                CHECK(same(run<policy>(scale, gradient, first),
                           run<mp::pytorch_scaled_check_policy>(scale, gradient, first)));
            }
        }
    }
}
