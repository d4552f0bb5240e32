// SPDX-License-Identifier: MIT
// Clipping by the norm keeps no copy of gradients of a reduced format: bytes, and the bits of gradients
// that were unscaled and clipped as floats one by one.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/optim.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "nn/optim/executors.hpp"

namespace {

/// Two parameters and one without a gradient; a gradient has zeros and subnormal products.
template <class Weight, class Gradient = Weight>
struct network {
    std::vector<Weight> weights[3];
    std::vector<Gradient> gradients[3];
    std::vector<mp::parameter<Weight, Gradient>> parameters;

    explicit network(unsigned seed) {
        std::mt19937 random(seed);
        std::normal_distribution<float> normal;
        const std::size_t sizes[3] = {9001, 50, 4097};
        for (int i = 0; i < 3; ++i) {
            weights[i].resize(sizes[i]);
            for (Weight& it : weights[i]) it = Weight(normal(random));
            if (i == 1) continue;
            gradients[i].resize(sizes[i]);
            for (Gradient& it : gradients[i])
                it = Gradient(normal(random) * (random() % 5 == 0 ? 1e-6F : 8.0F));
        }
        for (int i = 0; i < 3; ++i) parameters.push_back({"", weights[i], gradients[i]});
    }
};

/// Leaves its gradients as they come in the state, so that a test can look at them.
template <class Gradient>
class recorder : public mp::optimizer_base<Gradient> {
    using base = mp::optimizer_base<Gradient>;

public:
    recorder(mp::cpu exec, std::vector<mp::parameter<Gradient>> parameters)
        : base("recorder", exec, std::move(parameters), 1.0, 1) {}
    void step() {
        this->template apply<1>(1.0F, [](std::uint64_t) {
            return [](float*, const float* gradient, std::array<float*, 1> states, std::size_t count) {
                for (std::size_t i = 0; i < count; ++i) states[0][i] = gradient[i];
            };
        });
    }
    [[nodiscard]] std::span<const float> seen(std::size_t i) const {
        return base::state_of("recorder", i, 0);
    }
};

/// What an update sees: every product rounded to float, first by the inverse scale.
template <class Gradient>
float clipped(Gradient gradient, float inverse_scale, float factor) {
    volatile float value = static_cast<float>(gradient) * inverse_scale;
    value = value * factor;
    return value;
}

template <class Value>
void check_bits() {
    for (const mp::cpu exec : optimizer_executors({1, 3})) {
        CAPTURE(mp::name_of(exec.instructions));
        CAPTURE(exec.threads);
        for (const float inverse_scale : {0x1p-7F, 1.0F / 3.0F, 0x1.8p-130F, 1.0F}) {
            CAPTURE(inverse_scale);
            // The oracle gets float gradients, unscaled and clipped already.
            network<Value> net(5);
            network<Value, float> other(5);
            mp::adamw<Value> optimizer(exec, net.parameters);
            recorder<Value> seeing(exec, net.parameters);
            mp::adamw<Value, float> oracle(exec, other.parameters);
            optimizer.unscale_gradients(inverse_scale);
            seeing.unscale_gradients(inverse_scale);
            const double norm = optimizer.clip_gradient_norm(0x1p-3 * static_cast<double>(inverse_scale));
            CHECK(seeing.clip_gradient_norm(0x1p-3 * static_cast<double>(inverse_scale)) == norm);
            double squares = 0.0;
            const auto factor = static_cast<float>(
                std::fmin(1.0, 0x1p-3 * static_cast<double>(inverse_scale) / (norm + 1e-6)));
            for (int i = 0; i < 3; ++i) {
                for (std::size_t j = 0; j < net.gradients[i].size(); ++j) {
                    const auto plain = static_cast<double>(clipped(net.gradients[i][j], inverse_scale, 1.0F));
                    squares += plain * plain;
                    other.gradients[i][j] = clipped(net.gradients[i][j], inverse_scale, factor);
                }
            }
            CHECK(norm == doctest::Approx(std::sqrt(squares)).epsilon(1e-12));
            CHECK(factor < 1.0F);
            optimizer.step();
            seeing.step();
            oracle.step();
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < 3; ++i) {
                for (std::size_t j = 0; j < net.gradients[i].size(); ++j) {
                    wrong += std::bit_cast<std::uint32_t>(optimizer.master_weights(i)[j]) !=
                                     std::bit_cast<std::uint32_t>(oracle.master_weights(i)[j])
                                 ? 1U
                                 : 0U;
                    wrong += std::bit_cast<std::uint32_t>(seeing.seen(i)[j]) !=
                                     std::bit_cast<std::uint32_t>(other.gradients[i][j])
                                 ? 1U
                                 : 0U;
                }
            }
            CHECK(wrong == 0);
            CHECK_FALSE(optimizer.gradients_unscaled());
        }
    }
}

}  // namespace

