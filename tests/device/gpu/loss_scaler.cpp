// SPDX-License-Identifier: MIT
// gpu_loss_scaler and its iteration: the weights, scales and counts of loss_scaler on the CPU, without the
// host's part.
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/nn/optim/gpu/loss_scaler.hpp>
#include <mp/nn/optim/gpu/optimizer.hpp>
#include <mp/nn/optim/gpu/training_iteration.hpp>
#include <mp/optim.hpp>
#include <mp/simt.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

namespace {

using mp::half;
using simulated = mp::simulated_gpu<mp::arch::sm_80>;
using parameter = mp::gpu_parameter<half>;

constexpr std::size_t size = 100;

/// Half weights with float masters and the state of an optimizer, in "device" memory.
struct tensor {
    std::vector<half> weights = std::vector<half>(size, half(0.5F));
    std::vector<half> gradient = std::vector<half>(size);
    std::vector<float> masters = std::vector<float>(size, 0.5F);
    std::vector<float> momentum = std::vector<float>(size);
    std::vector<float> mean_square = std::vector<float>(size);

    [[nodiscard]] parameter view() {
        return {.weights = weights,
                .gradient = gradient,
                .masters = masters,
                .momentum = momentum,
                .mean_square = mean_square};
    }
};

/// Gradients of a loss that is multiplied by the scale; infinite every fifth time.
std::vector<half> scaled_gradient(int iteration, unsigned seed, float scale) {
    std::mt19937 random(seed * 1000 + static_cast<unsigned>(iteration));
    std::normal_distribution<float> draw;
    std::vector<half> result;
    for (std::size_t i = 0; i < size; ++i) result.push_back(half(draw(random) * 1e-3F * scale));
    if (iteration % 5 == 4) result[7] = half(INFINITY);
    return result;
}

template <class Host, class Options>
void check_training(const Options& options, double max_norm) {
    const mp::pytorch_policy policy{.initial_scale = 1024.0F, .growth_interval = 3};
    tensor device;
    mp::gpu_optimizer optimizer(simulated{}, std::vector{device.view()}, options);
    mp::gpu_loss_scaler scaler(simulated{}, policy);

    std::vector<half> weights(size, half(0.5F)), gradient(size);
    Host host_optimizer({{"w", weights, gradient}}, options);
    mp::loss_scaler host_scaler(policy);

    for (int i = 0; i < 12; ++i) {
        std::ranges::copy(scaled_gradient(i, 1, host_scaler.current_scale()), gradient.begin());
        {
            mp::training_iteration iteration(host_scaler, host_optimizer);
            if (max_norm > 0.0) iteration.clip_gradient_norm(max_norm);
            iteration.finish();
        }
        mp::training_iteration iteration(scaler, optimizer);
        std::ranges::copy(scaled_gradient(i, 1, iteration.scale()->current_scale()), device.gradient.begin());
        if (max_norm > 0.0) iteration.clip_gradient_norm(max_norm);
        iteration.finish();
        CHECK(device.weights == weights);
        CHECK(scaler.state().current_scale() == host_scaler.current_scale());
    }
    CHECK(scaler.state().skipped == 2);
    CHECK(optimizer.state().steps == 10);
    CHECK(scaler.state().iterations == 12);
}

TEST_CASE("training with AdamW has the bits of the CPU, clipped or not") {
    check_training<mp::adamw<half>>(mp::adamw_options{.learning_rate = 0.01}, 0.0);
    check_training<mp::adamw<half>>(mp::adamw_options{.learning_rate = 0.01}, 0.005);
}

TEST_CASE("training with Adam and with Lion has the bits of the CPU") {
    check_training<mp::adamw<half>>(
        mp::adamw_options{.learning_rate = 0.01, .weight_decay = 0.1, .coupled_decay = true}, 0.0);
    check_training<mp::lion<half>>(mp::lion_options{.learning_rate = 0.01, .weight_decay = 0.3}, 0.005);
}

TEST_CASE("training with SGD has the bits of the CPU") {
    check_training<mp::sgd<half>>(mp::sgd_options{.learning_rate = 0.1, .momentum = 0.9}, 0.005);
}

TEST_CASE("an infinity for one optimizer of an iteration keeps all of them from stepping") {
    tensor first, second;
    mp::gpu_optimizer a(simulated{}, std::vector{first.view()}, mp::sgd_options{.learning_rate = 0.1});
    mp::gpu_optimizer b(simulated{}, std::vector{second.view()}, mp::adamw_options{});
    mp::gpu_loss_scaler scaler(simulated{}, mp::pytorch_policy{});
    first.gradient.assign(size, half(1.0F));
    second.gradient.assign(size, half(INFINITY));
    const std::vector<half> before = first.weights;
    const float scale = scaler.state().current_scale();
    mp::training_iteration iteration(scaler, a, b);
    iteration.finish();
    CHECK(first.weights == before);
    CHECK(second.weights == before);
    CHECK(scaler.state().current_scale() == scale / 2);
    CHECK(a.state().steps == 0);
}

TEST_CASE("without a scope: the same calls as loss_scaler, and the same misuse is refused") {
    tensor device;
    device.gradient.assign(size, half(1.0F));
    mp::gpu_optimizer optimizer(simulated{}, std::vector{device.view()},
                                mp::sgd_options{.learning_rate = 0.1});
    mp::gpu_loss_scaler scaler(simulated{}, mp::pytorch_policy{.initial_scale = 4.0F});
    static_cast<void>(scaler.scale());  // as a backward pass does
    CHECK_THROWS_WITH_AS(scaler.update(),
                         "mp::gpu_loss_scaler::update: no optimizer has been stepped since the last update",
                         mp::state_error);
    scaler.clip_gradient_norm(optimizer, 1.0);
    CHECK_THROWS_AS(scaler.clip_gradient_norm(optimizer, 1.0), mp::state_error);
    scaler.step(optimizer);
    CHECK_THROWS_AS(scaler.step(optimizer), mp::state_error);
    CHECK(optimizer.read_gradient_norm().norm == doctest::Approx(2.5));
    scaler.update();
    CHECK(optimizer.state().steps == 1);
    // The clip factor of one step is not that of the next.
    const float clipped = device.masters[0];
    CHECK(clipped == doctest::Approx(0.5 - 0.1 * 0.25 / 2.5));
    scaler.step(optimizer);
    scaler.update();
    CHECK(device.masters[0] == doctest::Approx(static_cast<double>(clipped) - 0.1 * 0.25));
}

TEST_CASE("a scope that is left early changes neither weights nor scale, and forgets what was found") {
    tensor device;
    device.gradient.assign(size, half(INFINITY));
    mp::gpu_optimizer optimizer(simulated{}, std::vector{device.view()},
                                mp::sgd_options{.learning_rate = 0.1});
    mp::gpu_loss_scaler scaler(simulated{}, mp::pytorch_policy{.initial_scale = 4.0F});
    static_cast<void>(scaler.scale());  // as a backward pass does
    {
        mp::training_iteration iteration(scaler, optimizer);
        iteration.clip_gradient_norm(1.0);
    }
    CHECK(scaler.state().current_scale() == 4.0F);
    CHECK(scaler.state().iterations == 0);
    device.gradient.assign(size, half(4.0F));
    mp::training_iteration iteration(scaler, optimizer);
    iteration.finish();
    CHECK(scaler.state().skipped == 0);
    CHECK(device.masters[0] == doctest::Approx(0.5 - 0.1));
    CHECK_THROWS_AS(iteration.finish(), mp::state_error);
}

TEST_CASE("a run goes on from the state of a scaler on the host") {
    mp::loss_scaler host(mp::pytorch_policy{.initial_scale = 32.0F});
    const mp::gpu_loss_scaler scaler(simulated{}, host.policy(), host.state().state);
    CHECK(scaler.state().current_scale() == 32.0F);
    tensor device;
    mp::gpu_optimizer optimizer(simulated{}, std::vector{device.view()},
                                mp::sgd_options{.learning_rate = 0.1});
    optimizer.set_learning_rate(0.25);
    CHECK(optimizer.state().learning_rate == 0.25);
    CHECK_THROWS_AS(optimizer.set_learning_rate(-1.0), mp::argument_error);
}

}  // namespace
