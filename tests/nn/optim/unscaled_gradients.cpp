// SPDX-License-Identifier: MIT
// Between backward pass and step: what unscaling keeps, clipping, accumulation, and calls in the wrong order.
#include <doctest/doctest.h>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

struct fixture {
    std::vector<mp::half> first_weights = std::vector<mp::half>(3);
    std::vector<mp::half> first_gradient = {mp::half(3.0F), mp::half(0.0F), mp::half(0.0F)};
    std::vector<mp::half> second_weights = std::vector<mp::half>(1);
    std::vector<mp::half> second_gradient = {mp::half(-4.0F)};
    mp::sgd<mp::half> optimizer{
        {{"first", first_weights, first_gradient}, {"second", second_weights, second_gradient}},
        {.learning_rate = 1.0}};
};

}  // namespace

TEST_CASE_FIXTURE(fixture, "unscaled gradients are float: what scaling kept from underflow stays") {
    // 2^-10 under a scale of 2^16 stands for 2^-26, half of the smallest half.
    first_gradient[0] = mp::half(0x1p-10F);
    const mp::gradient_report report = optimizer.unscale_gradients(0x1p-16F);
    CHECK(report == mp::gradient_report{.checked = 4});
    CHECK(optimizer.unscaled_gradients()[0][0] == 0x1p-26F);
    CHECK(optimizer.unscaled_gradients()[1][0] == -0x1p-14F);
    CHECK(optimizer.gradients_unscaled());
    CHECK(static_cast<float>(first_gradient[0]) == 0x1p-10F);
    optimizer.step();
    CHECK_FALSE(optimizer.gradients_unscaled());
    CHECK(optimizer.master_weights(0)[0] == -0x1p-26F);
    CHECK(optimizer.master_weights(1)[0] == 0x1p-14F);
    CHECK(static_cast<float>(second_weights[0]) == 0x1p-14F);
}