TEST_CASE("clipping half and bfloat16 gradients multiplies twice, each product rounded, without a copy") {
    check_bits<mp::half>();
    check_bits<mp::bfloat16>();
}

TEST_CASE_TEMPLATE("AdamW with global-norm clipping takes 16 bytes a parameter", Value, mp::half,
                   mp::bfloat16) {
    std::vector<Value> weights(1U << 20, Value(1.0F));
    std::vector<Value> gradient(1U << 20, Value(0.5F));
    mp::adamw<Value> optimizer({{"", weights, gradient}});
    mp::dynamic_loss_scaler scaler({.initial_scale = 4.0F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    const auto round = [&] {
        mp::training_iteration iteration(scaler, optimizer);
        std::fill(gradient.begin(), gradient.end(), Value(0.5F));
        CHECK(iteration.clip_global_gradient_norm(1.0) == 128.0);
        CHECK(iteration.finish());
    };
    round();
    CHECK(optimizer.bytes_per_parameter() == 2 + 2 + 4 + 4 + 4);
    // Looking at single values takes a copy, which stays.
    optimizer.unscale_gradients(0.25F);
    CHECK(optimizer.unscaled_gradients()[0].size() == gradient.size());
    optimizer.skip_step();
    CHECK(optimizer.bytes_per_parameter() == 20);
}

TEST_CASE("looking at gradients between clipping and the step, or scaling them twice, rounds every product") {
    network<mp::half> net(7);
    mp::sgd<mp::half> optimizer(net.parameters, {.learning_rate = 1.0});
    const float inverse_scale = 1.0F / 3.0F;
    std::vector<float> masters(optimizer.master_weights(0).begin(), optimizer.master_weights(0).end());
    optimizer.unscale_gradients(inverse_scale);
    optimizer.scale_gradients(0.3F);
    const double once = optimizer.gradient_norm();
    CHECK(optimizer.unscaled_gradients()[0][3] == clipped(net.gradients[0][3], inverse_scale, 0.3F));
    CHECK(optimizer.unscaled_gradients()[1].empty());
    CHECK(optimizer.gradient_norm() == once);
    optimizer.scale_gradients(0.7F);
    optimizer.clip_gradient_value(0.5);
    std::size_t wrong = 0;
    const auto expected = [&](std::size_t j) {
        volatile float value = clipped(net.gradients[0][j], inverse_scale, 0.3F) * 0.7F;
        return value > 0.5F ? 0.5F : value < -0.5F ? -0.5F : static_cast<float>(value);
    };
    for (std::size_t j = 0; j < 9001; ++j) {
        wrong += optimizer.unscaled_gradients()[0][j] != expected(j) ? 1U : 0U;
    }
    CHECK(wrong == 0);
    optimizer.step();
    for (std::size_t j = 0; j < 9001; ++j) {
        wrong += optimizer.master_weights(0)[j] != masters[j] - expected(j) ? 1U : 0U;
    }
    CHECK(wrong == 0);
    // Two factors without looking in between, and none left for the next round.
    optimizer.unscale_gradients(inverse_scale);
    optimizer.scale_gradients(0.3F);
    optimizer.scale_gradients(0.7F);
    volatile float twice = clipped(net.gradients[0][3], inverse_scale, 0.3F) * 0.7F;
    CHECK(optimizer.unscaled_gradients()[0][3] == twice);
    optimizer.skip_step();
    optimizer.unscale_gradients(1.0F);
    optimizer.scale_gradients(0.5F);
    optimizer.skip_step();
    optimizer.unscale_gradients(1.0F);
    CHECK(optimizer.unscaled_gradients()[0][3] == static_cast<float>(net.gradients[0][3]));
}