TEST_CASE_FIXTURE(fixture, "clipping works on unscaled values, over all parameters together") {
    mp::dynamic_loss_scaler scaler({.initial_scale = 2.0F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    scaler.unscale(optimizer);
    CHECK(optimizer.clip_gradient_norm(1.0) == 2.5);
    CHECK(optimizer.unscaled_gradients()[0][0] == doctest::Approx(0.6));
    CHECK(optimizer.unscaled_gradients()[1][0] == doctest::Approx(-0.8));
    CHECK(optimizer.clip_gradient_norm(100.0) == doctest::Approx(1.0));
    CHECK(scaler.step(optimizer));
    CHECK(optimizer.master_weights(0)[0] == doctest::Approx(-0.6));
    CHECK(optimizer.master_weights(1)[0] == doctest::Approx(0.8));
    scaler.update();
}

TEST_CASE_FIXTURE(fixture, "a norm within the limit changes no bit, and a limit of infinity only measures") {
    optimizer.unscale_gradients(1.0F);
    CHECK(optimizer.clip_gradient_norm(5.001) == 5.0);
    CHECK(optimizer.clip_gradient_norm(std::numeric_limits<double>::infinity()) == 5.0);
    CHECK(optimizer.unscaled_gradients()[0][0] == 3.0F);
    CHECK(optimizer.unscaled_gradients()[1][0] == -4.0F);
}

TEST_CASE("the norm is right where squares leave the range of float, and for long arrays") {
    std::vector<float> weights(1003);
    std::vector<float> gradient(1003, 0x1p100F);
    mp::sgd<float> optimizer({{"", weights, gradient}});
    optimizer.unscale_gradients(1.0F);
    CHECK(optimizer.clip_gradient_norm(0x1p120) ==
          doctest::Approx(std::sqrt(1003.0) * 0x1p100).epsilon(1e-12));
    CHECK(gradient[7] == 0x1p100F);  // float gradients are unscaled where they are
    CHECK(optimizer.clip_gradient_norm(1.0) > 1.0);
    CHECK(optimizer.clip_gradient_norm(1.0) == doctest::Approx(1.0).epsilon(1e-6));
}

TEST_CASE_FIXTURE(fixture, "a norm that is not finite leaves the gradients alone and the step is skipped") {
    mp::dynamic_loss_scaler scaler({.initial_scale = 2.0F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    first_gradient[1] = mp::half(infinity);
    scaler.unscale(optimizer);
    CHECK(optimizer.clip_gradient_norm(1.0) == std::numeric_limits<double>::infinity());
    CHECK(optimizer.unscaled_gradients()[0][0] == 1.5F);
    const mp::step_result result = scaler.step(optimizer);
    CHECK_FALSE(result);
    CHECK(mp::to_string(result) ==
          "skipped, 1 infinity and 0 NaNs at scale 2 (next 1), the first in 'first'[1]");
}

TEST_CASE_FIXTURE(fixture, "the first bad value is the lowest index of the first parameter that has one") {
    second_gradient[0] = mp::half(infinity);
    mp::gradient_report report = optimizer.check_gradients(1.0F);
    CHECK(report == mp::gradient_report{4, 1, 0, 1, 0});
    first_gradient[2] = mp::half(infinity - infinity);
    report = optimizer.check_gradients(1.0F);
    CHECK(report == mp::gradient_report{4, 1, 1, 0, 2});
    CHECK(optimizer.unscale_gradients(1.0F) == report);
}

TEST_CASE_FIXTURE(fixture, "clipping or looking before unscaling is refused, as is unscaling twice") {
    CHECK(thrown<mp::state_error>([&] { optimizer.clip_gradient_norm(1.0); }) ==
          "mp::optimizer_base::clip_gradient_norm: the gradients have not been unscaled since the last step; "
          "call "
          "unscale of the loss scaler first (without loss scaling: unscale_gradients(1))");
    CHECK(holds(thrown<mp::state_error>([&] { static_cast<void>(optimizer.unscaled_gradients()); }),
                "mp::optimizer_base::unscaled_gradients: the gradients have not been unscaled"));
    optimizer.unscale_gradients(0.5F);
    CHECK(holds(thrown<mp::state_error>([&] { optimizer.unscale_gradients(0.5F); }),
                "mp::optimizer_base::unscale_gradients: the gradients are already unscaled"));
    CHECK(thrown<mp::state_error>([&] { optimizer.step(0.5F); }) ==
          "mp::sgd::step: the gradients are already unscaled; call step() without an inverse scale");
    CHECK(holds(thrown<mp::state_error>([&] { static_cast<void>(optimizer.check_gradients(0.5F)); }),
                "check_gradients: the gradients are already unscaled"));
    CHECK(optimizer.unscaled_gradients()[0][0] == 1.5F);
    for (const double bad : {0.0, -1.0, std::nan("")}) {
        CHECK(holds(thrown<mp::argument_error>([&] { optimizer.clip_gradient_norm(bad); }),
                    "mp::optimizer_base::clip_gradient_norm: max_norm is "));
    }
    // Each of the three ends the round.
    optimizer.skip_step();
    optimizer.unscale_gradients(0.5F);
    optimizer.zero_gradients();
    optimizer.unscale_gradients(0.5F);
    optimizer.step();
    optimizer.unscale_gradients(0.5F);
    CHECK(holds(thrown<mp::argument_error>([&] {
                    optimizer.skip_step();
                    optimizer.unscale_gradients(std::nanf(""));
                }),
                "mp::optimizer_base::unscale_gradients: inverse_scale is nan"));
    CHECK_FALSE(optimizer.gradients_unscaled());
}

TEST_CASE_FIXTURE(fixture, "zero_gradients sets every gradient to plus zero") {
    optimizer.zero_gradients();
    for (const mp::half value : first_gradient) CHECK(value.bits() == 0);
    CHECK(second_gradient[0].bits() == 0);
}

TEST_CASE_FIXTURE(fixture, "gradients accumulated over several backward passes make one step") {
    mp::dynamic_loss_scaler scaler({.initial_scale = 512.0F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    optimizer.zero_gradients();
    for (int batch = 0; batch < 4; ++batch) second_gradient[0] += mp::half(scaler.scale(0.25F));
    CHECK(scaler.step(optimizer));
    CHECK(scaler.update().kind == mp::scale_change_kind::unchanged);
    CHECK(optimizer.master_weights(1)[0] == -1.0F);
    CHECK(optimizer.step_count() == 1);
}

TEST_CASE("a scaler and an optimizer with float gradients unscale in place, without memory of their own") {
    std::vector<mp::half> weights(2);
    std::vector<float> gradient = {2048.0F, -1024.0F};
    mp::sgd<mp::half, float> optimizer({{"", weights, gradient}}, {.learning_rate = 1.0});
    const double bytes = optimizer.bytes_per_parameter();
    mp::dynamic_loss_scaler scaler({.initial_scale = 1024.0F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    scaler.unscale(optimizer);
    CHECK(gradient == std::vector<float>{2.0F, -1.0F});
    CHECK(optimizer.unscaled_gradients()[0].data() == gradient.data());
    CHECK(optimizer.bytes_per_parameter() == bytes);
    CHECK(scaler.step(optimizer));
    CHECK(optimizer.master_weights(0)[0] == -2.0F);
    // The fused path leaves the gradients scaled and gives the same update.
    gradient = {2048.0F, -1024.0F};
    scaler.update();
    CHECK(scaler.step(optimizer));
    CHECK(gradient == std::vector<float>{2048.0F, -1024.0F});
    CHECK(optimizer.master_weights(0)[0] == -4.0F);
}

TEST_CASE_FIXTURE(fixture, "an optimizer that was unscaled but never stepped starts the next round afresh") {
    mp::dynamic_loss_scaler scaler({.initial_scale = 2.0F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    scaler.unscale(optimizer);
    scaler.update();
    CHECK_FALSE(optimizer.gradients_unscaled());
    first_gradient[0] = mp::half(8.0F);
    scaler.unscale(optimizer);
    CHECK(optimizer.unscaled_gradients()[0][0] == 4.0F);
}

TEST_CASE_FIXTURE(fixture, "a moved optimizer goes on where it was") {
    optimizer.unscale_gradients(0.5F);
    mp::sgd<mp::half> moved = std::move(optimizer);
    CHECK(moved.unscaled_gradients()[0][0] == 1.5F);
    moved.step();
    CHECK(static_cast<float>(first_weights[0]) == -1.5F);
}
